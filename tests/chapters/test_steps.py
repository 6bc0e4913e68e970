"""What the chapters say of single steps holds in the records that they show."""

from collections import Counter

import pytest

from lib.chapter import Chapter
from lib.compiler.compiled import compile_source
from lib.gpus import GPUS
from lib.kernels.catalogue import CATALOGUE
from lib.paths import CUDA
from lib.records.predictions import PREDICTIONS
from lib.show import instruction_order as order
from lib.show.accesses import named
from lib.show.accounts import isolated
from lib.show.banks import describe
from lib.show.numbers import Numbers
from lib.show.version import Version

SIZE = 4096


def speed(stem, name=None):
    return Chapter(stem).version.recorded(SIZE, name).tflops


def gain(stem, *names, since=None):
    """Speed of each over that of the one before it, less 1."""
    speeds = [*([since] if since else []), *(speed(stem, name) for name in names)]
    return [after / before - 1 for before, after in zip(speeds, speeds[1:], strict=False)]


def test_02_the_merged_loads_pay_and_so_do_the_tiles_without_them():
    here, unmerged = Numbers("02_shared_tile"), "05_bank_conflicts/tile_padded"
    assert here.w() == pytest.approx(52 / 32, rel=1e-3)
    assert here.w(unmerged) == pytest.approx(68 / 32, rel=1e-3) and here.w(unmerged) > here.w(
        "01_naive")
    assert here.l1_wavefronts(unmerged) == pytest.approx(here.w(unmerged), rel=0.01)
    assert here.faster(unmerged, "01_naive") > 1.1 and here.faster("", unmerged) > 1.1
    assert here.metric("l1_data_percent", unmerged) > here.metric("l1_data_percent", "01_naive")
    # Where each matrix is read from DRAM about once, only the instructions of `ordered` are left.
    matrix = 4 * 2048**2
    for name in ("tile32", "ordered"):
        assert here.metric("dram_read_bytes", name, 2048) < 2.5 * matrix
    assert here.gain("ordered", "", 2048) < here.gain("ordered", "")
    assert here.ratio("instructions", "ordered", "tile32") > 1.1


def test_02_dram_is_not_the_limit_and_the_tiles_pay_together():
    stem, page = "02_shared_tile", Chapter("02_shared_tile").version
    read = {name: page.metrics(SIZE, name)["dram_read_bytes"] for name in ("tile32", "ordered")}
    assert read["ordered"] < read["tile32"] / 7 and 0 < gain(stem, "tile32", "ordered")[0] < 0.03
    assert -0.11 < gain(stem, "tile32", "tile16")[0] < -0.07
    assert page.metrics(SIZE, "tile16")["instructions"] > page.metrics(SIZE)["instructions"]
    alone = speed("01_naive")
    assert 0.02 < speed(stem, "only_a") / alone - 1 < 0.07
    assert -0.03 < speed(stem, "only_b") / alone - 1 < 0
    assert 0.4 < speed(stem, "tile32") / alone - 1 < 0.5


def test_02_serves_fewer_wavefronts_and_waits_less():
    here = Numbers("02_shared_tile")
    # Wavefronts of the L1's data stage are those of shared memory and one per global request.
    for name in ("01_naive", "tile32", "only_a", "only_b", "ordered"):
        counted = (here.per_fma("shared_wavefronts", name)
                   + here.per_fma("global_load_requests", name))
        assert here.l1_wavefronts(name) == pytest.approx(counted, rel=0.01)
    assert here.l1_wavefronts("01_naive") == pytest.approx(2, rel=0.01)
    assert here.l1_wavefronts("tile32") == pytest.approx(52 / 32, rel=0.01)
    # The two numbers that seem to say that it is slower.
    assert here.ratio("dram_read_bytes", "", "01_naive") > 1.9
    # DRAM read alike, the gain is the same or larger.
    assert here.ratio("dram_read_bytes", "", "01_naive", 8192) == pytest.approx(1, abs=0.01)
    assert here.faster("", "01_naive", 8192) > here.faster("", "01_naive", SIZE) > 1.4
    # One tile alone leaves the waiting, or the wavefronts.
    waits = {name: here.stall("long_scoreboard", name) + here.stall("lg_throttle", name)
             for name in ("01_naive", "only_a", "only_b", "tile32")}
    assert max(waits["tile32"], waits["only_b"]) < waits["only_a"] < waits["01_naive"]
    assert here.l1_wavefronts("only_b") > here.l1_wavefronts("01_naive")
    assert here.metric("l1_data_percent", "only_a") < 60
    # B is read once by each of 128, 64 and 16 groups of rows of blocks, A once.
    matrix = 4 * SIZE**2
    for name, groups in (("tile32", 128), ("01_naive", 64), ("ordered", 16), ("tile16", 256)):
        read = here.metric("dram_read_bytes", name)
        assert read == pytest.approx((groups + 1) * matrix, rel=0.04)


