"""The ladder: all versions against cuBLAS."""

from __future__ import annotations

from lib.kernels.catalogue import CATALOGUE, in_book
from lib.plotting.display import show
from lib.records import reported, scoreboard
from lib.records import store as records
from lib.topics.ladder import figure as ladder_figure
from lib.topics.version import RECORDED_ON, rung


def draw(mark: str | None = None, size: int = scoreboard.LADDER_SIZE) -> None:
    """Draw all versions as % of cuBLAS.

    Parameters
    ----------
    mark : str, optional
        Stem of the version in colour.
    size : int
        M = N = K.
    """
    rows = {
        (row.kernel, row.variant): row
        for row in records.rows()
        if row.gpu == RECORDED_ON and row.M == row.N == row.K == size
    }
    rungs, dates = [], set()
    for stem, kernel in in_book().items():
        row = rows.get((stem, kernel.variants[0].name))
        if row:
            dates.add(row.date)
        rungs.append(ladder_figure.Rung(
            rung(kernel), kernel.group, row and row.ratio, row and row.tflops,
            reported.ratio(stem), bool(row and row.stale),
        ))
    when = ", ".join(sorted(dates))
    evidence = f"recorded: {RECORDED_ON}, {when}, M = N = K = {size:,}"
    current = rung(CATALOGUE[mark]) if mark else None
    show(ladder_figure.draw(rungs, evidence=evidence, current=current))
