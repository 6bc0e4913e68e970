"""`lib.gemm` with an epilogue or scales: right on every stream and address, or refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import lib
from lib.dispatch.parts import choose, suited
from lib.kernels.fused import EPILOGUE
from lib.problem import Epilogue, with_epilogue, with_scales
from lib.problem.epilogue import ACTIVATIONS
from lib.problem.scales import SCALES
from lib.run import device, parts, plans, prepared
from lib.run import gemm as products
from tests import driver, played
from tests.tables import cases

EVERY = Epilogue("gelu", True, True, True)


def operands(gpu, problem, seed=0):
    """What `gemm` takes, in the played GPU's memory, and the answer."""
    given = problem.inputs(seed)
    there = {name: one if one is None else gpu.put(
        one.view(np.uint8) if problem.scaling and name in "AB" else one)
        for name, one in given._asdict().items()}
    if problem.b_layout == "column":
        there["B"] = there["B"].T
    return there, problem.reference(*given)


def called(problem, arrays, stream=None):
    epilogue = problem.epilogue and problem.epilogue.activation
    return lib.gemm(alpha=problem.alpha, beta=problem.beta, stream=stream, epilogue=epilogue,
                    **arrays)


def right(problem, arrays, answer) -> bool:
    amax = arrays.get("amax")
    more = (None, None, None if amax is None else amax.numpy()) if problem.epilogue else ()
    return problem.judge(arrays["C"].numpy(), answer, *more).ok


@pytest.mark.parametrize("problem", [
    *(with_epilogue(37, 144, 72, 0.5, epilogue=Epilogue(activation, *those))
      for activation in ACTIVATIONS for those in ((False,) * 3, (True,) * 3)),
    *(with_scales(37, 200, 272, 0.5, -2.0, out=out, scaling=scaling)
      for out in ("bfloat16", "float32") for scaling in SCALES)], ids=str)
def test_every_epilogue_and_all_scales_are_one_launch(gpu, problem):
    arrays, answer = operands(gpu, problem)
    assert called(problem, arrays) is arrays["C"] and right(problem, arrays, answer)
    assert len(gpu.launched) == 1 and gpu.launched[0][1] == driver.CURRENT
    if problem.epilogue:
        assert problem.epilogue.activation.upper().split("_")[0] in EPILOGUE.expression(
            choose(problem).variant)


@pytest.mark.parametrize("shape", [(37, 145, 72), (33, 144, 75), (1, 1, 1), (5, 8, 0)], ids=str)
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_rows_that_tma_can_t_step_over_have_their_epilogue_apart(gpu, shape, out):
    problem = with_epilogue(*shape, 0.5, -2.0, out=out, epilogue=EVERY)
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


def test_an_operand_off_a_boundary_has_it_apart(gpu):
    problem = with_epilogue(40, 48, 64, epilogue=Epilogue("relu", True))
    arrays, answer = operands(gpu, problem)
    room = gpu.new((49,), arrays["bias"].dtype)
    shifted = driver.Array(gpu, room.data.ptr, (48,), room.dtype, 2)
    shifted.numpy()[...] = arrays["bias"].numpy()
    called(problem, arrays | {"bias": shifted})
    assert right(problem, arrays, answer) and "apart" in gpu.launched[-1][0]


@pytest.mark.parametrize("made, more", [
    (with_epilogue, {"epilogue": Epilogue("gelu", True, True)}), (with_scales, {})])
def test_one_plan_serves_all_addresses_and_scalars(gpu, made, more):
    for number, (alpha, beta) in enumerate([(1.0, 0.5), (0.5, -2.0), (0.5, 0.0)]):
        problem = made(70, 136, 400, alpha, beta, **more)
        arrays, answer = operands(gpu, problem, number)
        called(problem, arrays, 21)
        assert right(problem, arrays, answer)
        assert gpu.launched[-1][1] == 21
    # With an epilogue what adds C is another kernel.
    assert len(plans.PLANS) == (2 if problem.epilogue else 1)
    found = called(problem, arrays | {"C": None})  # a C of its own, in bfloat16
    assert found.dtype.name == "bfloat16" and right(problem, arrays | {"C": found}, answer)


def test_an_amax_grows_from_call_to_call(gpu):
    problem = with_epilogue(40, 48, 64, epilogue=Epilogue(amax=True))
    arrays, _ = operands(gpu, problem)
    seen = []
    for scale in (1.0, 4.0, 2.0):
        lib.gemm(arrays["A"], arrays["B"], alpha=scale, C=arrays["C"], amax=arrays["amax"])
        seen.append(float(arrays["amax"].numpy()[0]))
    assert seen[1] == 4 * seen[0] and seen[2] == seen[1]


@cases("""
dtype    bias wanted
float16  None float16
bfloat16 None bfloat16
bfloat16 f4   float32
bfloat16 f2   float16
""")
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


def test_scales_of_any_strides(gpu):
    problem = with_scales(33, 136, 400)
    arrays, answer = operands(gpu, problem)
    across = gpu.put(np.ascontiguousarray(arrays["scale_a"].numpy().T)).T
    assert across.strides == (4, 33 * 4)
    called(problem, arrays | {"scale_a": across})
    assert right(problem, arrays, answer)


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
    arrays, answer = operands(gpu, problem)
    called(problem, arrays)
    assert right(problem, arrays, answer)
    chosen = suited(problem)
    staged = 0 if problem.N % 8 else chosen.schedule.staged  # rows of C are 16 bytes each, or not
    (plan,) = plans.PLANS
    assert (plan.variant.name, plan.variant.schedule.staged) == (chosen.name, staged)


