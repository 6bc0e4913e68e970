"""The page of lib.gemm's choice: what it says of the rule is what rule and records give."""

import inspect
import textwrap
from dataclasses import fields

import pytest

from lib.dispatch import cost
from lib.dispatch.plan import choose, nearest
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import parted
from lib.records import rule_searches
from lib.records import store as records
from lib.records.schema import SearchRecord
from lib.show import choosing as model
from lib.show import display
from lib.show.choosing import Chosen, Timed
from tests import built

SHAPE = (64, 64, 64)


@pytest.fixture
def said(monkeypatch):
    """Whatever the page displays, as text."""
    seen = []
    monkeypatch.setattr(model, "note", seen.append)
    monkeypatch.setattr(model, "table", lambda head, rows, evidence: seen.append(
        "\n".join(" | ".join(row) for row in rows) + evidence))
    return seen


def test_only_what_the_rule_may_launch_is_held_against_it():
    """20's own ping-pong, say, is another launch than the one that the rule has of 21."""
    rows = model.timed()
    assert rows and all(len(those) > 1 for those in rows.values())
    assert all(one.predicted > 0 for those in rows.values() for one in those)


def test_searches_are_told_by_kinds_of_products(said, monkeypatch):
    few = {which: rule_searches.recorded(which)[1][-6:] for which in rule_searches.SEARCHES}
    monkeypatch.setattr(rule_searches, "recorded", lambda which: ("A GPU", few[which]))
    model.searches()
    for table, which in zip(said[1::2], few, strict=True):
        whole = rule_searches.summary(rule_searches.choices(few[which]))
        assert f"all | {len(few[which])} | {whole.share:.3f}; {whole.least_share:.3f}" in table
        assert "A GPU" in table


def test_what_is_lost_is_told_with_its_worst(said):
    model._chosen([Chosen(SHAPE, "a", "a", 0.0, 2), Chosen((9, 9, 8), "a", "b", 0.21, 2)],
                 "recorded: H100")
    table, words = said
    assert "64³ | 2 | `a` | the same | 0" in table and "9×9×8 | 2 | `a` | `b` | 21.0%" in table
    assert words == ("On 1 of 2 shapes the choice is the fastest of those timed. It takes 10.0% "
                     "longer in the geometric mean, and 21.0% at the worst, at 9×9×8.")


def test_a_shape_that_is_left_out_is_chosen_for_by_the_others():
    name = model.searched()[0]
    stem, variant = parted(name)
    search = records.load(SearchRecord, model.RECORDED_ON).searches[name]
    tuned = KERNELS[stem].variant(variant)
    for row, found in zip(search.rows, model.by_neighbour(name), strict=True):
        others = [one for one in search.rows if one is not row]
        problem = tuned.problem(*row.shape)
        assert found.first == nearest(tuned, problem, others).name
        assert row.seconds[found.fastest] == min(row.seconds.values()) and found.longer >= 0
        # With its own row it would get its own fastest.
        assert choose(KERNELS[stem], tuned, problem, search.rows).name == found.fastest


def test_each_cost_is_told_with_its_value(monkeypatch):
    explained = dict(model.explained_costs())
    text = ", ".join(explained)
    for field in fields(cost.Costs):
        assert f"{field.name} = {getattr(cost.H100, field.name):,}" in text
    assert all(words.endswith(".") for words in explained.values())
    monkeypatch.setattr(cost.Costs, "__doc__", cost.Costs.__doc__.replace("    aspect : float", ""))
    with pytest.raises(ValueError, match="nothing is said of aspect"):
        model.explained_costs()


def test_predictions_are_drawn_of_what_has_a_clock(monkeypatch):
    drawn = []
    monkeypatch.setattr(display, "show", lambda *figures: drawn.extend(figures))
    monkeypatch.setattr(model, "timed", lambda: {
        SHAPE: [Timed(5.0, 10.0), Timed(6.0, 5.0), Timed(6.0, None)]})
    model.predictions.__wrapped__()
    wide, narrow = drawn
    # The rule's first is off by half, the other by a fifth: its own range is told.
    assert wide.finding == narrow.finding == (
        "Predicted over recorded cycles: 50% to 120%; the rule's first 50%")
    assert "64³: the rule's first of these 50.0, the others 120.0; 2 recorded." in wide.alt


def test_without_a_record_the_page_names_the_command(results):
    built.write(built.record())
    for show in (model.predictions, model.neighbours):
        with pytest.raises(records.NotRecorded, match="python -m lib record"):
            show.__wrapped__()


@pytest.mark.parametrize("margin", ["", "    "], ids=["from 3.13 on", "before"])
def test_what_costs_are_is_read_with_and_without_a_docstring_s_margin(margin, monkeypatch):
    """Python 3.13 takes it off when it compiles."""
    clean = inspect.cleandoc(model.Costs.__doc__)
    first, _, rest = clean.partition("\n")
    monkeypatch.setattr(model.Costs, "__doc__", first + "\n" + textwrap.indent(rest, margin))
    explained = dict(model.explained_costs())
    assert any("dram = " in names and words.startswith("Bytes that DRAM moves")
               for names, words in explained.items())
    assert len(explained) > 20