def test_05_small_tiles_have_nothing_to_pad_and_the_merge_to_lose():
    here, plain = Numbers("05_bank_conflicts"), "02_shared_tile"
    loads = [Version(stem).each("shared_load_instructions", name)
             for stem, name in ((plain, None), ("05_bank_conflicts", "tile_padded"))]
    assert loads == [1.25, 2.0]
    for name in (plain, "tile_padded"):
        assert here.count("shared_wavefronts", name) == here.count("shared_wavefronts_ideal", name)
    for name, wavefronts in (("tile_padded", 66), ("tile_transposed", 97),
                             ("tile_transposed_padded", 66), ("tile_swizzled", 66)):
        assert Version("05_bank_conflicts").each("shared_wavefronts", name) == wavefronts / 32


def test_05_padding_helps_a_load_and_costs_a_store():
    here = Chapter("05_bank_conflicts")

    def wavefronts(name, kind):
        return sum(one.access.wavefronts if hasattr(one.access, "wavefronts")
                   else describe(one.access, one.kind).wavefronts
                   for one in named(here.version.traced(name).launch, "shared")
                   if one.kind == kind and one.label.startswith("As"))

    assert wavefronts("padded", "load") < wavefronts("together", "load")
    assert wavefronts("padded", "store") > wavefronts("together", "store")
    assert wavefronts("spread_padded", "load") == wavefronts("spread", "load")


def test_07_no_work_stands_between_load_and_store_unless_values_wait_in_registers():
    version = Chapter("07_double_buffer").version
    loops = {name: version.compiled("sm_90a", name).inner_loop
             for name in ("tile_two_buffers", "tile_both", "two_buffers", "both")}
    work = {name: order.work_between([i.opcode for i in loop]) for name, loop in loops.items()}
    assert work["tile_two_buffers"] == work["two_buffers"] == 0
    assert work["tile_both"] > 16 and work["both"] > 0


def test_03_wavefronts_fall_by_the_strip_and_sectors_by_the_larger_tile():
    page, names = Chapter("03_strip"), ("element", "strip8", "tile64", "columns_first")
    wavefronts, sectors = (
        [page.version.each(key, name) for name in names]
        for key in ("shared_wavefronts", "global_load_sectors"))
    assert wavefronts[0] == Chapter("02_shared_tile").version.each("shared_wavefronts")
    assert wavefronts == [50 / 32, 22 / 32, 21 / 32, 21 / 32]
    assert sectors == [0.25, 0.25, 0.125, 0.125]


def wavefronts(stem, name):
    """Of a tile's load, the last that is seen: its wavefronts and the fewest that would do."""
    found = {one.label[:2]: describe(one.access, one.kind)
             for one in named(Chapter(stem).version.traced(name).launch, "shared")
             if one.kind == "load"}
    return {tile: (load.wavefronts, load.ideal) for tile, load in found.items()}


def test_04_all_excess_wavefronts_are_of_bs_and_in_the_small_block_half_of_them():
    assert wavefronts("04_register_tile", "tile8") == {"As": (2, 2), "Bs": (8, 4)}
    assert wavefronts("04_register_tile", "block64") == {"As": (4, 2), "Bs": (8, 4)}
    assert wavefronts("05_bank_conflicts", "spread") == {"As": (1, 1), "Bs": (1, 1)}
    here = Version("04_register_tile")
    excess = [here.each("shared_wavefronts", name) - here.each("shared_wavefronts_ideal", name)
              for name in ("block64", "tile8")]
    assert excess == [0.25, 0.125]


def test_04_both_tiles_pay():
    thread, block = gain("04_register_tile", "block64", "tile8", since=speed("03_strip"))
    assert thread > 0.2 and block > 0.1


