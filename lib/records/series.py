"""What several series of one measurement say together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spread(series: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    if len(series) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(series, n=4)
    return (high - low) / 2 / middle
