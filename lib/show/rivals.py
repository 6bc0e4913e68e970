"""What cuBLAS runs: its kernels' names taken apart, and ours that are built alike.

The names are not documented. Types, tile, stages and cluster are read as the recorded types and
cublasLt's own attributes bear them out. That a kernel of nvjet without ``coop`` in its name has its
consumers in turn is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Variant
from lib.ptx.core.machine import WARPGROUP
from lib.records import reach, reported, schema
from lib.records import store as records
from lib.records.reader import Recorded, counted
from lib.records.schema import (
    Benchmark,
    CublasRecord,
    KernelRecord,
    Ours,
    PeerRow,
    PublicPeer,
    Record,
    RivalRow,
    RivalsRecord,
    RivalVariant,
    Row,
)
from lib.records.store import NotRecorded
from lib.show import chart as style
from lib.show import dots
from lib.show.columns import Column, across, down
from lib.show.display import both, folded, note, once_recorded, table
from lib.show.markdown import markdown
from lib.show.scoreboard import BEST, COLUMNS, HALF_SUMS, TYPES, Types, speed
from lib.show.version import RECORDED_ON, called

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
    default, best : sequence of str
        Kernels' names.
    gain : float
        Speed of the best over that of the default, both in turns.
    """

    default: tuple[str, ...]
    best: tuple[str, ...]
    gain: float


def choices_of(types: Types, size: int) -> list[Choice]:
    """What cuBLAS took for a cube in each chunk in which its candidates were timed."""
    found: dict[str, Choice] = {}
    for row in _rows():
        default, best = row.rival.default, row.rival.best
        if types.has(row) and row.is_cube(size) and best and default.kernels and best.kernels:
            found.setdefault(row.chunk, Choice(tuple(default.kernels), tuple(best.kernels),
                                               best.tflops / default.tflops))
    return [found[chunk] for chunk in sorted(found)]


def _rows() -> Iterator[Row | RivalRow]:
    """What versions, and cuBLAS by itself, were timed at."""
    for record in records.every():
        if record.gpu.key != RECORDED_ON:
            continue
        if isinstance(record, KernelRecord) and record.kernel in KERNELS:
            for variant in record.variants.values():
                yield from variant.bench
        elif isinstance(record, CublasRecord):
            for rival in record.variants.values():
                yield from rival.bench


