"""Floating point: add, sub, mul, fma, div, min, max, comparisons, functions of one operand.

The approximations of the hardware (``rcp.approx``, ``ex2.approx``, ...) are computed to the last
bit here, which is within the error that PTX allows them, and not the hardware's own bits.
"""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Compute, Run
from ..core.decode import Decoding, float_opcode, opcode
from ..core.registers import DTYPES, joined, parted, unstacked
from ..core.rounding import (
    directed,
    from_bf16,
    fused_f64,
    odd_f32,
    repaired,
    sum_f32,
    to_bf16,
    to_f32,
)
from .fma_f32 import FusedMultiplyAdd
from .integer import BITS, INTEGERS

# -- Half precision: f16 and bf16, one value in a register or two (f16x2, bf16x2). ----------------
#
# NumPy has no bfloat16. Its values are computed in float64, rounded to odd where that is not exact,
# and then once to bfloat16, so that every result is rounded once.


HALVES = ("f16", "bf16", "f16x2", "bf16x2")
HALF, F32, F64 = np.dtype("f2"), np.dtype("f4"), np.dtype("f8")


def coded(kind: str) -> tuple[str, Compute, Compute]:
    """How numbers of a type are held: their register, what makes numbers of it, and back.

    Pairs have a last axis of 2; bfloat16 is given as float64, and rounded once to be held.
    """
    if kind == "f32x2":
        return "b64", lambda word: parted(word, F32), lambda pair: joined(pair, np.uint64)
    brain, pair = kind.startswith("bf16"), kind.endswith("x2")

    def decode(word: ndarray) -> ndarray:
        parts = parted(word, np.uint16 if brain else HALF) if pair else word
        return from_bf16(parts).astype(F64) if brain else parts

    def encode(value: ndarray) -> ndarray:
        if brain:
            value = to_bf16(odd_f32(value.astype(F64, copy=False)))
        else:
            value = value.astype(HALF, copy=False)
        return joined(value, np.uint32) if pair else value

    return "b32" if pair else kind, decode, encode


def arithmetic(d: Decoding, compute: Compute, operands: int) -> Run:
    """Make the step of an operation: `compute` rounds f16 itself, or to odd in float64."""
    (register, decode, encode), relu = coded(d.type), d.has("relu")

    def on_words(*words: ndarray) -> ndarray:
        result = compute(*map(decode, words))
        if relu:
            result = np.where(np.isnan(result) | (result > 0), result, 0)
        return encode(result)

    return d.computed(on_words, *[register] * (operands + 1))


def half_add(a: ndarray, b: ndarray) -> ndarray:
    """Add f16, or bfloat16 given as float64."""
    return a + b if a.dtype == HALF else repaired(a, b, a + b)


def half_subtract(a: ndarray, b: ndarray) -> ndarray:
    """Subtract f16, or bfloat16 given as float64."""
    return a - b if a.dtype == HALF else repaired(a, -b, a - b)


def half_fused(x: ndarray, y: ndarray, z: ndarray) -> ndarray:
    """Return x * y + z, rounded once at the end."""
    product, z = x.astype(F64) * y.astype(F64), z.astype(F64)
    total = repaired(product, z, product + z)
    return total.astype(HALF) if x.dtype == HALF else total


def half_compare(d: Decoding, holds: Compute) -> Run:
    """Make the step of setp p{|q} and set on f16x2, bf16 and bf16x2; `holds` compares numbers."""
    (register, decode, _), pairs = coded(d.type), d.type.endswith("x2")

    def compared(a: ndarray, b: ndarray) -> ndarray:
        return holds(decode(a), decode(b))

    kind = d.types[0]
    if d.parts[0] == "setp":
        targets = d.count(3).pair(0)
        puts, reads = d.write_all(targets, "pred"), d.read_all(d.operands[1:], register)
        if targets[1] is not None and not pairs:
            d.wrong("one predicate for each element")

        def step(f: Batch) -> None:
            result = compared(*reads(f.r))
            puts(f.r, unstacked(result) if pairs else [result, result])

        return step
    if kind in HALVES:
        held, _, encode = coded(kind)
        return d.computed(lambda a, b: encode(compared(a, b).astype(F64)), held, register, register)
    if kind not in ("u16", "s16", "u32", "s32"):
        d.unsupported("set to f16, bf16, their pairs, or 16 or 32 bits")
    part = np.int16 if pairs else f"i{int(kind[1:]) // 8}"

    def ones(a: ndarray, b: ndarray) -> ndarray:
        mask = np.where(compared(a, b), -1, 0).astype(part)
        return joined(mask, np.uint32) if pairs else mask

    return d.computed(ones, "b32" if pairs else kind, register, register)



