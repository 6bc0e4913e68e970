"""How far up are we? A column per version, in per cent of cuBLAS; public kernels among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.kernels.catalogue import RULES, in_book
from lib.records import ladder, reach
from lib.records import store as records
from lib.records.ladder import Step
from lib.records.schema import LadderRecord
from lib.show import chart as style
from lib.show.display import both
from lib.show.markdown import markdown as table
from lib.show.version import RECORDED_ON, short_name


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


# Heights, pt: of 100 %, of the room above it, of the numbers under the columns, of a group's name.
_UNIT, _ABOVE, _FOOT, _HEAD = 110.0, 24.0, 14.0, 17.0
_NARROW_UNIT = 132.0
_BETWEEN = 24.0  # groups that stand side by side
_FREE = 0.2  # of a column's width lies between it and the next
_LINE = 12.0  # pt: a line of text
_BEHIND = 0.5  # opacity of the columns that are not their group's tallest
_WIDER = 1.04  # a reader's letters over ours


@dataclass(frozen=True)
class Bar:
    """One version.

    Attributes
    ----------
    number : str
        ``"01"``; empty for a public kernel.
    name : str
        ``"naive"``.
    group : str
        ``"FP32"`` or ``"FP16"``: each stands against cuBLAS of its own types.
    ratio : float or None
        Of cuBLAS, 1.0 = as fast; None where nothing is recorded.
    tflops : float or None
        TFLOP/s.
    stale : bool
        The record no longer belongs to this source.
    peer : bool
        Whether it is a public kernel and none of ours: its column is hollow.
    side : bool
        Whether it is a side step, which carries nothing on: its column is pale, its edge dashed.
    """

    number: str
    name: str
    group: str
    ratio: float | None
    tflops: float | None
    stale: bool = False
    peer: bool = False
    side: bool = False

    @property
    def recorded(self) -> tuple[float, float] | None:
        """`ratio` and `tflops`; None where nothing is recorded."""
        if self.ratio is None or self.tflops is None:
            return None
        return self.ratio, self.tflops

    @property
    def title(self) -> str:
        """``"01 naive"``."""
        return f"{self.number} {self.name}".strip()


@style.styled
def picture(
    bars: Sequence[Bar], *, evidence: str, rival: str = "cuBLAS",
    defaults: Mapping[str, float] | None = None, title: str = "",
    narrow: bool = False,
) -> Figure:
    """Draw the ladder: groups side by side, or below each other on a phone.

    A group of which nothing is recorded is left out.

    Parameters
    ----------
    bars : sequence of Bar
        In the order to draw.
    rival : str
        What the ratios are of.
    defaults : mapping of str to float, optional
        By group, the speed of cuBLAS's default heuristic over that of the rival: a second line.
    title : str
        What the bars show; the tallest ones if not given.
    """
    known = dict.fromkeys(bar.group for bar in bars if bar.recorded)
    groups = {name: [bar for bar in bars if bar.group == name]
              for name in known or dict.fromkeys(bar.group for bar in bars)}
    unit = _NARROW_UNIT if narrow else _UNIT
    rows = _stacked(groups) if narrow else [list(groups)]
    row = _HEAD + _ABOVE + unit + _FOOT
    height = row * len(rows)
    fig, ax = style.canvas(title or _finding(groups, rival), height, narrow)
    column = min((style.room(narrow) - _BETWEEN * (len(names) - 1))
                 / sum(len(groups[name]) for name in names) for names in rows)
    for place, names in enumerate(rows, 1):
        left = 0.0
        for name in names:
            _group(ax, left, height - place * row + _FOOT, column, unit, groups[name], rival,
                   (defaults or {}).get(name))
            left += column * len(groups[name]) + _BETWEEN
    notes = ["dotted: default"] if defaults else []
    if any(bar.peer for bar in bars):
        notes.append("hollow: public")
    if any(bar.side for bar in bars):
        notes.append("dashed: side step")
    if any(bar.stale for bar in bars):
        notes.append("*: stale")
    return style.finish(fig, alt=_alt(bars, rival, defaults or {}), evidence=evidence,
                        note="; ".join(notes))


def _stacked(groups: Mapping[str, Sequence[Bar]]) -> list[list[str]]:
    """Rows of groups as wide as the largest; those that fit beside each other share one."""
    first, *others = sorted(groups, key=lambda name: -len(groups[name]))
    rows = [[first]]
    for name in others:
        # What lies between two groups takes about two columns.
        taken = sum(len(groups[one]) + 2 for one in rows[-1])
        if taken + len(groups[name]) <= len(groups[first]):
            rows[-1].append(name)
        else:
            rows.append([name])
    return sorted(rows, key=lambda row: [*groups].index(row[0]))


def _group(
    ax: Axes, left: float, ground: float, column: float, unit: float, bars: Sequence[Bar],
    rival: str, default: float | None,
) -> None:
    """The columns of one group, its name and its rival's line."""
    best = _best(bars)
    right = left + column * len(bars)
    top = ground + unit
    name = bars[0].group
    said = f"{name}: {style.number(best.tflops or 0)} TFLOP/s" if best else name
    ax.text(left, top + _ABOVE + 2, said, size=style.NORMAL, weight="bold", va="bottom")
    for at, line in ((top, "-"), *(((ground + unit * default, (0, (2, 2))),) if default else ())):
        style.strokes(ax, [((left, at), (right, at))], linewidth=0.8, linestyle=line)
    # Left of the first column that reaches the line, or whose number stands above it.
    free = column * next((place for place, bar in enumerate(bars)
                          if bar.recorded and bar.recorded[0] * unit > unit - _LINE), len(bars))
    label = next((text for text in (f"{rival}: 100%", "cuBLAS: 100%", "100%")
                  if _WIDER * style.text_width(text, style.SMALL) <= free), "")
    ax.text(left, top + 2, label, va="bottom")
    style.strokes(ax, [((left, ground), (right, ground))], linewidth=0.6)
    for place, bar in enumerate(bars):
        _column(ax, left + place * column, ground, column, unit, bar, bar is best)


