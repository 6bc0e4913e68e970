"""Dealing tiles: the model's shares against what blocks of 09 do in the emulator."""

import pytest

from lib.dispatch.plan import plan
from lib.kernels.catalogue import CATALOGUE
from lib.run.runner import run
from lib.topics.time.waves.model import Deal

KERNEL = CATALOGUE["09_fp32_limit"]


@pytest.mark.parametrize("deal", [
    Deal(1, 16, 4), Deal(2, 32, 8), Deal(32, 128, 132), Deal(133, 7, 132), Deal(512, 512, 132),
    Deal(288, 192, 396), Deal(264, 3, 132), Deal(265, 3, 132), Deal(5, 1, 9),
])
def test_every_step_is_dealt_once_and_shares_differ_by_one_at_most(deal):
    steps = [step for block in range(deal.blocks) for step in deal.share(block)]
    assert steps == list(range(deal.cut_tiles * deal.steps))
    lengths = {len(deal.share(block)) for block in range(deal.blocks)}
    assert max(lengths) - min(lengths) <= 1
    assert deal.cut_tiles + deal.whole_tiles * deal.blocks == deal.tiles
    assert deal.equal <= 1 and deal.uncut <= 1


def test_waves_of_whole_tiles():
    assert (Deal(512, 512, 132).waves, Deal(528, 512, 132).waves) == (4, 4)
    assert Deal(528, 512, 132).uncut == 1
    assert Deal(529, 512, 132).uncut == 529 / (5 * 132)


def test_equal_shares_lose_nothing_but_a_remainder():
    deal = Deal(512, 512, 132)
    assert deal.uncut == pytest.approx(512 / 528)
    assert deal.longest - 512 * 512 / 132 < 1


@pytest.mark.parametrize("shape", [(128, 256, 256), (256, 256, 256), (256, 512, 200)])
def test_parts_are_those_that_the_kernel_stores(shape):
    variant = KERNEL.variant("large")
    problem = variant.problem(*shape)
    blocks = plan(KERNEL, variant, problem, exact=True).launch.grid[0]
    rows, columns = variant.tile
    deal = Deal(shape[0] // rows * (shape[1] // columns), -(-shape[2] // variant.step), blocks)
    launch = run(KERNEL, problem, variant=variant, backend="emulator", exact=True).launch
    counted = launch.trace.counters()["global_store_requests"]
    of_C = shape[0] * shape[1] // 4 // 32  # four floats a lane
    sums = rows * columns // 32  # one float a lane
    assert counted == of_C + deal.parts * sums + deal.tiles  # and a count set back to 0 a tile


def test_nothing_to_deal_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        Deal(0, 1, 1)
