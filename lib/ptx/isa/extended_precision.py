"""Arithmetic on numbers wider than a register: what carries over goes through a flag of each lane.

The flag (CC.CF in the PTX ISA) is a register like any other here. Subtraction leaves its borrow in
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES, UNSIGNED
from ..core.syntax import SIZES
from .integer import high_product

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Reader, Run, Writer

TYPES = ("u32", "s32", "u64", "s64")


def _operands(d: Decoding, many: int) -> tuple[Writer, list[Reader]]:
    """Return the writer and the readers, which see unsigned words."""
    d.needs(*TYPES).count(many + 1)
    word = f"u{8 * SIZES[d.type]}"
    return d.write(0, word), [d.read(i + 1, word) for i in range(many)]


def _sum(
    f: Batch, d: Decoding, flag: int, takes: bool, gives: bool, put: Writer, a: np.ndarray,
    b: np.ndarray,
) -> None:
    """Write a + b, plus the flag if it is taken; set the flag if it is given."""
    total = a + b
    over = total < a
    if takes:
        carry = f.r[flag].astype(total.dtype)
        more = total + carry
        over, total = over | (more < total), more
    put(f.r, total)
    if gives:
        f.r[flag] = over


@opcode("add.cc", "addc")
def add(d: Decoding) -> Run:
    """add.cc.type d, a, b; addc{.cc}.type d, a, b"""
    d.only("cc")
    takes, gives, flag = d.parts[0] == "addc", d.has("cc"), d.registers.flag("CC.CF")
    put, (a, b) = _operands(d, 2)
    if gives:
        d.writes.append(flag)
    return lambda f: _sum(f, d, flag, takes, gives, put, a(f.r), b(f.r))


@opcode("sub.cc", "subc")
def subtract(d: Decoding) -> Run:
    """sub.cc.type d, a, b; subc{.cc}.type d, a, b"""
    d.only("cc")
    takes, gives, flag = d.parts[0] == "subc", d.has("cc"), d.registers.flag("CC.CF")
    put, (a, b) = _operands(d, 2)
    if gives:
        d.writes.append(flag)

    def step(f: Batch) -> None:
        x, y = a(f.r), b(f.r)
        rest, under = x - y, x < y
        if takes:
            borrow = f.r[flag].astype(rest.dtype)
            under, rest = under | (rest < borrow), rest - borrow
        put(f.r, rest)
        if gives:
            f.r[flag] = under

    return step


@opcode("mad.lo.cc", "mad.hi.cc", "madc")
def multiply_add(d: Decoding) -> Run:
    """mad.{hi,lo}.cc.type d, a, b, c; madc.{hi,lo}{.cc}.type d, a, b, c"""
    d.only("lo", "hi", "cc")
    takes, gives, flag = d.parts[0] == "madc", d.has("cc"), d.registers.flag("CC.CF")
    put, (a, b, c) = _operands(d, 3)
    if gives:
        d.writes.append(flag)
    high, signed = d.has("hi"), DTYPES[d.type]
    unsigned = UNSIGNED[signed.itemsize]

    def step(f: Batch) -> None:
        x, y = a(f.r), b(f.r)
        if high:
            product = high_product(x.view(signed), y.view(signed)).view(unsigned)
        else:
            product = x * y
        _sum(f, d, flag, takes, gives, put, product, c(f.r))

    return step
