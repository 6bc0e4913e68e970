"""Cases of a test as a table of text."""

import re
from collections.abc import Callable, Mapping

import pytest


def rows(text: str) -> list[tuple[int | str, ...]]:
    """Read a table of words, or of what stands between as many bars; numbers as such."""
    lines = text.strip().splitlines()
    bars = lines[0].count("|")
    split = (line.split("|", bars) if bars else line.split() for line in lines)
    return [tuple(int(cell, 0) if re.fullmatch(r"-?(0x\w+|[1-9]\d*|0)", cell) else cell
                  for cell in map(str.strip, line)) for line in split]


def numbers(cell: int | str) -> tuple[int, ...]:
    """Read the whole numbers of a cell."""
    return tuple(map(int, str(cell).split()))


def settings(cell: str) -> dict[str, object]:
    """Read a cell's settings: "a=1, b=2 3, c=word"."""
    found = dict(part.strip().split("=") for part in cell.split(",") if part)
    return {name: word if re.search("[a-z]", word) else int(word) if " " not in word
            else numbers(word) for name, word in found.items()}


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
