"""Counters of access patterns whose counts are known by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.count import banks, cp_async
from lib.ptx.count.banks import sectors as count_sectors

from ..conftest import HEAD, f32s, run, u32s

LANE = np.arange(32)


def load(words, space="global", width=1, block=32, active=None, repeat=1, **options):
    """Load `width` words a lane at the given word addresses; return the counters."""
    words = np.resize(words, block).astype(np.uint32)
    enabled = np.ones(block, np.uint32) if active is None else active.astype(np.uint32)
    vector = {1: ".f32 %f0", 2: ".v2.f32 {%f0, %f1}", 4: ".v4.f32 {%f0, %f1, %f2, %f3}"}[width]
    # The words come by constant tables, so that only the access under test counts as global.
    table = ", ".join(map(str, words.tolist()))
    flags = ", ".join(map(str, enabled.tolist()))
    body = (
        f"""
    .reg .b32 %t, %w, %e, %n; .reg .f32 %f<4>; .reg .b64 %o, %a, %x; .reg .pred %p, %q;
    .shared .align 16 .b8 s[32768];
    mov.u32 %t, %tid.x; mov.f32 %f0, 0f00000000; mov.u32 %n, %t;
    FILL: mul.wide.u32 %a, %n, 4; mov.u64 %x, s; add.u64 %a, %a, %x;
    st.shared.f32 [%a], %f0; add.u32 %n, %n, {block}; setp.lt.u32 %q, %n, 8192; @%q bra FILL;
    bar.sync 0;
    ld.param.u64 %o, [out];
    mov.u64 %a, words; mad.wide.u32 %a, %t, 4, %a; ld.const.u32 %w, [%a];
    mov.u64 %a, flags; mad.wide.u32 %a, %t, 4, %a; ld.const.u32 %e, [%a];
    setp.ne.u32 %p, %e, 0;
    mad.wide.u32 %o, %w, 4, {"%o" if space == "global" else "0"};
    """
        + f"@%p ld.{space}{vector}, [%o];\n" * repeat
    )
    module = ptx.Module(
        f"{HEAD}.const .align 4 .u32 words[{block}] = {{{table}}};\n"
        f".const .align 4 .u32 flags[{block}] = {{{flags}}};\n"
        f".entry k(.param .u64 out) {{ {body} ret; }}"
    )
    result = module.get_function("k")(1, block, (f32s(8192),), **options)
    (site,) = [s for s in result.trace.sites if s.kind == "load" and s.space == space][:1]
    return site, result


def test_predicated_off_lanes_count_nothing():
    even = LANE % 2 == 0
    site, _ = load(LANE * 8, active=even)
    assert (site.requests, site.lanes, site.sectors) == (1, 16, 16)
    site, _ = load(LANE * 32, "shared", active=even)
    assert (site.lanes, site.wavefronts) == (16, 16)
    two_warps = np.arange(64) < 32
    site, _ = load(np.arange(64), block=64, active=two_warps)
    assert (site.requests, site.lanes, site.sectors) == (1, 32, 4)
    site, _ = load(LANE * 4, "shared", 4, active=LANE < 8)  # one quarter: one pass
    assert (site.wavefronts, site.ideal) == (1, 1)


def test_guarded_instructions_count_the_lanes_that_ran_them():
    body = """.reg .b32 %t; .reg .pred %p; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 10;
    @%p xor.b32 %t, %t, 1; @%p or.b32 %t, %t, 1; @!%p or.b32 %t, %t, 2;"""
    executed = run(body, np.zeros(1), block=64).trace.instructions
    assert executed["mov.u32"] == (2, 64)
    assert executed["xor.b32"] == (1, 10)
    assert executed["or.b32"] == (3, 64)


def test_last_warp_that_is_not_full():
    site, _ = load(np.arange(40), block=40)
    assert (site.requests, site.lanes, site.sectors) == (2, 40, 5)


def _slow_wavefronts(addresses, active, nbytes, store):
    """The rules of banks.py, word by word."""

    def cost(lanes):
        words = [{} for _ in range(32)]
        for lane in lanes:
            if active[lane]:
                for word in range(addresses[lane] // 4, -(-(addresses[lane] + nbytes) // 4)):
                    words[word % 32][word] = True
        return max(map(len, words))

    def paired(lanes):
        return any(
            all(not active[i] or not active[i ^ by] or addresses[i] == addresses[i ^ by]
                for i in lanes)
            for by in (1, 2)
        )

    size = {8: 16, 16: 8}.get(nbytes, 32)
    total = documented = 0
    for start in range(0, 32, 2 * size):
        both = range(start, min(32, start + 2 * size))
        apart = sum(cost(range(at, at + size)) for at in range(start, both.stop, size))
        together = nbytes > 4 and not store and paired(both) and cost(both) == 1
        total += 1 if together else apart
        documented += cost(both) if nbytes > 4 and paired(range(32)) else apart
    return total, min(total, -(-sum(active) * nbytes // 128)), documented


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_banks_follow_their_rules(data):
    nbytes = data.draw(st.sampled_from([4, 8, 16]))
    store = data.draw(st.booleans())
    words = data.draw(st.lists(st.integers(0, 60), min_size=32, max_size=32))
    shared_by = data.draw(st.sampled_from([None, 1, 2]))
    if shared_by:
        words = [words[i & ~shared_by] for i in range(32)]
    active = np.array(data.draw(st.lists(st.booleans(), min_size=32, max_size=32)))
    addresses = np.array(words) * nbytes
    wavefronts, ideal = banks.wavefronts(addresses[None], active[None], nbytes, store)
    expected = _slow_wavefronts(addresses.tolist(), active.tolist(), nbytes, store)
    assert (wavefronts[0], ideal[0]) == expected[:2]
    if not store:
        assert banks.served(addresses[None], active[None], nbytes)[0] == expected[2]
    sectors = count_sectors(addresses[None], active[None], nbytes)
    assert sectors[0] == len({a // 32 for a, on in zip(addresses, active, strict=True) if on})


def test_watched_addresses():
    site, result = load(LANE * 3, active=LANE < 30, watch=(0, 0), repeat=3)
    (allocation,) = result.allocations[-1:]
    watched = result.trace.watched[site.line]
    assert len(watched) == 1 and len(watched[0].addresses) == 32 and watched[0].bytes_per_lane == 4
    expected = np.where(LANE < 30, allocation.base + LANE * 12, 0)
    assert np.array_equal(watched[0].addresses, expected)
    assert np.array_equal(watched[0].active, LANE < 30)
    assert result.trace.watched.keys() >= {site.line + 1, site.line + 2}


@pytest.mark.parametrize("to, source, wavefronts", [
    pytest.param(LANE // 4 * 64 + (LANE + LANE // 4) % 4 * 16, LANE // 4 * 1024 + LANE % 4 * 16, 12,
                 id="rotated in rows of 64 bytes"),
    pytest.param(LANE * 16, LANE * 0, 32, id="one source"),
    pytest.param((LANE ^ 1) * 16, LANE * 16, 4, id="halves swapped"),
])
def test_lone_halves_go_together_by_their_distance_modulo_64(to, source, wavefronts):
    """ncu counts 12 wavefronts of such an LDGSTS, not one for each distance."""
    everyone = np.ones((1, 32), bool)
    found = cp_async.cost(to[None], source[None], everyone, everyone, 16, past_l1=True)
    assert found.wavefronts.tolist() == [wavefronts]


@pytest.mark.parametrize("other", [-64, 0x7FFFFFFFFFFFFFC0, -1 << 63], ids=hex)
def test_addresses_of_warps_that_do_not_access_are_no_matter(other):
    """Another warp's address register holds what no shared memory has: nothing is asked there."""
    body = f"""
    .shared .align 4 .b8 s[128]; .reg .b32 %t, %v; .reg .b64 %a, %o; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 32; ld.param.u64 %o, [out];
    mul.wide.u32 %a, %t, 4; mov.u64 %o, s; add.u64 %a, %a, %o;
    @%p mov.u64 %a, {other};
    @%p bra done;
    st.shared.u32 [%a], %t; bar.warp.sync 0xffffffff; ld.shared.u32 %v, [%a];
    ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %v;
    done:
    """
    out = u32s(32)
    counters = run(body, out, block=64).trace.counters()
    np.testing.assert_array_equal(out, np.arange(32))
    assert counters["shared_wavefronts"] == 2
