"""tcgen05: tensor memory, its loads and stores, its MMAs, copies and commits, and what orders them.

Layouts are held against CuTe's, as CUTLASS 4.2 gives them in bits; operands and accumulators
against index formulas, element by element; sums against `product`, which has tests of its own.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.core.tensor_memory import Area, lanes_from
from lib.ptx.isa.tcgen05_arithmetic import product, whole_product
from lib.ptx.isa.tcgen05_layouts import SHAPES, accumulator, fragment, registers_of
from lib.ptx.isa.tcgen05_operands import (
    mma_descriptor,
    operand_chunks,
    operand_descriptor,
    zero_columns,
)

from ..conftest import each_landing, function_of, s32s, u32s

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
OWN = "and.b32 %w, %warp, 3; shl.b32 %w, %w, 21; add.u32 %w, %w, %t;\n"  # address of a warp's lanes


def run(body, out, image=None, columns=64, threads=128, **options):
    image = np.zeros(16, np.uint8) if image is None else image
    given = options.pop("given", (0, 0, 0, 0))
    text = (HEAD + body + "ret; }").replace("COLUMNS", str(columns))
    return function_of(text)(
        1, threads, (image, out, np.uint32(image.size), *given), image.size, **options
    )


def kinds(launch):
    return {hazard.kind for hazard in launch.hazards}


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


def copied(shape, repeats, store, narrow, split=0):
    """Store by one shape and load by 32x32b, or the other way round; returns what was loaded."""
    many, columns = registers_of(shape, repeats), 128
    half = f", {split}" if shape == "16x32bx2" else ""
    odd = "mad.lo.u32 %r{0}, %tid, 65793, {1};"
    lines = ALLOC + OWN
    if store:  # all columns zero, then by the shape
        lines += "".join(f"mov.u32 %r{i}, 0;" for i in range(columns))
        lines += f"tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%w], {vector(columns)};"
        lines += "tcgen05.wait::st.sync.aligned;"
        lines += "".join(odd.format(i, i * 77777 + 1) for i in range(many))
        lines += (f"tcgen05.st.sync.aligned.{shape}.x{repeats}{narrow}.b32 [%w]{half}, "
                  f"{vector(many)}; tcgen05.wait::st.sync.aligned;")
        lines += f"tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {vector(columns, 128)}, [%w];"
        found = columns
    else:
        lines += "".join(odd.format(i, i * 77777 + 1) for i in range(columns))
        lines += f"tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%w], {vector(columns)};"
        lines += "tcgen05.wait::st.sync.aligned;"
        lines += (f"tcgen05.ld.sync.aligned.{shape}.x{repeats}{narrow}.b32 {vector(many, 128)}, "
                  f"[%w]{half};")
        found = many
    lines += "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %x, %tid, 512; add.u64 %x, %out, %x;"
    lines += "".join(f"st.global.b32 [%x+{4 * i}], %r{128 + i};" for i in range(found))
    out = u32s((128, 128))
    launch = run(lines + FREE, out, columns=columns, races=True)
    assert not launch.hazards
    return out[:, :found]


MOVES = [(shape, repeats, narrow) for shape in SHAPES for repeats in (1, 4, 16)
         for narrow in (False, True)]


@pytest.mark.parametrize("shape,repeats,narrow", MOVES)
def test_loads(shape, repeats, narrow):
    wide, many = 1 + narrow, registers_of(shape, repeats)
    if SHAPES[shape][1] * repeats * wide > 128:
        pytest.skip("more columns than are allocated")
    found = copied(shape, repeats, False, ".pack::16b" if narrow else "", 50)
    lane, word = fragment(shape, repeats)
    for thread in (0, 1, 2, 5, 19, 31, 32, 77, 127):
        for r in range(many):
            w = int(word[r, thread % 32])
            first = w * wide
            if shape == "16x32bx2" and w >= repeats:
                first = 50 + (w - repeats) * wide
            source = thread // 32 * 32 + int(lane[r, thread % 32])
            value = [(source * 65793 + (first + i) * 77777 + 1) & 0xFFFFFFFF for i in range(wide)]
            wanted = value[0] if not narrow else value[0] & 0xFFFF | (value[1] & 0xFFFF) << 16
            assert found[thread, r] == wanted


@pytest.mark.parametrize("shape,repeats,narrow", MOVES)
def test_stores(shape, repeats, narrow):
    wide, many = 1 + narrow, registers_of(shape, repeats)
    if SHAPES[shape][1] * repeats * wide > 128:
        pytest.skip("more columns than are allocated")
    found = copied(shape, repeats, True, ".unpack::16b" if narrow else "", 50)
    wanted = u32s((128, 128))
    lane, word = fragment(shape, repeats)
    for thread in range(128):
        for r in range(many):
            w, value = int(word[r, thread % 32]), (thread * 65793 + r * 77777 + 1) & 0xFFFFFFFF
            first = w * wide
            if shape == "16x32bx2" and w >= repeats:
                first = 50 + (w - repeats) * wide
            to = thread // 32 * 32 + int(lane[r, thread % 32])
            for i in range(wide):
                wanted[to, first + i] = value >> 16 * i & 0xFFFF if narrow else value
    assert (found == wanted).all()


@pytest.mark.parametrize("late", ["early", "late"])
def test_a_store_must_be_waited_for(late):
    body = (ALLOC + OWN + "tcgen05.st.sync.aligned.32x32b.x1.b32 [%w], %tid;"
            "tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%w];"
            "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %x, %tid, 4; add.u64 %x, %out, %x;"
            "st.global.b32 [%x], %v;" + FREE)
    out = u32s(128)
    assert not run(body, out, races=True, landing=late).hazards
    assert (out == np.arange(128)).all()
    unwaited = body.replace("tcgen05.wait::st.sync.aligned;", "")
    without = run(unwaited, out, races=True, landing=late)
    assert kinds(without) == {"tensor memory in flight"}
    hazard = without.hazards[0].message
    assert "lanes 0-31, columns 0-0" in hazard and "insert tcgen05.wait::st" in hazard
    assert (out == np.arange(128)).all() == (late == "early")


# -- allocation ---------------------------------------------------------------------------------


def test_an_allocation_is_freed():
    out = u32s(1)
    assert not run(ALLOC + FREE, out).hazards
    (hazard,) = run(ALLOC, out).hazards
    assert hazard.kind == "tensor memory" and "columns 0-63" in hazard.message
    assert "never freed" in hazard.message and "tcgen05.dealloc" in hazard.message


@pytest.mark.parametrize("columns", [0, 16, 48, 1024])
def test_columns_are_a_power_of_two(columns):
    with pytest.raises(ptx.Error, match=f"{columns} columns; it must be a power of two from 32"):
        run(ALLOC + FREE, u32s(1), columns=columns)


def test_what_was_not_allocated_is_not_freed():
    with pytest.raises(ptx.Error, match="64 columns from address 0x20 are no allocation.*64 from"):
        run(ALLOC + "add.u32 %t, %t, 32;" + FREE, u32s(1))


def test_nothing_is_allocated_after_the_permit_is_given_up():
    last = "@%p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    out = u32s(1)
    assert not run(ALLOC + last + FREE, out).hazards
    with pytest.raises(ptx.Error, match="gave up the right"):
        run(ALLOC + last + "bar.sync 0;" + ALLOC.split(";\n", 2)[1] + ";" + FREE, out)


SECOND = """setp.eq.u32 %q, %warp, 1;
@%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base+4], 256;
"""


def test_an_allocation_waits_until_there_is_room():
    body = ALLOC.replace("base;", "base[2];") + SECOND + """
    @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, COLUMNS;
    bar.sync 0; ld.shared.b32 %t, [base+4];
    @%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;"""
    head = body.replace("[base+4]", "[other]")
    for schedule in ("lowest", "highest", "random"):
        launch = run(head, u32s(1), columns=512, schedule=schedule, races=True)
        assert not launch.hazards
    stuck = ALLOC + SECOND.replace("[base+4]", "[other]") + FREE
    with pytest.raises(ptx.Deadlock, match="waits for 256 columns.*0 of 512 are free.*dealloc"):
        run(stuck, u32s(1), columns=512)


def test_allocations_may_not_grow():
    body = ALLOC + SECOND.replace("[base+4]", "[other]") + FREE + """bar.sync 0;
    ld.shared.b32 %t, [other]; @%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;"""
    (hazard,) = run(body, u32s(1)).hazards
    assert "256 columns after 64: allocations may not grow" in hazard.message


@pytest.mark.parametrize("text,why", [
    ("tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %a, %b, [%v], %i, %p;", "sparse A"),
    ("tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%d], %b, %i, %p;", "rows of A moved by one"),
    ("tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%t], %a;", "no decompression"),
    ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [%t];", "red"),
    ("tcgen05.everything.cta_group::1;", "tcgen05.{alloc,dealloc"),
])
def test_an_instruction_that_is_not_there_says_so_in_one_line(text, why):
    with pytest.raises(ptx.UnsupportedInstruction) as raised:
        run(text, u32s(1))
    assert why in str(raised.value) and "\n" not in str(raised.value)
    assert "PTX line" in str(raised.value)


def test_lanes_of_another_warp_are_out_of_reach():
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%t];"
    launch = run(ALLOC + load + FREE, u32s(1))
    (hazard,) = launch.hazards
    assert hazard.second is None and hazard.first.warp in (1, 2, 3)
    assert "reaches lanes" in hazard.message and "<< 16" in hazard.message


@pytest.mark.parametrize("address", [
    "mov.u32 %d, %t;", "add.u32 %d, %w, 8388608;", "add.u32 %d, %t, 10485760;",
], ids=["no lane", "128 too many", "of warp 1, and 128"])
def test_of_lanes_out_of_reach_the_warps_own_are_meant(address):
    """Public kernels count on it; it is told all the same."""
    store = ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%w], %tid; tcgen05.wait::st.sync.aligned;"
             + address)
    load = """tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%d]; tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %x, %tid, 4; add.u64 %out, %out, %x; st.global.u32 [%out], %v;"""
    out = u32s(128)
    launch = run(ALLOC + OWN + store + load + FREE, out)
    assert (out == np.arange(128)).all()
    assert kinds(launch) == {"tensor memory"}
    assert "reaches lanes" in launch.hazards[0].message


@pytest.mark.parametrize("offset,what", [(64, "columns 64-64; allocated are columns 0-63"),
                                         (63, None), (511, "columns 511-511")])
def test_only_what_is_allocated_is_used(offset, what):
    load = f"tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%w+{offset}];"
    launch = run(ALLOC + OWN + load + "tcgen05.wait::ld.sync.aligned;" + FREE,
                 u32s(1))
    assert [h.kind for h in launch.hazards] == ([] if what is None else ["tensor memory"])
    if what is not None:
        assert what in launch.hazards[0].message
    with pytest.raises(ptx.OutOfBounds, match="lie outside of tensor memory"):
        run(ALLOC + OWN + load.replace(f"+{offset}", "+512") + FREE, u32s(1))


def test_part_of_a_warp_is_refused():
    with pytest.raises(ptx.Divergence, match="only part of a warp"):
        run("@%one tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;",
            u32s(1))


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
AFTER = "tcgen05.fence::after_thread_sync;\n"
READ = (
    OWN + "tcgen05.ld.sync.aligned.32x32b.x64.b32 " + vector(64) + ", [%w];\n"
    "tcgen05.wait::ld.sync.aligned;\nmul.wide.u32 %x, %tid, 256; add.u64 %x, %out, %x;\n"
    + "".join(f"st.global.b32 [%x+{4 * i}], %r{i};" for i in range(64))
)
CLEAR = (  # what no product writes is stored, too
    OWN + "mov.u32 %r0, -1; tcgen05.st.sync.aligned.32x32b.x64.b32 [%w], {"
    + ", ".join(["%r0"] * 64) + "}; tcgen05.wait::st.sync.aligned;\n"
    "tcgen05.fence::before_thread_sync;\n"
)
PROGRAM = ALLOC + CLEAR + FILL + MMA + COMMIT + WAIT + AFTER + READ + FREE

BYTES = {"f16": 2, "bf16": 2, "tf32": 4}
CODES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5,
         "u8": 0, "s8": 1}
KIND = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}
RESULT = {"f16": 0, "f32": 1, "s32": 2}
# By the bytes that are swizzled; "atoms" are 128 bytes with atoms of 32.
SPAN = {0: 16, 32: 32, 64: 64, 128: 128, "atoms": 128}
MODE = {0: 0, 32: 6, 64: 4, 128: 2, "atoms": 1}


def idesc(a, b, d, m, n, trans=(0, 0), negate=(0, 0), saturate=0):
    return (saturate << 3 | RESULT[d] << 4 | CODES[a] << 7 | CODES[b] << 10 | negate[0] << 13
            | negate[1] << 14 | trans[0] << 15 | trans[1] << 16 | n // 8 << 17 | m // 16 << 24)


def desc(start, leading, stride, swizzle):
    return (start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | MODE[swizzle] << 61)


def laid_out(codes, kind, swizzle, transposed, start):
    """Put a matrix, (rows, K), where a canonical layout has it; returns bytes and descriptor.

    By the ISA's canonical layouts, element by element: T elements are 16 bytes.
    """
    nbytes = BYTES.get(kind, 1)
    rows, k_all = codes.shape
    t, atom = 16 // nbytes, SPAN[swizzle] // 16
    deep = 4 if swizzle == "atoms" else 8  # rows of K in an atom
    size = 1 << 16
    out = np.zeros(size, np.uint8)
    if transposed:
        leading = {0: 8 * 16 * (rows // t)}.get(swizzle, deep * SPAN[swizzle] * (k_all // deep))
        stride = 128 if swizzle == 0 else deep * SPAN[swizzle]
    else:
        leading = rows * 16 if swizzle == 0 else 16
        stride = 8 * SPAN[swizzle]
    bits = {"e2m3": 6, "e3m2": 6, "e2m1": 4}.get(kind)
    for r in range(rows):
        for k in range(k_all):
            if transposed and swizzle:
                at = (r % t * nbytes + r // t % atom * 16 + r // t // atom * leading
                      + k % deep * SPAN[swizzle] + k // deep * stride)
            elif transposed:
                at = r % t * nbytes + r // t * stride + k % 8 * 16 + k // 8 * leading
            else:
                at = r % 8 * SPAN[swizzle] + r // 8 * stride + k % t * nbytes + k // t * leading
            at += start
            if swizzle == "atoms":
                at ^= ((at >> 7) & 3) << 5
            else:
                at ^= ((at >> 7) & {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]) << 4
            if bits is not None:  # packed from the beginning of 16 bytes
                first, place = at // 16 * 16, at % 16 * bits
                word = int.from_bytes(out[first : first + 16].tobytes(), "little")
                word |= int(codes[r, k]) << place
                out[first : first + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
            else:
                value = int(codes[r, k]).to_bytes(nbytes, "little")
                out[at : at + nbytes] = np.frombuffer(value, np.uint8)
    return out, desc(start, leading, stride, swizzle)


def some(rng, kind, shape):
    """Encoded numbers that are finite, and not too far apart."""
    if kind in ("u8", "s8"):
        return rng.integers(0, 256, shape)
    if kind in ("e2m3", "e3m2", "e2m1"):
        return rng.integers(0, {"e2m1": 16}.get(kind, 64), shape)
    values = rng.normal(size=shape).astype(np.float32)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    if kind in ("bf16", "tf32"):
        return values.view(np.uint32) >> (16 if kind == "bf16" else 0)
    codes = rng.integers(0, 256, shape)
    return codes & 0xBF  # no NaN, no infinity


CASES = [
    ("f16", "f16", "f32", 128, 64, 128, (0, 0)), ("f16", "f16", "f16", 128, 48, 64, (0, 0)),
    ("bf16", "bf16", "f32", 64, 32, 32, (0, 0)), ("bf16", "bf16", "f32", 128, 64, 128, (1, 1)),
    ("f16", "f16", "f32", 64, 64, 64, (1, 0)), ("f16", "f16", "f32", 128, 32, 32, (0, 1)),
    ("f16", "f16", "f32", 128, 16, 0, (0, 0)), ("bf16", "bf16", "f32", 128, 24, 0, (1, 0)),
    ("tf32", "tf32", "f32", 128, 8, 0, (0, 0)), ("tf32", "tf32", "f32", 64, 40, 128, (0, 0)),
    ("e4m3", "e5m2", "f32", 128, 64, 128, (0, 0)), ("e5m2", "e4m3", "f16", 64, 64, 64, (0, 0)),
    ("e4m3", "e4m3", "f32", 128, 64, 128, (1, 1)), ("e2m1", "e3m2", "f32", 128, 16, 128, (0, 0)),
    ("e2m3", "e4m3", "f16", 128, 16, 0, (0, 0)), ("u8", "s8", "s32", 128, 48, 128, (0, 0)),
    ("s8", "s8", "s32", 64, 24, 32, (0, 0)),
    ("tf32", "tf32", "f32", 128, 64, "atoms", (1, 1)),
    ("tf32", "tf32", "f32", 64, 32, "atoms", (1, 1)),
]


def multiply(a_kind, b_kind, d, m, n, swizzle, trans, adds=0, program=PROGRAM, **options):
    """Run one mma; returns the launch, what was found in tensor memory, and A's and B's codes."""
    rng = np.random.default_rng(m * n + SPAN[swizzle])
    k = 32 // BYTES.get(a_kind, 1)
    a, b = some(rng, a_kind, (m, k)), some(rng, b_kind, (n, k))
    a_image, a_desc = laid_out(a, a_kind, swizzle, trans[0], 0)
    b_image, b_desc = laid_out(b, b_kind, swizzle, trans[1], 1 << 15)
    image = a_image | b_image
    negate, saturate = options.pop("negate", (0, 0)), options.pop("saturate", 0)
    given = (a_desc, b_desc, np.uint32(idesc(a_kind, b_kind, d, m, n, trans, negate, saturate)),
             np.uint32(adds))
    out = u32s((128, 64))
    text = program.replace("KIND", KIND.get(a_kind, "f8f6f4"))
    launch = run(text, out, image, given=given, **options)
    return launch, out, a, b


def wanted(a, b, kinds, old=None, saturate=False):
    if kinds[2] == "s32":
        return whole_product(a, b, old, kinds, saturate)
    return product(a.astype(np.uint32), b.astype(np.uint32), old, kinds)


@pytest.mark.parametrize("a_kind,b_kind,d,m,n,swizzle,trans", CASES)
def test_products(a_kind, b_kind, d, m, n, swizzle, trans):
    launch, out, a, b = multiply(a_kind, b_kind, d, m, n, swizzle, trans, races=True)
    assert not launch.hazards
    rows = np.arange(m) if m == 128 else np.arange(m) // 16 * 32 + np.arange(m) % 16
    assert (out[rows, :n] == wanted(a, b, (a_kind, b_kind, d))).all()


@each_landing
def test_a_second_mma_adds(landing):
    twice = PROGRAM.replace(MMA, MMA + "setp.eq.u32 %q, 0, 0;" + MMA)
    case = ("f16", "f16", "f32", 128, 64, 128, (0, 0))
    launch, out, a, b = multiply(*case, program=twice, races=True, landing=landing)
    kinds_ = ("f16", "f16", "f32")
    assert not launch.hazards
    assert (out == wanted(a, b, kinds_, wanted(a, b, kinds_))).all()


def test_signs_and_scales():
    case = ("f16", "f16", "f32", 128, 64, 128, (0, 0))
    _, out, a, b = multiply(*case, negate=(1, 0))
    assert (out == wanted(a ^ 0x8000, b, ("f16", "f16", "f32"))).all()
    scaled = PROGRAM.replace(MMA, MMA + "setp.eq.u32 %q, 0, 0;" + MMA.replace("%q;", "%q, 3;"))
    _, out, a, b = multiply(*case, program=scaled)
    first = wanted(a, b, ("f16", "f16", "f32"))
    codes = (a.astype(np.uint32), b.astype(np.uint32))
    assert (out == product(*codes, first, ("f16", "f16", "f32"), 3)).all()


def test_lanes_that_are_left_out_keep_what_they_have():
    zero = "".join(f"mov.u32 %r{i}, 7;" for i in range(64)) + OWN
    zero += f"tcgen05.st.sync.aligned.32x32b.x64.b32 [%w], {vector(64)};"
    zero += "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;" + AFTER
    masked = MMA.replace("%q;", "{%r100, %r101, %r102, %r103}, %q;")
    masks = "mov.u32 %r100, 5; mov.u32 %r101, 0; mov.u32 %r102, 0; mov.u32 %r103, 0x80000000;"
    program = PROGRAM.replace(MMA, zero + masks + masked)
    case = ("f16", "f16", "f32", 128, 64, 128, (0, 0))
    launch, out, a, b = multiply(*case, program=program, races=True)
    assert not launch.hazards
    full = wanted(a, b, ("f16", "f16", "f32"))
    full[[0, 2, 127]] = 7
    assert (out == full).all()
    before, _, behind = program.partition(COMMIT)
    launch, *_ = multiply(*case, program=before + COMMIT + behind.replace(WAIT, "", 1), races=True)
    assert "lanes 1, 3-126, columns 0-63" in launch.hazards[0].message


@pytest.mark.parametrize("m,n", [(32, 64), (64, 64), (128, 64), (32, 256)])
def test_weights_stationary(m, n):
    """Layouts G, E and D: columns beyond a part lie in further lanes."""
    program = PROGRAM.replace("mma.cta_group", "mma.ws.cta_group")
    launch, out, a, b = multiply("bf16", "bf16", "f32", m, n, 128, (0, 0), program=program,
                                 races=True)
    assert not launch.hazards
    full = wanted(a, b, ("bf16", "bf16", "f32"))
    parts = 128 // m
    for i in range(parts):
        each = n // parts
        assert (out[i * m : i * m + m, :each] == full[:, i * each : i * each + each]).all()
    lanes, columns = accumulator(m, n, True)
    assert len({*zip(np.broadcast_to(lanes, (m, n)).ravel().tolist(),
                     np.broadcast_to(columns, (m, n)).ravel().tolist(), strict=True)}) == m * n


def mask(starts, firsts, skip, use, shift=0, some=1):
    """A zero-column mask descriptor of parts 0 to 3."""
    return (sum(start << 8 * i | first << 32 + i for i, (start, first)
                in enumerate(zip(starts, firsts, strict=True)))
            | some << 39 | skip << 40 | use << 48 | shift << 56)


# The examples of the ISA, 9.7.16.4.3: parts of a mask from column 0 on, 1 for a zero column.
ZEROS = [
    (128, mask([0], [0], 2, 3, some=0), ["0000000000"]),
    (128, mask([0], [0], 2, 3), ["00001110000111"]),
    (64, mask([0, 0], [1, 0], 2, 3), ["11100001110000111", "00001110000111"]),
    (32, mask([0, 1, 2, 1], [1, 1, 0, 0], 2, 3, 2),
     ["11100001110000", "1100001110000", "001110000111", "0001110000111"]),
]


def stationary(m, n, limit):
    return mma_descriptor(idesc("bf16", "bf16", "f32", m, n) | limit << 30, "f16", True)


@pytest.mark.parametrize("m,bits,parts", ZEROS)
def test_zero_columns_of_the_isa(m, bits, parts):
    zero, shift = zero_columns(bits, stationary(m, 128, 3))
    wide = 128 * m // 128
    for i, part in enumerate(parts):
        assert "".join(map(str, zero[i * wide :][: len(part)].astype(int))) == part
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
    b_columns = mask([0], [0], 3, 3, 2)
    program = PROGRAM.replace(
        MMA, f"mov.u64 %x, {b_columns}; or.b32 %idesc, %idesc, 0x40000000;"
        + MMA.replace("mma.cta_group", "mma.ws.cta_group").replace("%q;", "%q, %x;"))
    rng = np.random.default_rng(8)
    a, b = some(rng, "bf16", (128, 16)), some(rng, "bf16", (72, 16))
    image, a_desc = laid_out(a, "bf16", 128, 0, 0)
    more, b_desc = laid_out(b, "bf16", 128, 0, 1 << 15)
    out = u32s((128, 64))
    given = (a_desc, b_desc, np.uint32(idesc("bf16", "bf16", "f32", 128, 64)), np.uint32(0))
    launch = run(program.replace("KIND", "f16"), out, image | more, given=given, races=True)
    assert not launch.hazards
    used = b[2:66].copy()
    used[np.arange(64) % 8 >= 4] = 0
    assert (out == wanted(a, used, ("bf16", "bf16", "f32"))).all()


@pytest.mark.parametrize("kind,m", [("bf16", 128), ("f16", 64), ("tf32", 128), ("e4m3", 128)])
def test_a_in_tensor_memory(kind, m):
    """Each lane stores its row of A, 8 words, behind D's columns."""
    take = ("mul.wide.u32 %x, %tid, 32; add.u64 %x, %image, %x;"
            + "".join(f"ld.global.b32 %r{i}, [%x+{(1 << 15) - 4096 + 4 * i}];" for i in range(8))
            + OWN + f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%w+32], {vector(8)};"
            "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
            + AFTER + "add.u32 %d, %t, 32;")
    rng = np.random.default_rng(3)
    k, n = 32 // BYTES.get(kind, 1), 32
    a, b = some(rng, kind, (m, k)), some(rng, kind, (n, k))
    image, b_desc = laid_out(b, kind, 128, 0, 1 << 15)
    rows = np.arange(m) if m == 128 else np.arange(m) // 16 * 32 + np.arange(m) % 16
    raw = np.zeros((128, 32), np.uint8)
    raw[rows] = np.ascontiguousarray(a.astype(f"u{BYTES.get(kind, 1)}")).view(np.uint8)
    image[(1 << 15) - 4096 : 1 << 15] = raw.ravel()
    program = PROGRAM.replace(MMA, take + MMA.replace("%a,", "[%d],"))
    out = u32s((128, 64))
    given = (0, b_desc, np.uint32(idesc(kind, kind, "f32", m, n)), np.uint32(0))
    text = program.replace("KIND", KIND.get(kind, "f8f6f4"))
    for landing in ("early", "late"):
        launch = run(text, out, image, given=given, races=True, landing=landing)
        assert not launch.hazards
        assert (out[rows, :n] == wanted(a, b, (kind, kind, "f32"))).all()
    # Without the fences round the barrier, the mma is not ordered behind the stores.
    for fence in ("tcgen05.fence::before_thread_sync;", AFTER.strip()):
        at = text.index(take) + take.index(fence)
        broken = text[:at] + text[at + len(fence) :]
        assert kinds(run(broken, out, image, given=given, races=True)) == {"missing tcgen05.fence"}


