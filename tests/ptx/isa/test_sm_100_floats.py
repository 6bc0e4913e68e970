"""sm_100's arithmetic on pairs, three operands, and the narrowest floats."""

import numpy as np
import pytest

from lib.compiler.raw_module import RawModule
from tests.tables import cases

from ..conftest import HEAD, f32s, lanewise, u32s

RANDOM = np.random.default_rng(5)
ODD = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 2.0**-126, 448, 6.5],
               np.float32)


def some(n: int) -> np.ndarray:
    values = RANDOM.normal(size=n).astype(np.float32) * 2.0 ** RANDOM.integers(-20, 20, n)
    values[: n // 2] = RANDOM.choice(ODD, n // 2)
    return values.astype(np.float32)


def lanes(statement: str, out: np.ndarray, *given: np.ndarray):
    """Run a statement of sm_100a on a column, a lane a row."""
    lanewise(statement, out, *given, head=HEAD.replace("8.0", "8.7").replace("sm_80", "sm_100a"))
    return out


def apply(opcode: str, arrays: list[np.ndarray], kind: str = "f4") -> np.ndarray:
    """Run an opcode lane by lane on f32, alone or (u8) in pairs."""
    inputs = ", ".join(f"%{name}0" for name in "abc"[: len(arrays)])
    columns = [array.view(kind)[:, None] for array in arrays]
    return lanes(f"{opcode} %d0, {inputs};", np.zeros_like(columns[0]), *columns)


@cases("""
opcode     operands
add        2
add.rz     2
sub.rn.ftz 2
mul        2
mul.rp     2
fma.rn     3
fma.rm.ftz 3
""")
def test_pairs_are_two_of_one(opcode, operands):
    arrays = [some(128) for _ in range(operands)]
    pairs = apply(f"{opcode}.f32x2", arrays, "u8")
    assert pairs.tobytes() == apply(f"{opcode}.f32", arrays).tobytes()


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("words", ["", ".NaN", ".ftz"])
def test_three_operands_are_two_and_one(name, words):
    a, b, c = (some(128) for _ in range(3))
    two = apply(f"{name}{words}.f32", [apply(f"{name}{words}.f32", [a, b]), c])
    assert apply(f"{name}{words}.f32", [a, b, c]).tobytes() == two.tobytes()
    magnitudes = apply(f"{name}{words}.abs.f32", [a, b, c])
    of_abs = apply(f"{name}{words}.f32", [np.abs(v) for v in (a, b, c)])
    assert magnitudes.tobytes() == of_abs.tobytes()


@pytest.mark.parametrize("opcode,reduce", [
    ("min", np.fmin), ("max", np.fmax), ("min.NaN", np.minimum), ("max.abs", np.fmax)])
def test_redux(opcode, reduce):
    values = some(32)
    for given in (values, np.abs(ODD[[3, 4, 7]]).repeat(11)[:32], ODD[[0, 1]].repeat(16)):
        out = lanes(f"redux.sync.{opcode}.f32 %d0, %a0, -1;", f32s((32, 1)), given[:, None])[:, 0]
        inputs = np.abs(given) if "abs" in opcode else given
        expected = reduce.reduce(inputs)
        assert np.array_equal(out, np.full(32, expected), equal_nan=True)
        if (inputs == 0).all():
            minus = np.signbit(inputs)
            assert np.signbit(out[0]) == (minus.any() if "min" in opcode else minus.all())


NARROW = r"""
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
extern "C" __global__ void k(const float2* in, unsigned* out, int n)
{
    const int i = threadIdx.x;
    const float2 v = in[i];
    unsigned* o = out + 13 * i;
    const __nv_bfloat162_raw b = __float22bfloat162_rn(v);
    o[0] = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest);
    o[1] = __nv_cvt_float2_to_fp6x2(v, __NV_E2M3, cudaRoundNearest);
    o[2] = __nv_cvt_float2_to_fp6x2(v, __NV_E3M2, cudaRoundNearest);
    o[3] = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundZero);
    o[4] = __nv_cvt_float2_to_e8m0x2(v, __NV_NOSAT, cudaRoundPosInf);
    o[5] = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundPosInf);
    o[6] = __nv_cvt_bfloat162raw_to_e8m0x2(b, __NV_SATFINITE, cudaRoundPosInf);
    o[7] = __nv_cvt_bfloat162raw_to_e8m0x2(b, __NV_NOSAT, cudaRoundZero);
    for (int j = 0; j < 3; ++j) {
        const auto six = j == 1 ? __NV_E2M3 : __NV_E3M2;
        const __half2_raw h = j == 0 ? __nv_cvt_fp4x2_to_halfraw2(i, __NV_E2M1)
            : __nv_cvt_fp6x2_to_halfraw2((i & 63) << 8 | (i * 7 & 63), six);
        o[8 + j] = h.y << 16 | h.x;
    }
    const __nv_bfloat162_raw s = __nv_cvt_e8m0x2_to_bf162raw(i << 8 | (255 - i));
    o[11] = s.y << 16 | s.x;
    o[12] = 0;
}
"""


def test_the_narrowest_floats_as_the_headers_compute_them():
    """What CUDA's headers do by instructions on sm_100a and by whole numbers on sm_90."""
    values = some(512)
    values[:64] = (np.arange(64) / 8).astype(np.float32)  # ties of all three formats
    results, texts = [], []
    for arch in ("sm_90", "sm_100a"):
        out = u32s((256, 13))
        module = RawModule(code=NARROW, arch=arch)
        module.get_function("k")(1, 256, (values, out, 256), trace=False)
        results.append(out)
        texts.append(module.ptx)
    for instruction in ("e2m1x2.f32", "e2m3x2.f32", "rp.ue8m0x2.f32", "bf16x2.ue8m0x2",
                        "f16x2.e3m2x2", "satfinite.ue8m0x2.bf16x2"):
        assert instruction in texts[1] and instruction not in texts[0]
    wrong = np.argwhere(results[0] != results[1])
    assert not len(wrong), [(i, j, values[2 * i : 2 * i + 2], hex(results[0][i, j]),
                             hex(results[1][i, j])) for i, j in wrong[:5]]


@pytest.mark.parametrize("mode,expected", [
    ("rz", [0x3F80, 0xBF80]), ("rp", [0x3F81, 0xBF80]), ("rm", [0x3F80, 0xBF81]),
    ("rn", [0x3F80, 0xBF80])])
def test_directed_rounding_to_bf16(mode, expected):
    given = np.array([[1 + 2.0**-10], [-1 - 2.0**-10]], np.float32)
    out = lanes(f"cvt.{mode}.bf16.f32 %d0, %a0;", np.zeros((2, 1), np.uint16), given)
    assert out.ravel().tolist() == expected


@pytest.mark.parametrize("kind,largest", [("f16", 0x7BFF), ("bf16", 0x7F7F)])
def test_satfinite(kind, largest):
    given = np.array([[-np.inf, 1e38 if kind == "f16" else np.float32(3.4028235e38)]], np.float32)
    out = lanes(f"cvt.rn.satfinite.{kind}x2.f32 %d0, %a1, %a0;", u32s((1, 1)), given)
    assert out.view(np.uint16).ravel().tolist() == [0x8000 | largest, largest]
