"""Shared-memory wavefronts against the documented rules, by hand."""

import re

import numpy as np
import pytest

from lib.show import accesses as page
from lib.show import banks
from lib.show.coalescing import Access, strided
from lib.show.version import Version

LANES = np.arange(32)
ALL = np.ones(32, bool)


def count(addresses, width, active=ALL, kind="load"):
    found = banks.describe(Access(np.asarray(addresses), active, width), kind)
    return found.wavefronts, found.ideal


@pytest.mark.parametrize(
    ("stride", "expected"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (32, 32), (33, 1)]
)
def test_32_bit_strides(stride, expected):
    assert count(LANES * stride * 4, 4) == (expected, 1)


def test_64_bit_takes_two_and_merges_where_pairs_agree():
    assert count(LANES * 8, 8) == (2, 2)
    assert count(LANES // 2 * 8, 8) == (1, 1)  # lane i and i^1 share: 16 distinct, one pass
    assert count(LANES % 2 * 8, 8) == (1, 1)  # lane i and i^2 share
    assert count(LANES * 8, 8, LANES % 2 == 0) == (2, 1)  # merged, yet 16·2 words at stride 4


def test_128_bit_takes_four_and_the_halves_never_merge():
    assert count(LANES * 16, 16) == (4, 4)
    assert count(np.zeros(32, int), 16) == (2, 2)
    assert count(LANES // 2 * 16, 16) == (2, 2)
    assert count(LANES * 128, 16) == (32, 4)  # every lane on banks 0 to 3


def test_stores_of_lanes_that_agree_do_not_merge():
    assert count(LANES // 2 * 8, 8, kind="store") == (2, 2)
    assert count(np.zeros(32, int), 16, kind="store") == (4, 4)


def test_inactive_lanes_cost_nothing():
    assert count(LANES * 128, 4, LANES < 5) == (5, 1)
    assert count(LANES * 4, 4, np.zeros(32, bool)) == (0, 0)
    assert count(LANES * 16, 16, LANES < 8) == (1, 1)


def test_an_impossible_width_is_an_error():
    with pytest.raises(ValueError, match="not 12"):
        count(LANES * 12, 12)


def test_passes_of_ldmatrix_never_go_together():
    """Pairs of lanes that name one row would let a load's quarters share a wavefront."""
    lane = np.arange(32)
    pairs = Access(lane // 2 * 16, np.ones(32, bool), 16)
    assert banks.describe(pairs, "load").wavefronts == 2
    assert banks.describe(pairs, "ldmatrix").wavefronts == 4
    rows = Access(lane * 64, np.ones(32, bool), 16)  # eight rows, two places in the banks
    found = banks.describe(rows, "ldmatrix")
    assert (found.wavefronts, found.ideal) == (16, 4)


@pytest.mark.parametrize(("variant", "of_bs"), [("warp_64x32", 2), ("unpaired", 4)])
def test_the_figures_of_08_say_the_wavefronts_in_which_they_differ(variant, of_bs, shown):
    page.banks(Version("08_warp_tile"), variant, "load")
    assert f"A 128-bit load takes: of As 2 wavefronts, of Bs {of_bs} wavefronts" in shown[0]


@pytest.mark.parametrize("addresses, width, cells", [
    (LANES * 4, 4, 0),
    (np.append(LANES[:31], 32) * 4, 4, 2),  # lanes 0 and 31 meet in bank 0, the others nowhere
    (LANES * 128, 4, 8),  # all that are drawn
    (LANES * 16, 16, 0),  # 512 bytes: four wavefronts and no conflict
])
def test_what_conflicts_has_the_warning_s_colour(addresses, width, cells):
    access = Access(np.asarray(addresses), ALL, width)
    drawn = banks.picture(banks.panel("x[i]", access))
    warned = re.findall(r'class="warning" d="([^"]*)"', drawn)
    assert sum(path.count("M") for path in warned) == cells
    assert ('class="worse"' in drawn) == (cells > 0)


def test_what_a_wavefront_s_lanes_share_is_said_once():
    broadcast = banks.picture(banks.panel("As[k]", strided(0, first=37)))
    assert "lanes 0 to 31 share this word: a broadcast" in broadcast
    places = 48 * (LANES // 16) + 2 * (LANES % 16)  # two rows of 24 halves
    halves = banks.picture(banks.panel("As[row][k]", Access(places, ALL, 2), kind="store"))
    assert halves.count("2 lanes share each word") == 1 and "0+" not in halves


def test_the_finding_is_what_conflicts_most():
    scene = banks.draw([banks.panel("As[y][k]", strided(0)), banks.panel("As[x][k]", strided(32))],
                       evidence="emulated: sm_75 PTX")
    assert scene.title == "As[x][k]: 32 wavefronts where 1 would do"
    assert "24 more wavefronts like these" in scene.body
