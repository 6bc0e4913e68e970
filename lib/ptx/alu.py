"""Whole numbers, bits, comparisons and moves: one function an opcode.

Each returns what runs on whole registers; NumPy's integers wrap as a GPU's do.
"""

from __future__ import annotations

import numpy as np

from .decode import CLOCKS, DTYPES, UNSIGNED, Decoding, opcode
from .parser import SIZES, Symbol, Vector

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def is_float(d: Decoding) -> bool:
    """Tell whether an instruction works on floating-point values (see floats.py)."""
    return d.type in FLOATS


def binary(d: Decoding, kind: str, compute):
    """Make a step of two operands and a result of one type."""
    d.count(3)
    put, a, b = d.write(0, kind), d.read(1, kind), d.read(2, kind)

    def step(f):
        r = f.r
        put(r, compute(a(r), b(r)))

    return step


def unary(d: Decoding, kind: str, compute):
    """Make a step of one operand and a result of one type."""
    d.count(2)
    put, a = d.write(0, kind), d.read(1, kind)

    def step(f):
        r = f.r
        put(r, compute(a(r)))

    return step


def float_opcode(d: Decoding):
    """Hand an instruction on a floating-point type over to floats.py."""
    from . import floats

    return floats.OPCODES[d.parts[0]](d)


@opcode("add")
def add(d: Decoding):
    """add.type d, a, b; add.sat.s32 clamps."""
    if is_float(d):
        return float_opcode(d)
    return _sum(d, np.add)


@opcode("sub")
def subtract(d: Decoding):
    """sub.type d, a, b; sub.sat.s32 clamps."""
    if is_float(d):
        return float_opcode(d)
    return _sum(d, np.subtract)


def _sum(d: Decoding, compute):
    if d.has("cc"):
        d.unsupported("no carry (.cc)")
    d.only("sat").needs(*INTEGERS)
    if not d.has("sat"):
        return binary(d, d.type, compute)
    if d.type != "s32":
        d.unsupported(".sat goes with s32")

    def clamped(a, b):
        exact = compute(a.astype(np.int64), b.astype(np.int64))
        return np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)

    return binary(d, "s32", clamped)


def high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper half of a product, for integers of any width."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * size}")
        return ((a.astype(wide) * b.astype(wide)) >> (8 * size)).astype(a.dtype)
    # 64 bits: in halves of 32, as by hand.
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "u":
        return high
    zero = np.uint64(0)
    high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return high.view(np.int64)


def _product(d: Decoding):
    """Return the type of a product and the function that computes it from factors."""
    d.needs(*INTEGERS)
    mode = d.pick(("lo", "hi", "wide"))
    if mode == "lo":
        return d.type, np.multiply
    if mode == "hi":
        return d.type, high_product
    if mode != "wide" or d.type not in WIDER:
        d.unsupported("mul takes .lo, .hi or (up to 32 bits) .wide")
    wide = DTYPES[WIDER[d.type]]
    return WIDER[d.type], lambda a, b: np.multiply(a, b, dtype=wide)


@opcode("mul")
def multiply(d: Decoding):
    """mul.{lo,hi,wide}.type d, a, b"""
    if is_float(d):
        return float_opcode(d)
    d.only("lo", "hi", "wide").count(3)
    kind, compute = _product(d)
    put, a, b = d.write(0, kind), d.read(1, d.type), d.read(2, d.type)
    return lambda f: put(f.r, compute(a(f.r), b(f.r)))


@opcode("mad")
def multiply_add(d: Decoding):
    """mad.{lo,hi,wide}.type d, a, b, c; mad.f32 is fma."""
    if is_float(d):
        return float_opcode(d)
    d.only("lo", "hi", "wide", "sat").count(4)
    if d.has("sat"):
        d.unsupported("mad without .sat")
    kind, compute = _product(d)
    put, a, b, c = d.write(0, kind), d.read(1, d.type), d.read(2, d.type), d.read(3, kind)
    return lambda f: put(f.r, compute(a(f.r), b(f.r)) + c(f.r))


@opcode("mul24", "mad24")
def multiply_24(d: Decoding):
    """mul24.lo, mad24.lo: products of the low 24 bits."""
    d.only("lo").needs("u32", "s32").count(3 if d.parts[0] == "mul24" else 4)
    put, a, b = d.write(0, d.type), d.read(1, d.type), d.read(2, d.type)
    c = d.read(3, d.type) if d.parts[0] == "mad24" else None
    short = DTYPES[d.type].type(8)

    def step(f):
        x, y = (a(f.r) << short) >> short, (b(f.r) << short) >> short
        put(f.r, x * y if c is None else x * y + c(f.r))

    return step


