"""What `lib.torch` launches without PyTorch's dispatcher, and a model whose layers it computes.

Plans are played: a product is computed on the CPU, of what lies at the addresses that a call puts
in.
"""

import ctypes
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from lib.run import plans

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import lib.torch as operators  # noqa: E402 - what follows needs PyTorch
from lib.torch import launches, operands  # noqa: E402

F = torch.nn.functional
ALIGNED = 256  # bytes; a kind has the rest of the address by less than this


def at(address, like):
    """A tensor of a kind at an address."""
    span = 1 + sum((n - 1) * step for n, step in zip(like.shape, like.stride(), strict=True))
    memory = (ctypes.c_char * (span * like.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=like.dtype).as_strided(like.shape, like.stride())


class Machine:
    """The library's side of memory; plans, and what they were launched with."""

    name = "PyTorch"

    def __init__(self):
        self.memory = plans.NO_MEMORY
        self.laid_out, self.streams, self.borrowings = [], [], []
        self._busy = False

    def plan_of(self, left, right, out=None, epilogue="none", bias=None, residual=None):
        """Lay out a product of such matrices."""
        self.laid_out.append(epilogue)
        shape, kind = (left @ right).shape, left.dtype
        fold = operators.Epilogue(epilogue).fold
        C = torch.empty(*shape[:-1], shape[-1] // fold, dtype=kind)

        def bound(stream, addresses, alpha, beta):
            assert not self._busy and beta == 0
            self._busy = True
            y = alpha * (at(addresses[0], left) @ at(addresses[1], right))
            y = y if bias is None else y + at(addresses[5], bias)
            y = operators._activated(y, operators.Epilogue(epilogue))
            y = y if residual is None else y + at(addresses[6], residual)
            at(addresses[2], C).copy_(y)
            self.streams.append((stream, *addresses[3:5]))
            self._busy = False

        return SimpleNamespace(bound=bound, memory=self.memory)

    def empty(self, shape, dtype, index, stream):
        return 1000 + len(self.streams)

    def zeros(self, nbytes, index, stream):
        return 2000 + len(self.streams)

    def address(self, made):
        return made

    @contextmanager
    def borrowed(self, nbytes, index, stream):
        self.borrowings.append(nbytes)
        yield 3000, 4000


@pytest.fixture
def machine(monkeypatch):
    """A GPU that computes on the CPU, in one thread at a time."""
    made = Machine()
    for room, name, value in (
            (operands, "layouts", lambda *of: operands.ANY), (operands, "takes", lambda one: True),
            (operands, "FUSED", (torch.float32, torch.float16)),
            (launches.products, "plan_of", made.plan_of),
            (launches.parts, "plan_of", lambda form, A, B, **more: made.plan_of(
                A, B, epilogue=form, **more)),
            (launches.libraries, "torch", lambda: made), (launches, "_stream", lambda index: 7),
            (launches, "_current", lambda: torch.empty(0).get_device()),
            (launches, "_empty", lambda shape, strides, dtype: torch.full(
                shape, float("nan"), dtype=dtype))):
        monkeypatch.setattr(room, name, value)
    plans.forget()
    yield made
    plans.forget()


def drawn(*shape, dtype=torch.float32, behind=0):
    """Random numbers, so many elements behind an aligned address."""
    count = torch.Size(shape).numel()
    flat = torch.empty(count + ALIGNED, dtype=dtype).uniform_(-1, 1)
    first = -flat.data_ptr() % ALIGNED // flat.itemsize + behind
    return flat[first:first + count].view(shape)


def layer(M=5, N=16, K=8, **options):
    """x, weight and bias."""
    return drawn(2, M, K, **options), drawn(N, K, **options), drawn(N, **options)


def test_one_launch_serves_all_addresses(machine):
    for _ in range(4):
        x, weight, bias = layer()
        torch.testing.assert_close(operators.linear(x, weight, bias), F.linear(x, weight, bias))
    assert machine.laid_out == ["none"] and len(machine.streams) == 4


@pytest.mark.parametrize("changed", [
    lambda x, weight, bias: (x.transpose(0, 1).contiguous(), weight, bias),  # shape
    lambda x, weight, bias: (x, drawn(16, 12)[:, :8], bias),  # stride
    lambda x, weight, bias: (x, drawn(8, 16).T, bias),
    lambda x, weight, bias: tuple(one.half() for one in (x, weight, bias)),
    lambda x, weight, bias: (drawn(2, 5, 8, behind=1), weight, bias),
    lambda x, weight, bias: (x, weight, drawn(16, behind=4)),
    lambda x, weight, bias: (x, weight, None),
    lambda x, weight, bias: (x, weight, bias, "gelu"),
    lambda x, weight, bias: (x, weight, bias, "none", drawn(2, 5, 16)),
], ids=["shape", "stride", "transpose", "type", "alignment of x", "alignment of bias", "no bias",
        "activation", "residual"])
def test_another_kind_is_another_launch(machine, changed):
    x, weight, bias = layer()
    for given in (((x, weight, bias), changed(x, weight, bias)) * 2):
        y = F.linear(*given[:3])
        if len(given) > 3:
            y = operators._activated(y, operators.Epilogue(given[3])) + sum(given[4:])
        near = 1e-2 if y.dtype is torch.float16 else 1e-5  # halves are rounded once more, or not
        torch.testing.assert_close(operators.linear(*given), y, rtol=near, atol=near)
    assert len(machine.laid_out) == 2 and len(machine.streams) == 4


def test_another_gpu_is_another_launch(machine, monkeypatch):
    given = layer()
    operators.linear(*given)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda one: 1)
    entered = []
    monkeypatch.setattr(launches, "_current", lambda: int(bool(entered)))
    monkeypatch.setattr(torch.cuda, "device", lambda index: entered.append(index) or nullcontext())
    torch.testing.assert_close(operators.linear(*given), F.linear(*given))
    assert len(machine.laid_out) == 2 and entered == [1]


def test_of_many_kinds_the_latest_are_kept(machine, monkeypatch):
    monkeypatch.setattr(plans, "MAX_PLANS", 4)
    for M in (*range(1, 11), 10, 7, 10):
        given = layer(M)
        torch.testing.assert_close(operators.linear(*given), F.linear(*given))
    assert len(launches._LAUNCHES) == 4 and len(machine.laid_out) == 10
    operators.linear(*layer(1))
    assert len(launches._LAUNCHES) == 4 and len(machine.laid_out) == 11


def test_four_threads_share_a_launch(machine):
    wrong, begin = [], threading.Barrier(4)

    def called():
        begin.wait()
        for _ in range(50):
            given = layer()
            try:
                torch.testing.assert_close(operators.linear(*given), F.linear(*given))
            except Exception as error:
                wrong.append(error)

    crowd = [threading.Thread(target=called) for _ in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert not wrong and machine.laid_out == ["none"] and len(machine.streams) == 200


def test_a_launch_that_needs_memory_has_the_stream_s_or_the_graph_s(machine, monkeypatch):
    machine.memory = (64, 8)
    given = layer()
    for stream, captured in ((7, False), (8, False), (7, False), (8, True)):
        monkeypatch.setattr(launches, "_stream", lambda index, stream=stream: stream)
        monkeypatch.setattr(plans, "capturing", lambda stream, captured=captured: captured)
        operators.linear(*given)
    assert machine.streams == [(7, 1000, 2000), (8, 1001, 2001), (7, 1000, 2000), (8, 3000, 4000)]
    assert machine.borrowings == [(64, 8)]


def test_what_no_kernel_adds_is_added_behind_the_product(machine, monkeypatch):
    monkeypatch.setattr(operands, "FUSED", ())
    x, weight, bias = layer()
    weight.requires_grad_()
    for _ in range(2):
        y = operators.linear(x, weight, bias)
        torch.testing.assert_close(y, F.linear(x, weight, bias))
    y.sum().backward()
    torch.testing.assert_close(weight.grad, x.sum((0, 1)).expand_as(weight))
    assert machine.laid_out[0] == "none" and len(machine.streams) == 3


class Dispatched(torch.utils._python_dispatch.TorchDispatchMode):
    """Sees each operator."""

    def __torch_dispatch__(self, operator, types, given=(), options=None):
        return operator(*given, **(options or {}))


class Called(torch.overrides.TorchFunctionMode):
    """Sees each function."""

    def __torch_function__(self, function, types, given=(), options=None):
        return function(*given, **(options or {}))


class Own(torch.Tensor):
    """A subclass, which may see what is called with it."""


def faked(x, weight, bias):
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        return operators.linear(*map(mode.from_tensor, (x, weight, bias)))


def under(mode):
    def call(x, weight, bias):
        with mode():
            return operators.linear(x, weight, bias)
    return call


@pytest.mark.parametrize("call", [
    under(Dispatched), under(Called), faked,
    under(lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])),
    lambda x, weight, bias: torch.func.vmap(operators.linear, (0, None, None))(x, weight, bias),
    lambda x, weight, bias: torch.func.grad(
        lambda one: operators.linear(one, weight, bias).sum())(x),
    lambda x, weight, bias: operators.linear(x.as_subclass(Own), weight, bias),
    lambda x, weight, bias: operators.linear(x, weight.to("meta"), bias),
    lambda x, weight, bias: operators.linear(
        torch.complex(x, x).conj().imag, weight, bias),
    lambda x, weight, bias: operators.linear(x[..., ::2], weight[:, ::2], bias),
    lambda x, weight, bias: operators.linear(x[:, :0], weight, bias),
], ids=["dispatch mode", "function mode", "fake", "profiler", "vmap", "grad", "subclass", "meta",
        "negated", "gaps", "empty"])
