"""How pages write numbers, quantities, shares and nouns."""

from __future__ import annotations

import re
from collections.abc import Iterable


def number(value: float, digits: int = 3) -> str:
    """Return a number as the figures write it: `digits` significant, thousands separated."""
    if value == 0:
        return "0"
    text = f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"
    return text


_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def quantity(value: float, unit: str) -> str:
    """Return ``"2.04 TB/s"`` for 2.04e12 and ``"B/s"``."""
    for prefix, scale in _PREFIXES:
        if abs(value) >= scale:
            return f"{number(value / scale)} {prefix}{unit}"
    return f"{number(value)} {unit}"


def sides(shape: Iterable[int]) -> str:
    """Return ``"4,096×33×4,096"``."""
    return "×".join(f"{side:,}" for side in shape)


def duration(seconds: float) -> str:
    """Return a time with the unit that suits it: s, ms, µs or ns."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= scale:
            return f"{number(seconds / scale)} {unit}"
    return f"{number(seconds / 1e-9)} ns"


def percent(fraction: float) -> str:
    """Return ``"12.5%"`` for 0.125, with a decimal only where it is below 20% and not whole."""
    value = 100 * fraction
    return f"{value:.0f}%" if value >= 20 or round(value, 1) == round(value) else f"{value:.1f}%"


def spaced(name: str) -> str:
    """Return ``"uninitialised read"`` for ``"UninitialisedRead"``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def article(word: str) -> str:
    """Return ``"an A100"`` or ``"a T4"``: the word with the article that its first sound takes.

    The letters and numbers of a name are spelt out when it is read: an H100, an 8-way conflict.
    """
    start = word.split("-")[0].split()[0]
    spelt = start.isupper() or not start[:1].isalpha()
    vowel = start[0] in "AEFHILMNORSX" if spelt and start[0].isalpha() else start[0] in "aeioAEIO8"
    return f"{'an' if vowel or start in ('11', '18') else 'a'} {word}"


def plural(count: int, noun: str) -> str:
    """Return ``"1 sector"`` or ``"4 sectors"``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
