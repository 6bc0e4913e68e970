"""Pictures of fragments: who holds what, what a load deals, where a swizzle puts a chunk."""

from lib.ptx.core.tensormap import swizzled
from lib.show import fragments


def test_a_lane_holds_what_the_layout_says_and_a_load_meets_eight_rows():
    assert fragments.held(5) == [(r, c) for r in (1, 9) for c in (2, 3, 10, 11)]
    assert "8 of 256 elements; each load of the warp touches 8" in fragments.fragment().title


def test_ldmatrix_deals_every_row_to_four_lanes_that_hold_it():
    assert [fragments.dealt(line) for line in range(8)] == [
        [4 * line, 4 * line + 1, 4 * line + 2, 4 * line + 3] for line in range(8)]
    assert fragments.ldmatrix(3).title == "Lane 3 names row 3; lanes 12 to 15 get it"


def test_the_xor_is_the_emulator_s_swizzle_and_spreads_a_chunk_of_eight_rows():
    for line in range(8):
        there = swizzled(128 * line, 8, 128) - 8 * line
        assert [fragments.place(line, chunk) for chunk in range(8)] == there.tolist()
    assert "chunk 2 of eight rows: 8 wavefronts" in fragments.xored()
    assert "chunk 2 of eight rows: 1 wavefront<" in fragments.xored()


def test_a_wgmma_is_as_many_mma_as_fit_its_shape():
    assert fragments.instructions_for((64, 256, 16), (16, 8, 16)) == 128
    assert "128 mma.sync" in fragments.wgmma().title
