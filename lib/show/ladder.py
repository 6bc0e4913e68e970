"""How far up are we? A bar per version, in per cent of cuBLAS; public kernels among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lib.kernels.catalogue import RULES, find, in_book
from lib.records import ladder, reach
from lib.records import store as records
from lib.records.ladder import Step
from lib.records.schema import LadderRecord
from lib.show import display
from lib.show.display import show
from lib.show.markdown import markdown as table
from lib.show.scene import Scene, Span, column, lanes, side_by_side, words
from lib.show.version import RECORDED_ON, short_name
from lib.show.words import number


def markdown() -> str:
    """What each version changes, and where it runs, as a Markdown table."""
    head = ("version", "what changes", "types", "runs on")
    return table(head, (
        (f"[{stem[:2]} {kernel.title}]({stem}.ipynb)", kernel.change, kernel.group,
         _runs_on(kernel.min_arch))
        for stem, kernel in in_book().items()))


def _runs_on(needs: str) -> str:
    """An architecture with the suffix ``a`` has instructions that no later one promises."""
    return f"{needs} only" if needs.endswith("a") else f"{needs} and later"


# The kinds of bars: ours, ours that carry nothing on, public ones, and what all are shares of.
OURS, SIDE, PUBLIC, RIVAL = "ours", "side step", "public", "rival"
_COLOURS = {OURS: "focus pale", SIDE: "side", PUBLIC: "hollow", RIVAL: "other"}
_ROOM = 1.28  # of the longest bar: its number stands behind it


@dataclass(frozen=True)
class Bar:
    """One version.

    Attributes
    ----------
    name : str
        ``"01 naive"``.
    group : str
        ``"FP32"`` or ``"FP16"``: each stands against cuBLAS of its own types.
    ratio : float
        Of cuBLAS, 1.0 = as fast.
    tflops : float
    kind : str
        `OURS`, `SIDE`, `PUBLIC` or `RIVAL`.
    stale : bool
        The record no longer belongs to this source.
    """

    name: str
    group: str
    ratio: float
    tflops: float
    kind: str = OURS
    stale: bool = False


def picture(bars: Sequence[Bar], *, evidence: str, title: str = "") -> Scene:
    """Draw the ladder: groups side by side, or below each other on a phone.

    Parameters
    ----------
    bars : sequence of Bar
        In the order to draw.
    title : str
        What the bars show; the longest of ours if not given.
    """
    groups = {name: [bar for bar in bars if bar.group == name]
              for name in dict.fromkeys(bar.group for bar in bars)}
    end = _ROOM * max(1.0, *(bar.ratio for bar in bars))
    pieces = []
    for name, mine in groups.items():
        best = _best(mine)
        pieces.append(column(words(f"{name}: {number(best.tflops)} TFLOP/s", bold=True), lanes(
            [(bar.name, _spans(bar, bar is best, end)) for bar in mine], end, tall=14)))
    kinds = {bar.kind for bar in bars}
    notes = ["% of the best of cuBLAS", *["hollow: public"] * (PUBLIC in kinds),
             *["dashed: side step"] * (SIDE in kinds),
             *["*: stale"] * any(bar.stale for bar in bars)]
    return Scene(title or _finding(groups), side_by_side(pieces), evidence, "; ".join(notes))


def _spans(bar: Bar, best: bool, end: float) -> list[Span]:
    """A bar, and its share behind it; the longest of ours says what the headline says."""
    share = exact(bar.ratio).rstrip("%") if best else _share(bar.ratio)
    colour = "focus" if best else _COLOURS[bar.kind]
    return [(0.0, bar.ratio, colour, ""), (bar.ratio, end, "behind", share + "*" * bar.stale)]


def _share(ratio: float) -> str:
    """Per cent in whole numbers; 100 is as fast and no less."""
    percent = round(100 * ratio)
    return str(min(percent, 99) if ratio < 1 else percent)


def _best(bars: Sequence[Bar]) -> Bar:
    """The fastest of ours."""
    return max((bar for bar in bars if bar.kind in (OURS, SIDE)), key=lambda bar: bar.ratio)


def exact(ratio: float) -> str:
    """A share as a headline gives it: ``"99.6%"``, and never 100 % for less."""
    return f"{min(100 * ratio, 99.9) if ratio < 1 else 100 * ratio:.1f}%"


def _finding(groups: Mapping[str, Sequence[Bar]]) -> str:
    return "Of the best of cuBLAS: " + ", ".join(
        f"{name} {exact(_best(bars).ratio)}" for name, bars in groups.items())


# Types of A, B and C, and B's layout, of the groups that are drawn; each has a rival of its own.
GROUPS = {"FP32": ("float32", "float32", "row"), "FP16": ("float16", "float32", "row")}


@display.once_recorded()
def draw() -> None:
    """Draw all versions of the ladder's pass, and public kernels, as % of the best of cuBLAS."""
    record = ladder.load(RECORDED_ON)
    bars: list[Bar] = []
    steps = ladder.steps(record)
    for group, types in GROUPS.items():
        ours = [step for step in steps if _types(step) == types and not step.elsewhere]
        others = _others(record, group, ours[0].figure.tflops)
        for step in ours:
            # Another's kernel stands before the first of ours that is faster.
            while others and not step.side and others[0].tflops < step.row.tflops:
                bars.append(others.pop(0))
            name = "lib.gemm" if step.kernel.stem in RULES else short_name(step.kernel)
            bars.append(Bar(name, group, step.share, step.row.tflops,
                            SIDE if step.side else OURS, step.stale))
        bars += others
    show(picture(bars, title=_title(),
                 evidence=f"recorded: {RECORDED_ON}, one board, {record.date}, {ladder.SIZE:,}³"))


