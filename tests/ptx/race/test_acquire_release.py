"""What an atomic of both orders hands on, and what a later store takes away."""

import pytest

from ..conftest import function_of, u32s

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry f(.param .u64 data, .param .u64 flag) {
.reg .b64 %d; .reg .b64 %g; .reg .b32 %r<9>; .reg .pred %p<9>;
ld.param.u64 %d, [data]; ld.param.u64 %g, [flag]; mov.u32 %r1, %tid.x; mov.u32 %r2, 1;
setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r1, 64;
@%p1 bra $FIRST; @%p2 bra $SECOND; @%p3 bra $THIRD; ret;
"""
FIRST = "$FIRST: st.global.u32 [%d], %r2; st.release.gpu.global.u32 [%g], %r2; ret;\n"
TAKES = """$SECOND: TAKE setp.ne.u32 %p4, %r3, 1; @%p4 bra $SECOND;
ld.global.u32 %r4, [%d]; st.global.u32 [%d+4], %r4; ret;
$THIRD: ret; }"""
PASSES = """$SECOND: ld.relaxed.gpu.global.u32 %r3, [%g]; setp.ne.u32 %p4, %r3, 1; @%p4 bra $SECOND;
mov.u32 %r5, 2; STORE ret;
$THIRD: ld.acquire.gpu.global.u32 %r3, [%g]; setp.ne.u32 %p4, %r3, 2; @%p4 bra $THIRD;
ld.global.u32 %r4, [%d]; st.global.u32 [%d+4], %r4; ret; }"""


def races(text, head=HEAD + FIRST, grid=1, block=96):
    data, flags = u32s(2), u32s(2)
    done = function_of(head + text, "f")(grid, block, (data, flags), races=True)
    assert data.tolist() == [1, 1]
    return [hazard.kind for hazard in done.hazards]


@pytest.mark.parametrize(("order", "clean"), [
    ("acq_rel", True), ("acquire", True), ("relaxed", False), ("release", False),
])
def test_an_atomic_takes_what_was_released_if_it_acquires(order, clean):
    take = f"atom.{order}.gpu.global.add.u32 %r3, [%g], 0;"
    assert (races(TAKES.replace("TAKE", take)) == []) is clean


@pytest.mark.parametrize(("store", "clean"), [
    # A store of another thread's ends the release sequence; an atomic goes on with it (PTX ISA,
    # "Release and Acquire Patterns").
    ("st.relaxed.gpu.global.u32 [%g], %r5;", False),
    ("atom.relaxed.gpu.global.exch.b32 %r6, [%g], %r5;", True),
])
@pytest.mark.parametrize("before", ["", "fence.acq_rel.gpu;"])  # it sees the flag
def test_a_store_takes_away_what_was_handed_on(store, clean, before):
    text = PASSES.replace("$SECOND:", f"$SECOND: {before}").replace("STORE", store)
    assert (races(text) == []) is clean


def by(what):
    """The three parts for one block each, or one warp."""
    return HEAD.replace("%tid.x;", what).replace("%r1, 32", "%r1, 1").replace("%r1, 64", "%r1, 2")


@pytest.mark.parametrize(("takes", "kinds"), [("acquire", []), ("relaxed", ["race"])])
def test_a_block_hands_on_what_it_has_learnt(takes, kinds):
    second, third = PASSES.split("$THIRD:")
    second = second.replace("relaxed", takes).replace(
        "STORE", "st.release.gpu.global.u32 [%g+4], %r5;")
    text = f"{second}$THIRD:{third.replace('[%g]', '[%g+4]')}"
    assert races(text, by("%ctaid.x;") + FIRST, 3, 1) == kinds


@pytest.mark.parametrize(("fence", "kinds"), [("fence.acq_rel.gpu;", []), ("", ["race"])])
def test_a_flag_carries_what_a_barrier_has_told_since_the_last_one(fence, kinds):
    first = """$FIRST: st.release.gpu.global.u32 [%g], %r2; bar.sync 1, 64;
        mov.u32 %r5, 2; st.relaxed.gpu.global.u32 [%g], %r5; ret;
        $SECOND: st.global.u32 [%d], %r2; FENCE bar.sync 1, 64; ret;
        """.replace("FENCE", fence)
    third = PASSES[PASSES.index("$THIRD"):]
    assert races(third, by("%tid.x; shr.u32 %r1, %r1, 5;") + first) == kinds
