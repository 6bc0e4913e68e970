"""The rule of Hopper's kernels on searches of an H100: layers of models, and random shapes."""

import json
import math
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from lib.dispatch import cost
from lib.kernels import layers
from lib.kernels.catalogue import RULES

RULE = RULES["hopper"]
STEMS = {"20": "20_persistent", "21": "21_clusters", "22": "22_few_tiles", "23": "23_stream_k",
         "24": "24_any_row"}
SEARCHES = "fitted", "held_out", "recorded_shapes"
# The choice's share of the fastest candidate's speed, in the geometric mean, at least.
CHOICE = ("fitted", 0.915), ("held_out", 0.92), ("recorded_shapes", 0.975)
# And its speed over cublasLt's best, by the number of tokens, at least.
REACHED = {
    "fitted": {1: 1.05, 8: 1.05, 64: 1.03, 512: 0.925, 4096: 0.98, "random": 1.19},
    "held_out": {1: 0.96, 8: 0.97, 24: 1.0, 64: 0.97, 512: 0.945, 1024: 0.945, 4096: 0.96,
                 "random": 1.12},
}


@cache
def held():
    """The file: rows of (of, variant of the rule, M, N, K, cublasLt's µs, µs by names)."""
    return json.loads((Path(__file__).parent / "searched.json").read_text(encoding="utf-8"))


@cache
def searched(which):
    """What was timed: (of, M, cublasLt's µs, least µs of ours, [(candidate, problem, µs)])."""
    menu, found = {one.name: one for one in RULE.menu}, []
    for of, kind, M, N, K, rival, times in held()[which]:
        variant = RULE.variant(kind)
        problem, prefix = variant.problem(M, N, K), "bf16_" if kind == "bf16_column" else ""
        launched = []
        for name, microseconds in times.items():
            stem, own = name.split("/")
            one = f"{STEMS[stem]}/{prefix}{own}"
            if one in variant.candidates:
                launched.append((menu[one], problem, microseconds))
        found.append((of, M, rival, min(times.values()), launched))
    return found


def chosen(which, cycles):
    """Of each product (of, M, cublasLt's µs, least µs, that of the choice among what was timed)."""
    return [(of, M, rival, least, min(launched, key=lambda one: cycles(one[0], one[1]))[2])
            for of, M, rival, least, launched in searched(which)]


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def choice(which, cycles=cost.cycles):
    """The share of the fastest candidate's speed that the choice has."""
    return mean([least / took for *_, least, took in chosen(which, cycles)])


def by_tokens(which):
    """Speeds over that of cublasLt's best, by the number of tokens, and of random shapes."""
    found = defaultdict(list)
    for of, M, rival, _, took in chosen(which, cost.cycles):
        if rival:
            found["random" if of == "random" else M].append(rival / took)
    return found


@pytest.mark.parametrize("which, held_out", [("fitted", False), ("held_out", True)])
def test_what_was_timed_is_what_was_asked(which, held_out):
    asked = {(one.of, one.problem.M, one.problem.N, one.problem.K)
             for one in layers.products(held_out)}
    timed = {(of, M, N, K) for of, _, M, N, K, *_ in held()[which]}
    assert timed <= asked and len(timed) > 0.9 * len(asked)


@pytest.mark.parametrize("which, least", CHOICE)
def test_the_choice_is_near_the_fastest(which, least):
    assert choice(which) > least


@pytest.mark.parametrize("which", SEARCHES)
def test_a_rule_that_takes_the_largest_tile_chooses_worse(which):
    assert choice(which, lambda one, _: -math.prod(one.tile)) < choice(which) - 0.03


@pytest.mark.parametrize("which", ["fitted", "held_out"])
def test_layers_reach_what_they_reached_of_cublaslt(which):
    reached = {tokens: mean(found) for tokens, found in by_tokens(which).items()}
    assert {tokens: round(found, 3) for tokens, found in reached.items()
            if found < REACHED[which][tokens]} == {}
