"""25: every epilogue right on ragged shapes, clean under races, its mistakes found out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lib.dispatch.parts import apart_launch
from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.fused import EPILOGUE, EPILOGUES, IN_TURN, apart, fused, slices
from lib.kernels.hopper import BF16_COLUMN
from lib.kernels.schedule import Schedule
from lib.kernels.source import edited
from lib.problem import Epilogue, Problem, with_epilogue
from lib.problem.epilogue import ACTIVATIONS, Given, halves, interleaved
from lib.run import runner
from lib.run.prepared import apart_arguments
from tests.kernels.conftest import (
    LATE,
    ORDERS,
    clean,
    found_out,
    on_changed,
    pairwise,
    problem_of,
    two_each,
)
from tools.mutation import Equivalent

# Of each way to store C, and to multiply, one; the others differ in the epilogue alone.
TEMPLATES = ("bias_gelu", "bias_gelu_unstaged", "bias_gelu_wide", "all_float", "few_swapped",
             "few_swiglu")
ALL = Epilogue("gelu", True, True, True)


run_on = partial(runner.run, EPILOGUE, backend="emulator", trace=False, exact=True)


# More tiles than blocks, which come round the ring; the last step of K and the last tiles of M and
# N cut short; one row; nothing to multiply. C is NaN where beta is 0.
SHAPES = [((67, 144, 200), -2.0), ((130, 272, 456), 0.0), ((1, 16, 8), 0.0), ((3, 16, 0), 0.5)]


# Those that differ in the epilogue alone are run ragged, and in a random order of warps, with all
# kernels (test_emulator): here they are slow.
@pytest.mark.parametrize("variant, shape, beta", two_each(EPILOGUE.measured, TEMPLATES, SHAPES))
def test_ragged_shapes_are_right_and_clean(variant, shape, beta):
    clean(EPILOGUE, variant, problem_of(variant, *shape, beta=beta), sms=2)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("options", ORDERS)
def test_any_order_of_warps_and_copies(name, options):
    variant = EPILOGUE.variant(name)
    clean(EPILOGUE, variant, problem_of(variant, 66, 272, 456, beta=1.0), sms=2, **options)


@pytest.mark.parametrize("activation", [a for a in ACTIVATIONS if a != "swiglu"])
def test_each_element_is_the_formula_s(activation):
    """In FP32, where C is rounded to nothing, element by element and over a wide range."""
    epilogue = Epilogue(activation, bias=True)
    variant = fused("one", "", IN_TURN, epilogue, dtype="bfloat16", out="float32",
                    b_layout="column")
    problem = problem_of(variant, 64, 128, 16, alpha=1.0)
    given = problem.inputs()
    given.A[...] = given.B[...] = 0
    x = np.linspace(-30, 30, 128, dtype="f4")
    x[:6] = 0, -0.0, 1e-6, -1e4, 1e4, -3e18
    given.bias[...] = x
    done = run_on(problem, variant=variant, given=given)
    wanted = ACTIVATIONS[activation](x.astype("f8"))
    tolerance = 1e-3 if activation == "gelu_unit" else 2e-6
    # What is left of GELU far below 0 is a difference of two numbers near 1.
    few = 1e-3 if activation == "gelu_unit" else 2e-6 if activation == "gelu_erf" else 1e-12
    for row in done.C:
        np.testing.assert_allclose(row, wanted, tolerance, few)


def test_beta_and_bias_come_before_the_activation_and_the_residual_behind():
    variant = EPILOGUE.variant("all_float")
    problem = problem_of(variant, 64, 128, 16, alpha=2.0, beta=-3.0)
    given = problem.inputs(5)
    done = run_on(problem, variant=variant, given=given)
    x = 2.0 * (given.A.astype("f8") @ given.B.astype("f8")) - 3.0 * given.C + given.bias
    wanted = ACTIVATIONS["gelu"](x) + given.residual
    np.testing.assert_allclose(done.C, wanted, 1e-4, 1e-5)
    assert amax_of(done) == abs(done.C).max()


@pytest.mark.parametrize("name", ["all_float", "few_swiglu"])
def test_amax_is_of_c_alone(name):
    """A bias is added to rows and columns past C's end, too: they don't count."""
    variant = EPILOGUE.variant(name)
    problem = problem_of(variant, 3, 16, 8)
    given = problem.inputs()
    given.A[...] = 0
    given.bias[...] = 100
    if given.residual is not None:
        given.residual[...] = -100
    done = run_on(problem, variant=variant, given=given)
    assert done.verdict.ok
    assert amax_of(done) == float(abs(done.C.astype("f4")).max()) or name == "few_swiglu"


def amax_of(done) -> float:
    return float(done.operands[5][0])


def test_amax_grows_and_keeps_a_nan():
    variant = EPILOGUE.variant("amax")
    problem = problem_of(variant, 65, 136, 72)
    given = problem.inputs()
    before = given._replace(amax=np.full(1, 1e6, "f4"))
    done = run_on(problem, variant=variant, given=before)
    assert amax_of(done) == 1e6 and done.verdict.ok
    given.A[64, 3] = np.nan
    assert math.isnan(emulated(variant, problem, given).amax[0])


@pytest.mark.parametrize("name", ["bias_relu", "bias_gelu", "bias_silu", "bias_gelu_erf"])
def test_a_nan_and_an_infinity_go_through(name):
    variant = EPILOGUE.variant(name)
    problem = problem_of(variant, 3, 16, 8, alpha=1.0)
    given = problem.inputs()
    given.A[1, 0] = np.nan
    given.bias[...] = np.inf
    found = emulated(variant, problem, given).C.astype("f4")
    assert np.isnan(found[1]).all() and np.isposinf(found[[0, 2]]).all()


def emulated(variant, problem: Problem, given: Given) -> Given:
    """What is left in memory, without a verdict."""
    own = given._replace(C=given.C.copy(),
                         amax=None if given.amax is None else given.amax.copy())
    compiled = compile_kernel(EPILOGUE, variant, "sm_90a", ptx_only=True)
    prepared = runner.prepare(EPILOGUE, variant, problem, [own], exact=True, sms=2)
    runner.emulate(compiled, *prepared.steps[0][-1][1:], trace=False)
    return own


@pytest.mark.parametrize("epilogue, out, vec", pairwise(
    [*(one for one, _ in EPILOGUES.values()), ALL, Epilogue("swiglu", True, True, True)],
    ["bfloat16", "float32"], [1, 4]))
def test_the_epilogue_apart_is_the_same(epilogue, out, vec):
    N = 17 if vec == 1 and epilogue.fold == 1 else 48
    beta = 0.0 if epilogue.fold == 2 else -2.0
    problem = with_epilogue(37, N, 24, 0.5, beta, out=out, epilogue=epilogue)
    given = problem.inputs(1)
    answer = problem.reference(*given)
    product = given.A.astype("f4") @ given.B.astype("f4").T
    variant = apart(epilogue, out, vec)
    compiled = compile_kernel(EPILOGUE, variant, "sm_90a", ptx_only=True)
    launched = runner.emulate(compiled, apart_launch(variant, problem, 1), apart_arguments(
        problem, product, given, variant), trace=False, races=True)
    assert problem.judge(given.C, answer, *given[3:]).ok and not launched.hazards


def test_gates_and_what_they_let_through_lie_in_turns_of_eight():
    random = np.random.default_rng(1)
    x, gate, up = (random.random(shape) for shape in ((3, 5), (16, 5), (16, 5)))
    both = interleaved(gate, up)
    assert both.shape == (32, 5) and (both[8:16] == up[:8]).all()
    found = halves(x @ both.T)
    np.testing.assert_allclose(found[0], x @ gate.T)
    np.testing.assert_allclose(found[1], x @ up.T)
    with pytest.raises(ValueError, match="N a multiple of 8"):
        interleaved(gate[:5], up[:5])


@pytest.mark.parametrize("changes, words", [
    ({"K": 60}, "K = 60 must be a multiple of 8"),
    ({"N": 36}, "C's columns = 36 must be a multiple of 8"),
    ({"M": 2**31 - 100}, "M = 2147483548 passes"),
    ({"epilogue": Epilogue("relu")}, "takes the epilogue bias_gelu, not relu"),
    ({"out": "float32"}, "takes C in bfloat16, not float32"),
])
def test_what_it_can_t_compute_is_refused_in_one_line(changes, words):
    variant = EPILOGUE.variant("bias_gelu")
    with pytest.raises(ValueError, match=words) as refused:
        plan(EPILOGUE, variant, replace(problem_of(variant, 64, 64, 64), **changes), exact=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("changes, words", [
    ({"epilogue": Epilogue("swiglu"), "beta": 1.0}, "beta must be 0; add a residual instead"),
    ({"epilogue": Epilogue("swiglu"), "N": 24}, "N = 24 must be a multiple of 16"),
    ({"M": 0}, "is no shape"), ({"out": "float8"}, "C can't be float8"),
    ({"dtype": "float32"}, "A and B can't be float32"),
])
def test_a_problem_says_what_it_can_t_be(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(with_epilogue(16, 16, 16), **changes)
    with pytest.raises(ValueError, match="activation 'tanh' is unknown"):
        Epilogue("tanh")


@pytest.mark.parametrize("change, words", [
    ({"bias": None}, "takes a bias"), ({"residual": np.zeros((64, 64), "f4")}, "no residual"),
    ({"bias": np.zeros(63, "f4")}, r"bias is \(63,\); the problem asks for \(64,\)"),
    ({"bias": np.zeros(64, "f8")}, "bias holds float64; it must be bfloat16"),
])
def test_operands_that_don_t_fit_the_epilogue_are_refused(change, words):
    variant = EPILOGUE.variant("bias_gelu")
    problem = problem_of(variant, 64, 64, 64)
    given = problem.inputs()._replace(**change)
    with pytest.raises(ValueError, match=words):
        runner.prepare(EPILOGUE, variant, problem, [given], exact=True)


def test_a_problem_says_what_it_moves():
    problem = with_epilogue(3, 32, 8, epilogue=Epilogue("swiglu", True, True))
    assert problem.columns == 16 and problem.flops == 2 * 3 * 32 * 8
    assert problem.compulsory_bytes == 2 * ((3 + 32) * 8 + 2 * 3 * 16 + 32)
    assert problem.epilogue.name == "bias_swiglu_residual"
    assert Epilogue().expression == "Epilogue<NONE, false, false, false>"


def test_slices_are_whole_or_refused():
    assert slices(Schedule((128, 256), 64), Epilogue(), "bfloat16") == 4
    assert slices(Schedule((128, 128), 64), Epilogue("swiglu"), "bfloat16") == 1
    assert slices(Schedule((128, 224), 64), Epilogue(), "bfloat16") == 3
    with pytest.raises(ValueError, match="64 columns makes no whole slice"):
        fused("x", "", Schedule((128, 64), 64, stages=4, staged=1), Epilogue("swiglu"),
              **BF16_COLUMN)
    with pytest.raises(ValueError, match="224 columns needs B by columns"):
        fused("x", "", Schedule((128, 224), 64, stages=4, staged=1), Epilogue())


def test_what_an_epilogue_lacks_compiles_to_nothing():
    def code(name):
        return [one.opcode for one in compile_kernel(EPILOGUE, EPILOGUE.variant(name),
                                                     "sm_90a").sass]

    plain, bias, amax = code("plain"), code("bias"), code("amax")
    assert not any(op.startswith(("REDUX", "RED.", "ATOM")) for op in plain)
    # What is read where beta isn't 0 remains.
    assert sum(op.startswith("LDG") for op in bias) > sum(op.startswith("LDG") for op in plain)
    assert any(op.startswith("REDUX") for op in amax)
    # wgmma isn't serialised around the epilogue (C7510).
    for found in (plain, bias, code("bias_gelu")):
        assert sum(op.startswith("HGMMA") for op in found) == 8


# -- mutants ---------------------------------------------------------------------------------------

MISTAKES = {
    "the wait for a buffer left out": (
        "if (threadIdx.x % 128 == 0) tma_wait_read<STAGED ? STAGED - 1 : 0>();", ""),
    "the first barrier of a slice left out": (
        "tma_wait_read<STAGED ? STAGED - 1 : 0>();\n"
        "            barrier_sync(1 + warpgroup, 128);",
        "tma_wait_read<STAGED ? STAGED - 1 : 0>();"),
    "the fence left out": ("fence_async_proxy();", ""),
    "the last barrier of a slice left out": (
        "fence_async_proxy();\n            barrier_sync(1 + warpgroup, 128);",
        "fence_async_proxy();"),
    "a store never committed": ("tma_commit();", ""),
    "the bias of the columns beside": ("const Pair*>(bias + x + i * 8);",
                                       "const Pair*>(bias + (x ^ 2) + i * 8);"),
    "the bias behind the activation": (
        "to[i] = make_float2(E::of(in[0].x, in[E::FOLD - 1].x)",
        "to[i] = make_float2(E::of(in[0].x - 1.0f, in[E::FOLD - 1].x)"),
    "the residual of the row above": (
        "const Pair*>(residual + at);", "const Pair*>(residual + at - (row > 0 ? N : 0));"),
    "the lower rows take the upper ones' sums": ("4 * block + i % 2 * 2", "4 * block"),
    "an amax of rows past C's end": ("if (E::AMAX && inside(row + i % 2 * 8, x + i / 2 * 8))",
                                     "if (E::AMAX)"),
    "an amax of one lane": ("__reduce_max_sync(0xffffffff, most)", "most"),
    "beta forgotten": ("if constexpr (READS) add(in[f], beta, old[i]);", ""),
}


@pytest.mark.parametrize("mistake", [
    pytest.param(mistake, marks=pytest.mark.slow if place % 2 else [])
    for place, mistake in enumerate(MISTAKES)])
def test_a_mistake_is_found_out(mistake):
    old, new = MISTAKES[mistake]
    slices, values = ((EPILOGUE.source.parent / "include" / name).read_text().replace(
        "#pragma once", "") for name in ("fused_slices.cuh", "fused.cuh"))
    header = edited(slices, '#include "fused.cuh"', values)
    text = edited(EPILOGUE.source.read_text(), '#include "fused_slices.cuh"',
                  edited(header, old, new))
    assert contested(text), mistake


def small(variant):
    """The same with little to do: few stages, and where a block multiplies small tiles."""
    return variant.scheduled(stages=2)


# The second has nothing that isn't read past C's end, so that an amax of it is that of the bias.
CONTESTED = (EPILOGUE.variant("all_float"),
             fused("bias_amax", "", IN_TURN, Epilogue(bias=True, amax=True)))


def contested(source: str) -> str:
    """What shows that a changed source is wrong."""
    for variant in map(small, CONTESTED):
        problem = problem_of(variant, 66, 144, 72, beta=-2.0 if variant.name == "all_float" else 0)
        given = problem.inputs()
        if variant.name == "bias_amax":
            # All that is in C is smaller than the bias of one column is by itself.
            given.bias[20], given.A[...] = 16, 0.1
            given.B[:, 20] = -1
        run = partial(run_on, problem, variant=variant, given=given, sms=2, source=source)
        # The other schedules find nothing more.
        if shown := found_out(run, {"races": False}, {"races": True} | LATE):
            return shown
    return ""


def test_without_a_mistake_nothing_is_found():
    assert not contested(EPILOGUE.source.read_text())


EQUIVALENTS = (
    Equivalent(
        r"25_epilogue .*", r"bar\.warp\.sync", "ptxas mixes the blocks",
        "it orders nothing: with it ptxas needs fewer registers",
    ),
    Equivalent(
        "25_epilogue few_swiglu", r"bar\.warp\.sync", "by another lane than has read it",
        "SwiGLU has no beta, and so reads nothing of C",
    ),
)


@pytest.mark.parametrize("name, every", [
    ("all_float", False),
    *(pytest.param(name, True, marks=pytest.mark.slow) for name in TEMPLATES)])
def test_mutants_are_found_out_or_equivalent(name, every, table, monkeypatch):
    less = small(EPILOGUE.variant(name))
    compiled = compile_kernel(EPILOGUE, less, "sm_90a", ptx_only=True)
    (rows, columns), size = less.tile, less.grid.size
    # Three tiles for a cluster, whose ring is not at its beginning when the next comes.
    shape = rows * less.grid.cluster - 3, 3 * less.grid.cluster_n * columns - 16, 3 * 64 - 32
    runs = on_changed(runner, monkeypatch, [
        partial(run_on, problem_of(less, *shape, beta=beta), variant=less, sms=size)
        for beta in (-2.0, 0.0)])
    table.check(f"25_epilogue {name}", [(compiled.ptx, compiled.name, runs)],
                one_of_a_kind=not every)
