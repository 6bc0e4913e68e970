"""What a form asks of a kernel that nobody described: its parameters, read from its PTX.

First values are words of `lib.compiler.arguments`, as the command line and a link have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isqrt, prod
from typing import Any

import numpy as np

from lib.compiler.arguments import ELEMENTS
from lib.compiler.signature import Type, of_kernel, plain_name
from lib.ptx.core.analysis import registers_of
from lib.ptx.core.syntax import (
    SIZES,
    Address,
    Entry,
    Instruction,
    Program,
    Register,
    Symbol,
    Variable,
    leaves,
)
from lib.ptx.core.tensormap import TENSOR_MAP_BYTES

# C++ types of `signature` as the grammar's, where PTX knows only how wide a value is.
_TYPES = {"__nv_bfloat16": "uint16"} | {
    name: np.dtype(element).name for name, element in ELEMENTS.items()}
_OF_SIZE = {1: "uint8", 2: "float16", 4: "float32", 8: "float64"}
_LETTERS = {"f": "float", "s": "int", "u": "uint"}
_PASSES = ("mov", "cvta", "add", "sub", "mad", "cvt", "selp", "or", "shl", "ld")
# The dimensions of numba's arrays, in a kernel's mangled name.
_NUMBA = re.compile(r"5ArrayI\w+?Li(\d)E1[ACF]")
LENGTH = 1024  # elements of a vector
SIDE = 64  # elements of a matrix's side


def kernels(program: Program, source: str = "") -> list[dict[str, Any]]:
    """The kernels of a module, each with what a form begins with; `source` has their names.

    Returns
    -------
    list of dict
        ``name`` as the PTX has it, ``plain`` as the source may, ``args`` in words, ``grid``,
        ``block``, ``shared`` (bytes) and ``cluster``.
    """
    return [_form(program, entry, source) for entry in program.entries.values()]


def _form(program: Program, entry: Entry, source: str) -> dict[str, Any]:
    symbols = {name for each in entry.instructions for name in _symbols(each)}
    written = re.search(rf"\b{re.escape(plain_name(entry.name))}\s*\(([^{{}};]*)\)\s*{{", source)
    signature = of_kernel(entry.name, written[1] if written else None)
    if len(signature) != len(entry.parameters):
        signature = tuple(Type("") for _ in entry.parameters)
    uses = _uses(entry)
    whole = [one for one, kind in zip(entry.parameters, signature, strict=True)
             if one.name not in uses and not kind.pointer and (one.size < 8 or kind.name)
             and not _scalar(one, kind).startswith("float")]
    dimensions = [int(number) for number in _NUMBA.findall(entry.name)]
    flat = "%tid.y" in symbols or len(whole) > 1 or 2 in dimensions
    shape = f"{SIDE},{SIDE}" if flat else str(LENGTH)
    count = SIDE if flat else LENGTH
    words = [_word(one, kind, uses.get(one.name), shape, count)
             for one, kind in zip(entry.parameters, signature, strict=True)]
    at = 0
    for number in dimensions:
        if number > 2 or len(words) < at + 5 + 2 * number:
            break
        words[at : at + 5 + 2 * number] = _numba(words[at + 4], number)
        at += 5 + 2 * number
    labels = [kind.label for kind in signature]
    args = [f"{label or f'p{i}'}={word}"
            for i, (label, word) in enumerate(zip(labels, words, strict=True))]
    limit = prod(entry.limits.get("maxntid", (256,)))
    square = isqrt(limit) if "%tid.y" in symbols else 0
    usual = _launched(source, plain_name(entry.name)) or ((square, square) if square else (limit,))
    threads = (*entry.limits.get("reqntid", usual), 1, 1)[:3]
    side = SIDE if flat else LENGTH
    grid = [-(-side // threads[0]), -(-side // threads[1]) if "%ctaid.y" in symbols else 1]
    if flat and "%ctaid.y" not in symbols:
        grid[0] = -(-SIDE * SIDE // (threads[0] * threads[1])) if "%tid.y" not in symbols else 4
    dynamic = [one for one in program.variables.values()
               if one.space == "shared" and not one.count and one.name in symbols]
    cluster = entry.limits.get("reqnctapercluster")
    return {"name": entry.name, "plain": plain_name(entry.name), "args": args, "grid": grid,
            "block": list(threads), "shared": 16384 if dynamic else 0,
            "cluster": list(cluster) if cluster else None}


def _launched(source: str, name: str) -> tuple[int, ...]:
    """The block that the source launches a kernel with, if it says so in numbers or by a name."""
    launch = re.search(rf"\b{re.escape(name)}\s*(?:<[^;{{}}]{{0,200}}?>)?"
                       r"\s*<<<([^;]{0,400}?)>>>", source)
    words = re.split(r",(?![^(]*\))", launch[1]) if launch else []
    block = words[1].strip() if len(words) > 1 else ""
    if re.fullmatch(r"[A-Za-z_]\w*", block):
        value = re.search(rf"\b{block}\b\s*(?:=\s*(?:dim3\s*)?)?[({{]?\s*(\d[\d ,]*)", source)
        block = value[1] if value else ""
    sizes = re.findall(r"\b\d+", block) if re.fullmatch(r"(?:dim3\s*\()?[\d ,]+\)?", block) else []
    found = tuple(map(int, sizes[:3]))
    return found if 0 < prod(found) <= 1024 and found else ()


def _scalar(parameter: Variable, kind: Type) -> str:
    if kind.name in _TYPES:
        return _TYPES[kind.name]
    letter, size = parameter.type[0], parameter.size
    return f"{_LETTERS.get(letter, 'int')}{8 * size}"


def _word(
    parameter: Variable, kind: Type, use: tuple[str, bool, bool] | None, shape: str, count: int
) -> str:
    """A parameter's first value."""
    if parameter.count > 1 or parameter.size > 8:
        if parameter.nbytes == TENSOR_MAP_BYTES:
            return f"map[{SIDE},{SIDE}]:float16[{SIDE},{SIDE}]:uniform:128"
        return f"bytes:{'00' * parameter.nbytes}"
    if use is None and (kind.pointer or parameter.size == 8 and not kind.name):
        return "null"  # a pointer that nothing goes through, such as Triton's scratch
    if use is None:
        word = _scalar(parameter, kind)
        return f"{word}:{1 if word[:5] == 'float' or word == 'bool' else count}"
    element, read, written = use
    word = _TYPES.get(kind.name, element)
    floats = word.startswith("float")
    fill = "uniform" if floats else "integers"
    if written and not read:
        fill = "nan" if floats else "zeros"
    return f"{word}[{shape}]:{fill}"


