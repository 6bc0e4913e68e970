"""The ladder: every version's fastest kernel beside one figure of cuBLAS, all of one pass."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from lib.kernels.catalogue import named
from lib.kernels.spec import Kernel, Variant
from lib.records import store
from lib.records.launched import launch_hash
from lib.records.noise import spread
from lib.records.schema import LadderEntry, LadderRecord, PeerRow, Row

# Whose records the pages show where no GPU is: the kind of GPU that all of them were made on.
GPU = "H100"
# The size that versions are chosen at.
SIZE = 4096
# Between its turns in a pass cuBLAS may spread by so much; beyond that the board was not steady.
STEADY = 0.01

Product = tuple[int, str, str, str, str]


@dataclass(frozen=True)
class Figure:
    """What cuBLAS does on one product: of all its turns in the pass.

    `tflops` is the median of its rows, `spread` half the distance of their quartiles over it.
    """

    size: int
    dtype: str
    out: str
    b_layout: str
    scaling: str
    tflops: float
    spread: float

    @property
    def title(self) -> str:
        """``"float16 → float32, 4,096³"``."""
        return f"{self.dtype} → {self.out}, {self.size:,}³"


@dataclass(frozen=True)
class Step:
    """A version on a cube: its fastest kernel, cuBLAS's figure, and the fastest before it."""

    kernel: Kernel
    variant: Variant
    row: Row
    figure: Figure
    before: Step | None
    stale: bool

    @property
    def share(self) -> float:
        """Of cuBLAS, 1.0 = as fast."""
        return self.row.tflops / self.figure.tflops

    @property
    def noise(self) -> float:
        """How far `share` may be off: the larger spread of both sides."""
        return max(self.row.spread, self.figure.spread)

    @property
    def gain(self) -> float | None:
        """Of the speed of the fastest version before it; None of a group's first."""
        return self.row.tflops / self.before.row.tflops - 1 if self.before else None

    @property
    def side(self) -> bool:
        """Whether it carries nothing on: it gains no more than the noise."""
        return self.gain is not None and self.before is not None and (
            self.gain <= max(self.noise, self.before.row.spread))

    @property
    def elsewhere(self) -> bool:
        """Whether it is made for other shapes, and a side step here."""
        return self.side and bool(self.kernel.own_shapes)


def product(row: Row | PeerRow) -> Product:
    """Which of the pass's products a row is of; all of them are cubes."""
    return row.M, row.dtype, row.out, row.b_layout, row.scaling


def load(gpu: str = GPU) -> LadderRecord:
    """The pass of a GPU. Raises store.NotRecorded if there is none."""
    found = store.load(LadderRecord, gpu)
    if found is None:
        raise store.NotRecorded("no pass is recorded: python -m lib record --ladder")
    return found


def figures(record: LadderRecord) -> dict[Product, Figure]:
    """cuBLAS's one figure for each product of the pass."""
    turns: dict[Product, list[float]] = {}
    for entry in record.entries.values():
        for row in (*entry.bench, *entry.late):
            turns.setdefault(product(row), []).append(row.cublas_tflops)
    for peer in record.peers.values():
        for taken in peer.rows:
            turns.setdefault(product(taken), []).append(taken.cublas_tflops)
    return {key: Figure(*key, tflops=statistics.median(values), spread=spread(values))
            for key, values in turns.items()}


def steps(record: LadderRecord, size: int = SIZE) -> list[Step]:
    """Every version of the pass on a cube, in the order of the catalogue."""
    of = figures(record)
    fastest: dict[Product, Step] = {}
    made = []
    for name, entry in record.entries.items():
        row = next((row for row in entry.bench if row.is_cube(size)), None)
        if row is None or entry.side:
            continue
        kernel, variant = named(name)
        key = product(row)
        step = Step(kernel, variant, row, of[key], fastest.get(key), stale(kernel, variant, entry))
        made.append(step)
        if key not in fastest or row.tflops > fastest[key].row.tflops:
            fastest[key] = step
    return made


def stale(kernel: Kernel, variant: Variant, entry: LadderEntry) -> bool:
    """Whether an instantiation is of other source or launch than today's."""
    return (kernel.hash(variant), launch_hash(kernel, variant)) != (entry.hash, entry.launch)
