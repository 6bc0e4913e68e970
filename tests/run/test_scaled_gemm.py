"""`lib.gemm` with scales: right as it will be called on a GPU, played here, or refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import lib
from lib.dispatch.parts import suited
from lib.problem import with_scales
from lib.problem.scales import SCALES
from lib.run import device, plans, prepared
from lib.run import gemm as products
from tests import driver, played


@pytest.fixture(autouse=True)
def forgotten():
    """Each test plans anew."""
    plans.forget()
    yield
    plans.forget()
    plans._loaded.clear()


@pytest.fixture
def gpu(monkeypatch):
    return driver.play(played.H100, monkeypatch.setattr)


def operands(gpu, problem, seed=0):
    """Matrices and scales in the played GPU's memory, as `gemm` takes them, and the answer."""
    given = problem.inputs(seed)
    A, B = (gpu.put(x.view(np.uint8)) for x in (given.A, given.B))
    C, of_a, of_b = (gpu.put(x) for x in given[2:])
    return A, B.T, C, of_a, of_b, problem.reference(*given)


@pytest.mark.parametrize("out", ["bfloat16", "float32"])
@pytest.mark.parametrize("scaling", SCALES)
def test_scales_say_by_their_shapes_what_shares_them(gpu, scaling, out):
    problem = with_scales(37, 200, 272, 0.5, -2.0, out=out, scaling=scaling)
    A, B, C, of_a, of_b, reference = operands(gpu, problem)
    assert lib.gemm(A, B, 0.5, -2.0, C, scale_a=of_a, scale_b=of_b) is C
    assert problem.judge(C.numpy(), reference).ok
    assert gpu.launched[-1][1] == driver.CURRENT


def test_one_plan_serves_all_addresses_and_scalars(gpu):
    for number, (alpha, beta) in enumerate([(1.0, 0.0), (0.5, -2.0), (0.5, 0.0)]):
        problem = with_scales(70, 136, 400, alpha, beta)
        A, B, C, of_a, of_b, reference = operands(gpu, problem, number)
        lib.gemm(A, B, alpha, beta, C, 21, scale_a=of_a, scale_b=of_b)
        assert problem.judge(C.numpy(), reference).ok
        assert gpu.launched[-1][1] == 21
    assert len(plans.PLANS) == 1
    found = lib.gemm(A, B, 0.5, scale_a=of_a, scale_b=of_b)  # a C of its own, in bfloat16
    assert found.dtype.name == "bfloat16" and problem.judge(found.numpy(), reference).ok


def test_scales_of_any_strides(gpu):
    problem = with_scales(33, 136, 400)
    A, B, C, of_a, of_b, reference = operands(gpu, problem)
    across = gpu.put(np.ascontiguousarray(of_a.numpy().T)).T
    assert across.strides == (4, 33 * 4)
    lib.gemm(A, B, C=C, scale_a=across, scale_b=of_b)
    assert problem.judge(C.numpy(), reference).ok


