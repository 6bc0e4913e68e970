"""Comparison and selection: setp, set, selp, slct."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from .elementwise import BITS, INTEGERS
from .floating_point import flushed
from .half_precision import half_compare

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Run

_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


def comparison(d: Decoding, kind: str) -> Compute:
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
def set_predicate(d: Decoding) -> Run:
    """setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}; set.* writes a number instead"""
    names = (*_COMPARE, *_UNORDERED, "num", "nan")
    if d.type in ("bf16", "f16x2", "bf16x2"):
        return half_compare(d.only(*names, "ftz"), comparison(d, "f16"))
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

        def as_number(f: Batch) -> None:
            holds = compare(a(f.r), b(f.r))
            if join is not None and c is not None:
                holds = join(holds, c(f.r))
            put(f.r, np.where(holds, one, DTYPES[result].type(0)))

        return as_number
    first, second = d.pair(0)
    put = d.write(first, "pred")
    if second is None and join is None:

        def simple(f: Batch) -> None:
            r = f.r
            put(r, compare(a(r), b(r)))

        return simple
    put_second = d.write(second, "pred") if second is not None else None

    def step(f: Batch) -> None:
        r = f.r
        holds = compare(a(r), b(r))
        first, second = holds, ~holds
        if join is not None and c is not None:
            other = c(r)
            first, second = join(holds, other), join(second, other)
        put(r, first)
        if put_second is not None:
            put_second(r, second)

    return step


@opcode("selp")
def select(d: Decoding) -> Run:
    """selp.type d, a, b, p: a where p, else b"""
    d.only().count(4)
    kind = d.type
    put, a, b, p = d.write(0, kind), d.read(1, kind), d.read(2, kind), d.read(3, "pred")

    def step(f: Batch) -> None:
        r = f.r
        choice = p(r)
        if choice.size == 1:
            put(r, a(r) if choice[0, 0] else b(r))
        else:
            put(r, np.where(choice, a(r), b(r)))

    return step


@opcode("slct")
def select_by_sign(d: Decoding) -> Run:
    """slct.dtype.ctype d, a, b, c: a where c >= 0, else b"""
    d.only("ftz").count(4)
    kind, sign = d.types
    put, a, b, c = d.write(0, kind), d.read(1, kind), d.read(2, kind), d.read(3, sign)
    if d.has("ftz"):
        if sign != "f32":
            d.wrong(".ftz goes with f32")
        given, c = c, lambda r: flushed(given(r))
    return lambda f: put(f.r, np.where(c(f.r) >= 0, a(f.r), b(f.r)))
