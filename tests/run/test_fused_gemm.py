"""`lib.gemm` with an epilogue: fused or apart, right on every stream and address, or refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import lib
from lib.dispatch.parts import choose
from lib.kernels.fused import EPILOGUE
from lib.problem import Epilogue, with_epilogue
from lib.problem.epilogue import ACTIVATIONS
from lib.run import device, parts, plans
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
    """What `gemm` takes, in the played GPU's memory, and the answer."""
    given = problem.inputs(seed)
    there = [None if one is None else gpu.put(one) for one in given]
    if problem.b_layout == "column":
        there[1] = there[1].T
    return dict(zip(("A", "B", "C", "bias", "residual", "amax"), there, strict=True)), (
        problem.reference(*given))


def called(problem, arrays, stream=None):
    epilogue = problem.epilogue.activation
    return lib.gemm(alpha=problem.alpha, beta=problem.beta, stream=stream, epilogue=epilogue,
                    **arrays)


def right(problem, arrays, answer) -> bool:
    amax = arrays["amax"]
    return problem.judge(arrays["C"].numpy(), answer,
                         None, None, None if amax is None else amax.numpy()).ok


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("parts", [(False, False, False), (True, True, True)], ids=["bare", "all"])
def test_every_epilogue_is_fused(gpu, activation, parts):
    problem = with_epilogue(37, 144, 72, 0.5, epilogue=Epilogue(activation, *parts))
    arrays, answer = operands(gpu, problem)
    assert called(problem, arrays) is arrays["C"]
    assert right(problem, arrays, answer)
    assert len(gpu.launched) == 1 and gpu.launched[0][1] == driver.CURRENT
    assert problem.epilogue.activation.upper().split("_")[0] in EPILOGUE.expression(
        choose(problem).variant)


@pytest.mark.parametrize("shape", [(37, 145, 72), (33, 144, 75), (1, 1, 1), (5, 8, 0)], ids=str)
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_rows_that_tma_can_t_step_over_have_their_epilogue_apart(gpu, shape, out):
    epilogue = Epilogue("gelu", True, True, True)
    problem = with_epilogue(*shape, 0.5, -2.0, out=out, epilogue=epilogue)
    arrays, answer = operands(gpu, problem)
    called(problem, arrays)
    assert right(problem, arrays, answer)
    said = parts.chosen("gelu", **arrays)
    assert said.startswith("the epilogue apart") == (shape != (5, 8, 0)), said
    if shape != (5, 8, 0):
        assert len(gpu.launched) > 1 and "apart" in gpu.launched[-1][0]


def test_columns_of_a_and_gaps_have_it_apart(gpu):
    problem = with_epilogue(40, 48, 64, epilogue=Epilogue("silu", True))
    arrays, answer = operands(gpu, problem)
    by_columns = gpu.put(np.ascontiguousarray(arrays["A"].numpy().T)).T
    called(problem, arrays | {"A": by_columns})
    assert right(problem, arrays, answer)
    assert "A lies by columns" in parts.chosen("silu", A=by_columns, B=arrays["B"])


def test_memory_between_two_launches_is_the_stream_s_or_a_graph_s_own(gpu, monkeypatch):
    problem = with_epilogue(33, 145, 75, epilogue=Epilogue("silu", True))
    for captured in (False, True):
        gpu.captured = captured
        arrays, answer = operands(gpu, problem)
        called(problem, arrays)
        assert right(problem, arrays, answer)
    (rooms,) = plans._rooms.values()
    assert rooms.nbytes[0] >= 4 * 33 * 145
    assert gpu.freed == gpu.graphs and len(gpu.graphs) == 2
    gpu.captured = False
    monkeypatch.setattr(plans, "MAX_HELD", 4 * 33 * 145 - 1)  # so much is not held
    plans.forget()
    called(problem, arrays)
    assert right(problem, arrays, answer) and not plans._rooms and len(gpu.freed) == 4


def test_a_wish_for_a_gradient_names_the_operator(gpu, monkeypatch):
    def wants(*given):
        raise products.WantsGradient("A requires a gradient")

    monkeypatch.setattr(parts, "compute", wants)
    refused(gpu, "has no gradient: call lib.torch.linear", lambda g, gpu: {})


def test_an_operand_off_a_boundary_has_it_apart(gpu):
    problem = with_epilogue(40, 48, 64, epilogue=Epilogue("relu", True))
    arrays, answer = operands(gpu, problem)
    room = gpu.new((49,), arrays["bias"].dtype)
    shifted = driver.Array(gpu, room.data.ptr, (48,), room.dtype, 2)
    shifted.numpy()[...] = arrays["bias"].numpy()
    called(problem, arrays | {"bias": shifted})
    assert right(problem, arrays, answer) and "apart" in gpu.launched[-1][0]


def test_one_plan_serves_all_addresses_and_scalars(gpu):
    for number, (alpha, beta) in enumerate([(1.0, 0.5), (0.5, -2.0)]):
        problem = with_epilogue(70, 136, 200, alpha, beta, epilogue=Epilogue("gelu", True, True))
        arrays, answer = operands(gpu, problem, number)
        called(problem, arrays, 21)
        assert right(problem, arrays, answer)
        assert gpu.launched[-1][1] == 21
    assert len(plans.PLANS) == 1