def test_05_a_wavefront_is_worth_more_where_the_stage_is_fuller():
    here, pad = Numbers("05_bank_conflicts"), "tile_transposed_padded"
    assert here.metric("l1_data_percent", "tile_transposed") > 10 + here.metric(
        "l1_data_percent", "together")
    for size in (2048, SIZE):
        assert 0 < here.gain("spread", "together", size) < 0.15 < 0.3 < here.gain(
            pad, "tile_transposed", size)
        assert here.faster("tile_padded", "02_shared_tile", size) < 0.9
        assert here.gain("spread_padded", "spread", size) < 0 < here.gain(
            "padded", "together", size)


def test_06_wide_loads_save_wavefronts_of_as_and_none_of_bs():
    assert wavefronts("06_vectorized", "unrolled") == {"As": (1, 1), "Bs": (1, 1)}
    wide = wavefronts("06_vectorized", "shared_128")  # of four floats each
    assert {tile: taken for tile, (taken, _) in wide.items()} == {"As": 2, "Bs": 4}
    here = Numbers("06_vectorized")
    assert here.w("unrolled") - here.w("shared_128") == pytest.approx((8 - 4) / 64, abs=2e-3)


def test_06_the_compiler_merges_neighbours_in_shared_memory_only():
    def loads(stem, name):
        return Counter(one.opcode for one in Chapter(stem).version.compiled("sm_90a", name).sass
                       if one.opcode.startswith(("LDS", "LDG")))

    assert set(loads("05_bank_conflicts", "spread")) == {"LDG.E", "LDS", "LDS.64"}
    assert set(loads("04_register_tile", "tile8")) == {"LDG.E", "LDS.64", "LDS.128"}
    assert set(loads("06_vectorized", "transposed")) == {"LDG.E", "LDS"}
    assert set(loads("06_vectorized", "float4")) == {"LDG.E.128", "LDS.128"}


def test_06_shared_loads_and_depth_pay_and_global_vectors_hardly():
    found = gain("06_vectorized", "transposed", "unrolled", "shared_128", "global_128", "float4")
    unrolled, shared, wide, deeper = found
    assert shared > 0.1 and deeper > 0.08 and abs(unrolled) < 0.03 and abs(wide) < 0.03
    here = Numbers("06_vectorized")
    issued = {name: here.per_fma("instructions", name)
              for name in ("unrolled", "shared_128", "global_128", "float4")}
    assert issued["unrolled"] > 1.1 * issued["shared_128"] > 1.15 * issued["global_128"]
    assert issued["float4"] == pytest.approx(issued["global_128"], rel=0.02)
    waits = {name: here.stall("long_scoreboard", name) for name in issued}
    assert waits["global_128"] > waits["shared_128"] and waits["float4"] < 0.6 * waits["global_128"]
    assert here.stall("barrier") < 0.7 * here.stall("barrier", "global_128")
    assert here.slot("memory", "unrolled") > 2 * here.slot("memory", "shared_128")


def test_09_no_early_step_counts_and_the_warp_s_shape_costs():
    stem = "09_fp32_limit"
    names = ("copies", "unguarded", "ahead", "grouped", "square")
    found = gain(stem, *names, since=speed("08_warp_tile", "warp_64x64"))
    assert all(abs(one) < 0.04 for one in found)
    assert found[0] < 0 and found[3] < 0 and min(found[1], found[2]) > 0.01
    assert found[4] > found[1]
    assert abs(gain(stem, "square", "broad")[0]) < 0.01 and gain(stem, "broad", "wide")[0] < -0.02


def differs(one, other):
    """Names of the constants in which two variants of a template differ."""
    first, second = one.constants, other.constants
    assert (one.file, one.function, set(first)) == (other.file, other.function, set(second))
    return {name for name in first if first[name] != second[name]}