@opcode("sad")
def absolute_difference(d: Decoding):
    """sad.type d, a, b, c: |a - b| + c"""
    d.only().needs(*INTEGERS).count(4)
    put, a, b, c = d.write(0, d.type), *(d.read(i, d.type) for i in (1, 2, 3))

    def step(f):
        x, y = a(f.r), b(f.r)
        put(f.r, np.where(x > y, x - y, y - x) + c(f.r))

    return step


@opcode("dp4a")
def dot_product(d: Decoding):
    """dp4a.atype.btype d, a, b, c: four products of bytes, and c."""
    d.only().count(4)
    signs = [DTYPES[t].kind for t in d.types]
    kind = "s32" if "i" in signs else "u32"
    put, c = d.write(0, kind), d.read(3, kind)
    a, b = d.read(1, "b32"), d.read(2, "b32")

    def step(f):
        x, y = (np.ascontiguousarray(v(f.r))[..., None] for v in (a, b))
        x, y = x.view(f"{signs[0]}1").astype(np.int64), y.view(f"{signs[1]}1").astype(np.int64)
        put(f.r, (np.sum(x * y, axis=-1) + c(f.r)).astype(DTYPES[kind]))

    return step


@opcode("div", "rem")
def divide(d: Decoding):
    """div.type, rem.type: rounds towards zero; a division by zero gives all ones, and a."""
    if is_float(d):
        return float_opcode(d)
    d.only().needs(*INTEGERS)
    remainder = d.parts[0] == "rem"

    def quotient(a, b):
        if a.dtype.kind == "i":
            q = np.floor_divide(a, b)
            q = q + ((q * b != a) & ((a < 0) != (b < 0)))  # floor to truncation
        else:
            q = np.floor_divide(a, b)
        return np.where(b == 0, ~np.zeros_like(q), q)

    def rest(a, b):
        return np.where(b == 0, a, a - quotient(a, b) * b)

    return binary(d, d.type, rest if remainder else quotient)


@opcode("abs")
def absolute(d: Decoding):
    """abs.type d, a"""
    if is_float(d):
        return float_opcode(d)
    d.only().needs("s16", "s32", "s64")
    return unary(d, d.type, np.abs)


@opcode("neg")
def negate(d: Decoding):
    """neg.type d, a"""
    if is_float(d):
        return float_opcode(d)
    d.only().needs("s16", "s32", "s64")
    return unary(d, d.type, np.negative)


@opcode("min", "max")
def extreme(d: Decoding):
    """min.type, max.type d, a, b"""
    if is_float(d):
        return float_opcode(d)
    d.only().needs(*INTEGERS)
    return binary(d, d.type, np.minimum if d.parts[0] == "min" else np.maximum)


# -- bits ---------------------------------------------------------------------------------------

BITS = ("b16", "b32", "b64")


@opcode("and", "or", "xor")
def bitwise(d: Decoding):
    """and, or, xor on bits or predicates."""
    d.only().needs("pred", *BITS)
    compute = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[d.parts[0]]
    return binary(d, d.type, compute)


@opcode("not")
def invert(d: Decoding):
    """not.type d, a"""
    d.only().needs("pred", *BITS)
    return unary(d, d.type, np.invert)


@opcode("cnot")
def c_not(d: Decoding):
    """cnot.type d, a: 1 if a is 0, else 0"""
    d.only().needs(*BITS)
    return unary(d, d.type, lambda a: (a == 0).astype(a.dtype))


@opcode("shl", "shr")
def shift(d: Decoding):
    """shl, shr: amounts past the width are clamped to it."""
    d.only().needs(*BITS, *INTEGERS).count(3)
    put, a, by = d.write(0, d.type), d.read(1, d.type), d.read(2, "b32")
    dtype = DTYPES[d.type]
    width = 8 * dtype.itemsize
    left = d.parts[0] == "shl"
    move = np.left_shift if left else np.right_shift
    # Past the width zeros come in, or copies of the sign.
    arithmetic = dtype.kind == "i" and not left
    most = np.uint32(width - 1)

    def step(f):
        r = f.r
        amount = by(r)
        if amount.size == 1:
            n = int(amount[0, 0])
            if n >= width:
                if not arithmetic:
                    put(r, np.zeros((1, 1), dtype))
                    return
                n = width - 1
            put(r, move(a(r), dtype.type(n)))
            return
        result = move(a(r), np.minimum(amount, most).astype(dtype))
        put(r, result if arithmetic else np.where(amount > most, dtype.type(0), result))

    return step


