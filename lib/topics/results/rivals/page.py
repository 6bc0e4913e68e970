"""What cuBLAS runs, beside ours and beside public kernels: pictures and tables from the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lib.kernels.catalogue import KERNELS
from lib.plotting import dots, style
from lib.plotting.columns import Column, across, down
from lib.plotting.display import both, note, once_recorded, table
from lib.plotting.markdown import markdown
from lib.records import reach, schema
from lib.records import store as records
from lib.records.schema import (
    CublasRecord,
    KernelRecord,
    Ours,
    PeerRow,
    PublicPeer,
    Record,
    RivalsRecord,
)
from lib.records.store import NotRecorded
from lib.topics.results.rivals import model
from lib.topics.results.rivals.model import Autopsy, Side
from lib.topics.results.scoreboard.figure import speed
from lib.topics.results.scoreboard.model import BEST, COLUMNS, HALF_SUMS, TYPES, Types
from lib.topics.version import RECORDED_ON, called

# The cubes that the pictures have rows for.
SIZES = (2048, 4096, 8192)

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
            found = model.choices(RECORDED_ON, types, size)
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
    _folded("Each cube: the default, the fastest candidate, and what lies between them",
            markdown(head, rows), evidence)
    every = markdown(("full names, as the profiler has them", "read as"), sorted(names.items()))
    _folded(f"The names of all {len(names)}", every, evidence)


def apart(name: str) -> None:
    """Display a kernel's name, taken apart.

    Raises
    ------
    ValueError
        If it is of no family that is known.
    """
    found = model.taken_apart(name)
    rows = [("family, written for", f"{found.family}, {found.arch}")]
    if found.types:
        rows.append(("A and B, accumulators, C", ", ".join(found.types.split())))
    rows.append(("tile", style.sides(found.tile)))
    if found.step:
        rows.append(("K per stage, stages", f"{found.step}, {found.stages}"))
    rows.append(("cluster", style.sides(found.cluster)))
    rows.append(("consumer warpgroups", found.schedule or "no roles"))
    table((f"`{model.plain(name)}`", "says"), rows, "modelled: read out of the name, undocumented")


def apart_best(key: str, size: int) -> None:
    """Display the name of cuBLAS's fastest kernel for a cube, taken apart."""
    found = model.choices(RECORDED_ON, _BY_KEY[key], size)
    if not found:
        raise NotRecorded(f"cuBLAS has no record: python -m lib record {schema.CUBLAS}")
    apart(found[-1].best[0])


def autopsies(key: str, *sizes: int) -> None:
    """Display, folded, for cubes of some types ours beside what cuBLAS runs, and what rows say.

    Raises
    ------
    NotRecorded
        If none of them has a record; one that has none is named.
    """
    types, shown = _BY_KEY[key], 0
    for size in sizes:
        try:
            found = model.autopsy(RECORDED_ON, types, size)
        except NotRecorded as missing:
            if shown == 0 and size == sizes[-1]:
                raise
            note(f"*{types.title}, {size:,}: not recorded yet: {missing}.*")
            continue
        shown += 1
        sides = [(side.name, side) for side in found.sides]
        _folded(f"{types.title}, {size:,}: what each is built of, and what was counted",
                markdown(*down(f"{types.title}, {size:,}", _properties(found), sides)),
                finding(found),
                f"*recorded: {_label(CublasRecord)}; speed in turns, counters by ncu of one "
                "launch, joules by NVML; tiles per SM modelled*")


