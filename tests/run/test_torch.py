"""PyTorch's operator: its schema, what the compiler is told, its refusals; products on a GPU."""

import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from lib.paths import ROOT
from lib.problem import ROUNDOFF, Problem, answer, norm, yardstick
from lib.run import device
from tests.tables import cases, refused

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import lib  # noqa: E402 - what follows needs PyTorch
import lib.torch as operators  # noqa: E402
from lib.torch import operands  # noqa: E402

TYPES = ("float32", "float16", "bfloat16")
# A step that halves exactly: the product is linear in each operand, so that a difference over a
# long step is as right as one over a short one, and FP32 rounds it less.
STEP, TOLERANCE = 0.5, 1e-3


def meta(*shape, dtype=torch.float16, **options):
    """A tensor that has no memory."""
    return torch.empty(shape, dtype=dtype, device="meta", **options)


def test_the_schema_says_what_is_written():
    gemm = torch.ops.gemm_worklog.gemm.default._schema
    out = torch.ops.gemm_worklog.gemm_out.default._schema
    assert not gemm.is_mutable and not any(one.alias_info for one in gemm.returns)
    written = [one.name for one in out.arguments if one.alias_info and one.alias_info.is_write]
    assert written == ["C"] and not out.returns


@pytest.mark.parametrize("dtype, out, wanted", [
    (torch.float16, None, torch.float16), (torch.float16, torch.float32, torch.float32),
    (torch.bfloat16, None, torch.bfloat16), (torch.float32, None, torch.float32),
])
def test_the_fake_has_the_result_s_shape_and_type(dtype, out, wanted):
    A, B = meta(5, 7, dtype=dtype), meta(7, 3, dtype=dtype)
    found = operators.gemm(A, B, out_dtype=out)
    assert (found.shape, found.dtype) == ((5, 3), wanted)
    assert torch.ops.gemm_worklog.gemm(A, B, meta(5, 3, dtype=wanted), beta=1.0,
                                       out_dtype=out).shape == (5, 3)


def compiled(function, *given):
    """What a function gives under the compiler, in one graph, and its operators of ours."""
    nodes = []

    def backend(graph, examples):
        nodes.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    result = torch.compile(function, fullgraph=True, backend=backend)(*given)
    return result, [node for node in nodes if "gemm_worklog" in node]


def test_the_compiler_sees_one_node_a_call_and_no_break():
    _, nodes = compiled(lambda x, weight: lib.torch.linear(x, weight) + lib.gemm(x, weight.T),
                        meta(2, 8), meta(5, 8))
    assert len(nodes) == 2
    y, nodes = compiled(lambda *given: operators.linear(*given, "gelu"),
                        meta(2, 3, 8), meta(16, 8), meta(16))
    assert y.shape == (2, 3, 16) and nodes == ["gemm_worklog.linear.default"]
    assert operators.linear(meta(2, 8), meta(32, 8), activation="swiglu").shape == (2, 16)


def test_gradients_have_the_operands_shapes_and_types():
    A, B = meta(5, 7, requires_grad=True), meta(7, 3, requires_grad=True)
    C = meta(5, 3, dtype=torch.float32, requires_grad=True)
    operators.gemm(A, B, 2.0, 3.0, C, out_dtype=torch.float32).sum().backward()
    for one in (A, B, C):
        assert (one.grad.shape, one.grad.dtype) == (one.shape, one.dtype)


@cases("""
of_a      | of_b      | wanted
(2, 5, 7) | (2, 7, 3) | (2, 5, 3)
(5, 7)    | (2, 7, 3) | (2, 5, 3)
(2, 5, 7) | (7, 3)    | (2, 5, 3)
(0, 5, 7) | (7, 3)    | (0, 5, 3)
""")
def test_batches_have_shapes_and_gradients(of_a, of_b, wanted):
    A, B = meta(*of_a, requires_grad=True), meta(*of_b, requires_grad=True)
    found = operators.gemm(A, B)
    assert found.shape == wanted
    found.sum().backward()
    assert A.grad.shape == of_a and B.grad.shape == of_b


