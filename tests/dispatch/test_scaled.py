"""Which instantiation of 26 a shape gets, and that the model says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lib.dispatch import cost, scaled
from lib.dispatch.fit import refusal
from lib.kernels.fp8 import FP8, LAUNCHED
from lib.kernels.scaled import OUTS, SCALES, ScaledProblem
from lib.measure.scaled_bench import ASKED


@pytest.mark.parametrize("scaling", SCALES)
@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("shape", [(1, 8, 16), (64, 4096, 7168), (4096, 4096, 4096), (3, 24, 0)])
def test_every_problem_gets_one_that_takes_it(shape, out, scaling):
    problem = ScaledProblem(*shape, out=out, scaling=scaling)
    for one in scaled.ranked(problem):
        assert not refusal(one, problem)
    assert scaled.suited(problem) is scaled.ranked(problem)[0]


def test_no_cluster_is_so_large_that_sms_are_left_over():
    assert all(FP8.variant(name).grid.size <= 2 for name in LAUNCHED)


def test_unknown_scales_are_refused():
    problem = ScaledProblem(64, 64, 128)
    object.__setattr__(problem, "scaling", "rows")
    with pytest.raises(ValueError, match="no instantiation for scales by rows and C in bfloat16"):
        scaled.suited(problem)


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: f"{one.shape} {one.scaling}")
def test_tiles_are_as_tall_as_leave_no_sm_idle(asked):
    M, N, K = asked.shape
    problem = ScaledProblem(M, N, K, scaling=asked.scaling)
    chosen = scaled.suited(problem)
    tiles = -(-M // 256) * -(-N // 128)
    assert (chosen.tile == (256, 128)) == (tiles >= 132)
    if M <= 128:  # a tile for a block, and blocks for most of the SMs or half of them, as N allows
        assert chosen.file == "26_fp8_few"
        assert chosen.grid.blocks(problem, chosen.tile, chosen.step, 132)[0] >= 64


def test_shared_tiles_are_chosen_for_what_the_l2_gives_out():
    """With an L2 that gives out as much as is asked for, pairs are no better."""
    problem = ScaledProblem(4096, 4096, 4096)
    pairs, alone = (FP8.variant(name) for name in ("tall_pairs", "tall"))
    assert cost.cycles(pairs, problem, scaled.H100) < cost.cycles(alone, problem, scaled.H100)
    endless = replace(scaled.H100, l2=1e9, l2_energy=0.0)
    assert cost.cycles(pairs, problem, endless) >= cost.cycles(alone, problem, endless)
