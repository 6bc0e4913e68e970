"""The ladder: all versions against cuBLAS."""

from __future__ import annotations

from lib.compiler.arch import BLACKWELL
from lib.kernels.catalogue import in_book
from lib.kernels.epilogues import FusedProblem
from lib.kernels.scaled import ScaledProblem
from lib.kernels.spec import Kernel
from lib.plotting.display import both, note
from lib.records import reach, scoreboard
from lib.records import store as records
from lib.records.schema import RivalsRecord
from lib.topics.results.ladder import figure as ladder_figure
from lib.topics.results.scoreboard import model
from lib.topics.version import RECORDED_ON, short_name


def draw(size: int = scoreboard.LADDER_SIZE) -> None:
    """Draw all versions that a GPU here has run, and public kernels, as % of the best of cuBLAS."""
    rows = {
        (row.kernel, row.variant): row
        for row in records.rows()
        if row.gpu == RECORDED_ON and row.M == row.N == row.K == size
    }
    peers, defaults = _others(size)
    bars, dates, kinds = [], set(), set()
    for stem, kernel in _versions().items():
        row = rows.get((stem, kernel.variants[0].name))
        if row:
            dates.add(row.date)
            kinds.add(row.rival)
        bars.append(ladder_figure.Bar(stem[:2], short_name(kernel)[3:], kernel.group,
                                      row.ratio if row else None, row.tflops if row else None,
                                      bool(row and row.stale)))
        bars += peers.get(stem, ())
    best = kinds == {model.BEST}
    if record := records.load(RivalsRecord, RECORDED_ON) if peers else None:
        dates.add(record.date)
    when = records.span(dates) if dates else "not yet"
    boards = {one.board for one in scoreboard.met_on_ladder(RECORDED_ON)}
    evidence = f"recorded: {RECORDED_ON}, {when}, {size:,}³"
    both(ladder_figure.draw, bars, evidence=evidence,
         rival="the best of cuBLAS" if best else "cuBLAS", defaults=defaults if best else None,
         title=_title(), boards=f"bars of {len(boards)} boards" if len(boards) > 1 else "")


def _title() -> str:
    """The book's one answer to "how far" (`lib.records.reach`); nothing if it isn't recorded."""
    try:
        found = [reach.reach(group, RECORDED_ON) for group in ("FP32", "FP16")]
    except records.NotYet:
        return ""
    return "Of the best of cuBLAS: " + ", ".join(
        f"{reach.short(one)} in {one.group}" for one in found)


def boards() -> None:
    """Display of how many boards the bars are, and how much cuBLAS moved between them."""
    note(scoreboard.several_boards(scoreboard.met_on_ladder(RECORDED_ON), "bars"))


def _versions() -> dict[str, Kernel]:
    """The versions that have a bar: of a product, which 25 does more than, and of a GPU here.

    What is for Blackwell is emulated alone, and has no speed. With scales of 8-bit operands each
    mode has a rival of its own: 26's page has them.
    """
    return {stem: kernel for stem, kernel in in_book().items()
            if kernel.min_arch != BLACKWELL
            and not isinstance(kernel.variants[0].problem(256, 256, 256),
                               FusedProblem | ScaledProblem)}


def _others(size: int) -> tuple[dict[str, list[ladder_figure.Bar]], dict[str, float]]:
    """Public kernels by the version of the book that each was in turns with, and cuBLAS's default.

    One that was in turns with a rule, or with a version that the book no longer has, stands behind
    the last version of its group that a GPU has run. The default is by group, as a share of the
    best.
    """
    found: dict[str, list[ladder_figure.Bar]] = {}
    defaults, shape, versions = {}, (size, size, size), _versions()
    last = {kernel.group: stem for stem, kernel in versions.items()}
    for stem, kernel in versions.items():
        types = next(one for one in model.TYPES if one.takes(kernel.variants[0]))
        for met, line in model.peers(RECORDED_ON, types):
            cell = line.cells.get(shape)
            home = met if met in versions else last[kernel.group]
            if home == stem and cell and cell.of == model.BEST:
                found.setdefault(stem, []).append(ladder_figure.Bar(
                    "", line.name, kernel.group, cell.share, cell.tflops, peer=True))
        for line in model.cublas(RECORDED_ON, types):
            cell = line.cells.get(shape)
            if line.name == model.DEFAULT_LINE and cell and cell.share:
                defaults[kernel.group] = cell.share
    return found, defaults
