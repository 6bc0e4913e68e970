"""What a page asks to run, read from JSON's values and held to limits, and what the run came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib import ptx
from lib.kernels.spec import Kernel, unknown
from lib.problem import LARGEST, Problem, Verdict
from lib.ptx.launch import LANDINGS, SCHEDULES

MAX_SIDE = 256  # elements: what a page answers within seconds
MAX_PTX = 4_000_000  # characters
MAX_SCALAR = 1e6  # of α and β
MAX_TURNS = 1 << 17  # of a batch of blocks; the book's kernels of these sizes take a tenth
MAX_MOMENTS = 2048  # instructions of a recording
MAX_FIRST = 1 << 24  # instruction that a recording begins with
MAX_REGISTERS = 8  # that a reader may watch
WRONG = 4.0  # an element is off if its error passes so many tolerances of a typical element
DEFAULT: Mapping[str, Any] = {
    "do": "run", "variant": None, "M": 128, "N": 128, "K": 128, "alpha": 1.0, "beta": 0.0,
    "schedule": "lowest", "landing": "early", "races": True, "mistake": None, "ptx": None,
}


class Refused(ValueError):
    """A request that breaks a limit; the message says which and what to do."""


@dataclass(frozen=True)
class Request:
    """What to run, and how.

    Attributes
    ----------
    problem : Problem
    variant : str
    schedule, landing : str
        One of `lib.ptx.launch.SCHEDULES` and of `LANDINGS`.
    races : bool
        Whether races are looked for.
    mistake : int or None
        Which seeded mistake the kernel has.
    ptx : str or None
        The reader's own text, in place of the compiler's.
    """

    problem: Problem
    variant: str
    schedule: str
    landing: str
    races: bool
    mistake: int | None
    ptx: str | None

    @property
    def changed(self) -> bool:
        """Whether the PTX is another than the compiler's."""
        return self.mistake is not None or self.ptx is not None


def message(text: str) -> dict[str, Any]:
    """Read what a page has sent.

    Raises
    ------
    Refused
        If it is no JSON object.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("A request is one JSON object, such as {\"do\": \"run\"}.")
    return found


def read(given: Mapping[str, Any], kernel: Kernel, variants: Sequence[str]) -> Request:
    """Check what a page has sent.

    Parameters
    ----------
    given : mapping
        All keys of `DEFAULT`.
    kernel : Kernel
    variants : sequence of str
        Those that the page offers; the first where none is named.

    Raises
    ------
    Refused
        If a value breaks its limit.
    """
    name = variants[0] if given["variant"] in (None, "") else given["variant"]
    if name not in variants:
        raise Refused(unknown("variant", str(name), dict.fromkeys(variants)))
    M, N, K = (whole(given, key, 0 if key == "K" else 1, MAX_SIDE) for key in "MNK")
    alpha, beta = (_number(given, key) for key in ("alpha", "beta"))
    orders(given)
    text, mistake = given["ptx"], given["mistake"]
    if text is not None and (not isinstance(text, str) or len(text) > MAX_PTX):
        raise Refused(f"The PTX is longer than {MAX_PTX:,} characters: shorten it.")
    if mistake is not None and (isinstance(mistake, bool) or not isinstance(mistake, int)):
        raise Refused(f"A mistake is chosen by its number, not by {mistake!r}.")
    if mistake is not None and text is not None:
        raise Refused("Choose a mistake or edit the PTX, not both.")
    problem = kernel.variant(name).problem(M, N, K, alpha, beta)
    return Request(problem, name, given["schedule"], given["landing"], bool(given["races"]),
                   mistake, text)


def orders(given: Mapping[str, Any]) -> None:
    """Check the order of warps and when copies land.

    Raises
    ------
    Refused
        If either is unknown.
    """
    for key, known in (("schedule", SCHEDULES), ("landing", LANDINGS)):
        if given[key] not in known:
            raise Refused(unknown(key, str(given[key]), dict.fromkeys(known)))


def whole(given: Mapping[str, Any], key: str, least: int, highest: int) -> int:
    """A whole number of a request, from `least`, which it is if not given, to `highest`.

    Raises
    ------
    Refused
        If it is anything else.
    """
    value: object = given.get(key, least)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= highest:
        raise Refused(f"{key} must be a whole number from {least} to {highest:,}, not {value!r}.")
    return value


def _number(given: Mapping[str, Any], key: str) -> float:
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or (
            not abs(value) <= MAX_SCALAR):
        raise Refused(f"{key} must be a number of at most {MAX_SCALAR:,.0f}, not {value!r}.")
    return float(value)


@dataclass(frozen=True)
class Finished:
    """A run to the kernel's end.

    Attributes
    ----------
    request : Request
    reason : str
        Why another instantiation was run than the variant's own; empty if none was.
    arch : str
        Whose machine code was counted.
    launch : ptx.Launch
    verdict : Verdict
    wrong : ndarray of bool, shape (M, N), or None
        The elements that are wrong, where any are.
    """

    request: Request
    reason: str
    arch: str
    launch: ptx.Launch
    verdict: Verdict
    wrong: NDArray[np.bool_] | None

    @property
    def hazards(self) -> list[ptx.Hazard]:
        """The hazards that were found."""
        return self.launch.hazards

    def counters(self) -> dict[str, int]:
        """All counters of the run."""
        trace = self.launch.traced
        return trace.counters() | {k: v for k, v in trace.matrix_counters().items() if v}


@dataclass(frozen=True)
class Stopped:
    """A run that the emulator stopped.

    Attributes
    ----------
    request : Request
    reason, arch : str
        As of `Finished`.
    error : ptx.Error
        What stopped it.
    """

    request: Request
    reason: str
    arch: str
    error: ptx.Error

    @property
    def hazards(self) -> list[ptx.Hazard]:
        """The hazards that were found before."""
        return list(getattr(self.error, "hazards", []))

    def counters(self) -> dict[str, int]:
        """None: what was counted until then is no kernel's."""
        return {}


Result = Finished | Stopped


def wrong_elements(
    problem: Problem, C: NDArray[Any], wanted: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which elements are wrong: NaN, or farther off than rounding explains of a typical one.

    Returns
    -------
    ndarray of bool, shape (M, N)
        At least one is set.
    """
    numbers = wanted[np.abs(wanted) <= LARGEST[problem.out]]
    typical = float(np.sqrt(np.mean(numbers**2))) if numbers.size else 0.0
    with np.errstate(all="ignore"):
        off = np.abs(C.astype(np.float64) - wanted)
        wrong: NDArray[np.bool_] = ~(off <= WRONG * problem.tolerance * typical)
    if not wrong.any():
        wrong = off >= np.nanmax(off)
    return wrong
