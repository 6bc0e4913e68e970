"""Matrix products and moves against scalar oracles written from the ISA's index formulas."""

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core.rounding import to_float32
from tests.tables import cases

from ..conftest import each_schedule, f32s, lanewise, run, u32s


def encoded(values, kind: str) -> np.ndarray:
    """Return numbers as the bits of a type."""
    if kind == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind in ("e4m3", "e5m2"):
        codes = to_float32(np.arange(256, dtype=np.uint8), kind).tolist()
        return np.vectorize(codes.index, otypes=["u1"])(np.asarray(values, float))
    code = {"tf32": "f4", "s8": "i1", "u8": "u1", "s32": "i4"}
    return np.asarray(values).astype(code.get(kind) or f"f{int(kind[1:]) // 8}")


BITS = {"f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8,
        "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}


def in_words(values, kind: str) -> np.ndarray:
    """Elements of each lane, (32, elements), as its registers have them."""
    bits = BITS[kind]
    if bits < 8:
        parts = np.asarray(values).astype(int) & (1 << bits) - 1
        parts = parts.reshape(32, -1, 32 // bits) << np.arange(0, 32, bits)
        return parts.sum(axis=2).astype(np.uint32)
    return encoded(values, kind).view("u8" if bits == 64 else "u4")


def operand(matrix, kind: str, place) -> np.ndarray:
    """Lay a matrix out by lanes: their registers, each lane's elements by their places."""
    each = max(1, 32 // BITS[kind])
    return in_words([[matrix[place(lane, i, each)] for i in range(matrix.size // 32)]
                     for lane in range(32)], kind)


# -- mma.sync -----------------------------------------------------------------------------------


def a_place(lane: int, i: int, n: int) -> tuple[int, int]:
    """PTX ISA 9.7.14.5, the A fragments of m16n8k*; n elements a register."""
    group, member = lane >> 2, lane % 4
    register = i // n
    row = group if register % 2 == 0 else group + 8
    return row, member * n + i % n + (register // 2) * 4 * n


def b_place(lane: int, i: int, n: int) -> tuple[int, int]:
    """PTX ISA 9.7.14.5, the B fragments: (row, column)."""
    return lane % 4 * n + i % n + i // n * 4 * n, lane >> 2


def c_place(lane: int, i: int, _: int = 1) -> tuple[int, int]:
    """PTX ISA 9.7.14.5, the accumulators."""
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def random_matrices(kind: str, m: int, n: int, k: int, seed: int = 0):
    """Return whole numbers that every type holds, so that the product is exact."""
    random = np.random.default_rng(seed)
    low = 0 if kind == "u8" else -8
    return (
        random.integers(low, 9, (m, k)).astype(float),
        random.integers(low, 9, (k, n)).astype(float),
        random.integers(-9, 9, (m, n)).astype(float),
    )


def run_mma(m, n, k, kind, after, before, a, b, c, modifier="", kind_b=None, tail=""):
    """Run one mma and return D."""
    kind_b = kind_b or kind

    def place_a(lane, i, each):  # an 8-row A counts its registers along k only, as B does
        return a_place(lane, i, each) if m == 16 else b_place(lane, i, each)[::-1]

    values = encoded(np.zeros((32, m * n // 32)), after)
    lanewise(f"mma.sync.aligned.m{m}n{n}k{k}.row.col{modifier}.{after}.{kind}.{kind_b}.{before}"
             f"{tail} D, A, B, C;", values.view("u8" if kind == "f64" else "u4"),
             operand(a, kind, place_a), operand(b, kind_b, b_place), operand(c, before, c_place))
    return gathered(values, n)


def gathered(values, n: int = 8) -> np.ndarray:
    """Put D together of the elements of each lane."""
    result = np.zeros((values.size // n, n))
    for lane, of_lane in enumerate(values):
        for i, value in enumerate(of_lane):
            result[c_place(lane, i)] = value
    return result


@cases("""
m  n k  kind after before
16 8 8  f16  f16 f16
16 8 8  f16  f32 f32
16 8 16 f16  f16 f16
16 8 16 f16  f32 f32
16 8 16 f16  f32 f16
16 8 16 f16  f16 f32
16 8 8  bf16 f32 f32
16 8 16 bf16 f32 f32
16 8 4  tf32 f32 f32
16 8 8  tf32 f32 f32
16 8 16 s8   s32 s32
16 8 16 u8   s32 s32
16 8 32 s8   s32 s32
16 8 32 u8   s32 s32
8  8 16 s8   s32 s32
8  8 4  f64  f64 f64
16 8 8  f64  f64 f64
16 8 32 e4m3 f32 f32
16 8 32 e5m2 f32 f32
16 8 32 e4m3 f16 f16
16 8 16 e5m2 f32 f32
""")
def test_mma_layouts(m, n, k, kind, after, before):
    a, b, c = random_matrices(kind, m, n, k)
    assert np.array_equal(run_mma(m, n, k, kind, after, before, a, b, c), a @ b + c)


def test_mma_mixes_signs_of_bytes():
    a, b, c = random_matrices("u8", 16, 8, 32)
    got = run_mma(16, 8, 32, "s8", "s32", "s32", -a, b, c, "", "u8")
    assert np.array_equal(got, -a @ b + c)


def test_mma_wraps_or_clamps_integers():
    a, b = np.full((16, 16), 127.0), np.full((16, 8), 127.0)[:16]
    c = np.full((16, 8), 2**31 - 10.0)
    clamped = run_mma(16, 8, 16, "s8", "s32", "s32", a, b, c, ".satfinite")
    assert (clamped == 2**31 - 1).all()
    wrapped = run_mma(16, 8, 16, "s8", "s32", "s32", a, b, c)
    assert (wrapped == 2**31 - 10 + 16 * 127 * 127 - 2**32).all()


def test_mma_ignores_the_low_bits_of_tf32():
    a, b, c = np.full((16, 8), 1 + 2**-11), np.ones((8, 8)), np.zeros((16, 8))
    assert (run_mma(16, 8, 8, "tf32", "f32", "f32", a, b, c) == 8).all()


def test_f16_accumulators_round_once_an_mma():
    a, b, c = np.full((16, 16), 0.5), np.full((16, 8), 2.0**-10), np.full((16, 8), 1024.0)
    assert (run_mma(16, 8, 16, "f16", "f16", "f16", a, b, c) == 1024).all()
    b = np.full((16, 8), 2.0**-3)
    assert (run_mma(16, 8, 16, "f16", "f16", "f16", a, b, c) == 1025).all()


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("layouts", ["row.col", "row.row", "col.col", "col.row"])
def test_quad_pairs(kind, layouts):
    """mma.m8n8k4: four products, each by the lanes of a quad pair (PTX ISA 9.7.14.5.1)."""
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-8, 8, (4, *shape)).astype(float)
               for shape in ((8, 4), (4, 8), (8, 8)))
    row_a, col_b = layouts.startswith("row"), layouts.endswith("col")

    def placed(by_lane):
        """The place of an element in a matrix of one's quad pair, (row, column) or turned."""
        def place(lane, i, _):
            here, high = lane % 4, lane // 16 * 4
            row, column = (here + high, i) if by_lane else (i % 4 + high, here)
            return lane % 16 // 4, row, column

        return place

    def place_b(lane, i, _):
        matrix, column, row = placed(col_b)(lane, i, _)
        return matrix, row, column

    def place_c(lane, i, _):
        high = lane // 16 * 4
        if kind == "f16":
            return placed(True)(lane, i, _)
        return lane % 16 // 4, (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    found, wanted = (operand(one, kind, place_c) for one in (0 * c, a @ b + c))
    lanewise(f"mma.sync.aligned.m8n8k4.{layouts}.{kind}.f16.f16.{kind} D, A, B, C;", found,
             operand(a, "f16", placed(row_a)), operand(b, "f16", place_b),
             operand(c, kind, place_c))
    assert (found == wanted).all()


def test_unknown_shapes_are_named():
    with pytest.raises(ptx.UnsupportedInstruction, match="m16n8k16"):
        run(
            ".reg .f32 %f<4>; .reg .b32 %r<6>;\n"
            "mma.sync.aligned.m16n8k24.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, "
            "{%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
            parameters="",
        )


def test_part_of_a_warp_diverges():
    body = """.reg .f32 %f<4>; .reg .b32 %r<6>; .reg .pred %p; mov.u32 %r0, %tid.x;
    setp.lt.u32 %p, %r0, 16; @%p bra done;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2}, {%r3},
        {%f0,%f1,%f2,%f3};
    done:"""
    with pytest.raises(ptx.Divergence, match="warp 0 lane 0"):
        run(body, parameters="")
    with pytest.raises(ptx.Divergence, match="48 threads"):
        run(body.replace("@%p bra done;", ""), parameters="", block=48)


@each_schedule
def test_lanes_that_parted_meet_again_before_an_aligned_operation(schedule):
    """Some lanes leave the loop's body for code behind it and come back: the others wait."""
    body = """.reg .f32 %f<4>; .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
    mov.u32 %r1, 0x3C003C00; mov.u32 %r5, 0; and.b32 %r6, %r0, 3;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    loop: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r1}, {%r1},
        {%f0,%f1,%f2,%f3};
    setp.eq.u32 %p0, %r6, 1; @%p0 bra cold;
    back: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5; @%p1 bra loop;
    st.global.f32 [%d0], %f3; bra done;
    cold: add.u32 %r7, %r5, 1; bra back;
    done:"""
    out = f32s(96)
    run(body, out, block=96, schedule=schedule)
    assert (out == 5 * 8).all()


# -- ldmatrix and stmatrix ----------------------------------------------------------------------

STAGE = """.shared .align 128 .b8 s[4096]; .reg .b32 %r<40>; .reg .b64 %d<9>; .reg .pred %p<3>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r1, s;
mov.u32 %r2, 0;
fill: mad.lo.u32 %r3, %r2, 32, %r0; mul.wide.u32 %d2, %r3, 4; add.u64 %d2, %d2, %d0;
ld.global.u32 %r4, [%d2]; shl.b32 %r5, %r3, 2; add.u32 %r5, %r5, %r1; st.shared.u32 [%r5], %r4;
add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 32; @%p0 bra fill; bar.sync 0;
ld.param.u64 %d3, [where]; mul.wide.u32 %d4, %r0, 4; add.u64 %d3, %d3, %d4;
ld.global.u32 %r6, [%d3]; add.u32 %r6, %r6, %r1;
"""
LANE = np.arange(32)
PARAMETERS = ".param .u64 in, .param .u64 where, .param .u64 out"


def move(opcode: str, where, number: int, **options):
    """Run ldmatrix on 4096 bytes; returns the bytes, the registers (32, number), the launch."""
    data = np.arange(2048, dtype=np.uint16)
    out = u32s((32, number))
    registers = "{" + ", ".join(f"%r{10 + i}" for i in range(number)) + "}"
    body = STAGE + f"{opcode} {registers}, [%r6];\n"
    body += f"mul.wide.u32 %d5, %r0, {4 * number}; add.u64 %d5, %d5, %d1;\n"
    body += "".join(f"st.global.u32 [%d5+{4 * i}], %r{10 + i};\n" for i in range(number))
    where = np.asarray(where, np.uint32)
    launch = run(body, data.view(np.uint32), where, out, parameters=PARAMETERS, **options)
    return data, out.view(np.uint16).reshape(32, number, 2), launch


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix(number, trans):
    where = np.random.default_rng(0).permutation(256)[:32] * 16
    opcode = f"ldmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16"
    data, got, _ = move(opcode, where, number)
    launch = move(opcode, 16 * LANE, number)[2]
    assert launch.trace.matrix_counters()["ldmatrix_wavefronts"] == number
    for lane in range(32):
        for m in range(number):
            for i in range(2):
                row, column = lane // 4, 2 * (lane % 4) + i
                if trans:
                    row, column = column, row
                assert got[lane, m, i] == data[where[8 * m + row] // 2 + column]


@pytest.mark.parametrize("where, wavefronts", [
    (16 * LANE, 4),  # eight rows of 16 bytes fill the banks once
    (128 * (LANE % 8), 32),  # 8-way: all rows of a matrix in four banks
    (128 * (LANE % 8) + 16 * (LANE % 8 ^ LANE // 8), 4),  # swizzled
    (144 * (LANE % 8), 4),  # padded
    (64 * (LANE % 8), 16), (0 * LANE, 4),
])
def test_ldmatrix_wavefronts(where, wavefronts):
    _, _, launch = move("ldmatrix.sync.aligned.m8n8.x4.shared.b16", where, 4)
    counters = launch.trace.matrix_counters()
    assert counters["ldmatrix_instructions"] == 1
    assert counters["ldmatrix_wavefronts"] == wavefronts
    assert counters["ldmatrix_wavefronts_ideal"] == 4
    assert launch.trace.counters()["shared_load_instructions"] == 0


def test_ldmatrix_reads_only_the_addresses_it_needs():
    where = [16 * i if i < 8 else 1 << 20 for i in range(32)]
    move("ldmatrix.sync.aligned.m8n8.x1.shared.b16", where, 1)  # sm_80
    with pytest.raises(ptx.OutOfBounds):
        move("ldmatrix.sync.aligned.m8n8.x2.shared.b16", where, 2)
    with pytest.raises(ptx.Misaligned):
        move("ldmatrix.sync.aligned.m8n8.x1.shared.b16", [8] * 32, 1)


def test_ldmatrix_of_uninitialised_memory():
    body = """.shared .align 16 .b8 s[512]; .reg .b32 %r<9>; mov.u32 %r0, %laneid;
    shl.b32 %r0, %r0, 4; mov.u32 %r1, s; add.u32 %r0, %r0, %r1;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r0];"""
    with pytest.raises(ptx.UninitialisedRead):
        run(body, parameters="", strict=True)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_undoes_ldmatrix(number, trans):
    registers = "{" + ", ".join(f"%r{10 + i}" for i in range(number)) + "}"
    body = (
        STAGE
        + f"""ldmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 {registers}, [%r6];
    xor.b32 %r7, %r6, 2048;
    stmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 [%r7], {registers};
    bar.sync 0; mov.u32 %r2, 0;
    back: mad.lo.u32 %r3, %r2, 32, %r0; mul.wide.u32 %d2, %r3, 4; add.u64 %d2, %d2, %d1;
    shl.b32 %r5, %r3, 2; add.u32 %r5, %r5, %r1; ld.shared.u32 %r4, [%r5];
    st.global.u32 [%d2], %r4; add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 32; @%p0 bra back;"""
    )
    data, out = np.arange(2048, dtype=np.uint16), np.zeros(2048, np.uint16)
    where = np.random.default_rng(1).permutation(128)[:32].astype(np.uint32) * 16
    launch = run(body, data, where, out, parameters=PARAMETERS)
    expected = data.copy()
    for each in where[: 8 * number] // 2:
        expected[each + 1024 : each + 1032] = data[each : each + 8]
    assert np.array_equal(out, expected)
    assert launch.trace.matrix_counters()["stmatrix_wavefronts_ideal"] == number
    assert not run(body, data, where, out, parameters=PARAMETERS, races=True).hazards
