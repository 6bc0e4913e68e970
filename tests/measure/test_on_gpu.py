"""What only a GPU can show of measuring: that the row of a real benchmark is one of a record."""

import pytest
from msgspec import convert, to_builtins

from lib import gpus
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.measure import bench, counters, cublas, cublaslt, probe, record, tasks
from lib.measure.energy import sustained
from lib.measure.probe import clock
from lib.measure.sensors import nvml, why_not
from lib.problem import Problem
from lib.records.schema import Row
from lib.run import device
from tests.built import CHUNK

pytestmark = pytest.mark.gpu
NAIVE = CATALOGUE["01_naive"]


def test_a_benchmark_is_a_row_of_a_record():
    variant = NAIVE.variants[0]
    row = bench.bench(NAIVE, variant, variant.problem(512, 512, 512))
    convert(to_builtins(Row.of(row, CHUNK)), Row)
    assert row.ratio < 1 and len(row.series) == len(row.clock.series_mhz) == 5
    assert (row.rival.best is None) == (cublaslt.binding() is None)


def test_candidates_of_a_rule_are_tried_as_cublas_s_are():
    kernel = KERNELS["hopper"]
    variant = kernel.variants[0]
    if why := device.why_not(kernel, variant):
        pytest.skip(why)
    for shape in ((512, 256, 1024), (70, 33, 75)):
        row = bench.bench(kernel, variant, variant.problem(*shape))
        convert(to_builtins(Row.of(row, CHUNK)), Row)
        assert row.trials.of == bench.TRIALS
        # The rule's own choice is among them, and noise is far below this.
        assert row.trials.seconds < 1.2 * row.seconds
        exact = bench.bench(kernel, variant, variant.problem(*shape), exact=True)
        assert exact.trials is None


@pytest.mark.parametrize("name", cublas.PROBLEMS)
def test_every_candidate_computes_the_product(name):
    if cublaslt.binding() is None:
        pytest.skip(cublaslt.MISSING)
    contest = bench.Contest(cublas.problem(name, 256, 384, 128))
    offered = cublaslt.candidates(contest.problem)
    assert offered and contest.rival.about.candidates > 0
    assert cublaslt.default_kernels(contest.problem, *contest.copies[0])


def test_counters_are_measured_apart():
    try:
        found = record.measure(tasks.Task(tasks.COUNTERS, "cublas", ("fp32",)), CHUNK, None)
    except counters.ProfilerMissing as error:
        pytest.skip(str(error))
    found_fp32 = found["fp32"]
    assert found_fp32.missing or all(row.metrics["cycles"] for row in found_fp32.counters)


def test_the_probe_s_clock_is_below_the_data_sheet_s_and_nvml_agrees_while_it_is_steady():
    """An FP32 product draws too little for the cap, so the clock stands still, and NVML can say it.
    """
    sensors = nvml()
    if sensors is None:
        pytest.skip(why_not())
    variant = NAIVE.variants[0]
    contest = bench.Contest(variant.problem(2048, 2048, 2048))
    player, _ = contest.player(NAIVE, variant)
    player.keep(0.5)
    launches = max(int(0.2 / player.once()), 1)
    for _ in range(5):
        read = []

        def queued(read=read):
            for _ in range(launches):
                player._queue(1)
            read.append(sensors._nvml.nvmlDeviceGetClockInfo(  # while the GPU is at it
                sensors._handle, sensors._nvml.NVML_CLOCK_SM))

        found = clock([[bench.probed(queued, launches)]])
        assert found.sms >= device.sms() - 2, "SMs without a block in one of the probes"
        assert found.outside < 0.01 and found.error < 1e-3
        assert found.mhz == pytest.approx(read[0], rel=0.01)
        assert found.mhz < 1.02 * gpus.find(device.name()).clock_hz / 1e6


def test_the_timer_s_tick_is_a_microsecond_at_most():
    assert 0 < probe.tick() <= 2048


def test_no_sm_does_more_in_a_cycle_than_its_pipe():
    for dtype in ("float32", "float16"):
        contest = bench.Contest(Problem(4096, 4096, 4096, dtype=dtype, out="float32"))
        rival = contest.cublas()
        rival.keep(0.5)
        found = clock([[rival.take(5)]])
        done = contest.problem.flops / (found.cycles * device.sms())
        assert 0.3 < done / gpus.find(device.name()).flops_per_cycle(dtype) <= 1.0


def test_a_sustained_run_says_what_the_board_draws():
    counter = nvml()
    if counter is None or counter.joules() is None:
        pytest.skip("no energy counter")
    contest = bench.Contest(Problem(4096, 4096, 4096, dtype="float16", out="float32"))
    found = sustained(contest.cublas(), contest.cublas(), counter, contest.problem.flops)
    limit = gpus.find(device.name()).board_watts
    assert found.idle_w < found.own.watts < 1.05 * limit
    # The same kernel on both sides: what differs is noise.
    assert found.ratio == pytest.approx(1.0, abs=0.03)
    assert found.own.joules == pytest.approx(found.cublas.joules, rel=0.05)
    assert found.own.joules_error < 0.05