def test_what_is_watched_or_lies_otherwise_goes_by_the_operators(machine, monkeypatch, call):
    seen = []
    monkeypatch.setattr(operators, "_by_operators",
                        lambda x, *others: seen.append(x) or x * 1.0)
    given = layer()
    for _ in range(2):
        call(*given)
    assert len(seen) == 2 and not machine.streams
    operators.linear(*given)
    assert len(seen) == 2 and len(machine.streams) == 1


def test_under_autocast_a_layer_is_computed_in_its_type(machine, monkeypatch):
    x, weight, bias = layer()
    monkeypatch.setattr(operators, "casts", lambda: True)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: True)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda kind: torch.float16)
    y = operators.linear(x, weight, bias)
    assert y.dtype is torch.float16
    torch.testing.assert_close(y.float(), F.linear(x, weight, bias), rtol=1e-2, atol=1e-2)


# -- models ----------------------------------------------------------------------------------------


class Block(torch.nn.Module):
    """Attention and a gated layer, as in a language model."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.up, self.gate = (torch.nn.Linear(width, 2 * width) for _ in range(2))
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(
            batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(torch.nn.Module):
    """Blocks, the first of which comes again at the end, and a head with the embedding's weight."""

    def __init__(self, width=32, words=24):
        super().__init__()
        torch.manual_seed(3)
        self.words = torch.nn.Embedding(words, width)
        blocks = [Block(width, 4) for _ in range(2)]
        self.blocks = torch.nn.Sequential(*blocks, blocks[0])
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens)))