def _column(ax: Axes, left: float, ground: float, width: float, unit: float, bar: Bar,
            best: bool) -> None:
    """One column: its share above it, its name in it or above, its number under it."""
    middle, weight = left + width / 2, "bold" if best else "normal"
    ax.text(middle, ground - 3, bar.number, ha="center", va="top", weight=weight)
    if bar.recorded is None:
        _upright(ax, middle, ground + 4, "not recorded yet", style.INK, "normal")
        return
    ratio, _ = bar.recorded
    tall = ratio * unit
    style.rectangles(
        ax, [(left + _FREE / 2 * width, ground, (1 - _FREE) * width, tall)],
        facecolor="none" if bar.peer or bar.side else style.FOCUS,
        edgecolor=style.INK if bar.peer else style.FOCUS if bar.side else "none",
        linewidth=0.8 if bar.peer or bar.side else 0.0, linestyle="--" if bar.side else "-",
        alpha=1.0 if best or bar.peer or bar.side else _BEHIND)
    # The tallest says what the headline says; the others have room for whole numbers.
    share = (exact(ratio).rstrip("%") if best else _share(ratio)) + ("*" if bar.stale else "")
    foot = ground + tall + 2
    if unit - _LINE < tall < unit:  # the rival's line must not cross the number
        foot = ground + unit + 2
    if best and tall > unit - _LINE:  # its decimal would touch its neighbour's number
        foot += _LINE - 2
    wide = _WIDER * style.text_width(share, style.SMALL, weight) > width
    # What is wider than its column, the last one perhaps, ends where the column does.
    ax.text(left + width if wide else middle, foot, share, ha="right" if wide else "center",
            va="bottom", weight=weight)
    long = _WIDER * style.text_width(bar.name, style.SMALL, weight)
    if long + 8 <= tall:
        ink = style.on(style.FOCUS) if best and not bar.peer else style.INK
        _upright(ax, middle, ground + 4, bar.name, ink, weight)
    elif foot + _LINE + long <= ground + unit:
        _upright(ax, middle, foot + _LINE, bar.name, style.INK, weight)


def _upright(ax: Axes, x: float, y: float, text: str, colour: str, weight: str) -> None:
    ax.text(x, y, text, rotation=90, ha="center", va="bottom", color=colour, weight=weight)


def _share(ratio: float) -> str:
    """Per cent in whole numbers; 100 is as fast and no less."""
    percent = round(100 * ratio)
    return str(min(percent, 99) if ratio < 1 else percent)


