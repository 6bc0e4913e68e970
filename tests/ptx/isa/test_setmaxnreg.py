"""setmaxnreg: who waits for registers, until whose are given back, or for ever."""

import numpy as np
import pytest

from lib import ptx
from lib.ptx.isa.control_flow import at_launch

from ..conftest import HEAD, each_schedule, function_of, u32s

# The first warpgroup gives back down to FEWER, the two others ask for MORE.
KERNEL = """.visible .entry k(.param .u64 out) LIMITS
{ .reg .b32 %t, %w; .reg .b64 %o, %g; .reg .pred %p;
mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 128; ld.param.u64 %o, [out]; mad.wide.u32 %g, %t, 4, %o;
@%p bra FIRST;
setmaxnreg.inc.sync.aligned.u32 MORE;
bra END;
FIRST: GIVE
END: st.global.u32 [%g], %t; ret; }
"""
GIVE = "setmaxnreg.dec.sync.aligned.u32 FEWER;"
STAYS = "bar.sync 1, 128; setp.eq.u32 %p, %t, 5000; @%p bra FIRST; bar.sync 0;"
ONE = ".maxntid 384, 1, 1 .minnctapersm 1"


def launched(more, fewer=40, limits=ONE, give=GIVE, **options):
    text = KERNEL.replace("GIVE", give).replace("FEWER", str(fewer)).replace("MORE", str(more))
    out = u32s(384)
    function_of(HEAD + text.replace("LIMITS", limits))(1, 384, (out,), **options)
    return out


@each_schedule
def test_registers_that_are_given_back_are_taken(schedule):
    assert (launched(232, schedule=schedule) == np.arange(384)).all()  # 40 + 2 x 232 = 3 x 168


@pytest.mark.parametrize("more,fewer,give,limits", [
    (240, 40, GIVE + STAYS, ONE), (176, 40, STAYS, ONE),
    (232, 40, GIVE + STAYS, ".maxntid 384, 1, 1 .minnctapersm 2"),
    (232, 40, GIVE + STAYS, ".reqntid 384, 1, 1 .maxnreg 160"),
])
def test_what_can_never_be_there_is_a_deadlock_with_the_sum(more, fewer, give, limits):
    with pytest.raises(ptx.Deadlock, match=r"setmaxnreg.inc.* it would be .* = [\d,]+") as error:
        launched(more, fewer, limits, give)
    assert any("give back" in note for note in error.value.__notes__)


def test_the_sum_is_that_of_the_block():
    with pytest.raises(ptx.Deadlock, match=r"64,512 registers, 168 a thread \(.maxntid 384, "
                       r".minnctapersm 1\); .* hold 4 x 32 x 40 \+ 1 x 32 x 168 \+ 7 x 32 x 240 = "
                       r"64,256, .* it would be 4 x 32 x 40 \+ 8 x 32 x 240 = 66,560"):
        launched(240, give=GIVE + STAYS)


def test_without_a_directive_nobody_waits_for_what_is_not_known():
    assert (launched(240, limits="", give=GIVE + "bar.sync 1, 128;") == np.arange(384)).all()


def test_what_a_warp_is_launched_with():
    assert at_launch({"maxntid": (128, 1, 1)}) == (256, ".maxntid 128, .minnctapersm 1")
    assert at_launch({"maxntid": (384, 1, 1), "minnctapersm": (2,)})[0] == 80
    assert at_launch({"maxntid": (384,), "maxnreg": (168,)}) == (168, ".maxnreg 168")
    assert at_launch({}) is None
