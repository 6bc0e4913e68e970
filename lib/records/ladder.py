"""The ladder's pass: one figure of cuBLAS per product, of all its turns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from lib.records.schema import LadderRecord, PeerRow, Row
from lib.records.series import spread

# Between its turns in a pass cuBLAS may spread by so much; beyond that the board was not steady.
STEADY = 0.01

Product = tuple[int, str, str, str, str]


@dataclass(frozen=True)
class Figure:
    """What cuBLAS does on one product: of all its turns in the pass.

    `tflops` is the median of its rows, `spread` half the distance of their quartiles over it, and
    `drift` the distance of the extremes: what draws much power slows its rival's turns, too.
    """

    size: int
    dtype: str
    out: str
    b_layout: str
    scaling: str
    tflops: float
    spread: float
    drift: float

    @property
    def title(self) -> str:
        """``"float16 → float32, 4,096³"``."""
        return f"{self.dtype} → {self.out}, {self.size:,}³"


def product(row: Row | PeerRow) -> Product:
    """Which of the pass's products a row is of; all of them are cubes."""
    return row.M, row.dtype, row.out, row.b_layout, row.scaling


def figures(record: LadderRecord) -> list[Figure]:
    """cuBLAS's one figure for each product of the pass."""
    turns: dict[Product, list[float]] = {}
    for entry in record.entries.values():
        for row in (*entry.bench, *entry.late):
            turns.setdefault(product(row), []).append(row.cublas_tflops)
    for peer in record.peers.values():
        for taken in peer.rows:
            turns.setdefault(product(taken), []).append(taken.cublas_tflops)
    return [Figure(*key, tflops=statistics.median(values), spread=spread(values),
                   drift=(max(values) - min(values)) / statistics.median(values))
            for key, values in turns.items()]