# -- what orders --------------------------------------------------------------------------------

CASE = ("f16", "f16", "f32", 128, 64, 128, (0, 0))


@pytest.mark.parametrize("left_out,kind,cure", [
    (WAIT, "tensor memory in flight", "tcgen05.commit on an mbarrier"),
    (AFTER, "missing tcgen05.fence", "tcgen05.fence::after_thread_sync before the second"),
])
def test_a_product_is_waited_for(left_out, kind, cure):
    before, _, behind = PROGRAM.partition(COMMIT)
    program = before + COMMIT + behind.replace(left_out, "", 1)
    launch, *_ = multiply(*CASE, program=program, races=True)
    assert kinds(launch) == {kind}
    hazard = launch.hazards[0].message
    assert cure in hazard and "lanes 0-127, columns 0-63" in hazard


def test_what_is_never_committed_is_waited_for_in_vain():
    with pytest.raises(ptx.Deadlock):
        multiply(*CASE, program=PROGRAM.replace(COMMIT, ""))


def test_late_products_are_not_there_before_they_are_waited_for():
    before, _, behind = PROGRAM.partition(COMMIT)
    program = before + COMMIT + behind.replace(WAIT, "", 1)
    _, out, a, b = multiply(*CASE, program=program, landing="late")
    assert (out == 0xFFFFFFFF).all()


