"""wgmma and its operands against scalar oracles: every type, layout and swizzle."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.core.rounding import to_float32
from lib.ptx.isa.matrix_descriptor import Descriptor, chunk_addresses
from tests.ptx.exact import number
from tests.tables import cases

from ..conftest import f32s, function_of, kinds, run_on_gpu

SPAN = {0: 16, 1: 128, 2: 64, 3: 32}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}


def swizzle(address: int, mode: int) -> int:
    """The one formula: bits 4 to 6 of an address are changed by bits 7 to 9."""
    mask = {0: 0, 1: 7, 2: 3, 3: 1}[mode]
    return address ^ (((address >> 7) & mask) << 4)


def chunk(descriptor: Descriptor, row: int, column: int, major: str) -> int:
    """Where a 16-byte chunk lies: row and 16-byte column, or k and group of eight rows."""
    span, mode = SPAN[descriptor.mode], descriptor.mode
    if major == "k":
        inner = row % 8 * span + row // 8 * descriptor.stride
        inner += column * (16 if mode else descriptor.leading)
    elif mode:
        inner = column * 16 % span + column * 16 // span * descriptor.leading
        inner += row % 8 * span + row // 8 * descriptor.stride
    else:
        inner = column * descriptor.stride + row % 8 * 16 + row // 8 * descriptor.leading
    return swizzle(descriptor.start + inner, mode)


@given(
    st.integers(0, 3), st.sampled_from(("k", "mn")), st.sampled_from((8, 16, 64, 128, 256)),
    st.integers(0, 200), st.integers(1, 2000), st.integers(1, 2000),
)
def test_addresses(mode, major, rows, start, leading, stride):
    descriptor = Descriptor(start * 16, leading * 16, stride * 16, 0, mode)
    found = chunk_addresses(descriptor, rows, major)
    for i, j in itertools.product(range(found.shape[0]), range(found.shape[1])):
        assert found[i, j] == chunk(descriptor, i, j, major)


def test_descriptor_fields():
    bits = 0x123 | 0x45 << 16 | 0x67 << 32 | 5 << 49 | 2 << 62
    assert Descriptor.of(bits) == Descriptor(0x1230, 0x450, 0x670, 5, 2)


@pytest.mark.parametrize("kind,infinity,nans", [("e4m3", None, 2), ("e5m2", 0x7C, 6)])
def test_small_floats(kind, infinity, nans):
    found = to_float32(np.arange(256, dtype=np.uint8), kind)
    assert np.isnan(found).sum() == nans and np.isinf(found).sum() == (2 if infinity else 0)
    if infinity:
        assert found[infinity] == np.inf and found[infinity | 128] == -np.inf
    assert all(found[code] == number(code, kind)[0] for code in np.flatnonzero(np.isfinite(found)))


# -- whole products -----------------------------------------------------------------------------


def kernel(shape, types, count, kinds, a_registers, tail, prepare="", keep="p"):
    """One product of one warpgroup; its operands come as images of shared memory."""
    registers = {"f32": "f32", "s32": "b32", "f16": "b32"}[kinds]
    d = ", ".join(f"%d{i}" for i in range(count))
    load_c = "\n".join(f"ld.global.{registers} %d{i}, [%c+{512 * i}];" for i in range(count))
    store = "\n".join(f"st.global.{registers} [%c+{512 * i}], %d{i};" for i in range(count))
    a = "%ad"
    load_a = ""
    if a_registers:
        a = "{%a0, %a1, %a2, %a3}"
        load_a = "\n".join(f"ld.global.b32 %a{i}, [%ra+{512 * i}];" for i in range(4))
    return f"""