def test_an_amax_grows_from_call_to_call(gpu):
    problem = with_epilogue(40, 48, 64, epilogue=Epilogue(amax=True))
    arrays, _ = operands(gpu, problem)
    seen = []
    for scale in (1.0, 4.0, 2.0):
        lib.gemm(arrays["A"], arrays["B"], alpha=scale, C=arrays["C"], amax=arrays["amax"])
        seen.append(float(arrays["amax"].numpy()[0]))
    assert seen[1] == 4 * seen[0] and seen[2] == seen[1]


@pytest.mark.parametrize("dtype, bias, wanted", [
    ("float16", None, "float16"), ("bfloat16", None, "bfloat16"), ("bfloat16", "f4", "float32"),
    ("bfloat16", "f2", "float16"),
])
def test_a_new_c_has_the_bias_s_type(gpu, dtype, bias, wanted):
    problem = with_epilogue(16, 32, 64, dtype=dtype, out=dtype)
    arrays, _ = operands(gpu, problem)
    made = lib.gemm(arrays["A"], arrays["B"], epilogue="relu",
                    bias=None if bias is None else gpu.new((32,), bias, 0))
    assert made.dtype.name == wanted and made.shape == (16, 32)
    assert (made.numpy().astype("f4") >= 0).all()


def test_c_without_elements_launches_nothing(gpu):
    A, B = gpu.new((0, 64), "f2"), gpu.new((64, 32), "f2")
    assert lib.gemm(A, B, epilogue="swiglu").shape == (0, 16)
    assert not gpu.launched


def refused(gpu, words, change):
    problem = with_epilogue(32, 64, 128, epilogue=Epilogue("gelu", True, True, True))
    given, _ = operands(gpu, problem)
    with pytest.raises(ValueError, match=words) as said:
        lib.gemm(**({"epilogue": "gelu"} | given | change(given, gpu)))
    assert "\n" not in str(said.value)
    assert not gpu.launched


@pytest.mark.parametrize("words, change", [
    ("activation 'tanh' is unknown; use none, relu", lambda g, gpu: {"epilogue": "tanh"}),
    (r"bias must be a C-contiguous array of 64, not \(63,\)",
     lambda g, gpu: {"bias": gpu.new((63,), g["C"].dtype)}),
    ("residual must be a C-contiguous array of 32×64",
     lambda g, gpu: {"residual": gpu.new((64, 32), g["C"].dtype).T}),
    ("bias holds float32: it must be bfloat16", lambda g, gpu: {"bias": gpu.new((64,), "f4")}),
    ("amax holds float64: it must be float32", lambda g, gpu: {"amax": gpu.new((1,), "f8")}),
    ("amax must be a C-contiguous array of 1", lambda g, gpu: {"amax": gpu.new((2,), "f4")}),
    ("C must be a C-contiguous array of 32×32", lambda g, gpu: {"epilogue": "swiglu"}),
    ("beta must be 0; add a residual",
     lambda g, gpu: {"epilogue": "swiglu", "beta": 1.0, "C": gpu.new((32, 32), g["C"].dtype)}),
    ("A and B can't be float32", lambda g, gpu: {
        "A": gpu.new((32, 128), "f4"), "B": gpu.new((128, 64), "f4")}),
    ("both must be the same", lambda g, gpu: {"A": gpu.new((32, 128), "f2")}),
    ("must be M×K and K×N, one product", lambda g, gpu: {"A": gpu.new((2, 32, 128), "f2")}),
    ("beta is 1 and there is no C", lambda g, gpu: {"C": None, "beta": 1.0}),
    ("C overlaps residual", lambda g, gpu: {"residual": g["C"]}),
    ("C overlaps A", lambda g, gpu: {
        "C": driver.Array(gpu, g["A"].data.ptr, (32, 64), g["C"].dtype)}),
    ("bias takes 128 bytes and is a view past", lambda g, gpu: {
        "bias": driver.Array(gpu, gpu.new((4,), "f2").data.ptr, (64,), g["C"].dtype)}),
    ("takes no epilogue", lambda g, gpu: {"scale_a": g["bias"]}),
])
def test_what_doesn_t_fit_is_refused_in_one_line(gpu, words, change):
    refused(gpu, words, change)


def test_what_can_t_be_traced_is_told(gpu, monkeypatch):
    monkeypatch.setattr(products, "operator", SimpleNamespace(traced=lambda: True))
    refused(gpu, "can't be traced: call lib.torch.linear", lambda g, gpu: {})


def test_a_gpu_without_the_instructions_is_told(monkeypatch):
    gpu = driver.play(played.A100, monkeypatch.setattr)
    arrays, _ = operands(gpu, with_epilogue(32, 64, 128))
    with pytest.raises(device.NoGpu, match="doesn't run sm_90a code"):
        lib.gemm(arrays["A"], arrays["B"], epilogue="relu")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1000, 1040, 2064), (64, 4096, 4096), (1, 4096, 4096),
                                   (37, 145, 75)], ids=str)
@pytest.mark.parametrize("activation", ["none", "gelu", "gelu_erf", "silu", "relu"])
def test_cupy_s_arrays_on_a_gpu(shape, activation):
    cp = device.cupy()
    problem = with_epilogue(*shape, 0.5, epilogue=Epilogue(activation, True, True, True))
    given = problem.inputs()
    there = [cp.asarray(one) for one in given]
    lib.gemm(there[0], there[1].T, 0.5, C=there[2], epilogue=activation, bias=there[3],
             residual=there[4], amax=there[5])
    assert problem.judge(cp.asnumpy(there[2]), problem.reference(*given), None, None, there[5]).ok