# -- Floating point: add, sub, mul, fma, div, min, max, and the functions of one operand. ---------
#
# The approximations of the hardware (``rcp.approx``, ``ex2.approx``, ...) are computed to the last
# bit here, which is within the error that PTX allows them, and not the hardware's own bits.


MODES = ("rn", "rz", "rm", "rp")
_TYPES = ("f16", "f16x2", "f32", "f64", "bf16", "bf16x2", "f32x2")
_LEAST_NORMAL = {2: np.float16(2.0**-14), 4: np.float32(2.0**-126), 8: np.float64(2.0**-1022)}


def flushed(x: ndarray) -> ndarray:
    """Replace subnormal values by a zero of their sign (.ftz)."""
    small = np.abs(x) < _LEAST_NORMAL[x.dtype.itemsize]
    return np.where(small, np.copysign(0, x), x) if small.any() else x


def saturated(x: ndarray) -> ndarray:
    """Clamp to [0, 1]; NaN becomes +0 (.sat)."""
    return np.where(x > 0, np.minimum(x, 1), 0)


def modified(d: Decoding, compute: Compute) -> Compute:
    """Put .ftz and .sat around a computation."""
    ftz, sat = d.has("ftz"), d.has("sat")
    if not ftz and not sat:
        return compute

    def around(*values: ndarray) -> ndarray:
        if ftz:
            values = tuple(flushed(v) for v in values)
        result = compute(*values)
        if ftz:
            result = flushed(result)
        return saturated(result) if sat else result

    return around


def _mode(d: Decoding) -> str:
    return d.pick(MODES, "rn")


def _made(d: Decoding, compute: Compute, operands: int) -> Run:
    """Make the step of an operation: on halves, on pairs of f32 in 64 bits (sm_100), on others."""
    if d.type in HALVES:
        if _mode(d) != "rn":
            d.unsupported("half precision rounds to nearest")
        if d.type.startswith("bf16") and d.has("ftz", "sat"):
            d.unsupported("bfloat16 without .ftz and .sat")
    elif d.type == "f32x2":
        d.only(*MODES, "ftz")
    else:
        return d.alike(modified(d, compute), operands)
    return arithmetic(d, modified(d, compute), operands)


_NEAREST: dict[str, Compute] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_OF_HALVES: dict[str, Compute] = {"add": half_add, "sub": half_subtract, "mul": np.multiply}


@float_opcode(*_NEAREST)
def add(d: Decoding) -> Run:
    """add{.rnd}{.ftz}{.sat}.type d, a, b; sub and mul the same"""
    d.only(*MODES, ".ftz.sat").needs(*_TYPES)
    name, mode = d.parts[0], _mode(d)

    def compute(a: ndarray, b: ndarray) -> ndarray:
        b = -b if name == "sub" else b
        if a.dtype != F32:
            return directed("mul" if name == "mul" else "add", (a, b), mode, 64)
        a, b = a.astype(F64), b.astype(F64)
        return to_f32(a * b, mode) if name == "mul" else sum_f32(a, b, mode)

    nearest = _OF_HALVES if d.type in HALVES else _NEAREST
    return _made(d, nearest[name] if mode == "rn" else compute, 2)


@opcode("fma")
@float_opcode("mad")
def fused(d: Decoding) -> Run:
    """fma.rnd{.ftz}{.sat}.type d, a, b, c: one rounding"""
    d.only(*MODES, ".ftz.sat.relu").needs(".f32x2.f32.f64", *HALVES)
    d.count(4)
    mode = _mode(d)
    if d.has("relu") and d.type not in HALVES:
        d.unsupported(".relu with f16, bf16 and their pairs")
    if d.type in HALVES:
        return _made(d, half_fused, 3)
    if d.type == "f64":
        return d.alike(partial(fused_f64, mode=mode), 3)
    plain = d.type == "f32" and all(d.plain(i, "f32") for i in range(4))
    if plain and mode == "rn" and not d.has("ftz", "sat"):
        d.write(0, "f32")
        to, x, y, z = (d.slot(i, "f32") for i in range(4))
        return FusedMultiplyAdd(to, (x, y, z))
    return _made(d, lambda x, y, z: sum_f32(x.astype(F64) * y.astype(F64), z.astype(F64), mode), 3)