@opcode("shf")
def funnel_shift(d: Decoding):
    """shf.{l,r}.{clamp,wrap}.b32 d, a, b, c: shifts the 64 bits b:a"""
    d.only("l", "r", "clamp", "wrap").needs("b32").count(4)
    put, a, b, by = d.write(0, "b32"), *(d.read(i, "b32") for i in (1, 2, 3))
    left, wrap = d.has("l"), d.has("wrap")
    if not d.has("clamp", "wrap"):
        d.wrong("shf needs .clamp or .wrap")

    def step(f):
        r = f.r
        n = (by(r) & np.uint32(31) if wrap else np.minimum(by(r), np.uint32(32))).astype(np.uint64)
        both = (b(r).astype(np.uint64) << np.uint64(32)) | a(r)
        moved = (both << n) >> np.uint64(32) if left else both >> n
        put(r, moved.astype(np.uint32))

    return step


@opcode("lop3")
def logic_3(d: Decoding):
    """lop3.b32 d, a, b, c, table: any function of three bits"""
    d.only().needs("b32").count(5)
    put, a, b, c = d.write(0, "b32"), *(d.read(i, "b32") for i in (1, 2, 3))
    table = d.operands[4].bits
    if not 0 <= table <= 255:
        d.wrong("the table has 8 bits")

    def step(f):
        x, y, z = a(f.r), b(f.r), c(f.r)
        result = np.zeros((1, 1), np.uint32)
        for row in range(8):
            if table >> row & 1:
                result = result | (
                    (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
                )
        put(f.r, result)

    return step


@opcode("prmt")
def permute(d: Decoding):
    """prmt.b32{.mode} d, a, b, c: picks four of eight bytes"""
    modes = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    d.only(*modes).needs("b32").count(4)
    put, a, b, c = d.write(0, "b32"), *(d.read(i, "b32") for i in (1, 2, 3))
    mode = d.pick(modes)
    tables = {
        "f4e": [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]],
        "b4e": [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]],
        "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
        "ecl": [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]],
        "ecr": [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]],
        "rc16": [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]],
    }  # each row from the highest byte to the lowest

    def step(f):
        both = (b(f.r).astype(np.uint64) << np.uint64(32)) | a(f.r)
        control = c(f.r)
        result = np.zeros((1, 1), np.uint32)
        for place in range(4):
            if mode is None:
                select = (control >> np.uint32(4 * place)) & np.uint32(15)
            else:
                column = np.array([row[3 - place] for row in tables[mode]], np.uint32)
                select = column[control & np.uint32(3)]
            byte = (both >> (np.uint64(8) * (select & np.uint32(7)))) & np.uint64(255)
            sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            byte = np.where(select & np.uint32(8), sign, byte).astype(np.uint32)
            result = result | (byte << np.uint32(8 * place))
        put(f.r, result)

    return step


@opcode("bfe")
def extract(d: Decoding):
    """bfe.type d, a, b, c: c bits of a from bit b, extended by the sign for signed types"""
    d.only().needs("u32", "s32", "u64", "s64").count(4)
    kind = d.type
    put, a, b, c = d.write(0, kind), d.read(1, kind), d.read(2, "u32"), d.read(3, "u32")
    dtype, width = DTYPES[kind], SIZES[kind] * 8
    signed, u = dtype.kind == "i", UNSIGNED[SIZES[kind]].type

    def step(f):
        x = a(f.r)
        start, length = (v(f.r) & np.uint32(255) for v in (b, c))
        start, length = np.minimum(start, 256).astype(np.int64), length.astype(np.int64)
        bits = x.view(UNSIGNED[SIZES[kind]])
        inside = np.where(start < width, bits >> np.minimum(start, width - 1).astype(u), u(0))
        kept = np.minimum(length, width)
        mask = np.where(kept > 0, u(2**width - 1) >> (width - np.maximum(kept, 1)).astype(u), u(0))
        field = inside & mask
        if signed:
            top = np.minimum(start + length - 1, width - 1)
            sign = (bits >> np.maximum(top, 0).astype(u)) & u(1)
            field = np.where((length > 0) & (sign == 1), field | ~_have(mask, start, width, u), field)
        put(f.r, field.astype(u).view(dtype))

    return step


def _have(mask, start, width, u):
    """Return the bits of a field that come from inside of the operand."""
    room = np.maximum(width - start, 0)
    inside = np.where(room > 0, u(2**width - 1) >> (width - np.maximum(room, 1)).astype(u), u(0))
    return mask & inside


