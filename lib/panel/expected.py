"""A line of NumPy that says what an array should hold: read, held to a few names, and compared.

A link may bring it from anybody, so it is an expression of arrays, numbers and NumPy's own
functions, and nothing else is evaluated.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib.panel.request import Refused

MAX_LETTERS = 400
# Beside NumPy's element-wise functions: those that look at whole arrays.
_FUNCTIONS = frozenset("""
arange array clip concatenate cumsum diff dot einsum expand_dims eye flip full histogram bincount
linspace matmul max mean min ones outer pad prod repeat reshape roll sort stack std sum swapaxes
tile trace transpose tril triu var vstack where zeros convolve argmax argmin
float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 pi inf nan newaxis
""".split())
_METHODS = frozenset("""
T astype reshape sum max min mean cumsum transpose ravel flatten dot view clip prod std var sort
argmax argmin repeat swapaxes shape size copy
""".split())
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Attribute,
    ast.Name, ast.Load, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.operator,
    ast.unaryop, ast.cmpop, ast.IfExp,
)


@dataclass(frozen=True)
class Compared:
    """An array beside what it should hold.

    Attributes
    ----------
    name : str
        The array's.
    wrong, of : int
        Elements that are wrong, and all.
    largest : float
        The largest error among those that are numbers.
    first : str
        The first wrong element with both values; empty if none is.
    """

    name: str
    wrong: int
    of: int
    largest: float
    first: str

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.name} is as expected, largest error {self.largest:.2g}"
        return (f"{self.wrong:,} of {self.of:,} elements of {self.name} are wrong, largest error "
                f"{self.largest:.2g}; the first, {self.first}")


def compare(line: str, arrays: Mapping[str, NDArray[np.generic]],
            before: Mapping[str, object]) -> Compared:
    """Evaluate ``NAME = EXPRESSION`` on what the arrays held before, and compare NAME.

    Parameters
    ----------
    line : str
    arrays : mapping of str to ndarray
        As the kernel left them.
    before : mapping of str to object
        Arrays and numbers as the kernel got them.

    Raises
    ------
    Refused
        If the line is no such expression, or can't be evaluated.
    """
    name, is_there, expression = line.partition("=")
    name = name.strip()
    if not is_there or name not in arrays:
        raise Refused(f"Write what an array should hold as NAME = NUMPY, such as C = A @ B; the "
                      f"arrays are {', '.join(arrays) or 'none'}.")
    wanted = _value(expression.strip(), before)
    found = arrays[name]
    try:
        wanted = np.broadcast_to(wanted, found.shape)
    except ValueError:
        shape = "×".join(map(str, wanted.shape))
        raise Refused(f"What {name} should hold has the shape {shape}, and {name} has "
                      f"{'×'.join(map(str, found.shape))}.") from None
    with np.errstate(all="ignore"):
        exact = found.dtype.kind in "iub" and wanted.dtype.kind in "iub"
        off = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        small = _rounding(found.dtype)
        typical = np.sqrt(np.nanmean(wanted.astype(np.float64) ** 2)) if wanted.size else 0.0
        allowed = 0.0 if exact else small * (np.abs(wanted.astype(np.float64)) + typical)
        same = (found == wanted) | (np.isnan(found.astype(np.float64))
                                    & np.isnan(wanted.astype(np.float64)))
        wrong = ~(same | (off <= allowed))
    where = np.argwhere(wrong)
    first = ""
    if len(where):
        at = tuple(int(i) for i in where[0])
        first = (f"{name}[{', '.join(map(str, at))}], is {found[at]:.7g} and should be "
                 f"{wanted[at]:.7g}")
    numbers = off[np.isfinite(off)]
    largest = float(numbers.max()) if numbers.size else 0.0
    return Compared(name, int(wrong.sum()), found.size, largest, first)


def _rounding(dtype: np.dtype[Any]) -> float:
    """What rounding may make of an element, relative: of sums in FP32, however narrow they end."""
    if dtype.kind != "f":
        return 0.0
    return float(np.finfo(dtype).eps) * (4 if dtype.itemsize == 2 else 64)


def _value(expression: str, names: Mapping[str, object]) -> NDArray[np.generic]:
    """An expression's value; floating-point arrays are of 64 bits there.

    A parameter may be called ``in``, which no name of Python's is.
    """
    names = {name: one.astype(np.float64) if isinstance(one, np.ndarray) and one.dtype.kind == "f"
             else one for name, one in names.items()}
    for name in names.keys() & set(keyword.kwlist):
        expression = re.sub(rf"\b{name}\b", f"{name}_", expression)
        names[f"{name}_"] = names[name]
    if len(expression) > MAX_LETTERS:
        raise Refused(f"The line of NumPy is longer than {MAX_LETTERS} characters: shorten it.")
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Refused(f"The line of NumPy can't be read: {error}.") from None
    for node in ast.walk(tree):
        said = _unknown(node, names)
        if said:
            raise Refused(f"The line of NumPy has {said}; it takes arrays by name, numbers and "
                          "functions of NumPy such as np.maximum(A, 0).")
    scope = {**names, "np": np, "__builtins__": {}}
    try:
        with np.errstate(all="ignore"):
            return np.asarray(eval(compile(tree, "the line of NumPy", "eval"), scope))
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, KeyError) as error:
        raise Refused(f"The line of NumPy fails: {error}.") from None


def _unknown(node: ast.AST, names: Mapping[str, object]) -> str:
    """What a part of the expression is that it may not have; empty if it may."""
    if not isinstance(node, _NODES):
        return f"a {type(node).__name__}"
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str | None):
        return f"the constant {node.value!r}"
    if isinstance(node, ast.Name) and node.id != "np" and node.id not in names:
        return f"the unknown name {node.id}"
    if isinstance(node, ast.Attribute):
        of_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
        known = node.attr in _FUNCTIONS or isinstance(getattr(np, node.attr, None), np.ufunc)
        if not (known if of_numpy else node.attr in _METHODS):
            return f"the unknown attribute {node.attr}"
    return ""
