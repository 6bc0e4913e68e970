"""The product to take away: right on every type and layout, on the caller's stream, or refused."""

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import lib
from lib.compiler import cache
from lib.dispatch import cost
from lib.kernels import catalogue
from lib.paths import ROOT
from lib.problem import Problem
from lib.run import device, launching, plans
from lib.run import gemm as products
from lib.run import trials as timing
from tests import driver, played
from tests.tables import refused

TYPES = [
    ("float32", "float32", "row"), ("float16", "float32", "row"), ("float16", "float16", "row"),
    ("bfloat16", "bfloat16", "column"),
]
SHAPES = [(256, 512, 128), (33, 57, 75), (1, 1, 1), (5, 7, 0), (1000, 1000, 1000), (128, 128, 8192)]


@pytest.mark.parametrize("gpu, types, stem", [
    (played.H100, TYPES[1], "hopper"), (played.H100, TYPES[3], "hopper"),
    (played.H100, TYPES[0], "09_fp32_limit"), (played.T4, TYPES[1], "15_turing_limit"),
    (played.A100, TYPES[1], "16_cp_async"),
])
def test_the_version_is_a_named_one_that_the_gpu_runs(gpu, types, stem, monkeypatch):
    played.play(gpu, monkeypatch.setattr)
    # Whatever comes later, of which nobody knows yet whether it is fast.
    monkeypatch.setitem(catalogue.KERNELS, "29_mine", replace(catalogue.find("01_naive"),
                                                              stem="29_mine"))
    dtype, out, layout = types
    wanted = Problem(1, 1, 8, dtype=dtype, out=out, b_layout=layout)
    both = [replace(wanted, b_layout=name) for name in ("row", "column")]
    for problems in ([wanted], both):
        kernel, variant, problem = plans.version(problems)
        assert kernel.stem == stem and problem == wanted
        assert (variant.dtype, variant.out) == (dtype, out)


def test_types_that_no_kernel_takes_are_refused(monkeypatch):
    played.play(played.T4, monkeypatch.setattr)
    problem = Problem(8, 8, 8, dtype="bfloat16", out="bfloat16", b_layout="column")
    with pytest.raises(ValueError, match="no kernel on Tesla T4 takes A and B in bfloat16"):
        plans.version([problem])


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told():
    with pytest.raises(device.NoGpu):
        lib.gemm(np.ones((8, 8), "f2"), np.ones((8, 8), "f2"))


# -- without a GPU: a played driver, and the emulator ----------------------------------------------

HOPPER = [Problem(72, 40, 64, dtype="float16"), Problem(33, 21, 50, dtype="float16")]
AMPERE = [Problem(70, 66, 40), Problem(96, 64, 32, dtype="float16"), Problem(130, 9, 300)]


@pytest.mark.parametrize("gpu, problem", [
    *((played.H100, problem) for problem in HOPPER), *((played.A100, one) for one in AMPERE),
], ids=lambda value: getattr(value, "shape", getattr(value, "name", "")))
def test_one_plan_serves_all_addresses_and_scalars(gpu, problem, monkeypatch):
    """What an earlier call put into the arguments is none of a later one's."""
    gpu = driver.play(gpu, monkeypatch.setattr)
    one = replace(problem, alpha=1.0, beta=0.0)
    for number, (alpha, beta) in enumerate([(1.0, 0.0), (1.0, -2.0), (1.0, 0.5), (3.0, 0.5)]):
        asked = replace(one, alpha=alpha, beta=beta)
        A, B, C, reference = driver.operands(gpu, asked, number)
        assert lib.gemm(A, B, alpha, beta, C) is C
        verdict = asked.judge(C.numpy(), reference)
        assert verdict.ok, (alpha, beta, verdict)
    assert len(plans.PLANS) == 1
    A, B, _, reference = driver.operands(gpu, one, 9)
    assert one.judge(lib.gemm(A, B).numpy(), reference).ok  # a C of its own


