"""Opcodes that products seldom use, against scalar oracles; and those that do nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from lib import ptx

from ..conftest import each_schedule, lanewise, run, u32s
from .test_opcodes import N, apply, draw, same


@pytest.mark.parametrize("join", ["and", "or", "xor"])
@settings(max_examples=5, deadline=None)
@given(columns=draw("s32", "s32", "u32"))
def test_comparisons_joined_with_a_predicate(join, columns):
    a, b, c = (np.array(v)[:, None] for v in columns)
    arrays = [a.astype(np.int32), b.astype(np.int32), (c % 2).astype(np.uint32)]
    out = u32s((N, 2))
    lanewise(f""".reg .pred %p<3>; setp.ne.u32 %p2, %c0, 0;
    setp.lt.{join}.s32 %p0|%p1, %a0, %b0, %p2; selp.b32 %d0, 1, 0, %p0; selp.b32 %d1, 1, 0, %p1;""",
             out, *arrays)
    with_ = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[join]
    less = arrays[0] < arrays[1]
    assert np.array_equal(out, with_(np.hstack([less, ~less]), arrays[2] != 0))


def test_the_ends_of_tanh():
    special = [0.0, -0.0, math.inf, -math.inf, math.nan]
    _, out = apply("tanh.approx.f32", "f32", ("f32",), [special])
    assert all(map(same, out[:5].tolist(), [0.0, -0.0, 1.0, -1.0, math.nan]))


def test_the_nth_one_of_a_mask():
    body = "".join(f"fns.b32 %d{i}, 22, {at}, {step};" for i, (at, step) in enumerate(
        ((0, 2), (4, -2), (2, 0), (3, 0), (0, 4))))
    out = u32s((1, 5))
    lanewise(body, out)
    assert out.tolist() == [[2, 2, 2, 0xFFFFFFFF, 0xFFFFFFFF]]


@each_schedule
def test_a_branch_by_an_index(schedule):
    body = """.reg .b32 %t, %i, %v; .reg .b64 %o; mov.u32 %t, %tid.x; ld.param.u64 %o, [out];
    mad.wide.u32 %o, %t, 4, %o; rem.u32 %i, %t, COUNT;
    TABLE: .branchtargets A, B, A, C;
    brx.idx %i, TABLE;
    A: mov.u32 %v, 10; bra END; B: mov.u32 %v, 11; bra END; C: mov.u32 %v, 13;
    END: st.global.u32 [%o], %v;"""
    out = u32s(64)
    run(body.replace("COUNT", "4"), out, block=64, schedule=schedule)
    assert out.tolist() == [10, 11, 10, 13] * 16
    with pytest.raises(ptx.Error, match="index 4; the table has 4 labels"):
        run(body.replace("COUNT", "5"), out, block=64, schedule=schedule)
    with pytest.raises(ptx.ParseError, match="unknown label"):
        run(body.replace("TABLE;", "OTHER;").replace("COUNT", "4"), out)


def test_hints_do_nothing():
    out = u32s(32)
    run(""".reg .b32 %t, %v; .reg .b64 %o, %c; .pragma "nounroll";
    createpolicy.fractional.L2::evict_first.b64 %c, 1.0;
    mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o;
    prefetch.global.L2 [%o]; prefetchu.L1 [%o]; applypriority.global.L2::evict_normal [%o], 128;
    ld.global.L2::cache_hint.u32 %v, [%o], %c;
    discard.global.L2 [%o], 128; nanosleep.u32 100; griddepcontrol.launch_dependents;
    griddepcontrol.wait; setmaxnreg.dec.sync.aligned.u32 40; membar.cta; fence.acq_rel.gpu;
    ldu.global.u32 %v, [%o]; add.u32 %v, %v, 1; st.global.u32 [%o], %v;""", out)
    assert (out == 1).all()
    for many in (16, 41, 264):
        with pytest.raises(ptx.ParseError, match="multiple of 8 from 24 to 256"):
            run(f"setmaxnreg.inc.sync.aligned.u32 {many};", out)


@pytest.mark.parametrize("opcode", ["trap", "brkpt"])
def test_traps_stop_the_kernel(opcode):
    body = ".reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.gt.u32 %p, %t, LIMIT; @%p "
    with pytest.raises(ptx.Error, match=rf"PTX line \d+ \({opcode}\).*trapped.*lane 5"):
        run(body.replace("LIMIT", "4") + f"{opcode};", u32s(1))
    run(body.replace("LIMIT", "40") + f"{opcode};", u32s(1))


def test_spaces_of_generic_addresses():
    out = u32s(4)
    run(""".shared .b32 s; .local .b32 l; .reg .b64 %o, %a; .reg .pred %p; .reg .b32 %v;
    ld.param.u64 %o, [out];
    mov.u64 %a, s; cvta.shared.u64 %a, %a; isspacep.shared %p, %a; selp.b32 %v, 1, 0, %p;
    st.global.u32 [%o], %v; isspacep.global %p, %a; selp.b32 %v, 1, 0, %p;
    st.global.u32 [%o+4], %v; mov.u64 %a, l; cvta.local.u64 %a, %a; isspacep.local %p, %a;
    selp.b32 %v, 1, 0, %p; st.global.u32 [%o+8], %v; isspacep.global %p, %o;
    selp.b32 %v, 1, 0, %p; st.global.u32 [%o+12], %v;""", out, block=1)
    assert out.tolist() == [1, 0, 1, 1]
