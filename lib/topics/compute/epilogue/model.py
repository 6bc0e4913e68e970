"""What an epilogue costs a tile, by the emulator's counts, and what a second kernel would move.

The special-function units give 16 results per cycle and SM (CUDA C++ Programming Guide,
"Arithmetic Instructions", compute capability 9.0): ``ex2``, ``rcp`` and ``tanh`` are theirs. A
scheduler issues one warp instruction per cycle, and an SM has four.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lib import gpus
from lib.dispatch.parts import FusedChoice, choose
from lib.kernels.catalogue import KERNELS
from lib.kernels.fused import EPILOGUES
from lib.problem import ITEM_BYTES, with_epilogue
from lib.ptx.core.machine import WARP
from lib.records import store as records
from lib.records.schema import EpiloguesRecord, FusedRow, FusedSide, Row
from lib.topics.version import RECORDED_ON, Version

STEM = "25_epilogue"
SPECIAL_PER_CYCLE, SCHEDULERS = 16, 4
SPECIAL = ("ex2.", "rcp.", "tanh.", "lg2.", "rsqrt.")
COMMAND = "python -m lib.measure.fused_bench --record results --joules --traffic"

Shape = tuple[int, int, int]
# The layers of the contest, and those on which parts were timed.
SHAPES: tuple[Shape, ...] = (
    (4096, 4096, 1024), (4096, 16384, 4096), (512, 14336, 4096), (64, 4096, 4096))
LARGE, FLAT = SHAPES[1:3]
# What the page asks `lib.gemm`'s rule besides.
ASKED: tuple[tuple[Shape, str], ...] = (
    *((shape, "bias_gelu") for shape in SHAPES), ((1, 4096, 14336), "bias_gelu"),
    ((1, 4096, 14336), "swiglu"), ((4096, 4100, 1024), "bias_gelu"))


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


def exposed(variant: str, over: str, K: int) -> float:
    """The share of its product's time that an epilogue takes where nothing hides it, at least."""
    tile = tile_of(variant)
    return cost(variant, over).cycles(tile) / loop_cycles(tile, K)


def least_hidden(variant: str, over: str = "plain") -> float:
    """The least K at which the other warpgroup's products last as long as an epilogue."""
    tile = tile_of(variant)
    return cost(variant, over).cycles(tile) / loop_cycles(tile, 1)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one problem that must cross DRAM, each read once and written once.

    Attributes
    ----------
    fused : int
        With the epilogue in the product's kernel.
    apart : int
        With the product in FP32 in between.
    rounded : int
        With a product in between that is rounded to C's type, as frameworks have it.
    """

    fused: int
    apart: int
    rounded: int


def traffic(shape: Shape, epilogue: str = "bias_gelu") -> Traffic:
    """The bytes of bias and GELU, or of another epilogue."""
    problem = with_epilogue(*shape, epilogue=EPILOGUES[epilogue][0])
    elements, fused = problem.M * problem.N, problem.compulsory_bytes
    between = {name: 2 * ITEM_BYTES[name] * elements for name in ("float32", problem.out)}
    return Traffic(fused, fused + between["float32"], fused + between[problem.out])


def choice(shape: Shape, epilogue: str = "bias_gelu") -> FusedChoice:
    """What `lib.gemm` launches."""
    return choose(with_epilogue(*shape, epilogue=EPILOGUES[epilogue][0]))


def saved_seconds(shape: Shape) -> float:
    """What a second pass through DRAM takes at least, by the data sheet's bandwidth."""
    one = traffic(shape)
    return (one.apart - one.fused) / gpus.GPUS[RECORDED_ON].dram_bytes_per_s


def recorded() -> EpiloguesRecord:
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
    return _of(recorded().contests, shape)


def parts(shape: Shape) -> FusedRow:
    """25's instantiations in turns on a layer.

    Raises
    ------
    records.NotRecorded
        If they were not timed there.
    """
    return _of(recorded().parts, shape)


def cube(variant: str, side: int) -> Row:
    """What 25's own record has of one instantiation on a cube.

    Raises
    ------
    records.NotRecorded
        If nothing is, of today's source.
    """
    return Version(STEM, fresh=True).recorded(side, variant)


def _of(rows: Sequence[FusedRow], shape: Shape) -> FusedRow:
    for row in rows:
        if row.shape == shape:
            return row
    raise records.NotRecorded(f"{'×'.join(map(str, shape))} was not timed: {COMMAND}")


def fastest(row: FusedRow, *whose: str, named: str = "") -> FusedSide:
    """The fastest of those who compute the same, or of those of one name, whatever its candidate.

    Raises
    ------
    records.NotRecorded
        If none was timed.
    """
    found = [side for side in row.sides
             if side.whose in whose or (named and side.name.partition(",")[0] == named)]
    if not found:
        raise records.NotRecorded(f"no {' or '.join(whose) or named} was timed: {COMMAND}")
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