@pytest.mark.parametrize(("stem", "before", "after", "what"), [
    ("08_warp_tile", "waiting_flat", "waiting_unpaired", {"ORDER"}),
    ("08_warp_tile", "waiting_unpaired", "waiting_paired", {"ORDER"}),
    ("08_warp_tile", "one_buffer", "warp_64x32", {"BUFFERS"}),
    ("08_warp_tile", "unpaired", "warp_64x32", {"PAIRED"}),
    ("08_warp_tile", "warp_64x32", "warp_64x64", {"WN"}),
    ("08_warp_tile", "warp_64x64", "warp_64x64_k16", {"BK"}),
    ("08_warp_tile", "seed", "seed16", {"BK"}),
    ("08_warp_tile", "seed16", "seed32", {"BK"}),
    ("09_fp32_limit", "copies", "unguarded", {"GUARDED"}),
    ("09_fp32_limit", "unguarded", "ahead", {"AHEAD"}),
    ("09_fp32_limit", "ahead", "grouped", {"GROUP"}),
    ("09_fp32_limit", "square", "broad", {"BN", "BLOCKS"}),
    ("09_fp32_limit", "broad", "wide", {"WM", "WN"}),
    ("09_fp32_limit", "wide", "turning", {"TURNING"}),
    ("09_fp32_limit", "turning", "spread", {"SPREAD"}),
    ("09_fp32_limit", "spread", "large", set()),
])
def test_steps_that_are_said_to_change_one_thing_do(stem, before, after, what):
    kernel = Chapter(stem).kernel
    first, second = kernel.variant(before), kernel.variant(after)
    assert differs(first, second) == what
    assert (first.grid != second.grid) == (not what)  # what no constant changes is the launch


def test_08_a_larger_tile_of_a_lane_only_takes_back_what_the_buffer_cost():
    stem = "08_warp_tile"
    assert speed(stem, "one_buffer") >= speed(stem, "warp_64x64_k16")
    assert abs(speed(stem, "waiting_paired") / speed(stem, "waiting_flat") - 1) < 0.01
    assert 0 < gain(stem, "unpaired", "warp_64x32")[0] < 0.01
    page = Chapter(stem)
    found = {name: page.version.metrics(SIZE, name)
             for name in ("waiting_flat", "waiting_paired", "one_buffer", "warp_64x32")}
    paired, flat = found["waiting_paired"], found["waiting_flat"]
    assert paired["l1_data_percent"] < flat["l1_data_percent"] < 60
    assert found["warp_64x32"]["instructions"] > 1.02 * found["one_buffer"]["instructions"]
    assert found["warp_64x32"]["stall_barrier"] < found["one_buffer"]["stall_barrier"]


def test_07_values_in_registers_pay_and_a_second_buffer_brings_the_wait_back():
    stem, numbers = "07_double_buffer", Numbers("07_double_buffer")
    staged, both = gain(stem, "neither", "staged", "both")
    assert staged > 0.1 and both < -0.02
    assert gain(stem, "two_buffers", "both")[0] > 0.03
    small = gain(stem, "tile_one_buffer", "tile_staged")[0]
    assert 0 < small < staged, "the page says that less is left to gain in the small tile"
    assert gain(stem, "tile_staged", "tile_both")[0] < 0
    waits = [numbers.stall("long_scoreboard", name) for name in ("neither", "staged", "both")]
    assert waits[1] < waits[2] < waits[0]
    assert numbers.stall("barrier", "both") < numbers.stall("barrier", "staged")
    assert numbers.stall("long_scoreboard", "tile_staged") < 0.05
    assert numbers.stall("mio_throttle", "tile_staged") > numbers.stall(
        "mio_throttle", "tile_one_buffer")
    assert [numbers.work_between(name) for name in ("neither", "two_buffers")] == [0, 0]
    assert numbers.work_between("both") < numbers.work_between("staged") < 512 / 4


@pytest.mark.parametrize("buffers", [1, 2])
def test_07_the_promise_of_two_blocks_delays_the_loads(buffers):
    text = Chapter("07_double_buffer").kernel.source.read_text()
    behind, registers = [], []
    for blocks in (2, 1):
        name = f"double_buffer<128, 128, 8, 8, 8, true, {buffers}, {blocks}, 4>"
        found = compile_source(text, name, "sm_90a", include=CUDA / "include")
        behind.append(order.work_between([one.opcode for one in found.inner_loop]))
        registers.append(found.resources.registers)
    assert behind[1] > 2 * behind[0] and registers[0] == registers[1] <= 128


