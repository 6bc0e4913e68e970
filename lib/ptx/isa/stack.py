"""alloca, stacksave, stackrestore: local memory whose size the kernel says when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.registers import DTYPES
from ..core.syntax import Immediate

if TYPE_CHECKING:
    from ..core.step import Run


@opcode("alloca")
def allocate(d: Decoding) -> Run:
    """alloca.type ptr, size{, align}: a local address"""
    d.only().needs("u32", "u64").count(2, 3)
    put, size = d.write(0, d.type), d.read(1, d.type)
    align = d.operands[2].bits if len(d.operands) == 3 and isinstance(
        d.operands[2], Immediate) else 8
    instruction, dtype = d.instruction, DTYPES[d.type]
    return lambda f: put(
        f.r, f.calls.allocate(size(f.r).astype(np.int64), align, instruction).astype(dtype)
    )


@opcode("stacksave")
def save(d: Decoding) -> Run:
    """stacksave.type d"""
    d.only().needs("u32", "u64").count(1)
    put, dtype = d.write(0, d.type), DTYPES[d.type]
    return lambda f: put(f.r, f.calls.stack.astype(dtype))


@opcode("stackrestore")
def restore(d: Decoding) -> Run:
    """stackrestore.type a"""
    d.only().needs("u32", "u64").count(1)
    read = d.read(0, d.type)
    return lambda f: f.calls.restore(read(f.r).astype(np.int64))
