"""What lanes of a warp do together, against an oracle lane by lane: shuffles, votes, matches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx

from ..conftest import lanewise, u32s

LANES = 32
words = st.lists(st.integers(0, 2**32 - 1), min_size=LANES, max_size=LANES)
few = st.lists(st.integers(0, 3), min_size=LANES, max_size=LANES)


def lanes(body: str, *columns, results: int = 1, active: int = 0xFFFFFFFF):
    """Run statements in the active lanes; %a0, %b0 hold the columns, %d0, %d1 are shown."""
    out = u32s((LANES, 2))
    lanewise(f""".reg .b32 %y, %m; .reg .pred %g, %h, %k; mov.u32 %d0, 77; mov.u32 %d1, 77;
    mov.u32 %m, 1; shl.b32 %m, %m, %t; and.b32 %m, %m, {active};
    setp.eq.u32 %k, %m, 0; @%k bra SHOW;
    {body}
    SHOW:""", out, *(np.array(column, np.uint32)[:, None] for column in columns))
    return out[:, 0].tolist() if results == 1 else out.T.tolist()


def source_of(mode, lane, b, c):
    """PTX ISA 9.7.9.6, in its own words: which lane a lane reads, and whether that is valid."""
    bound, segment = c & 31, c >> 8 & 31
    edge, least = (lane & segment) | (bound & ~segment), lane & segment
    if mode == "up":
        j = lane - b
        valid = j >= edge
    elif mode == "down":
        j = lane + b
        valid = j <= edge
    elif mode == "bfly":
        j = lane ^ b
        valid = j <= edge
    else:
        j = least | (b & ~segment)
        valid = j <= edge
    return (j if valid else lane), valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [32, 16, 8, 2])
@settings(max_examples=8, deadline=None)
@given(values=words, by=st.lists(st.integers(0, 31), min_size=LANES, max_size=LANES))
def test_shuffles(mode, width, values, by):
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    x, y = lanes(f"shfl.sync.{mode}.b32 %d0|%g, %a0, %b0, {c}, -1; selp.b32 %d1, 1, 0, %g;",
                 values, by, results=2)
    for lane in range(LANES):
        source, valid = source_of(mode, lane, by[lane], c)
        assert (x[lane], y[lane]) == (values[source], valid)


@pytest.mark.parametrize("active", [0xFFFFFFFF, 0x0000FFFF, 0x80000001, 0x00F0F000])
@settings(max_examples=6, deadline=None)
@given(said=few)
def test_votes_of_the_active_lanes(active, said):
    here = [lane for lane in range(LANES) if active >> lane & 1]
    yes = [said[lane] == 1 for lane in here]
    expected = {
        "ballot": sum(1 << lane for lane in here if said[lane] == 1), "all": all(yes),
        "any": any(yes), "uni": len(set(yes)) == 1,
    }
    for mode, value in expected.items():
        if mode == "ballot":
            body = f"vote.sync.ballot.b32 %d0, %g, {active};"
        else:
            body = f"vote.sync.{mode}.pred %h, %g, {active}; selp.b32 %d0, 1, 0, %h;"
        got = lanes("setp.eq.u32 %g, %a0, 1;" + body, said, active=active)
        assert got == [value if active >> lane & 1 else 77 for lane in range(LANES)]


@pytest.mark.parametrize("active", [0xFFFFFFFF, 0x0FF00FF1])
@settings(max_examples=6, deadline=None)
@given(values=few)
def test_matches(active, values):
    here = [lane for lane in range(LANES) if active >> lane & 1]
    got = lanes(f"match.any.sync.b32 %d0, %a0, {active};", values, active=active)
    for lane in here:
        alike = sum(1 << other for other in here if values[other] == values[lane])
        assert got[lane] == alike
    body = f"match.all.sync.b32 %d0|%g, %a0, {active}; selp.b32 %d1, 1, 0, %g;"
    for each in (values, [values[0]] * LANES):
        got, holds = lanes(body, each, active=active, results=2)
        same = len({each[lane] for lane in here}) == 1
        assert {got[lane] for lane in here} == {active if same else 0}
        assert {holds[lane] for lane in here} == {int(same)}


@pytest.mark.parametrize("active", [0xFFFFFFFF, 0x7FFFFFFE, 0x00000400])
@settings(max_examples=6, deadline=None)
@given(values=words)
def test_reductions(active, values):
    here = [values[lane] for lane in range(LANES) if active >> lane & 1]
    signed = [v - (1 << 32) if v >> 31 else v for v in here]
    expected = {
        "add.u32": sum(here), "add.s32": sum(signed), "min.u32": min(here), "max.u32": max(here),
        "min.s32": min(signed), "max.s32": max(signed), "and.b32": -1, "or.b32": 0, "xor.b32": 0,
    }
    for value in here:
        expected["and.b32"] &= value
        expected["or.b32"] |= value
        expected["xor.b32"] ^= value
    for operation, value in expected.items():
        got = lanes(f"redux.sync.{operation} %d0, %a0, {active};", values, active=active)
        for lane in range(LANES):
            assert got[lane] == (value & 0xFFFFFFFF if active >> lane & 1 else 77)


@pytest.mark.parametrize("active", [0xFFFFFFFF, 0xFFFF0000, 0x00000020])
def test_who_is_here_and_who_leads(active):
    here = [lane for lane in range(LANES) if active >> lane & 1]
    got = lanes("activemask.b32 %d0;", active=active)
    assert [got[lane] for lane in here] == [active] * len(here)
    lead, is_lead = lanes(f"elect.sync %d0|%g, {active}; selp.b32 %d1, 1, 0, %g;", active=active,
                          results=2)
    assert [lead[lane] for lane in here] == [here[0]] * len(here)
    assert [is_lead[lane] for lane in here] == [int(lane == here[0]) for lane in here]


@pytest.mark.parametrize("statement", [
    "shfl.sync.idx.b32 %d0, %t, 0, 31, 0xFFFF;", "vote.sync.any.pred %g, %k, 0xFFFF;",
    "match.any.sync.b32 %d0, %t, 0xFFFF;", "redux.sync.add.u32 %d0, %t, 0xFFFF;",
    "bar.warp.sync 0xFFFF;",
])
def test_a_mask_that_leaves_out_a_lane_that_runs_it(statement):
    with pytest.raises(ptx.Divergence, match="mask leaves out lanes that run it: .* lane 16"):
        lanes(statement)


@settings(max_examples=6, deadline=None)
@given(values=few, size=st.sampled_from([1, 2, 4, 8, 16]))
def test_tiles_of_a_warp_exchange_each_within_its_own_mask(values, size):
    """Cooperative groups: all lanes run one instruction, each tile with a mask of its own."""
    own = f"""and.b32 %y, %t, {32 - size}; mov.u32 %m, {(1 << size) - 1}; shl.b32 %m, %m, %y;
    setp.eq.u32 %g, %a0, 1;"""
    tiles = [range(first, first + size) for first in range(0, LANES, size)]
    word = {
        "redux.sync.add.u32 %d0, %a0, %m;": lambda tile: sum(values[i] for i in tile),
        "redux.sync.max.u32 %d0, %a0, %m;": lambda tile: max(values[i] for i in tile),
        "vote.sync.ballot.b32 %d0, %g, %m;":
            lambda tile: sum(1 << i for i in tile if values[i] == 1),
        "vote.sync.all.pred %h, %g, %m; selp.b32 %d0, 1, 0, %h;":
            lambda tile: int(all(values[i] == 1 for i in tile)),
        "vote.sync.any.pred %h, %g, %m; selp.b32 %d0, 1, 0, %h;":
            lambda tile: int(any(values[i] == 1 for i in tile)),
        "match.all.sync.b32 %d0|%h, %a0, %m;":
            lambda tile: (len({values[i] for i in tile}) == 1) * sum(1 << i for i in tile),
        "elect.sync %d0|%h, %m;": lambda tile: tile[0],
    }
    for body, expected in word.items():
        got = lanes(own + body, values)
        assert got == [expected(tile) for tile in tiles for _ in tile], body
    got = lanes(own + "match.any.sync.b32 %d0, %a0, %m;", values)
    assert got == [sum(1 << j for j in tile if values[j] == values[i]) for tile in tiles
                   for i in tile]


def test_masks_that_overlap_and_differ_are_refused():
    """Lane 0 waits for lane 1, which never comes with lane 0's mask."""
    with pytest.raises(ptx.Divergence, match="with another mask"):
        lanes("setp.eq.u32 %g, %t, 0; selp.b32 %m, 3, -2, %g; redux.sync.add.u32 %d0, %a0, %m;",
              [1] * LANES)
