"""Tables as lists of columns, and figures in both layouts."""

from dataclasses import dataclass

import pytest

from lib.show import chart as style
from lib.show import columns, display
from lib.show.columns import Column, labels, launches, recorded, speeds
from lib.show.version import Version
from tests.pages import cells


@dataclass(frozen=True)
class Run:
    """A row."""

    name: str
    speed: float
    watts: float | None = None


COLUMNS = [Column("run", lambda one: one.name), Column("TFLOP/s", lambda one: one.speed, ".1f"),
           Column("power", lambda one: one.watts, ",.0f", " W")]
RUNS = [Run("a", 1.25), Run("b", 1200.0, 1500.0)]


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, as text."""
    found = []
    monkeypatch.setattr("IPython.display.display", lambda made: found.append(made.data))
    return found


def test_a_cell_is_written_by_its_column(shown):
    columns.listed(COLUMNS, RUNS, "recorded: here")
    assert cells(shown[0]) == [["a", "1.2", "not read"], ["b", "1200.0", "1,500 W"]]
    assert shown[0].endswith("*recorded: here*")


def test_what_was_read_of_no_row_has_no_column(shown):
    columns.listed(COLUMNS, RUNS[:1], "recorded: here")
    assert shown[0].splitlines()[0] == "| run | TFLOP/s |"


def test_an_absent_value_is_said_in_the_column_s_own_words(shown):
    columns.listed([Column("power", lambda one: one.watts, absent="–")], RUNS[:1], "recorded")
    assert cells(shown[0]) == [["–"]]


def test_a_column_may_stand_in_a_row(shown):
    columns.compared("run", COLUMNS[1:], [(one.name, one) for one in RUNS], "recorded")
    assert shown[0].splitlines()[0] == "| run | a | b |"
    assert cells(shown[0]) == [["TFLOP/s", "1.2", "1200.0"], ["power", "not read", "1,500 W"]]


def test_columns_of_launches_read_the_record():
    (one,) = launches(Version("01_naive"), ["coalesced"], (), 4096)
    row = Version("01_naive").recorded(4096, "coalesced")
    assert one.name == "01 coalesced"
    assert [column.head for column in speeds("at", 2048, 4096)] == ["at 2,048", "at 4,096"]
    assert speeds("at", 4096)[0].cell(one) == f"{row.tflops:.4g}"
    assert labels([one]).startswith("recorded: H100")


def test_launches_that_nobody_recorded_have_cells_that_say_so():
    (one,) = launches(Version("01_naive"), ["coalesced"], (), 77)
    assert not one.timed and not one.counted
    assert recorded("speed", lambda one: one.row.tflops, ".1f", absent="none").cell(one) == "none"
    assert labels([one]) == "not recorded yet"


def test_a_figure_is_shown_in_both_layouts(monkeypatch):
    found = []
    monkeypatch.setattr(display, "show", lambda *figures: found.extend(figures))

    @style.styled
    def draw(text, *, narrow=False):
        fig, _ = style.canvas(text, 20.0, narrow)
        return style.finish(fig, alt=text, evidence="modelled: nothing")

    display.both(draw, "a finding")
    assert [round(fig.get_figwidth(), 2) for fig in found] == [style.WIDTH, style.NARROW]
    assert {fig.alt for fig in found} == {"a finding"}
