"""25 against cublasLt and PyTorch: what a row and a table say; on a GPU, that it measures."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from lib.measure import counters, cublaslt, fused_bench
from lib.measure.fused_bench import ALONE, APART, FUSED, OTHERS, PRODUCT, UNIT, Offer, led
from lib.problem import Epilogue, WrongResult, with_epilogue
from lib.problem.epilogue import ACTIVATIONS
from lib.records import store as records
from lib.records.schema import Chunk, Clock, EpiloguesRecord, FusedRow, FusedSide, Steady
from lib.run import device, runner

SIDE = FusedSide(name="25 ping_pong", whose=FUSED, epilogue="bias_gelu", seconds=2e-6, tflops=0.5,
                 spread=0.01, error=1e-3, variant="ping_pong")
ROW = FusedRow(M=64, N=64, K=128, dtype="bfloat16", out="bfloat16", b_layout="column",
               epilogue="bias_gelu", fuses=True, reason="the least", sides=[SIDE],
               board="0123456789abcdef", chunk="20261124T120000-0123")
CLOCK = Clock(mhz=1980.0, cycles=3960.0, series_mhz=[1980.0], sms=132, tick_ns=32.0, error=0.0,
              outside=0.0)
STEADY = Steady(seconds=2e-6, spread=0.0, tflops=0.5, series=[2e-6], launches=9, joules=2e-3,
                joules_error=0.01)


def sides(*named):
    """Sides by name, whose they are, and seconds."""
    return [structs.replace(SIDE, name=name, whose=whose, seconds=seconds)
            for name, whose, seconds in named]


def test_a_row_says_what_was_timed():
    assert fused_bench.line(ROW, SIDE) == (
        "64x64x128 bias_gelu 25 ping_pong: 0.5 TFLOP/s, 2.00 µs, clock not read, spread 1.0%, "
        "error 1.0e-03")
    with_more = fused_bench.line(ROW, structs.replace(SIDE, clock=CLOCK, steady=STEADY))
    assert "1,980 MHz" in with_more and with_more.endswith("2.00 mJ")


def test_the_fastest_of_each_leads_and_each_of_pytorch_s_ways():
    found = sides(("25 slow", FUSED, 3e-6), ("25 a", FUSED, 2e-6), ("PyTorch", OTHERS, 4e-6),
                  ("cublasLt fused", OTHERS, 2.1e-6), ("torch.compile", OTHERS, 5e-6),
                  ("plain", ALONE, 1.9e-6))
    assert [found[place].name for place in led(found)] == [
        "25 a", "PyTorch", "cublasLt fused", "torch.compile", "plain"]


def launched(name, read):
    """A row of ncu's."""
    return {"Kernel Name": name, "dram__bytes_read.sum": str(read), "dram__bytes_write.sum": "1",
            "smsp__inst_executed.sum": "2"}


def test_traffic_is_the_sum_of_a_side_s_launches():
    rows = [launched("void busy<(int)1>(unsigned long long)", 0),
            launched("void fused<a, b>(int)", 5), launched("busy", 0), launched("gemm", 7),
            launched("void at::x::gelu<(int)4>(a)", 8)]
    first, second = map(fused_bench.traffic, counters.split(rows))
    assert (first.dram_read_bytes, first.kernels) == (5, ("fused",))
    assert (second.dram_read_bytes, second.dram_write_bytes, second.instructions) == (15, 2, 4)
    assert second.kernels == ("gemm", "gelu")
    assert fused_bench.traffic([{**rows[1], "dram__bytes_read.sum": "n/a"}]) is None
    assert fused_bench.traffic([]) is None
    anonymous = {"Kernel Name": "void (anonymous namespace)::softmax<4>(int)"}
    assert fused_bench.named(anonymous) == "softmax"


