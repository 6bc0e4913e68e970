"""Where an array ends for an access that is wider than an element, and how many may wait."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import f32s, function_of

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
WALK = HEAD + """.visible .entry walk(.param .u64 a, .param .u64 c, .param .u32 n) {
.reg .b64 %p<3>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %q<2>;
ld.param.u64 %p1, [a]; ld.param.u64 %p2, [c]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
$AGAIN: ld.global.v2.f32 {%f1, %f2}, [%p1]; add.f32 %f3, %f1, %f2; st.global.f32 [%p2], %f3;
add.s64 %p1, %p1, 8; add.u32 %r2, %r2, 1; setp.lt.u32 %q1, %r2, %r1; @%q1 bra $AGAIN; ret; }"""
WAIT = HEAD + ".visible .entry wait() { barrier.sync 1, COUNT; ret; }"


@pytest.mark.parametrize("floats", [6, 7])
def test_a_loop_walks_to_the_last_whole_vector(floats):
    walk = function_of(WALK, "walk")
    a, c = np.arange(floats, dtype=np.float32), f32s(1)
    walk(1, 1, (a, c, np.uint32(3)))
    assert c[0] == 9
    with pytest.raises(ptx.OutOfBounds):
        walk(1, 1, (a, c, np.uint32(4)))


@pytest.mark.parametrize("count", [64, 128])
def test_a_barrier_of_more_threads_than_the_block_is_refused(count):
    wait = function_of(WAIT.replace("COUNT", str(count)), "wait")
    wait(1, count, ())
    with pytest.raises(ptx.Error, match="at most the block's threads"):
        wait(1, count - 32, ())