def test_an_mma_behind_a_load_overwrites_what_is_read():
    """Example of 9.7.16.8.5: tcgen05.wait::ld keeps an mma from racing ahead of the load."""
    again = READ.replace("tcgen05.wait::ld.sync.aligned;\n", "LOADED") + """
    tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    @%one tcgen05.mma.cta_group::1.kind::KIND [%t], %a, %b, %idesc, %q;
    @%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
    again: mbarrier.try_wait.parity.shared::cta.b64 %more, [bar], 1; @!%more bra again;"""
    program = PROGRAM.replace(READ, again)
    right = program.replace("LOADED", "tcgen05.wait::ld.sync.aligned;")
    launch, *_ = multiply(*CASE, program=right, races=True)
    assert not launch.hazards
    launch, *_ = multiply(*CASE, program=program.replace("LOADED", ""), races=True)
    assert kinds(launch) == {"tensor memory in flight"}
    assert "tcgen05.wait::ld" in launch.hazards[0].message
    for fence in ("before", "after"):
        text = f"tcgen05.fence::{fence}_thread_sync;"
        head, _, tail = right.rpartition(text)
        launch, *_ = multiply(*CASE, program=head + tail, races=True)
        assert kinds(launch) == {"missing tcgen05.fence"}
        assert f"tcgen05.fence::{fence}_thread_sync" in launch.hazards[0].message


