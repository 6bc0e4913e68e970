"""What a kernel may be given: arrays and views of them, numbers, nothing at all."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import f32s, run


@pytest.mark.parametrize(
    "args,message",
    [
        ((1,), "takes 2 arguments, not 1"),
        ((np.zeros((4, 4))[:, ::2], 1), "argument 0: the array must be C-contiguous"),
        ((np.zeros(1), 1.5), "argument 1: is a .u32 value, not float"),
        ((np.zeros(1), 1 << 40), "does not fit 4 bytes"),
        ((np.zeros(1), np.zeros(3)), "not an array"),
        (("text", 1), "argument 0"),
        ((np.zeros(2, object), 1), "Python objects"),
        ((np.zeros(2, ">f4"), 1), "little-endian"),
        ((np.int32(-1), 1), "has 8 bytes; CuPy would pass the 4"),
        ((None, 1, np.int32(2)), r"is a .f32 value, .*pass numpy.float32"),
        ((None, 1, np.float16(2)), r"is a .f32 value, .*pass numpy.float32"),
    ],
)
def test_arguments(args, message):
    more = "" if len(args) < 3 else ", .param .f32 c"
    with pytest.raises(ptx.Error, match=message):
        run("", *args, parameters=f".param .u64 a, .param .u32 b{more}")


@pytest.mark.parametrize("start", [1, 2, 4, 64, 65])
@pytest.mark.parametrize("vector", [1, 4])
def test_a_view_lies_where_it_lies_in_its_array(start, vector):
    """On a GPU an array's memory begins on a multiple of 256 bytes, and a view somewhere in it."""
    whole = np.arange(1000, dtype=np.float32)
    view, out = whole[start : start + 32 * vector], f32s((32, vector))
    names = ", ".join(f"%x{i}" for i in range(vector))
    how = f".v{vector}" if vector > 1 else ""
    body = f"""
    .reg .b64 %a, %o; .reg .b32 %t; .reg .f32 %x<4>; mov.u32 %t, %tid.x;
    ld.param.u64 %a, [a]; ld.param.u64 %o, [out];
    mad.wide.u32 %a, %t, {4 * vector}, %a; mad.wide.u32 %o, %t, {4 * vector}, %o;
    ld.global{how}.f32 {{{names}}}, [%a]; st.global{how}.f32 [%o], {{{names}}};
    """ if vector > 1 else """
    .reg .b64 %a, %o; .reg .b32 %t; .reg .f32 %x; mov.u32 %t, %tid.x;
    ld.param.u64 %a, [a]; ld.param.u64 %o, [out];
    mad.wide.u32 %a, %t, 4, %a; mad.wide.u32 %o, %t, 4, %o;
    ld.global.f32 %x, [%a]; st.global.f32 [%o], %x;
    """
    parameters = ".param .u64 a, .param .u64 out"
    if start * 4 % (4 * vector):
        with pytest.raises(ptx.Misaligned):
            run(body, view, out, parameters=parameters)
        return
    launch = run(body, view, out, parameters=parameters, races=True)
    assert (out.ravel() == view).all() and not launch.hazards
    lines = {(4 * start + 4 * vector * lane) // 32 for lane in range(32)}
    load = next(s for s in launch.trace.sites if s.kind == "load")
    assert load.sectors == len(lines) * max(1, vector // 8)


@pytest.mark.parametrize("offset, said", [(-4, "4 bytes before argument 0"), (128, "at byte 128")])
def test_what_lies_around_a_view_is_not_its_own(offset, said):
    view = np.arange(100, dtype=np.float32)[1:33]
    body = f"""
    .reg .b64 %a; .reg .f32 %x; ld.param.u64 %a, [a]; ld.global.f32 %x, [%a+{offset}];
    """
    with pytest.raises(ptx.OutOfBounds, match=said):
        run(body, view, block=1, parameters=".param .u64 a")


@pytest.mark.parametrize("whole, part", [
    (f32s((2, 32)), np.s_[1]),
    # An array's own memory has no place for what lies between its rows, so a row goes alone.
    (np.ndarray((4, 32), np.float32, bytearray(1024), strides=(256, 4)), np.s_[1]),
])
def test_a_view_is_written_in_place(whole, part):
    body = """
    .reg .b64 %a; .reg .b32 %t; .reg .f32 %x; mov.u32 %t, %tid.x; ld.param.u64 %a, [a];
    mad.wide.u32 %a, %t, 4, %a; mov.f32 %x, 0f3F800000; st.global.f32 [%a], %x;
    """
    run(body, whole[part], parameters=".param .u64 a")
    assert whole[part].all() and whole.sum() == 32


def test_none_is_the_null_pointer():
    out = np.ones(1, np.uint64)
    run("""
    .reg .b64 %a, %o; ld.param.u64 %a, [a]; ld.param.u64 %o, [out]; st.global.u64 [%o], %a;
    """, None, out, block=1, parameters=".param .u64 a, .param .u64 out")
    assert out[0] == 0


def test_overlapping_arrays_are_refused_and_equal_ones_are_one():
    x = f32s(10)
    parameters = ".param .u64 a, .param .u64 b"
    result = run("", x, x, parameters=parameters)
    assert result.allocations[0].base == result.allocations[1].base
    with pytest.raises(ptx.Error, match="overlaps"):
        run("", x, x[1:], parameters=parameters)
