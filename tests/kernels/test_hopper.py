"""16 to 18: rings, tensor maps, clusters and persistent blocks, and the shapes that they refuse."""

from functools import partial

import pytest

from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.problem import ITEM_BYTES
from lib.run.runner import run

CP_ASYNC, TMA, LIMIT = (
    CATALOGUE[stem] for stem in ("16_cp_async", "17_tma_wgmma", "18_hopper_limit")
)
emulated = partial(run, backend="emulator", exact=True)
BY_TMA = [
    pytest.param(kernel, variant, id=f"{kernel.stem}-{variant.name}")
    for kernel in (TMA, LIMIT) for variant in kernel.variants
]


@pytest.mark.parametrize("kernel, variant", BY_TMA)
def test_strides_that_tensor_maps_can_not_step_over_are_refused(kernel, variant):
    with pytest.raises(ValueError, match="K = 60 must be a multiple of 8"):
        emulated(kernel, variant.problem(64, 64, 60), variant=variant)
    odd = variant.problem(64, 60, 64)
    if variant.b_layout == "row":
        with pytest.raises(ValueError, match="N = 60 must be a multiple of 8"):
            emulated(kernel, odd, variant=variant)
    else:
        assert emulated(kernel, odd, variant=variant).verdict.ok


def test_rows_of_c_that_the_copy_engine_can_not_store_come_from_registers():
    variant = LIMIT.variant("bf16_column")
    done = emulated(LIMIT, variant.problem(40, 61, 64, 0.5, -2.0), variant=variant,
                    races=True)
    assert done.verdict.ok and not done.launch.hazards
    assert done.selection.reason == "rows of C, 61 elements, are no multiple of 16 bytes"
    assert done.selection.variant.constants["STAGED"] == 0


@pytest.mark.parametrize("N, K, vec", [(104, 72, 8), (100, 68, 4), (102, 70, 2), (101, 73, 1)])
def test_copies_are_as_wide_as_rows_allow(N, K, vec):
    variant = CP_ASYNC.variants[0]
    done = emulated(CP_ASYNC, variant.problem(33, N, K, 0.5, -2.0), variant=variant, races=True)
    assert done.verdict.ok and not done.launch.hazards
    assert done.selection.variant.constants["VEC"] == vec
    copies = done.launch.trace.matrix_counters()["copy_instructions"]
    tile = sum(variant.tile) * variant.step
    # Tiles that are all outside are asked for as well: the ring is filled before the first step.
    steps = -(-K // variant.step) + variant.constants["STAGES"] - 1
    assert copies == (0 if vec == 1 else steps * tile // vec // 32)


@pytest.mark.parametrize("schedule, landing", [
    ("lowest", "early"), ("random", "late"), ("highest", "early"),
])
@pytest.mark.parametrize("kernel, variant", [
    param for param in BY_TMA if param.values[1].constants.get("CLUSTER", 1) == 2
])
def test_few_blocks_walk_through_many_tiles(kernel, variant, schedule, landing):
    """Four ragged tiles for a cluster of two blocks, the last of them partly outside of C."""
    rows, columns = variant.tile
    problem = variant.problem(2 * rows + rows // 2, columns + columns // 2, 136, 0.5, -2.0)
    assert kernel.launch(problem, variant, variant.grid.cluster).grid == (2, 1, 1)
    done = emulated(kernel, problem, variant=variant, races=True,
               schedule=schedule, landing=landing, seed=5, sms=variant.grid.cluster)
    assert done.verdict.ok and not done.launch.hazards


def test_the_grid_is_whole_clusters_and_no_more_than_the_gpu_holds():
    variant = LIMIT.variants[0]
    assert LIMIT.launch(variant.problem(1, 8, 8), variant).grid == (2, 1, 1)
    assert LIMIT.launch(variant.problem(257, 264, 8), variant).grid == (12, 1, 1)
    assert LIMIT.launch(variant.problem(8192, 8192, 8), variant).grid == (132, 1, 1)
    for kernel in (CP_ASYNC, TMA, LIMIT):
        with pytest.raises(ValueError, match=r"^M = \d+ and N = \d+ make \d+ tiles"):
            kernel.launch(kernel.variants[0].problem(2**30, 2**30, 8), kernel.variants[0])
        with pytest.raises(ValueError, match="^M = "):
            kernel.launch(kernel.variants[0].problem(2**31 - 1, 8, 8), kernel.variants[0])


@pytest.mark.parametrize("kernel, variant", BY_TMA)
def test_tensor_cores_are_fed_by_wgmma_and_nothing_spills(kernel, variant):
    code = compile_kernel(kernel, variant, "sm_90a")
    assert code.resources.spill_store_bytes == code.resources.stack_bytes == 0
    opcodes = {i.base for i in code.sass}
    assert "HGMMA" in opcodes and "HMMA" not in opcodes
    assert code.resources.shared_bytes <= 227 * 1024


def test_products_and_copies_are_as_many_as_the_tiles_ask_for():
    variant = TMA.variants[0]
    done = emulated(TMA, variant.problem(128, 256, 256), variant=variant)
    counts = done.launch.trace.instructions
    wgmma = next(n for name, (n, _) in counts.items() if name.startswith("wgmma.mma_async"))
    copies = sum(n for name, (n, _) in counts.items() if name.startswith("cp.async.bulk.tensor"))
    steps = 256 // 64
    assert wgmma == 8 * steps * 4  # warps, steps, 16 of K in each
    assert copies == steps * (1 + 256 // 64)  # A in one box, B in slabs of 64 columns


def test_a_cluster_loads_each_tile_of_b_once():
    together, alone = (LIMIT.variant(name) for name in ("cluster", "in_flight"))
    boxes = []
    for variant in (together, alone):
        done = emulated(LIMIT, variant.problem(256, 256, 64), variant=variant)
        assert done.verdict.ok
        counts = done.launch.trace.instructions
        boxes.append(sum(n for name, (n, _) in counts.items()
                         if name.startswith("cp.async.bulk.tensor.2d.shared")))
    assert boxes == [2 * (1 + 2), 2 * (1 + 4)]


def test_fragments_and_copies_of_the_ring_meet_no_conflict():
    counters = {}
    for variant in CP_ASYNC.variants:
        done = emulated(CP_ASYNC, variant.problem(128, 256, 192), variant=variant)
        counters[variant.name] = found = done.launch.trace.matrix_counters()
        assert found["ldmatrix_wavefronts"] == found["ldmatrix_wavefronts_ideal"] > 0
    for name in ("wide", "stages2", "stages4", "square"):
        assert counters[name]["copy_wavefronts"] == counters[name]["copy_wavefronts_ideal"] > 0


def test_a_swizzle_costs_copies_nothing_through_the_l1_or_past_it():
    """Row r's chunks change places by XOR with r % 8, within one line of 128 bytes."""
    for name in ("wide", "past_l1"):
        variant = CP_ASYNC.variant(name)
        done = emulated(CP_ASYNC, variant.problem(128, 256, 192), variant=variant)
        counters = done.launch.trace.matrix_counters()
        assert counters["copy_wavefronts"] == counters["copy_wavefronts_ideal"] > 0


def test_shared_memory_holds_the_ring():
    variant = CP_ASYNC.variant("wide")
    assert variant.shared_bytes == 3 * (128 + 256) * 64 * ITEM_BYTES["float16"]
    two = CP_ASYNC.variant("square")
    assert 2 * (two.shared_bytes + 1024) <= 228 * 1024