def test_products_of_two_shapes_are_not_ordered():
    other = "xor.b32 %idesc, %idesc, 0x180000;"  # another N
    program = PROGRAM.replace(MMA, MMA + other + MMA)
    launch, *_ = multiply(*CASE, program=program, races=True)
    assert kinds(launch) == {"tensor memory in flight"}
    assert "tcgen05.mma" in launch.hazards[0].first.opcode


def test_shared_memory_is_read_behind_a_proxy_fence():
    head, _, tail = PROGRAM.partition("fence.proxy.async;")
    launch, *_ = multiply(*CASE, program=head + tail, races=True)
    assert kinds(launch) == {"missing proxy fence"}
    assert "tcgen05.mma" in launch.hazards[0].second.opcode


def test_operands_in_shared_memory_without_a_tcgen05_fence_are_remarked_on_by_strict_launches():
    whole = PROGRAM.replace(CLEAR, "")
    head, _, tail = whole.partition(AFTER.strip())
    bare = head + tail
    for text, strict, remarks in ((bare, False, 0), (bare, True, 1), (whole, True, 0)):
        launch, *_ = multiply(*CASE, program=text, races=True, strict=strict)
        assert launch.clean and len(launch.remarks) == remarks
        for remark in launch.remarks:
            assert "9.7.16.6.3" in remark.message and "CUTLASS" in remark.message
            assert "tcgen05.mma" in remark.second.opcode and remark.message in str(launch)


