"""16 to 21: rings, tensor maps, clusters, persistent blocks, and the shapes that they refuse."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lib import ptx
from lib.dispatch import cost
from lib.dispatch.plan import choose, packing_launch, plan
from lib.kernels import hopper
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, RULES
from lib.kernels.schedule import Schedule
from lib.kernels.source import edited
from lib.problem import Problem
from lib.run import prepared
from lib.run.runner import emulate, prepare, run
from tests.kernels.conftest import clean, slow_but, smallest_of_each
from tests.tables import cases

CP_ASYNC, WGMMA, TMA, ROLES, PERSISTENT, CLUSTERS, FEW, STREAM_K, ANY = (
    CATALOGUE[stem] for stem in (
        "16_cp_async", "17_wgmma", "18_tma", "19_warp_specialization", "20_persistent",
        "21_clusters", "22_few_tiles", "23_stream_k", "24_any_row",
    )
)
RULE = RULES["hopper"]
emulated = partial(run, backend="emulator", exact=True)
# Of the other types, those that differ in more than a type.
MENU = [
    pytest.param(RULE, variant, id=variant.name) for variant in RULE.menu
    if (variant.dtype, variant.out) == ("float16", "float32")
    or variant.name.endswith(("ping_pong_192", "64x64x8_1x1x4"))
]


@pytest.mark.parametrize("kernel", [
    WGMMA, TMA, ROLES, PERSISTENT, CLUSTERS, FEW, STREAM_K, CATALOGUE["27_tcgen05"],
    CATALOGUE["28_cta_pairs"]], ids=lambda kernel: kernel.stem)
def test_rows_that_can_not_be_loaded_are_refused(kernel):
    variant = kernel.variants[0]
    for shape, said in (((64, 64, 60), "K"), ((64, 60, 64), "N")):
        with pytest.raises(ValueError, match=f"{said} = 60 must be a multiple of 8"):
            plan(kernel, variant, variant.problem(*shape), exact=True)


@pytest.mark.parametrize("name", ["tuned", "bf16_column", "half"])
@pytest.mark.parametrize("shape", [(33, 57, 75), (64, 8, 61), (3, 5, 0)], ids=str)
def test_rows_of_any_length_are_packed_and_the_run_says_so(name, shape):
    variant = RULE.variant(next(
        each for each in RULE.variant(name).candidates if each.endswith("16x128x12_1x1x1_swapped")
    ))
    done = clean(RULE, variant, *shape, 0.5, -2.0)
    M, N, K = shape
    along = K if variant.b_layout == "column" else N
    for matrix, size in (("A", K), ("B", along)):
        assert (matrix in done.plan.packing) is (size % 8 > 0 < K)
        assert (f"{matrix} is packed: " in done.plan.reason) is (size % 8 > 0)


@pytest.mark.parametrize("behind", [0, 1])
@cases("""
rows columns offset
5    33      0
7    1001    3
3    8       1
1    5       0
2    9       7
300  31      1
130  7       5
""")
def test_packing_moves_every_element_from_any_boundary(rows, columns, offset, behind):
    """And reads nothing outside of the matrix: the emulator would stop it."""
    packing = ANY.variant("packed").packing
    code = compile_kernel(ANY, packing, "sm_90a")
    block = np.random.default_rng(1).random(offset + rows * columns).astype("f2")
    tight = block[offset:].reshape(rows, columns)
    pitch = -(-columns // 8) * 8
    to = np.full((rows, pitch), np.nan, "f2")
    launch = packing_launch(packing, rows, columns)
    operand = Problem(rows, 1, columns, dtype="float16").operand("A")
    step = prepared._packing(packing, launch, operand, tight, to, behind)
    launched = ptx.Module(code.ptx, code.arch).get_function(code.name)(
        step.launch.grid, step.launch.block, step.arguments, races=True)
    assert (to[:, :columns] == tight).all() and not launched.hazards
    # No more blocks than elements ask for, eight per thread, up to a part of a row and of a block.
    across, down, _ = step.launch.block
    assert across * down == 128 and (across == 1 or 8 * across < 2 * max(columns, 8))


@pytest.mark.parametrize("name", ["tuned", "bf16_column", "half"])
def test_warps_read_rows_only_where_tma_can_t_step_over_them(name):
    variant = RULE.variant(name)
    for shape in ((33, 57, 75), (64, 8, 61), (3, 5, 9)):
        done = clean(RULE, variant, *shape, 0.5, -2.0, exact=False)
        assert done.plan.variant.warps_read and not done.plan.packing
    for shape in ((32, 56, 72), (64, 8, 64), (8192, 8192, 8192)):
        chosen = choose(RULE, variant, variant.problem(*shape))
        assert not RULE.variant(chosen.name).warps_read


UNALIGNED = [((64, 64), 4, 4, False, 1), ((64, 128), 3, 1, False, 2), ((24, 128), 4, 2, True, 3),
             ((8, 64), 3, 1, True, 3)]


def unaligned(tile, stages, split, swapped, loaders, **types):
    schedule = Schedule(tile, hopper.ROW, stages=stages, split=split, swapped=swapped,
                        loaders=loaders)
    return hopper.any_row("unaligned", "", schedule, **types)


@pytest.mark.parametrize("given, types", [
    pytest.param(given, types, id=f"{number}-{name}",
                 marks=() if place == number % 3 else pytest.mark.slow)
    for number, given in enumerate(UNALIGNED)
    for place, (name, types) in enumerate(
        {"": {}, "bf16": hopper.BF16_COLUMN, "half": hopper.HALF}.items())
])
def test_rows_that_begin_anywhere_are_read_as_they_are(given, types):
    variant = unaligned(*given, **types)
    for shape in ((70, 33, 75), (5, 19, 391), (1, 1, 1), (9, 8, 0)):
        done = clean(ANY, variant, *shape, 0.5, -2.0, landing="late")
        assert not done.plan.packing and done.plan.variant is variant


SIXTEEN = [replace(hopper.SMALL, stages=4),
           replace(hopper.SMALL, tile=(24, 64), stages=4, swapped=True),
           replace(hopper.SMALL, stages=4, split=4)]


@pytest.mark.parametrize("given", SIXTEEN, ids=["whole", "swapped", "split"])
def test_c_of_16_bits_leaves_in_whole_sectors(given):
    variant = hopper.few_tiles("sixteen", "", given, **hopper.HALF)
    done = emulated(FEW, variant.problem(70, 80, 64), variant=variant)
    assert done.verdict.ok
    assert done.launch.trace.counters()["global_store_sectors"] == 70 * 80 * 2 // 32


@pytest.mark.parametrize("given", SIXTEEN, ids=["whole", "swapped", "split"])
@pytest.mark.parametrize("columns, offset", [(80, 2), (80, 4), (36, 2), (34, 0), (33, 1)])
def test_c_of_16_bits_may_begin_on_any_pair(given, columns, offset):
    variant = hopper.packed(hopper.few_tiles("sixteen", "", given, **hopper.HALF))
    problem = variant.problem(26, columns, 64, 0.5, -2.0)
    A, B, C = problem.inputs(3)
    room = np.full(C.size + 8, 7, C.dtype)
    room[offset:][: C.size] = C.ravel()
    view = room[offset:][: C.size].reshape(C.shape)
    ready = prepare(FEW, variant, problem, [(A, B, view)], exact=True)
    for step in ready.steps[0]:
        emulate(compile_kernel(FEW, step.variant, "sm_90a"), step.launch, step.arguments)
    assert problem.judge(view, problem.reference(A, B, C)).ok
    assert (room[:offset] == 7).all() and (room[offset + C.size :] == 7).all()


# Each size of C's elements with either size of slices; BF16 is stored as FP16 is.
@pytest.mark.parametrize("name, types", [
    pytest.param("swapped_160", {}, id="160"), pytest.param("swapped_176", {}, id="176"),
    pytest.param("swapped_160", hopper.HALF, id="160-half"),
    pytest.param("swapped_176", hopper.BF16_COLUMN, id="176-bf16"),
    pytest.param("swapped_160", hopper.BF16_COLUMN, id="160-bf16", marks=pytest.mark.slow),
    pytest.param("swapped_176", hopper.HALF, id="176-half", marks=pytest.mark.slow),
])
def test_rows_that_64_does_not_divide_leave_in_slices(name, types):
    """Slices of 32 rows, or of 16: more tiles than blocks, the last ones cut off by C's edges."""
    variant = hopper.swapped_persists(name, "", hopper.OF_22[name], **types)
    rows, _ = variant.tile
    assert rows % variant.maps.boxes["C"][0] == 0
    for shape in ((2 * rows + 3, 264, 200), (17, 8, 0)):
        clean(FEW, variant, *shape, 0.5, -2.0, sms=2, landing="late")