def test_08_the_tutorial_s_tile_is_held_back_by_shared_memory_and_not_by_its_depth():
    stem, page = "08_warp_tile", Chapter("08_warp_tile")
    names = ("seed", "seed16", "seed32")
    assert max(speed(stem, name) for name in names) < 1.06 * min(
        speed(stem, name) for name in names) < speed("06_vectorized")
    for name in names:
        found = page.version.metrics(SIZE, name)
        assert found["shared_wavefronts"] / (SIZE**3 / 32) > 0.25 and found["l1_data_percent"] > 85


def test_09_other_instructions_are_not_what_08_loses():
    numbers = Numbers("09_fp32_limit")
    others = [numbers.slot("other", name) / numbers.slot("fma", name)
              for name in ("08_warp_tile/warp_64x64_k16", "large")]
    assert others[0] < others[1]
    header = Chapter("09_fp32_limit").kernel.source.read_text().partition("#include")[0]
    assert "addresses, guards" not in header and "empty issue slots" in header


def test_09_spreading_the_copies_counts_and_turning_does_not():
    stem, numbers = "09_fp32_limit", Numbers("09_fp32_limit")
    turning, spread, large = gain(stem, "wide", "turning", "spread", "large")
    assert spread > 0.09 and 0.02 < large < 0.03
    assert abs(turning) < 0.01, "the page says: hardly any time"
    others = speed(stem, "large") / speed("08_warp_tile", "warp_64x64") / (1 + spread) - 1
    assert others < spread, "the page says: more than the other nine steps together"
    assert numbers.slot("empty", "spread") < 0.55 * numbers.slot("empty", "turning")
    for stall in ("short_scoreboard", "barrier", "long_scoreboard"):
        assert numbers.stall(stall, "spread") < 0.6 * numbers.stall(stall, "turning")
    assert numbers.ratio("l2_bytes", "broad", "square") < 0.7
    assert numbers.metric("dram_read_bytes", "large") > 3 * numbers.metric(
        "dram_read_bytes", "spread")
    assert numbers.slot("idle", "large") < 0.4 * numbers.slot("idle", "spread")


def test_09_a_step_that_loses_on_the_way_pays_at_the_end():
    stem = "09_fp32_limit"
    for name, least in (("square_warps", 0.02), ("straight", 0.005), ("at_once", 0.08)):
        assert gain(stem, name, "large")[0] > least
    assert gain(stem, "broad", "wide")[0] < -0.01
    assert abs(gain(stem, "square", "broad")[0]) < 0.01


def test_09_predictions_were_wrong_one_by_one_and_right_together():
    stem, steps = "09_fp32_limit", ("wide", "turning", "spread", "large")
    guesses = PREDICTIONS[stem]
    assert tuple(guesses) == steps
    found = gain(stem, "square", *steps)
    for step, gained in zip(steps[:3], found, strict=False):
        assert abs(gained - guesses[step].gain) > 0.02
    together = speed(stem, "large") / speed(stem, "square") - 1
    assert abs(Numbers(stem).predicted(*steps) - together) < 0.015


