"""27: accumulators in tensor memory: right, silent, and what it asks of GPU and compiler."""

from dataclasses import replace
from functools import partial

import pytest

from lib import ptx
from lib.compiler import arch as architectures
from lib.kernels import blackwell, hopper
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.source import edited
from lib.ptx.mutants import SETTINGS
from lib.run.runner import run
from tests.kernels.conftest import clean, found_out, pairwise
from tests.kernels.test_cta_pairs import small as pair

TENSOR, PERSISTENT = CATALOGUE["27_tcgen05"], CATALOGUE["20_persistent"]
emulated = partial(run, TENSOR, backend="emulator", exact=True, trace=False, races=True)
# A small tile and ring, so that six tiles in one block go round both.
SMALL = replace(blackwell.WIDE, tile=(128, 64), stages=2, group=2)


def small(**changes):
    types = changes.pop("types", {})
    return blackwell.tensor_tiles("small", "", replace(SMALL, **changes), **types)


@pytest.mark.parametrize("accumulators", [1, 2])
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_a_block_walks_through_ragged_tiles(options, accumulators):
    """Each accumulator is used three times, the ring comes round, no tile is whole."""
    variant = small(own={"ACCUMULATORS": accumulators})
    done = emulated(variant.problem(250, 184, 136, 0.75, -0.5), variant=variant, sms=1, **options)
    assert done.plan.launch.grid == (1, 1, 1)
    assert done.verdict.ok and not done.launch.hazards


# With 0, C holds NaN. What reads C or not is the same code for every shape.
BETAS = {(1, 8, 8): (0.0,), (130, 72, 200): (0.0, -2.0), (256, 128, 0): (-2.0,)}
WAYS = pairwise(list(BETAS), [0, 1, 2], [{}, hopper.BF16_COLUMN, hopper.HALF])


@pytest.mark.parametrize("kernel, shape, staged, types", [
    (kernel, *way) for kernel in (TENSOR, CATALOGUE["28_cta_pairs"]) for way in WAYS])
def test_every_way_out_of_tensor_memory_is_right(kernel, shape, staged, types):
    variant = (small(tile=(128, 128), staged=staged, types=types) if kernel is TENSOR
               else pair(staged=staged, types=types))
    for beta in BETAS[shape]:
        clean(kernel, variant, *shape, 0.5, beta, sms=2, landing="late")


def test_two_accumulators_fill_tensor_memory_and_a_third_does_not_fit():
    variant = TENSOR.variants[0]
    rows, columns = variant.tile
    assert variant.constants["ACCUMULATORS"] * columns == 512 and rows == 128
    too_many = small(tile=(128, 256), own={"ACCUMULATORS": 4})
    with pytest.raises(ptx.Error, match="alloc"):
        emulated(too_many.problem(128, 256, 64), variant=too_many)


def test_nothing_of_c_is_held_in_registers_while_it_is_added_up():
    """20's consumers hold 64 sums of a 128×256 tile each in 128 threads' registers."""
    ours, before = (compile_kernel(kernel, kernel.variant("wide")).resources
                    for kernel in (TENSOR, PERSISTENT))
    assert ours.spill_store_bytes == before.spill_store_bytes == 0
    # 20's launch bound lets a thread have 168; setmaxnreg then gives a consumer 232.
    assert ours.registers < 128 <= before.registers


def test_one_thread_issues_what_eight_warps_did():
    """Warp instructions that multiply, and multiply-adds of each, of one tile and 256 of K."""
    found = {}
    for kernel, opcode in ((TENSOR, "tcgen05.mma"), (PERSISTENT, "wgmma.mma_async")):
        variant = kernel.variant("wide")
        done = run(kernel, variant.problem(128, 256, 256), variant=variant, backend="emulator",
                   exact=True, sms=1)
        assert done.verdict.ok
        (count, lanes), = (given for name, given in done.trace.instructions.items()
                           if name.startswith(opcode))
        found[opcode] = count, lanes
    steps = 256 // 16
    assert found == {"tcgen05.mma": (steps, steps), "wgmma.mma_async": (8 * steps, 256 * steps)}


def test_the_epilogue_meets_no_conflict_and_leaves_in_whole_sectors():
    variant = TENSOR.variants[0]
    done = run(TENSOR, variant.problem(128, 256, 64), variant=variant, backend="emulator",
               exact=True)
    counters = done.trace.counters()
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"] > 0
    stored = sum(site.sectors for site in done.trace.sites if site.kind == "bulk store")
    assert stored == 128 * 256 * 4 // 32


@pytest.mark.parametrize("old, new", [
    ("if (warp == STORERS) tensor_free<ACCUMULATORS * BN>(sums);", ""),
    ("            fence_before_sync();\n", ""),
    ("            tensor_commit(ready", "            if (t != first) tensor_commit(ready"),
    ("step > 0 || k > 0", "true"),
    ("(warp * 32 << 16)", "0"),
])
def test_a_planted_mistake_is_found(old, new):
    """Never freed, handed on unfenced, not committed, added to garbage, another warp's lanes."""
    variant = small()
    source = edited(TENSOR.source.read_text(), old, new)
    problem = variant.problem(250, 184, 136)
    assert found_out(partial(emulated, problem, variant=variant, sms=1, source=source), {})


def test_a_compiler_that_is_too_old_is_named(monkeypatch):
    monkeypatch.setattr(architectures, "nvrtc_architectures", lambda: (75, 80, 90))
    monkeypatch.setattr(architectures, "nvrtc_version", lambda: (12, 6))
    with pytest.raises(ValueError, match=r"NVRTC 12\.6 doesn't know sm_100a; 12\.8 and later do"):
        compile_kernel(TENSOR)
