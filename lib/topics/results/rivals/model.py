"""What cuBLAS runs: its kernels' names taken apart, and ours that are built alike.

The names are not documented. Types, tile, stages and cluster are read as the recorded types and
cublasLt's own attributes bear them out. That a kernel of nvjet without ``coop`` in its name has its
consumers in turn is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Variant
from lib.ptx.core.machine import WARPGROUP
from lib.records import reported, schema
from lib.records import store as records
from lib.records.reader import Recorded, counted
from lib.records.schema import (
    Benchmark,
    CublasRecord,
    KernelRecord,
    RivalRow,
    RivalsRecord,
    Row,
)
from lib.records.store import NotRecorded
from lib.topics.results.scoreboard.model import Types
from lib.topics.version import called

COOPERATIVE, PING_PONG, SINGLE = "cooperative", "ping-pong", "one warpgroup"
# What stands for a type in nvjet's names: of A and B, accumulators and C; with 8 bits of A, B, a
# C that is read, accumulators and C.
LETTERS = {"h": "FP16", "q": "E4M3", "s": "FP32", "t": "BF16"}


@dataclass(frozen=True)
class Design:
    """How a kernel for products is built, as far as its name or our catalogue says.

    Attributes
    ----------
    family : str
        ``"nvjet"``, ``"CUTLASS"``, ``"xmma"``, or ``"ours"``.
    arch : str
        What it was written for: ``"sm_90"``.
    tile : (int, int)
        As the name has it. cuBLAS stores by columns: its rows are our columns.
    step : int or None
        Of K, in a stage.
    stages : int or None
    cluster : (int, int)
    schedule : str
        What the consumers do: `COOPERATIVE`, `PING_PONG` or `SINGLE`; nothing where there are no
        roles.
    types : str
        A and B, accumulators, C; empty where the name doesn't say.
    split : bool
        Whether several blocks share a tile's K.
    """

    family: str
    arch: str
    tile: tuple[int, int]
    step: int | None = None
    stages: int | None = None
    cluster: tuple[int, int] = (1, 1)
    schedule: str = ""
    types: str = ""
    split: bool = False

    def alike(self, other: Design) -> bool:
        """Whether tile, lying or standing, and schedule are the same."""
        return sorted(self.tile) == sorted(other.tile) and self.schedule == other.schedule


_NVJET = re.compile(
    r"nvjet_(?P<arch>sm\d+)_(?P<types>[a-z]{3}(?:[a-z]{2})?)_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)"
    r"_(?P<down>\d+)x(?P<across>\d+)_(?P<raster>[hv])_bz(?P<coop>_coop[AB])?(?:_algo\d+)?"
    r"(?:_ovscale)?(?:_[AB](?:blk|vec)\d+)*(?P<split>_splitK)?_(?P<layout>[NT]{3})")
_CUTLASS = re.compile(
    r"cutlass_(?P<arch>\d+)_(?:wmma_)?(?P<unit>simt|tensorop)_(?:\w+?_)?(?P<gemm>\w*gemm)"
    r"(?:_b?f16)?_(?P<m>\d+)x(?P<n>\d+)(?:_(?P<k>\d+)x(?P<stages>\d+))?_[nt]{2}_align\d+")
_XMMA = re.compile(
    r"(?P<arch>sm\d+)_xmma_gemm_\w+?_tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_stage(?P<stages>\d+)"
    r"_\w*?execute_(?P<split>split_k_)?kernel")
_REDUCTION = "splitKreduce_kernel"


def taken_apart(name: str) -> Design:
    """What a kernel's name says.

    Raises
    ------
    ValueError
        If it is of no family that is known here.
    """
    if found := _NVJET.search(name):
        return Design("nvjet", _arch(found["arch"][2:]), (int(found["m"]), int(found["n"])),
                      int(found["k"]), int(found["stages"]),
                      (int(found["down"]), int(found["across"])),
                      COOPERATIVE if found["coop"] else PING_PONG,
                      " ".join(LETTERS[found["types"][place]] for place in (0, -2, -1)),
                      bool(found["split"]))
    if found := _CUTLASS.search(name) or _XMMA.search(name):
        step, stages = (int(digits) if digits else None for digits in found.group("k", "stages"))
        return Design("CUTLASS" if "cutlass" in name else "xmma",
                      _arch(found["arch"].removeprefix("sm")), (int(found["m"]), int(found["n"])),
                      step, stages, split=bool(found.groupdict().get("split")))
    raise ValueError(f"{name} is a kernel of no family that is known: nvjet, CUTLASS or xmma")


def design(kernels: Sequence[str]) -> Design:
    """The design of the kernel that multiplies, among those that cuBLAS launches for one product.

    One that adds up what blocks that share K have computed stands beside it, or it is launched
    twice under two names.
    """
    first = taken_apart(next(name for name in kernels if _REDUCTION not in name))
    split = len(kernels) > 1 or first.split
    return replace(first, split=split)


def plain(name: str) -> str:
    """A kernel's name as a person reads it: of a mangled one the part that names it."""
    if _REDUCTION in name:
        return _REDUCTION
    found = re.search(r"cutlass_\d\w*?align\d+", name)
    return found[0] if found else name.partition("_execute_")[0]


