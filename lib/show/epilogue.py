"""What an epilogue costs a tile, by the emulator's counts, and what a second kernel would move.

The special-function units give 16 results per cycle and SM (CUDA C++ Programming Guide,
"Arithmetic Instructions", compute capability 9.0): ``ex2``, ``rcp`` and ``tanh`` are theirs. A
scheduler issues one warp instruction per cycle, and an SM has four.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lib import gpus
from lib.kernels.catalogue import KERNELS
from lib.kernels.fused import EPILOGUES
from lib.problem import ITEM_BYTES, with_epilogue
from lib.ptx.core.machine import WARP
from lib.records import store as records
from lib.records.schema import EpiloguesRecord, FusedRow, FusedSide
from lib.show import chart as style
from lib.show.columns import Column, compared, recorded
from lib.show.markdown import NOT_YET
from lib.show.version import RECORDED_ON, Version

STEM = "25_epilogue"
SPECIAL_PER_CYCLE, SCHEDULERS = 16, 4
SPECIAL = ("ex2.", "rcp.", "tanh.", "lg2.", "rsqrt.")
COMMAND = "python -m lib.measure.fused_bench --record results --joules --traffic"

Shape = tuple[int, int, int]
# The layers of the contest, and those on which parts were timed.
SHAPES: tuple[Shape, ...] = (
    (4096, 4096, 1024), (4096, 16384, 4096), (512, 14336, 4096), (64, 4096, 4096))


@dataclass(frozen=True)
class Cost:
    """What an epilogue adds to storing a tile.

    Attributes
    ----------
    special : float
        Results of the special-function units for each element of the product.
    instructions : float
        PTX instructions for each element, beyond those of the product alone.
    """

    special: float
    instructions: float

    def cycles(self, tile: tuple[int, int]) -> float:
        """The least that it keeps an SM, for a tile: of the two units the longer."""
        elements = tile[0] * tile[1]
        return elements * max(self.special / SPECIAL_PER_CYCLE,
                              self.instructions / WARP / SCHEDULERS)


@lru_cache(maxsize=64)
def cost(variant: str, over: str = "plain") -> Cost:
    """What one instantiation does beyond another, from their traced runs."""
    version = Version(STEM)
    more = {name: _executed(version, name) for name in (variant, over)}
    # Each block of the traced run has one tile, of which it computes all, inside C or not.
    elements = math.prod(version.traced(variant).plan.launch.grid) * math.prod(tile_of(variant))
    special, every = (
        sum(count for op, count in more[variant].items() if kind(op))
        - sum(count for op, count in more[over].items() if kind(op))
        for kind in (lambda op: op.startswith(SPECIAL), lambda op: True))
    return Cost(special / elements, every / elements)


def _executed(version: Version, variant: str) -> Mapping[str, int]:
    """How often threads executed each PTX instruction in the traced run."""
    return {op: threads for op, (_, threads)
            in version.traced(variant).trace.instructions.items()}


def loop_cycles(tile: tuple[int, int], K: int) -> float:
    """The least that the tensor cores of one SM need for a tile."""
    return 2.0 * tile[0] * tile[1] * K / gpus.GPUS[RECORDED_ON].flops_per_cycle("bfloat16")


def tile_of(variant: str) -> tuple[int, int]:
    """An instantiation's tile."""
    return KERNELS[STEM].variant(variant).tile


def traffic(shape: Shape) -> tuple[int, int]:
    """Bytes of bias and GELU that must cross DRAM, each read once and written once.

    With the epilogue in the product's kernel, and with the product in FP32 in between.
    """
    problem = with_epilogue(*shape, epilogue=EPILOGUES["bias_gelu"][0])
    fused = problem.compulsory_bytes
    return fused, fused + 2 * ITEM_BYTES["float32"] * problem.M * problem.N


def saved_seconds(shape: Shape) -> float:
    """What a second pass through DRAM takes at least, by the data sheet's bandwidth."""
    fused, apart = traffic(shape)
    return (apart - fused) / gpus.GPUS[RECORDED_ON].dram_bytes_per_s


def contests_record() -> EpiloguesRecord:
    """The record of contests and parts.

    Raises
    ------
    records.NotRecorded
        If there is none, or none of today's source.
    """
    found = records.load(EpiloguesRecord, RECORDED_ON)
    if found is None:
        raise records.NotYet(f"no epilogue was timed on an {RECORDED_ON}: {COMMAND}")
    return found