@opcode("bfi")
def insert(d: Decoding):
    """bfi.type f, a, b, c, e: e bits of a into b at bit c"""
    d.only().needs("b32", "b64").count(5)
    kind = d.type
    put, a, b = d.write(0, kind), d.read(1, kind), d.read(2, kind)
    c, e = d.read(3, "u32"), d.read(4, "u32")
    width, u = SIZES[kind] * 8, DTYPES[kind].type

    def step(f):
        start = (c(f.r) & np.uint32(255)).astype(np.int64)
        length = np.minimum((e(f.r) & np.uint32(255)).astype(np.int64), width)
        ones = np.where(length > 0, u(2**width - 1) >> (width - np.maximum(length, 1)).astype(u), u(0))
        at = np.minimum(start, width - 1).astype(u)
        mask = np.where(start < width, ones << at, u(0))
        put(f.r, ((a(f.r) << at) & mask) | (b(f.r) & ~mask))

    return step


@opcode("popc")
def population(d: Decoding):
    """popc.type d, a: the number of ones"""
    d.only().needs("b32", "b64").count(2)
    put, a = d.write(0, "u32"), d.read(1, d.type)
    return lambda f: put(f.r, np.bitwise_count(a(f.r)).astype(np.uint32))


def _smear(x: np.ndarray) -> np.ndarray:
    """Set every bit below the highest one."""
    for distance in (1, 2, 4, 8, 16, 32)[: x.dtype.itemsize.bit_length() + 2]:
        x = x | (x >> x.dtype.type(distance))
    return x


@opcode("clz")
def leading_zeros(d: Decoding):
    """clz.type d, a"""
    d.only().needs("b32", "b64").count(2)
    put, a, width = d.write(0, "u32"), d.read(1, d.type), np.uint32(SIZES[d.type] * 8)
    return lambda f: put(f.r, width - np.bitwise_count(_smear(a(f.r))).astype(np.uint32))


@opcode("bfind")
def find_leading(d: Decoding):
    """bfind{.shiftamt}.type d, a: the highest bit that differs from the sign"""
    d.only("shiftamt").needs("u32", "s32", "u64", "s64").count(2)
    put, a, width = d.write(0, "u32"), d.read(1, d.type), SIZES[d.type] * 8
    amount = d.has("shiftamt")

    def step(f):
        x = a(f.r)
        bits = np.where(x < 0, ~x, x).view(UNSIGNED[SIZES[d.type]])
        place = np.bitwise_count(_smear(bits)).astype(np.uint32) - np.uint32(1)
        found = bits != 0
        if amount:
            place = np.uint32(width - 1) - place
        put(f.r, np.where(found, place, np.uint32(0xFFFFFFFF)))

    return step


@opcode("brev")
def reverse(d: Decoding):
    """brev.type d, a: the bits in reverse"""
    d.only().needs("b32", "b64")

    def backwards(a):
        u, width = a.dtype.type, 8 * a.dtype.itemsize
        for distance in (1, 2, 4, 8, 16, 32)[: width.bit_length() - 1]:
            pattern = sum(((1 << distance) - 1) << at for at in range(0, width, 2 * distance))
            n, mask = u(distance), u(pattern)
            a = ((a >> n) & mask) | ((a & mask) << n)
        return a

    return unary(d, d.type, backwards)


# -- comparisons --------------------------------------------------------------------------------

_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


