"""What only a GPU can show of measuring: that the row of a real benchmark is one of a record."""

import pytest
from msgspec import convert

from lib.kernels.catalogue import CATALOGUE
from lib.measure import bench, counters, cublas, cublaslt, plan, record
from lib.records.journal import Journal
from lib.records.schema import Row
from lib.run import device
from tests.built import CHUNK

pytestmark = pytest.mark.gpu
NAIVE = CATALOGUE["01_naive"]


def test_a_benchmark_is_a_row_of_a_record():
    variant = NAIVE.variants[0]
    row = bench.bench(NAIVE, variant, variant.problem(512, 512, 512))
    convert({**row, "chunk": CHUNK}, Row)
    assert row["ratio"] < 1 and len(row["series"]) == 5
    assert (row["rival"]["best"] is None) == (cublaslt.binding() is None)


def test_candidates_of_a_rule_are_tried_as_cublas_s_are():
    kernel = CATALOGUE["21_every_shape"]
    variant = kernel.variants[0]
    if why := device.why_not(kernel, variant):
        pytest.skip(why)
    for shape in ((512, 256, 1024), (70, 33, 75)):
        row = bench.bench(kernel, variant, variant.problem(*shape))
        convert({**row, "chunk": CHUNK}, Row)
        assert row["trials"]["of"] == bench.TRIALS
        # The rule's own choice is among them, and noise is far below this.
        assert row["trials"]["seconds"] < 1.2 * row["seconds"]
        assert "trials" not in bench.bench(kernel, variant, variant.problem(*shape), exact=True)


@pytest.mark.parametrize("name", cublas.PROBLEMS)
def test_every_candidate_computes_the_product(name):
    if cublaslt.binding() is None:
        pytest.skip(cublaslt.MISSING)
    contest = bench.Contest(cublas.problem(name, 256, 384, 128))
    offered = cublaslt.candidates(contest.problem)
    assert offered and contest.rival.about["candidates"] > 0
    assert cublaslt.default_kernels(contest.problem, *contest.copies[0])


def test_a_unit_of_counters_is_measured_apart():
    try:
        found = record.measure(
            plan.Unit(plan.COUNTERS, "cublas", ("fp32",), None, "", 1.0), CHUNK,
            Journal(record.ROOT / "no-such-journal"))
    except counters.ProfilerMissing as error:
        pytest.skip(str(error))
    kept = found["variants"]["fp32"]
    assert "counters_missing" in kept or all(row["metrics"]["cycles"] for row in kept["counters"])