def contest(shape: Shape) -> FusedRow:
    """What was timed of bias and GELU on a layer.

    Raises
    ------
    records.NotRecorded
        If nothing was.
    """
    return _of(contests_record().contests, shape)


def parts(shape: Shape) -> FusedRow:
    """25's instantiations in turns on a layer.

    Raises
    ------
    records.NotRecorded
        If they were not timed there.
    """
    return _of(contests_record().parts, shape)


def _of(rows: Sequence[FusedRow], shape: Shape) -> FusedRow:
    for row in rows:
        if row.shape == shape:
            return row
    raise records.NotRecorded(f"{'×'.join(map(str, shape))} was not timed: {COMMAND}")


def fastest(row: FusedRow, whose: str) -> FusedSide:
    """The fastest of those who compute the same (`Whose`), or of a name, whatever its candidate.

    Raises
    ------
    records.NotRecorded
        If none was timed.
    """
    found = [side for side in row.sides if whose in (side.whose, side.name.partition(",")[0])]
    if not found:
        raise records.NotRecorded(f"no {whose} was timed: {COMMAND}")
    return min(found, key=lambda side: side.seconds)


def part(row: FusedRow, variant: str) -> FusedSide:
    """One instantiation among the parts.

    Raises
    ------
    records.NotRecorded
        If it was not timed.
    """
    for side in row.sides:
        if side.variant == variant:
            return side
    raise records.NotRecorded(f"{variant} was not timed: {COMMAND}")


def contests() -> None:
    """Display who took how long on the four layers, and what crossed DRAM: a column a layer."""
    compared("bias and GELU, BF16", [
        *(_speed(f"{name}, TFLOP/s", whose) for name, whose in (
            ("our product alone", "product"), ("**25, fused**", "fused"),
            ("25, fused, tanh by the hardware's unit", "unit"),
            ("the epilogue apart, behind our product", "apart"))),
        *(_speed(name, whose) for name, whose in (
            ("cublasLt, its product alone", "rival's product"),
            ("cublasLt, fused", "cublasLt fused"), ("PyTorch, operation by operation", "PyTorch"),
            ("PyTorch, its fused call", "PyTorch _addmm_activation"),
            ("`torch.compile`", "torch.compile"))),
        _times("fused, times the fastest rival's speed", "fused", "rival"),
        _times("fused, times our product's speed", "fused", "product"),
        Column("DRAM predicted, MB: fused; apart", lambda shape: "; ".join(
            f"{nbytes / 1e6:,.0f}" for nbytes in traffic(shape))),
        _each("DRAM recorded, MB: product alone; fused; apart", _megabytes,
              "product", "fused", "apart"),
        _each("mJ per product: fused; apart", _joules, "fused", "apart"),
        recorded("25's fastest here",
                 lambda shape: f"`{fastest(contest(shape), 'fused').variant}`",
                 absent=NOT_YET),
    ], [(style.sides(shape), shape) for shape in SHAPES],
        "predicted: modelled, each operand read and C written once, and apart the FP32 product "
        "both, none of it left in the L2; " + _label())


def _speed(head: str, whose: str) -> Column[Shape]:
    return recorded(
        head, lambda shape: fastest(contest(shape), whose).tflops, ",.0f", absent=NOT_YET)


def _times(head: str, ours: str, whose: str) -> Column[Shape]:
    """The speed of one over that of another."""
    def ratio(shape: Shape) -> float:
        row = contest(shape)
        return fastest(row, whose).seconds / fastest(row, ours).seconds

    return recorded(head, ratio, ".3f", absent=NOT_YET)


def _each(head: str, cell: Callable[[FusedSide], str], *whose: str) -> Column[Shape]:
    """What is said of the fastest of each, such as of the fused kernel and the epilogue apart."""
    return recorded(head, lambda shape: "; ".join(
        cell(fastest(contest(shape), one)) for one in whose), absent=NOT_YET)


def _megabytes(side: FusedSide) -> str:
    return f"{side.traffic.dram_bytes / 1e6:,.0f}" if side.traffic else NOT_YET


def _joules(side: FusedSide) -> str:
    return f"{side.steady.joules * 1e3:,.2f}" if side.steady else NOT_YET


def _label() -> str:
    try:
        return records.label(contests_record())
    except records.NotRecorded:
        return f"{NOT_YET}: `{COMMAND}`"
