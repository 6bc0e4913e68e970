"""How the rule chooses on what a search has timed, read from the lines that a search writes."""

import json
from dataclasses import replace

import pytest

from lib.__main__ import main
from lib.dispatch import cost
from lib.dispatch.rule import RULE, types_of
from lib.measure import rule_search
from lib.problem import Problem
from lib.records import rule_searches
from lib.records.rule_searches import Timed, choices, grouped, summary

CUBE = Problem(2048, 2048, 2048, dtype="float16")
GONE = "22_few_tiles/gone"
ODD = Problem(40, 61, 77, dtype="float16")


def names(problem, count):
    variant = types_of(problem)
    return [one.name for one in cost.ranked(RULE, variant, problem)][:count]


def line(problem, of, seconds, rival=None, **more):
    return json.dumps({
        "of": of, "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "out": problem.out, "b_layout": problem.b_layout, "seconds": seconds,
        "rival_seconds": rival, **more})


@pytest.fixture
def file(tmp_path):
    first, second = names(CUBE, 2)
    odd = names(ODD, 2)
    lines = [
        json.dumps({"gpu": "H100"}),
        line(CUBE, "recorded", {first: 4e-5}, 3e-5, passed={second: 2e-5, GONE: 1e-5}),
        json.dumps({"of": "random", "failed": "out of memory"}),
        line(ODD, "random", {odd[1]: 1e-5}),
        line(replace(CUBE, M=64), "A model, 64 tokens", {GONE: 1e-5}, 1e-5),
    ]
    found = tmp_path / "searched.jsonl"
    found.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def test_the_rule_s_first_of_what_was_timed_counts(file):
    cube, odd = choices(rule_searches.read(file))
    assert cube.first == cube.chosen == names(CUBE, 1)[0]
    assert cube.share == 0.25 and cube.of_rival == 0.75  # one that is gone was the fastest
    assert [odd.first, odd.chosen] == names(ODD, 2) and odd.share == 1 and odd.of_rival is None


def test_of_two_that_the_costs_cannot_tell_apart_the_first_candidate_counts(monkeypatch):
    """Not the faster one: the rule doesn't know which that is."""
    monkeypatch.setattr(cost, "cycles", lambda *_: 1.0)
    one, other = names(CUBE, 2)
    (found,) = choices([Timed("random", CUBE, {other: 1e-5, one: 2e-5}, None)])
    assert found.chosen == one and found.share == 0.5


def test_a_summary_has_means_and_leasts_by_kind(file):
    groups = grouped(choices(rule_searches.read(file)))
    assert set(groups) == {"random", "cubes", "odd rows", "all"}
    whole = summary(groups["all"])
    assert (whole.products, whole.first_timed) == (2, 1)
    assert whole.share == pytest.approx(0.5) and whole.least_share == 0.25
    assert whole.of_rival == whole.least_of_rival == 0.75
    assert summary(groups["odd rows"]).of_rival is None


def test_the_command_prints_it(file, capsys):
    assert main(["search", "--judge", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cubes"]["share"] == 0.25 and found["odd rows"]["of_rival"] is None
    assert main(["search", "--judge", str(file)]) == 0
    assert "0.250, 0.250" in capsys.readouterr().out


@pytest.mark.parametrize("text, words", [
    ("nothing", "line 1: no product of a search (JSONDecodeError"),
    ('{"gpu": "H100"}', "no product was timed in a candidate that the rule has"),
    ('{"M": 3, "seconds": {"a": 1}}', "line 1: no product of a search (KeyError: 'N')"),
    ("[1]", "line 1: no product of a search (AttributeError"),
])
def test_what_is_no_search_is_refused_in_a_line(tmp_path, capsys, text, words):
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    assert main(["search", "--judge", str(file)]) == 2
    assert words in capsys.readouterr().err


def test_a_search_says_where_it_writes(capsys):
    assert main(["search"]) == 2
    assert "--to FILE" in capsys.readouterr().err


def test_the_record_s_shapes_can_be_searched():
    asked = [one.problem for one in rule_search.recorded()]
    assert len({one.out for one in asked if one.dtype == "float16"}) == 2
    assert CUBE in asked and Problem(4095, 4097, 4093, dtype="float16") in asked