def ours(variant: Variant, arch: str) -> Design:
    """The design of one of ours, from the catalogue."""
    schedule = variant.schedule
    consumers = dict(variant.roles.warps).get("consumers", 0)
    roles = "" if not consumers else SINGLE if consumers <= WARPGROUP else (
        PING_PONG if schedule.ping_pong else COOPERATIVE)
    return Design("ours", arch, schedule.tile, schedule.step, schedule.stages or None,
                  schedule.cluster, roles, split=schedule.split > 1)


def _arch(digits: str) -> str:
    return f"sm_{digits}"


@dataclass(frozen=True)
class Choice:
    """What cuBLAS takes for one problem, in one stretch of GPU time.

    Attributes
    ----------
    chunk : str
    default, best : sequence of str
        Kernels' names.
    gain : float
        Speed of the best over that of the default, both in turns.
    """

    chunk: str
    default: tuple[str, ...]
    best: tuple[str, ...]
    gain: float


def choices(gpu: str, types: Types, size: int) -> list[Choice]:
    """What cuBLAS took for a cube in each chunk in which its candidates were timed."""
    found: dict[str, Choice] = {}
    for row in _rows(gpu):
        default, best = row.rival.default, row.rival.best
        if types.has(row) and row.is_cube(size) and best and default.kernels and best.kernels:
            found.setdefault(row.chunk, Choice(
                row.chunk, tuple(default.kernels), tuple(best.kernels),
                best.tflops / default.tflops))
    return [found[chunk] for chunk in sorted(found)]


def _rows(gpu: str) -> Iterator[Row | RivalRow]:
    """What versions, and cuBLAS by itself, were timed at on a GPU."""
    for record in records.every():
        if record.gpu.key != gpu:
            continue
        if isinstance(record, KernelRecord) and record.kernel in KERNELS:
            for variant in record.variants.values():
                yield from variant.bench
        elif isinstance(record, CublasRecord):
            for rival in record.variants.values():
                yield from rival.bench


