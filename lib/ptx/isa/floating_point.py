"""Floating point: add, sub, mul, fma, div, min, max, and the functions of one operand.

The approximations of the hardware (``rcp.approx``, ``ex2.approx``, ...) are computed to the last
bit here, which is within the error that PTX allows them, and not the hardware's own bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..core.decode import Decoding, float_opcode, opcode
from ..core.registers import DTYPES
from ..core.rounding import directed, fused_f64, sum_f32, to_f32
from ..core.syntax import SIZES, Register
from . import half_precision
from .elementwise import binary, unary
from .fma_f32 import FusedMultiplyAdd

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Run
    from ..core.syntax import Operand

MODES = ("rn", "rz", "rm", "rp")
_TYPES = ("f16", "f16x2", "f32", "f64", "bf16", "bf16x2", "f32x2")
F32, F64 = np.dtype("f4"), np.dtype("f8")
_LEAST_NORMAL = {2: np.float16(2.0**-14), 4: np.float32(2.0**-126), 8: np.float64(2.0**-1022)}


def flushed(x: np.ndarray) -> np.ndarray:
    """Replace subnormal values by a zero of their sign (.ftz)."""
    small = np.abs(x) < _LEAST_NORMAL[x.dtype.itemsize]
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if small.any() else x


def saturated(x: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN becomes +0 (.sat)."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def modified(d: Decoding, compute: Compute) -> Compute:
    """Put .ftz and .sat around a computation."""
    ftz, sat = d.has("ftz"), d.has("sat")
    if not ftz and not sat:
        return compute

    def around(*values: np.ndarray) -> np.ndarray:
        if ftz:
            values = tuple(flushed(v) for v in values)
        result = compute(*values)
        if ftz:
            result = flushed(result)
        return saturated(result) if sat else result

    return around


def _mode(d: Decoding) -> str:
    return d.pick(MODES, "rn")


def _half(d: Decoding, compute: Compute, operands: int) -> Run:
    if _mode(d) != "rn":
        d.unsupported("half precision rounds to nearest")
    if d.type.startswith("bf16"):
        if d.has("ftz", "sat"):
            d.unsupported("bfloat16 without .ftz and .sat")
        return half_precision.arithmetic(d, compute, operands)
    return half_precision.arithmetic(d, modified(d, compute), operands)


def _both(d: Decoding, compute: Compute, operands: int) -> Run:
    """Make the step of an operation on pairs of f32, each pair in 64 bits (sm_100)."""
    d.only(*MODES, "ftz").count(operands + 1)
    put, reads = d.write(0, "b64"), [d.read(i + 1, "b64") for i in range(operands)]

    def step(f: Batch) -> None:
        pairs = (np.ascontiguousarray(read(f.r))[..., None].view(F32) for read in reads)
        put(f.r, np.ascontiguousarray(compute(*pairs)).view(np.uint64)[..., 0])

    return step


@float_opcode("add", "sub")
def add(d: Decoding) -> Run:
    """add{.rnd}{.ftz}{.sat}.type d, a, b; sub the same."""
    d.only(*MODES, "ftz", "sat").needs(*_TYPES)
    subtract, mode = d.parts[0] == "sub", _mode(d)
    if half_precision.is_half(d):
        return _half(d, half_precision.subtract if subtract else half_precision.add, 2)

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        b = -b if subtract else b
        if a.dtype == F32:
            return sum_f32(a.astype(F64), b.astype(F64), mode)
        return directed("add", (a, b), mode, 64)

    to_nearest = np.subtract if subtract else np.add
    rounded = modified(d, to_nearest if mode == "rn" else compute)
    return _both(d, rounded, 2) if d.type == "f32x2" else binary(d, d.type, rounded)


@float_opcode("mul")
def multiply(d: Decoding) -> Run:
    """mul{.rnd}{.ftz}{.sat}.type d, a, b"""
    d.only(*MODES, "ftz", "sat").needs(*_TYPES)
    mode = _mode(d)
    if half_precision.is_half(d):
        return _half(d, np.multiply, 2)

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype == F32:
            return to_f32(a.astype(F64) * b.astype(F64), mode)
        return directed("mul", (a, b), mode, 64)

    rounded = modified(d, np.multiply if mode == "rn" else compute)
    return _both(d, rounded, 2) if d.type == "f32x2" else binary(d, d.type, rounded)


def _is_word(operand: Operand) -> bool:
    """Tell whether an operand is a register of 32 bits."""
    return isinstance(operand, Register) and SIZES[operand.type] == 4


@opcode("fma")
@float_opcode("mad")
def fused(d: Decoding) -> Run:
    """fma.rnd{.ftz}{.sat}.type d, a, b, c: one rounding"""
    if d.instruction.opcode == "fma.rn.f32" and all(map(_is_word, d.operands)):  # most of a GEMM
        to, x, y, z = (d.count(4).register(i).slot for i in range(4))
        d.writes.append(to)
        return FusedMultiplyAdd(to, (x, y, z))
    d.only(*MODES, "ftz", "sat", "relu").needs("f32x2", "f32", "f64", *half_precision.HALVES)
    d.count(4)
    mode = _mode(d)
    if d.has("relu") and not half_precision.is_half(d):
        d.unsupported(".relu with f16, bf16 and their pairs")
    if half_precision.is_half(d):
        return _half(d, half_precision.fused, 3)
    if d.type == "f64":
        put, (a, b, c) = d.write(0, "f64"), (d.read(i, "f64") for i in (1, 2, 3))
        return lambda f: put(f.r, fused_f64(a(f.r), b(f.r), c(f.r), mode))
    plain = d.type == "f32" and all(d.plain(i, "f32") for i in (1, 2, 3)) and d.plain(0, "f32")
    if plain and mode == "rn" and not d.has("ftz", "sat"):
        d.write(0, "f32")
        x, y, z = (d.slot(i, "f32") for i in (1, 2, 3))
        return FusedMultiplyAdd(d.register(0).slot, (x, y, z))

    def compute(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        product, z = x.astype(F64) * y.astype(F64), z.astype(F64)
        return sum_f32(product, z, mode)

    rounded = modified(d, compute)
    if d.type == "f32x2":
        return _both(d, rounded, 3)
    put, reads = d.write(0, "f32"), [d.read(i, "f32") for i in (1, 2, 3)]
    return lambda f: put(f.r, rounded(*(read(f.r) for read in reads)))


@float_opcode("div")
def divide(d: Decoding) -> Run:
    """div{.rnd|.approx|.full}{.ftz}.type d, a, b"""
    d.only(*MODES, "approx", "full", "ftz").needs("f32", "f64")
    mode, bits = _mode(d), 8 * DTYPES[d.type].itemsize

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return directed("div", (a, b), mode, bits)

    return binary(d, d.type, modified(d, np.divide if mode == "rn" else compute))


@float_opcode("rem")
def no_remainder(d: Decoding) -> NoReturn:
    """rem is for whole numbers."""
    d.unsupported("rem works on whole numbers")


@float_opcode("min", "max")
def extreme(d: Decoding) -> Run:
    """min, max{.ftz}{.NaN}.type d, a, b: a NaN loses unless .NaN; -0 is less than +0

    Of f32 there may be a c (sm_100), and .abs, which takes magnitudes.
    """
    d.only("ftz", "NaN", "xorsign", "abs").needs("f16", "f16x2", "f32", "f64", "bf16", "bf16x2")
    least, nan = d.parts[0] == "min", d.has("NaN")
    choose: Compute
    if nan:
        choose = np.minimum if least else np.maximum
    else:
        choose = np.fmin if least else np.fmax

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            minus = np.signbit(a) | np.signbit(b) if least else np.signbit(a) & np.signbit(b)
            zero = np.where(minus, a.dtype.type(-0.0), a.dtype.type(0.0))
            result = np.where(zeros, zero, result)
        return result

    if d.has("xorsign"):  # of the magnitudes, with the product's sign
        plain = compute

        def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            sign = np.where(np.signbit(a) ^ np.signbit(b), -1, 1).astype(a.dtype)
            return np.copysign(plain(np.abs(a), np.abs(b)), sign)

    if DTYPES[d.type] not in (F32, F64):
        return _half(d, compute, 2)
    if len(d.operands) != 4 or d.type != "f32" or d.has("xorsign"):
        return binary(d, d.type, modified(d, compute))
    magnitudes = d.has("abs")

    def of_three(*values: np.ndarray) -> np.ndarray:
        a, b, c = map(np.abs, values) if magnitudes else values
        return compute(compute(a, b), c)

    around = modified(d, of_three)
    put, reads = d.write(0, "f32"), [d.read(i, "f32") for i in (1, 2, 3)]
    return lambda f: put(f.r, around(*(read(f.r) for read in reads)))


@float_opcode("abs", "neg")
def sign(d: Decoding) -> Run:
    """abs, neg{.ftz}.type d, a: only the sign bit changes"""
    d.only("ftz").needs("f16", "f16x2", "f32", "f64", "bf16", "bf16x2")
    compute = np.abs if d.parts[0] == "abs" else np.negative
    if d.type.startswith("bf16"):  # the sign is the top bit there, too
        top = DTYPES[d.type].type(0x8000 if d.type == "bf16" else 0x80008000)
        flip = (lambda a: a & ~top) if d.parts[0] == "abs" else (lambda a: a ^ top)
        return unary(d, d.type, flip)
    if DTYPES[d.type] not in (F32, F64):
        return _half(d, compute, 1)
    return unary(d, d.type, modified(d, compute))


@opcode("copysign")
def copy_sign(d: Decoding) -> Run:
    """copysign.type d, a, b: the magnitude of b with the sign of a"""
    d.only().needs("f32", "f64")
    return binary(d, d.type, lambda a, b: np.copysign(b, a))


@opcode("testp")
def test(d: Decoding) -> Run:
    """testp.{finite,infinite,number,notanumber,normal,subnormal}.type p, a"""
    tests: dict[str, Compute] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= _LEAST_NORMAL[a.dtype.itemsize]),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < _LEAST_NORMAL[a.dtype.itemsize]),
    }
    d.only(*tests).needs("f32", "f64").count(2)
    put, a, holds = d.write(0, "pred"), d.read(1, d.type), tests[d.one_of(tests)]
    return lambda f: put(f.r, holds(a(f.r)))


# -- functions of one operand -------------------------------------------------------------------


@opcode("rcp", "sqrt")
def reciprocal_or_root(d: Decoding) -> Run:
    """rcp, sqrt{.rnd|.approx}{.ftz}.type d, a"""
    d.only(*MODES, "approx", "ftz").needs("f32", "f64")
    mode, bits = _mode(d), 8 * DTYPES[d.type].itemsize
    reciprocal = d.parts[0] == "rcp"

    def compute(a: np.ndarray) -> np.ndarray:
        if mode != "rn":
            if reciprocal:
                return directed("div", (np.ones_like(a), a), mode, bits)
            return directed("sqrt", (a,), mode, bits)
        return np.reciprocal(a) if reciprocal else np.sqrt(a)

    return unary(d, d.type, modified(d, compute))


@opcode("rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def approximate(d: Decoding) -> Run:
    """rsqrt, ex2, lg2, sin, cos, tanh.approx{.ftz}.type d, a"""
    functions: dict[str, Compute] = {
        "rsqrt": lambda a: 1 / np.sqrt(a), "ex2": np.exp2, "lg2": np.log2, "sin": np.sin,
        "cos": np.cos, "tanh": np.tanh,
    }
    packed = ("f16x2", "bf16", "bf16x2") if d.parts[0] in ("ex2", "tanh") else ()
    d.only("approx", "ftz").needs("f32", "f64", "f16", *packed)
    if not d.has("approx"):
        d.wrong("these functions need .approx")
    function = functions[d.parts[0]]
    if d.type in packed:
        return half_precision.arithmetic(d, lambda a: function(a.astype(F64)), 1)
    return unary(d, d.type, modified(d, lambda a: function(a.astype(F64)).astype(a.dtype)))
