"""28: a pair of blocks multiplies together: right, silent, and what it saves."""

from dataclasses import replace
from functools import partial

import pytest

from lib.dispatch.plan import plan
from lib.kernels import blackwell
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.source import edited
from lib.ptx.mutants import SETTINGS
from lib.run.runner import run
from tests.kernels.conftest import clean, found_out

PAIRS, ALONE = CATALOGUE["28_cta_pairs"], CATALOGUE["27_tcgen05"]
emulated = partial(run, PAIRS, backend="emulator", exact=True, trace=False, races=True)
# A small tile and ring. Ten tiles come round both, and round the answers of launch control, of
# which each of two pairs that run at once asks for four or more.
SMALL = replace(blackwell.PAIR, tile=(128, 128), stages=2, group=2)


def small(control=True, accumulators=2, staged=0, types=()):
    own = {"ACCUMULATORS": accumulators, "CONTROL": control}
    return blackwell.cta_pair("small", "", replace(SMALL, own=own, staged=staged), **dict(types))


# With launch control and two accumulators in two orders; the others in one each, the rest slow.
WALKS = [
    pytest.param(options, control, accumulators, id=f"{options}-{control}-{accumulators}",
                 marks=() if number == place or (number, place) == (3, 0) else pytest.mark.slow)
    for number, (control, accumulators) in enumerate(
        ((False, 1), (False, 2), (True, 1), (True, 2)))
    for place, options in enumerate(SETTINGS)
]


@pytest.mark.parametrize("options, control, accumulators", WALKS)
def test_pairs_walk_through_ragged_tiles(options, control, accumulators):
    """No tile is whole, and of the last ones the second block has no rows."""
    variant = small(control, accumulators)
    done = emulated(variant.problem(330, 568, 72, 0.75, -0.5), variant=variant, sms=3, **options)
    assert done.plan.launch.grid == ((20, 1, 1) if control else (2, 1, 1))
    assert done.verdict.ok and not done.launch.hazards


@pytest.mark.parametrize("variant", PAIRS.variants, ids=lambda variant: variant.name)
def test_each_variant_at_its_own_size(variant):
    clean(PAIRS, variant, 264, 264, 136, -1.5, 2.0, landing="late")


def test_a_pair_loads_and_reads_two_thirds_of_what_two_blocks_do():
    """Of B each block has half; one instruction does what two did."""
    found = {}
    for kernel, name, sms in ((ALONE, "wide", 1), (PAIRS, "in_turns", 2)):
        variant = kernel.variant(name)
        done = run(kernel, variant.problem(256, 256, 256), variant=variant, backend="emulator",
                   exact=True, sms=sms)
        assert done.verdict.ok
        sites = done.trace.sites
        found[kernel.stem] = (
            sum(site.sectors for site in sites if site.kind == "bulk load"),
            sum(site.wavefronts for site in sites if site.kind == "tcgen05"),
            sum(count for opcode, (count, _) in done.trace.instructions.items()
                if opcode.startswith("tcgen05.mma")))
    steps, row = 256 // 64, 128  # bytes of a row, in sectors of 32 and wavefronts of 128
    assert found["27_tcgen05"] == (2 * steps * 384 * row // 32, 2 * steps * 384, 2 * steps * 4)
    assert found["28_cta_pairs"] == (steps * 512 * row // 32, steps * 512, steps * 4)


def test_with_launch_control_there_is_a_pair_for_each_tile_and_otherwise_one_for_two_sms():
    shape = PAIRS.variants[0].problem(4096, 4096, 64)
    grids = {name: plan(PAIRS, PAIRS.variant(name), shape, sms=148, exact=True).launch.grid
             for name in ("pair", "in_turns")}
    assert grids == {"pair": (2 * 16 * 16, 1, 1), "in_turns": (148, 1, 1)}


MISTAKES = [
    ("cluster_barrier();  // the other block runs, and has its barriers", ""),
    ("if (warp == STORERS) pair_free<ACCUMULATORS * BN>(sums);", ""),
    ("            fence_before_sync();\n", ""),
    ("            pair_commit(ready", "            if (t != first) pair_commit(ready"),
    ("                pair_commit(freed", "                tensor_commit(freed"),
    ("cluster_address(filled + 8 * ring.stage, LEADER)", "filled + 8 * ring.stage"),
    ("mbarrier_arrive_at(drained + 8 * turn.stage, LEADER)",
     "mbarrier_arrive(drained + 8 * turn.stage)"),
    ("2 * (A_BYTES + B_BYTES)", "A_BYTES + B_BYTES"),
    ("tile.y * BN + rank * BN / 2", "tile.y * BN"),
    ("        for (int s = 0; s < STAGES; ++s, ring.next())\n"
     "            mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);\n", ""),
]


# With launch control and without it in turn; the other of both is slow.
@pytest.mark.parametrize("old, new, control", [
    pytest.param(old, new, control, id=f"{place}-{control}",
                 marks=() if control == (place % 2 == 0) else pytest.mark.slow)
    for place, (old, new) in enumerate(MISTAKES) for control in (False, True)
])
def test_a_planted_mistake_is_found(old, new, control):
    """Allocated before the other block runs; never freed; handed on unfenced; not committed;
    committed to one block; bytes counted at home; told at home; half of the bytes expected; the
    same half of B twice; a block that ends before the last commits have come."""
    variant = small(control)
    source = edited(PAIRS.source.read_text(), old, new)
    problem = variant.problem(250, 1144, 72)
    assert found_out(partial(emulated, problem, variant=variant, sms=2, source=source), {})
