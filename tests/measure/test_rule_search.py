"""The search of what the rule launches: what is timed, and that what is wrong is not."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from lib.dispatch import cost
from lib.kernels import layers
from lib.kernels.layers import Asked, products
from lib.measure import bench, cublas, cublaslt, rule_search
from lib.problem import Problem
from lib.run import device

PROBLEM = Problem(40, 64, 96, dtype="float16")


class Stream:
    """A stream on which all is done at once."""

    ptr = 7

    def __init__(self, non_blocking=False):
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin_capture(self):
        pass

    def end_capture(self):
        return SimpleNamespace(launch=lambda stream: None)

    def synchronize(self):
        pass


class Event:
    def record(self, stream):
        pass

    def synchronize(self):
        pass


@pytest.fixture
def fake(monkeypatch):
    """A GPU of NumPy's, on which each launch takes what `seconds` says, and its products."""
    fake = SimpleNamespace(seconds={}, wrong=set(), unwritten=set(), launched=[])

    def launched(problem, name, copies):
        def call(index, stream):
            fake.launched.append(name)
            A, B, C = copies[index]
            C[...] = multiplied(A, B)
            if name in fake.wrong:
                C[-1, -1] += 1
            if name in fake.unwritten:
                C[-1, -1] = np.nan
        call.name = name
        return call

    class Player(rule_search.Player):
        def __init__(self, call, copies, stream):
            super().__init__(call, copies, stream)
            self.name = getattr(call, "name", "rival")

        def take(self):
            super().take()
            return fake.seconds.get(self.name, 1.0)

    def multiplied(A, B):
        return A.astype("float32") @ B.astype("float32")

    def gemm(problem, A, B, C):
        C[...] = multiplied(A, B)

    cupy = SimpleNamespace(
        asarray=np.asarray, cuda=SimpleNamespace(
            Stream=Stream, Event=Event, get_current_stream=Stream,
            get_elapsed_time=lambda begin, end: 1.0))
    monkeypatch.setattr(device, "cupy", lambda: cupy)
    monkeypatch.setattr(bench, "keep_busy", lambda seconds: None)
    monkeypatch.setattr(bench, "copies_of", lambda problem, cp: [
        problem.inputs(seed) for seed in range(3)])
    monkeypatch.setattr(rule_search, "launched", launched)
    monkeypatch.setattr(rule_search, "Player", Player)
    monkeypatch.setattr(cublas, "gemm", gemm)
    monkeypatch.setattr(cublaslt, "kernels", lambda call: ["rival"])
    monkeypatch.setattr(cublaslt, "candidates", lambda problem, *first: [SimpleNamespace(
        place=0, gemm=lambda A, B, C: gemm(problem, A, B, C))])
    return fake


def test_the_fastest_are_timed_again_beside_the_rule_s_choice_and_the_rival(fake):
    names = rule_search.entrants(PROBLEM, 9, 3)
    fake.seconds = {name: 2.0 - place / 100 for place, name in enumerate(names)} | {"rival": 1.5}
    row = rule_search.timed(PROBLEM, names)
    assert row["rule"] == names[0] and row["rival"] == ["rival"] and row["rival_seconds"] == 1.5
    assert set(row["seconds"]) == {names[0], *names[-rule_search.OURS_LEFT:]}
    assert row["seconds"][names[-1]] == fake.seconds[names[-1]]
    assert set(row["passed"]) == set(names) - set(row["seconds"]) and not row["wrong"]
    assert json.loads(json.dumps(row)) == row


@pytest.mark.parametrize("fault", ["wrong", "unwritten"])
@pytest.mark.parametrize("problem", [PROBLEM, Problem(3000, 1600, 8, dtype="float16")])
def test_what_is_wrong_in_one_element_is_not_timed(fake, fault, problem):
    names = rule_search.entrants(problem, 3, 1)
    getattr(fake, fault).add(names[1])
    row = rule_search.timed(problem, names)
    assert row["wrong"] == [names[1]]
    assert set(row["seconds"]) == set(names) - {names[1]}


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
