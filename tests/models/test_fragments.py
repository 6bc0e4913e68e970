"""Who holds what of an mma, and what ldmatrix reads: against the emulator, which computes so."""

import numpy as np
import pytest

from lib.compiler import compile_source
from lib.kernels import Launch
from lib.models import banks, fragments
from lib.models.coalescing import Access
from lib.models.fragments import HalfTile
from lib.ptx import fragments as emulated
from lib.runner import emulate


@pytest.mark.parametrize("k", [8, 16])
def test_holders_are_the_emulator_s(k):
    held = fragments.mma(k)
    for name, fragment in (
        ("A", emulated.left(16, k, 2)), ("B", emulated.right(8, k, 2)),
        ("C", emulated.accumulator(16, 8, 1)),
    ):
        rows, columns = fragment.positions
        if name == "B":  # the emulator keeps B as its transpose
            rows, columns = columns, rows
        registers, lanes, places = np.indices(rows.shape)
        assert (held[name].lane[rows, columns] == lanes).all()
        assert (held[name].register[rows, columns] == registers).all()
        assert (held[name].place[rows, columns] == places).all()


def test_what_one_lane_holds():
    held = fragments.mma(8)
    assert held["A"].of(5) == [(0, 0, 1, 2), (0, 1, 1, 3), (1, 0, 9, 2), (1, 1, 9, 3)]
    assert held["B"].of(5) == [(0, 0, 2, 1), (0, 1, 3, 1)]
    assert held["C"].of(5) == [(0, 0, 1, 2), (1, 0, 1, 3), (2, 0, 9, 2), (3, 0, 9, 3)]
    with pytest.raises(ValueError, match="k is 8 or 16"):
        fragments.mma(4)


LAYOUTS = {"plain": {}, "padded": {"padding": 8}, "swizzled": {"swizzled": True}}
EXPECTED = {  # wavefronts of a matrix: of 32-half rows of A, of 64-half rows of B
    "plain": (4, 8), "padded": (1, 1), "swizzled": (1, 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_wavefronts_of_each_layout(name):
    for naming, columns, expected in zip(
        (fragments.stacked, fragments.abreast), (32, 64), EXPECTED[name], strict=True
    ):
        for step in range(4):
            named = naming(HalfTile(columns, **LAYOUTS[name]), step)
            assert named.aligned
            assert [named.wavefronts(m) for m in range(4)] == [expected] * 4


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("columns", [32, 64, 128, 256])
def test_a_layout_gives_each_half_a_place_of_its_own(name, columns):
    tile = HalfTile(columns, **LAYOUTS[name])
    rows, cols = np.indices((32, columns))
    places = tile.address(rows, cols)
    assert len(np.unique(places)) == 32 * columns
    assert ((places % 16) == 2 * (cols % 8)).all()


def test_stores_of_rows_are_free_of_conflicts_where_they_are_swizzled():
    """Eight lanes store 128 bytes: two rows of A's tile; padded rows share banks."""
    lane = np.arange(32)
    for layout, expected in (({"swizzled": True}, 0), ({"padding": 8}, 4)):
        addresses = HalfTile(32, **layout).address(lane // 4, lane % 4 * 8)
        assert banks.describe(Access(addresses, np.ones(32, bool), 16)).conflicts == expected


def test_the_worklog_s_windows_overlap():
    tile = HalfTile(128, 8)
    right, swapped = fragments.squares(tile), fragments.squares(tile, swapped=True)
    assert (right.coverage((16, 16)) == 1).all() and right.aligned
    covered = swapped.coverage((16, 24))
    assert not swapped.aligned and covered.max() == 8
    assert set(np.nonzero(covered)[0].tolist()) == {0, 8}


@pytest.mark.parametrize("transposed", [False, True])
def test_receivers_are_those_of_the_instruction(transposed):
    trans = ".trans" if transposed else ""
    source = f"""
template <int N> __global__ void hand_out(const unsigned short* from, unsigned* to)
{{
    __shared__ __align__(16) unsigned short tile[64];
    tile[threadIdx.x] = from[threadIdx.x], tile[threadIdx.x + 32] = from[threadIdx.x + 32];
    __syncwarp();
    unsigned got, row = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x % 8 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{%0}}, [%1];"
                 : "=r"(got) : "r"(row) : "memory");
    to[threadIdx.x] = got;
}}"""
    compiled = compile_source(source, "hand_out<1>", "sm_75")
    elements, got = np.arange(64, dtype=np.uint16), np.zeros(32, np.uint32)
    emulate(compiled, Launch((1, 1, 1), (32, 1, 1)), (elements, got))
    who = fragments.receivers(transposed)
    for lane in range(32):
        mine = sorted(np.flatnonzero(who.ravel() == lane).tolist())
        assert sorted(got[lane : lane + 1].view(np.uint16).tolist()) == mine