@opcode("rcp", "sqrt")
@float_opcode("div")
def divide(d: Decoding) -> Run:
    """div{.rnd|.approx|.full}{.ftz}.type d, a, b; rcp, sqrt{.rnd|.approx}{.ftz}.type d, a"""
    name, of_two = d.parts[0], d.parts[0] == "div"
    d.only(*MODES, ".approx.ftz", *["full"] * of_two).needs(".f32.f64")
    mode, bits = _mode(d), 8 * DTYPES[d.type].itemsize

    def compute(*values: ndarray) -> ndarray:
        if name == "rcp":
            values = np.ones_like(values[0]), *values
        if mode != "rn":
            return directed("sqrt" if name == "sqrt" else "div", values, mode, bits)
        return np.sqrt(*values) if name == "sqrt" else np.divide(*values)

    return d.alike(modified(d, compute), 1 + of_two)


@float_opcode("rem")
def no_remainder(d: Decoding) -> NoReturn:
    """rem is for whole numbers."""
    d.unsupported("rem works on whole numbers")


@float_opcode("min", "max")
def extreme(d: Decoding) -> Run:
    """min, max{.ftz}{.NaN}.type d, a, b: a NaN loses unless .NaN; -0 is less than +0

    Of f32 there may be a c (sm_100), and .abs, which takes magnitudes.
    """
    d.only(".ftz.NaN.xorsign.abs").needs(".f16.f16x2.f32.f64.bf16.bf16x2")
    least, of_nan = d.parts[0] == "min", (np.minimum, np.maximum)
    choose = (of_nan if d.has("NaN") else (np.fmin, np.fmax))[not least]

    def compute(a: ndarray, b: ndarray) -> ndarray:
        result = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            minus = np.signbit(a) | np.signbit(b) if least else np.signbit(a) & np.signbit(b)
            zero = np.where(minus, -0.0, 0.0).astype(a.dtype)
            result = np.where(zeros, zero, result)
        return result

    if d.has("xorsign"):  # of the magnitudes, with the product's sign
        plain = compute

        def compute(a: ndarray, b: ndarray) -> ndarray:
            sign = np.where(np.signbit(a) ^ np.signbit(b), -1, 1).astype(a.dtype)
            return np.copysign(plain(np.abs(a), np.abs(b)), sign)

    if len(d.operands) != 4 or d.type != "f32" or d.has("xorsign"):
        return _made(d, compute, 2)
    magnitudes = d.has("abs")

    def of_three(*values: ndarray) -> ndarray:
        a, b, c = map(np.abs, values) if magnitudes else values
        return compute(compute(a, b), c)

    return _made(d, of_three, 3)


@float_opcode("abs", "neg")
def sign(d: Decoding) -> Run:
    """abs, neg{.ftz}.type d, a: only the sign bit changes"""
    d.only("ftz").needs(".f16.f16x2.f32.f64.bf16.bf16x2")
    compute = np.abs if d.parts[0] == "abs" else np.negative
    if d.type.startswith("bf16"):  # the sign is the top bit there, too
        top = 0x8000 if d.type == "bf16" else 0x80008000
        flip = (lambda a: a & ~top) if d.parts[0] == "abs" else (lambda a: a ^ top)
        return d.alike(flip, 1)
    return _made(d, compute, 1)


@opcode("copysign")
def copy_sign(d: Decoding) -> Run:
    """copysign.type d, a, b: the magnitude of b with the sign of a"""
    return d.only().needs(".f32.f64").alike(lambda a, b: np.copysign(b, a), 2)


@opcode("testp")
def test(d: Decoding) -> Run:
    """testp.{finite,infinite,number,notanumber,normal,subnormal}.type p, a"""
    def is_subnormal(a: ndarray) -> ndarray:
        return (a != 0) & (np.abs(a) < _LEAST_NORMAL[a.dtype.itemsize])

    tests: dict[str, Compute] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ~is_subnormal(a),  # zeros are, says the manual
        "subnormal": is_subnormal,
    }
    d.only(*tests).needs(".f32.f64")
    return d.computed(tests[d.one_of(tests)], "pred", d.type)


