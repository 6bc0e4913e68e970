"""Fragments, ldmatrix, TMA's swizzle and the ring, against the documents' formulas by hand."""

import numpy as np
import pytest

from lib.ptx.count import banks as counted
from lib.show import ring
from lib.show.banks import describe
from lib.show.fragment_maps import maps
from lib.show.ldmatrix import HalfTile, received


@pytest.mark.parametrize("tile, each", [
    (HalfTile(64), 8), (HalfTile(32), 4), (HalfTile(64, 8), 1), (HalfTile(32, 8), 1),
    (HalfTile(64, 0, True), 1), (HalfTile(32, 0, True), 1), (HalfTile(128, 0, True), 1),
])
def test_wavefronts_of_ldmatrix(tile, each):
    for kind in ("ldmatrix", "stmatrix"):
        found = describe(tile.access, kind)
        assert (found.wavefronts, found.ideal) == (4 * each, 4)
    emulated, ideal = counted.matrix_wavefronts(tile.access.addresses[None],
                                                tile.access.active[None])
    assert (emulated[0], ideal[0]) == (4 * each, 4)


def test_a_swizzled_tile_is_a_permutation():
    for columns in (16, 32, 64, 128):
        rows_, columns_ = np.indices((32, columns))
        places = HalfTile(columns, 0, True).address(rows_, columns_)
        assert sorted(places.ravel()) == list(range(0, 2 * 32 * columns, 2))


def test_ldmatrix_deals_each_element_once_and_as_mma_wants_it():
    a = maps()["mma.m16n8k16, FP16 or BF16"][0]
    dealt = [place[1:] for lane in range(32) for place in received(lane)]
    assert sorted(dealt) == [(r, c) for r in range(32) for c in range(8)]
    for lane in range(32):  # its first two registers are those of the fragment of A
        assert received(lane)[:4:2] == [
            (r, a.rows[r, lane], a.columns[r, lane]) for r in range(2)]


def test_tiles_and_rows_that_can_not_be():
    with pytest.raises(ValueError, match="multiples of 8"):
        HalfTile(64, 3)
    with pytest.raises(ValueError, match="power of two"):
        HalfTile(48, 0, True)
    with pytest.raises(ValueError, match="16 bytes"):
        describe(HalfAccess, "ldmatrix")


class HalfAccess:
    addresses, active, bytes_per_lane = np.zeros(32, np.int64), np.ones(32, bool), 4


def test_a_ring_read_out_of_marks():
    events = ["load", "wait", "compute", "barrier", "store", "end"]
    producer = [(1, 0), (0, 5), (1, 6), (0, 10), (1, 12), (0, 90), (5, 95)]
    consumers = [
        [(1, 0), (2, 50), (1, 80), (2, 85), (4, 120), (5, 130)],
        [(1, 2), (2, 52), (1, 84), (2, 86), (4, 118), (5, 131)],
    ]
    made = ring.tiles(events, producer, consumers)
    assert made == [(5, 50), (10, 85)]
    assert ring.in_flight(made, 20) == 2 and ring.in_flight(made, 50) == 1
    # The producer's first wait was not noted: its first tile is still the first.
    assert ring.tiles(events, producer[1:], consumers) == made
    for nothing in ([[(1, 0), (5, 9)]], []):
        with pytest.raises(ValueError, match="noted no tile"):
            ring.tiles(events, producer, nothing)
