"""The rule of Hopper's kernels on searches of an H100: layers of models, and random shapes.

Three were made by `python -m lib search`: as it is, with --recorded, and after the fit of the costs
with --held-out, of which they know nothing. The others were made by a script: 65 to 400 rows, and
FP32, on an H100 and an H200, and after the fit on an H200 once more.
"""

from functools import cache

import pytest

from lib.dispatch.rule import RULE
from lib.kernels import layers
from lib.kernels.hopper import every_type, rows_of_22, searched_of_21, searched_of_22
from lib.records import rule_searches
from lib.records.rule_searches import choices, grouped, summary

# What the rule has since it was searched, and what it has for some rows alone.
ADDED = {f"{stem}/{one.name}" for stem, added in (
    ("21_clusters", searched_of_21), ("22_few_tiles", searched_of_22)) for one in every_type(added)}
OF_ROWS = {f"22_few_tiles/{one.name}" for one in every_type(rows_of_22)}
# The choice's share of the fastest candidate's speed, in the geometric mean, at least.
SHARE = {"h100/fitted": 0.970, "h100/held_out": 0.969, "h100/recorded_shapes": 0.967,
         "h100/rows": 0.965, "h100/fp32": 0.93, "h200/fitted_rows": 0.959,
         "h200/held_out_rows": 0.957}
# Where that is no average: of each product.
LEAST = {"h100/rows": 0.77, "h100/fp32": 0.72}
# And its speed over cublasLt's best, in the geometric mean, at least.
REACHED = {
    "h100/fitted": {
        "1 token": 1.07, "8 tokens": 1.067, "24 tokens": 1.07, "64 tokens": 1.025,
        "512 tokens": 0.995, "1,024 tokens": 0.997, "4,096 tokens": 0.985, "random": 1.3,
        "odd rows": 1.3},
    "h100/held_out": {
        "1 token": 1.06, "8 tokens": 1.06, "40 tokens": 1.06, "64 tokens": 1.035,
        "512 tokens": 0.984, "2,048 tokens": 1.0, "4,096 tokens": 0.967, "random": 1.31,
        "odd rows": 1.32},
    "h100/recorded_shapes": {"cubes": 1.03, "odd rows": 2.3},
    "h100/rows": {"all": 1.005, "random": 1.1},
    "h100/fp32": {"all": 0.965, "random": 1.06},
    "h200/fitted_rows": {"65 to 400 tokens": 0.985, "random": 1.0},
    "h200/held_out_rows": {"8 tokens": 1.03, "65 to 400 tokens": 0.969, "512 tokens": 0.999,
                           "random": 0.964, "cubes": 1.03},
}


@cache
def searched(which):
    return rule_searches.recorded(which)[1]


@cache
def chosen(which):
    """The rule's choices, grouped."""
    return grouped(choices(searched(which)))


@pytest.mark.parametrize("which, held_out", [("h100/fitted", False), ("h100/held_out", True)])
def test_what_was_timed_is_what_was_asked(which, held_out):
    asked = {(one.of, one.problem) for one in layers.products(held_out)}
    timed = {(one.of, one.problem) for one in searched(which)}
    assert timed <= asked and len(timed) > 0.9 * len(asked)


@pytest.mark.parametrize("which", SHARE)
def test_the_choice_is_near_the_fastest_and_reaches_what_it_reached_of_cublaslt(which):
    groups = chosen(which)
    whole = summary(groups["all"])
    assert whole.share > SHARE[which]
    assert whole.least_share >= LEAST.get(which, 0)
    assert whole.first_timed > 0.8 * whole.products  # else it says little of the rule's first
    reached = {kind: summary(groups[kind]).of_rival for kind in REACHED[which]}
    assert {kind: round(found, 3) for kind, found in reached.items()
            if found < REACHED[which][kind]} == {}


def test_cubes_get_what_was_recorded_as_the_fastest():
    cubes = chosen("h100/recorded_shapes")["cubes"]
    large = [one for one in cubes if one.timed.problem.M in (2048, 4096, 8192)]
    assert len(large) == 9
    assert all(one.first in one.timed.seconds and one.share > 0.98 for one in large)


def test_only_what_a_search_has_timed_is_a_candidate_of_a_b_by_columns():
    """For the other types the tiles are the same: those of 21, and of 22 without widths."""
    timed = {name for which in SHARE for one in searched(which) for name in one.seconds}
    untimed = {one.name for one in RULE.menu} - {
        name for variant in (*RULE.variants, *RULE.laid) for name in variant.candidates}
    assert untimed and not untimed & set(RULE.variant("bf16_column").candidates)
    added = ADDED & set(RULE.variant("bf16_column").candidates)
    assert added and added <= timed
    # Of those for a number of rows each: every size of columns and cluster, with some rows.
    every, those = ({(one.tile[1], one.schedule.swapped, one.schedule.cluster, one.grid.split)
                     for one in map(RULE.variant, names)} for names in (OF_ROWS, OF_ROWS & timed))
    assert every == those
