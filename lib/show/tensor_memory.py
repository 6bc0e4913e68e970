"""What a kernel of tcgen05 does to tensor memory, step by step of the emulator, and what it asks.

The emulator has no clock. A step is one instruction of one group of lanes, in the order in which
the emulator takes them: who waits for whom is the kernel's, how long anything takes is nobody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lib import gpus
from lib.gpus import Gpu
from lib.kernels.catalogue import find
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES
from lib.ptx.core.constant import read_only
from lib.ptx.core.machine import WARP, WARPGROUP, WAVEFRONT
from lib.ptx.core.recorder import Recorder
from lib.ptx.core.syntax import Address, Instruction, Operand, Register
from lib.ptx.core.tensor_memory import COLUMNS
from lib.run.runner import run
from lib.show import scene
from lib.show.display import show
from lib.show.phases import emulate_watched, value
from lib.show.scene import Scene, words
from lib.show.version import Version
from lib.show.words import percent, quantity

if TYPE_CHECKING:
    from lib.ptx.core.batch import BasicBlock, Batch

# What a warp does from an instruction on, by how that begins: the phases of a timeline.
_BEGINS = {
    "mbarrier.try_wait": "wait", "cp.async.bulk.tensor.2d.shared": "load",
    "cp.async.bulk.tensor.2d.cta_group": "load", "tcgen05.mma": "compute", "tcgen05.ld": "store",
    "mbarrier.arrive": "wait", "bar.sync": "barrier", "barrier.cluster": "barrier",
}
WALK = 4  # tiles of C that a block is followed through
# The order of warps in which the emulator runs what is followed, so that it is the same each time.
ORDER: dict[str, Any] = {"schedule": "random", "seed": 1, "landing": "late"}


@dataclass(frozen=True)
class Moment:
    """What one instruction of tcgen05 does to tensor memory.

    Attributes
    ----------
    step : int
        Of the emulator.
    kind : str
        ``"alloc"``, ``"mma"``, ``"ld"`` or ``"dealloc"``.
    warp : int
    tile : int
        Which of the block's tiles; -1 where it is about none.
    """

    step: int
    kind: str
    warp: int
    tile: int


@dataclass(frozen=True)
class Steps:
    """What all warps of a block do, by the emulator's steps.

    Attributes
    ----------
    width : int
        Columns of a tile of sums.
    marks : tuple of tuple of (str, int)
        For each warp the steps at which another phase begins, and which.
    changes : tuple of Moment
    operands : tuple of int
        Of the first mma: where D lies, the descriptors of A and B, what is multiplied.
    last : int
        The latest step.
    """

    width: int
    marks: tuple[tuple[tuple[str, int], ...], ...]
    changes: tuple[Moment, ...]
    operands: tuple[int, ...]
    last: int


@dataclass
class _Follower(Recorder):
    """Keeps the steps of all warps of a block."""

    width: int = COLUMNS
    marks: list[list[tuple[str, int]]] = field(default_factory=list)
    changes: list[Moment] = field(default_factory=list)
    operands: tuple[int, ...] = ()
    last: int = 0
    _adding: set[int] = field(default_factory=set)  # accumulators whose tile isn't complete
    _tiles: list[int] = field(default_factory=list)  # of each accumulator, the latest
    _begun: int = 0
    _loaded: Counter[int] = field(default_factory=Counter)  # tiles that each warp began to load

    def run(self, f: Batch, block: BasicBlock, at: int) -> None:
        """Run a basic block's steps one by one, and look at each before."""
        merge = f.merge
        for index, (step, writes) in enumerate(block.single[at - block.start :], at):
            self._look(f, index)
            if merge is None:
                step(f)
            else:
                f.masked(step, writes, merge)

    def begin(self, f: Batch, index: int) -> None:
        """Look at a basic block's last instruction, which the emulator runs itself."""
        self._look(f, index)

    def end(self, f: Batch, index: int, taking: tuple | None) -> None:
        """Keep nothing more of it."""

    def _look(self, f: Batch, index: int) -> None:
        row = f.geometry.row_of(self.block)
        if row is None:
            return
        while len(self.marks) < f.warps:
            self.marks.append([])
        instruction, self.last = f.code.steps[index].instruction, f.origin + index
        opcode = instruction.opcode
        phase = next((p for b, p in _BEGINS.items() if opcode.startswith(b)), None)
        for warp in np.flatnonzero(f.active_warps[row]).tolist():
            mine = self.marks[warp]
            # Lane 0 plays a warp's role; the 31 others may stand at the block's barrier meanwhile.
            waits = phase != "barrier" or f.active_lanes[row, warp * WARP]
            if phase and waits and (not mine or mine[-1][0] != phase):
                mine.append((phase, self.last))
            if opcode.startswith("tcgen05"):
                self._change(f, row, warp, instruction)

    def _change(self, f: Batch, row: int, warp: int, instruction: Instruction) -> None:
        """Keep what an instruction of tcgen05 makes of the columns."""
        kind, tile = instruction.parts[1], -1
        values = [_value(f, row, warp, operand) for operand in instruction.operands]
        if kind == "alloc":
            self._tiles = [-1] * (values[1] // self.width)
        elif kind == "mma":
            self.operands = self.operands or tuple(values[:4])
            which = values[0] // self.width
            if which not in self._adding:
                self._tiles[which], self._begun = self._begun, self._begun + 1
            self._adding.add(which)
            tile = self._tiles[which]
        elif kind == "ld":
            column = values[1] & 0xFFFF
            which = column // self.width
            self._adding.discard(which)  # else the wait before would not be over
            self._loaded[warp] += column % self.width == 0
            # A block that issues no MMA sees none begin: its warps load the tiles in their order.
            tile = self._tiles[which] if self._begun else self._loaded[warp] - 1
        elif kind != "dealloc":
            return
        self.changes.append(Moment(self.last, kind, warp, tile))


def _value(f: Batch, row: int, warp: int, operand: Operand) -> int:
    """What the first active lane of a warp has in an operand; 0 where that is a list."""
    base = operand.base if isinstance(operand, Address) else operand
    if isinstance(base, Register):
        first = warp * WARP
        first += int(np.argmax(f.active_lanes[row, first : first + WARP]))
        return int(value(f, base, row, first))
    bits = getattr(base, "bits", getattr(base, "value", base))
    return int(bits) if isinstance(bits, int | np.integer) else 0


@lru_cache(maxsize=8)
@read_only
def followed(
    stem: str, name: str, block: int = 0, landing: str = ORDER["landing"],
) -> Steps:
    """Follow one block that walks through some tiles of C, alone or in its cluster, in `ORDER`.

    Parameters
    ----------
    stem, name : str
        Of a version whose sums lie in tensor memory, and of a variant.
    block : int
        Which of its cluster.
    landing : str
        When copies and MMAs complete: ``"early"``, at once, or ``"late"``, when waited for.
    """
    kernel = find(stem)
    variant = kernel.variant(name)
    (rows, columns), grid = variant.tile, variant.grid
    problem = variant.problem(rows * grid.cluster, WALK * columns, 3 * variant.step)
    recorder = _Follower(block=block, warp=0, width=columns)
    emulate_watched(kernel, variant, problem, recorder, grid.size, **{**ORDER, "landing": landing})
    return Steps(columns, tuple(map(tuple, recorder.marks)), tuple(recorder.changes),
                 recorder.operands, recorder.last)


def spans(found: Steps, warp: int, kind: str) -> dict[int, tuple[int, int]]:
    """The first and the last step at which a warp does something of a kind to each tile of sums."""
    seen: dict[int, tuple[int, int]] = {}
    for one in found.changes:
        if one.warp == warp and one.kind == kind and one.tile >= 0:
            seen[one.tile] = (seen.get(one.tile, (one.step, 0))[0], one.step)
    return seen


def bursts(found: Steps, warp: int, apart: float) -> list[tuple[list[int], int]]:
    """A warp's MMAs in groups that lie so many steps apart: of which tiles, and the last's step."""
    groups: list[tuple[list[int], int]] = []
    for one in found.changes:
        if one.warp != warp or one.kind != "mma":
            continue
        if not groups or one.step - groups[-1][1] > apart:
            groups.append(([], one.step))
        tiles, _ = groups[-1]
        groups[-1] = (tiles if one.tile in tiles else [*tiles, one.tile], one.step)
    return groups


def begun_early(found: Steps) -> tuple[int, int]:
    """How many tiles were begun before the one before had been loaded, of how many that could."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for one in found.changes:
        if one.kind == "mma":
            first.setdefault(one.tile, one.step)
        elif one.kind == "ld":
            last[one.tile] = one.step
    return sum(first[tile] < last[tile - 1] for tile in first if tile), max(0, len(first) - 1)


# -- what a tile asks of the machine

_MULTIPLIES = ("tcgen05.mma", "wgmma.mma_async")
# A block's walk: two tiles of 128×256 beside each other, and eight steps of K; as many rows for
# each block of a cluster.
SHAPE = (128, 512, 512)


@dataclass(frozen=True)
class Asked:
    """What a variant asks of the machine, counted in the emulator.

    Attributes
    ----------
    flops : float
        Of the problem, FLOP.
    read : int
        Bytes of shared memory that the tensor cores read: each operand of each instruction once, B.
    products : int
        Instructions that multiply, one of a warpgroup counted once.
    instructions : int
        Warp instructions of all kinds.
    """

    flops: float
    read: int
    products: int
    instructions: int


@lru_cache(maxsize=8)
@read_only
def asked(stem: str, name: str, shape: tuple[int, int, int]) -> Asked:
    """Count what one block, or cluster, asks that walks through all tiles of a problem."""
    kernel = find(stem)
    variant = kernel.variant(name)
    M, N, K = shape
    problem = variant.problem(M * variant.grid.cluster, N, K)
    done = run(kernel, problem, variant=variant, backend="emulator", exact=True,
               sms=variant.grid.size)
    trace = done.trace
    read = sum(site.wavefronts for site in trace.sites if site.kind in ("tcgen05", "wgmma"))
    (opcode, (products, _)), = (
        given for given in trace.instructions.items() if given[0].startswith(_MULTIPLIES))
    # The trace counts warps, and the four of a warpgroup issue one together.
    return Asked(problem.flops, WAVEFRONT * read,
                 products // (1 if opcode.startswith("tcgen05") else WARPGROUP),
                 sum(count for count, _ in trace.instructions.values()))


def tile_cycles(variant: Variant, K: int, gpu: Gpu) -> tuple[float, float]:
    """Cycles of an SM for a tile's MMAs, and for storing it, both by the data sheet.

    A tile's MMAs run at the tensor cores' peak, and its C leaves at the SM's share of DRAM's
    bandwidth, at the clock at which the sheet's peak holds.
    """
    rows, columns = variant.tile
    clock = gpu.tensor_fp16_flops / (gpu.sms * gpu.tensor_fp16_per_cycle)
    share = gpu.dram_bytes_per_s / gpu.sms / clock  # bytes per cycle
    return (2 * rows * columns * K / gpu.tensor_fp16_per_cycle,
            rows * columns * ITEM_BYTES[variant.out] / share)


# -- descriptors, field by field


_APART = 32  # of the lane's steps: so far apart lie groups of MMAs with a number each
_DOES = {"wait": "waits", "load": "TMA loads issued", "compute": "MMAs issued",
         "store": "tensor memory loaded, C stored", "barrier": "barrier of block or pair"}


def timeline(rows: Sequence[tuple[str, Steps]], roles: Sequence[tuple[str, int]], *, title: str,
             evidence: str, together: bool = True) -> Scene:
    """Draw what each warp of a block does, by the emulator's steps.

    Parameters
    ----------
    rows : sequence of (str, Steps)
        Blocks of one run, or variants.
    roles : sequence of (str, int)
        What the warps do, and how many of them, in order.
    together : bool
        Whether they are of one run, on one scale. Those of several runs have no scale: their
        instructions, one after the other, are no time that could be compared.
    """
    names = [f"{name} {n}" if many > 1 else name for name, many in roles for n in range(many)]
    last = max(found.last for _, found in rows)
    parts = []
    for name, found in rows:
        early, many = begun_early(found)
        parts += [words(name, bold=True),
                  words(f"{early} of {many} tiles begun before the one before is loaded" if many
                        else "it issues no MMA"),
                  scene.lanes([(what, _spans(found, warp)) for warp, what in enumerate(names)],
                              last if together else found.last,
                              unit=f"{last:,} instructions in order, no time" if together
                              else "order of instructions, no time")]
    return Scene(title, scene.key(*((phase, text, False) for phase, text in _DOES.items()))
                 + "".join(parts), evidence)


def _spans(found: Steps, warp: int) -> list[scene.Span]:
    """One warp's phases; the tiles of MMAs stand behind each group, of loads on them."""
    marks = [*found.marks[warp], ("end", found.last)]
    shown: list[scene.Span] = [
        (begin, end, f"{phase} slim" if phase == "barrier" else phase, "")
        for (phase, begin), (_, end) in zip(marks, marks[1:], strict=False) if phase in _DOES]
    shown += [(end, end + found.last / 12, "behind", ", ".join(map(str, tiles)))
              for tiles, end in bursts(found, warp, found.last / _APART)]
    return shown + [(begin, end, "store", tile)
                    for tile, (begin, end) in spans(found, warp, "ld").items()]


def timeline_of_blocks(version: Version, variant: str, *blocks: str) -> None:
    """Draw what each warp of each block of a cluster does, by the emulator's steps.

    Parameters
    ----------
    variant : str
    *blocks : str
        What the blocks are called, in order of their ranks.
    """
    rows = [(name, followed(version.kernel.stem, variant, block=rank, landing="early"))
            for rank, name in enumerate(blocks)]
    issue = [name for name, found in rows if any(one.kind == "mma" for one in found.changes)]
    title = f"All MMAs are issued in the {' and the '.join(issue)}; each block loads and stores"
    show(timeline(
        rows, version.kernel.variant(variant).roles.warps, title=title,
        evidence=f"emulated: sm_100a, {variant}, {WALK} tiles of 3 steps of K, warps in "
                 "random order; copies and MMAs complete at once"))


def emulated_timeline(version: Version, *variants: str) -> None:
    """Draw in which order each warp of a block does what, variant by variant."""
    rows = [(name, followed(version.kernel.stem, name, landing="early"))
            for name in variants]
    early = {name: begun_early(found) for name, found in rows}
    first, last = variants[0], variants[-1]
    title = (f"With one accumulator {early[first][0]} of {early[first][1]} tiles begin while the "
             f"one before leaves, with two {early[last][0]} of {early[last][1]}")
    roles = version.kernel.variant(last).roles.warps
    show(timeline(
        rows, roles, title=title, together=False,
        evidence=f"emulated: sm_100a, {WALK} tiles of 3 steps of K, warps in random order; "
                 "copies and MMAs complete at once"))


def by_intensity(version: Version, before: str) -> None:
    """Draw what the tensor cores' peak asks of a data sheet's memories, here and before.

    Parameters
    ----------
    before : str
        ``"stem/variant"`` of the version that is compared, on the same tile.
    """
    gpu, size = gpus.GPUS["B200"], 4096
    stem, _, name = before.partition("/")
    # All at one clock, that at which the tensor cores' peak is the sheet's.
    clock = gpu.tensor_fp16_flops / (gpu.sms * gpu.tensor_fp16_per_cycle)
    wanted = {}
    for page, variant in ((stem, name), (version.kernel.stem, version.kernel.variants[0].name)):
        one = asked(page, variant, SHAPE)
        wanted[page[:2]] = gpu.tensor_fp16_per_cycle * one.read / one.flops
    gives = gpus.data_bytes_per_clock(gpu)
    out = ITEM_BYTES[version.kernel.variants[0].out]
    dram = gpu.tensor_fp16_flops * (2 * ITEM_BYTES["float16"] + out) / (2.0 * size)
    bars = [(f"shared memory, as {which} reads it: {each:.0f} of {gives} bytes per cycle",
             each / gives) for which, each in wanted.items()]
    bars.append((f"DRAM, {size:,}³: {quantity(dram, 'B/s')} of "
                 f"{quantity(gpu.dram_bytes_per_s, 'B/s')}", dram / gpu.dram_bytes_per_s))
    end = max(1.0, *(share for _, share in bars))
    (before, first), (now, last) = wanted.items()
    show(Scene(
        f"At their peak the tensor cores want {first:.0f} bytes of shared memory per cycle as "
        f"{before} reads it, {last:.0f} as {now} does, of {gives}",
        "".join(words(text + (f", at most {percent(1 / share)} of the peak" if share > 1 else ""))
                + scene.lanes([("", [(0.0, min(share, 1.0), "focus", ""),
                                     (share, 1.0, "hollow", ""),
                                     (1.0, share, "warning", "")])], end)
                for text, share in bars),
        f"modelled: data sheet of {gpu.name}, at the {clock / 1e9:.2f} GHz of its peak; "
        "intensity emulated; no speed", "framed: what the memory gives"))
