"""tcgen05: tensor memory, its loads and stores, its MMAs, copies and commits, and what orders them.

Layouts are held against CuTe's, as CUTLASS 4.2 gives them in bits; operands and accumulators
against index formulas, element by element; sums against `product`, which has tests of its own.
"""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.core.tensor_memory import Area, lanes_from
from lib.ptx.isa.tcgen05_arithmetic import product, whole_product
from lib.ptx.isa.tcgen05_operands import (
    SHAPES,
    fragment,
    mma_descriptor,
    operand_chunks,
    operand_descriptor,
    registers_of,
    zero_columns,
)
from tests.tables import cases

from ..conftest import each_landing, function_of, kinds, u32s

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 out, .param .u32 size, .param .u64 adesc,
                  .param .u64 bdesc, .param .u32 idesc, .param .u32 adds) {
.extern .shared .align 1024 .b8 shared[];
.reg .pred %p, %q, %one, %more; .reg .b32 %tid, %warp, %t, %d, %i, %idesc, %size, %w, %s, %v;
.reg .b32 %r<256>; .reg .b64 %image, %out, %a, %b, %x;
.shared .align 8 .b64 bar; .shared .align 8 .b64 other; .shared .align 4 .b32 base;
ld.param.u64 %image, [image]; ld.param.u64 %out, [out]; ld.param.u64 %a, [adesc];
ld.param.u64 %b, [bdesc]; ld.param.u32 %idesc, [idesc]; ld.param.u32 %size, [size];
mov.u32 %tid, %tid.x; shr.u32 %warp, %tid, 5; setp.eq.u32 %one, %tid, 0;
"""
ALLOC = """setp.eq.u32 %p, %warp, 0;
@%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], COLUMNS;
@%one mbarrier.init.shared::cta.b64 [bar], 1;
@%one fence.mbarrier_init.release.cluster;
bar.sync 0;
ld.shared.b32 %t, [base];
"""
FREE = """bar.sync 0;
@%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, COLUMNS;
"""
STORED, LOADED = ("tcgen05.wait::st.sync.aligned;\n", "tcgen05.wait::ld.sync.aligned;\n")
PUT = "mul.wide.u32 %x, %tid, 4; add.u64 %x, %out, %x; st.global.b32 [%x], %v;"
OWN = "and.b32 %w, %warp, 3; shl.b32 %w, %w, 21; add.u32 %w, %w, %t;\n"  # address of a warp's lanes


def run(body, out=None, image=None, columns=64, given=(0, 0, 0, 0), **options):
    image = np.zeros(16, np.uint8) if image is None else image
    text = (HEAD + body + "ret; }").replace("COLUMNS", str(columns))
    return function_of(text)(
        1, 128, (image, u32s(128) if out is None else out, np.uint32(image.size), *given),
        image.size, **options)


# -- between registers and tensor memory --------------------------------------------------------

# Of a warp and one repetition, in bits of a lane's row: (threads, strides), (values, strides) of
# CUTLASS's `DstLayout`; a row has `words` words of all repetitions.
CUTE = {
    "32x32b": lambda n: (((32, 32 * n),), ((32 * n, 1),)),
    "16x64b": lambda n: (((2, 512 * n), (2, 32), (8, 64 * n)), ((32, 1), (n, 64))),
    "16x128b": lambda n: (((4, 32), (8, 128 * n)), ((32, 1), (2, 1024 * n), (n, 128))),
    "16x256b": lambda n: (((4, 64), (8, 256 * n)), ((64, 1), (2, 2048 * n), (n, 256))),
    "16x32bx2": lambda n: (((16, 64 * n), (2, 32 * n)), ((32 * n, 1),)),
}


def bit(index, modes):
    total = 0
    for size, stride in modes:
        total, index = total + index % size * stride, index // size
    return total


@given(st.sampled_from(list(SHAPES)), st.sampled_from((1, 2, 4, 8, 16, 32, 64, 128)))
def test_fragments_are_those_of_cute(shape, repeats):
    if registers_of(shape, repeats) > 128:
        return
    threads, values = CUTE[shape](repeats)
    lane, word = fragment(shape, repeats)
    row = 32 * SHAPES[shape][1] * repeats
    for register in range(registers_of(shape, repeats)):
        for thread in range(32):
            at = bit(thread, threads) + bit(32 * register, values)
            assert (lane[register, thread], word[register, thread]) == divmod(at // 32, row // 32)


def vector(many, first=0):
    return "{" + ", ".join(f"%r{first + i}" for i in range(many)) + "}"


def stored_and_loaded(shape, repeats, wide, store):
    """Fill memory by 32x32b; load by a shape, or store by it and load all. Returns that."""
    many, half = registers_of(shape, repeats), ", 50" if shape == "16x32bx2" else ""
    start = ALLOC + OWN + "".join(
        f"mad.lo.u32 %r{i}, %tid, 65793, {i * 77777 + 1};" for i in range(128))
    start += f"tcgen05.st.sync.aligned.32x32b.x128.b32 [%w], {vector(128)}; {STORED}"
    if store:
        start += "".join(f"not.b32 %r{i}, %r{i};" for i in range(many))
        start += (f"tcgen05.st.sync.aligned.{shape}.x{repeats}{'.unpack::16b' * (wide - 1)}.b32 "
                  f"[%w]{half}, {vector(many)}; {STORED}")
        shape, repeats, wide, half, many = "32x32b", 128, 1, "", 128
    start += (f"tcgen05.ld.sync.aligned.{shape}.x{repeats}{'.pack::16b' * (wide - 1)}.b32 "
              f"{vector(many, 128)}, [%w]{half}; {LOADED}mul.wide.u32 %x, %tid, 512;"
              "add.u64 %x, %out, %x;")
    start += "".join(f"st.global.b32 [%x+{4 * i}], %r{128 + i};" for i in range(many))
    out = u32s((128, 128))
    assert not run(start + FREE, out, columns=128, races=True).hazards
    return out[:, :many]


@pytest.mark.parametrize("shape,repeats,wide", [
    (shape, repeats, wide) for shape in SHAPES for repeats, wide in ((1, 2), (4, 1), (16, 2))
    if SHAPES[shape][1] * repeats * wide <= 128])
def test_loads_and_stores(shape, repeats, wide):
    lane, word = (np.hstack([each] * 4).T for each in fragment(shape, repeats))
    lane = lane + np.arange(128)[:, None] // 32 * 32
    first = word * wide
    if shape == "16x32bx2":
        first = np.where(word < repeats, first, 50 + (word - repeats) * wide)
    filled = (np.arange(128)[:, None] * 65793 + np.arange(128) * 77777 + 1).astype(np.uint32)
    low, high = filled[lane, first], filled[lane, first + wide - 1]
    found = stored_and_loaded(shape, repeats, wide, False)
    assert (found == (low if wide == 1 else low & 0xFFFF | high << 16)).all()
    new, wanted = ~filled[:, : first.shape[1]], filled.copy()
    wanted[lane, first] = new if wide == 1 else new & 0xFFFF
    if wide == 2:
        wanted[lane, first + 1] = new >> 16
    assert (stored_and_loaded(shape, repeats, wide, True) == wanted).all()


def waits_of(store, load="", put=PUT, **options):
    """A word a lane is stored, loaded and put out; returns the launch and what came out."""
    out = u32s(128)
    text = (ALLOC + OWN + f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%w], %tid; {store}"
            f"tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%w]; {load}{put}")
    return run(text + FREE, out, races=True, **options), out


@each_landing
def test_a_store_must_be_waited_for(landing):
    launch, out = waits_of(STORED, LOADED + PUT, "", landing=landing)
    assert launch.clean and (out == np.arange(128)).all()
    launch, out = waits_of("", LOADED + PUT, "", landing=landing)
    assert kinds(launch) == {"tensor memory in flight"}
    hazard = launch.hazards[0].message
    assert "lanes 0-31, columns 0-0" in hazard and "insert tcgen05.wait::st" in hazard
    assert (out == np.arange(128)).all() == (landing == "early")


def test_what_is_loaded_is_there_behind_the_wait_alone():
    """Landing late, registers hold nothing before it; another warp's wait is not its own."""
    _, out = waits_of(STORED, PUT, LOADED, landing="late")
    assert (out == 0xFFFFFFFF).all()
    first = f"setp.ne.u32 %q, %warp, 1; @%q bra over; {LOADED} over:"
    _, out = waits_of(STORED, first + PUT, LOADED, landing="late")
    assert (out == 0xFFFFFFFF).sum() == 96 and (out[32:64] == np.arange(32, 64)).all()