def test_what_ncu_counts_is_put_to_the_sides_that_lead(monkeypatch):
    found = structs.replace(ROW, sides=sides(
        ("25 slow", FUSED, 3e-6), ("25 a", FUSED, 2e-6), ("cublasLt alone", PRODUCT, 1e-6),
        ("PyTorch", OTHERS, 4e-6)))
    asked = []

    def profile(metrics, command, **given):
        asked.extend(json.loads(command[1]))
        return [launched("busy", 0), launched("fused", 3), launched("busy", 0),
                launched("gemm", 4)]

    monkeypatch.setattr(fused_bench.ncu, "profile", profile)
    row, = fused_bench.counted([found], 60.0, print)
    assert asked == [["bias_gelu", 64, 64, 128, ["25 a", "PyTorch"]]]
    assert [side.traffic and side.traffic.dram_read_bytes for side in row.sides] == [
        None, 3, None, 4]
    assert fused_bench.counted([found], 1.0, print) == [found]


def test_what_cublaslt_has_is_named_and_the_rest_is_lacking():
    assert cublaslt.EPILOGUES[Epilogue("gelu", bias=True)] == 36
    problem = with_epilogue(64, 64, 64, epilogue=Epilogue("silu", bias=True))
    assert cublaslt.candidates(problem, *problem.inputs()) == []
    assert problem.alone.out == "bfloat16"
    with pytest.raises(ValueError, match="C can't be float16"):
        _ = replace(problem, out="float16").alone


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_pytorch_s_layer_is_the_problem(activation, residual):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    problem = with_epilogue(6, 32, 24, dtype="float16", out="float16",
                           epilogue=Epilogue(activation, True, residual))
    given = problem.inputs()
    operands = (None if one is None else torch.tensor(one.astype("f8"))
                for one in (given.A, given.B, given.bias, given.residual))
    found = fused_bench.expression(torch, problem.epilogue)(*operands).numpy()
    if activation == "swiglu":  # whose gates lie otherwise
        assert found.shape == given.C.shape
    else:
        np.testing.assert_allclose(found, problem.reference(*given).C, 1e-9, 1e-9)


class Emulated:
    """Code that is "loaded" into the emulator."""

    def __init__(self, compiled):
        self._compiled = compiled

    def __call__(self, launch, args):
        runner.emulate(self._compiled, launch, tuple(args), trace=False)

    def ready(self, launch, args):
        return lambda stream: self(launch, args)


@pytest.fixture
def played(monkeypatch):
    """NumPy in CuPy's place, the emulator in the GPU's, and a time for each side in turn."""
    cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(id=0),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        runtime=SimpleNamespace(getDeviceProperties=lambda index: {"l2CacheSize": 1},
                                memGetInfo=lambda: (1 << 30, 1 << 30)))
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    monkeypatch.setattr(device, "cupy", lambda: SimpleNamespace(
        **vars(np), cuda=cuda, get_default_memory_pool=lambda: pool))
    monkeypatch.setattr(device, "Loaded", Emulated)
    for name, value in (("arch", "sm_90a"), ("sms", 2), ("name", "H100")):
        monkeypatch.setattr(device, name, lambda *given, value=value: value)

    def take(players, samples, warm):
        for player in players:
            player._call(1)
        return [SimpleNamespace(clock=None, seconds=n * 1e-6, spread=0.0)
                for n in range(1, len(players) + 1)]

    monkeypatch.setattr(fused_bench.turns, "take", take)
    monkeypatch.setattr(fused_bench, "torch_or_none", lambda: None)
    monkeypatch.setattr(fused_bench, "board", lambda: ROW.board)
    monkeypatch.setattr(fused_bench, "CANDIDATES", 2)
    monkeypatch.setattr(fused_bench, "chunk_here", lambda: (ROW.chunk, Chunk(
        started="2026-11-24T12:00:00Z", board=ROW.board, driver="1", revision="abc", others=0)))


