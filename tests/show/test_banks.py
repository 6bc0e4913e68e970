"""Shared-memory wavefronts against the documented rules, by hand."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.kernels import catalogue as kernels
from lib.problem import Problem
from lib.ptx.count import banks as emulator
from lib.ptx.count.banks import sectors as emulated_sectors
from lib.run import runner
from lib.show import accesses as page
from lib.show import banks, coalescing
from lib.show import bottleneck as busiest
from lib.show.coalescing import Access
from lib.show.version import Version
from tests.show.conftest import strided

LANES = np.arange(32)
ALL = np.ones(32, bool)


def test_an_impossible_width_is_an_error():
    with pytest.raises(ValueError, match="not 12"):
        banks.describe(Access(LANES * 12, ALL, 12), "load")


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
    assert "2 wavefronts, ideal 2" in shown[0]
    assert f"{of_bs} wavefronts, ideal {of_bs}" in shown[0]


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


# -- against the emulator --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def launches():
    """Emulated launches at 64³, watching a warp, by (kernel, variant)."""
    problem = Problem(64, 64, 64)
    found = {}
    for kernel, variant in (
        ("01_naive", "coalesced"), ("01_naive", "swapped"), ("02_shared_tile", None)
    ):
        entry = kernels.find(kernel)
        chosen = None if variant is None else next(
            v for v in entry.variants if v.name == variant
        )
        run = runner.run(
            entry, problem, variant=chosen, backend="emulator", arch="sm_75", watch=(3, 5)
        )
        found[kernel, variant] = run.launch
    return found


def test_watched_accesses_cost_what_their_sites_count(launches):
    """At 64³ every warp accesses alike, so one request of the watched warp is the site's mean."""
    for launch in launches.values():
        watched = launch.trace.watched
        assert watched
        for site in launch.trace.sites:
            for access in watched[site.line]:
                if site.space == "global":
                    found = coalescing.describe(access)
                    assert len(found.sectors) * site.requests == site.sectors
                else:
                    found = banks.describe(access, site.kind)
                    assert found.wavefronts * site.requests == site.wavefronts
                    assert found.ideal * site.requests == site.ideal


def test_addresses_fall_into_their_arrays(launches):
    launch = launches["01_naive", "coalesced"]
    for site in launch.trace.sites:
        access = launch.trace.watched[site.line][0]
        inside = [
            a for a in launch.allocations
            if a.base <= access.addresses[access.active].min() < a.base + a.nbytes
        ]
        assert len(inside) == 1
        found = coalescing.describe(access, inside[0])
        assert 0 <= found.sectors[0] <= found.sectors[-1] < inside[0].nbytes


@pytest.mark.parametrize(("variant", "lines"), [("coalesced", 2), ("swapped", 33)])
def test_lines_of_the_naive_kernel(launches, variant, lines):
    trace = launches["01_naive", variant].trace
    warp_ffmas = 64**3 // 32
    stores = 64 * 64 // 32 * (1 if variant == "coalesced" else 32)
    assert busiest.lines(trace.sites, trace.watched) == lines * warp_ffmas + stores


def test_lines_need_a_watched_warp(launches):
    with pytest.raises(ValueError, match="watched"):
        busiest.lines(launches["01_naive", "coalesced"].trace.sites, {})


@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(0, 200), min_size=32, max_size=32),
    st.lists(st.booleans(), min_size=32, max_size=32),
)
def test_any_access_counts_as_in_the_emulator(width, elements, active):
    addresses, active = np.array(elements) * width, np.array(active)
    found = banks.describe(Access(addresses, active, width))
    assert found.wavefronts == emulator.served(addresses[None], active[None], width)[0]
    assert found.ideal == emulator.wavefronts(addresses[None], active[None], width)[1][0]
    found = banks.describe(Access(addresses, active, width), "store")
    wavefronts, ideal = emulator.wavefronts(addresses[None], active[None], width, store=True)
    assert (found.wavefronts, found.ideal) == (wavefronts[0], ideal[0])
    sectors = emulated_sectors(addresses[None], active[None], width)
    assert len(coalescing.describe(Access(addresses, active, width)).sectors) == sectors[0]


def test_copies_of_one_line_to_one_line_go_together():
    straight = strided(1, bytes_per_lane=16)
    assert banks.describe_copy(straight, straight, True).wavefronts == 4
    assert banks.describe_copy(straight, straight, False).wavefronts == 4
    lanes = np.arange(32)
    short = Access(lanes // 4 * 512 + lanes % 4 * 16, np.ones(32, bool), 16)  # rows of 64 bytes
    found = banks.describe_copy(straight, short, True)
    assert (found.wavefronts, found.ideal) == (8, 4)
    halves = Access(lanes * 64, np.ones(32, bool), 16)
    with pytest.raises(ValueError, match="not known"):
        banks.describe_copy(halves, Access(lanes * 32, np.ones(32, bool), 16), True)
    assert banks.describe_copy(halves, straight, False).wavefronts == 16
    with pytest.raises(ValueError, match="16 bytes"):
        banks.describe_copy(strided(1), strided(1), True)
