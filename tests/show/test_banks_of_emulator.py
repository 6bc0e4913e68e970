"""The models on traces of the book's own kernels: same rules, same counts as the emulator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.kernels import catalogue as kernels
from lib.problem import Problem
from lib.ptx.count import banks as emulator
from lib.ptx.count.banks import sectors as emulated_sectors
from lib.run import runner
from lib.show import banks, coalescing
from lib.show import bottleneck as busiest
from lib.show.coalescing import Access


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
    assert len(coalescing.sectors(addresses, width, active)) == sectors[0]
