"""cuBLAS's kernels: their names taken apart, and ours laid beside them."""

from dataclasses import replace

import pytest

from lib.kernels.catalogue import CATALOGUE
from lib.records import reach, schema
from lib.records import store as records
from lib.records.schema import Candidate, CublasRecord, KernelRecord, RivalsRecord
from lib.show import clock, display
from lib.show import rivals as page
from lib.show.rivals import COOPERATIVE, PING_PONG, SINGLE, Design
from lib.show.scoreboard import TYPES
from tests import built

GPU = "H100"
FP32, FP16, *_ = TYPES


@pytest.fixture
def said(monkeypatch):
    """Whatever the pages display, as text."""
    seen = []
    monkeypatch.setattr(display, "show", lambda *figures: seen.extend(figures))
    for module in (page, clock, display):
        if hasattr(module, "note"):
            monkeypatch.setattr(module, "note", seen.append)
        monkeypatch.setattr(module, "table", lambda head, rows, evidence: seen.append(
            page.markdown(head, rows) + evidence))
    return seen


@pytest.mark.parametrize("name, design", [
    ("nvjet_sm90_hss_128x160_64x5_2x1_v_bz_NNT",
     Design("nvjet", "sm_90", (128, 160), 64, 5, (2, 1), PING_PONG, "FP16 FP32 FP32")),
    ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
     Design("nvjet", "sm_90", (256, 128), 64, 4, (1, 2), COOPERATIVE, "BF16 FP32 BF16")),
    ("nvjet_sm90_hsh_64x32_64x16_2x4_h_bz_splitK_NNT",
     Design("nvjet", "sm_90", (64, 32), 64, 16, (2, 4), PING_PONG, "FP16 FP32 FP16", True)),
    ("_ZN7cutlass7Kernel2I43cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE",
     Design("CUTLASS", "sm_80", (256, 128), 8, 4)),
    ("_ZN7cutlass7Kernel2I51cutlass_75_tensorop_s1688gemm_f16_128x128_nn_align1EEvNT_6ParamsE",
     Design("CUTLASS", "sm_75", (128, 128))),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x128x8_stage3_warpsize1x4x1_ffma_aligna4_"
     "alignc4_execute_split_k_kernel__5x_cublas",
     Design("xmma", "sm_80", (64, 128), 8, 3, split=True)),
])
def test_a_name_is_taken_apart(name, design):
    assert page.taken_apart(name) == design


@pytest.mark.parametrize("name", ["gemm_a", "nvjet_sm90_hss_128x160", "", "volta_sgemm_128x64_nn"])
def test_a_name_of_another_family_is_refused(name):
    with pytest.raises(ValueError, match="no family that is known"):
        page.taken_apart(name)


def recorded_kernels():
    """cuBLAS's kernels of every recorded row, with cublasLt's attributes where there are any."""
    for record in records.every():
        if record.kernel in (*CATALOGUE, schema.CUBLAS):
            for variant in record.variants.values():
                for row in variant.bench:
                    for side in row.rival.sides:
                        if side.kernels:
                            yield row, side


def test_every_recorded_name_agrees_with_what_is_known_otherwise():
    """The types that were asked for, and cublasLt's own word for tile, cluster and split."""
    short = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32",
             "float8_e4m3fn": "E4M3"}
    seen = set()
    for row, side in recorded_kernels():
        design = page.design(side.kernels)
        if design.family == "nvjet":
            seen.add(side.kernels[0])
            assert design.types.split()[1:] in (
                ["FP32", short[row.out]], ["FP32", "FP32"] if design.split else None)
            assert design.types.split()[0] == short[row.dtype]
            if isinstance(side, Candidate) and side.tile:
                assert side.tile == f"{design.tile[0]}x{design.tile[1]}"
                assert side.cluster == f"{design.cluster[0]}x{design.cluster[1]}x1"
        assert not page.plain(side.kernels[0]).startswith("_Z")
    assert len(seen) > 20


def test_a_reduction_behind_a_kernel_means_that_k_is_split():
    kernel = "_ZN7cutlass7Kernel2I43cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE"
    reduction = "_ZN8cublasLt19splitKreduce_kernelILi32E"
    assert page.design([kernel, reduction]).split and page.design([reduction, kernel]).split
    assert not page.design([kernel]).split
    assert page.plain(reduction) == "splitKreduce_kernel"


@pytest.mark.parametrize("stem, name, design", [
    ("21_clusters", "ping_pong",
     Design("ours", "sm_90a", (128, 128), 64, 6, (2, 1), PING_PONG)),
    ("21_clusters", "cluster_1x2",
     Design("ours", "sm_90a", (128, 256), 64, 4, (1, 2), COOPERATIVE)),
    ("22_few_tiles", "split",
     Design("ours", "sm_90a", (64, 64), 64, 8, (1, 1), SINGLE, split=True)),
    ("08_warp_tile", "warp_64x32", Design("ours", "sm_90a", (64, 64), 16)),
])
def test_ours_are_described_in_the_same_words(stem, name, design):
    found = page.ours(CATALOGUE[stem].variant(name), "sm_90a")
    if stem == "08_warp_tile":
        assert (found.schedule, found.cluster, found.split) == ("", (1, 1), False)
    else:
        assert found == design