def test_pairs_of_c_must_begin_on_a_pair_where_warps_read_rows():
    """A and B may begin on any element; C is refused before anything is launched."""
    variant = ANY.variant("read")
    plan(ANY, variant, variant.problem(64, 34, 75), [2, 6, 8], exact=True)
    plan(ANY, variant, variant.problem(64, 33, 75), [2, 6, 4], exact=True)
    with pytest.raises(ValueError, match="C must begin at a multiple of 8 bytes; copy it first"):
        plan(ANY, variant, variant.problem(64, 34, 75), [2, 6, 4], exact=True)


@pytest.mark.parametrize("kernel, variant", slow_but(MENU, smallest_of_each(MENU)))
def test_every_candidate_is_right(kernel, variant):
    """On ragged tiles, and more steps than the shortest ring has stages."""
    problem = variant.problem(variant.tile[0] + 9, 48, 208, 0.5, -2.0)
    done = emulated(kernel, problem, variant=variant, trace=False, landing="late", sms=2)
    assert done.verdict.ok


WIDTHS = [
    pytest.param(RULE, one, id=one.name) for one in {
        (one.file, one.tile, one.schedule.split): one for one in RULE.menu
        if one.file in ("21_clusters_widths", "22_few_tiles_widths")
    }.values()
]


