"""Budgets of a launch: what a kernel may cost, by the counters of the emulator."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lib import ptx


def figures(launch: ptx.Launch) -> dict[str, float]:
    """Return all that a budget may name.

    Returns the counters of `Trace.counters` and `Trace.matrix_counters`, and made of them:
    ``sectors_per_request`` (of global loads and stores together), ``load_sectors_per_request``,
    ``store_sectors_per_request`` (0 without requests) and ``bank_conflicts`` (wavefronts of shared
    memory above the ideal). Raises ValueError if the launch did not count (``trace=False``).
    """
    if launch.trace is None:
        raise ValueError("a launch with trace=False counts nothing to hold a budget against")
    found: dict[str, float] = {**launch.trace.counters(), **launch.trace.matrix_counters()}
    loads, stores = found["global_load_requests"], found["global_store_requests"]
    load_sectors, store_sectors = found["global_load_sectors"], found["global_store_sectors"]
    return found | {
        "sectors_per_request": _ratio(load_sectors + store_sectors, loads + stores),
        "load_sectors_per_request": _ratio(load_sectors, loads),
        "store_sectors_per_request": _ratio(store_sectors, stores),
        "bank_conflicts": found["shared_wavefronts"] - found["shared_wavefronts_ideal"],
    }


def _ratio(sectors: float, requests: float) -> float:
    return sectors / requests if requests else 0.0


NAMES = tuple(figures(ptx.Launch("", False, False, ptx.Trace())))
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, "==": operator.eq, "<": operator.lt,
}
_BUDGET = re.compile(r"\s*(\w+)\s*(<=|==|<)\s*([\d_.]+(?:e\d+)?)\s*")


@dataclass(frozen=True)
class Budget:
    """One bound."""

    name: str  # one of `NAMES`
    sign: str  # ``"<"``, ``"<="`` or ``"=="``
    limit: float


def parse(budgets: Iterable[str]) -> list[Budget]:
    """Read budgets such as ``"sectors_per_request < 5"``.

    Raises ValueError for what is none; the message names the nearest figure.
    """
    if isinstance(budgets, str):
        budgets = [budgets]
    found = []
    for text in budgets:
        match = _BUDGET.fullmatch(text)
        if match is None:
            raise ValueError(f"budget {text!r}: write a figure, <, <= or ==, and a number: "
                             "'bank_conflicts == 0'")
        if match[1] not in NAMES:
            near = difflib.get_close_matches(match[1], NAMES, 1, 0.0)[0]
            raise ValueError(f"budget {text!r}: there is no figure {match[1]}; the nearest is "
                             f"{near}")
        found.append(Budget(match[1], match[2], float(match[3])))
    return found


def broken(launch: ptx.Launch, budgets: Iterable[Budget]) -> list[str]:
    """Say of each budget that a launch does not keep what it is and what was found."""
    budgets = list(budgets)
    if not budgets:
        return []
    found = figures(launch)
    return [
        f"budget {one.name} {one.sign} {one.limit:,.6g}: it is {found[one.name]:,.6g}"
        for one in budgets if not _OPERATORS[one.sign](found[one.name], one.limit)
    ]
