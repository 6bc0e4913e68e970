"""The product to take away: right on every type and layout, on the caller's stream, or refused."""

import time
from dataclasses import replace

import numpy as np
import pytest

import lib
from lib.kernels import rule
from lib.kernels.catalogue import CATALOGUE
from lib.problem import Problem
from lib.run import device
from lib.run import gemm as products
from tests import played

TYPES = [
    ("float32", "float32", "row"), ("float16", "float32", "row"), ("float16", "float16", "row"),
    ("bfloat16", "bfloat16", "column"),
]
SHAPES = [(256, 512, 128), (33, 57, 75), (1, 1, 1), (5, 7, 0), (1000, 1000, 1000), (128, 128, 8192)]


@pytest.mark.parametrize("gpu, types, stem", [
    (played.H100, TYPES[1], "21_every_shape"), (played.H100, TYPES[3], "21_every_shape"),
    (played.H100, TYPES[0], "09_fp32_limit"), (played.T4, TYPES[1], "15_turing_limit"),
    (played.A100, TYPES[1], "16_cp_async"),
])
def test_the_version_is_the_latest_that_the_gpu_runs(gpu, types, stem, monkeypatch):
    played.play(gpu, monkeypatch.setattr)
    dtype, out, layout = types
    wanted = Problem(1, 1, 8, dtype=dtype, out=out, b_layout=layout)
    both = [replace(wanted, b_layout=name) for name in ("row", "column")]
    for problems in ([wanted], both):
        kernel, variant, problem = products._version(problems)
        assert kernel.stem == stem and problem == wanted
        assert (variant.dtype, variant.out) == (dtype, out)


def test_types_that_no_kernel_takes_are_refused(monkeypatch):
    played.play(played.T4, monkeypatch.setattr)
    problem = Problem(8, 8, 8, dtype="bfloat16", out="bfloat16", b_layout="column")
    with pytest.raises(ValueError, match="no kernel on Tesla T4 takes A and B in bfloat16"):
        products._version([problem])


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told():
    with pytest.raises(device.NoGpu):
        lib.gemm(np.ones((8, 8), "f2"), np.ones((8, 8), "f2"))


def operands(problem, seed=0):
    """A, B as `gemm` takes it, and C."""
    A, B, C = problem.inputs(seed, device.cupy())
    return A, B if problem.b_layout == "row" else B.T, C


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("types", TYPES, ids=str)
def test_right_with_and_without_c(types, shape):
    dtype, out, layout = types
    for alpha, beta in ((1.0, 0.0), (0.5, -2.0)):
        problem = Problem(*shape, alpha, beta, dtype=dtype, out=out, b_layout=layout)
        for seed in (1, 2):  # other arrays, and the same plan where they lie in the same place
            A, B, C = operands(problem, seed)
            reference = problem.reference(A, B if layout == "row" else B.T, C)
            found = lib.gemm(A, B, alpha, beta, C)
            assert found is C
            verdict = problem.judge(C, reference)
            assert verdict.ok, verdict
    if beta == 0 and out == products._OUT[dtype]:
        assert lib.gemm(A, B).dtype == C.dtype


@pytest.mark.gpu
def test_it_runs_on_the_stream_that_it_is_given():
    cp = device.cupy()
    problem = Problem(512, 512, 512, dtype="float16")
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        A, B, C = operands(problem)
        reference = problem.reference(A, B, C)
    for given in (stream, stream.ptr):
        C[...] = cp.nan
        cp.cuda.runtime.deviceSynchronize()
        lib.gemm(A, B, C=C, stream=given)
        stream.synchronize()
        assert problem.judge(C, reference).ok


@pytest.mark.gpu
def test_arrays_of_pytorch_are_taken_by_dlpack():
    torch = pytest.importorskip("torch")
    A = torch.randn(300, 200, device="cuda", dtype=torch.bfloat16)
    B = torch.randn(264, 200, device="cuda", dtype=torch.bfloat16)
    C = torch.full((300, 264), float("nan"), device="cuda", dtype=torch.bfloat16)
    stream = torch.cuda.current_stream()
    assert lib.gemm(A, B.T, C=C, stream=stream) is C
    torch.cuda.synchronize()
    assert torch.allclose(C.float(), A.float() @ B.float().T, rtol=1e-2, atol=0.2)