def test_shared_memory_is_not_overwritten_under_an_mma():
    store = "st.shared.b32 [%s], %tid;"
    launch, *_ = multiply(*CASE, program=PROGRAM.replace(COMMIT, COMMIT + "@%one " + store),
                          races=True)
    assert kinds(launch) == {"race"}
    assert "tcgen05.commit" in ptx.advice.for_hazard(launch.hazards[0])
    launch, *_ = multiply(*CASE, program=PROGRAM.replace(AFTER + READ, AFTER + "@%one " + store
                                                         + READ), races=True)
    assert not launch.hazards


def test_an_accumulator_that_nobody_wrote():
    launch, *_ = multiply(*CASE, adds=1, program=PROGRAM.replace(CLEAR, ""))
    (hazard,) = launch.hazards
    assert hazard.kind == "tensor memory" and "enable-input-d false" in hazard.message


def test_a_descriptor_that_leaves_shared_memory():
    image = np.zeros(1 << 13, np.uint8)
    given = (desc(0, 16, 1024, 128), desc(0, 16, 1024, 128),
             np.uint32(idesc("f16", "f16", "f32", 128, 64)), np.uint32(0))
    with pytest.raises(ptx.OutOfBounds, match="A at .* of shared memory.*correct the descriptor"):
        run(PROGRAM.replace("KIND", "f16"), u32s((128, 64)), image, given=given)


