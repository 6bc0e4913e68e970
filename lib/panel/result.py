"""What a run came to: its counters and its verdict, or what stopped it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib import ptx
from lib.panel.request import Request
from lib.problem import LARGEST, Problem, Verdict

WRONG = 4.0  # an element is off if its error passes so many tolerances of a typical element


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