def test_the_emulator_takes_strided_scales_from_their_first_to_their_last():
    problem = with_scales(33, 136, 400)
    *matrices, of_a, of_b = problem.inputs(0)
    wide = np.zeros((of_a.shape[0] + 1, of_a.shape[1] + 3), np.float32)[:-1, :-3]
    *steps, there, tight = prepared.scales(problem, (*matrices, wide, of_b))
    assert steps[:2] == [wide.strides[0] // 4, 1] and tight is of_b
    assert there.ctypes.data == wide.ctypes.data
    assert there.ctypes.data + there.nbytes == wide[-1:, -1:].ctypes.data + 4


@pytest.mark.parametrize("shape", [(37, 131, 272), (300, 264, 400), (128, 4096, 256)])
def test_it_launches_what_the_rule_says_in_a_form_that_c_s_rows_allow(gpu, shape):
    problem = with_scales(*shape, 0.5, -2.0)
    A, B, C, of_a, of_b, reference = operands(gpu, problem)
    lib.gemm(A, B, 0.5, -2.0, C, scale_a=of_a, scale_b=of_b)
    assert problem.judge(C.numpy(), reference).ok
    chosen = suited(problem)
    staged = 0 if problem.N % 8 else chosen.schedule.staged  # rows of C are 16 bytes each, or not
    (plan,) = plans.PLANS
    assert (plan.variant.name, plan.variant.schedule.staged) == (chosen.name, staged)


def refused(gpu, words, change, problem=None):
    names = ("A", "B", "C", "scale_a", "scale_b")
    given = dict(zip(names, operands(gpu, problem or with_scales(32, 64, 256)), strict=False))
    with pytest.raises(ValueError, match=words) as said:
        lib.gemm(**(given | change(given, gpu)))
    assert "\n" not in str(said.value)
    assert not gpu.launched


@pytest.mark.parametrize("words, change", [
    ("pass both", lambda g, gpu: {"scale_b": None}),
    (r"scale_a is \(32, 1\).* must be \(1, 1\) and \(1, 1\), or .*\(32, 2\) and \(2, 1\)",
     lambda g, gpu: {"scale_a": gpu.new((32, 1), "f4")}),
    ("scale_a holds float64: scales must be float32",
     lambda g, gpu: {"scale_a": gpu.new((32, 2), "f8")}),
    ("A holds float16: with scales it must be float8_e4m3fn",
     lambda g, gpu: {"A": gpu.new((32, 256), "f2")}),
    ("B must lie by columns", lambda g, gpu: {"B": gpu.new((256, 64), "u1")}),
    ("A must be C-contiguous", lambda g, gpu: {"A": gpu.new((256, 32), "u1").T}),
    ("must be M×K and K×N", lambda g, gpu: {"A": gpu.new((32, 128), "u1")}),
    ("C must be a C-contiguous array of 32×64", lambda g, gpu: {"C": gpu.new((32, 65), "f4")}),
    ("C can't be float16", lambda g, gpu: {"C": gpu.new((32, 64), "f2")}),
    ("beta is 1 and there is no C", lambda g, gpu: {"C": None, "beta": 1.0}),
    ("C overlaps A", lambda g, gpu: {"C": driver.Array(gpu, g["A"].data.ptr, (32, 64), "f4")}),
])
def test_what_doesn_t_fit_is_refused_in_one_line(gpu, words, change):
    refused(gpu, words, change)


def test_shapes_that_tma_can_t_step_over_are_refused(gpu):
    refused(gpu, "K = 40 must be a multiple of 16", lambda g, gpu: {}, with_scales(32, 64, 40))


def test_a_view_past_its_memory_is_refused(gpu):
    short = lambda g, gpu: {"scale_a": driver.Array(  # noqa: E731
        gpu, gpu.new((4,), "f4").data.ptr, (32, 2), "f4")}
    refused(gpu, "scale_a takes 256 bytes and is a view past", short)


def test_what_can_t_be_traced_yet_is_told(gpu, monkeypatch):
    monkeypatch.setattr(products, "operator", SimpleNamespace(traced=lambda: True))
    refused(gpu, "can't be traced yet: call lib.gemm outside", lambda g, gpu: {})


def test_a_gpu_without_the_instructions_is_told(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    A, B, C, of_a, of_b, _ = operands(gpu, with_scales(32, 64, 256))
    with pytest.raises(device.NoGpu, match="doesn't run sm_90a code"):
        lib.gemm(A, B, C=C, scale_a=of_a, scale_b=of_b)


@pytest.mark.gpu
@pytest.mark.parametrize("scaling", SCALES)
def test_cupy_s_bytes_on_a_gpu(scaling):
    cp = device.cupy()
    problem = with_scales(1000, 1032, 2064, scaling=scaling)
    given = problem.inputs()
    A, B = (cp.asarray(x.view(np.uint8)) for x in (given.A, given.B))
    C = lib.gemm(A, B.T, scale_a=cp.asarray(given.scale_a), scale_b=cp.asarray(given.scale_b))
    assert problem.judge(cp.asnumpy(C), problem.reference(*given)).ok


@pytest.mark.gpu
@pytest.mark.parametrize("scaling", SCALES)
def test_pytorch_s_tensors_on_a_gpu(scaling):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    problem = with_scales(1000, 1032, 2064, scaling=scaling)
    given = problem.inputs()
    A, B = (torch.tensor(x.view(np.uint8)).cuda().view(torch.float8_e4m3fn)
            for x in (given.A, given.B))
    of_a, of_b = (torch.tensor(x).cuda() for x in given[3:])
    C = lib.gemm(A, B.T, scale_a=of_a, scale_b=of_b)
    assert C.dtype == torch.bfloat16
    found = C.float().cpu().numpy().astype(given.C.dtype)
    assert problem.judge(found, problem.reference(*given)).ok
