"""26 against cublasLt: how its inputs are drawn, what a row says; on a GPU, that it measures."""

import json

import numpy as np
import pytest

from lib.kernels.scaled import DTYPE, ScaledProblem, numpy_dtype
from lib.measure import scaled_bench
from lib.run import device, scaled


def test_numbers_are_rounded_as_ml_dtypes_does():
    values = np.random.default_rng(1).random(20000, np.float32) * 2 - 1
    wanted = values.astype(numpy_dtype(DTYPE))
    found = scaled_bench.rounded(values)
    assert (found == wanted.view(np.uint8)).mean() > 0.999  # ties may go the other way
    np.testing.assert_allclose(scaled_bench.decoded(found), wanted.astype("f4"), rtol=2**-3,
                               atol=2**-10)


def test_drawn_operands_are_the_problem_s():
    problem = ScaledProblem(40, 64, 272)
    given = scaled_bench.draw(problem, 3)
    assert given.A.dtype == given.B.dtype == np.uint8
    exact = given._replace(A=scaled_bench.decoded(given.A), B=scaled_bench.decoded(given.B))
    reference = problem.reference(exact)
    encoded = given._replace(A=given.A.view(numpy_dtype(DTYPE)),
                             B=given.B.view(numpy_dtype(DTYPE)))
    done = scaled.run(problem, backend="emulator", given=encoded)
    assert done.verdict.ok and problem.judge(done.C, reference).ok
    assert 0.5 <= given.scale_a.min() and given.scale_a.max() <= 2


def test_a_row_says_what_was_timed():
    row = scaled_bench.Row("two_parts", "64x64x128", "blocks", "bfloat16", 2e-6, 0.5, 0.01, None,
                           None, 1e-3)
    assert scaled_bench.told(row) == (
        "64x64x128 two_parts (blocks, bfloat16): 0 TFLOP/s, 2.0 µs, clock not read, spread 1.0%, "
        "error 1.0e-03")


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
