"""What is launched for a product with an epilogue: fused where that is predicted to be faster."""

import pytest

from lib.dispatch.fused import apart_cycles, apart_launch, candidates, choose, launch_of
from lib.kernels.epilogues import Epilogue, FusedProblem
from lib.kernels.fused import apart, epilogue_of

GELU = Epilogue("gelu", True)


@pytest.mark.parametrize("shape, tile", [
    ((4096, 4096, 1024), (128, 128)), ((4096, 16384, 4096), (128, 192)),
    ((512, 14336, 4096), (128, 224)), ((64, 4096, 4096), (64, 64)),
], ids=str)
def test_layers_are_fused_in_their_product_s_tiles(shape, tile):
    found = choose(FusedProblem(*shape, epilogue=GELU))
    assert found.variant is not None and found.variant.tile == tile, found.reason
    assert epilogue_of(found.variant) == GELU


def test_where_blocks_share_k_the_epilogue_is_apart():
    problem = FusedProblem(1, 4096, 14336, epilogue=Epilogue("swiglu"))
    found = choose(problem)
    assert found.variant is None and "a launch behind it" in found.reason
    # A wider C costs more to write and read again.
    assert apart_cycles(problem) < apart_cycles(FusedProblem(64, 4096, 14336, epilogue=GELU))


@pytest.mark.parametrize("epilogue", [GELU, Epilogue("swiglu")], ids=lambda one: one.name)
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_candidates_have_names_of_their_own_and_whole_slices(epilogue, out):
    found = candidates(epilogue, "bfloat16", out, "column")
    assert len({one.name for one in found}) == len(found)
    assert all(epilogue_of(one) == epilogue and one.out == out for one in found)
    assert not any(one.schedule.swapped for one in found) or epilogue.fold == 1
    # 96 columns of 16 bits are no whole slices.
    assert any(one.name == "ping_pong_192" for one in found) == (
        epilogue.fold == 1 or out == "float32")


@pytest.mark.parametrize("places, words", [
    ((0, 0, 0, 8), "bias must begin at a multiple of 16"),
    ((4, 0, 0, 0), "A must begin at a multiple of 16"),
])
def test_what_is_off_a_boundary_is_apart(places, words):
    found = choose(FusedProblem(64, 64, 64, epilogue=GELU), places)
    assert found.variant is None and words in found.reason


def test_what_no_index_holds_is_refused():
    with pytest.raises(ValueError, match="passes what a 32-bit index can hold"):
        choose(FusedProblem(2**31 - 8, 64, 64, epilogue=GELU))


def test_blocks_are_as_many_as_tiles_or_sms():
    problem = FusedProblem(4096, 4096, 1024, epilogue=GELU)
    variant = choose(problem).variant
    assert launch_of(variant, problem, 132).grid == (132, 1, 1)
    assert launch_of(variant, FusedProblem(129, 128, 64, epilogue=GELU), 132).grid[0] == 4
    behind = apart(GELU, "bfloat16", 4)
    assert apart_launch(behind, FusedProblem(3, 8, 8, epilogue=GELU), 132).grid == (1, 1, 1)
    assert apart_launch(behind, problem, 132).grid == (132 * 8, 1, 1)
