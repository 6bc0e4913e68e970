"""Pictures of tiles: who shares rows and columns, what is loaded."""

from lib.show import tiles


def test_warps_of_a_block_share_rows_and_columns():
    assert tiles.sharers((128, 128), (32, 64)) == (2, 4)
    assert tiles.fragments_read((32, 64)) == (6, 8)
    assert tiles.fragments_read((64, 64)) == (8, 16)
    assert "0.5 fragment loads" in tiles.vectors((32, 64), (64, 64)).title
    assert tiles.loaded((128, 256, 64), 2) == (384 * 64, 256 * 64)
    assert tiles.multicast().title.endswith("67% of the bytes")
