"""26 against cublasLt: what a row says; on a GPU, that it measures."""

import json

import pytest

from lib.dispatch.fit import refusal
from lib.dispatch.scaled import suited
from lib.kernels.scaled import ScaledProblem
from lib.measure import scaled_bench
from lib.run import device


def test_a_row_says_what_was_timed():
    row = scaled_bench.Row("two_parts", "64x64x128", "blocks", "bfloat16", 2e-6, 0.5, 0.01, None,
                           None)
    assert scaled_bench.line(row) == (
        "64x64x128 two_parts (blocks, bfloat16): 0 TFLOP/s, 2.0 µs, clock not read, spread 1.0%")


def test_a_verdict_names_the_fastest_the_rule_s_and_what_was_asked():
    problem = ScaledProblem(4096, 4096, 4096)
    took = {"two_parts": 2.0, "tall_pairs": 1.25, "staggered": 1.0, "cublasLt blocks": 1.1,
            "cublasLt tensor": 0.9}
    rows = [scaled_bench.Row(name, problem.shape, "blocks", "bfloat16", seconds, 1.0, 0.0, None,
                             None) for name, seconds in took.items()]
    assert scaled_bench.verdict(problem, rows, 1.05) == (
        "4096x4096x4096 by blocks: staggered is 1.100 of cublasLt's best; 1.05 is reached; the "
        "rule's, tall_pairs, is 0.880")
    assert "1.15 is missed" in scaled_bench.verdict(problem, rows, 1.15)
    assert scaled_bench.verdict(problem, rows[:3]).endswith("nothing to compare")


def test_what_is_timed_takes_the_problem_and_includes_the_rule_s():
    for shape, scaling, _ in scaled_bench.ASKED:
        problem = ScaledProblem(*shape, scaling=scaling)
        fewer, more = (scaled_bench.of_ours(problem, menu=menu) for menu in (False, True))
        assert {suited(problem).name} < {one.name for one in fewer} <= {one.name for one in more}
        assert not any(refusal(one, problem) for one in more)
        took = {one.name: scaled_bench.cost.cycles(one, problem, scaled_bench.H100) for one in more}
        bound = scaled_bench.WORTH * min(took[one.name] for one in fewer)
        assert all(took[one.name] <= bound for one in more if one not in fewer)


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
