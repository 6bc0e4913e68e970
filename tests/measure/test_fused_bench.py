"""25 against cublasLt and PyTorch: what a row and a table say; on a GPU, that it measures."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lib.kernels.epilogues import ACTIVATIONS, Epilogue, FusedProblem
from lib.measure import fused_bench, fused_rival
from lib.measure.fused_bench import ALONE, OTHERS, OURS, PRODUCT, Row
from lib.problem import WrongResult
from lib.run import device, runner

ROW = Row("25 ping_pong", OURS, "64x64x128", "bias_gelu", "bfloat16", 2e-6, 0.5, 0.01, None, None,
          1e-3, None, "H100")


def test_a_row_says_what_was_timed():
    assert fused_bench.told(ROW) == (
        "64x64x128 bias_gelu 25 ping_pong: 0.5 TFLOP/s, 2.00 µs, clock not read, spread 1.0%, "
        "error 1.0e-03")
    with_more = fused_bench.told(replace(ROW, mhz=1980.0, joules=2e-3))
    assert "1,980 MHz" in with_more and with_more.endswith("2.00 mJ")


def test_the_table_says_what_was_reached_of_the_fastest():
    rows = [ROW, replace(ROW, name="25 slow", seconds=3e-6),
            replace(ROW, name="PyTorch", side=OTHERS, seconds=4e-6),
            replace(ROW, name="cublasLt fused", side=OTHERS, seconds=2.1e-6),
            replace(ROW, name="plain", side=ALONE, seconds=1.9e-6),
            replace(ROW, name="cublasLt alone", side=PRODUCT, seconds=1e-6)]
    *_, others, alone = fused_bench.table(rows).splitlines()
    assert others == "  ours is 1.050 of the fastest of others; 1.03 is reached"
    assert alone == "  ours is 0.950 of the fastest of our product alone; 0.98 is missed"
    assert len(fused_bench.table(rows[:1]).splitlines()) == 1


def test_what_cublaslt_has_is_named_and_the_rest_is_lacking():
    assert fused_rival.EPILOGUES[Epilogue("gelu", bias=True)] == 36
    problem = FusedProblem(64, 64, 64, epilogue=Epilogue("silu", bias=True))
    assert fused_rival.cublaslt_fused(problem, problem.inputs()) == []
    assert fused_rival.product_of(problem).out == "bfloat16"
    with pytest.raises(ValueError, match="C can't be float16"):
        fused_rival.product_of(replace(problem, out="float16"))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_pytorch_s_layer_is_the_problem(activation, residual):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    problem = FusedProblem(6, 32, 24, dtype="float16", out="float16",
                           epilogue=Epilogue(activation, True, residual))
    given = problem.inputs()
    x, weight, bias, beside = (None if one is None else torch.tensor(one.astype("f8")) for one in (
        given.A, given.B, given.bias, given.residual))
    found = fused_rival.expression(torch, problem.epilogue)(x, weight, bias, beside).numpy()
    if activation == "swiglu":  # whose gates lie otherwise
        assert found.shape == given.C.shape
    else:
        np.testing.assert_allclose(found, problem.reference(given).C.C, 1e-9, 1e-9)


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
        runtime=SimpleNamespace(getDeviceProperties=lambda index: {"l2CacheSize": 1}))
    monkeypatch.setattr(device, "cupy", lambda: SimpleNamespace(**vars(np), cuda=cuda))
    monkeypatch.setattr(device, "Loaded", Emulated)
    for name, value in (("arch", "sm_90a"), ("sms", 2), ("name", "H100")):
        monkeypatch.setattr(device, name, lambda *given, value=value: value)

    def take(players, samples, warm):
        for player in players:
            player._call(1)
        return [SimpleNamespace(clock=None, seconds=n * 1e-6, spread=0.0)
                for n in range(1, len(players) + 1)]

    monkeypatch.setattr(fused_bench.turns, "take", take)
    monkeypatch.setattr(fused_bench.fused_rival, "torch_or_none", lambda: None)


@pytest.mark.parametrize("epilogue", ["bias_gelu", "swiglu", "amax", "plain"])
def test_what_is_timed_is_right_and_named(played, capsys, tmp_path, epilogue):
    written = tmp_path / "rows.json"
    assert fused_bench.main(["40x64x72", "--epilogue", epilogue, "--candidates", "2", "--write",
                             str(written)]) == 0
    rows = json.loads(written.read_text())
    alone = ["lib.gemm, the product alone"]
    if epilogue != "plain":
        alone = [rows[2]["name"], "25 apart", *alone]
        assert [row["side"] for row in rows[2:]] == [ALONE, OURS, ALONE]
    assert [row["name"] for row in rows[2:]] == alone
    assert all(row["error"] < 1e-2 and row["gpu"] == "H100" for row in rows)
    said = capsys.readouterr().out
    assert "of the fastest of our product alone" in said and "PyTorch isn't timed" in said


def test_parts_are_timed_each_beside_the_product(played, monkeypatch):
    some = replace(fused_bench.EPILOGUE, variants=fused_bench.EPILOGUE.variants[:2], steps=())
    monkeypatch.setattr(fused_bench, "EPILOGUE", some)
    rows = fused_bench.contest(FusedProblem(40, 64, 72), print, parts=True)
    assert [row.name for row in rows] == ["25 bias", "25 plain"]


def test_a_wrong_side_is_not_timed(played):
    found = fused_bench.Contest(FusedProblem(40, 64, 72))
    with pytest.raises(WrongResult, match="nothing: wrong: 2560 elements are NaN.*not timed"):
        found._side("nothing", OURS, lambda index: None, False)
    assert found._right("nothing", OTHERS, lambda index: None, False) == []


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        fused_bench.main(["128"])
    assert ended.value.code == 2
    assert "no GPU here" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("options", [
    ("--epilogue", "bias_gelu"), ("--epilogue", "bias_silu"), ("--epilogue", "swiglu"),
    ("--epilogue", "amax"), ("--epilogue", "residual"), ("--parts",),
], ids=" ".join)
def test_it_measures_on_a_gpu(options, capsys, tmp_path):
    written = tmp_path / "rows.json"
    assert fused_bench.main(["512x1024x1024", *options, "--write", str(written)]) == 0
    rows = json.loads(written.read_text())
    assert all(row["seconds"] > 0 for row in rows) and len(rows) > 3
    assert any(row["side"] == OURS for row in rows), capsys.readouterr().out
