"""Fragments, ldmatrix, TMA's swizzle and the ring, against the documents' formulas by hand."""

from dataclasses import replace

import numpy as np
import pytest

from lib.ptx.count import banks as counted
from lib.show import ring
from lib.show.banks import describe
from lib.show.fragment_maps import formulae, held
from lib.show.ldmatrix import HalfTile, MatrixLoad
from tests.tables import cases

LANES = range(32)


def test_a_fragment_of_wmma_is_that_of_two_products():
    a, b, c = (held("wmma 16×16×16", operand) for operand in "ABC")
    np.testing.assert_array_equal(a.lane, held("mma.m16n8k16", "A").lane)
    for half in range(2):
        part = slice(8 * half, 8 * half + 8)
        np.testing.assert_array_equal(b.lane[:, part], held("mma.m16n8k16", "B").lane)
        np.testing.assert_array_equal(c.lane[:, part], held("mma.m16n8k16", "C").lane)
    assert (a.registers, b.registers, c.registers) == (4, 4, 8)


@cases("""
instruction      | operand | row                        | column
mma.m16n8k8      | A       | g + 8·m                    | 2·t + h
mma.m16n8k8      | B       | 2·t + h                    | g
mma.m16n8k16     | A       | g + 8·(m mod 2)            | 2·t + 8·(m / 2) + h
mma.m16n8k16     | C       | g + 8·(m / 2)              | 2·t + (m mod 2)
wgmma.m64n256k16 | A       | g + 8·(m mod 2) + 16·w     | 2·t + 8·(m / 2) + h
wgmma.m64n192k16 | C       | g + 8·(m / 2 mod 2) + 16·w | 2·t + (m mod 2) + 8·(m / 4)
""")
def test_formulae_say_what_the_emulator_does(instruction, operand, row, column):
    found = held(instruction, operand)
    assert formulae(found) == (row, column)
    for text, axis in ((row, 0), (column, 1)):  # read as Python: they give the whole table
        code = text.replace("·", "*").replace("/", "//").replace("mod", "%")
        says = eval(code, {}, {"g": found.lane // 4, "t": found.lane % 4, "m": found.register,
                               "h": found.half, "w": found.warp})
        np.testing.assert_array_equal(says, np.indices(found.shape)[axis])


def test_a_layout_without_a_formula_is_refused():
    found = held("mma.m16n8k8", "A")
    with pytest.raises(ValueError, match="no sum of bits"):
        formulae(replace(found, lane=found.lane ^ (found.half << 4)))
    with pytest.raises(ValueError, match="leaves the layout"):
        formulae(held("wmma 16×16×16", "A"))


def test_operands_that_no_lane_holds():
    with pytest.raises(ValueError, match="shared memory"):
        held("wgmma.m64n64k16", "B")
    with pytest.raises(ValueError, match="no fragments of 'wgmma.m64n12k16'"):
        held("wgmma.m64n12k16", "C")
    with pytest.raises(ValueError, match="no fragment 'D'"):
        held("mma.m16n8k8", "D")


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("tile, each", [
    (HalfTile(64), 8), (HalfTile(32), 4), (HalfTile(64, 8), 1), (HalfTile(32, 8), 1),
    (HalfTile(64, 0, True), 1), (HalfTile(32, 0, True), 1), (HalfTile(128, 0, True), 1),
])
def test_wavefronts_of_ldmatrix(tile, each, number):
    access = MatrixLoad(tile, number).access
    for kind in ("ldmatrix", "stmatrix"):
        found = describe(access, kind)
        assert (found.wavefronts, found.ideal) == (each * number, number)
    emulated, ideal = counted.matrix_wavefronts(access.addresses[None], access.active[None])
    assert (emulated[0], ideal[0]) == (each * number, number)


def test_a_swizzled_tile_is_a_permutation():
    for columns in (16, 32, 64, 128):
        rows_, columns_ = np.indices((32, columns))
        places = HalfTile(columns, 0, True).address(rows_, columns_)
        assert sorted(places.ravel()) == list(range(0, 2 * 32 * columns, 2))


@pytest.mark.parametrize("arrangement, places, expected", [
    ("stacked", lambda lane: (lane, 0), 4), ("abreast", lambda lane: (lane % 8, lane // 8 * 8), 4),
    ("square", lambda lane: (lane % 16, lane // 16 * 8), 4),
])
def test_arrangements_of_four_matrices(arrangement, places, expected):
    tile = HalfTile(64, 0, True)
    load = MatrixLoad(tile, 4, False, arrangement)
    assert list(load.access.addresses) == [int(tile.address(*places(lane))) for lane in LANES]
    assert describe(load.access, "ldmatrix").wavefronts == expected
    got = {(row, column) for lane in LANES for _, row, column in load.received(lane)}
    assert len(got) == 256 and max(row for row, _ in got) == load.rows - 1


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_deals_each_element_once_and_as_mma_wants_it(transposed):
    load = MatrixLoad(HalfTile(64), 4, transposed)
    dealt = [place[1:] for lane in LANES for place in load.received(lane)]
    assert sorted(dealt) == [(r, c) for r in range(16) for c in range(16)]
    for lane in LANES:
        for _, row, column in load.received(lane)[:2]:
            assert load.receiver(row, column) == lane
    if not transposed:  # what x4 leaves in registers is the fragment of A
        for lane in LANES:
            own = [(r, row, column) for r, _, row, column in held("mma.m16n8k16", "A").of(lane)]
            assert own == load.received(lane)


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
    producer = [[1, 0], [0, 5], [1, 6], [0, 10], [1, 12], [0, 90], ["end", 95]]
    consumers = [
        [[1, 0], [2, 50], [1, 80], [2, 85], [4, 120], [5, 130]],
        [[1, 2], [2, 52], [1, 84], [2, 86], [4, 118], [5, 131]],
    ]
    made = ring.from_marks(events, producer, consumers, 2)
    assert [(t.asked, t.start, t.end) for t in made.tiles] == [(5, 50, 84), (10, 85, 120)]
    assert made.in_flight(20) == 2
    # The producer's first wait was not noted: its first tile is still the first.
    late = ring.from_marks(events, producer[1:], consumers, 2)
    assert [(t.waited, t.asked) for t in late.tiles] == [(5, 5), (6, 10)]
    for nothing in ([[[1, 0], [5, 9]]], []):
        with pytest.raises(ValueError, match="noted no tile"):
            ring.from_marks(events, producer, nothing, 2)