# -- cp and shift -------------------------------------------------------------------------------

COPIES = [("128x256b", "", 128, 2), ("128x128b", "", 128, 1), ("64x128b", ".warpx2::02_13", 64, 1),
          ("64x128b", ".warpx2::01_23", 64, 1), ("32x128b", ".warpx4", 32, 1),
          ("4x256b", "", 4, 2)]
COPY = "@%one tcgen05.cp.cta_group::1.SHAPE [%t], %a;\n"


@each_landing
@pytest.mark.parametrize("shape,cast,rows,chunks", COPIES)
def test_copies(shape, cast, rows, chunks, landing):
    rng = np.random.default_rng(5)
    matrix = rng.integers(0, 256, (rows, 16 * chunks))
    image, found = laid_out(matrix, "u8", 0, 0, 0)
    program = PROGRAM.replace(MMA, COPY.replace("SHAPE", shape + cast))
    out = u32s((128, 64))
    launch = run(program, out, image, given=(found, 0, np.uint32(0), np.uint32(0)), races=True,
                 landing=landing)
    assert not launch.hazards
    words = matrix.astype(np.uint8).view(np.uint32)
    if rows == 4:
        assert (out[::32, :8] == words).all() and (out[1::32] == 0xFFFFFFFF).all()
        return
    lane = np.arange(128)
    source = {"warpx2::02_13": lane % 64, "warpx2::01_23": lane // 64 * 32 + lane % 32,
              "warpx4": lane % 32}.get(cast[1:], lane)
    assert (out[:, : 4 * chunks] == words[source]).all()


