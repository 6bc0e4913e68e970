"""The cards' pictures from 10 on: what they count, and what they say of it."""

import re

import pytest

from lib.ptx.core.tensormap import swizzled
from lib.show import fragment_maps as model
from lib.show import fragments, pipelines, signals, tiles

WIDTH = 349  # px of a phone's column


def test_a_lane_holds_what_the_layout_says_and_a_load_meets_eight_rows():
    emulated = model.held("mma.m16n8k16", "A").lane
    assert [[fragments.holder(r, c) for c in range(16)] for r in range(16)] == emulated.tolist()
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


def test_warps_of_a_block_share_rows_and_columns():
    assert tiles.sharers((128, 128), (32, 64)) == (2, 4)
    assert tiles.fragments_read((32, 64)) == (6, 8)
    assert tiles.fragments_read((64, 64)) == (8, 16)
    assert "0.5 fragment loads" in tiles.vectors().title
    assert tiles.loaded((128, 256, 64), 2) == (384 * 64, 256 * 64)
    assert tiles.multicast().title.endswith("67% of the bytes")


def test_shifted_blocks_do_the_same_a_part_of_a_round_later():
    rows = pipelines.shifted(4, [("load", 6.0), ("compute", 2.0)])
    assert [name for name, _ in rows] == ["block 0", "block 1", "block 2", "block 3"]
    for _, spans in rows:
        assert sum(s.end - s.start for s in spans) == 16
        assert sum(s.end - s.start for s in spans if s.kind == "compute") == 4
    assert all(sum(s.start <= t < s.end for _, row in rows for s in row if s.kind == "compute") == 1
               for t in (1.5, 3.5, 9.5))


def test_registers_that_move_stay_within_what_was_launched():
    assert signals.registers(168, 40, 232)["after setmaxnreg"] == (40, 232, 232)
    with pytest.raises(ValueError, match="more than"):
        signals.registers(168, 40, 240)


@pytest.mark.parametrize("scene", [
    fragments.fragment(), tiles.shared(), pipelines.blocks_overlap(687, 427, 132, 8),
    tiles.vectors(), fragments.ldmatrix(), pipelines.through_registers(), pipelines.ring(),
    fragments.wgmma(), signals.ring(49152, 4), signals.roles(), pipelines.tiles_in_turn(),
    tiles.multicast()], ids=range(10, 22))
def test_a_picture_fits_a_phone(scene):
    widths = re.findall(r'<svg[^>]* width="([\d.]+)"', scene.html())
    assert widths and all(float(wide) <= WIDTH for wide in widths)