@dataclass(frozen=True)
class Side:
    """One kernel of an autopsy.

    Attributes
    ----------
    name : str
    design : Design
    share : float
        Of the best of cuBLAS, in the same run.
    noise : float
        How far that may be off; 0 of the best itself.
    counters : mapping of str to float
        `lib.measure.counters`' names; empty where nothing was counted.
    registers : int or None
    joules : float or None
    """

    name: str
    design: Design
    share: float
    counters: Mapping[str, float]
    registers: int | None = None
    joules: float | None = None
    noise: float = 0.0

    def tiles_per_sm(self, gpu: str, size: int) -> float:
        """Tiles of C, each cut as often as K is, for an SM of the GPU."""
        down, across = self.design.tile
        return -(-size // down) * -(-size // across) / GPUS[gpu].sms


@dataclass(frozen=True)
class Autopsy:
    """The fastest of ours on a cube, beside what cuBLAS runs on it.

    Attributes
    ----------
    size : int
    stem, variant : str
        Of ours: which was timed, and what it launched.
    sides : sequence of Side
        Ours, cuBLAS's default, and its best where that is another kernel.
    twin : str
        The fastest recorded variant of ours with the best's tile and schedule, where ours has
        another; with its schedule alone, where no variant has both; empty where there is none.
    same_tile : bool
        Whether that variant has the best's tile too.
    twin_speed, noise : float
        Its share of cuBLAS over that of ours, and how far that may be off: both spreads together.
    same_day : bool
        Whether ours and cuBLAS were counted on one day. What was not is not compared.
    """

    size: int
    stem: str
    variant: str
    sides: tuple[Side, ...]
    twin: str = ""
    same_tile: bool = False
    twin_speed: float = 0.0
    noise: float = 0.0
    same_day: bool = True


def autopsy(gpu: str, types: Types, size: int) -> Autopsy:
    """Compare the fastest of ours on a cube with what cuBLAS runs on it.

    Raises
    ------
    NotRecorded
        If ours or cuBLAS has no record of it.
    """
    share, stem, name = max(_candidates(gpu, types, size), default=(0.0, "", ""))
    if not stem:
        raise NotRecorded(f"nothing has a record of {types.title} at {size:,}: "
                          "python -m lib record")
    stored = Recorded(stem, gpu)
    row = stored.bench(size, name)
    variant = stored.launched(row.instantiation, row.shape) or KERNELS[stem].variant(name)
    arch = stored.variant(name).arch
    mine = Side(called(stem, variant.name), ours(variant, arch), share,
                _counters(stored, size, name), stored.variant(name).registers,
                row.joules[0] if row.joules else None, row.noise)
    rivals = _rivals(gpu, types, size, _met(row), row.joules[1] if row.joules else None)
    best = rivals[-1].design
    fixed = [] if best.alike(mine.design) else list(_fixed(gpu, types, size, arch, best,
                                                           day(row.chunk)))
    same = [one for one in fixed if one[0]] or (
        fixed if best.schedule not in ("", mine.design.schedule) else [])
    same_tile, ratio, twin, spread = max(same, default=(False, 0.0, "", 0.0))
    cublas = records.load(CublasRecord, gpu)
    return Autopsy(size, stem, variant.name, (mine, *rivals), twin, same_tile, ratio / share,
                   spread + row.spread, bool(cublas and cublas.date == stored.record.date))


def day(chunk: str) -> str:
    """The day on which a chunk of GPU time began: ``"20261122"``."""
    return chunk.partition("T")[0]


def _met(row: Benchmark) -> Sequence[str]:
    """The kernels of the cuBLAS that a row was in turns with; none where they were not read."""
    return row.rival.fastest.kernels or ()


def _fixed(gpu: str, types: Types, size: int, arch: str, like: Design, when: str
           ) -> Iterator[tuple[bool, float, str, float]]:
    """Alike, ratio, name and spread of our variants that are built like a design, of one day.

    Those that launch another in their place are none.
    """
    for stem, kernel in KERNELS.items():
        record = records.load(KernelRecord, gpu, stem)
        if record is None:
            continue
        for variant in kernel.measured:
            built = ours(variant, arch)
            if types.takes(variant) and not variant.candidates and built.schedule == like.schedule:
                stored = record.variants.get(variant.name)
                for row in stored.bench if stored else ():
                    if row.is_cube(size) and day(row.chunk) == when:
                        name = called(stem, variant.name)
                        yield built.alike(like), row.ratio, name, row.spread


def _candidates(gpu: str, types: Types, size: int, energy: bool = False
                ) -> Iterator[tuple[float, str, str]]:
    """Share of the rival, version and variant: all of these types, a rule's choice among them."""
    for stem, kernel in KERNELS.items():
        record = records.load(KernelRecord, gpu, stem)
        for name, stored in record.variants.items() if record else ():
            variant = kernel.variant(name) if name in {v.name for v in kernel.measured} else None
            if variant and types.takes(variant):
                for row in stored.bench:
                    if row.is_cube(size) and (row.joules or not energy):
                        yield row.ratio, stem, name


def _counters(stored: Recorded, size: int, name: str) -> Mapping[str, float]:
    try:
        return stored.counters(size, name)
    except NotRecorded:
        return {}


def _rivals(gpu: str, types: Types, size: int, met: Sequence[str], joules: float | None
            ) -> list[Side]:
    """cuBLAS's default and, where that is another kernel, its best.

    Joules are those of the kernels that ours `met`, and given to no other.
    """
    record = records.load(CublasRecord, gpu)
    for variant in record.variants.values() if record else ():
        for row in variant.bench:
            default, best = row.rival.default, row.rival.best
            if types.has(row) and row.is_cube(size) and best:
                fastest = max(default.tflops, best.tflops)
                one = Side(
                    "cuBLAS's default", design(default.kernels or ()), default.tflops / fastest,
                    counted(variant.counters, size) or {},
                    joules=joules if met == default.kernels else None, noise=default.spread)
                if best.kernels == default.kernels or best.tflops <= default.tflops:
                    return [replace(one, name="cuBLAS, default and best", share=1.0, noise=0.0)]
                return [one, Side(
                    "cuBLAS's best", design(best.kernels or ()), 1.0,
                    counted(variant.best_counters, size) or {},
                    joules=joules if met == best.kernels else None)]
    raise NotRecorded(f"cuBLAS has no record of {types.title} at {size:,}: "
                      f"python -m lib record {schema.CUBLAS}")


@dataclass(frozen=True)
class Cycles:
    """Cycles of one launch on a cube.

    Attributes
    ----------
    ours : float
    met : float or None
        Of the cuBLAS kernel that ours was in turns with; None if that was not profiled.
    fewest : float or None
        Of the profiled cuBLAS kernel with the fewest.
    """

    ours: float
    met: float | None
    fewest: float | None


def cycles(stem: str, gpu: str, size: int) -> Cycles:
    """Cycles of a version's first variant, of what it was in turns with, and cuBLAS's fewest.

    Raises
    ------
    NotRecorded
        If ours was not profiled.
    """
    stored = Recorded(stem, gpu)
    first = stored.kernel.variants[0].name
    row = stored.bench(size, first)
    types = Types("", "", row.dtype, row.out, row.b_layout)
    record = records.load(CublasRecord, gpu)
    profiled = {}
    for variant in record.variants.values() if record else ():
        for one in variant.bench:
            if types.has(one) and one.is_cube(size) and (best := one.rival.best):
                for side, counters in ((best, variant.best_counters),
                                       (one.rival.default, variant.counters)):
                    if found := counted(counters, size):
                        profiled[tuple(side.kernels or ())] = found["cycles"]
    return Cycles(stored.counters(size, first)["cycles"], profiled.get(tuple(_met(row))),
                  min(profiled.values(), default=None))


@dataclass(frozen=True)
class Shares:
    """What ours, cuBLAS's default and public kernels reach of the best of cuBLAS on a cube.

    Attributes
    ----------
    types : Types
    size : int
    name : str
        Of ours: the fastest.
    tflops, share : float
        Of ours.
    default : float or None
        Of the default, in turns with the best in the same chunk; None where there is no best.
    peers : tuple of (str, float)
        Each in turns with cuBLAS in a run of its own.
    joules : (float, float) or None
        Of ours and of the cuBLAS that it met, in one run.
    """

    types: Types
    size: int
    name: str
    tflops: float
    share: float
    default: float | None
    peers: tuple[tuple[str, float], ...]
    joules: tuple[float, float] | None


def shares(gpu: str, types: Types, size: int, energy: bool = False) -> Shares | None:
    """What is recorded of a cube, ours being the fastest; None if nothing is.

    Parameters
    ----------
    gpu : str
    types : Types
    size : int
        M = N = K.
    energy : bool
        Whether ours is the fastest of those whose joules are recorded.
    """
    share, stem, name = max(_candidates(gpu, types, size, energy), default=(0.0, "", ""))
    if not stem:
        return None
    row = Recorded(stem, gpu).bench(size, name)
    best = row.rival.best
    default = row.rival.default.tflops / row.rival.fastest.tflops if best else None
    record = records.load(RivalsRecord, gpu)
    peers = tuple(
        (peer, one.ratio) for peer, stored in (record.peers if record else {}).items()
        if not stored.half_sums for one in stored.rows if types.has(one) and one.is_cube(size))
    return Shares(types, size, called(stem, name), row.tflops, share, default, peers, row.joules)


@dataclass(frozen=True)
class Reported:
    """A ratio that somebody reports, and what became of it here.

    Attributes
    ----------
    theirs, cublas : float
        TFLOP/s, as reported.
    here, best, default : float
        TFLOP/s here: of their kernel and of the cuBLAS that it met, in turns; and of cuBLAS's
        default, from its own turns with the best.
    """

    theirs: float
    cublas: float
    here: float
    best: float
    default: float

    @property
    def kernel(self) -> float:
        """Their kernel's speed here over the reported one."""
        return self.here / self.theirs

    @property
    def rival(self) -> float:
        """The reported cuBLAS's speed over the one that it meets here."""
        return self.cublas / self.best


def fast_cu(gpu: str, size: int = 4096) -> Reported:
    """What fast.cu's author reports at 4,096, and what is recorded here.

    Raises
    ------
    NotRecorded
        If fast.cu has no record with cuBLAS's default and best.
    """
    record = records.load(RivalsRecord, gpu)
    peer = record.peers.get("fast.cu") if record else None
    row = next((one for one in (peer.rows if peer else ()) if one.is_cube(size)), None)
    if row is None or row.rival is None:
        raise NotRecorded("fast.cu has no record: python -m lib rivals --record")
    return Reported(reported.FAST_CU, reported.FAST_CU_CUBLAS, row.tflops, row.cublas_tflops,
                    row.rival.default.tflops)