FUSED = with_epilogue(32, 64, 128, epilogue=EVERY)
SCALED = with_scales(32, 64, 256)


def refused(gpu, problem, words, change):
    given, _ = operands(gpu, problem)
    named = {"epilogue": "gelu"} if problem.epilogue else {}
    with pytest.raises(ValueError, match=words) as said:
        lib.gemm(**(named | given | change(given, gpu)))
    assert "\n" not in str(said.value)
    assert not gpu.launched


@cases(r"""
problem | name | shape | kind | words
fused | bias | (63,) | C's | bias must be a C-contiguous array of 64, not \(63,\)
fused | residual | (64, 32) | C's, T | residual must be a C-contiguous array of 32×64
fused | bias | (64,) | f4 | bias holds float32: it must be bfloat16
fused | amax | (1,) | f8 | amax holds float64: it must be float32
fused | amax | (2,) | f4 | amax must be a C-contiguous array of 1
fused | A | (32, 128) | f2 | both must be the same
fused | A | (2, 32, 128) | f2 | must be M×K and K×N, one product
scaled | scale_a | (32, 1) | f4 | scale_a is \(32, 1\).* must be \(1, 1\) and .*, or .*\(32, 2\)
scaled | scale_a | (32, 2) | f8 | scale_a holds float64: scales must be float32
scaled | A | (32, 256) | f2 | A holds float16: with scales it must be float8_e4m3fn
scaled | B | (256, 64) | u1 | B must lie by columns
scaled | A | (256, 32) | u1, T | A must be C-contiguous
scaled | A | (32, 128) | u1 | must be M×K and K×N
scaled | C | (32, 65) | f4 | C must be a C-contiguous array of 32×64
scaled | C | (32, 64) | f2 | C can't be float16
""")
def test_an_array_that_doesn_t_fit_is_refused_in_one_line(gpu, problem, name, shape, kind, words):
    dtype, _, turned = kind.partition(", ")

    def change(given, gpu):
        made = gpu.new(shape, given["C"].dtype if dtype == "C's" else dtype)
        return {name: made.T if turned else made}

    refused(gpu, {"fused": FUSED, "scaled": SCALED}[problem], words, change)


@pytest.mark.parametrize("problem, words, change", [*((FUSED, *one) for one in [
    ("activation 'tanh' is unknown; use none, relu", lambda g, gpu: {"epilogue": "tanh"}),
    ("C must be a C-contiguous array of 32×32", lambda g, gpu: {"epilogue": "swiglu"}),
    ("beta must be 0; add a residual",
     lambda g, gpu: {"epilogue": "swiglu", "beta": 1.0, "C": gpu.new((32, 32), g["C"].dtype)}),
    ("A and B can't be float32", lambda g, gpu: {
        "A": gpu.new((32, 128), "f4"), "B": gpu.new((128, 64), "f4")}),
    ("C overlaps residual", lambda g, gpu: {"residual": g["C"]}),
    ("bias takes 128 bytes and is a view past", lambda g, gpu: {
        "bias": driver.Array(gpu, gpu.new((4,), "f2").data.ptr, (64,), g["C"].dtype)}),
    ("takes no epilogue", lambda g, gpu: {"scale_a": g["bias"]}),
]), *((SCALED, *one) for one in [
    ("pass both", lambda g, gpu: {"scale_b": None}),
    ("scale_a takes 256 bytes and is a view past", lambda g, gpu: {
        "scale_a": driver.Array(gpu, gpu.new((4,), "f4").data.ptr, (32, 2), "f4")}),
]), *((problem, *one) for problem in (FUSED, SCALED) for one in [
    ("beta is 1 and there is no C", lambda g, gpu: {"C": None, "beta": 1.0}),
    ("C overlaps A", lambda g, gpu: {
        "C": driver.Array(gpu, g["A"].data.ptr, (32, 64), g["C"].dtype)}),
]), (with_scales(32, 64, 40), "K = 40 must be a multiple of 16", lambda g, gpu: {})])
def test_what_doesn_t_fit_is_refused_in_one_line(gpu, problem, words, change):
    refused(gpu, problem, words, change)


@pytest.mark.parametrize("problem, words", [
    (FUSED, "can't be traced: call lib.torch.linear"),
    (SCALED, "can't be traced yet: call lib.gemm outside")])
def test_what_can_t_be_traced_is_told(gpu, monkeypatch, problem, words):
    monkeypatch.setattr(products, "operator", SimpleNamespace(traced=lambda: True))
    refused(gpu, problem, words, lambda g, gpu: {})


def test_a_wish_for_a_gradient_names_the_operator(gpu, monkeypatch):
    def wants(*given):
        raise products.WantsGradient("A requires a gradient")

    monkeypatch.setattr(parts, "compute", wants)
    refused(gpu, FUSED, "has no gradient: call lib.torch.linear", lambda g, gpu: {})


@pytest.mark.parametrize("problem", [FUSED, SCALED], ids=str)
def test_a_gpu_without_the_instructions_is_told(monkeypatch, problem):
    arrays, _ = operands(driver.play(played.A100, monkeypatch.setattr), problem)
    with pytest.raises(device.NoGpu, match="doesn't run sm_90a code"):
        called(problem, arrays)


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