# Rows of C that are whole vectors, and such that are not; each with either beta: one in turn.
WAYS_OUT = {"40, 0": (40, 0.0), "19, -2": (19, -2.0), "40, -2": (40, -2.0), "19, 0": (19, 0.0)}
TRIED = [(param, list(WAYS_OUT)[place % 4])
         for place, param in enumerate(smallest_of_each(WIDTHS))]


@pytest.mark.parametrize("kernel, variant, way", [
    pytest.param(*param.values, way, id=f"{param.id}-{way}",
                 marks=() if (param, way) in TRIED else pytest.mark.slow)
    for param in WIDTHS for way in WAYS_OUT
])
def test_widths_between_the_multiples_of_64_are_right(kernel, variant, way):
    """In three tiles of which the last is ragged, C poisoned.

    One cluster, if persistent, has all three: a warpgroup's second turn is among them.
    """
    past, beta = WAYS_OUT[way]
    N = 2 * variant.tile[1] * variant.grid.cluster_n + past
    problem = variant.problem(70, N, 136, 0.5, beta)
    clean(kernel, variant, problem, landing="late", sms=2)


def test_the_rule_knows_every_candidate_and_takes_the_least():
    for variant in RULE.variants:
        assert variant.by_rule
        problem = variant.problem(1000, 1000, 1000)
        cycles = {n: cost.cycles(RULE.variant(n), problem) for n in variant.candidates
                  if not RULE.variant(n).for_rows}
        ranked = [one.name for one in cost.ranked(RULE, variant, problem)]
        assert ranked[0] == choose(RULE, variant, problem).name
        assert sorted(cycles, key=cycles.__getitem__)[0] == ranked[0]
        assert sorted(ranked, key=cycles.__getitem__) == ranked
        assert {RULE.variant(n).dtype for n in cycles} == {variant.dtype}
        assert {RULE.variant(n).out for n in cycles} == {variant.out}


@cases("""
shape             | timed
(65, 1024, 512)   | True
(400, 4096, 4096) | True
(64, 1024, 512)   | False
(401, 4096, 4096) | False
(200, 1016, 4096) | False
""")
def test_candidates_of_some_rows_are_none_elsewhere(shape, timed):
    for variant in RULE.variants:
        ranked = cost.ranked(RULE, variant, variant.problem(*shape))
        assert any(RULE.variant(one.name).for_rows for one in ranked) is timed