def comparison(d: Decoding, kind: str):
    """Return the function that compares two arrays as the opcode says."""
    name = d.pick((*_COMPARE, *_UNORDERED, "num", "nan"))
    if name in _COMPARE:
        if name == "ne" and DTYPES[kind].kind == "f":  # ordered: false for NaN
            return lambda a, b: (a < b) | (a > b)
        return _COMPARE[name]
    if DTYPES[kind].kind != "f":
        d.unsupported(f"comparisons of .{kind}: {' '.join(_COMPARE)}")
    if name in _UNORDERED:
        ordered = _COMPARE[_UNORDERED[name]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    return lambda a, b: ~(np.isnan(a) | np.isnan(b))


@opcode("setp", "set")
def set_predicate(d: Decoding):
    """setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}; set.* writes a number instead"""
    from .floats import flushed

    names = (*_COMPARE, *_UNORDERED, "num", "nan")
    d.only(*names, "and", "or", "xor", "ftz").needs(*INTEGERS, *BITS, "f16", "f32", "f64")
    join = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, None: None}[
        d.pick(("and", "or", "xor"))
    ]
    d.count(3 if join is None else 4)
    kind = d.type
    a, b, compare = d.read(1, kind), d.read(2, kind), comparison(d, kind)
    c = d.read(3, "pred") if join is not None else None
    if d.has("ftz"):
        wa, wb = a, b
        a, b = (lambda r: flushed(wa(r))), (lambda r: flushed(wb(r)))
    if d.parts[0] == "set":
        result = d.types[0]
        put = d.write(0, result)
        one = DTYPES[result].type(1) if DTYPES[result].kind == "f" else ~DTYPES[result].type(0)

        def as_number(f):
            holds = compare(a(f.r), b(f.r))
            if join is not None:
                holds = join(holds, c(f.r))
            put(f.r, np.where(holds, one, DTYPES[result].type(0)))

        return as_number
    first, second = d.pair(0)
    put = d.write(first, "pred")
    if second is None and join is None:

        def simple(f):
            r = f.r
            put(r, compare(a(r), b(r)))

        return simple
    put_second = d.write(second, "pred") if second is not None else None

    def step(f):
        r = f.r
        holds = compare(a(r), b(r))
        other = c(r) if join is not None else None
        put(r, holds if join is None else join(holds, other))
        if put_second is not None:
            put_second(r, ~holds if join is None else join(~holds, other))

    return step


@opcode("selp")
def select(d: Decoding):
    """selp.type d, a, b, p: a where p, else b"""
    d.only().count(4)
    kind = d.type
    put, a, b, p = d.write(0, kind), d.read(1, kind), d.read(2, kind), d.read(3, "pred")

    def step(f):
        r = f.r
        choice = p(r)
        if choice.size == 1:
            put(r, a(r) if choice[0, 0] else b(r))
        else:
            put(r, np.where(choice, a(r), b(r)))

    return step


@opcode("slct")
def select_by_sign(d: Decoding):
    """slct.dtype.ctype d, a, b, c: a where c >= 0, else b"""
    d.only("ftz").count(4)
    kind, sign = d.types
    put, a, b, c = d.write(0, kind), d.read(1, kind), d.read(2, kind), d.read(3, sign)
    return lambda f: put(f.r, np.where(c(f.r) >= 0, a(f.r), b(f.r)))


# -- moves --------------------------------------------------------------------------------------


@opcode("mov")
def move(d: Decoding):
    """mov.type d, a; d or a may be braces, which pack and unpack"""
    d.only().count(2)
    kind, source = d.type, d.operands[1]
    if isinstance(d.operands[0], Vector) or isinstance(source, Vector):
        return _repack(d)
    put = d.write(0, kind)
    if isinstance(source, Symbol) and source.name in CLOCKS:
        return _read_clock(d, put, source.name)
    read = d.read(1, kind)

    def step(f):
        r = f.r
        put(r, read(r))

    return step


def _read_clock(d: Decoding, put, name: str):
    """Clocks count the instructions that the emulator has run: steps, which are not time."""
    kind, high = d.type, name.endswith("_hi")

    def step(f):
        steps = f.steps + d.index
        value = steps >> 32 if high else steps
        bits = value & (1 << 8 * SIZES[kind]) - 1
        put(f.r, np.full((1, 1), bits, UNSIGNED[SIZES[kind]]))

    return step


def _repack(d: Decoding):
    """mov.b64 {lo, hi}, d and mov.b64 d, {lo, hi}, in 2 or 4 parts."""
    kind = d.type
    whole = UNSIGNED[SIZES[kind]]
    items = d.vector(0) if isinstance(d.operands[0], Vector) else d.vector(1)
    size, odd = divmod(SIZES[kind], len(items))
    if odd or size not in (1, 2, 4):
        d.wrong("braces hold 2 or 4 equal parts")
    part, bits = UNSIGNED[size], f"b{8 * size}"
    shifts = [whole.type(8 * size * i) for i in range(len(items))]
    if isinstance(d.operands[0], Vector):
        puts, a = [d.write(item, bits) for item in items], d.read(1, kind)

        def unpack(f):
            value = a(f.r).view(whole)
            for put, by in zip(puts, shifts, strict=True):
                put(f.r, (value >> by).astype(part))

        return unpack
    put, reads = d.write(0, kind), [d.read(item, bits) for item in items]

    def pack(f):
        result = None
        for read, by in zip(reads, shifts, strict=True):
            piece = read(f.r).astype(whole) << by
            result = piece if result is None else result | piece
        put(f.r, result)

    return pack