def test_a_copy_behind_an_mma_is_not_ordered():
    """mma → cp is no pipelined pair: what an mma reads or writes may be refilled under it."""
    copy = COPY.replace("SHAPE", "128x256b")
    launch, *_ = multiply(*CASE, program=PROGRAM.replace(MMA, MMA + copy), races=True)
    assert kinds(launch) == {"tensor memory in flight"}
    hazard = launch.hazards[0]
    assert "tcgen05.cp" in hazard.second.opcode and "columns 0-7" in hazard.message
    launch, *_ = multiply(*CASE, program=PROGRAM.replace(MMA, copy + MMA), races=True)
    assert not launch.hazards


@each_landing
def test_shift(landing):
    """Rows of each warp's lanes move by one, the last stays; mma → shift is ordered."""
    shift = "@%one tcgen05.shift.cta_group::1.down [%t];\n"
    launch, out, a, b = multiply(*CASE, program=PROGRAM.replace(MMA, MMA + shift), races=True,
                                 landing=landing)
    assert not launch.hazards
    full = wanted(a, b, ("f16", "f16", "f32"))
    shifted = full.copy()
    for first in range(0, 128, 32):
        shifted[first : first + 31, :8] = full[first + 1 : first + 32, :8]
    assert (out == shifted).all()