# -- allocation ---------------------------------------------------------------------------------


def test_an_allocation_is_freed():
    assert not run(ALLOC + FREE).hazards
    (hazard,) = run(ALLOC).hazards
    assert hazard.kind == "tensor memory" and "columns 0-63" in hazard.message
    assert "never freed" in hazard.message and "tcgen05.dealloc" in hazard.message


PERMIT = "@%p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
SECOND = """setp.eq.u32 %q, %warp, 1;
@%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [other], 256;
"""
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%w+{}];" + LOADED


@pytest.mark.parametrize("body,error,why", [
    *((ALLOC.replace("COLUMNS", str(columns)), ptx.Error,
       f"{columns} columns; it must be a power of two from 32") for columns in (0, 16, 48, 1024)),
    (ALLOC + "add.u32 %t, %t, 32;" + FREE, ptx.Error,
     "64 columns from address 0x20 are no allocation.*64 from"),
    (ALLOC + PERMIT + "bar.sync 0;" + ALLOC.split(";\n", 2)[1] + ";" + FREE, ptx.Error,
     "gave up the right"),
    (ALLOC.replace("COLUMNS", "512") + SECOND, ptx.Deadlock,
     "waits for 256 columns.*0 of 512 are free.*dealloc"),
    ("@%one tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;", ptx.Divergence,
     "all 32 lanes of a warp"),
    (ALLOC + OWN + LOAD.format(512), ptx.OutOfBounds, "lie outside of tensor memory"),
])
def test_what_is_refused(body, error, why):
    with pytest.raises(error, match=why):
        run(body)