def _types(step: Step) -> tuple[str, str, str]:
    row = step.row
    return row.dtype, row.out, row.b_layout


def _others(record: LadderRecord, group: str, best: float) -> list[Bar]:
    """Public kernels of a group and the best of cuBLAS, the slowest first."""
    of = ladder.figures(record)
    bars = [Bar(name, group, row.tflops / of[ladder.product(row)].tflops, row.tflops, PUBLIC)
            for name, peer in record.peers.items() for row in peer.rows
            if row.is_cube(ladder.SIZE) and (row.dtype, row.out, row.b_layout) == GROUPS[group]]
    return sorted([*bars, Bar("cuBLAS", group, 1.0, best, RIVAL)], key=lambda bar: bar.tflops)


def _title() -> str:
    """The book's one answer to "how far" (`lib.records.reach`); nothing if it isn't recorded."""
    try:
        found = [reach.reach(group, RECORDED_ON) for group in ("FP32", "FP16")]
    except records.NotYet:
        return ""
    return "Of the best of cuBLAS: " + ", ".join(
        f"{one.group} {'level' if one.verdict == 'level' else reach.short(one)}" for one in found)


def on_each_gpu() -> None:
    """Display the ladder's pass on each GPU that has one, beside each other."""
    passes = {record.gpu.key: record for record in records.every()
              if isinstance(record, LadderRecord)}
    made = {gpu: {step.kernel.stem: step for step in ladder.steps(record) if not step.elsewhere}
            for gpu, record in passes.items()}
    head = ["version", *(f"{gpu}{what}" for gpu in passes
                         for what in (", TFLOP/s", ", of cuBLAS's best"))]
    rows = [(short_name(find(stem)), *(text for steps in made.values()
                                       for text in _figures(steps.get(stem))))
            for stem in dict.fromkeys(stem for steps in made.values() for stem in steps)]
    display.table(head, rows, "; ".join(records.label(record) for record in passes.values()))


def _figures(step: Step | None) -> tuple[str, str]:
    return (f"{step.row.tflops:.1f}", reach.give_or_take(step.share, step.noise)) if step else (
        "", "")
