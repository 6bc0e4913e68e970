"""The scoreboard on a page: versions and public peers, by types, from the records."""

from __future__ import annotations

from IPython.display import HTML, display

from lib.plotting.display import note
from lib.records import store as records
from lib.records.revision import DIRTY
from lib.topics.results.scoreboard import figure, model
from lib.topics.version import RECORDED_ON

# Where the records lie, seen from a chapter: in a checkout, and among the built pages too.
FOLDER = "../results"
# All of them as one table, written when the book is built.
CSV = "all.csv"


def cubes() -> None:
    """Display the board of cubes, for each GPU that versions were recorded on.

    Raises
    ------
    records.NotRecorded
        If there is no record.
    """
    for gpu in _gpus():
        if boards := _boards(gpu):
            display(HTML(figure.cubes(gpu, boards, FOLDER)))


def others() -> None:
    """Display the board of all other shapes."""
    for gpu in _gpus():
        boards = [(types, lines) for types, lines in _boards(gpu) if model.shapes(lines)]
        if boards:
            shapes = [model.shapes(lines) for _, lines in boards]
            display(HTML(figure.others(gpu, boards, shapes, FOLDER)))


def source() -> None:
    """Display how a board is read, and where all of it is as one table."""
    dates = sorted({(record.gpu.key, record.date) for record in records.versions()
                    if not record.revision.endswith(DIRTY)})
    recorded = "; ".join(f"{gpu}, {records.span(day for key, day in dates if key == gpu)}"
                         for gpu in dict.fromkeys(key for key, _ in dates)) or model.NOT_YET
    note(f"*▾: the launches ran below the clock that the data sheet's peak is at. recorded: "
         f"{recorded}; cuBLAS on the same types in the same run, TF32 off.* "
         f'<a href="{FOLDER}/{CSV}">All of it as CSV</a>, and from a terminal: '
         "`python -m lib results --csv`.")


def _boards(gpu: str) -> list[tuple[model.Types, list[model.Line]]]:
    """The groups of types that something is recorded of."""
    boards = [(types, model.board(gpu, types)) for types in (*model.TYPES, *model.SCALED)]
    return [(types, lines) for types, lines in boards if lines]


def _gpus() -> list[str]:
    """The GPUs of the records, the book's own first.

    Raises
    ------
    records.NotRecorded
        If there is none.
    """
    found = model.gpus()
    if not found:
        raise records.NotRecorded("no version has a record: python -m lib record")
    return sorted(found, key=lambda gpu: gpu != RECORDED_ON)