def test_an_autopsy_holds_what_the_records_hold():
    found = page.autopsy(FP32, 4096)
    best = max(row.ratio for stem in recorded_stems() for row in rows_of(stem, FP32, 4096))
    assert found.sides[0].share == best and found.sides[0].registers
    (rival,) = [row.rival for row in records.load(CublasRecord, GPU).variants["fp32"].bench
                if row.is_cube(4096)]
    assert found.sides[-1].design in (page.design(rival.best.kernels),
                                      page.design(rival.default.kernels))


def recorded_stems():
    """The versions that have a record."""
    return [stem for stem in CATALOGUE if records.load(KernelRecord, GPU, stem)]


def rows_of(stem, types, size):
    """The rows of all of a version's variants of some types at a cube."""
    return [row for variant in records.load(KernelRecord, GPU, stem).variants.values()
            for row in variant.bench if types.has(row) and row.shape == (size,) * 3]


def test_joules_are_given_to_the_kernel_that_was_measured_and_to_no_other():
    for types in TYPES:
        for size in (2048, 4096, 8192):
            sides = page.autopsy(types, size).sides[1:]
            assert sum(side.joules is not None for side in sides) <= 1


def test_all_public_kernels_are_shown_and_fp16_sums_are_not_ranked(said):
    page.peers()
    lines = said[0].splitlines()
    for name, peer in records.load(RivalsRecord, GPU).peers.items():
        own = [line for line in lines if line.startswith(f"| {name}<br>")]
        assert len(own) == len(peer.rows)
        for line, row in zip(own, peer.rows, strict=True):
            assert f"{row.M:,}" in line and reach.give_or_take(row.ratio, row.spread) in line
            assert peer.licence in line
            assert ("not ranked" in line) == peer.half_sums == ("cublasHgemm" in line)


def test_the_clock_s_table_is_of_the_versions_timed_in_turns_of_several_lengths(said):
    clock.clock()
    stems = [stem for stem in recorded_stems() if any(
        row.turns and row.shape == (4096,) * 3
        for row in next(iter(records.load(KernelRecord, GPU, stem).variants.values())).bench)]
    rows = said[0].splitlines()[2:2 + len(stems)]
    assert len(stems) > 5 and [row[2:4] for row in rows] == [stem[:2] for stem in stems]


def test_cycles_are_of_the_kernel_that_ours_met(results):
    slow = (0.1, 0.06, 0.05)
    record = built.record(rows=[built.row(2048, *slow)])
    for variant in record["variants"].values():
        variant["counters"] = [dict.fromkeys("MNK", 2048) | {"metrics": {"cycles": 1000}}]
    built.write(record)
    assert page.cycles("01_naive", 2048) == page.Cycles(1000, None, None)
    row = {key: value for key, value in built.row(2048, 0.05, 0.06, 0.05).items()
           if key not in ("cublas_spread", "cublas_clock", "instantiation", "turns",
                          "sustained", "alone", "cublas_alone", "pair", "trials", "packing",
                          "other_inputs")}

    def counted(number):
        return [dict.fromkeys("MNK", 2048) | {"metrics": {"cycles": number}}]

    built.write(built.head(schema.CUBLAS) | {
        "chunks": record["chunks"], "variants": {"fp32": {
            "arch": "sm_90a", "bench": [row], "counters": counted(700),
            "best_counters": counted(800)}}})
    assert page.cycles("01_naive", 2048) == page.Cycles(1000, 800, 700)


def test_without_a_record_the_page_names_the_command(results):
    with pytest.raises(records.NotRecorded, match="python -m lib record"):
        page.autopsies.__wrapped__("fp16", 4096)
    with pytest.raises(records.NotRecorded, match="python -m lib rivals --record"):
        page.peers()


def test_what_was_counted_on_another_day_is_said_to_be(said, monkeypatch):
    found = page.autopsy(FP32, 4096)
    days = iter((replace(found, same_day=True), replace(found, same_day=False)))
    monkeypatch.setattr(page, "autopsy", lambda *_: next(days))
    page.autopsies.__wrapped__("fp32", 4096, 4096)
    assert ["ours on another day" in text for text in said] == [False, True]


def test_speeds_are_shares_of_one_run_each(said):
    page.speeds.__wrapped__()
    wide, narrow = said
    assert wide.finding == narrow.finding
    for problem, cube in page._CUBES.items():
        one = page.shares(*cube)
        if one is not None:
            assert f"{problem}: " in wide.alt
            assert f"ours {100 * one.share:.1f}; {one.name}" in wide.alt
    best = max(row.ratio for stem in recorded_stems() for row in rows_of(stem, FP32, 4096))
    assert page.shares(FP32, 4096).share == best


@pytest.mark.parametrize("draw", [page.byte_counts, page.cycle_counts])
def test_counts_are_drawn_where_both_are_of_one_day(said, monkeypatch, draw):
    whole = page.autopsy
    monkeypatch.setattr(page, "autopsy", lambda *given: replace(whole(*given), same_day=True))
    draw.__wrapped__()
    assert "cuBLAS's best" in said[0].finding and "FP32, 4,096" in said[0].alt
    monkeypatch.setattr(page, "autopsy", lambda *given: replace(whole(*given), same_day=False))
    with pytest.raises(records.NotRecorded, match="not counted on one day"):
        draw.__wrapped__()


def test_a_reported_ratio_is_taken_apart(said):
    page.fast_cu.__wrapped__()
    here, best = (float(cell) for cell in said[0].splitlines()[4].split("|")[2:4])
    assert "| 764 | 716 | 1.07 |" in said[0] and f"**{here / best:.2f}**" in said[0]
