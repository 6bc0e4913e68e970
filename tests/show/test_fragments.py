"""Pictures of fragments: who holds what, what a load deals, where a swizzle puts a chunk."""

from lib.ptx.core.tensormap import swizzled
from lib.show import fragments
from lib.show.fragment_maps import maps


def test_a_lane_holds_what_the_layout_says_and_a_load_meets_eight_rows():
    emulated = maps()["mma.m16n8k16, FP16 or BF16"][0]
    for half in range(2):
        assert all(fragments.holder(r, c + half) == lane
                   for rows, columns in zip(emulated.rows, emulated.columns, strict=True)
                   for lane, (r, c) in enumerate(zip(rows, columns, strict=True)))
    assert len(fragments.held(5)) == 8
    assert sorted(fragments.first_load()) == [(r, c) for r in range(8) for c in range(8)]
    assert "8 of 256" in fragments.fragment().title


def test_ldmatrix_deals_every_row_to_four_lanes_that_hold_it():
    for line in range(8):
        assert fragments.dealt(line) == [fragments.holder(line, c) for c in range(0, 8, 2)]
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
