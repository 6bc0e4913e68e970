"""Sectors, lines and useful bytes against counts by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.show import coalescing
from tests.show.conftest import strided
from tests.tables import cases


# A broadcast; coalesced; from one sector a lane on nothing gets worse.
@cases("""
stride width sectors lines useful
0      4     1       1     4
1      4     4       1     128
1      16    16      4     512
2      4     8       2     128
8      4     32      8     128
1024   4     32      32    128
""")
def test_strides(stride, width, sectors, lines, useful):
    found = coalescing.describe(strided(stride, bytes_per_lane=width))
    assert (len(found.sectors), len(found.lines)) == (sectors, lines)
    assert (found.useful_bytes, found.requested_bytes) == (useful, 32 * width)
    assert found.sector_bytes == 32 * sectors
    assert found.efficiency == useful / (32 * sectors)
    assert found.lanes == 32


def test_a_row_that_starts_off_a_sector_costs_one_more():
    found = coalescing.describe(strided(1, first=101))  # row 1 of a 101-wide matrix
    assert len(found.sectors) == 5
    assert found.least_sectors == 4
    assert found.sectors[0] == 384  # 404 // 32 * 32


def test_inactive_lanes_touch_nothing():
    assert len(coalescing.describe(strided(1, lanes=9)).sectors) == 2
    nobody = coalescing.describe(strided(1, lanes=0))
    assert (nobody.lanes, nobody.sectors, nobody.efficiency) == (0, (), 0.0)


def test_addresses_are_relative_to_the_allocation():
    access = strided(1, first=0x7F00_0000_1000 // 4)
    found = coalescing.describe(access, SimpleNamespace(base=0x7F00_0000_0000, nbytes=1 << 20))
    assert found.sectors == (4096, 4128, 4160, 4192)
    with pytest.raises(ValueError, match="128-byte line"):
        coalescing.describe(access, SimpleNamespace(base=4, nbytes=1 << 20))


@given(
    st.lists(st.integers(0, 4096), min_size=32, max_size=32),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.booleans(), min_size=32, max_size=32),
)
def test_against_a_set_of_bytes(elements, width, active):
    addresses = np.array(elements) * width
    touched = {
        byte
        for address, on in zip(addresses, active, strict=True)
        if on
        for byte in range(address, address + width)
    }
    found = coalescing.describe(coalescing.Access(addresses, np.array(active), width))
    assert list(found.sectors) == sorted({byte // 32 * 32 for byte in touched})
    assert list(found.lines) == sorted({byte // 128 * 128 for byte in touched})


def drawn(stride, **options):
    panel = coalescing.panel("x[i]", strided(stride, **options))
    return coalescing.draw([coalescing.Group("", [panel])], evidence="modelled: sectors")


@pytest.mark.parametrize(("scene", "finding"), [
    (drawn(1), "32 lanes, 4 sectors: every byte is used"),
    (drawn(0), "32 lanes, 1 sector: all read the same 4 bytes"),
    (drawn(1024), "32 lanes, 32 sectors: 12.5% of the bytes are used"),
    (drawn(1, first=1), "32 lanes, 5 sectors: 80% of the bytes are used"),
    (drawn(1, lanes=0), "No lane takes part: nothing moves"),
])
def test_titles(scene, finding):
    assert scene.title == finding


def test_sectors_of_lines_of_their_own_are_said_to_be():
    # Eight rows of 16 bytes, four lanes each: a line and half of a sector for each row.
    lanes = np.arange(32)
    for rows, said in ((256, "A[i]: 8 sectors in as many lines where 4 would do"),
                       (32, "A[i]: 8 sectors where 4 would do")):
        access = coalescing.Access(lanes // 4 * rows + lanes % 4 * 4, np.ones(32, bool), 4)
        panels = [coalescing.panel("A[i]", access),
                  coalescing.panel("B[i]", strided(1))]
        assert coalescing.draw([coalescing.Group("", panels)], evidence="emulated").title == said


def test_the_price_of_two_mappings():
    def group(name, of_a, of_c):
        return coalescing.Group(name, [
            coalescing.panel("A[row * K + k]", strided(of_a, first=5)),
            coalescing.panel("C[row * N + col]", strided(of_c), kind="store")])

    scene = coalescing.draw([group("coalesced", 0, 1), group("swapped", 256, 256)],
                            evidence="emulated: sm_75 PTX")
    assert scene.title == "Swapped: 32 sectors to load what coalesced loads with 1"
    assert scene.body.count('class="worse"') == 2
    assert "12.5% useful" in scene.body and "32 lines of A, 1,024 B apart" in scene.body
    alike = coalescing.draw([group("spread", 1, 1), group("together", 1, 1)], evidence="emulated")
    assert alike.title == "Together and spread move the same number of sectors"


def test_what_the_lanes_touch_is_said_in_lines_of_the_array():
    array = SimpleNamespace(base=1 << 32, nbytes=1 << 20)
    first = (1 << 30) + 256
    for stride, said in ((1, "one 128-byte line of B"), (2, "2 lines of B<"),
                         (64, "32 lines of B, 256 B apart"),
                         (0, "4 bytes of B for all lanes")):
        panel = coalescing.panel("B[k * N + col]", strided(stride, first=first), array)
        assert said in coalescing.picture(panel)
    assert "2 lines<" in coalescing.picture(
        coalescing.panel("of this", strided(2), array=""))
