"""Loops that a counter ends are found, and how far they are is read while they run."""

import numpy as np
import pytest

from lib.ptx.progress import Progress, counted_loops

from ..conftest import function_of

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
NESTED = HEAD + """
.visible .entry k(.param .u32 n, .param .u32 m)
{
.reg .pred %p<4>; .reg .b32 %r<8>;
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [m];
mov.u32 %r3, 0;
$OUTER:
mov.u32 %r4, %r2;
$INNER:
add.s32 %r4, %r4, -2;
setp.ne.s32 %p1, %r4, 0;
@%p1 bra $INNER;
add.s32 %r3, %r3, 1;
setp.gt.s32 %p2, %r1, %r3;
@%p2 bra $OUTER;
ret;
}
"""
LEFT_IN_THE_MIDDLE = HEAD + """
.visible .entry k(.param .u32 n, .param .u32 m)
{
.reg .pred %p<4>; .reg .b32 %r<8>;
ld.param.u32 %r1, [n];
mov.u32 %r3, 0;
$LOOP:
setp.ge.u32 %p1, %r3, %r1;
@%p1 bra $END;
add.s32 %r3, %r3, 1;
bra.uni $LOOP;
$END:
ret;
}
"""


def function(text):
    return function_of(text)


def looks(text, n, m, every=5):
    """What is seen of a launch at a look in every few turns, the turn being the clock."""
    kernel, progress, seen = function(text), Progress(), []
    begin = progress.begin

    def watched(blocks, done, running):
        begin(blocks, done, running)
        choose = running.scheduler.choose

        def chosen():
            if running.steps and running.scheduler.turn % every == 0:
                seen.append(progress.loop(float(running.scheduler.turn)))
            return choose()

        running.scheduler.choose = chosen

    progress.begin = watched
    kernel(1, 32, (np.uint32(n), np.uint32(m)), progress=progress)
    return [one for one in seen if one is not None]


def test_outer_loops_come_before_those_in_them():
    outer, inner = counted_loops(function(NESTED).code.steps)
    assert inner.steps.start in outer.steps and inner.steps.stop < outer.steps.stop


def test_the_outermost_loop_that_has_moved_is_told():
    seen = looks(NESTED, 40, 2000, every=100)
    inner = [loop.share for loop, _ in seen if not loop.outermost]
    outer = [loop.share for loop, _ in seen if loop.outermost]
    assert inner and outer and inner == sorted(inner) and outer == sorted(outer)
    assert 0 < outer[0] < 0.1 and outer[-1] > 0.95
    assert seen[-1][1] == pytest.approx(40 * 1000, rel=0.05)  # turns since the first look


@pytest.mark.parametrize("text, each", [(NESTED, 3), (LEFT_IN_THE_MIDDLE, 2)])
def test_what_has_been_done_grows_as_the_time_does(text, each):
    seen = [(loop, turns) for loop, turns in looks(text, 1000, 2) if turns > 100]
    assert seen
    for loop, turns in seen:
        assert loop.outermost and loop.share / turns == pytest.approx(1 / (1000 * each), rel=0.1)


@pytest.mark.parametrize("changed, by", [
    ("setp.gt.s32 %p2, %r1, %r3;", "setp.gt.s32 %p2, %r3, %r3;"),  # both sides change
    ("setp.gt.s32 %p2, %r1, %r3;", "setp.gt.s32 %p2, %r1, %r2;"),  # neither does
    ("setp.gt.s32 %p2, %r1, %r3;", "mov.pred %p2, 0;"),
])
def test_a_loop_without_a_counter_is_none(changed, by):
    assert changed in NESTED
    assert len(counted_loops(function(NESTED.replace(changed, by)).code.steps)) == 1


