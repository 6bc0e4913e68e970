"""The search of what the rule launches: what is timed, and that what is wrong is not."""

import json
from types import SimpleNamespace

import pytest

from lib.dispatch import cost
from lib.kernels import layers
from lib.kernels.layers import Asked, products
from lib.measure import bench, rule_search, turns
from lib.measure.turns import Sample, Timing
from lib.problem import Problem, WrongResult

PROBLEM = Problem(40, 64, 96, dtype="float16")


@pytest.fixture
def fake(monkeypatch):
    """Contests in which each launch takes what `seconds` says, and what is in `wrong` is."""
    fake = SimpleNamespace(seconds={}, wrong=set(), taken=[])

    class Contest:
        rival_timed = SimpleNamespace(fastest=SimpleNamespace(kernels=["rival"]))

        def __init__(self, problem):
            pass

        def player(self, kernel, variant, *, choice):
            if choice.name in fake.wrong:
                raise WrongResult("off; not timed")
            return choice.name, ""

        def cublas(self):
            return "rival"

    def take(players, samples, series=5, turn=5e-3, warm=0):
        fake.taken.append(players)
        return [Timing(((Sample(fake.seconds.get(one, 1.0), 1),) * samples,) * series)
                for one in players]

    monkeypatch.setattr(bench, "Contest", Contest)
    monkeypatch.setattr(turns, "take", take)
    return fake


def test_the_fastest_are_timed_again_beside_the_rule_s_choice_and_the_rival(fake):
    names = rule_search.entrants(PROBLEM, 9, 3)
    fake.seconds = {name: 2.0 - place / 100 for place, name in enumerate(names)} | {"rival": 1.5}
    row = rule_search.timed(PROBLEM, names)
    assert row["rule"] == names[0] and row["rival"] == ["rival"] and row["rival_seconds"] == 1.5
    assert set(row["seconds"]) == {names[0], *names[-rule_search.LEFT:]}
    assert row["seconds"][names[-1]] == fake.seconds[names[-1]]
    assert set(row["passed"]) == set(names) - set(row["seconds"]) and not row["wrong"]
    assert json.loads(json.dumps(row)) == row


def test_what_is_wrong_is_said_and_not_timed(fake):
    names = rule_search.entrants(PROBLEM, 3, 1)
    fake.wrong.add(names[1])
    row = rule_search.timed(PROBLEM, names)
    assert row["wrong"] == [f"{names[1]}: off; not timed"]
    assert set(row["seconds"]) == set(names) - {names[1]}
    assert not any(names[1] in players for players in fake.taken)


def test_entrants_are_the_rule_s_first_and_some_that_it_does_not_take():
    for problem in (PROBLEM, Problem(64, 4608, 3584, **layers.BF16_COLUMN)):
        variant = rule_search.types_of(problem)
        names = rule_search.entrants(problem, 5, 4)
        ranked = [one.name for one in cost.ranked(rule_search.RULE, variant, problem)]
        assert names[:5] == ranked[:5] and len(names) == 9
        assert not set(names[5:]) & set(variant.candidates)
        assert len(list(rule_search.instantiations(problem, names))) == 9


def test_rows_that_are_packed_have_their_packing_compiled():
    problem = Problem(300, 201, 77, dtype="float16")
    found = [one.name for one in rule_search.instantiations(problem, ["21_clusters/wide"])]
    assert found == ["21_clusters/wide", "pack"]


def test_nothing_is_fitted_to_that_is_held_out():
    fitted, held = products(held_out=False), products(held_out=True)
    assert not {one.problem for one in fitted} & {one.problem for one in held}
    assert {one.problem.M for one in held if one.of != "random"} >= set(layers.TOKENS)
    for asked in (fitted, held):
        drawn = [one.problem for one in asked if one.of == "random"]
        assert len(drawn) > 20 and all(isinstance(one, Asked) for one in asked)
        assert sum(problem.K < 64 for problem in drawn) >= 6
        assert sum(problem.K > 8 * max(problem.M, problem.N) for problem in drawn) >= 6