CALLS = 3 * 5 + 1  # of linear layers in a forward


def trained(model, tokens):
    """A forward's logits, and the gradients of all parameters."""
    logits = model(tokens)
    F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    gradients = {name: one.grad for name, one in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return logits, gradients


def classes(model):
    return [type(one) for one in model.modules()]


def test_a_swapped_model_computes_and_learns_the_same(machine):
    model, tokens = Model(), torch.randint(24, (2, 7))
    before, names = classes(model), list(model.state_dict())
    logits, gradients = trained(model, tokens)
    assert not machine.streams
    with operators.swap(model) as swapped:
        assert swapped is model and list(model.state_dict()) == names
        with torch.no_grad():
            torch.testing.assert_close(model(tokens), logits.detach())
        assert len(machine.streams) == CALLS
        torch.testing.assert_close(trained(model, tokens), (logits, gradients))
        assert len(machine.streams) == 4 * CALLS
    assert classes(model) == before
    trained(model, tokens)
    assert len(machine.streams) == 4 * CALLS


def test_a_model_is_its_own_again_also_if_a_block_fails_or_blocks_are_nested(machine):
    model, tokens = Model(), torch.randint(24, (1, 3))
    before = classes(model)
    with pytest.raises(RuntimeError, match="of the block"), operators.swap(model):
        raise RuntimeError("of the block")
    assert classes(model) == before
    with operators.swap(model):
        with operators.swap(model.blocks[0]):
            model(tokens)
        model(tokens)
        assert len(machine.streams) == 2 * CALLS
    assert classes(model) == before


def test_only_plain_linear_layers_are_swapped_and_their_hooks_are_called(machine):
    class Scaled(torch.nn.Linear):
        """A layer of somebody's own."""

        def forward(self, x):
            return 2 * super().forward(x)

    model = torch.nn.Sequential(torch.nn.Linear(8, 16), Scaled(16, 4))
    x, seen = drawn(3, 8), []
    wanted = model(x)
    model[0].register_forward_hook(lambda module, given, y: seen.append(module))
    with operators.swap(model):
        torch.testing.assert_close(model(x), wanted)
    assert len(machine.streams) == 1 and seen == [model[0]]


def test_layers_on_the_host_are_left_alone():
    model = Model()
    with operators.swap(model):
        assert model(torch.zeros(1, 2, dtype=torch.int64)).shape == (1, 2, 24)
