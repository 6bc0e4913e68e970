"""Pairs of instantiations that differ in one thing: where they differ, as compiled.

A version's pairs are declared in its catalogue entry (`lib.kernels.spec.Pair`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from lib.compiler.arch import KNOWN
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, named
from lib.kernels.spec import Kernel, Pair

# What two kernels may name otherwise and mean the same: registers, labels, mangled names.
_NUMBERED = re.compile(r"(%(?:rs|rd|r|f|fd|h|p|b|rq))\d+|(\$L\w+?_?)\d+(?:_\d+)?")
_MANGLED = re.compile(r"\b_Z\w+")
# Lines that say how much is declared, and not what is done.
_IDLE = re.compile(r"\s*(?://.*|\.(?:reg|file|loc|version|target|address_size)\b.*)?$")


def declared(kernels: Iterable[Kernel] = ()) -> list[Pair]:
    """All pairs of some versions, or of all if none is named."""
    return [pair for kernel in list(kernels) or CATALOGUE.values() for pair in kernel.pairs]


def arch(pair: Pair) -> str:
    """The oldest architecture that both sides run on."""
    sides = (named(pair.first), named(pair.second))
    return max((kernel.oldest(variant) for kernel, variant in sides), key=KNOWN.index)


def ptx_difference(pair: Pair) -> list[str]:
    """Lines of PTX that one side of a pair has and the other hasn't, marked ``-`` and ``+``.

    Registers and labels count as equal whatever their numbers: the compiler deals them anew after
    any change.
    """
    found = difflib.unified_diff(*_sides(pair), n=0, lineterm="")
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def _sides(pair: Pair) -> tuple[list[str], list[str]]:
    """The PTX of both sides, without what says nothing of what is done."""
    one, other = (_plain(compile_kernel(*named(name), arch(pair), ptx_only=True).ptx)
                  for name in (pair.first, pair.second))
    return one, other


def _plain(ptx: str) -> list[str]:
    """PTX without what says nothing of what is done, line by line."""
    text = _MANGLED.sub("NAME", _NUMBERED.sub(lambda m: m[1] or m[2], ptx))
    return [line.strip() for line in text.splitlines() if not _IDLE.match(line)]