@cases("""
statement | why
tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %a, %b, [%v], %i, %p;         | sparse A
tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%d], %b, %i, %p;         | rows of A moved by one
tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%t], %a;                | no decompression
tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [%t];      | red
tcgen05.everything.cta_group::1;                                          | tcgen05.{alloc,dealloc
""")
def test_an_instruction_that_is_not_there_says_so_in_one_line(statement, why):
    with pytest.raises(ptx.UnsupportedInstruction) as raised:
        run(statement)
    said = str(raised.value)
    assert why in said and "\n" not in said and "PTX line" in said


def test_an_allocation_waits_until_there_is_room():
    body = ALLOC + PERMIT + SECOND + """
    @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, COLUMNS;
    bar.sync 0; ld.shared.b32 %t, [other];
    @%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;"""
    body = body.replace(PERMIT, "")
    for schedule in ("lowest", "highest", "random"):
        assert not run(body, columns=512, schedule=schedule, races=True).hazards


@pytest.mark.parametrize("body,what", [
    (ALLOC + PERMIT + FREE, None),
    (ALLOC + SECOND + FREE + """bar.sync 0; ld.shared.b32 %t, [other];
     @%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;""",
     "256 columns after 64: allocations may not grow"),
    (ALLOC + OWN + LOAD.format(63) + FREE, None),
    (ALLOC + OWN + LOAD.format(64) + FREE, "columns 64-64; allocated are columns 0-63"),
    (ALLOC + OWN + LOAD.format(511) + FREE, "columns 511-511"),
])
def test_what_is_allocated_and_used(body, what):
    launch = run(body)
    assert kinds(launch) == ({"tensor memory"} if what else set())
    assert not what or what in launch.hazards[0].message


@pytest.mark.parametrize("address", [
    "mov.u32 %d, %t;", "add.u32 %d, %w, 8388608;", "add.u32 %d, %t, 10485760;",
], ids=["no lane", "128 too many", "of warp 1, and 128"])
def test_of_lanes_out_of_reach_the_warps_own_are_meant(address):
    """Public kernels count on it; it is told all the same."""
    launch, out = waits_of(STORED + address + LOAD.replace("%w+{}", "%d") + PUT, put=LOADED)
    assert (out == np.arange(128)).all()
    assert kinds(launch) == {"tensor memory"}
    hazard = launch.hazards[0]
    assert "reaches lanes" in hazard.message and "<< 16" in hazard.message
    assert hazard.second is None


# -- MMAs ---------------------------------------------------------------------------------------

FILL = """mov.u32 %i, %tid; mov.u32 %s, shared;
fill: mul.lo.u32 %d, %i, 4; setp.ge.u32 %q, %d, %size; @%q bra full;
cvt.u64.u32 %x, %d; add.u64 %x, %image, %x; ld.global.b32 %v, [%x]; add.u32 %d, %d, %s;
st.shared.b32 [%d], %v; add.u32 %i, %i, 128; bra fill;
full: fence.proxy.async; bar.sync 0; tcgen05.fence::after_thread_sync;
cvt.u64.u32 %x, %s; shr.u64 %x, %x, 4; add.u64 %a, %a, %x; add.u64 %b, %b, %x;
ld.param.u32 %d, [adds]; setp.ne.u32 %q, %d, 0;
"""
MMA = "@%one tcgen05.mma.cta_group::1.kind::KIND [%t], %a, %b, %idesc, %q;\n"
COMMIT = "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
WAIT = "wait: mbarrier.try_wait.parity.shared::cta.b64 %more, [bar], 0; @!%more bra wait;\n"
BEFORE, AFTER = (f"tcgen05.fence::{side}_thread_sync;\n" for side in ("before", "after"))
READ = (
    OWN + "tcgen05.ld.sync.aligned.32x32b.x64.b32 " + vector(64) + ", [%w];\n" + LOADED
    + "mul.wide.u32 %x, %tid, 256; add.u64 %x, %out, %x;\n"
    + "".join(f"st.global.b32 [%x+{4 * i}], %r{i};" for i in range(64))
)


def filled(value):
    """Store a value into all lanes and columns."""
    return (OWN + f"mov.u32 %r0, {value}; tcgen05.st.sync.aligned.32x32b.x64.b32 [%w], {{"
            + ", ".join(["%r0"] * 64) + "};" + STORED + BEFORE)


