"""Video instructions: whole numbers taken from bytes and half words, and two or four at once.

Scalar: ``vop.dtype.atype.btype{.sat}{.op2} d{.sel}, a{.asel}, b{.bsel}{, c}``. In parallel: vop2 on
half words, vop4 on bytes, whose operands select their lanes from both registers, as in
``%r1.h10``, ``%r2.b7531``; ``.add`` sums them up (PTX ISA, "Video Instructions").
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.batch import Compute, Run
from ..core.decode import Decoding, opcode
from ..core.syntax import Operand, Selected
from .floating_point import COMPARE as _COMPARE

_OPERATIONS: dict[str, Compute] = {
    "vadd": np.add, "vsub": np.subtract, "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum, "vmax": np.maximum, "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
_SECOND = {"add": np.add, "min": np.minimum, "max": np.maximum}


def _parted(operand: Operand) -> tuple:
    """An operand and the selector behind it, empty if there is none."""
    return (operand.register, operand.selector) if isinstance(operand, Selected) else (operand, "")


def _selected(operand: Operand) -> tuple[Operand, int, int]:
    """An operand, and the bit at which what it selects begins, and how many these are."""
    given, selector = _parted(operand)
    bits = {"": 32, "b": 8, "h": 16}[selector[:1]]
    return given, int(selector[1:] or 0) * bits, bits


def _merged(d: Decoding, compute: Compute, target: Operand, sources: list[Operand]) -> Run:
    """Make the step that computes words of words, of two operands and c if there is one."""
    put, words = d.write(target, "b32"), d.read_all((*sources, *d.operands[3:]), "b32")
    return lambda f: put(f.r, compute(*words(f.r)))


def _field(words: ndarray, start: int, bits: int, signed: bool) -> ndarray:
    """Take bits of words (uint64) as int64."""
    value = (words >> start & (1 << bits) - 1).astype(np.int64)
    return np.where(value >> (bits - 1), value - (1 << bits), value) if signed else value


def _placed(words: ndarray, value: ndarray, start: int, bits: int) -> ndarray:
    """Put the low bits of a value in the place of others (all uint64)."""
    mask = (1 << bits) - 1
    return words & ~np.uint64(mask << start) | (value & mask) << start


def _clamped(value: ndarray, bits: int, signed: bool) -> ndarray:
    low = -(1 << bits - 1) if signed else 0
    return np.clip(value, low, low + (1 << bits) - 1)


def _binary(d: Decoding, name: str) -> Compute:
    if name == "vset":
        compare = _COMPARE[d.one_of(_COMPARE, "comparisons")]
        return lambda a, b: compare(a, b).astype(np.int64)
    return _OPERATIONS[name]


def _signs(d: Decoding) -> list[bool]:
    kinds = [part for part in d.types if part in ("u32", "s32")]
    if len(kinds) == 2 and d.parts[0].startswith("vset"):
        kinds = ["u32", *kinds]
    if len(kinds) != 3:
        d.unsupported("types of s32 and u32")
    return [kind == "s32" for kind in kinds]


@opcode("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad")
def scalar(d: Decoding) -> Run:
    """vop.dtype.atype.btype{.sat}{.op2} d, a{.asel}, b{.bsel}{, c}; d.dsel merges into c"""
    name, shift = d.parts[0], d.parts[0] in ("vshl", "vshr")
    d.only(".sat.clamp.wrap", *_SECOND, *_COMPARE, ".po.shr7.shr15").count(3, 4)
    if d.has("po", "shr7", "shr15"):
        d.unsupported("vmad without .po, .shr7 and .shr15")
    signs = _signs(d)
    target, into = _parted(d.operands[0])
    parts = [_selected(operand) for operand in d.operands[1:3]]
    has_third = len(d.operands) == 4
    if name == "vmad" and not has_third:
        d.wrong("c is missing")
    binary = None if shift or name == "vmad" else _binary(d, name)
    second = _SECOND.get(d.pick(_SECOND, ""))
    _, start, bits = _selected(d.operands[0])

    def compute(*words: ndarray) -> ndarray:
        a, b = (_field(word.astype(np.uint64), first, many, signed) for word, (_, first, many),
                signed in zip(words, parts, signs[1:], strict=False))
        c = words[2] if has_third else np.zeros((1, 1), np.uint32)
        if shift:
            by = b & 31 if d.has("wrap") else np.clip(b & 0xFFFFFFFF, 0, 32)
            value = a << by if name == "vshl" else a >> by
        elif binary is None:  # vmad
            value = a * b + _field(c.astype(np.uint64), 0, 32, signs[0])
        else:
            value = binary(a, b)
        if d.has("sat"):
            value = _clamped(value, bits, signs[0])
        if second is not None:
            # The sum wraps; what is compared is the result in its type.
            value = second(_field(value.astype(np.uint64), 0, 32, signs[0]),
                           _field(c.astype(np.uint64), 0, 32, signs[0]))
        word = value.astype(np.uint64)
        if into and has_third and name != "vmad" and second is None:
            word = _placed(c.astype(np.uint64), word, start, bits)
        return word.astype(np.uint32)

    return _merged(d, compute, target, [part[0] for part in parts])


@opcode(*(f"{name}{n}" for name in (*_OPERATIONS, "vset") for n in (2, 4)))
def parallel(d: Decoding) -> Run:
    """vop{2,4}.dtype.atype.btype{.sat}{.add} d{.mask}, a{.asel}, b{.bsel}, c"""
    name, many = d.parts[0][:-1], int(d.parts[0][-1])
    d.only(".sat.add", *_COMPARE).count(3, 4)
    signs, bits = _signs(d), 32 // many
    letter = "h" if many == 2 else "b"
    target, mask = _parted(d.operands[0])
    chosen = {int(digit) for digit in mask[1:]} if mask else set(range(many))
    sources, lanes = [], []
    for operand, default in zip(d.operands[1:3], (0, many), strict=True):
        given, selector = _parted(operand)
        if selector and (selector[0] != letter or len(selector) != many + 1):
            d.wrong(f"a selector has {many} digits behind .{letter}")
        sources.append(given)
        # Lane i is the i-th digit from the right; without a selector each operand its own.
        digits = [int(digit) for digit in reversed(selector[1:])]
        lanes.append(digits or [default + i for i in range(many)])
    binary = _binary(d, name)

    def compute(*words: ndarray) -> ndarray:
        low, high = (word.astype(np.uint64) for word in words[:2])
        both = low | high << 32
        c = words[2] if len(words) > 2 else np.zeros((1, 1), np.uint32)
        total, result = np.zeros((1, 1), np.int64), c.astype(np.uint64)
        for i in range(many):
            if i not in chosen:
                continue
            a, b = (_field(both, bits * side[i], bits, signed)
                    for side, signed in zip(lanes, signs[1:], strict=True))
            value = binary(a, b)
            if d.has("sat"):
                value = _clamped(value, bits, signs[0])
            total = total + value
            result = _placed(result, value.astype(np.uint64), bits * i, bits)
        return (total + c if d.has("add") else result).astype(np.uint32)

    return _merged(d, compute, target, sources)
