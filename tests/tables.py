"""Cases of a test as a table of text."""

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest


def rows(text: str) -> list[tuple[Any, ...]]:
    """Read a table: of words, of what stands between as many bars, or of a line a row."""
    head, *lines = text.strip().splitlines()
    bars = head.count("|")
    split = [[line] if head.isidentifier() else line.split("|", bars) if bars else line.split()
             for line in (head, *lines)]
    return [tuple(value(cell.strip()) for cell in line) for line in split]


# Beside whole numbers: what a cell has to itself of Python's own values.
_VALUE = re.compile(r'-?\d+(\.\d*(e-?\d+)?|e-?\d+)|True|False|None|\(.*\)|"[^"]*"')


def value(cell: str) -> Any:
    """Read a number, a truth value, or what Python writes in brackets or in quotes; else words."""
    if re.fullmatch(r"-?(0x\w+|[1-9]\d*|0)", cell):
        return int(cell, 0)
    try:
        return ast.literal_eval(cell) if _VALUE.fullmatch(cell) else cell
    except (ValueError, SyntaxError):
        return cell


def numbers(cell: int | str) -> tuple[int, ...]:
    """Read the whole numbers of a cell."""
    return tuple(map(int, str(cell).split()))


def settings(cell: str) -> dict[str, object]:
    """Read a cell's settings: "a=1, b=2 3, c=word, d=0.5"."""
    found = dict(part.strip().split("=") for part in cell.split(",") if part)
    return {name: numbers(word) if re.fullmatch(r"[-\d]+( [-\d]+)+", word) else value(word)
            for name, word in found.items()}


def cases(text: str):
    """Parametrise a test by a table: its first row are the names."""
    names, *values = rows(text)
    return pytest.mark.parametrize(names, values)


def refused(calls: Mapping[str, Callable[[], object]]) -> None:
    """Each call is refused, in one line that has its words."""
    for words, call in calls.items():
        with pytest.raises(ValueError) as said:
            call()
        assert words in str(said.value) and "\n" not in str(said.value)