@pytest.mark.parametrize("stem", ["21_clusters", "27_tcgen05", "28_cta_pairs"])
def test_rows_of_c_that_tma_can_not_store_come_from_registers(stem):
    kernel = CATALOGUE[stem]
    variant = kernel.variant("bf16_column")
    done = clean(kernel, variant, 40, 61, 64, 0.5, -2.0)
    assert done.plan.reason == "rows of C, 61 elements, are no multiple of 16 bytes"
    assert done.plan.variant.schedule.staged == 0


def test_matrices_on_no_boundary_are_packed_or_stored_by_lanes():
    variant = RULE.variants[0]
    problem = variant.problem(64, 64, 64)
    chosen = plan(RULE, variant, problem, (256 + 2, 256, 256 + 8), exact=True)
    assert [*chosen.packing] == ["A"] and chosen.variant.schedule.staged == 0
    assert chosen.reason == (
        "C is not aligned to 16 bytes and A is packed: it must be aligned to 16 bytes"
    )


@cases("""
N   K  vec
104 72 8
100 68 4
102 70 2
101 73 1
""")
def test_copies_are_as_wide_as_rows_allow(N, K, vec):
    variant = CP_ASYNC.variants[0]
    done = clean(CP_ASYNC, variant, 33, N, K, 0.5, -2.0, trace=True)
    assert done.plan.variant.schedule.vec == vec
    copies = done.launch.trace.matrix_counters()["copy_instructions"]
    tile = sum(variant.tile) * variant.step
    # Tiles that are all outside are asked for as well: the ring is filled before the first step.
    steps = -(-K // variant.step) + variant.schedule.stages - 1
    assert copies == (0 if vec == 1 else steps * tile // vec // 32)


@pytest.mark.parametrize("kernel, name, schedule, landing", [
    (CLUSTERS, "wide", "highest", "early"), (PERSISTENT, "ping_pong", "random", "late"),
    *(pytest.param(*given, marks=pytest.mark.slow) for given in (
        (CLUSTERS, "ping_pong", "random", "late"), (CLUSTERS, "hilbert_8", "random", "late"),
        (CLUSTERS, "cluster_1x2", "random", "late"), (CLUSTERS, "bf16_column", "lowest", "late"),
        (STREAM_K, "whole", "highest", "early"), (PERSISTENT, "wide", "highest", "late"),
    )),
])
def test_few_blocks_walk_through_many_tiles(kernel, name, schedule, landing):
    """Ragged tiles for a cluster of two blocks, the last of them partly outside of C."""
    variant = kernel.variant(name)
    rows, columns = variant.tile
    problem = variant.problem(
        rows * variant.grid.cluster + rows // 2, columns * variant.grid.cluster_n + columns // 2,
        136, 0.5, -2.0,
    )
    assert plan(kernel, variant, problem, sms=2, exact=True).launch.grid == (2, 1, 1)
    clean(kernel, variant, problem, schedule=schedule, landing=landing, seed=5, sms=2)


CUT = hopper.stream_k(
    "cut", "small", replace(hopper.OF_21["ping_pong"], tile=(64, 64), stages=3, group=8),
    stream_k_share=1)


@pytest.mark.parametrize("tiles, clusters", [(3, 2), (5, 3)])
def test_a_cut_wave_gives_the_same_bits_in_every_order(tiles, clusters):
    """Tiles of clusters, cut between the clusters; the second of three begins one and ends one."""
    problem = CUT.problem(128, tiles * 64 - 8, 64 * 9, 0.5, -2.0)
    launch = plan(STREAM_K, CUT, problem, sms=2 * clusters, exact=True).launch
    space = CUT.grid.workspace(problem, CUT.tile, CUT.step, launch.grid)
    assert launch.grid == (2 * clusters, 1, 1) and space.scalars == (tiles, clusters)
    results = []
    for schedule, landing in (("lowest", "early"), ("random", "late"), ("highest", "early")):
        done = clean(STREAM_K, CUT, problem, seed=7, sms=2 * clusters, schedule=schedule,
                     landing=landing)
        results.append(done.C)
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


def test_the_counts_of_arrivals_are_left_as_they_were():
    """The next product takes the same workspace."""
    problem = CUT.problem(128, 64, 64 * 4)
    A, B, C = problem.inputs(0, np)
    prepared = prepare(STREAM_K, CUT, problem, [(A, B, C)], exact=True, sms=4)
    (step,) = prepared.steps[0]
    arrivals, *cut = step.arguments[-3:]
    assert arrivals.dtype == np.int32 and arrivals.size == 16 and cut == [1, 2]
    for _ in range(2):
        C[...] = np.nan
        emulate(compile_kernel(STREAM_K, CUT, "sm_90a"), step.launch, step.arguments, trace=False)
        assert problem.judge(C, problem.reference(A, B, C)).ok
        assert not arrivals.any()


def test_the_grid_is_whole_clusters_and_no_more_than_the_gpu_holds():
    def grid(kernel, *shape, name=None):
        variant = kernel.variant(name)
        return plan(kernel, variant, variant.problem(*shape), exact=True).launch.grid

    assert grid(CLUSTERS, 1, 8, 8) == (2, 1, 1)
    assert grid(CLUSTERS, 257, 264, 8) == (8, 1, 1)
    assert grid(PERSISTENT, 257, 264, 8) == (6, 1, 1)
    assert grid(CLUSTERS, 8192, 8192, 8) == (132, 1, 1)
    assert grid(ROLES, 257, 264, 8) == (3, 1, 1)
    assert grid(FEW, 65, 64, 8, name="split") == (8, 1, 1)
    for kernel in (CP_ASYNC, WGMMA, TMA, PERSISTENT, CLUSTERS):
        with pytest.raises(ValueError, match=r"^M = \d+ and N = \d+ make \d+ tiles"):
            grid(kernel, 2**30, 2**30, 8)
        with pytest.raises(ValueError, match="^M = "):
            grid(kernel, 2**31 - 1, 8, 8)


def test_products_in_flight_need_a_stage_that_nobody_reads():
    """17's ring has a tile asked for three steps ahead: it would go where products still read."""
    text = WGMMA.file(WGMMA.variant("in_flight")).read_text(encoding="utf-8")
    source = edited(text, "AHEAD = STAGES - 2;", "AHEAD = STAGES - 1;")
    for name, hazards in (("two_ahead", False), ("in_flight", True)):
        variant = WGMMA.variant(name)
        done = emulated(WGMMA, variant.problem(128, 256, 640), variant=variant, source=source,
                        races=True, trace=False, schedule="random", landing="late")
        assert bool(done.launch.hazards) is hazards
        whole = emulated(WGMMA, variant.problem(128, 256, 640), variant=variant, races=True,
                         trace=False, schedule="random", landing="late")
        assert whole.verdict.ok and not whole.launch.hazards


def test_a_cluster_loads_each_tile_once():
    boxes = {}
    for name in ("wide", "cluster_1x1", "cluster_1x2"):
        variant = CLUSTERS.variant(name)
        done = emulated(CLUSTERS, variant.problem(256, 512, 64), variant=variant)
        assert done.verdict.ok
        counts = done.launch.trace.sites
        boxes[name] = sum(site.sectors for site in counts if site.kind == "bulk load")
    a, b = 256 * 64 * 2 // 32, 512 * 64 * 2 // 32  # sectors
    assert boxes == {
        "cluster_1x1": 2 * a + 2 * b, "wide": 2 * a + b, "cluster_1x2": a + 2 * b}


def test_fragments_and_copies_of_the_ring_meet_no_conflict():
    counters = {}
    for variant in CP_ASYNC.variants:
        done = emulated(CP_ASYNC, variant.problem(128, 256, 192), variant=variant)
        counters[variant.name] = found = done.launch.trace.matrix_counters()
        assert found["ldmatrix_wavefronts"] == found["ldmatrix_wavefronts_ideal"] > 0
    for name in ("step_64", "two_blocks"):
        assert counters[name]["copy_wavefronts"] == counters[name]["copy_wavefronts_ideal"] > 0
