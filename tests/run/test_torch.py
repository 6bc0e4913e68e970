"""PyTorch's operator: its schema, what the compiler is told, its refusals; products on a GPU."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from lib.paths import ROOT
from lib.run import device

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import lib  # noqa: E402 - what follows needs PyTorch
import lib.torch as operators  # noqa: E402

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


def test_the_compiler_sees_one_node_and_no_break():
    nodes = []

    def backend(graph, examples):
        nodes.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    def layer(x, weight):
        return lib.torch.linear(x, weight) + lib.gemm(x, weight.T)

    torch.compile(layer, fullgraph=True, backend=backend)(meta(2, 8), meta(5, 8))
    assert sum("gemm_worklog" in node for node in nodes) == 2


def test_gradients_have_the_operands_shapes_and_types():
    A, B = meta(5, 7, requires_grad=True), meta(7, 3, requires_grad=True)
    C = meta(5, 3, dtype=torch.float32, requires_grad=True)
    operators.gemm(A, B, 2.0, 3.0, C, out_dtype=torch.float32).sum().backward()
    for one in (A, B, C):
        assert (one.grad.shape, one.grad.dtype) == (one.shape, one.dtype)


@pytest.mark.parametrize("of_a, of_b, wanted", [
    ((2, 5, 7), (2, 7, 3), (2, 5, 3)), ((5, 7), (2, 7, 3), (2, 5, 3)),
    ((2, 5, 7), (7, 3), (2, 5, 3)), ((0, 5, 7), (7, 3), (0, 5, 3)),
])
def test_batches_have_shapes_and_gradients(of_a, of_b, wanted):
    A, B = meta(*of_a, requires_grad=True), meta(*of_b, requires_grad=True)
    found = operators.gemm(A, B)
    assert found.shape == wanted
    found.sum().backward()
    assert A.grad.shape == of_a and B.grad.shape == of_b


def test_transposes_and_slices_are_read_as_they_lie(monkeypatch):
    """Forward and both products of backward: not an element is copied where kernels take all."""
    monkeypatch.setattr(operators, "_layouts", lambda *of: operators.ANY)
    x, weight, heads = torch.ones(6, 8), torch.ones(5, 8), torch.ones(6, 3, 8)
    for one in (x, x.T, weight.T, weight.mT, x[:, 2:5], x.T[:, 1:3], heads.transpose(0, 1),
                heads.permute(1, 2, 0), x[:, :1], x[:1], x.expand(4, 6, 8), x[:0]):
        assert all(found is one for found in operators._laid(one, one, torch.float32))
    for one in (x[:, ::2], x[:1].expand(6, 8), heads[:, :, ::2]):
        copied = operators._readable(one)
        assert copied is not one and copied.is_contiguous() and (copied == one).all()


def test_before_hopper_what_no_kernel_takes_is_copied_or_refused(monkeypatch):
    monkeypatch.setattr(operators, "_layouts", lambda *of: ("row",))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Tesla T4")
    A, B = operators._laid(torch.ones(8, 6).T, torch.ones(5, 8).T, torch.float32)
    assert A.is_contiguous() and B.is_contiguous()
    with pytest.raises(ValueError, match="no kernel on Tesla T4 takes a batch in float16"):
        operators._laid(torch.ones(2, 4, 4).half(), torch.ones(4, 4).half(), torch.float16)


def test_what_does_not_fit_is_refused_in_one_line():
    A, B = meta(5, 7), meta(7, 3)
    host = torch.ones(4, 4)
    for word, call in {
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
    }.items():
        with pytest.raises(ValueError) as refused:
            call()
        assert word in str(refused.value) and "\n" not in str(refused.value)


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
@pytest.mark.parametrize("dtype, most", [("float32", 1e-6), ("float16", 1e-3), ("bfloat16", 8e-3)])
def test_a_linear_layer_s_gradients_against_float64(dtype, most):
    x = drawn(4, 33, 96, dtype=dtype, requires_grad=True)
    weight, bias = drawn(72, 96, dtype=dtype, requires_grad=True), drawn(72, dtype=dtype,
                                                                         requires_grad=True)
    y = operators.linear(x, weight, bias)
    grad = drawn(4, 33, 72, dtype=dtype)
    y.backward(grad)
    X, W, G = x.detach().double(), weight.detach().double(), grad.double()
    assert far(y, X @ W.T + bias.detach().double()) < most
    assert far(x.grad, G @ W) < most
    assert far(weight.grad, G.flatten(0, 1).T @ X.flatten(0, 1)) < most
    assert far(bias.grad, G.sum((0, 1))) < most


@pytest.mark.gpu
@pytest.mark.parametrize("dtype, most", [("float32", 1e-6), ("float16", 1e-3), ("bfloat16", 8e-3)])
def test_a_batch_s_gradients_against_float64(dtype, most):
    """Heads of attention, as they lie in one projection: the products stand line by line."""
    heads = drawn(33, 4, 72, dtype=dtype, requires_grad=True)
    weight = drawn(72, 40, dtype=dtype, requires_grad=True)
    y = operators.gemm(heads.transpose(0, 1), weight)
    grad = drawn(4, 33, 40, dtype=dtype)
    y.backward(grad)
    X, W, G = heads.detach().double().transpose(0, 1), weight.detach().double(), grad.double()
    assert far(y, X @ W) < most
    assert far(heads.grad, (G @ W.T).transpose(0, 1)) < most
    assert far(weight.grad, (X.mT @ G).sum(0)) < 2 * most
    torch.library.opcheck(torch.ops.gemm_worklog.gemm.default, (heads.transpose(0, 1), weight))


@pytest.mark.gpu
def test_what_the_address_does_not_describe_is_refused():
    A, B = drawn(4, 4), drawn(4, 4)
    cut = drawn(4, 4)
    cut.untyped_storage().resize_(40)
    negated = torch.complex(A, B).conj().imag
    for word, call in {
        "written in place, which has no gradient":
            lambda: lib.gemm(A, B, C=drawn(4, 4, requires_grad=True)),
        "B lies on the cpu": lambda: lib.gemm(A, B.cpu()),
        "beside tensors": lambda: lib.gemm(A, device.cupy().ones((4, 4), "f4")),
        "torch.float64: it must be one of": lambda: lib.gemm(A.double(), B.double()),
        "torch.sparse_coo": lambda: lib.gemm(A.to_sparse(), B),
        "negated lazily": lambda: lib.gemm(negated, B),
        "past the end of its memory": lambda: lib.gemm(cut, B),
        "C overlaps A": lambda: lib.gemm(A, B, C=A),
    }.items():
        with pytest.raises(ValueError) as refused:
            call()
        assert word in str(refused.value) and "\n" not in str(refused.value)


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


def shown(cell_of: str) -> str:
    """The Python of the page that shows the operator."""
    page = ROOT / "chapters" / f"{cell_of}.ipynb"
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    (found,) = re.findall(r"```python\n(.*?lib\.torch.*?)```", "\n".join(
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"), re.S)
    return found


@pytest.mark.gpu
def test_what_the_page_shows_runs():
    names = {}
    exec(shown("24_any_row"), names)
    layer, x = names["layer"], names["x"]
    exact = torch.ones(512, 1024, device="cuda").double() @ layer.weight.detach().double()
    assert far(x.grad, exact) < 1e-2
