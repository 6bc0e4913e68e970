"""The ladder: all versions against cuBLAS, in one pass on one board."""

from __future__ import annotations

from lib.kernels.catalogue import RULES
from lib.plotting.display import both
from lib.records import ladder, reach
from lib.records import store as records
from lib.records.ladder import Step
from lib.records.schema import LadderRecord
from lib.topics.results.ladder import figure as ladder_figure
from lib.topics.results.ladder.figure import Bar
from lib.topics.version import RECORDED_ON, short_name

# Types of A, B and C, and B's layout, of the groups that are drawn; each has a rival of its own.
GROUPS = {"FP32": ("float32", "float32", "row"), "FP16": ("float16", "float32", "row")}


def draw(size: int = ladder.SIZE) -> None:
    """Draw all versions of the ladder's pass, and public kernels, as % of the best of cuBLAS."""
    try:
        record = ladder.load(RECORDED_ON)
    except records.NotRecorded:
        both(ladder_figure.draw, [], evidence="not recorded yet")
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
            number, name = (("", "the rule") if step.kernel.stem in RULES else
                            (step.kernel.stem[:2], short_name(step.kernel)[3:]))
            bars.append(Bar(number, name, group, step.share, step.row.tflops, step.stale,
                            side=step.side))
        bars += public
        # The pass times the rival's default once for each product.
        defaults[group] = ours[0].row.rival.default.tflops / ours[0].figure.tflops
    both(ladder_figure.draw, bars, rival="the best of cuBLAS", defaults=defaults, title=_title(),
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