def _best(bars: Sequence[Bar]) -> Bar | None:
    """The tallest of ours."""
    mine = [bar for bar in bars if bar.recorded and not bar.peer]
    return max(mine, key=lambda bar: bar.ratio or 0, default=None)


def exact(ratio: float) -> str:
    """A share as a headline gives it: ``"99.6%"``, and never 100 % for less."""
    return f"{min(100 * ratio, 99.9) if ratio < 1 else 100 * ratio:.1f}%"


def _finding(groups: Mapping[str, Sequence[Bar]], rival: str) -> str:
    tallest = [best for name in sorted(groups, key=lambda name: -len(groups[name]))
               if (best := _best(groups[name]))]
    if not tallest:
        return "Nothing is recorded yet"
    first, *others = tallest
    return ", ".join([f"{exact(first.ratio or 0)} of {rival} in {first.group}",
                      *(f"{exact(one.ratio or 0)} in {one.group}" for one in others)])


def _alt(bars: Sequence[Bar], rival: str, defaults: Mapping[str, float]) -> str:
    parts = [f"cuBLAS's default, {group}: {style.percent(ratio)} of {rival}."
             for group, ratio in defaults.items()]
    for bar in bars:
        value = "not recorded"
        if bar.recorded:
            ratio, tflops = bar.recorded
            value = (f"{style.percent(ratio)} of {rival} in {bar.group}, "
                     f"{style.number(tflops)} TFLOP/s{' (stale)' if bar.stale else ''}"
                     f"{', a side step' if bar.side else ''}")
        parts.append(f"{bar.title}{' (public)' if bar.peer else ''}: {value}.")
    return " ".join(parts)


# Types of A, B and C, and B's layout, of the groups that are drawn; each has a rival of its own.
GROUPS = {"FP32": ("float32", "float32", "row"), "FP16": ("float16", "float32", "row")}


def draw(size: int = ladder.SIZE) -> None:
    """Draw all versions of the ladder's pass, and public kernels, as % of the best of cuBLAS."""
    try:
        record = ladder.load(RECORDED_ON)
    except records.NotRecorded:
        both(picture, [], evidence="not recorded yet")
        return
    bars: list[Bar] = []
    defaults: dict[str, float] = {}
    steps = ladder.steps(record, size)
    for group, types in GROUPS.items():
        ours = [step for step in steps if _types(step) == types and not step.elsewhere]
        public = _peers(record, size, group)
        for step in ours:
            # A public kernel stands before the first of ours that is faster.
            while public and not step.side and (public[0].tflops or 0) < step.row.tflops:
                bars.append(public.pop(0))
            number, name = (("", "lib.gemm") if step.kernel.stem in RULES else
                            (step.kernel.stem[:2], short_name(step.kernel)[3:]))
            bars.append(Bar(number, name, group, step.share, step.row.tflops, step.stale,
                            side=step.side))
        bars += public
        # The pass times the rival's default once for each product.
        defaults[group] = ours[0].row.rival.default.tflops / ours[0].figure.tflops
    both(picture, bars, rival="the best of cuBLAS", defaults=defaults, title=_title(),
         evidence=f"recorded: {RECORDED_ON}, one board, {record.date}, {size:,}³")


def _types(step: Step) -> tuple[str, str, str]:
    row = step.row
    return row.dtype, row.out, row.b_layout


def _peers(record: LadderRecord, size: int, group: str) -> list[Bar]:
    """Public kernels of a group, the slowest first."""
    of = ladder.figures(record)
    rows = [(name, row) for name, peer in record.peers.items() for row in peer.rows
            if row.is_cube(size) and (row.dtype, row.out, row.b_layout) == GROUPS[group]]
    return [Bar("", name, group, row.tflops / of[ladder.product(row)].tflops, row.tflops, peer=True)
            for name, row in sorted(rows, key=lambda pair: pair[1].tflops)]


def _title() -> str:
    """The book's one answer to "how far" (`lib.records.reach`); nothing if it isn't recorded."""
    try:
        found = [reach.reach(group, RECORDED_ON) for group in ("FP32", "FP16")]
    except records.NotYet:
        return ""
    return "Of the best of cuBLAS: " + ", ".join(
        f"{one.group} {'level' if one.verdict == 'level' else reach.short(one)}" for one in found)
