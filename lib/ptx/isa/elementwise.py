"""Steps of one or two operands and a result of one type, and the types they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.decode import Decoding

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Run

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def binary(d: Decoding, kind: str, compute: Compute) -> Run:
    """Make a step of two operands and a result of one type."""
    d.count(3)
    put, a, b = d.write(0, kind), d.read(1, kind), d.read(2, kind)

    def step(f: Batch) -> None:
        r = f.r
        put(r, compute(a(r), b(r)))

    return step


def unary(d: Decoding, kind: str, compute: Compute) -> Run:
    """Make a step of one operand and a result of one type."""
    d.count(2)
    put, a = d.write(0, kind), d.read(1, kind)

    def step(f: Batch) -> None:
        r = f.r
        put(r, compute(a(r)))

    return step


BITS = ("b16", "b32", "b64")