# -- functions of one operand -------------------------------------------------------------------


@opcode("rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def approximate(d: Decoding) -> Run:
    """rsqrt, ex2, lg2, sin, cos, tanh.approx{.ftz}.type d, a"""
    functions: dict[str, Compute] = {
        "rsqrt": lambda a: 1 / np.sqrt(a), "ex2": np.exp2, "lg2": np.log2, "sin": np.sin,
        "cos": np.cos, "tanh": np.tanh,
    }
    packed = ("f16x2", "bf16", "bf16x2") if d.parts[0] in ("ex2", "tanh") else ()
    d.only(".approx.ftz").needs(".f32.f64.f16", *packed)
    if not d.has("approx"):
        d.wrong("these functions need .approx")
    function = functions[d.parts[0]]
    if d.type in packed:
        return arithmetic(d, lambda a: function(a.astype(F64)), 1)
    return d.alike(modified(d, lambda a: function(a.astype(F64)).astype(a.dtype)), 1)



# -- Comparison and selection: setp, set, selp, slct. ---------------------------------------------


COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}
_JOIN = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


def comparison(d: Decoding, kind: str) -> Compute:
    """Return the function that compares two arrays as the opcode says."""
    name = d.pick((*COMPARE, *_UNORDERED, "num", "nan"))
    if name in COMPARE:
        if name == "ne" and DTYPES[kind].kind == "f":  # ordered: false for NaN
            return lambda a, b: (a < b) | (a > b)
        return COMPARE[name]
    if DTYPES[kind].kind != "f":
        d.unsupported(f"comparisons of .{kind}: {' '.join(COMPARE)}")
    if name in _UNORDERED:
        ordered = COMPARE[_UNORDERED[name]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    return lambda a, b: ~(np.isnan(a) | np.isnan(b))


@opcode("setp", "set")
def set_predicate(d: Decoding) -> Run:
    """setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}; set.* writes a number instead"""
    names = (*COMPARE, *_UNORDERED, "num", "nan")
    if d.type in ("bf16", "f16x2", "bf16x2"):
        return half_compare(d.only(*names, "ftz"), comparison(d, "f16"))
    d.only(*names, *_JOIN, "ftz").needs(*INTEGERS, *BITS, ".f16.f32.f64")
    join, kinds, around = d.pick(_JOIN), [d.type, d.type], flushed if d.has("ftz") else np.asarray
    kinds += ["pred"] * (join is not None)
    d.count(1 + len(kinds))
    compare = comparison(d, d.type)

    def holds(a: ndarray, b: ndarray, *c: ndarray) -> ndarray:
        result = compare(around(a), around(b))
        return result if join is None else _JOIN[join](result, *c)

    if d.parts[0] == "set":
        dtype = DTYPES[d.types[0]]
        one = dtype.type(1) if dtype.kind == "f" else ~dtype.type(0)
        return d.computed(lambda *values: np.where(holds(*values), one, 0), d.types[0], *kinds)
    first, second = d.pair(0)
    if second is None:
        return d.computed(holds if join or d.has("ftz") else compare, "pred", *kinds)
    puts, reads = d.write_all((first, second), "pred"), [*map(d.read, (1, 2, 3), kinds)]

    def step(f: Batch) -> None:
        a, b, *c = (read(f.r) for read in reads)
        both = compare(around(a), around(b))
        puts(f.r, [each if join is None else _JOIN[join](each, *c) for each in (both, ~both)])

    return step


@opcode("selp")
def select(d: Decoding) -> Run:
    """selp.type d, a, b, p: a where p, else b"""

    def choose(a: ndarray, b: ndarray, choice: ndarray) -> ndarray:
        if choice.size == 1:
            return a if choice[0, 0] else b
        return np.where(choice, a, b)

    return d.only().computed(choose, d.type, d.type, d.type, "pred")


@opcode("slct")
def select_by_sign(d: Decoding) -> Run:
    """slct.dtype.ctype d, a, b, c: a where c >= 0, else b"""
    kind, sign = d.only("ftz").types
    if d.has("ftz") and sign != "f32":
        d.wrong(".ftz goes with f32")
    around = flushed if d.has("ftz") else np.asarray

    def compute(a: ndarray, b: ndarray, c: ndarray) -> ndarray:
        return np.where(around(c) >= 0, a, b)

    return d.computed(compute, kind, kind, kind, sign)
