"""26 against cublasLt: what a row says; on a GPU, that it measures."""

import json

import pytest

from lib.measure import scaled_bench
from lib.run import device


def test_a_row_says_what_was_timed():
    row = scaled_bench.Row("two_parts", "64x64x128", "blocks", "bfloat16", 2e-6, 0.5, 0.01, None,
                           None)
    assert scaled_bench.line(row) == (
        "64x64x128 two_parts (blocks, bfloat16): 0 TFLOP/s, 2.0 µs, clock not read, spread 1.0%")


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        scaled_bench.main(["128"])
    assert ended.value.code == 2
    assert "no GPU here" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize("scaling", ["blocks", "vector", "tensor"])
def test_it_measures_on_a_gpu(scaling, capsys):
    assert scaled_bench.main(["512x1024x1024", "--scaling", scaling, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [json.loads(line) for line in lines if not line.startswith("#")]
    assert any(row["name"].startswith("cublasLt") for row in rows), lines
    assert all(row["seconds"] > 0 for row in rows) and len(rows) > 3