def _of_cublas(types: Types, size: int) -> Iterator[tuple[RivalVariant, RivalRow]]:
    """What was recorded of cuBLAS by itself on a cube, where its candidates were timed."""
    record = records.load(CublasRecord, RECORDED_ON)
    for variant in record.variants.values() if record else ():
        for row in variant.bench:
            if types.has(row) and row.is_cube(size) and row.rival.best:
                yield variant, row


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

    def tiles_per_sm(self, size: int) -> float:
        """Tiles of C, each cut as often as K is, for an SM of the GPU."""
        down, across = self.design.tile
        return -(-size // down) * -(-size // across) / GPUS[RECORDED_ON].sms


@dataclass(frozen=True)
class Autopsy:
    """The fastest of ours on a cube, beside what cuBLAS runs on it.

    Attributes
    ----------
    sides : sequence of Side
        Ours, cuBLAS's default, and its best where that is another kernel.
    same_day : bool
        Whether ours and cuBLAS were counted on one day. What was not is not compared.
    """

    sides: tuple[Side, ...]
    same_day: bool


def autopsy(types: Types, size: int) -> Autopsy:
    """Compare the fastest of ours on a cube with what cuBLAS runs on it.

    Raises
    ------
    NotRecorded
        If ours or cuBLAS has no record of it.
    """
    found = _fastest(types, size)
    if found is None:
        raise NotRecorded(f"nothing has a record of {types.title} at {size:,}: "
                          "python -m lib record")
    stored, name, row = found
    variant = stored.launched(row.instantiation, row.shape) or stored.kernel.variant(name)
    code, (own, theirs) = stored.variant(name), row.joules or (None, None)
    try:
        counters = stored.counters(size, name)
    except NotRecorded:
        counters = {}
    mine = Side(called(stored.stem, variant.name), ours(variant, code.arch), row.ratio, counters,
                code.registers, own, row.noise)
    rivals = _rivals(types, size, _met(row), theirs)
    cublas = records.load(CublasRecord, RECORDED_ON)
    return Autopsy((mine, *rivals), bool(cublas and cublas.date == stored.record.date))


def _met(row: Benchmark) -> Sequence[str]:
    """The kernels of the cuBLAS that a row was in turns with; none where they were not read."""
    return row.rival.fastest.kernels or ()


def _fastest(types: Types, size: int, energy: bool = False) -> tuple[Recorded, str, Row] | None:
    """The fastest of ours on a cube, a rule's choice among them: version, variant and row.

    With `energy` that of those whose joules are recorded.
    """
    found = [(row.ratio, stem, variant.name) for stem, kernel in KERNELS.items()
             if (record := records.load(KernelRecord, RECORDED_ON, stem))
             for variant in kernel.measured
             if types.takes(variant) and variant.name in record.variants
             for row in record.variants[variant.name].bench
             if row.is_cube(size) and (row.joules or not energy)]
    if not found:
        return None
    _, stem, name = max(found)
    stored = Recorded(stem, RECORDED_ON)
    return stored, name, stored.bench(size, name)


def _rivals(types: Types, size: int, met: Sequence[str], joules: float | None) -> list[Side]:
    """cuBLAS's default and, where that is another kernel, its best.

    Joules are those of the kernels that ours `met`, and given to no other.
    """
    for variant, row in _of_cublas(types, size):
        default, fastest = row.rival.default, row.rival.fastest
        one = Side("cuBLAS's default", design(default.kernels or ()),
                   default.tflops / fastest.tflops, counted(variant.counters, size) or {},
                   joules=joules if met == default.kernels else None, noise=default.spread)
        if fastest.kernels == default.kernels:
            return [replace(one, name="cuBLAS, default and best", share=1.0, noise=0.0)]
        return [one, Side("cuBLAS's best", design(fastest.kernels or ()), 1.0,
                          counted(variant.best_counters, size) or {},
                          joules=joules if met == fastest.kernels else None)]
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


def cycles(stem: str, size: int) -> Cycles:
    """Cycles of a version's first variant, of what it was in turns with, and cuBLAS's fewest.

    Raises
    ------
    NotRecorded
        If ours was not profiled.
    """
    stored = Recorded(stem, RECORDED_ON)
    first = stored.kernel.variants[0].name
    row = stored.bench(size, first)
    profiled = {}
    for variant, one in _of_cublas(Types("", "", row.dtype, row.out, row.b_layout), size):
        for side, counters in ((one.rival.best, variant.best_counters),
                               (one.rival.default, variant.counters)):
            if side and (found := counted(counters, size)):
                profiled[tuple(side.kernels or ())] = found["cycles"]
    return Cycles(stored.counters(size, first)["cycles"], profiled.get(tuple(_met(row))),
                  min(profiled.values(), default=None))


@dataclass(frozen=True)
class Shares:
    """What ours, cuBLAS's default and public kernels reach of the best of cuBLAS on a cube.

    Attributes
    ----------
    name : str
        Of ours: the fastest.
    tflops, share : float
        Of ours.
    default : float or None
        Of the default, in turns with the best in the same chunk; None where there is no best.
    peers : tuple of float
        Public kernels' shares, each in turns with cuBLAS in a run of its own.
    joules : (float, float) or None
        Of ours and of the cuBLAS that it met, in one run.
    """

    name: str
    tflops: float
    share: float
    default: float | None
    peers: tuple[float, ...]
    joules: tuple[float, float] | None


def shares(types: Types, size: int, energy: bool = False) -> Shares | None:
    """What is recorded of a cube, ours being the fastest (see `_fastest`); None if nothing is."""
    found = _fastest(types, size, energy)
    if found is None:
        return None
    stored, name, row = found
    rival = row.rival
    record = records.load(RivalsRecord, RECORDED_ON)
    peers = tuple(one.ratio for peer in (record.peers.values() if record else ())
                  if not peer.half_sums for one in peer.rows
                  if types.has(one) and one.is_cube(size))
    return Shares(called(stored.stem, name), row.tflops, row.ratio,
                  rival.default.tflops / rival.fastest.tflops if rival.best else None, peers,
                  row.joules)


# The cubes that the pictures have rows for, by what these are called.
_CUBES = {f"{name}, {size:,}": (types, size)
          for name, types in zip(("FP32", "FP16", "BF16", "FP16 out"), TYPES, strict=True)
          for size in (2048, 4096, 8192)}

_BY_KEY = {types.key: types for types in TYPES}


@once_recorded()
def answer() -> None:
    """Display how far the book comes: at which turns, ±, and where it doesn't hold."""
    note(reach.answer(RECORDED_ON))


def choices() -> None:
    """Display which kernel cuBLAS takes for each cube, by default and at its best."""
    rows, names = [], {}
    for types in TYPES:
        for size, *_ in COLUMNS:
            found = choices_of(types, size)
            if not found:
                continue
            default = list(dict.fromkeys(_built(one.default) for one in found))
            best = list(dict.fromkeys(_built(one.best) for one in found))
            rows.append((
                types.title, f"{size:,}", "<br>".join(default),
                "the same" if best == default else "<br>".join(best),
                _range([one.gain - 1 for one in found]),
            ))
            for one in found:
                names.update({_names(kernels): _built(kernels)
                              for kernels in (one.default, one.best)})
    evidence = (f"*recorded: {_label(CublasRecord)}; where stretches of GPU time chose otherwise, "
                "each choice is named*")
    head = ("types", "M = N = K", "by default", "the fastest candidate", "faster by")
    folded("Each cube: the default, the fastest candidate, and what lies between them",
            markdown(head, rows), evidence)
    every = markdown(("full names, as the profiler has them", "read as"), sorted(names.items()))
    folded(f"The names of all {len(names)}", every, evidence)


@once_recorded()
def apart_best(key: str, size: int) -> None:
    """Display the name of cuBLAS's fastest kernel for a cube, taken apart."""
    choices = choices_of(_BY_KEY[key], size)
    if not choices:
        raise NotRecorded(f"cuBLAS has no record: python -m lib record {schema.CUBLAS}")
    name = choices[-1].best[0]
    found = taken_apart(name)
    table((f"`{plain(name)}`", "says"), (
        ("family, written for", f"{found.family}, {found.arch}"),
        ("A and B, accumulators, C", ", ".join(found.types.split())),
        ("tile", style.sides(found.tile)),
        ("K per stage, stages", f"{found.step}, {found.stages}"),
        ("cluster", style.sides(found.cluster)),
        ("consumer warpgroups", found.schedule or "no roles"),
    ), "modelled: read out of the name, undocumented")


@once_recorded()
def autopsies(key: str, *sizes: int) -> None:
    """Display, folded, for cubes of some types ours beside what cuBLAS runs."""
    types = _BY_KEY[key]
    for size in sizes:
        found = autopsy(types, size)
        folded(f"{types.title}, {size:,}: what each is built of, and what was counted",
                markdown(*down(f"{types.title}, {size:,}", _properties(found, size),
                               [(side.name, side) for side in found.sides])),
                f"*recorded: {_label(CublasRecord)}; speed in turns, counters by ncu of one "
                f"launch{'' if found.same_day else ', ours on another day'}, joules by NVML; tiles "
                "per SM modelled*")


OURS, THEIRS, PUBLIC = "ours", "cuBLAS's default", "the fastest public kernel"
L2, DRAM = "through L2", "from and to DRAM"
_BEST = "the best of cuBLAS"


@once_recorded()
def speeds() -> None:
    """Draw what ours, cuBLAS's default and the fastest public kernel reach of the best, by problem.
    """
    found = {problem: one for problem, cube in _CUBES.items() if (one := shares(*cube))}
    if not found:
        raise NotRecorded("no version has a record: python -m lib record")
    rows = [dots.Row(problem, [
        *([(PUBLIC, max(one.peers))] if one.peers else []),
        *([(THEIRS, one.default)] if one.default else []), (OURS, one.share)],
        f"{one.name}: {style.number(one.tflops)} TFLOP/s") for problem, one in found.items()]
    least, highest = (edge(one.share for one in found.values()) for edge in (min, max))
    _draw(rows, {OURS: dots.FULL, THEIRS: dots.GREY, PUBLIC: dots.HOLLOW},
          f"The fastest of ours reaches {least:.1%} to {highest:.1%} of the best of cuBLAS",
          _days(KernelRecord, "each share from turns of its own"))


@once_recorded()
def byte_counts() -> None:
    """Draw the bytes of the fastest of ours over those of cuBLAS's best, a row a problem."""
    rows = []
    for name, ours, best in _counted():
        at = (ours["l2_bytes"], _dram(ours))
        rows.append(dots.Row(name, [(DRAM, at[1] / _dram(best)), (L2, at[0] / best["l2_bytes"])],
                             f"{at[0] / 1e9:.3g} GB, {at[1] / 1e9:.3g} GB"))
    _draw(rows, {L2: dots.FULL, DRAM: dots.RING},
          f"Ours moves {dots.between(rows, L2)} of the bytes through L2 that "
          "cuBLAS's best moves", _days(CublasRecord, "ncu, one launch each"))


@once_recorded()
def cycle_counts() -> None:
    """Draw the cycles of one launch of the fastest of ours over those of cuBLAS's best."""
    rows = [dots.Row(name, [(OURS, ours["cycles"] / best["cycles"])],
                     f"{style.number(ours['cycles'] / 1e3)} k cycles")
            for name, ours, best in _counted()]
    _draw(rows, {OURS: dots.FULL},
          f"One launch of ours takes {dots.between(rows)} of the cycles of cuBLAS's best",
          _days(CublasRecord, "ncu, one launch each"))


@once_recorded()
def energies() -> None:
    """Draw the joules of the fastest of ours that has any over those of the cuBLAS that it met."""
    rows = [dots.Row(problem, [(OURS, one.joules[0] / one.joules[1])],
                     f"{one.name}: {style.number(one.joules[0])} J")
            for problem, cube in _CUBES.items()
            if (one := shares(*cube, energy=True)) and one.joules]
    if not rows:
        raise NotRecorded("no energy is recorded: python -m lib record")
    _draw(rows, {OURS: dots.FULL},
          f"A product of ours takes {dots.between(rows)} of the joules of cuBLAS's",
          _days(KernelRecord, "NVML, each alone for two seconds"))


def _draw(rows: Sequence[dots.Row], kinds: Mapping[str, str], title: str, evidence: str) -> None:
    both(dots.draw, rows, kinds, title=title, evidence=evidence, same=_BEST)


def _counted() -> list[tuple[str, Mapping[str, float], Mapping[str, float]]]:
    """Problems of which ours and cuBLAS's best were counted on one day, with both counters."""
    found = []
    for problem, cube in _CUBES.items():
        try:
            one = autopsy(*cube)
        except NotRecorded:
            continue
        ours, best = one.sides[0], one.sides[-1]
        if one.same_day and ours.counters and best.counters:
            found.append((problem, ours.counters, best.counters))
    if not found:
        raise NotRecorded("ours and cuBLAS were not counted on one day: python -m lib record")
    return found


def _days(kind: type[Record], how: str) -> str:
    days = {record.date for record in records.every()
            if isinstance(record, kind) and record.gpu.key == RECORDED_ON}
    return f"recorded: {RECORDED_ON}, {records.span(days) if days else 'not yet'}; {how}"


@once_recorded()
def fast_cu() -> None:
    """Display why fast.cu's reported ratio is another one here."""
    record = records.load(RivalsRecord, RECORDED_ON)
    peer = record.peers.get("fast.cu") if record else None
    row = next((one for one in (peer.rows if peer else ()) if one.is_cube(4096)), None)
    if row is None or row.rival is None:
        raise NotRecorded("fast.cu has no record: python -m lib rivals --record")
    theirs, cublas = reported.FAST_CU, reported.FAST_CU_CUBLAS
    here, best, default = row.tflops, row.cublas_tflops, row.rival.default.tflops
    table(("at 4,096, BF16, B by columns", "fast.cu, TFLOP/s", "cuBLAS, TFLOP/s", "ratio"), (
        ("its author: cuBLAS's default, each in a run of its own (reported)", f"{theirs:.0f}",
         f"{cublas:.0f}", f"{theirs / cublas:.2f}"),
        ("here: cuBLAS's default, of its own turns with the best", f"{here:.0f}",
         f"{default:.0f}", f"{here / default:.2f}"),
        ("here: the best of cuBLAS, in turns with fast.cu", f"{here:.0f}", f"{best:.0f}",
         f"**{here / best:.2f}**"),
        ("here over reported", f"{here / theirs:.2f}", f"{best / cublas:.2f}",
         f"{here / theirs:.2f} / {best / cublas:.2f} = {here / theirs * cublas / best:.2f}"),
    ), f"reported by the author; recorded: {_label(RivalsRecord)}")


def _properties(found: Autopsy, size: int) -> list[Column[Side]]:
    """What an autopsy says of each kernel."""
    fma = found.sides[0].counters.get("gmma_instructions", 0) == 0 and not any(
        side.design.family == "nvjet" for side in found.sides)
    pipe = "fma_pipe_percent" if fma else "tensor_pipe_percent"
    return [
        Column("speed, of the best", lambda side: (
            reach.give_or_take(side.share, side.noise) if side.noise else f"{side.share:.1%}")),
        Column("built for", lambda side: side.design.arch + (
            "" if side.design.family == "ours" else f" ({side.design.family})")),
        Column("tile", lambda side: style.sides(side.design.tile)),
        Column("K per stage × stages", _ring),
        Column("cluster", lambda side: style.sides(side.design.cluster)),
        Column("consumer warpgroups", lambda side: side.design.schedule or "no roles"),
        Column("registers per thread", lambda side: side.registers or "not recorded"),
        Column("tiles per SM", lambda side: f"{side.tiles_per_sm(size):.2f}"
               + (", K split" if side.design.split else "")),
        _counter("instructions of warps", lambda c: c["instructions"] / 1e6, ".2f", " M"),
        _counter("FMA pipe" if fma else "tensor pipe", lambda c: c[pipe], ".1f", "%"),
        _counter("through L2", lambda c: c["l2_bytes"] / 1e9, ".3f", " GB"),
        _counter("DRAM", lambda c: _dram(c) / 1e9, ".3f", " GB"),
        _counter("cycles", lambda c: c["cycles"], ",.0f"),
        *([Column("joules per product", lambda side: side.joules or None, ".3f",
                  absent="not recorded")] if any(side.joules for side in found.sides) else []),
    ]


def _counter(
    head: str, read: Callable[[Mapping[str, float]], float], form: str, unit: str = ""
) -> Column[Side]:
    return Column(head, lambda side: read(side.counters) if side.counters else None, form, unit,
                  absent="not counted")


def peers() -> None:
    """Display public kernels beside the best of cuBLAS and ours, each in turns with both."""
    record = records.load(RivalsRecord, RECORDED_ON)
    if record is None:
        raise NotRecorded("public kernels have no record: python -m lib rivals --record")
    columns: list[Column[tuple[str, PublicPeer, PeerRow]]] = [
        Column("public kernel", lambda one: f"{one[0]}<br>{one[1].repository}"),
        Column("types", lambda one: _types(one[2])),
        Column("M = N = K", lambda one: one[2].M, ","),
        Column("its best configuration", lambda one: one[2].configuration),
        Column("TFLOP/s", lambda one: speed(one[2].tflops)),
        Column("of the best of cuBLAS", lambda one: (
            reach.give_or_take(one[2].ratio, one[2].spread) + _of_which(*one[1:]))),
        Column("ours in the same turns, TFLOP/s", lambda one: _of_ours(one[2].ours)),
        Column("licence", lambda one: one[1].licence),
        Column("revision", lambda one: one[1].revision[:12]),
    ]
    rows = [(name, peer, row) for name, peer in record.peers.items() for row in peer.rows]
    folded("Each public kernel: configuration, speed, share, and ours beside it",
            markdown(*across(columns, rows)),
            f"*recorded: {_label(RivalsRecord)}; `python -m lib rivals`*")


def _of_which(peer: PublicPeer, row: PeerRow) -> str:
    """Which rival a peer's share is of, where it isn't the best of cuBLAS."""
    if peer.half_sums:
        return f" of {HALF_SUMS}"
    return "" if records.rival(row) == BEST else " of its default"


def _of_ours(ours: Ours | None) -> str:
    """What of ours a peer was in turns with; one that is gone by what stands in its place."""
    if ours is None:
        return "not ranked: it sums in FP16"
    name = (called(ours.kernel, ours.variant) if ours.kernel in KERNELS
            else "a version of an earlier release")
    return f"{name}: {speed(ours.tflops)}"


def _types(row: PeerRow) -> str:
    return next(types.title for types in TYPES if types.has(row))


def _names(kernels: Sequence[str]) -> str:
    return " + ".join(f"`{plain(name)}`" for name in dict.fromkeys(kernels))


def _built(kernels: Sequence[str]) -> str:
    """A kernel in a few words."""
    one = design(kernels)
    said = [f"{one.family} {style.sides(one.tile)}"]
    if one.stages:
        said.append(style.plural(one.stages, "stage"))
    if one.cluster != (1, 1):
        said.append(f"cluster {style.sides(one.cluster)}")
    return ", ".join([*said, *filter(None, [one.schedule, "K split" if one.split else ""])])


def _range(gains: Sequence[float]) -> str:
    ends = [f"{gain:+.1%}".replace("-0.0%", "0.0%").replace("+0.0%", "0.0%")
            for gain in (min(gains), max(gains))]
    return " to ".join(dict.fromkeys(ends))


def _ring(side: Side) -> str:
    design = side.design
    if design.stages is None or design.step is None:
        return "not named"
    return f"{design.step} × {design.stages}"


def _dram(counters: Mapping[str, float]) -> float:
    return counters["dram_read_bytes"] + counters["dram_write_bytes"]


def _label(kind: type[Record]) -> str:
    record = records.load(kind, RECORDED_ON)
    if record is None:
        raise NotRecorded(f"{kind.STEM} has no record: python -m lib record {kind.STEM}")
    return records.label(record).removeprefix("recorded: ")