def _folded(summary: str, *parts: str) -> None:
    text = "\n\n".join(parts)
    note(f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>")


OURS, THEIRS, PUBLIC = "ours", "cuBLAS's default", "the fastest public kernel"
L2, DRAM = "through L2", "from and to DRAM"
_BEST = "the best of cuBLAS"


@once_recorded()
def speeds() -> None:
    """Draw what ours, cuBLAS's default and the fastest public kernel reach of the best, by problem.
    """
    found = [one for types in TYPES for size in SIZES
             if (one := model.shares(RECORDED_ON, types, size))]
    if not found:
        raise NotRecorded("no version has a record: python -m lib record")
    rows = [dots.Row(f"{_short(one.types)}, {one.size:,}", [
        *([(PUBLIC, max(share for _, share in one.peers))] if one.peers else []),
        *([(THEIRS, one.default)] if one.default else []), (OURS, one.share)],
        f"{one.name}: {style.number(one.tflops)} TFLOP/s") for one in found]
    least, highest = (edge(one.share for one in found) for edge in (min, max))
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
    through = [value for row in rows for kind, value in row.dots if kind == L2]
    _draw(rows, {L2: dots.FULL, DRAM: dots.RING},
          f"Ours moves {min(through):.0%} to {max(through):.0%} of the bytes through L2 that "
          "cuBLAS's best moves", _days(CublasRecord, "ncu, one launch each"))


@once_recorded()
def cycle_counts() -> None:
    """Draw the cycles of one launch of the fastest of ours over those of cuBLAS's best."""
    rows = [dots.Row(name, [(OURS, ours["cycles"] / best["cycles"])],
                     f"{style.number(ours['cycles'] / 1e3)} k cycles")
            for name, ours, best in _counted()]
    taken = [value for row in rows for _, value in row.dots]
    _draw(rows, {OURS: dots.FULL},
          f"One launch of ours takes {min(taken):.0%} to {max(taken):.0%} of the cycles of "
          "cuBLAS's best", _days(CublasRecord, "ncu, one launch each"))


@once_recorded()
def energies() -> None:
    """Draw the joules of the fastest of ours that has any over those of the cuBLAS that it met."""
    found = [one for types in TYPES for size in SIZES
             if (one := model.shares(RECORDED_ON, types, size, energy=True)) and one.joules]
    rows = [dots.Row(f"{_short(one.types)}, {one.size:,}",
                     [(OURS, one.joules[0] / one.joules[1])],
                     f"{one.name}: {style.number(one.joules[0])} J")
            for one in found if one.joules]
    if not rows:
        raise NotRecorded("no energy is recorded: python -m lib record")
    taken = [value for row in rows for _, value in row.dots]
    _draw(rows, {OURS: dots.FULL},
          f"A product of ours takes {min(taken):.0%} to {max(taken):.0%} of the joules of cuBLAS's",
          _days(KernelRecord, "NVML, each alone for two seconds"))


def _draw(rows: Sequence[dots.Row], kinds: Mapping[str, str], title: str, evidence: str) -> None:
    both(dots.draw, rows, kinds, title=title, evidence=evidence, same=_BEST)


def _counted() -> list[tuple[str, Mapping[str, float], Mapping[str, float]]]:
    """Problems of which ours and cuBLAS's best were counted on one day, with both counters."""
    found = []
    for types in TYPES:
        for size in SIZES:
            try:
                one = model.autopsy(RECORDED_ON, types, size)
            except NotRecorded:
                continue
            ours, best = one.sides[0], one.sides[-1]
            if one.same_day and ours.counters and best.counters:
                found.append((f"{_short(types)}, {size:,}", ours.counters, best.counters))
    if not found:
        raise NotRecorded("ours and cuBLAS were not counted on one day: python -m lib record")
    return found


def _short(types: Types) -> str:
    """``"BF16, B by columns"`` fits no row's name."""
    return {"bf16_column": "BF16", "fp16_out": "FP16 out"}.get(types.key, types.title[:4])


def _days(kind: type[Record], how: str) -> str:
    days = {record.date for record in records.every()
            if isinstance(record, kind) and record.gpu.key == RECORDED_ON}
    return f"recorded: {RECORDED_ON}, {records.span(days) if days else 'not yet'}; {how}"


@once_recorded()
def fast_cu() -> None:
    """Display why fast.cu's reported ratio is another one here."""
    one = model.fast_cu(RECORDED_ON)
    table(("at 4,096, BF16, B by columns", "fast.cu, TFLOP/s", "cuBLAS, TFLOP/s", "ratio"), (
        ("its author: cuBLAS's default, each in a run of its own (reported)", f"{one.theirs:.0f}",
         f"{one.cublas:.0f}", f"{one.theirs / one.cublas:.2f}"),
        ("here: cuBLAS's default, of its own turns with the best", f"{one.here:.0f}",
         f"{one.default:.0f}", f"{one.here / one.default:.2f}"),
        ("here: the best of cuBLAS, in turns with fast.cu", f"{one.here:.0f}", f"{one.best:.0f}",
         f"**{one.here / one.best:.2f}**"),
        ("here over reported", f"{one.kernel:.2f}", f"{one.best / one.cublas:.2f}",
         f"{one.kernel:.2f} / {one.best / one.cublas:.2f} = {one.kernel * one.rival:.2f}"),
    ), f"reported by the author; recorded: {_label(RivalsRecord)}")


def _properties(found: Autopsy) -> list[Column[Side]]:
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
        Column("tiles per SM", lambda side: f"{side.tiles_per_sm(RECORDED_ON, found.size):.2f}"
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


def finding(found: Autopsy) -> str:
    """What the rival does otherwise, what that costs or saves, and what the same gave us."""
    ours, best = found.sides[0], found.sides[-1]
    parts = [_difference(ours.design, best.design)]
    if not found.same_day:
        parts.append("Ours and cuBLAS were counted on different days: bytes and cycles are not "
                     "compared.")
    elif ours.counters and best.counters:
        parts.append(
            f"Against ours it executes {_of(best, ours, 'instructions')} of the instructions, "
            f"moves {_of(best, ours, 'l2_bytes')} of the bytes through L2 and "
            f"{_dram(best.counters) / _dram(ours.counters):.0%} from and to DRAM, and takes "
            f"{_of(best, ours, 'cycles')} of the cycles."
        )
        slower = best.counters["cycles"] > ours.counters["cycles"]
        if slower != (ours.share > 1):
            parts.append(
                "Turns and cycles disagree on which is faster: turns time launches in a row, at "
                "the clock that the power limit leaves; cycles count one launch by itself.")
    else:
        parts.append("Ours was not profiled at this size, so bytes and cycles can't be compared.")
    parts.append(_gave(found))
    return " ".join(parts)


def _difference(ours: model.Design, best: model.Design) -> str:
    said = []
    if sorted(ours.tile) != sorted(best.tile):
        said.append(f"tiles of {style.sides(best.tile)} in place of {style.sides(ours.tile)}")
    if best.stages and ours.stages and ours.stages != best.stages:
        said.append(f"{best.stages} stages in place of {ours.stages}")
    if sorted(ours.cluster) != sorted(best.cluster):
        said.append(f"clusters of {style.sides(best.cluster)} in place of "
                    f"{style.sides(ours.cluster)}")
    if best.schedule != ours.schedule:
        said.append(f"{best.schedule or 'no'} consumers in place of {ours.schedule or 'none'}")
    if best.split and not ours.split:
        said.append("a K that several blocks share")
    if not said:
        return "cuBLAS's kernel is built as ours is: tile, stages, cluster and schedule agree."
    *highest, last = said
    return f"cuBLAS takes {', '.join(highest) + ' and ' if highest else ''}{last}."


def _gave(found: Autopsy) -> str:
    """What doing as the rival does gave us, where a record says."""
    ours, best = found.sides[0], found.sides[-1]
    if best.design.alike(ours.design):
        return ("Tile and schedule are the same already; which of the other differences counts "
                "isn't isolated.")
    if not found.twin:
        return "No recorded variant of ours is built so: what it would give us isn't measured."
    change = found.twin_speed - 1
    what = "its tile and schedule" if found.same_tile else "its schedule, with another tile,"
    verdict = f"is {abs(change):.1%} {'faster' if change > 0 else 'slower'} than what we launch"
    if abs(change) <= found.noise:
        verdict += f", which is less than both spreads between series ({found.noise:.1%})"
    return f"Our `{found.twin}` has {what} and {verdict}."


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
    _folded("Each public kernel: configuration, speed, share, and ours beside it",
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
    return " + ".join(f"`{model.plain(name)}`" for name in dict.fromkeys(kernels))


def _built(kernels: Sequence[str]) -> str:
    """A kernel in a few words."""
    one = model.design(kernels)
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


def _of(one: Side, other: Side, counter: str) -> str:
    return f"{one.counters[counter] / other.counters[counter]:.0%}"


def _dram(counters: Mapping[str, float]) -> float:
    return counters["dram_read_bytes"] + counters["dram_write_bytes"]


def _label(kind: type[Record]) -> str:
    record = records.load(kind, RECORDED_ON)
    if record is None:
        raise NotRecorded(f"{kind.STEM} has no record: python -m lib record {kind.STEM}")
    return records.label(record).removeprefix("recorded: ")