@each_landing
def test_what_a_shift_leaves_behind_is_renewed(landing):
    """shift → cp.4x256b is ordered, mma → cp.4x256b is not, and the lane is the address's."""
    case = ("f16", "f16", "f32", 128, 64, 128, (0, 0))
    shift = "@%one tcgen05.shift.cta_group::1.down [%t];\n"
    renew = ("cvt.u64.u32 %b, %s; shr.u64 %b, %b, 4;"
             "add.u32 %d, %t, 0x1F0000; mov.u64 %x, 0x0000400000000000; or.b64 %x, %x, %b;"
             "@%one tcgen05.cp.cta_group::1.4x256b [%d], %x;\n")
    launch, out, a, b = multiply(*case, program=PROGRAM.replace(MMA, MMA + shift + renew),
                                 races=True, landing=landing)
    assert not launch.hazards
    full = wanted(a, b, ("f16", "f16", "f32"))
    for first in range(0, 128, 32):
        assert (out[first : first + 31, :8] == full[first + 1 : first + 32, :8]).all()
        assert (out[first + 31, :8] != full[first + 31, :8]).any()
    launch, *_ = multiply(*case, program=PROGRAM.replace(MMA, MMA + renew), races=True)
    assert kinds(launch) == {"tensor memory in flight"}


def test_a_shift_from_another_lane_is_refused():
    shift = "add.u32 %d, %t, 0x200000; @%one tcgen05.shift.cta_group::1.down [%d];\n"
    with pytest.raises(ptx.UnsupportedInstruction, match="a shift from lane 32"):
        multiply("f16", "f16", "f32", 128, 64, 128, (0, 0), program=PROGRAM.replace(MMA, shift))


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
    out = s32s(2)
    kernel = function_of(CLUSTER.replace("MASK", "3"))
    launch = kernel(2, 1, (out,), races=True, landing=landing)
    assert not launch.hazards and out.tolist() == [1, 1]
    with pytest.raises(ptx.Deadlock):
        function_of(CLUSTER.replace("MASK", "1"))(2, 1, (out,), landing=landing)
    with pytest.raises(ptx.Error, match="the mask 0x4 names blocks that the cluster of 2 has not"):
        function_of(CLUSTER.replace("MASK", "4"))(2, 1, (out,))


# -- descriptors --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits,kind,why", [
    (idesc("f16", "bf16", "f32", 128, 64), "f16", "no kind::f16 of f16 and bf16"),
    (idesc("f16", "f16", "f32", 96, 64), "f16", "M = 96, N = 64"),
    (idesc("tf32", "tf32", "f16", 128, 64), "tf32", "gives D the type 0"),
    (idesc("u8", "u8", "s32", 128, 40), "i8", "M = 128, N = 40"),
    (idesc("e4m3", "e4m3", "f32", 128, 24, (0, 1)), "f8f6f4", "N = 24, transposed"),
    (idesc("f16", "f16", "f32", 128, 64) | 4, "f16", "sparse"),
    (idesc("f16", "f16", "f32", 128, 64) | 1 << 23, "f16", "reserved"),
    (idesc("f16", "f16", "f32", 128, 64, saturate=1), "f16", "only kind::i8 saturates"),
    (idesc("u8", "u8", "s32", 128, 64, negate=(1, 0)), "i8", "negates neither"),
])
def test_wrong_instruction_descriptors(bits, kind, why):
    with pytest.raises(ptx.Error, match=why):
        mma_descriptor(bits, kind, False)


@pytest.mark.parametrize("bits,why", [
    (0, "0b001"), (1 << 46 | 1 << 53, "53 to 60"), (1 << 46 | 3 << 61, "swizzling mode 3"),
    (1 << 46 | 1 << 52, "absolute"),
])
def test_wrong_operand_descriptors(bits, why):
    with pytest.raises(ptx.Error, match=why):
        operand_descriptor(bits)


@pytest.mark.parametrize("swizzle,major,nbytes,why", [
    ("atoms", "k", 2, "32-byte atomicity along K"), ("atoms", "mn", 2, "is for 32-bit elements"),
    (128, "mn", 4, "32-byte atomicity"),
])
def test_layouts_that_there_are_not(swizzle, major, nbytes, why):
    with pytest.raises(ptx.Error, match=why):
        operand_chunks(operand_descriptor(desc(0, 16, 1024, swizzle)), 64, major, nbytes)


def test_a_wrong_descriptor_is_told_with_its_line():
    program = PROGRAM.replace(MMA, "mov.u64 %a, 0;" + MMA)
    with pytest.raises(ptx.Error, match=r"PTX line \d+ \(tcgen05\.mma.*0b001"):
        multiply(*CASE, program=program)


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


def test_what_is_loaded_is_there_behind_the_wait_alone():
    """Landing late, registers hold nothing before it; another warp's wait is not its own."""
    store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%w], %tid; tcgen05.wait::st.sync.aligned;"
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 %v, [%w];"
    wait = "tcgen05.wait::ld.sync.aligned;"
    put = "mul.wide.u32 %x, %tid, 4; add.u64 %out, %out, %x; st.global.u32 [%out], %v;"
    out = u32s(128)
    run(ALLOC + OWN + store + load + wait + put + FREE, out, landing="late")
    assert (out == np.arange(128)).all()
    run(ALLOC + OWN + store + load + put + wait + FREE, out, landing="late")
    assert (out == 0xFFFFFFFF).all()
    first = f"setp.ne.u32 %q, %warp, 1; @%q bra over; {wait} over:"
    run(ALLOC + OWN + store + load + first + put + wait + FREE, out, landing="late")
    assert (out == 0xFFFFFFFF).sum() == 96 and (out[32:64] == np.arange(32, 64)).all()
