"""What an epilogue costs and saves: by hand, and as pages show it with a record and without one."""

import pytest
from msgspec import structs

from lib.records import store as records
from lib.records.schema import EpiloguesRecord, FusedRow, FusedSide, Steady, Traffic
from lib.show import columns
from lib.show import epilogue as model
from lib.show.numbers import Numbers, evaluate

LARGE = (4096, 16384, 4096)  # M, N, K of the layer that is recorded


ROW = {"dtype": "bfloat16", "out": "bfloat16", "b_layout": "column", "board": "0123456789abcdef",
       "fuses": True, "reason": "the least", "chunk": "20261124T120000-0123"}
TIMES = {"fused": 1.0, "product": 0.95, "apart": 1.5, "rival": 1.1, "rival's product": 0.9}


def side(name, whose, times, flops, **more):
    seconds = 1e-3 * times
    return FusedSide(name=name, whose=whose, epilogue="bias_gelu", seconds=seconds, spread=0.0,
                     tflops=flops / seconds / 1e12, **more)


@pytest.fixture
def recorded(monkeypatch):
    """A record of one contest and of parts on one layer, in which a variant is called by its place.
    """
    M, N, K = LARGE
    flops = 2.0 * M * N * K
    sides = [side({"rival": "cublasLt fused, candidate 1"}.get(whose, whose), whose, times, flops)
             for whose, times in TIMES.items()]
    sides.append(side("PyTorch", "rival", 1.7, flops))
    sides.append(side("PyTorch _addmm_activation", "rival", 1.2, flops))
    sides[0] = structs.replace(
        sides[0], traffic=Traffic(dram_read_bytes=2, dram_write_bytes=3, instructions=1,
                                  kernels=["fused"]),
        steady=Steady(seconds=1e-3, spread=0.0, tflops=1.0, series=[1e-3], launches=9, joules=0.5,
                      joules_error=0.01))
    names = ("bias", "plain", "relu", "bias_gelu")  # a hundredth longer each
    parts = [side(name, "fused", 1 + place / 100, flops, variant=name)
             for place, name in enumerate(names)]
    rows = [FusedRow(M=M, N=N, K=K, epilogue="bias_gelu", sides=one, **ROW)
            for one in (sides, parts)]
    head = next(one for one in records.every() if one.gpu.key == "H100")
    made = EpiloguesRecord.of(structs.replace(
        EpiloguesRecord.of(head, contests=[], parts=[], chunks={}), kernel="epilogues"),
        contests=rows[:1], parts=[rows[1], structs.replace(rows[1], M=512, N=14336)], chunks={})
    monkeypatch.setattr(model, "contests_record", lambda: made)
    return made


@pytest.fixture
def empty(monkeypatch):
    """No record at all."""
    def missing():
        raise records.NotYet("no epilogue was timed")

    monkeypatch.setattr(model, "contests_record", missing)


def test_gelu_takes_two_special_functions_and_the_unit_s_tanh_one():
    assert model.cost("bias_gelu", "bias").special == 2
    assert model.cost("bias_gelu_unit", "bias").special == 1
    assert model.cost("bias_gelu_wide", "plain_wide").special == 2  # in tiles of other sizes too
    assert model.cost("bias_relu", "bias").special == 0
    # max(x, 0) that keeps a NaN: a comparison and a selection.
    assert model.cost("bias_relu", "bias").instructions == 2


def test_cycles_are_those_of_the_unit_that_takes_longer():
    assert model.Cost(2.0, 8.0).cycles((128, 128)) == 128 * 128 * 2 / 16
    assert model.Cost(0.0, 8.0).cycles((128, 128)) == 128 * 128 * 8 / 32 / 4
    assert model.loop_cycles((128, 128), 1024) == 8192


def test_a_second_pass_writes_and_reads_the_product():
    M, N, K = LARGE
    fused, apart = model.traffic(LARGE)
    assert fused == 2 * (M * K + K * N + M * N + N)
    assert apart - fused == 8 * M * N


def test_the_page_says_what_is_recorded(recorded, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(
        columns, "table", lambda head, rows, evidence: shown.append((rows, evidence)))
    model.contests()
    rows = {name: cells for name, *cells in shown[0][0]}
    assert rows["cublasLt, fused"] == [model.NOT_YET, "500", model.NOT_YET, model.NOT_YET]
    assert rows["fused, times the fastest rival's speed"][1] == "1.100"
    assert rows["fused, times our product's speed"][1] == "0.950"
    assert rows["DRAM recorded, MB: product alone; fused; apart"][1] == (
        f"{model.NOT_YET}; 0; {model.NOT_YET}")
    assert rows["mJ per product: fused; apart"][1] == f"500.00; {model.NOT_YET}"
    assert "recorded: H100" in shown[0][1]
    numbers = Numbers("25_epilogue")
    assert (numbers.fused("apart", *LARGE).seconds
            == 1.5 * numbers.fused("fused", *LARGE).seconds)
    assert numbers.part("bias_gelu", *LARGE).seconds == pytest.approx(
        1.03 * numbers.part("bias", *LARGE).seconds)
    assert numbers.fused("fused", *LARGE).traffic.dram_bytes == 5
    for missing in ("fused('apart', {}, {}, {}).traffic.dram_bytes",
                    "part('bias', {}, {}, {}).clock.mhz"):
        assert evaluate(missing.format(*LARGE), "25_epilogue") == model.NOT_YET


def test_pytorch_s_operations_are_not_its_fused_call(recorded):
    row = model.contest(LARGE)
    assert model.fastest(row, "PyTorch").seconds == pytest.approx(1.7e-3)
    assert model.fastest(row, "PyTorch _addmm_activation").seconds == pytest.approx(1.2e-3)
    assert model.fastest(row, "cublasLt fused").name == "cublasLt fused, candidate 1"


def test_without_a_record_the_page_says_so_and_predicts(empty, monkeypatch):
    shown = []
    monkeypatch.setattr(
        columns, "table", lambda head, rows, evidence: shown.append((rows, evidence)))
    model.contests()
    assert all(model.COMMAND in evidence for _, evidence in shown)
    rows = {name: cells for name, *cells in shown[0][0]}
    assert rows["**25, fused**, TFLOP/s"] == [model.NOT_YET] * 4
    assert rows["DRAM predicted, MB: fused; apart"][1] == "302; 839"