def test_transposes_and_slices_are_read_as_they_lie(monkeypatch):
    """Forward and both products of backward: not an element is copied where kernels take all."""
    monkeypatch.setattr(operands, "layouts", lambda *of: operands.ANY)
    x, weight, heads = torch.ones(6, 8), torch.ones(5, 8), torch.ones(6, 3, 8)
    for one in (x, x.T, weight.T, weight.mT, x[:, 2:5], x.T[:, 1:3], heads.transpose(0, 1),
                heads.permute(1, 2, 0), x[:, :1], x[:1], x.expand(4, 6, 8), x[:0]):
        assert all(found is one for found in operands.laid(one, one, torch.float32))
    for one in (x[:, ::2], x[:1].expand(6, 8), heads[:, :, ::2]):
        copied = operands.readable(one)
        assert copied is not one and copied.is_contiguous() and (copied == one).all()


def test_before_hopper_what_no_kernel_takes_is_copied_or_refused(monkeypatch):
    monkeypatch.setattr(operands, "layouts", lambda *of: ("row",))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Tesla T4")
    A, B = operands.laid(torch.ones(8, 6).T, torch.ones(5, 8).T, torch.float32)
    assert A.is_contiguous() and B.is_contiguous()
    with pytest.raises(ValueError, match="no kernel on Tesla T4 takes a batch in float16"):
        operands.laid(torch.ones(2, 4, 4).half(), torch.ones(4, 4).half(), torch.float16)


def test_what_does_not_fit_is_refused_in_one_line():
    A, B = meta(5, 7), meta(7, 3)
    host = torch.ones(4, 4)
    refused({
        "they must be M×K and K×N": lambda: operators.gemm(A, A),
        "B torch.float32: they must be the same": lambda: operators.gemm(A, B.float()),
        "it must be M×N, 5×3": lambda: operators.gemm(A, B, 1.0, 1.0, meta(3, 5)),
        "it must be batch×M×N, 2×5×3":
            lambda: operators.gemm(meta(2, 5, 7), B, 1.0, 1.0, meta(5, 3)),
        "or batches of as many": lambda: operators.gemm(meta(2, 5, 7), meta(3, 7, 4)),
        "and the result torch.float16": lambda: operators.gemm(A, B, 1.0, 1.0, meta(5, 3).float()),
        "there is no C to add": lambda: operators.gemm(A, B, beta=1.0),
        "lie on the cpu: move them to a GPU": lambda: operators.gemm(host, host),
        "move them to a GPU first": lambda: operators.gemm_out(host, host, host.clone()),
    })


# -- a layer with an epilogue ----------------------------------------------------------------------

ACTIVATIONS = {
    "none": lambda x: x, "relu": torch.relu, "gelu_erf": torch.nn.functional.gelu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "swiglu": lambda x: torch.nn.functional.silu(x[:, [*range(8)]]) * x[:, [*range(8, 16)]],
}


@pytest.fixture
def in_float64(monkeypatch):
    """The operators' kernels, played in float64 on the CPU; what was asked of the epilogue's."""
    asked = []

    def product(A, B, C, alpha, beta, out_dtype, trials):
        return alpha * (A @ B) if C is None else alpha * (A @ B) + beta * C

    def linear(x, weight, bias, residual, activation):
        operands.check_linear(x, weight, bias, residual, activation)
        asked.append((activation, bias is not None, residual is not None))
        y = x @ weight.T
        y = ACTIVATIONS[activation](y if bias is None else y + bias)
        return y if residual is None else y + residual

    monkeypatch.setattr(operators, "_FORWARD", product)
    monkeypatch.setattr(operators, "_LINEAR_FORWARD", linear)
    monkeypatch.setattr(operands, "FUSED", (torch.float64,))
    return asked


def layer(activation, seed=0, **options):
    """x, weight, bias and residual of a layer, in float64."""
    torch.manual_seed(seed)
    columns = 8 if activation == "swiglu" else 16
    return [torch.randn(*shape, dtype=torch.float64, **options)
            for shape in ((3, 5, 7), (16, 7), (16,), (3, 5, columns))]