CLEAR = filled(-1)  # what no product writes is stored, too
PROGRAM = ALLOC + CLEAR + FILL + MMA + COMMIT + WAIT + AFTER + READ + FREE

BYTES = {"f16": 2, "bf16": 2, "tf32": 4}
BITS = {"u8": 8, "s8": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
CODES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5,
         "u8": 0, "s8": 1}
KIND = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}
# By the bytes that are swizzled; "atoms" are 128 bytes with atoms of 32.
SPAN = {0: 16, 32: 32, 64: 64, 128: 128, "atoms": 128}
MODE = {0: 0, 32: 6, 64: 4, 128: 2, "atoms": 1}


def idesc(a="f16", b="f16", d="f32", m=128, n=64, trans="kk", negate=0, saturate=0):
    return (saturate << 3 | ["f16", "f32", "s32"].index(d) << 4 | CODES[a] << 7 | CODES[b] << 10
            | negate << 13 | (trans[0] == "m") << 15 | (trans[1] == "m") << 16 | n // 8 << 17
            | m // 16 << 24)


def desc(start=0, leading=16, stride=1024, swizzle=128):
    return (start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | MODE[swizzle] << 61)


def laid_out(codes, kind, swizzle, transposed, start):
    """Put a matrix, (rows, K), where a canonical layout has it; returns bytes and descriptor.

    By the ISA's canonical layouts, element by element: T elements are 16 bytes.
    """
    nbytes, span = BYTES.get(kind, 1), SPAN[swizzle]
    t, atom = 16 // nbytes, span // 16
    deep = 4 if swizzle == "atoms" else 8  # rows of K in an atom
    (rows, k_all), (r, k) = codes.shape, np.indices(codes.shape)
    if not transposed:
        leading, stride = 16 if swizzle else rows * 16, 8 * span
        at = r % 8 * span + r // 8 * stride + k % t * nbytes + k // t * leading
    elif swizzle:
        leading, stride = k_all * span, deep * span
        at = (r % t * nbytes + r // t % atom * 16 + r // t // atom * leading
              + k % deep * span + k // deep * stride)
    else:
        leading, stride = 128 * (rows // t), 128
        at = r % t * nbytes + r // t * stride + k % 8 * 16 + k // 8 * leading
    at += start
    at ^= (at >> 7 & 3) << 5 if swizzle == "atoms" else (at >> 7 & span // 16 - 1) << 4
    bits = BITS.get(kind, 8)  # of a byte; narrow ones are packed from the beginning of 16 bytes
    image = np.zeros(8 << 16, np.uint8)
    for bit in range(bits * nbytes):
        image[at // 16 * 128 + at % 16 * bits + bit] = codes >> bit & 1
    return np.packbits(image, bitorder="little"), desc(start, leading, stride, swizzle)


def some(rng, kind, shape):
    """Encoded numbers that are finite, and not too far apart."""
    if kind in BITS:
        return rng.integers(0, 1 << BITS[kind], shape)
    if kind[0] == "e":
        return rng.integers(0, 256, shape) & 0xBF  # no NaN, no infinity
    values = rng.normal(size=shape).astype(np.float32)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    return values.view(np.uint32) >> (16 if kind == "bf16" else 0)


def multiply(a_kind="f16", b_kind="f16", d="f32", m=128, n=64, swizzle=128, trans="kk", adds=0,
             program=PROGRAM, negate=0, launch=run, blocks=1, **options):
    """Run one mma; returns the launch, what is in tensor memory, and A's and B's codes."""
    rng = np.random.default_rng(m * n + SPAN[swizzle])
    k = 32 // BYTES.get(a_kind, 1)
    a, b = some(rng, a_kind, (m, k)), some(rng, b_kind, (n, k))
    images, out = [], u32s((blocks, 128, 64))
    for a_part, b_part in zip(np.split(a, blocks), np.split(b, blocks), strict=True):
        a_image, a_desc = laid_out(a_part, a_kind, swizzle, trans[0] == "m", 0)
        b_image, b_desc = laid_out(b_part, b_kind, swizzle, trans[1] == "m", 1 << 15)
        images.append(a_image | b_image)
    given = (a_desc, b_desc, np.uint32(idesc(a_kind, b_kind, d, m, n, trans, negate)),
             np.uint32(adds))
    if blocks == 1:
        images, out = images[0], out[0]
    done = launch(program.replace("KIND", KIND.get(a_kind, "f8f6f4")), out, np.array(images),
                  given=given, **options)
    return done, out, a, b


def wanted(a, b, kinds=("f16", "f16", "f32"), old=None, saturate=False):
    if kinds[2] == "s32":
        return whole_product(a, b, old, kinds, saturate)
    return product(a.astype(np.uint32), b.astype(np.uint32), old, kinds)


def lanes_of(m):
    """The lanes that have D's rows."""
    return np.arange(m) if m == 128 else np.arange(m) // 16 * 32 + np.arange(m) % 16


@cases("""
a_kind b_kind d     m  n swizzle trans
f16    f16  f32   128 64 128   kk
f16    f16  f16   128 48 64    kk
bf16   bf16 f32    64 32 32    kk
bf16   bf16 f32   128 64 128   mm
f16    f16  f32    64 64 64    mk
f16    f16  f32   128 32 32    km
f16    f16  f32   128 16 0     kk
bf16   bf16 f32   128 24 0     mk
tf32   tf32 f32   128 8  0     kk
tf32   tf32 f32    64 40 128   kk
e4m3   e5m2 f32   128 64 128   kk
e5m2   e4m3 f16    64 64 64    kk
e4m3   e4m3 f32   128 64 128   mm
e2m1   e3m2 f32   128 16 128   kk
e2m3   e4m3 f16   128 16 0     kk
u8     s8   s32   128 48 128   kk
s8     s8   s32    64 24 32    kk
tf32   tf32 f32   128 64 atoms mm
tf32   tf32 f32    64 32 atoms mm
""")
def test_products(a_kind, b_kind, d, m, n, swizzle, trans):
    launch, out, a, b = multiply(a_kind, b_kind, d, m, n, swizzle, trans, races=True)
    assert not launch.hazards
    assert (out[lanes_of(m), :n] == wanted(a, b, (a_kind, b_kind, d))).all()


MORE = "setp.eq.u32 %q, 0, 0;"


@each_landing
def test_a_second_mma_adds(landing):
    launch, out, a, b = multiply(program=PROGRAM.replace(MMA, MMA + MORE + MMA), races=True,
                                 landing=landing)
    assert not launch.hazards
    assert (out == wanted(a, b, old=wanted(a, b))).all()


def test_signs_and_scales():
    _, out, a, b = multiply(negate=1)
    assert (out == wanted(a ^ 0x8000, b)).all()
    scaled = PROGRAM.replace(MMA, MMA + MORE + MMA.replace("%q;", "%q, 3;"))
    _, out, a, b = multiply(program=scaled)
    codes = (a.astype(np.uint32), b.astype(np.uint32))
    assert (out == product(*codes, wanted(a, b), ("f16", "f16", "f32"), 3)).all()


def test_lanes_that_are_left_out_keep_what_they_have():
    masked = MMA.replace("%q;", "{%r100, %r101, %r102, %r103}, %q;")
    masks = "mov.u32 %r100, 5; mov.u32 %r101, 0; mov.u32 %r102, 0; mov.u32 %r103, 0x80000000;"
    program = PROGRAM.replace(MMA, filled(7) + "bar.sync 0;" + AFTER + masks + masked)
    launch, out, a, b = multiply(program=program, races=True)
    assert not launch.hazards
    full = wanted(a, b)
    full[[0, 2, 127]] = 7
    assert (out == full).all()
    launch, *_ = multiply(program=program.replace(COMMIT + WAIT, COMMIT), races=True)
    assert "lanes 1, 3-126, columns 0-63" in launch.hazards[0].message


@pytest.mark.parametrize("m,n", [(32, 64), (64, 64), (128, 64), (32, 256)])
def test_weights_stationary(m, n):
    """Layouts G, E and D: columns beyond a part lie in further lanes."""
    program = PROGRAM.replace("mma.cta_group", "mma.ws.cta_group")
    launch, out, a, b = multiply("bf16", "bf16", m=m, n=n, program=program, races=True)
    assert not launch.hazards
    each = n * m // 128
    parts = np.split(wanted(a, b, ("bf16", "bf16", "f32")), 128 // m, axis=1)
    assert (out[:, :each] == np.concatenate(parts)).all()


def mask(starts, firsts, skip, use, shift=0, some=1):
    """A zero-column mask descriptor of parts 0 to 3."""
    return (sum(start << 8 * i | first << 32 + i for i, (start, first)
                in enumerate(zip(starts, firsts, strict=True)))
            | some << 39 | skip << 40 | use << 48 | shift << 56)


def stationary(m, n, limit):
    return mma_descriptor(idesc("bf16", "bf16", m=m, n=n) | limit << 30, "f16", True)


# The examples of the ISA, 9.7.16.4.3: parts of a mask from column 0 on, 1 for a zero column.
@pytest.mark.parametrize("m,bits,parts", [
    (128, mask([0], [0], 2, 3, some=0), "0000000000"),
    (128, mask([0], [0], 2, 3), "00001110000111"),
    (64, mask([0, 0], [1, 0], 2, 3), "11100001110000111 00001110000111"),
    (32, mask([0, 1, 2, 1], [1, 1, 0, 0], 2, 3, 2),
     "11100001110000 1100001110000 001110000111 0001110000111"),
])
def test_zero_columns_of_the_isa(m, bits, parts):
    zero, shift = zero_columns(bits, stationary(m, 128, 3))
    for i, part in enumerate(parts.split()):
        assert "".join(map(str, zero[i * m :][: len(part)].astype(int))) == part
    assert shift == bits >> 56


@pytest.mark.parametrize("bits,m,limit,why", [
    (1 << 36, 128, 0, "reserved bit"), (9 << 56, 128, 1, "shifts B by 9.*allow 8"),
    (17 << 56, 32, 3, "M = 32.*allow 16"), (mask([4], [0], 2, 3), 128, 0, "beyond its first span"),
])
def test_wrong_zero_columns(bits, m, limit, why):
    with pytest.raises(ptx.Error, match=why):
        zero_columns(bits, stationary(m, 64, limit))


def test_columns_that_are_left_out_and_shifted():
    """Columns of B from the second on; every other four of them count as zero."""
    program = PROGRAM.replace(
        MMA, f"mov.u64 %x, {mask([0], [0], 3, 3, 2)}; or.b32 %idesc, %idesc, 0x40000000;"
        "sub.u32 %idesc, %idesc, 0x20000;"  # N = 64, of 72 columns
        + MMA.replace("mma.cta_group", "mma.ws.cta_group").replace("%q;", "%q, %x;"))
    launch, out, a, b = multiply("bf16", "bf16", n=72, program=program, races=True)
    assert not launch.hazards
    used = b[2:66].copy()
    used[np.arange(64) % 8 >= 4] = 0
    assert (out == wanted(a, used, ("bf16", "bf16", "f32"))).all()


@pytest.mark.parametrize("kind,m", [("bf16", 128), ("f16", 64), ("tf32", 128), ("e4m3", 128)])
def test_a_in_tensor_memory(kind, m):
    """Each lane stores its row of A, 8 words, behind D's columns."""
    take = ("mul.wide.u32 %x, %tid, 32; add.u64 %x, %image, %x;"
            + "".join(f"ld.global.b32 %r{i}, [%x+{(1 << 15) - 4096 + 4 * i}];" for i in range(8))
            + OWN + f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%w+32], {vector(8)};" + STORED
            + BEFORE + "bar.sync 0;" + AFTER + "add.u32 %d, %t, 32;")
    rng, nbytes = np.random.default_rng(3), BYTES.get(kind, 1)
    k, n = 32 // nbytes, 32
    a, b = some(rng, kind, (m, k)), some(rng, kind, (n, k))
    image, b_desc = laid_out(b, kind, 128, 0, 1 << 15)
    raw = np.zeros((128, k), f"u{nbytes}")
    raw[lanes_of(m)] = a
    image[(1 << 15) - 4096 : 1 << 15] = raw.view(np.uint8).ravel()
    text = PROGRAM.replace(MMA, take + MMA.replace("%a,", "[%d],")).replace(
        "KIND", KIND.get(kind, "f8f6f4"))
    out = u32s((128, 64))
    given = (0, b_desc, np.uint32(idesc(kind, kind, m=m, n=n)), np.uint32(0))
    for landing in ("early", "late"):
        launch = run(text, out, image, given=given, races=True, landing=landing)
        assert not launch.hazards
        assert (out[lanes_of(m), :n] == wanted(a, b, (kind, kind, "f32"))).all()
    # Without the fences round the barrier, the mma is not ordered behind the stores.
    for fence in (BEFORE, AFTER):
        broken = text.replace(take, take.replace(fence, ""))
        assert kinds(run(broken, out, image, given=given, races=True)) == {"missing tcgen05.fence"}


# -- what orders --------------------------------------------------------------------------------

OTHER_N = "xor.b32 %idesc, %idesc, 0x180000;"
COPY = "@%one tcgen05.cp.cta_group::1.SHAPE [%t], %a;\n"
STORE = "@%one st.shared.b32 [%s], %tid;"
SHIFT = "@%one tcgen05.shift.cta_group::1.down [%t];\n"
RENEW = ("cvt.u64.u32 %b, %s; shr.u64 %b, %b, 4;"
         "add.u32 %d, %t, 0x1F0000; mov.u64 %x, 0x0000400000000000; or.b64 %x, %x, %b;"
         "@%one tcgen05.cp.cta_group::1.4x256b [%d], %x;\n")
# Example of 9.7.16.8.5: tcgen05.wait::ld keeps an mma from racing ahead of the load.
AGAIN = READ + BEFORE + "bar.sync 0;" + AFTER + """
@%one tcgen05.mma.cta_group::1.kind::KIND [%t], %a, %b, %idesc, %q;
@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
again: mbarrier.try_wait.parity.shared::cta.b64 %more, [bar], 1; @!%more bra again;"""
SHAPED = COPY.replace("SHAPE", "128x256b")
IN_FLIGHT, FENCE = "tensor memory in flight", "missing tcgen05.fence"


@pytest.mark.parametrize("old,new,kind,words", [
    (COMMIT + WAIT, COMMIT, IN_FLIGHT, "tcgen05.commit on an mbarrier.*lanes 0-127, columns 0-63"),
    (WAIT + AFTER, WAIT, FENCE, "tcgen05.fence::after_thread_sync before the second"),
    (MMA, MMA + OTHER_N + MMA, IN_FLIGHT, "tcgen05.mma"),
    ("fence.proxy.async;", "", "missing proxy fence", "tcgen05.mma"),
    (COMMIT, COMMIT + STORE, "race", "tcgen05.commit"),
    (AFTER + READ, AFTER + STORE + READ, None, ""),
    # mma → cp is no pipelined pair: what an mma reads or writes may be refilled under it.
    (MMA, MMA + SHAPED, IN_FLIGHT, "tcgen05.cp.*columns 0-7|columns 0-7.*tcgen05.cp"),
    (MMA, SHAPED + MMA, None, ""),
    (MMA, MMA + RENEW, IN_FLIGHT, ""),
    (READ, AGAIN, None, ""),
    (READ, AGAIN.replace(LOADED, ""), IN_FLIGHT, "tcgen05.wait::ld"),
    (READ, AGAIN.replace(BEFORE, ""), FENCE, "tcgen05.fence::before_thread_sync"),
    (READ, AGAIN.replace(AFTER, ""), FENCE, "tcgen05.fence::after_thread_sync"),
])
def test_what_orders_products_and_what_they_use(old, new, kind, words):
    assert old in PROGRAM
    launch, *_ = multiply(program=PROGRAM.replace(old, new, 1), races=True)
    assert kinds(launch) == ({kind} if kind else set())
    said = " ".join(f"{h.first} {h.second} {h.message} {ptx.advice.for_hazard(h)}"
                    for h in launch.hazards)
    assert re.search(words, said)


def test_what_is_never_committed_is_waited_for_in_vain():
    with pytest.raises(ptx.Deadlock):
        multiply(program=PROGRAM.replace(COMMIT, ""))


def test_late_products_are_not_there_before_they_are_waited_for():
    _, out, *_ = multiply(program=PROGRAM.replace(COMMIT + WAIT, COMMIT), landing="late")
    assert (out == 0xFFFFFFFF).all()


def test_operands_in_shared_memory_without_a_tcgen05_fence_are_remarked_on_by_strict_launches():
    whole = PROGRAM.replace(CLEAR, "")
    bare = whole.replace(AFTER.strip(), "", 1)
    for text, strict, remarks in ((bare, False, 0), (bare, True, 1), (whole, True, 0)):
        launch, *_ = multiply(program=text, races=True, strict=strict)
        assert launch.clean and len(launch.remarks) == remarks
        for remark in launch.remarks:
            assert "9.7.16.6.3" in remark.message and "CUTLASS" in remark.message
            assert "tcgen05.mma" in remark.second.opcode and remark.message in str(launch)


def test_an_accumulator_that_nobody_wrote():
    launch, *_ = multiply(adds=1, program=PROGRAM.replace(CLEAR, ""))
    (hazard,) = launch.hazards
    assert hazard.kind == "tensor memory" and "enable-input-d false" in hazard.message


# -- cp and shift -------------------------------------------------------------------------------


@each_landing
@cases("""
shape                | rows | chunks
128x256b             | 128 | 2
128x128b             | 128 | 1
64x128b.warpx2::02_13 | 64 | 1
64x128b.warpx2::01_23 | 64 | 1
32x128b.warpx4       | 32  | 1
4x256b               | 4   | 2
""")
def test_copies(shape, rows, chunks, landing):
    matrix = np.random.default_rng(5).integers(0, 256, (rows, 16 * chunks))
    image, found = laid_out(matrix, "u8", 0, 0, 0)
    out = u32s((128, 64))
    launch = run(PROGRAM.replace(MMA, COPY.replace("SHAPE", shape)), out, image,
                 given=(found, 0, np.uint32(0), np.uint32(0)), races=True, landing=landing)
    assert not launch.hazards
    words = matrix.astype(np.uint8).view(np.uint32)
    if rows == 4:
        assert (out[::32, :8] == words).all() and (out[1::32] == 0xFFFFFFFF).all()
        return
    lane = np.arange(128)
    source = lane // 64 * 32 + lane % 32 if "01_23" in shape else lane % rows
    assert (out[:, : 4 * chunks] == words[source]).all()


@each_landing
@pytest.mark.parametrize("renew", ["", RENEW])
def test_a_shift_and_what_renews_what_it_leaves_behind(renew, landing):
    """Rows of each warp's lanes move by one; mma → shift → cp.4x256b is ordered."""
    launch, out, a, b = multiply(program=PROGRAM.replace(MMA, MMA + SHIFT + renew), races=True,
                                 landing=landing)
    assert not launch.hazards
    full = wanted(a, b).reshape(4, 32, 64)
    shifted = full.copy()
    shifted[:, :31, :8] = full[:, 1:, :8]
    same = out.reshape(4, 32, 64) == shifted
    assert same[:, :31].all() and same[:, 31, :8].all() == (not renew)


def test_a_shift_from_another_lane_is_refused():
    shift = "add.u32 %d, %t, 0x200000;" + SHIFT.replace("%t", "%d")
    with pytest.raises(ptx.UnsupportedInstruction, match="a shift from lane 32"):
        multiply(program=PROGRAM.replace(MMA, shift))


# -- commits of several blocks ------------------------------------------------------------------

CLUSTER = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 2, 1, 1 {
.reg .pred %p; .reg .b32 %i, %v; .reg .b64 %out;
.shared .align 8 .b64 bar;
mbarrier.init.shared::cta.b64 [bar], 2;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [bar], MASK;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra wait;
ld.param.u64 %out, [out]; mov.u32 %i, %ctaid.x; mad.wide.u32 %out, %i, 4, %out;
mov.u32 %v, 1; st.global.b32 [%out], %v;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret; }"""


@each_landing
def test_a_commit_arrives_in_each_block_that_its_mask_names(landing):
    """Two arrivals complete each mbarrier: the own commit's and that of the other block."""
    def committed(mask, **options):
        out = u32s(2)
        return function_of(CLUSTER.replace("MASK", mask))(
            2, 1, (out,), landing=landing, **options), out.tolist()

    launch, out = committed("3", races=True)
    assert not launch.hazards and out == [1, 1]
    with pytest.raises(ptx.Deadlock):
        committed("1")
    with pytest.raises(ptx.Error, match="the mask 0x4 names blocks that the cluster of 2 has not"):
        committed("4")


# -- descriptors --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits,kind,why", [
    (idesc(b="bf16"), "f16", "no kind::f16 of f16 and bf16"),
    (idesc(m=96), "f16", "M = 96, N = 64"),
    (idesc("tf32", "tf32", "f16"), "tf32", "gives D the type 0"),
    (idesc("u8", "u8", "s32", n=40), "i8", "M = 128, N = 40"),
    (idesc("e4m3", "e4m3", n=24, trans="km"), "f8f6f4", "N = 24, transposed"),
    (idesc() | 4, "f16", "sparse"), (idesc() | 1 << 23, "f16", "reserved"),
    (idesc(saturate=1), "f16", "only kind::i8 saturates"),
    (idesc("u8", "u8", "s32", negate=1), "i8", "negates neither"),
])
def test_wrong_instruction_descriptors(bits, kind, why):
    with pytest.raises(ptx.Error, match=why):
        mma_descriptor(bits, kind, False)


@pytest.mark.parametrize("bits,major,nbytes,why", [
    (0, "k", 2, "0b001"), (1 << 46 | 1 << 53, "k", 2, "53 to 60"),
    (1 << 46 | 3 << 61, "k", 2, "swizzling mode 3"), (1 << 46 | 1 << 52, "k", 2, "absolute"),
    (desc(swizzle="atoms"), "k", 2, "32-byte atomicity along K"),
    (desc(swizzle="atoms"), "mn", 2, "is for 32-bit elements"),
    (desc(), "mn", 4, "32-byte atomicity"),
])
def test_wrong_operand_descriptors(bits, major, nbytes, why):
    with pytest.raises(ptx.Error, match=why):
        operand_chunks(operand_descriptor(bits), 64, major, nbytes)


def test_a_wrong_descriptor_is_told_with_its_line():
    with pytest.raises(ptx.Error, match=r"PTX line \d+ \(tcgen05\.mma.*0b001"):
        multiply(program=PROGRAM.replace(MMA, "mov.u64 %a, 0;" + MMA))
    far = f"mov.u64 %a, {desc(0x30000)};"
    with pytest.raises(ptx.OutOfBounds, match="A at .* of shared memory.*correct the descriptor"):
        multiply(program=PROGRAM.replace(MMA, far + MMA))


# -- areas --------------------------------------------------------------------------------------

AREAS = st.builds(
    lambda lane, many, first, width: Area(lanes_from(lane, many), first, first + width),
    st.integers(0, 100), st.integers(1, 28), st.integers(0, 500), st.integers(1, 12),
)


def words(area):
    return {(lane, column) for lane in range(128) if area.lanes >> lane & 1
            for column in range(area.first, area.last)}


@given(AREAS, AREAS)
def test_areas(one, other):
    assert one.meets(other) == bool(words(one) & words(other))
    assert one.covers(other) == (words(other) <= words(one))


def test_an_area_in_words():
    lanes = sum(lanes_from(32 * i, 16) for i in range(2)) | 1 << 127
    assert str(Area(lanes, 3, 5)) == "lanes 0-15, 32-47, 127, columns 3-4"
