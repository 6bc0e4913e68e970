"""Tensor maps and bulk copies: limits, boxes, swizzles, groups, against scalar oracles."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.core.tensormap import swizzled
from lib.run.tensor_maps import encode
from tests.tables import cases, numbers, rows, settings

from ..conftest import each_landing, each_schedule, function_of, kinds, run_on_gpu

MODES = {0: 0, 32: 1, 64: 3, 128: 7}


@given(st.sampled_from(sorted(MODES)), st.integers(0, 500), st.integers(1, 300))
def test_swizzled(swizzle, start, chunks):
    for i, found in enumerate(swizzled(16 * start, chunks, swizzle).tolist()):
        address = 16 * (start + i)
        assert 16 * found == address ^ (((address >> 7) & MODES[swizzle]) << 4)


HALVES = np.zeros((8, 64), np.float16)


@cases("""
shape       | box        | options                   | message
1 1 1 1 1 1 | 1 1 1 1 1 1 |                          | 1 to 5 dimensions
            |            |                           | 1 to 5 dimensions
8 64        | 8 64       | dtype=c16                 | 1, 2, 4 or 8 bytes
8 64        | 8          |                           | box .* must be 2 whole numbers
8 64        | 257 64     |                           | 257 elements along axis 0
8 64        | 0 64       |                           | 0 elements along axis 0
0 64        | 8 64       |                           | axis 0 has 0 elements
8 64        | 8 4        |                           | 8 bytes; it must be a multiple of 16
8 64        | 8 64       | swizzle=64                | 128 bytes; with a swizzle of 64 bytes
8 64        | 8 64       | swizzle=16                | there are 0, 32, 64, 128 bytes
8 64        | 8 64       | interleave=16             | interleave must be None
8 64        | 8 64       | fill=one                  | there are zero and nan
8 64        | 8 64       | dtype=i2, fill=nan        | needs floating-point
8 64        | 8 64       | element_strides=9 1       | element stride 9 along axis 0
8 64        | 8 64       | element_strides=1 2       | along the last axis must be 1
8 60        | 8 8        |                           | stride of 120 bytes; .* multiple of 16
""")
def test_limits(shape, box, options, message):
    given_ = settings(options)
    array = np.zeros(numbers(shape), given_.pop("dtype", "f2"))
    with pytest.raises(ValueError, match=message):
        ptx.tensor_map(array, numbers(box), **given_)


@pytest.mark.parametrize("array,message", [
    ([1.0], "needs a NumPy array"),
    (HALVES[:, ::2], "elements of the last axis lie 4 bytes apart"),
    (HALVES[:, 4:], "begins 8 bytes behind a multiple of 16"),
    (HALVES[::-1], "multiple of 16|to below 2"),
])
def test_arrays_that_no_map_can_have(array, message):
    with pytest.raises(ValueError, match=message):
        ptx.tensor_map(array, (8, 8))


def dump(rank: int) -> str:
    """A kernel that loads one box at a byte offset of shared memory and shows what lies there."""
    coordinates = ", ".join(f"%x{i}" for i in range(rank))
    loads = "\n".join(f"ld.param.s32 %x{i}, [x{i}];" for i in range(rank))
    declared = ", ".join(f".param .s32 x{i}" for i in range(rank))
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 at,
                  .param .u32 bytes, .param .u32 total, {declared})
{{
    .shared .align 8 .b8 bar[8];
    .reg .b32 %t, %a, %b, %n, %m, %v, %x<6>; .reg .b64 %o, %g, %map; .reg .pred %p;
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [out]; ld.param.u32 %n, [bytes]; ld.param.u32 %m, [total];
    ld.param.u32 %a, [at]; mov.u32 %b, s; add.u32 %a, %a, %b; mov.u32 %b, bar;
    {loads}
    mov.b64 %map, map; cvta.param.u64 %map, %map;
    shl.b32 %v, %t, 2;
CLEAR:
    setp.ge.u32 %p, %v, %m;
    @%p bra CLEARED;
    mov.u32 %x5, s; add.u32 %x5, %x5, %v;
    st.shared.b32 [%x5], -1;
    add.u32 %v, %v, 128;
    bra CLEAR;
CLEARED:
    setp.ne.u32 %p, %t, 0;
    @%p bra WAIT;
    mbarrier.init.shared::cta.b64 [%b], 1;
WAIT:
    fence.proxy.async;
    bar.sync 0;
    @%p bra TRY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %n;
    cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%a], [%map, {{{coordinates}}}], [%b];
TRY:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
    @!%p bra TRY;
    shl.b32 %v, %t, 2;
COPY:
    setp.ge.u32 %p, %v, %m;
    @%p bra DONE;
    mov.u32 %x5, s; add.u32 %x5, %x5, %v;
    ld.shared.b32 %x5, [%x5];
    cvt.u64.u32 %g, %v; add.u64 %g, %g, %o;
    st.global.b32 [%g], %x5;
    add.u32 %v, %v, 128;
    bra COPY;
DONE:
    ret;
}}
"""


