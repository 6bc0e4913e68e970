"""Where a tensor-core kernel's distance to the peak goes: clock, last wave, and all the rest.

    speed = FLOP a cycle of all SMs × clock × share of the SMs' time with work × rest

The tensor cores of an SM do a fixed number of operations a cycle; the clock falls where the chip
draws all the power that it may; the last wave of tiles leaves SMs without work. What then still
is missing are pauses: cycles in which the tensor pipe of an SM that has a tile did nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib import gpus


@dataclass(frozen=True)
class Account:
    """Factors whose product is a kernel's share of what the tensor cores do at the highest clock.

    Attributes
    ----------
    peak : float
        At the highest clock, FLOP/s.
    clock : float
        The clock that the kernel had, over the highest.
    waves : float
        Share of the SMs' time with work, if all tiles took equally long.
    rest : float
        Of that time, the share in which the tensor pipe was at work.
    """

    peak: float
    clock: float
    waves: float
    rest: float

    @property
    def share(self) -> float:
        """Of the peak at the highest clock."""
        return self.clock * self.waves * self.rest


def account(
    key: str, sms: int, highest_hz: float, flops_per_s: float, clock_hz: float, waves: float
) -> Account:
    """Take a measured speed apart.

    Parameters
    ----------
    key : str
        GPU, a key of `lib.gpus.GPUS`.
    sms : int
    highest_hz, clock_hz : float
        The highest clock, and the one that the kernel had.
    flops_per_s : float
        Measured.
    waves : float
        See `lib.topics.memory.rasterization.model.Raster.full`.

    Raises
    ------
    ValueError
        If there is no data sheet of the GPU, or a number is not positive.
    """
    if min(sms, highest_hz, flops_per_s, clock_hz, waves) <= 0:
        raise ValueError("SMs, clocks, speed and waves must be positive")
    peak = gpus.find(key).tensor_fp16_per_cycle * sms * highest_hz
    clock = clock_hz / highest_hz
    return Account(peak, clock, waves, flops_per_s / (peak * clock * waves))