LAID = [
    Problem(72, 40, 64, 0.5, -2.0, dtype="float16", a_layout="column", b_layout="column"),
    Problem(33, 24, 50, dtype="bfloat16", out="float32", batch=2, leads=(57, 0, 29)),
    Problem(33, 21, 50, 0.5, -2.0, dtype="float16", out="float16", b_layout="column", batch=3,
            strides=(0, 50 * 21, 33 * 21)),
    Problem(33, 21, 50, 0.5, -2.0, a_layout="column", batch=2, leads=(0, 24, 0)),
    Problem(9, 7, 0, 0.5, -2.0, dtype="bfloat16", out="bfloat16", batch=2),
]


@pytest.mark.parametrize("problem", LAID, ids=str)
def test_matrices_are_read_as_they_lie(gpu, problem):
    """One plan for all addresses; nothing is launched but the kernel and what packs rows."""
    for seed in (1, 2):
        A, B, C, reference = driver.operands(gpu, problem, seed)
        assert lib.gemm(A, B, problem.alpha, problem.beta, C) is C
        verdict = problem.judge(C.numpy(), reference)
        assert verdict.ok, verdict
    assert len(plans.PLANS) == 1
    if problem.beta == 0 and products.OUT[problem.dtype] == problem.out:
        assert problem.judge(lib.gemm(A, B).numpy(), reference).ok


def test_empty_products_launch_nothing(gpu):
    for of_a, of_b, of_c in (((0, 5), (5, 4), (0, 4)), ((3, 5), (5, 0), (3, 0)),
                             ((0, 3, 5), (0, 5, 4), (0, 3, 4)), ((0, 0), (0, 0), (0, 0))):
        A, B, C = gpu.new(of_a, "f2"), gpu.new(of_b, "f2"), gpu.new(of_c, "f4")
        assert lib.gemm(A, B).shape == of_c and lib.gemm(A, B, 0.5, 2.0, C) is C
    assert not gpu.launched
    with pytest.raises(ValueError, match="C is"):
        lib.gemm(gpu.new((0, 5), "f2"), gpu.new((5, 4), "f2"), C=gpu.new((1, 4), "f4"))
    nothing = lib.gemm(gpu.new((2, 0), "f2"), gpu.new((0, 3), "f2"))
    assert not nothing.numpy().any() and len(gpu.launched) == 1


def test_parts_of_one_array_s_rows_are_no_overlap(gpu, monkeypatch):
    """A, B and C side by side in the same rows; a C that shares a column with A is refused.

    The emulator takes no arguments that lie within each other: nothing is computed here.
    """
    launched = []
    monkeypatch.setattr(driver.Gpu, "cuLaunchKernelEx", lambda *call: len(launched.append(1) or ""))
    room = gpu.new((32, 88), "f2", 0.0)

    def part(first, columns):
        return driver.Array(gpu, room.data.ptr, (32, columns), "f2", 2 * first, (176, 2))

    A, B, C = part(0, 32), part(32, 24), part(56, 24)
    lib.gemm(A, B, C=C)
    assert len(launched) == 1
    for first in (24, 40):
        with pytest.raises(ValueError, match="C overlaps [AB]: pass another"):
            lib.gemm(A, B, C=part(first, 24))
    assert len(launched) == 1


def test_a_warm_call_takes_the_host_a_dozen_calls(gpu, monkeypatch):
    """Of this project's functions; each costs a good part of a microsecond."""
    monkeypatch.setattr(driver.Gpu, "cuLaunchKernelEx", lambda *call: 0)
    monkeypatch.setattr(products, "operator", None)
    A, B, C, _ = driver.operands(gpu, HOPPER[0], 1)
    lib.gemm(A, B, C=C)
    made = []

    def count(frame, event, given):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(ROOT / "lib")):
            made.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        lib.gemm(A, B, C=C)
    finally:
        sys.setprofile(None)
    assert sorted(made) == ["__call__", "__call__", "_planned", "compute", "enqueue", "gemm", "get",
                            "look", "look", "look", "of", "stream"]