def theirs_of(activation, x, weight, bias, residual):
    """The layer by PyTorch."""
    y = ACTIVATIONS[activation](x.flatten(0, 1) @ weight.T + bias)
    return y.reshape(residual.shape) + residual


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_layer_s_gradients_are_those_of_float64(in_float64, activation):
    """Of x, weight, bias and residual, by differences; and PyTorch's own."""
    given = layer(activation, requires_grad=True)

    def ours(x, weight, bias, residual):
        return operators.linear(x, weight, bias, activation, residual)

    assert torch.autograd.gradcheck(ours, given)
    ours(*given).sum().backward()
    other = layer(activation, requires_grad=True)
    theirs_of(activation, *other).sum().backward()
    for mine, theirs in zip(given, other, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("fused", [True, False])
def test_without_a_gradient_all_of_a_layer_is_one_launch(
        in_float64, monkeypatch, activation, fused):
    """And what 25 can't take is PyTorch's own."""
    if not fused:
        monkeypatch.setattr(operands, "FUSED", ())
    x, weight, bias, residual = given = layer(activation)
    found = operators.linear(x, weight, bias, activation, residual)
    torch.testing.assert_close(found, theirs_of(activation, *given))
    with torch.no_grad():
        operators.linear(x.requires_grad_(), weight, None, activation)
    assert in_float64 == fused * [(activation, True, True), (activation, False, False)]


@pytest.mark.parametrize("activation, wanted", [
    ("none", [("none", True, True)]), ("gelu", [("none", True, False)]),
])
def test_what_a_gradient_needs_is_kept(in_float64, activation, wanted):
    """With an activation the product and its bias are; without one all of it is fused."""
    operators.linear(*layer(activation, requires_grad=True)[:3], activation,
                     layer(activation)[3])
    assert in_float64 == wanted


@cases("""
M N  K
5 16 8
0 16 8
5 16 0
5 0  8
""")
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_what_the_kernels_are_given(monkeypatch, M, N, K, activation):
    """Operands as they lie, where they can be read so; without elements nothing is launched."""
    given = []

    def fused(arrays, alpha, beta, stream, epilogue):
        A, B, C, bias, residual = arrays.values()
        given.append((A, B))
        assert bias.is_contiguous() and residual.is_contiguous() and C.shape == residual.shape
        y = ACTIVATIONS[epilogue](A @ B + bias) + residual
        return C.copy_(y)

    monkeypatch.setattr(operators.parts, "compute", fused)
    x, weight = torch.randn(M, 2 * K)[:, :K], torch.randn(N, K)
    bias = torch.randn(2 * N)[::2]
    residual = torch.randn(N // (1 + (activation == "swiglu")), M).T
    found = operators._linear_on_gpu(x, weight, bias, residual, activation)
    assert found.shape == residual.shape
    if M and N:
        torch.testing.assert_close(found, ACTIVATIONS[activation](x @ weight.T + bias) + residual)
    assert len(given) == bool(M and N and K)
    if given:
        assert given[0][0] is x and given[0][1].data_ptr() == weight.data_ptr()


def test_traced_with_gradients_it_has_them():
    given = [meta(*shape, requires_grad=True) for shape in ((4, 8), (16, 8), (16,))]
    compiled(lambda *given: operators.linear(*given, "silu"), *given)[0].sum().backward()
    for one in given:
        assert one.grad.shape == one.shape


def test_a_layer_that_does_not_fit_is_refused_in_one_line():
    x, weight = meta(5, 8), meta(16, 8)
    host = torch.ones(16, 16, dtype=torch.float16)
    refused({
        "activation 'tanh' is unknown": lambda: operators.linear(x, weight, None, "tanh"),
        "they must be …×K and N×K": lambda: operators.linear(x, meta(16, 7)),
        "bias is (15,): it must be (16,)": lambda: operators.linear(x, weight, meta(15)),
        "bias holds torch.float32": lambda: operators.linear(x, weight, meta(16).float()),
        "weight holds torch.bfloat16": lambda: operators.linear(x, weight.bfloat16()),
        "residual is (5, 8): it must be (5, 16)":
            lambda: operators.linear(x, weight, residual=meta(5, 8)),
        "N = 24 must be a multiple of 16": lambda: operators.linear(x, meta(24, 8), None, "swiglu"),
        "lie on the cpu: move them to a GPU": lambda: operators.linear(host, host),
        "has no gradient of an activation":
            lambda: torch.ops.gemm_worklog.linear(x.requires_grad_(), weight, None, None, "relu"),
    })


def heads(dtype, where):
    """Heads of attention, as they lie in one projection, weights, the projection, a gradient.

    The products stand line by line: from one to the next is less than from row to row.
    """
    torch.manual_seed(7)

    def draw(*shape):
        return torch.empty(shape).uniform_(-1, 1).to(where, getattr(torch, dtype))

    projection, W = draw(33, 4, 72).requires_grad_(), draw(72, 40).requires_grad_()
    return projection.transpose(0, 1), W, projection, draw(4, 33, 40)


def gradients_of_heads(dtype, where):
    """How far y, dX and dW are from float64's, each of what rounding explains of it.

    The gradient of W is the sum of those of the products, each of them rounded to its type, and
    rounded once more: what each may be off by adds up.
    """
    X, W, projection, G = heads(dtype, where)
    y = operators.gemm(X, W)
    y.backward(G)
    x, w, g = (one.detach().double() for one in (X, W, G))

    def limit(A, B):
        asked = Problem(A.shape[-2], B.shape[-1], A.shape[-1], dtype=dtype, out=dtype)
        exact = answer(1.0, A, B, 0.0, None)
        return asked.tolerance * yardstick(exact, asked.K, asked.tolerance, dtype)

    of_w = [(one.mT @ other, limit(one.mT, other)) for one, other in zip(x, g, strict=True)]
    total = sum(exact for exact, _ in of_w)
    whole = sum(allowed for _, allowed in of_w) + 2 * ROUNDOFF[dtype] * norm(total)
    wanted = {"y": (y, x @ w, limit(x, w)),
              "dX": (projection.grad.transpose(0, 1), g @ w.mT, limit(g, w.mT)),
              "dW": (W.grad, total, whole)}
    return {name: norm(found.detach().double() - exact) / allowed
            for name, (found, exact, allowed) in wanted.items()}


@pytest.fixture
def on_the_host(monkeypatch):
    """The operator's kernel, played on the CPU: summed in float64 and rounded once."""
    changed = []

    def product(A, B, C, alpha, beta, out_dtype, trials):
        y = alpha * (A.double() @ B.double())
        for change in changed:
            y = change(y)
        return y.to(out_dtype or A.dtype)

    monkeypatch.setattr(operators, "_FORWARD", product)
    return changed


@pytest.mark.parametrize("dtype", TYPES)
def test_what_a_batch_s_gradients_may_be_off_by(on_the_host, dtype):
    """A product that is rounded once passes by far; one element that is off by little does not."""
    far = gradients_of_heads(dtype, "cpu")
    assert max(far.values()) < 0.5, far

    def spoiled(y):
        y = y.clone()
        y.view(-1)[:8] += 2.0
        return y

    on_the_host.append(spoiled)
    far = gradients_of_heads(dtype, "cpu")
    assert min(far.values()) > 1, far


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_are_held_to_what_was_added_up(seed):
    """`tests.run.calls`: one element of FP16 that cancels is right, one that is off is not."""
    from tests.run.calls import Case, error

    case = Case(Problem(1, 1, 51, 0.5, -2.0, dtype="float16", out="float16"), "gemm_out", False)
    torch.manual_seed(seed)
    worst = 0.0
    for _ in range(500):
        A, B, C = (torch.empty(shape).uniform_(-1, 1).half()
                   for shape in ((1, 51), (51, 1), (1, 1)))
        if seed == 0:  # what is taken away is nearly what is added
            C = (A.double() @ B.double() / 4).half()
        found = (0.5 * (A.float() @ B.float()) - 2 * C.float()).half()
        worst = max(worst, error(case, A, B, C, found))
        assert error(case, A, B, C, found + 0.02) > 1
    assert worst <= 1


# -- on a GPU --------------------------------------------------------------------------------------


def drawn(*shape, dtype="float32", **options):
    """Random numbers on the GPU."""
    made = torch.empty(shape, device="cuda").uniform_(-1, 1).to(getattr(torch, dtype))
    return made.requires_grad_() if options else made


def far(found, exact):
    """Distance, relative in norm."""
    return ((found.double() - exact).norm() / exact.norm()).item()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_opcheck_passes(dtype):
    A, B, C = (drawn(*shape, dtype=dtype, requires_grad=True)
               for shape in ((33, 40), (40, 24), (33, 24)))
    gemm, out = torch.ops.gemm_worklog.gemm.default, torch.ops.gemm_worklog.gemm_out.default
    torch.library.opcheck(gemm, (A, B))
    torch.library.opcheck(gemm, (A, B, C), {"alpha": 0.5, "beta": 2.0})
    torch.library.opcheck(torch.ops.gemm_worklog.forward.default,
                          (A.detach(), B.detach(), C.detach(), 0.5, 2.0, None, 1))
    torch.library.opcheck(out, (A.detach(), B.detach(), C.detach().clone(), 0.5, 2.0))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double")
def test_gradcheck_in_float32():
    inputs = tuple(drawn(*shape, requires_grad=True) for shape in ((5, 7), (7, 6), (5, 6)))

    def product(A, B, C):
        return operators.gemm(A, B, 0.5, 2.0, C)

    limits = {"eps": STEP, "atol": TOLERANCE, "rtol": TOLERANCE}
    assert torch.autograd.gradcheck(product, inputs, **limits)
    assert torch.autograd.gradgradcheck(product, inputs, **limits)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype, limit", [("float32", 1e-6), ("float16", 1e-3), ("bfloat16", 8e-3)])
def test_a_linear_layer_s_gradients_against_float64(dtype, limit):
    x = drawn(4, 33, 96, dtype=dtype, requires_grad=True)
    weight, bias = drawn(72, 96, dtype=dtype, requires_grad=True), drawn(72, dtype=dtype,
                                                                         requires_grad=True)
    y = operators.linear(x, weight, bias)
    grad = drawn(4, 33, 72, dtype=dtype)
    y.backward(grad)
    X, W, G = x.detach().double(), weight.detach().double(), grad.double()
    assert far(y, X @ W.T + bias.detach().double()) < limit
    assert far(x.grad, G @ W) < limit
    assert far(weight.grad, G.flatten(0, 1).T @ X.flatten(0, 1)) < limit
    assert far(bias.grad, G.sum((0, 1))) < limit


@pytest.mark.gpu
@pytest.mark.parametrize("activation", [a for a in ACTIVATIONS if a != "swiglu"])
@pytest.mark.parametrize("dtype, limit", [("float16", 2e-3), ("bfloat16", 1.2e-2)])
@pytest.mark.parametrize("shape", [(132, 96, 72), (33, 95, 71)], ids=str)
def test_a_layer_with_an_epilogue_against_float64(shape, activation, dtype, limit):
    M, K, N = shape
    given = [drawn(*one, dtype=dtype, requires_grad=True) for one in ((M, K), (N, K), (N,), (M, N))]
    x, weight, bias, residual = given
    with torch.no_grad():
        fused = operators.linear(x, weight, bias, activation, residual)
    y = operators.linear(x, weight, bias, activation, residual)
    grad = drawn(M, N, dtype=dtype)
    y.backward(grad)
    exact = [one.detach().double().requires_grad_() for one in given]
    wanted = ACTIVATIONS[activation](exact[0] @ exact[1].T + exact[2]) + exact[3]
    wanted.backward(grad.double())
    assert far(fused, wanted) < limit and far(y, wanted) < limit
    for mine, theirs in zip(given, exact, strict=True):
        assert far(mine.grad, theirs.grad) < limit
    options = (x.detach(), weight.detach(), bias.detach(), residual.detach(), activation)
    torch.library.opcheck(torch.ops.gemm_worklog.linear_forward.default, options)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_a_batch_s_gradients_against_float64(dtype):
    far = gradients_of_heads(dtype, "cuda")
    assert max(far.values()) < 1, far


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_a_batch_s_products_are_the_same_bits_each_time(dtype):
    """What opcheck compares, the operator with itself, may then differ in nothing."""
    X, W, _, grad = heads(dtype, "cuda")
    for A, B in ((X, W), (grad, W.mT), (X.mT, grad), (X.mT, torch.ones_like(grad))):
        first = operators.gemm(A.detach(), B.detach())
        for _ in range(20):
            torch.empty(1 << 20, device="cuda").fill_(float("nan"))  # what the next one finds
            assert torch.equal(operators.gemm(A.detach(), B.detach()), first)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("tested", ["test_schema", "test_autograd_registration",
                                    "test_faketensor", "test_aot_dispatch_dynamic"])
def test_opcheck_passes_for_a_batch(dtype, tested):
    X, W, _, _ = heads(dtype, "cuda")
    torch.library.opcheck(torch.ops.gemm_worklog.gemm.default, (X, W), test_utils=tested)


@pytest.mark.gpu
def test_what_the_address_does_not_describe_is_refused():
    A, B = drawn(4, 4), drawn(4, 4)
    cut = drawn(4, 4)
    cut.untyped_storage().resize_(40)
    negated = torch.complex(A, B).conj().imag
    refused({
        "written in place, which has no gradient":
            lambda: lib.gemm(A, B, C=drawn(4, 4, requires_grad=True)),
        "B lies on the cpu": lambda: lib.gemm(A, B.cpu()),
        "beside tensors": lambda: lib.gemm(A, device.cupy().ones((4, 4), "f4")),
        "torch.float64: it must be one of": lambda: lib.gemm(A.double(), B.double()),
        "torch.sparse_coo": lambda: lib.gemm(A.to_sparse(), B),
        "negated lazily": lambda: lib.gemm(negated, B),
        "past the end of its memory": lambda: lib.gemm(cut, B),
        "C overlaps A": lambda: lib.gemm(A, B, C=A),
    })


@pytest.mark.gpu
def test_an_unknown_shape_with_trials_is_refused_while_it_is_captured():
    A, B = drawn(104, 72, dtype="float16"), drawn(72, 88, dtype="float16")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(ValueError, match="call once before the capture"), torch.cuda.graph(graph):
        lib.gemm(A, B, trials=7)
    lib.gemm(A, B, trials=7)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        lib.gemm(A, B, trials=7)


def made(*options, before=()):
    """Make random calls in a process of their own (`tests.run.calls`)."""
    command = [*before, sys.executable, "-m", "tests.run.calls", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 wrong" in done.stdout
    return done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize("options", [
    ("--calls", "1000"), ("--calls", "250", "--mode", "captured"),
    ("--calls", "1000", "--mode", "compiled"), ("--calls", "250", "--threads", "4"),
], ids=" ".join)
def test_a_thousand_random_products_in_a_fresh_process(options):
    made(*options)


@pytest.mark.gpu
def test_random_products_under_the_sanitizer():
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        pytest.skip("compute-sanitizer is not on the PATH")
    made("--calls", "50", before=(tool, "--error-exitcode", "9"))


@pytest.mark.gpu
def test_what_the_readme_shows_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"\n\n(    import lib\.torch\n.*?)\n\n(?!    )", readme, re.S)
    A, B, x, weight, z = (torch.randn(64, 64, device="cuda", dtype=torch.float16)
                          for _ in range(5))
    bias, model = weight[0].contiguous(), torch.nn.Linear(64, 64, device="cuda").half()
    names = {"A": A, "B": B, "x": x, "weight": weight, "z": z, "bias": bias, "model": model}
    exec(textwrap.dedent(lines), names)
    assert far(names["C"], A.double() @ B.double()) < 1e-2
    assert far(names["y"], model(x).double()) < 1e-2
