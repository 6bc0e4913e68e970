"""What is launched for a product with an epilogue, or with scales, and that the model says why."""

from dataclasses import replace

import pytest

from lib.dispatch import cost, parts
from lib.dispatch.fit import refusal
from lib.dispatch.parts import apart_cycles, apart_launch, candidates, choose, suited
from lib.dispatch.plan import plan
from lib.kernels.fp8 import FP8
from lib.kernels.fused import EPILOGUE, apart
from lib.kernels.shapes import SCALED
from lib.problem import Epilogue, with_epilogue, with_scales
from lib.problem.scales import OUTS, SCALES

GELU = Epilogue("gelu", True)


@pytest.mark.parametrize("shape, tile", [
    ((4096, 4096, 1024), (128, 128)), ((4096, 16384, 4096), (128, 192)),
    ((512, 14336, 4096), (128, 224)), ((64, 4096, 4096), (64, 64)),
], ids=str)
def test_layers_are_fused_in_their_product_s_tiles(shape, tile):
    found = choose(with_epilogue(*shape, epilogue=GELU))
    assert found.variant is not None and found.variant.tile == tile, found.reason
    assert found.variant.epilogue == GELU


def test_where_blocks_share_k_the_epilogue_is_apart():
    problem = with_epilogue(1, 4096, 14336, epilogue=Epilogue("swiglu"))
    found = choose(problem)
    assert found.variant is None and "a launch behind it" in found.reason
    # A wider C costs more to write and read again.
    assert apart_cycles(problem) < apart_cycles(with_epilogue(64, 4096, 14336, epilogue=GELU))


@pytest.mark.parametrize("epilogue", [GELU, Epilogue("swiglu")], ids=lambda one: one.name)
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_candidates_have_names_of_their_own_and_whole_slices(epilogue, out):
    found = candidates(epilogue, "bfloat16", out, "column")
    assert len({one.name for one in found}) == len(found)
    assert all(one.epilogue == epilogue and one.out == out for one in found)
    assert not any(one.schedule.swapped for one in found) or epilogue.fold == 1
    # 96 columns of 16 bits are no whole slices.
    assert any(one.name == "ping_pong_192" for one in found) == (
        epilogue.fold == 1 or out == "float32")


@pytest.mark.parametrize("places, words", [
    ((0, 0, 0, 8), "bias must begin at a multiple of 16"),
    ((4, 0, 0, 0), "A must begin at a multiple of 16"),
])
def test_what_is_off_a_boundary_is_apart(places, words):
    found = choose(with_epilogue(64, 64, 64, epilogue=GELU), places)
    assert found.variant is None and words in found.reason


def test_what_no_index_holds_is_refused():
    with pytest.raises(ValueError, match="passes what a 32-bit index can hold"):
        choose(with_epilogue(2**31 - 8, 64, 64, epilogue=GELU))


def test_blocks_are_as_many_as_tiles_or_sms():
    problem = with_epilogue(4096, 4096, 1024, epilogue=GELU)
    variant = choose(problem).variant
    for shape, blocks in (((4096, 4096, 1024), 132), ((129, 128, 64), 4)):
        small = with_epilogue(*shape, epilogue=GELU)
        assert plan(EPILOGUE, variant, small, sms=132, exact=True).launch.grid == (blocks, 1, 1)
    behind = apart(GELU, "bfloat16", 4)
    assert apart_launch(behind, with_epilogue(3, 8, 8, epilogue=GELU), 132).grid == (1, 1, 1)
    assert apart_launch(behind, problem, 132).grid == (132 * 8, 1, 1)


@pytest.mark.parametrize("scaling", SCALES)
@pytest.mark.parametrize("shape, out", [*zip(
    [(1, 8, 16), (64, 4096, 7168), (4096, 4096, 4096), (3, 24, 0)], OUTS * 2, strict=True)])
def test_every_problem_with_scales_gets_one_that_takes_it(shape, out, scaling):
    problem = with_scales(*shape, out=out, scaling=scaling)
    assert not refusal(suited(problem), problem)


def test_unknown_scales_are_refused():
    with pytest.raises(ValueError, match="no instantiation for scales by mxfp8 and C in bfloat16"):
        suited(with_scales(64, 64, 128, scaling="mxfp8"))


@pytest.mark.parametrize("shape, scaling", [
    *((shape, "blocks") for shape in SCALED), ((4096, 4096, 4096), "blocks"),
    ((4096, 4096, 4096), "vector"), ((8192, 8192, 8192), "tensor")])
def test_tiles_are_as_tall_as_leave_no_sm_idle(shape, scaling):
    M, N, _ = shape
    problem = with_scales(*shape, scaling=scaling)
    chosen = suited(problem)
    tiles = -(-M // 256) * -(-N // 128)
    assert (chosen.tile == (256, 128)) == (tiles >= 132)
    if M <= 128:  # a tile for a block, and blocks for most of the SMs or half of them, as N allows
        assert chosen.file == "26_fp8_few"
        assert chosen.grid.blocks(problem, chosen.tile, chosen.step, 132)[0] >= 64


def test_shared_tiles_are_chosen_for_what_the_l2_gives_out():
    """With an L2 that gives out as much as is asked for, pairs are no better."""
    problem = with_scales(4096, 4096, 4096)
    pairs, alone = (FP8.variant(name) for name in ("tall_pairs", "tall"))
    costs = parts.COSTS_8
    assert cost.cycles(pairs, problem, costs) < cost.cycles(alone, problem, costs)
    endless = replace(costs, l2=1e9, l2_energy=0.0)
    assert cost.cycles(pairs, problem, endless) >= cost.cycles(alone, problem, endless)