def test_launches_of_a_stream_share_memory_that_they_leave_as_they_found_it(monkeypatch):
    """Tiles that are cut along K count arrivals: whoever comes next must find zeros."""
    gpu = driver.play(played.A100, monkeypatch.setattr)
    cut = [Problem(64, 64, 1024), Problem(130, 70, 512)]
    used = []
    for number in range(4):
        problem = cut[number % 2]
        A, B, C, reference = driver.operands(gpu, problem, number)
        lib.gemm(A, B, C=C)
        assert problem.judge(C.numpy(), reference).ok
        used.append(list(plans.PLANS)[-1])
    assert all(plan.memory[0] > driver.ALLOCATED for plan in used), "none of them was cut"
    (rooms,) = plans._rooms.values()
    assert not rooms.held[1].numpy().any()


def test_streams_are_kept_apart_and_graphs_have_memory_of_their_own(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    problem = Problem(64, 64, 1024)
    A, B, C, reference = driver.operands(gpu, problem, 0)
    for stream in (None, 21, 22, None):
        lib.gemm(A, B, C=C, stream=stream)
    assert [stream for _, stream in gpu.launched] == [driver.CURRENT, 21, 22, driver.CURRENT]
    assert {stream for _, _, stream in plans._rooms} == {driver.CURRENT, 21, 22}
    held = {one.data.ptr for rooms in plans._rooms.values() for one in rooms.held}
    gpu.captured = True
    C.numpy()[...] = np.nan
    lib.gemm(A, B, C=C)
    assert problem.judge(C.numpy(), reference).ok
    assert gpu.freed == gpu.graphs and not held & set(gpu.graphs) and len(gpu.graphs) == 2


def test_a_thread_that_has_no_context_gets_its_device_s(gpu, monkeypatch):
    """The driver's 201, once: what the runtime has had nothing to do in has none."""
    launch, bound = gpu.cuLaunchKernelEx, []
    monkeypatch.setattr(gpu, "cuLaunchKernelEx", lambda *call: launch(*call) if bound else 201)
    monkeypatch.setattr(launching, "_runtime", lambda: SimpleNamespace(
        getDevice=lambda: 3, setDevice=bound.append))
    for _ in range(2):
        A, B, C, reference = driver.operands(gpu, HOPPER[0], 1)
        lib.gemm(A, B, HOPPER[0].alpha, HOPPER[0].beta, C)
        assert HOPPER[0].judge(C.numpy(), reference).ok
    assert bound == [3]


def test_the_plan_that_was_not_used_for_longest_goes_first(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    monkeypatch.setattr(plans, "MAX_PLANS", 2)
    shapes = {M: driver.operands(gpu, Problem(M, 8, 8), M) for M in (8, 16, 24)}

    def held():
        return [plan.shape[0] for plan in plans.PLANS]

    for M in (8, 16, 8, 24):
        A, B, C, reference = shapes[M]
        lib.gemm(A, B, C=C)
        assert Problem(M, 8, 8).judge(C.numpy(), reference).ok
    assert held() == [8, 24]


def test_the_memory_of_the_stream_that_was_not_used_for_longest_goes_first(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    monkeypatch.setattr(plans, "MAX_STREAMS", 2)
    problem = Problem(64, 64, 1024)
    A, B, C, reference = driver.operands(gpu, problem, 0)
    for stream in (21, 22, 21, 23):
        C.numpy()[...] = np.nan
        lib.gemm(A, B, C=C, stream=stream)
        assert problem.judge(C.numpy(), reference).ok
    assert [stream for _, _, stream in plans._rooms] == [21, 23]


def test_alignment_decides_and_not_the_address(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    problem = Problem(64, 64, 64, dtype="float16")
    A, B, C, reference = driver.operands(gpu, problem, 0)
    room = gpu.new((64 * 64 + 1,), "f2")
    odd = driver.Array(gpu, room.data.ptr, (64, 64), "f2", 2)
    odd.numpy()[...] = A.numpy()
    for one in (A, odd, A, odd):
        C.numpy()[...] = np.nan
        lib.gemm(one, B, C=C)
        assert problem.judge(C.numpy(), reference).ok
    assert len(plans.PLANS) == 2
    assert "not aligned" in products.chosen(odd, B, C) not in products.chosen(A, B, C)


def test_bad_matrices_are_refused_in_one_line_before_anything_is_launched(gpu):
    A, B, C = gpu.new((64, 32), "f2"), gpu.new((32, 48), "f2"), gpu.new((64, 48), "f4")
    flat = gpu.new((4096,), "f2")
    too_far = driver.Array(gpu, flat.data.ptr, (64, 48), "f2", 4096)
    elsewhere = gpu.new((32, 48), "f2")
    elsewhere.data.device_id = 1
    refused({
        "both must be one of": lambda: lib.gemm(A, gpu.new((32, 48), "f4")),
        "must be M×K and K×N": lambda: lib.gemm(A, B.T),
        "or batches of as many": lambda: lib.gemm(gpu.new((2, 4, 8), "f2"),
                                                  gpu.new((3, 8, 4), "f2")),
        "A's strides are (64, 4) bytes": lambda: lib.gemm(
            driver.Array(gpu, flat.data.ptr, (8, 16), "f2", 0, (64, 4)), gpu.new((16, 8), "f2")),
        "B's strides are (0, 2) bytes": lambda: lib.gemm(
            gpu.new((8, 16), "f2"), driver.Array(gpu, flat.data.ptr, (16, 8), "f2", 0, (0, 2))),
        "C must lie by rows": lambda: lib.gemm(A, B, C=gpu.new((48, 64), "f4").T),
        "C's matrices lie 0 elements apart: they overlap": lambda: lib.gemm(
            gpu.new((2, 8, 8), "f2"), gpu.new((8, 8), "f2"),
            C=driver.Array(gpu, flat.data.ptr, (2, 8, 8), "f2", 0, (0, 16, 2))),
        "there is no C to add": lambda: lib.gemm(A, B, beta=1.0),
        "C is (64, 8): it must be (64, 48)": lambda: lib.gemm(A, B, C=gpu.new((64, 8), "f4")),
        "C can't be float64": lambda: lib.gemm(A, B, C=gpu.new((64, 48), "f8")),
        "past the end of its memory": lambda: lib.gemm(A, B, C=too_far),
        "C overlaps A": lambda: lib.gemm(
            driver.Array(gpu, flat.data.ptr, (32, 32), "f2"), gpu.new((32, 32), "f2"),
            C=driver.Array(gpu, flat.data.ptr, (32, 32), "f2", 1024)),
        "pass an array on the GPU": lambda: lib.gemm(np.ones((64, 32), "f2"), B),
        "must lie on one GPU": lambda: lib.gemm(A, elsewhere),
        "view past the end of its": lambda: lib.gemm(
            driver.Array(gpu, flat.data.ptr, (64, 64), "f2", 4096), gpu.new((64, 8), "f2"),
            trials=4),
        "trials is 0": lambda: lib.gemm(A, B, C=C, trials=0),
        "the stream is a str": lambda: lib.gemm(A, B, C=C, stream="mine"),
    })
    assert not gpu.launched


def test_the_fastest_of_the_rule_s_first_few_is_remembered(gpu, tmp_path, monkeypatch):
    """Another process finds it on disk; a captured stream takes what is known and times nothing."""
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    problem = HOPPER[0]
    A, B, C, reference = driver.operands(gpu, problem, 1)
    C.numpy()[...] = 5
    times = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(timing, "seconds", lambda launch: (launch(1), next(times))[1])
    gpu.captured = True
    with pytest.raises(ValueError, match="call once before the capture, or pass trials=1"):
        lib.gemm(A, B, C=C, trials=3)
    gpu.captured = False
    assert "the fastest of 3 that were tried" in products.chosen(A, B, C, trials=3)
    assert (C.numpy() == 5).all()  # a trial writes elsewhere
    kernel, variant, _ = plans.version([problem])
    second = cost.ranked(kernel, variant, problem)[1].name
    for captured in (False, True):  # as in processes that come later
        plans.forget()
        gpu.captured = captured
        assert products.chosen(A, B, C, trials=3).endswith(f"({second}: the fastest of 3 that were "
                                                           "tried)")
    lib.gemm(A, B, C=C, trials=3)
    assert problem.judge(C.numpy(), reference).ok


# -- on a GPU --------------------------------------------------------------------------------------


def operands(problem, seed=0):
    """A, B as `gemm` takes it, and C."""
    A, B, C = problem.inputs(seed, device.cupy())
    return (A if problem.a_layout == "row" else A.swapaxes(-1, -2),
            B if problem.b_layout == "row" else B.swapaxes(-1, -2), C)


@pytest.mark.gpu
@pytest.mark.parametrize("problem", LAID, ids=str)
def test_right_in_every_layout_on_a_gpu(problem):
    if problem.dtype != "float32" and not device.arch().startswith("sm_90"):
        pytest.skip("before Hopper 16 bits are taken by rows without gaps")
    for seed in (1, 2):
        A, B, C = problem.inputs(seed, device.cupy())
        reference = problem.reference(A, B, C)
        A, B, C = operands(problem, seed)
        assert problem.judge(lib.gemm(A, B, problem.alpha, problem.beta, C), reference).ok


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("types", TYPES, ids=str)
def test_right_with_and_without_c(types, shape):
    dtype, out, layout = types
    for alpha, beta in ((1.0, 0.0), (0.5, -2.0)):
        problem = Problem(*shape, alpha, beta, dtype=dtype, out=out, b_layout=layout)
        for seed in (1, 2):  # other arrays, and the same plan
            A, B, C = operands(problem, seed)
            reference = problem.reference(A, B if layout == "row" else B.T, C)
            found = lib.gemm(A, B, alpha, beta, C)
            assert found is C
            verdict = problem.judge(C, reference)
            assert verdict.ok, verdict
    if beta == 0 and out == products.OUT[dtype]:
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
def test_a_graph_of_cupy_s_has_memory_of_its_own():
    cp = device.cupy()
    problem = Problem(64, 64, 8192)  # cut along K: its launches count arrivals
    A, B, C = operands(problem)
    reference = problem.reference(A, B, C)
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.runtime.deviceSynchronize()
    with stream:
        stream.begin_capture()
        lib.gemm(A, B, C=C)
        graph = stream.end_capture()
    for _ in range(3):
        C[...] = cp.nan
        cp.cuda.runtime.deviceSynchronize()
        graph.launch(stream)
        stream.synchronize()
        assert problem.judge(C, reference).ok


@pytest.mark.gpu
def test_a_warm_call_costs_the_host_little():
    cp = device.cupy()
    A, B, C = operands(Problem(512, 512, 512, dtype="float16"))
    lib.gemm(A, B, C=C)
    assert products.chosen(A, B, C).startswith(("hopper, ", "16_cp_async", "15_turing"))
    best = min(_seconds(A, B, C) for _ in range(5))
    cp.cuda.runtime.deviceSynchronize()
    print(f"host: {best * 1e6:.1f} µs")
    assert best < 30e-6


@pytest.mark.gpu
@pytest.mark.parametrize("types", TYPES[1:], ids=str)
def test_trials_leave_c_alone_and_keep_what_was_fastest(types, monkeypatch, tmp_path):
    dtype, out, layout = types
    problem = Problem(264, 520, 304, 0.5, -2.0, dtype=dtype, out=out, b_layout=layout)
    kernel, variant, _ = plans.version([problem])
    if not variant.by_rule:
        pytest.skip(f"{kernel.stem} has no rule")
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    for seed in (1, 2):
        A, B, C = operands(problem, seed)
        reference = problem.reference(A, B if layout == "row" else B.T, C)
        lib.gemm(A, B, 0.5, -2.0, C, trials=4)
        assert problem.judge(C, reference).ok  # beta's C was still there
    said = products.chosen(A, B, C, trials=4)
    assert "the fastest of 4 that were tried" in said
    assert any(one.name in said for one in cost.ranked(kernel, variant, problem)[:4])


def _seconds(A, B, C, calls=200):
    device.cupy().cuda.runtime.deviceSynchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        lib.gemm(A, B, C=C)
    return (time.perf_counter() - begun) / calls


@pytest.mark.parametrize("problem, name", [
    (Problem(100, 200, 300), "any_shape"), (Problem(512, 512, 512), "tuned"),
    (Problem(100, 200, 300, b_layout="column"), "any_layout"),
    (Problem(100, 200, 300, batch=2), "any_layout"),
])
def test_fp32_goes_by_its_rule_where_that_was_timed(problem, name, monkeypatch):
    monkeypatch.setattr(device, "runs", lambda *_: True)
    assert plans.version([problem])[1].name == name