@pytest.mark.gpu
def test_what_does_not_fit_is_refused_in_one_line():
    cp = device.cupy()
    A, B = cp.ones((64, 32), "f2"), cp.ones((32, 48), "f2")
    flat = cp.zeros(4096, "f2")
    for word, call in {
        "both must be one of": lambda: lib.gemm(A, B.astype("f4")),
        "must be M×K and K×N": lambda: lib.gemm(A, B.T),
        "A must be C-contiguous": lambda: lib.gemm(A.T[:, :32].T[:, ::2], B[::2]),
        "there is no C to add": lambda: lib.gemm(A, B, beta=1.0),
        "C must be a C-contiguous array of 64×48": lambda: lib.gemm(A, B, C=cp.ones((64, 8), "f4")),
        "C overlaps A": lambda: lib.gemm(
            flat[:1024].reshape(32, 32), cp.ones((32, 32), "f2"),
            C=flat[512:1536].reshape(32, 32)),
        "pass an array on the GPU": lambda: lib.gemm(A.get(), B),
        "C can't be float64": lambda: lib.gemm(A, B, C=cp.ones((64, 48), "f8")),
        "must begin at a multiple": lambda: lib.gemm(
            A, B, C=cp.ones(64 * 48 + 1, "f4")[1:].reshape(64, 48)),
    }.items():
        with pytest.raises(ValueError) as refused:
            call()
        assert word in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.gpu
def test_a_warm_call_costs_the_host_little():
    cp = device.cupy()
    A, B, C = operands(Problem(512, 512, 512, dtype="float16"))
    lib.gemm(A, B, C=C)
    assert products.chosen(A, B, C).startswith(("21_every_shape, ", "16_cp_async", "15_turing"))
    best = min(_seconds(A, B, C) for _ in range(5))
    cp.cuda.runtime.deviceSynchronize()
    print(f"host: {best * 1e6:.1f} µs")
    assert best < 30e-6


@pytest.mark.gpu
@pytest.mark.parametrize("types", TYPES[1:], ids=str)
def test_trials_leave_c_alone_and_keep_what_was_fastest(types, monkeypatch):
    dtype, out, layout = types
    problem = Problem(264, 520, 304, 0.5, -2.0, dtype=dtype, out=out, b_layout=layout)
    kernel, variant, _ = products._version([problem])
    if not variant.by_rule:
        pytest.skip(f"{kernel.stem} has no rule")
    monkeypatch.setattr(products, "_found", {})
    for seed in (1, 2):
        A, B, C = operands(problem, seed)
        reference = problem.reference(A, B if layout == "row" else B.T, C)
        lib.gemm(A, B, 0.5, -2.0, C, trials=4)
        assert problem.judge(C, reference).ok  # beta's C was still there
    (choice,) = products._found.values()
    assert "the fastest of 4 that were tried" in products.chosen(A, B, C, trials=4)
    assert choice.name in [one.name for one in rule.ranked(kernel, variant, problem)[:4]]


def test_the_fastest_of_the_rule_s_first_few_is_kept(monkeypatch):
    kernel = CATALOGUE["21_every_shape"]
    variant = kernel.variants[0]
    problem = variant.problem(300, 200, 100)
    tried = []

    def laid_out(cp, kernel, variant, problem, operands, choice):
        tried.append(choice.name)
        assert operands[2] is not C
        return choice

    C = np.zeros((300, 200), "f4")
    monkeypatch.setattr(products, "_found", {})
    monkeypatch.setattr(products, "_laid_out", laid_out)
    monkeypatch.setattr(products, "_seconds", lambda cp, plan: -tried.index(plan.name))
    found = [products._fastest(np, kernel, variant, problem, (None, None, C), 5) for _ in range(2)]
    ranked = [one.name for one in rule.ranked(kernel, variant, problem)]
    assert tried == ranked[:5] and found[0] is found[1] and found[0].name == ranked[4]


def test_no_trial_is_none():
    arrays = [np.ones((8, 8), "f2")] * 3
    with pytest.raises(ValueError, match="trials is 0: pass 1, which times nothing, or more"):
        products._made(np, *arrays, 0)


def _seconds(A, B, C, calls=200):
    device.cupy().cuda.runtime.deviceSynchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        lib.gemm(A, B, C=C)
    return (time.perf_counter() - begun) / calls