def expected(tensor_map, coordinates, at, total):
    """What a box looks like in shared memory, element by element."""
    out = np.full(total, 255, np.uint8)
    size, array = tensor_map.array.dtype.itemsize, tensor_map.array
    fill = b"\0" * size
    if tensor_map.fill == "nan":
        fill = b"\xf7\x7f" * (size // 2)
    mask = MODES[tensor_map.swizzle]
    for number, index in enumerate(itertools.product(*map(range, tensor_map.tile))):
        place = [
            c + i * s
            for c, i, s in zip(
                reversed(coordinates), index, tensor_map.element_strides, strict=True
            )
        ]
        inside = all(0 <= p < n for p, n in zip(place, array.shape, strict=True))
        address = at + number * size
        address ^= ((address >> 7) & mask) << 4
        data = array[tuple(place)].tobytes() if inside else fill
        out[address : address + size] = np.frombuffer(data, np.uint8)
    return out


CASES = rows("""
300         | f4 | 256       |       | 0   | zero | 100         | 128
40 64       | f2 | 16 64     |       | 128 | zero | 0 8         | 0
40 64       | f2 | 16 64     |       | 128 | zero | 32 32       | 1024
40 64       | f2 | 16 32     |       | 64  | nan  | -8 -3       | 512
40 64       | f2 | 16 16     |       | 32  | zero | 56 37       | 256
40 64       | i1 | 5 32      |       | 0   | zero | 48 -2       | 384
40 64       | f4 | 9 8       | 2 1   | 32  | nan  | 4 -1        | 0
9 10 16     | f4 | 3 4 8     | 1 3 1 | 0   | zero | 4 7 8       | 0
3 4 5 16    | f8 | 2 2 3 4   |       | 32  | zero | 14 -1 3 1   | 0
2 3 4 5 16  | i2 | 2 2 2 2 8 |       | 0   | zero | 8 4 3 2 -1  | 128
""")  # shape, type, box, element strides, swizzle, fill, coordinates (fastest first), offset


def prepared(case):
    shape, kind, box, strides, swizzle, fill, coordinates, at = case
    random = np.random.default_rng(1)
    array, coordinates = random.integers(1, 100, numbers(shape)).astype(kind), numbers(coordinates)
    tensor_map = ptx.tensor_map(array, numbers(box), numbers(strides) or None, swizzle, fill)
    total = -(-(at + tensor_map.nbytes) // 1024) * 1024
    sizes = [np.uint32(n) for n in (at, tensor_map.nbytes, total)]
    sizes += [np.int32(c) for c in coordinates]
    return tensor_map, sizes, expected(tensor_map, coordinates, at, total), total


@each_landing
@pytest.mark.parametrize("case", CASES, ids=str)
def test_boxes(case, landing):
    tensor_map, sizes, exact, total = prepared(case)
    out = np.zeros(total, np.uint8)
    function = function_of(dump(tensor_map.array.ndim))
    result = function(1, 32, (tensor_map, out, *sizes), total, landing=landing, races=True)
    assert np.array_equal(out, exact)
    assert not result.hazards


@pytest.mark.parametrize("case,message", [
    (("40 64", "f2", "16 64", "", 128, "zero", "4 8", 0), "multiple of 16 bytes"),
    (("40 64", "f2", "16 16", "", 128, "zero", "8 0", 0), "needs them to be equal"),
])
def test_boxes_at_which_the_hardware_traps(case, message):
    tensor_map, sizes, _, total = prepared(case)
    with pytest.raises(ptx.Error, match=message):
        args = (tensor_map, np.zeros(total, np.uint8), *sizes)
        function_of(dump(2))(1, 32, args, total)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_boxes_on_a_gpu(case):
    """The driver takes the same maps, and the hardware puts the same bytes into the same places."""
    import cupy

    tensor_map, sizes, exact, total = prepared(case)
    there = cupy.asarray(tensor_map.array)
    out = np.zeros(total, np.uint8)
    encoded = encode(
        there, tensor_map.box, tensor_map.element_strides, tensor_map.swizzle, tensor_map.fill
    )
    args = (encoded, out, *sizes)
    run_on_gpu(dump(tensor_map.array.ndim), 32, args, total)
    assert np.array_equal(out, exact)


# -- bulk copies --------------------------------------------------------------------------------

BULK = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .shared .align 128 .b8 s[512];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %t, %a, %b, %v; .reg .b64 %i, %o; .reg .pred %p, %q;
    mov.u32 %t, %tid.x; mov.u32 %a, s; mov.u32 %b, bar;
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    setp.ne.u32 %q, %t, 0;
    @%q bra INITIALISED;
    mbarrier.init.shared::cta.b64 [%b], 1;
    INIT
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%i], 512, [%b];
INITIALISED:
    bar.sync 0;
TRY:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0, 1000;
    @!%p bra TRY;
    mad.lo.u32 %a, %t, 4, %a;
    ld.shared.u32 %v, [%a]; add.u32 %v, %v, 1; st.shared.u32 [%a], %v;
    FENCE
    bar.sync 0;
    @%q bra DONE;
    COPY
    cp.async.bulk.commit_group;
    WAIT
DONE:
    AFTER
    ret;
}
"""
OUT = "cp.async.bulk.global.shared::cta.bulk_group [%o], [%a], 512;"
ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%o], [%a], 512;"


def bulk(copy=OUT, fence="fence.proxy.async.shared::cta;", wait="cp.async.bulk.wait_group.read 0;",
         after="", init="fence.mbarrier_init.release.cluster;", change=("%%", ""), new=None,
         old=None, **options):
    text = BULK.replace("INITIALISED", "READY").replace(*change)
    for name, code in (("INIT", init), ("COPY", copy), ("FENCE", fence), ("WAIT", wait),
                       ("AFTER", after)):
        text = text.replace(name, code)
    out = np.full(128, 1000, np.uint32) if old is None else old
    given = np.arange(128, dtype=np.uint32) if new is None else new
    result = function_of(text)(1, 128, (given, out), **options)
    return kinds(result), out


@each_landing
@each_schedule
def test_bulk_copies(schedule, landing):
    options = {"schedule": schedule, "landing": landing, "races": True}
    found, out = bulk(**options)
    assert not found and out.tolist() == list(range(1, 129))
    found, out = bulk(ADD, **options)
    assert not found and out.tolist() == list(range(1001, 1129))


@each_landing
@pytest.mark.parametrize("operation", ["add.noftz", "min", "max"])
def test_bulk_reductions_of_bf16(operation, landing):
    new, old = (np.linspace(*ends, 256).astype(np.float32).view(np.uint32) >> 16
                for ends in ((4, -2), (-3, 5)))
    a, b = ((v << 16).view(np.float32) for v in (old, new))
    exact = {"add.noftz": a + b, "min": np.minimum(a, b), "max": np.maximum(a, b)}[operation]
    _, out = bulk(ADD.replace("add.u32", f"{operation}.bf16"), change=("add.u32 %v, %v, 1;", ""),
                  new=new.astype(np.uint16), old=old.astype(np.uint16), landing=landing)
    found = (out.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(found, exact, rtol=2.0**-8, atol=0)


def test_bulk_faults():
    assert bulk(fence="", races=True)[0] == {"missing proxy fence"}
    assert bulk(init="", races=True)[0] == {"warning"}
    assert bulk(wait="")[0] == {"block exited"}
    assert bulk(wait="cp.async.bulk.wait_group.read 1;")[0] == {"block exited"}
    # Writing the source again before it is read; behind the wait it is right.
    write = "bar.sync 0; st.shared.u32 [%a], 7;"
    found, out = bulk(wait="", after=write, races=True, landing="late")
    assert {"race", "block exited"} <= found and (out == 7).all()
    found, out = bulk(after=write, races=True, landing="late")
    assert not found and out.tolist() == list(range(1, 129))
    for copy, message in (
        (OUT.replace("512", "24"), "multiple of 16"), (OUT.replace("512", "528"), "outside"),
        (OUT.replace("[%a]", "[%a+8]"), "multiple"), (OUT.replace("[%o]", "[%o+8]"), "multiple"),
        (OUT.replace("[%o]", "[%o+16]"), "outside"),
    ):
        with pytest.raises(ptx.Error, match=message):
            bulk(copy)


def stored_box(writers: int):
    """A store of an 8×8 box onto a 6×4 tensor, whose elements the first threads write."""
    text = f"""
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .align 64 .b8 map[128])
{{
    .reg .b32 %t, %a, %b, %r; .reg .b64 %map; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %a, s; mov.b64 %map, map; cvta.param.u64 %map, %map;
    setp.ge.u32 %p, %t, {writers};
    @%p bra WRITTEN;
    shr.u32 %r, %t, 2; and.b32 %b, %t, 3; shl.b32 %b, %b, 2; mad.lo.u32 %b, %r, 32, %b;
    add.u32 %b, %b, %a;
    st.shared.b32 [%b], %t;
WRITTEN:
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra DONE;
    mov.u32 %r, 0;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {{%r, %r}}], [%a];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
DONE:
    ret;
}}
"""
    array = np.full((6, 4), 99, np.uint32)
    launch = function_of(text)
    return array, launch(1, 32, (ptx.tensor_map(array, (8, 8)),), 256, races=True)


def test_a_box_may_reach_past_the_tensor_into_what_nobody_wrote():
    array, result = stored_box(24)
    assert array.ravel().tolist() == list(range(24)) and not result.hazards


def test_a_box_that_stores_what_nobody_wrote():
    with pytest.raises(ptx.UninitialisedRead, match="byte 0xac was never written"):
        stored_box(23)
