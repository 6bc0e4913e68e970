"""What several series say together, and by how much two rows must differ to be called different.

The larger of the spread between series of either side and of what cuBLAS, which took turns with
both, moved between their turns. Rows of two boards are not compared at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lib.records.schema import Row


def spread(series: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    if len(series) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(series, n=4)
    return (high - low) / 2 / middle


def one_board(first: Row, second: Row) -> bool:
    """Tell whether both were timed on the same GPU."""
    return first.board == second.board


def of_speed(first: Row, second: Row) -> float:
    """The noise of a comparison of speeds, as a share of them."""
    return max(first.spread, second.spread,
               abs(second.cublas_seconds / first.cublas_seconds - 1))


def of_cycles(first: Row, second: Row) -> float:
    """The noise of a comparison of timed cycles, as a share of them."""
    before, after = first.cublas_clock, second.cublas_clock
    drift = abs(after.cycles / before.cycles - 1) if before and after else 0.0
    return max(_spread_of_cycles(first), _spread_of_cycles(second), drift)


def _spread_of_cycles(row: Row) -> float:
    if row.clock is None or not len(row.series) == len(row.clock.series_mhz) > 1:
        return 0.0
    return spread([seconds * mhz for seconds, mhz in zip(
        row.series, row.clock.series_mhz, strict=True)])