@pytest.mark.parametrize("epilogue", ["bias_gelu", "swiglu", "amax", "plain"])
def test_what_is_timed_is_right_and_named(played, epilogue):
    said = []
    problem = with_epilogue(40, 64, 72, epilogue=fused_bench.EPILOGUES[epilogue][0])
    found = fused_bench.contest(problem, said.append, joules=1.0).sides
    if epilogue == "plain":
        assert [side.whose for side in found] == [ALONE, ALONE, ALONE]
    else:
        units = [UNIT] * (epilogue == "bias_gelu")  # once, and its product no second time
        assert [side.whose for side in found] == [
            FUSED, FUSED, *units, ALONE, ALONE, APART, ALONE]
        bare = found[2 + len(units)]
        assert bare.name == f"{found[0].name}, the product alone"
        assert found[0].epilogue == epilogue and bare.epilogue == "plain"
        assert not units or found[2].epilogue == "bias_gelu_unit"
    assert all(side.error < 1e-2 for side in found)
    assert all(side.hash and side.registers for side in found
               if side.name.startswith("25 ") and side.whose != APART)
    assert any("PyTorch isn't timed" in line for line in said)
    assert any("no sensor counts it" in line for line in said)


def test_each_side_is_found_by_its_name(played):
    contest = fused_bench.Contest(with_epilogue(40, 64, 72, epilogue=Epilogue("gelu", True)))
    for offer in contest.offers(fused_bench.ours_of(contest.problem)):
        assert callable(contest.named(offer.name))
    with pytest.raises(ValueError, match="nothing is called 26"):
        contest.named("26")


def test_of_what_is_alike_the_fastest_is_timed_and_a_wrong_side_never(played, monkeypatch):
    contest, said = fused_bench.Contest(with_epilogue(40, 64, 72)), []
    right = contest.ours(fused_bench.ranked(contest.problem)[0])
    monkeypatch.setattr(contest, "offers", lambda variants: [
        right._replace(name="slow", alike="one"), right._replace(name="fast", alike="one"),
        Offer("nothing", FUSED, lambda: lambda index: None)])
    monkeypatch.setattr(fused_bench.bench, "fastest", lambda players: len(players) - 1)
    assert [side.offer.name for side in contest.sides([], said.append)] == ["fast"]
    assert said[0].startswith("nothing: wrong: 2560 elements are NaN") and "not timed" in said[0]
    with pytest.raises(WrongResult):
        contest.side(Offer("nothing", FUSED, lambda: lambda index: None))


def test_what_is_measured_is_a_record(played, monkeypatch, tmp_path, capsys):
    head = next(record for record in records.every() if record.gpu.key == "H100")
    monkeypatch.setattr(fused_bench, "provenance", lambda stem: structs.replace(
        EpiloguesRecord.of(head, contests=[], parts=[], chunks={}), kernel=stem))
    monkeypatch.setattr(fused_bench, "PART_SHAPES", ("40x64x72",))
    named = ("plain", "bias_gelu", "residual", "amax", "swiglu", "few_swiglu")
    monkeypatch.setattr(fused_bench, "EVERY", [
        fused_bench.EPILOGUE.variant(name) for name in named])
    assert fused_bench.main(["40x64x72", "--draft", "--record", str(tmp_path)]) == 0
    assert "bias_gelu 25 " in capsys.readouterr().out
    made = records.load(EpiloguesRecord, "H100", root=tmp_path)
    assert [row.epilogue for row in made.contests] == ["bias_gelu"]
    (row,) = made.parts
    assert [side.variant for side in row.sides] == [*named[:-1]]
    assert [side.epilogue for side in row.sides][1:3] == ["bias_gelu", "residual"]
    assert all(side.error < 1e-2 for side in row.sides) and set(made.chunks) == {ROW.chunk}
    assert not list(records.old_epilogues(made))
    other = structs.replace(row.sides[0], hash="0" * 16)
    stale = structs.replace(made, parts=[structs.replace(row, sides=[other])])
    assert list(records.old_epilogues(stale)) == ["plain"]


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        fused_bench.main(["128"])
    assert ended.value.code == 2
    assert "no GPU here" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("epilogue", ["bias_gelu", "bias_silu", "swiglu", "amax", "residual"])
def test_it_measures_on_a_gpu(epilogue):
    asked = with_epilogue(512, 1024, 1024, epilogue=fused_bench.EPILOGUES[epilogue][0])
    row = fused_bench.contest(asked, print)
    assert all(side.seconds > 0 for side in row.sides) and len(row.sides) > 3
    assert any(side.whose == FUSED for side in row.sides)