.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 s[];
.visible .entry k(.param .u64 image, .param .u64 pa, .param .u64 pc, .param .u64 pad,
                  .param .u64 pbd, .param .u32 keep, .param .u32 bytes)
{{
    .reg .{registers} %d<{count}>; .reg .b32 %a<4>; .reg .b64 %i, %ra, %c, %ad, %bd, %g;
    .reg .b32 %t, %n, %at, %v, %k; .reg .pred p, q;
    mov.u32 %t, %tid.x;
    ld.param.u64 %i, [image]; ld.param.u64 %ra, [pa]; ld.param.u64 %c, [pc];
    ld.param.u64 %ad, [pad]; ld.param.u64 %bd, [pbd]; ld.param.u32 %k, [keep];
    ld.param.u32 %n, [bytes];
    // Dynamic shared memory need not begin at address 0: on sm_90 the first 1024 bytes are taken.
    mov.u32 %v, s; shr.u32 %v, %v, 4; cvt.u64.u32 %g, %v;
    add.u64 %ad, %ad, %g; add.u64 %bd, %bd, %g;
    mad.wide.u32 %ra, %t, 4, %ra; mad.wide.u32 %c, %t, 4, %c;
    shl.b32 %at, %t, 2;
LOOP:
    setp.ge.u32 q, %at, %n;
    @q bra DONE;
    cvt.u64.u32 %g, %at; add.u64 %g, %g, %i; ld.global.b32 %v, [%g];
    mov.u32 %a0, s; add.u32 %a0, %a0, %at; st.shared.b32 [%a0], %v;
    add.u32 %at, %at, 512;
    bra LOOP;
DONE:
    {load_c}
    {load_a}
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 p, %k, 0;
    wgmma.fence.sync.aligned;
    {prepare}
    wgmma.mma_async.sync.aligned.{shape}.{types} {{{d}}}, {a}, %bd, {keep}{tail};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {store}
    ret;
}}
"""


def random_bits(kind, shape, random):
    """Numbers of a type, as bits, and what they stand for."""
    if BITS[kind] == 8:
        bits = random.integers(0, 256, shape).astype(np.uint8)
        bits &= 0xBF if kind[0] == "e" else 0xFF  # below 2, so no NaN
    else:
        bits = (random.random(shape) - 0.5).astype(np.float16 if kind == "f16" else np.float32)
        bits = bits.view(np.uint16)[:, 1::2].copy() if kind == "bf16" else bits
    return bits, to_float32(bits.view(np.uint8), kind).reshape(shape).astype(float)


def place(image, bits, descriptor, major):
    """Put an operand (rows, K) into an image of shared memory, chunk by chunk."""
    matrix = bits if major == "k" else np.ascontiguousarray(bits.T)
    chunks = matrix.view(np.uint8).reshape(len(matrix), -1, 16)
    for i, j in itertools.product(range(chunks.shape[0]), range(chunks.shape[1])):
        at = chunk(descriptor, i, j, major)
        image[at : at + 16] = chunks[i, j]


def layout(start, rows, mode, major, deep=16):
    """A descriptor for an operand at a start, of so many halves of K; and the bytes it takes."""
    span = SPAN[mode]
    if major == "k":
        # Rows 8 by 8, and without a swizzle the second 16 bytes of all rows behind the first.
        if mode:
            return Descriptor(start, 16, 8 * span, 0, mode), rows * span
        return Descriptor(start, rows * 16, 128, 0, 0), rows * 32
    if mode:
        atoms = -(-rows * 2 // span)
        return Descriptor(start, deep * span, 8 * span, 0, mode), atoms * deep * span
    return Descriptor(start, rows // 8 * 128, 128, 0, 0), rows * 32


def encode(d: Descriptor) -> int:
    return d.start >> 4 | d.leading >> 4 << 16 | d.stride >> 4 << 32 | d.base << 49 | d.mode << 62


def registers_of(a):
    """A's registers, (4, 128): rows g and g + 8 of a warp, then the second 16 bytes."""
    r, lane = np.ogrid[:4, :128]
    return a.view("u4")[lane // 32 * 16 + lane % 32 // 4 + 8 * (r % 2), 4 * (r // 2) + lane % 4]


def words_of(c, dtype):
    """The words that hold D's values, those of 16 bits in pairs."""
    if dtype != "f16":
        return deal(c.astype("f4" if dtype == "f32" else "i4")).copy()
    pairs = deal(c.astype(np.float16)).reshape(-1, 2, 128)
    return np.ascontiguousarray(pairs.transpose(0, 2, 1)).view(np.uint32)[..., 0].copy()


def values_of(out, dtype):
    """D's values from the words that hold them."""
    if dtype != "f16":
        return out
    return out[..., None].view(np.float16).transpose(0, 2, 1).reshape(2 * len(out), 128)


def deal(matrix):
    """Give each lane its values of D, (N / 2, 128), value by value."""
    j, lane = np.ogrid[: matrix.shape[1] // 2, :128]
    return matrix[lane // 32 * 16 + lane % 32 // 4 + 8 * (j // 2 % 2),
                  8 * (j // 4) + 2 * (lane % 4) + j % 2]


def check(kind, dtype, n, a_mode=1, b_mode=1, a_major="k", b_major="k", a_registers=False,
          keep=1, signs=(1, 1), other=None, tail="", gpu=False, **launch):
    random = np.random.default_rng(n)
    k = 256 // BITS[kind]
    a, a_value = random_bits(kind, (64, k), random)
    b, b_value = random_bits(other or kind, (n, k), random)
    a_at, a_bytes = layout(0, 64, a_mode, a_major)
    start = -(-a_bytes // 1024) * 1024
    b_at, b_bytes = layout(start, n, b_mode, b_major)
    image = np.zeros(start + b_bytes + 1024, np.uint8)
    if not a_registers:
        place(image, a, a_at, a_major)
    place(image, b, b_at, b_major)
    c = random.integers(-4, 4, (64, n)).astype(float)
    exact = signs[0] * signs[1] * (a_value @ b_value.T) + (c if keep else 0)
    out = words_of(c, dtype)
    floating = dtype != "s32"
    if floating:
        tail = f", {signs[0]}, {signs[1]}"
        if BITS[kind] == 16:
            tail += "" if a_registers else f", {int(a_major == 'mn')}"
            tail += f", {int(b_major == 'mn')}"
    text = kernel(
        f"m64n{n}k{k}", f"{dtype}.{kind}.{other or kind}", len(out), dtype, a_registers, tail
    )
    descriptors = np.uint64(encode(a_at)), np.uint64(encode(b_at))
    args = (image, registers_of(a), out, *descriptors, np.uint32(keep), np.uint32(len(image)))
    if gpu:
        result = run_on_gpu(text, 128, args, len(image))
    else:
        result = function_of(text)(1, 128, args, len(image), **launch)
    if dtype == "f16":
        np.testing.assert_allclose(values_of(out, dtype), deal(exact), rtol=2e-3, atol=0.02)
    elif dtype == "s32":
        assert np.array_equal(out, deal(exact))
    else:
        # Tensor cores add products of 8-bit floats with fewer bits than float32 has.
        coarse = kind in ("e4m3", "e5m2")
        np.testing.assert_allclose(out, deal(exact), rtol=1e-5, atol=1e-2 if coarse else 1e-4)
    return result


@cases("""
kind dtype n
f16  f32   8
f16  f16   16
f16  f32   256
f16  f16   128
bf16 f32   24
bf16 f32   40
tf32 f32   8
tf32 f32   40
e4m3 f32   24
e5m2 f16   16
e4m3 f32   128
s8   s32   8
s8   s32   24
s8   s32   64
""")
def test_types(kind, dtype, n):
    other, more = ("u8", "u8") if kind == "s8" else (None, kind)
    assert not check(kind, dtype, n, other=other).hazards
    check(more, dtype, n, a_registers=True, keep=0)


# Each mode and direction of A with two of B's.
LAYOUTS = [(mode, (mode + i) % 4, a, b) for mode in range(4)
           for i, (a, b) in enumerate(itertools.product(("k", "mn"), repeat=2))]


@pytest.mark.parametrize("a_mode,b_mode,a_major,b_major", LAYOUTS)
def test_layouts(a_mode, b_mode, a_major, b_major):
    check("f16", "f32", 64, a_mode, b_mode, a_major, b_major)


@pytest.mark.parametrize("signs", list(itertools.product((1, -1), (1, -1))))
def test_signs(signs):
    check("f16", "f32", 16, signs=signs)
    check("bf16", "f32", 16, signs=signs, a_registers=True, b_major="mn")


@pytest.mark.gpu
@pytest.mark.parametrize("a_mode,b_mode", list(itertools.product(range(4), range(4))))
@pytest.mark.parametrize("majors", ["k k", "k mn", "mn k", "mn mn"])
def test_layouts_on_a_gpu(a_mode, b_mode, majors):
    """The hardware reads operands from where the oracle puts them."""
    check("f16", "f32", 64, a_mode, b_mode, *majors.split(), gpu=True)
    check("bf16", "f32", 128, 1, b_mode, "k", majors.split()[1], gpu=True, a_registers=True)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [8, 24, 256])
@cases("""
kind dtype
f16  f16
tf32 f32
e4m3 f32
e5m2 f16
s8   s32
u8   s32
""")
def test_types_on_a_gpu(kind, dtype, n):
    for options in ({}, {"keep": 0}, {"a_registers": True}, {"signs": (-1, 1)}):
        if dtype != "s32" or "signs" not in options:
            check(kind, dtype, n, gpu=True, **options)


SMALL = kernel("m64n8k16", "f32.f16.f16", 4, "f32", True, ", 1, 1, 0")


def small(text=SMALL, threads=128, a=0, image=0, **launch):
    """Run a small product; returns the launch and D."""
    out = f32s((4, 256))
    args = (np.full(4096, image, np.uint8), np.full((4, 256), a, np.uint32), out, 0,
            encode(Descriptor(0, 16, 1024, 0, 1)), 1, 4096)
    return function_of(text)(1, threads, args, 4096, **launch), out.ravel()[:512]


def broken(old, new, **launch):
    """Run it with a change; returns the kinds of hazard."""
    assert old in SMALL
    return {hazard.kind for hazard in small(SMALL.replace(old, new), **launch)[0].hazards}


WAIT_0, FENCE = "wgmma.wait_group.sync.aligned 0;", "wgmma.fence.sync.aligned;"
LATE = f"{WAIT_0} bar.sync 0; setp.eq.u32 q, %t, 0; mov.u32 %v, s; @q st.shared.b32 [%v], 0;"
MMA = "wgmma.mma_async"


@pytest.mark.parametrize("old, new, kind", [
    ("fence.proxy.async.shared::cta;", "", "missing proxy fence"),
    (FENCE, "", "missing wgmma.fence"), (WAIT_0, "", "wgmma in flight"),
    ("aligned 0;", "aligned 1;", "wgmma in flight"),
    # Compilers put constants between the fence and the product.
    (MMA, f"mov.f32 %d0, 0f00000000; {MMA}", None),
    (MMA, f"add.f32 %d0, %d0, %d0; {MMA}", "missing wgmma.fence"),
    # A register of A is written, or shared memory of B, before the wait.
    (WAIT_0, f"mov.u32 %a0, 0; {WAIT_0}", "wgmma in flight"),
    (WAIT_0, f"mov.u32 %v, s; st.shared.b32 [%v], 0; {WAIT_0}", "race"), (WAIT_0, LATE, None),
])
def test_faults(old, new, kind):
    found = broken(old, new, races=True)
    assert kind in found if kind == "race" else found == {kind} - {None}


# Registers z are others, which need nothing; w are sums of the first product as A of the second:
# they must have come, and a fence must stand between.
@cases("""
kind                  | d           | a           | between    | expected
m64n8k16.f32.f16.f16  | d0 d1 d2 d3 | a0 a1 a2 a3 |            |
m64n8k8.f32.tf32.tf32 | d0 d1 d2 d3 | a0 a1 a2 a3 |            | fence
m64n8k8.f32.tf32.tf32 | d0 d1 d2 d3 | a0 a1 a2 a3 | fence      |
m64n8k8.f32.tf32.tf32 | z0 z1 z2 z3 | a0 a1 a2 a3 |            |
m64n8k8.f32.tf32.tf32 | z0 z1 z2 d3 | a0 a1 a2 a3 |            | fence
m64n8k16.f32.f16.f16  | z0 z1 z2 z3 | w0 w1 a2 a3 |            | fence, in flight
m64n8k16.f32.f16.f16  | z0 z1 z2 z3 | w0 w1 a2 a3 | wait       | fence
m64n8k16.f32.f16.f16  | z0 z1 z2 z3 | w0 w1 a2 a3 | wait fence |
""")
def test_products_of_two_shapes_need_a_fence(kind, d, a, between, expected):
    """PTX ISA 9.7.15.7.1: only accumulators of products of one shape are in order by themselves."""
    said = {"wait": "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
            "fence": "wgmma.fence.sync.aligned;"}
    first = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}"
    halves = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%w0, %w1}"
    d, a = ("{%" + names.replace(" ", ", %") + "}" for names in (d, a))
    tail = "1, 1, 1, 0" if "f16" in kind else "1, 1, 1"
    more = " ".join(said[word] for word in between.split())
    more += f" wgmma.mma_async.sync.aligned.{kind} {d}, {a}, %bd, {tail}; wgmma.commit_group"

    text = SMALL.replace("wgmma.commit_group", more, 1)
    if "%w0" in a:
        text = text.replace(first, halves)
    extra = ".reg .f32 %z<4>; .reg .b32 %w<2>;"
    zero = "".join(f"mov.f32 %z{i}, 0f00000000;" for i in range(4))
    zero += "mov.u32 %w0, 0; mov.u32 %w1, 0;"
    launch, _ = small(text.replace(".reg .pred p, q;", f".reg .pred p, q; {extra} {zero}"))
    by_name = {"fence": "missing wgmma.fence", "in flight": "wgmma in flight"}
    assert kinds(launch) == {by_name[name] for name in expected.split(", ") if name}


@pytest.mark.parametrize("threads", [32, 96, 160])
def test_a_block_without_a_whole_warpgroup_is_refused(threads):
    with pytest.raises(ptx.Divergence, match="needs a warpgroup of 128 threads"):
        small(threads=threads)


@pytest.mark.parametrize("given", ["%d0, %d1, %d2", "%d0, %d1, %d2, %d3, %d0", "%d0, %d1, %d2, 1"])
def test_accumulators_that_do_not_fit_are_refused(given):
    count = given.count(",") + 1
    with pytest.raises(ptx.ParseError, match=f"the accumulators are 4 registers, not {count}"):
        function_of(SMALL.replace("%d0, %d1, %d2, %d3", given))


def test_the_lanes_that_lack_or_touched_an_accumulator_are_named():
    with pytest.raises(ptx.Divergence, match="missing: [^;]+ lane 30; [^;]+ warp 0 lane 31\n"):
        small(SMALL.replace(FENCE, f"setp.lt.u32 q, %t, 30; @q {FENCE}"))
    part = f"setp.eq.u32 q, %t, 37; @q add.f32 %d0, %d0, %d0; {MMA}"
    (found,) = small(SMALL.replace(MMA, part))[0].hazards
    assert found.kind == "missing wgmma.fence"
    assert re.search(r": [^:;]*warp 1 lane 5$", found.message)


def test_copies_of_accumulators_come_along():
    """A mov renames: what it copies from a product in flight lands as well."""
    renamed = SMALL.replace(
        WAIT_0, f".reg .f32 %e; mov.f32 %e, %d0; {WAIT_0} mov.f32 %d0, %e;")
    for text in (SMALL, renamed):
        launch, out = small(text, a=0x3C003C00, image=0x3C, landing="late")
        assert not launch.hazards
        assert (out == 16 * np.array(0x3C3C, np.uint16).view(np.float16)).all()


def test_refused():
    for shape, types in (
        ("m64n12k16", "f32.f16.f16"), ("m64n264k16", "f32.f16.f16"), ("m64n8k8", "f32.f16.f16"),
        ("m64n40k32", "s32.s8.s8"), ("m64n8k16", "f32.f16.bf16"),
    ):
        with pytest.raises(ptx.Error, match="m64n|N = "):
            function_of(kernel(shape, types, 4, "f32", True, ""))


DRIFT = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .shared .align 128 .b8 s[2048];
    .reg .b32 %t, %a, %i, %one; .reg .b64 %o, %da, %db, %more; .reg .f32 %d<4>; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %a, s;
    ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 16, %o;
    cvt.u64.u32 %da, %a; shr.u64 %da, %da, 4; or.b64 %da, %da, 0x0000001000080000;
    add.u64 %db, %da, 0;
    shl.b32 %i, %t, 4; add.u32 %a, %a, %i; mov.u32 %one, 0x3c003c00;
    st.shared.v4.u32 [%a], {%one, %one, %one, %one};
    fence.proxy.async;
    bar.sync 0;
    mov.f32 %d0, 0f00000000; mov.f32 %d1, 0f00000000; mov.f32 %d2, 0f00000000;
    mov.f32 %d3, 0f00000000;
    wgmma.fence.sync.aligned;
    mov.u32 %i, 0;
AGAIN:
    add.u64 %db, %db, 1;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, 1, 1, 1, 0, 0;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 6;
    @%p bra AGAIN;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%o], {%d0, %d1, %d2, %d3};
    ret;
}
"""


@pytest.mark.parametrize("landing", ["early", "late"])
@pytest.mark.parametrize("seed", range(4))
def test_a_warp_may_be_ahead_of_its_warpgroup(seed, landing):
    out = f32s((128, 4))
    function = function_of(DRIFT)
    launch = function(1, 128, (out,), schedule="random", seed=seed, landing=landing, races=True)
    assert (out == 96).all() and not launch.hazards