def test_12_a_second_buffer_gains_nothing_at_4096():
    here = Numbers("12_wmma_pipeline")
    assert here.warps("at_once") < here.warps("staged") < here.warps("epilogue") == here.warps(
        "roles")
    assert abs(here.gain("staged", "epilogue")) < 0.02
    assert here.gain("staged", "epilogue", 2048) < -0.1
    assert here.gain("staged", "at_once") > 0.2
    assert here.gain("roles", "epilogue", 2048) > 0.01 and here.gain("roles", "epilogue") < 0
    for size in (2048, SIZE):
        assert here.gain("eight_blocks", "staged", size) < 0
        assert abs(here.gain("products_first", "epilogue", size)) < 0.02
        for room in ("", "_alone"):
            assert here.gain(f"products_first{room}", f"stores_first{room}", size) > 0.05
            # By the model's times a block that is alone would gain far more.
            assert here.gain(f"products_first{room}", f"stores_first{room}", size) < 0.3
    assert here.work_between("staged") == here.work_between("at_once") == 0
    tiles, sms = (2048 // 64) ** 2, GPUS["H100"].sms
    assert 1 < tiles / (here.warps("staged") // 4 * sms) < 1.2, "its last wave is nearly empty"
    w = [here.l1_wavefronts(name) for name in ("epilogue", "at_once", "staged", "roles")]
    assert max(w) < 1.1 * min(w)
    assert here.stall("long_scoreboard", "staged", 2048) < here.stall(
        "long_scoreboard", "epilogue", 2048)


@pytest.mark.parametrize("stem", ["02_shared_tile", "06_vectorized", "09_fp32_limit"])
def test_a_version_and_its_steps_were_measured_in_one_chunk(stem):
    page = Chapter(stem)
    there = list(page.version.record.variants)  # others are not recorded yet
    assert {variant.name for variant in page.kernel.variants} <= set(there)
    # The ladder's pass has the fastest beside what it is compared with, on one board.
    assert len({page.version.recorded(SIZE, name).chunk for name in there
                if name != page.kernel.best}) == 1


@pytest.mark.parametrize("change", [pair.change for pair in CATALOGUE["08_warp_tile"].pairs])
def test_a_pair_that_was_timed_in_two_runs_is_marked(shown, change):
    version = Chapter("08_warp_tile").version
    pair = next(pair for pair in CATALOGUE["08_warp_tile"].pairs if pair.change == change)
    sides = version.rows((), (pair.first, pair.second))[:2]
    rows = [one.page.recorded(SIZE, one.variant.name) for one in sides]
    # Where the second was timed beside the first anew, the row is of that one run.
    runs = {rows[-1].chunk} if rows[-1].pair else {row.chunk for row in rows}
    isolated(version, change, account="wavefronts")
    assert (f"**{change}**†: " in shown[0]) == ("different runs" in shown[0]) == (len(runs) > 1)


def by(stem, before, after, size=SIZE):
    """Gain of a variant over another, of this version or, as ``stem/variant``, of another one."""
    return Numbers(stem).gain(after, before, size)


SIZES = (2048, 4096)


def test_19_roles_change_nothing_and_ping_pong_loses():
    here = Numbers("19_warp_specialization")
    assert abs(by("19_warp_specialization", "18_tma", "one_tile", 2048)) < 0.01
    assert here.ratio("cycles", "", "18_tma") == pytest.approx(1, abs=0.02)
    assert by("19_warp_specialization", "two_tiles", "one_tile", 2048) > 0.3
    for size in SIZES:
        assert by("19_warp_specialization", "cooperative", "ping_pong", size) < -0.02
    assert here.ratio("tensor_pipe_percent", "ping_pong", "cooperative") < 0.95


@pytest.mark.parametrize("stem, variant", [("18_tma", "wide"), ("20_persistent", "persistent")])
def test_recorded_wgmmas_read_all_bytes_of_both_operands(stem, variant):
    """The emulator's page says so: 128 bytes a wavefront, of A's 64×16 and B's 16×256 halves."""
    here = Numbers(stem)
    products = here.metric("gmma_instructions", variant) / 4  # counted for each of four warps
    assert here.metric("shared_wavefronts", variant) == products * 2 * 16 * (64 + 256) / 128


# What two runs of one instantiation differ by on another day, at least.
FLOOR = 0.01


def test_16_the_faster_instruction_needs_a_deeper_ring():
    here = Numbers("16_cp_async")
    for size in (2048, SIZE):
        third, faster_third = (here.gain(f"{kind}stages_3", f"{kind}stages_2", size)
                               for kind in ("k8_", ""))
        assert 0.4 < third < faster_third
        assert abs(here.gain("k8", "k8_stages_3", size)) < 2 * FLOOR
        assert here.gain("tile_256x128", "stages_3", size) > 0.04
        worth = [here.gain(name, than, size) for name, than in (
            ("stages_2", "k8_stages_2"), ("stages_3", "k8_stages_3"), ("tile_256x128", "k8"))]
        assert worth == sorted(worth) and worth[0] > 0.2 and worth[-1] > worth[0] + 0.15
        assert here.gain("tile_256x128", "through_l1", size) > 0.1
        assert abs(here.gain("tile_256x128", "tile_128x256", size)) < 2 * FLOOR
    assert here.ratio("l1_wavefronts", "through_l1", "tile_256x128") > 1.4
    assert here.metric("l1_data_percent", "through_l1") > here.metric("l1_data_percent") + 10


def test_21_names_the_kernel_that_gemm_launches_at_its_size():
    launched = Version("hopper").recorded(SIZE, "tuned").instantiation
    assert launched == Version("22_few_tiles").recorded(SIZE, "swapped_256").instantiation


def stalls(metrics, count=3):
    """The reasons for which warps wait longest, and the cycles per instruction issued."""
    waits = {name.removeprefix("stall_").replace("_", " "): value
             for name, value in metrics.items() if name.startswith("stall_")}
    return sorted(((reason, value) for reason, value in waits.items()
                   if reason not in ("selected", "not selected")), key=lambda one: -one[1])[:count]


def test_03_one_mapping_is_all_that_the_conflict_takes():
    page = Chapter("03_strip")
    fast, slow = (page.version.metrics(SIZE, name) for name in ("columns_first", "strips_first"))
    assert fast["instructions"] == pytest.approx(slow["instructions"], rel=1e-3)
    assert fast["shared_wavefronts"] == fast["shared_wavefronts_ideal"]
    assert slow["shared_wavefronts"] / fast["shared_wavefronts"] == pytest.approx(12.4, abs=0.1)
    assert 8 < speed("03_strip", "columns_first") / speed("03_strip", "strips_first") < 12.4
    assert slow["l1_data_percent"] > 95 > 80 > fast["l1_data_percent"]
    assert max(stalls(fast), key=lambda wait: wait[1])[0] == "short scoreboard"


def test_06_waits_for_global_memory_and_not_for_shared():
    names, here = ("transposed", "unrolled", "shared_128", "global_128", "float4"), Numbers(
        "06_vectorized")
    found = Chapter("06_vectorized").version.metrics(SIZE, "float4")
    assert "long scoreboard" in dict(stalls(found)) and found["stall_mio_throttle"] < 0.1
    for name in names:
        assert 0.25 / here.l1_wavefronts(name) > 0.75 and here.metric("l1_data_percent", name) < 70
        assert here.l1_wavefronts(name) == pytest.approx(here.w(name), rel=0.03)
    # The same bytes asked for with either depth; those that the L2 and DRAM move are not fewer.
    before = Chapter("06_vectorized").version.metrics(SIZE, "global_128")
    assert found["l1_load_bytes"] == before["l1_load_bytes"]
    assert found["l2_bytes"] > before["l2_bytes"]
    assert found["dram_read_bytes"] > before["dram_read_bytes"]


def test_08_prefetch_pays_and_the_second_buffer_costs():
    stem = "08_warp_tile"
    names = ("waiting_flat", "waiting_unpaired", "waiting_paired", "one_buffer", "warp_64x32",
             "warp_64x64", "warp_64x64_k16")
    found = dict(zip(names, gain(stem, *names, since=speed("06_vectorized", "global_128")),
                     strict=True))
    assert max(found, key=found.get) == "one_buffer" and found["one_buffer"] > 0.15
    assert found["warp_64x32"] < -0.05 and found["warp_64x64"] > 0.05
    assert abs(found["warp_64x64_k16"]) < 0.01
    assert all(abs(found[name]) < 0.04 for name in ("waiting_unpaired", "waiting_paired"))
    waits = [Chapter(stem).version.metrics(SIZE, name)["stall_long_scoreboard"]
             for name in ("waiting_paired", "one_buffer", "warp_64x32")]
    assert waits[1] < waits[0] / 3 and waits[2] > 1.5 * waits[1]
    before, after = (dict(stalls(Chapter(stem).version.metrics(SIZE, name)))
                     for name in ("waiting_paired", "one_buffer"))
    assert next(iter(before)) == "long scoreboard" and "long scoreboard" not in after


def test_17_a_narrow_product_costs_and_the_second_doubling_hardly_pays():
    here = Numbers("17_wgmma")
    for size in SIZES:
        assert by("17_wgmma", "n64", "n128", size) > 0.02
        assert abs(by("17_wgmma", "n128", "n256", size)) < 0.02
        assert by("17_wgmma", "n256", "serial", size) < -0.01
    for unit, sign in (("tensor_pipe_percent", 1), ("l1_data_percent", -1)):
        narrow, *wider = (sign * here.metric(unit, name) for name in ("n64", "n128", "n256"))
        assert narrow < min(wider)
    found = stalls(Chapter("17_wgmma").version.metrics(SIZE, "wide"))
    assert found[0][0] == "barrier", "the page says: the longest of the waits"