def _numba(data: str, dimensions: int) -> list[str]:
    """An array as numba-cuda passes it: two objects, elements, their bytes, data, shape, strides.
    """
    shape = [SIDE, SIDE] if dimensions == 2 else [LENGTH]
    if "[" not in data:  # nothing goes through it
        data = f"float32[{','.join(map(str, shape))}]:uniform"
    kind, _, fill = data.partition("[")
    size = int(kind.strip("abcdefghijklmnopqrstuvwxyz")) // 8
    strides = [size * SIDE, size] if dimensions == 2 else [size]
    return ["null", "null", f"int64:{prod(shape)}", f"int64:{size}",
            f"{kind}[{','.join(map(str, shape))}]{fill[fill.index(']') + 1:]}",
            *(f"int64:{number}" for number in (*shape, *strides))]


def _symbols(instruction: Instruction) -> Iterator[str]:
    for operand in instruction.operands:
        yield from (leaf.name for leaf in leaves(operand) if isinstance(leaf, Symbol))


def _uses(entry: Entry) -> dict[str, tuple[str, bool, bool]]:
    """Of each parameter that is an address: its elements, whether they are read, and written.

    An address is followed from ``ld.param`` through what adds to it, wherever control goes.
    """
    names = {one.name for one in entry.parameters if one.size == 8}
    origin: dict[int, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for each in entry.instructions:
            if each.parts[0] not in _PASSES or not each.operands:
                continue
            into, *others = each.operands
            if not isinstance(into, Register) or SIZES.get(into.type) != 8:
                continue
            if each.parts[0] == "ld" and "param" not in each.parts:
                continue
            found = {name for name in _symbols(each) if name in names}
            for other in others:
                found.update(*(origin.get(slot, ()) for slot in registers_of(other)))
            if not found <= origin.setdefault(into.slot, set()):
                origin[into.slot] |= found
                changed = True
    uses: dict[str, tuple[str, bool, bool]] = {}
    for each in entry.instructions:
        for operand in each.operands:
            if not isinstance(operand, Address) or not isinstance(operand.base, Register):
                continue
            for name in origin.get(operand.base.slot, ()):
                element, read, written = uses.get(name, ("", False, False))
                kind = each.type
                stores = each.parts[0] in ("st", "red", "atom", "stmatrix")
                uses[name] = (element or _element(kind), read or each.parts[0] != "st",
                              written or stores)
    return {name: (use[0] or "float32", use[1], use[2]) for name, use in uses.items()}


def _element(kind: str) -> str:
    """The elements of an access of a type, such as ``f32``; of bits alone, floating-point ones."""
    if not kind:
        return ""
    size = SIZES[kind]
    if kind[0] in _LETTERS and size <= 8:
        return f"{_LETTERS[kind[0]]}{8 * size}"
    return _OF_SIZE.get(size, "float32")
