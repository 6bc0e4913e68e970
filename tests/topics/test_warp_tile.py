"""The model of a warp's tile against the emulator's counters of 08_warp_tile."""

import pytest

from lib.gpus import GPUS
from lib.kernels.catalogue import CATALOGUE
from lib.problem import Problem
from lib.run.runner import run
from lib.topics.code.warp_tile.model import WarpTile

KERNEL = CATALOGUE["08_warp_tile"]


def tile_of(variant):
    c = variant.constants
    return WarpTile(c["WM"], c["WN"], c["LANES"], c["PAIRED"])


@pytest.mark.parametrize("variant", KERNEL.variants, ids=lambda v: v.name)
def test_wavefronts_are_those_of_the_emulator(variant):
    done = run(KERNEL, Problem(128, 256, 32), variant=variant, backend="emulator")
    loads = [s for s in done.launch.trace.sites if s.space == "shared" and s.kind == "load"]
    steps = 128 * 256 * 32 // 32  # multiply-adds of warps
    assert sum(s.wavefronts for s in loads) == tile_of(variant).wavefronts_per_fma * steps


def test_pairs_halve_the_wavefronts_of_the_operand_that_lies_across():
    assert WarpTile(64, 32, 8, True).wavefronts_a_load == (2, 2)
    assert WarpTile(64, 32, 8, False).wavefronts_a_load == (2, 4)
    assert WarpTile(64, 32, 8, True).wavefronts == 8
    assert WarpTile(64, 32, 8, False).wavefronts == 12


def test_every_lane_has_a_place_of_its_own():
    for lanes in (4, 8):
        for paired in (True, False):
            places = WarpTile(64, 64, lanes, paired).places
            assert sorted(places) == [(y, x) for y in range(lanes) for x in range(32 // lanes)]


def test_the_worklog_s_tile_asks_more_of_shared_memory_than_there_is():
    assert WarpTile(32, 16, 8, False).load(GPUS["H100"]) == 1.5
    assert WarpTile(64, 32, 8, True).load(GPUS["H100"]) == 0.5


def test_a_tile_that_groups_do_not_fit_is_refused():
    with pytest.raises(ValueError, match="groups of 4"):
        WarpTile(16, 32, 8)
