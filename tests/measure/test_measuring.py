"""The parts of measuring that need no GPU: ncu's output, marks, spreads, cuBLAS's version."""

from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from lib.kernels.catalogue import CATALOGUE
from lib.measure import bench, counters, launch, ncu, timeline
from lib.problem import Problem, WrongResult
from lib.show.fp8_errors import COMPARED, DEPTHS, SIGNS, STEM
from tests import built

HEADER = '"ID","Kernel Name","a.sum","memory_l1","b.pct","gpu__time_duration.sum"'
UNITS = '"","","sector","","%","ns"'
METRICS = {"sectors": "a.sum", "wavefronts": "memory_l1", "busy": "b.pct",
           "nanoseconds": "gpu__time_duration.sum", "missing": "c.sum"}


def report(*rows):
    """What ncu prints, with its own lines before the table."""
    return "\n".join(["==PROF== Connected", HEADER, UNITS, *rows]) + "\n"


def test_one_launch_is_read():
    rows = ncu.rows(report('"0","naive","1,048,576","12","49.5","100"'))
    found = counters.parse(rows, METRICS)
    assert found == {"sectors": 1048576, "wavefronts": 12, "busy": 49.5, "nanoseconds": 100}


def test_sums_add_up_over_launches_and_percentages_are_the_longest_one_s():
    rows = ncu.rows(report('"0","gemm","10","1","90","1000"', '"1","splitK","5","2","10","100"'))
    found = counters.parse(rows, METRICS)
    assert found == {"sectors": 15, "wavefronts": 3, "busy": 90, "nanoseconds": 1100}


def test_a_launch_that_ncu_did_not_see_is_said(monkeypatch):
    seen = []
    monkeypatch.setattr(counters.device, "cupy", lambda: None)
    monkeypatch.setattr(counters, "asked", lambda: {"sectors": "a.sum"})
    monkeypatch.setattr(ncu, "profile", lambda *_: seen)
    names = ["01_naive/coalesced", "02_shared_tile/tile32"]
    for sectors in ("5", "7"):
        with pytest.raises(ncu.ProfilerMissing, match=rf"{len(seen)} launches, not 2"):
            counters.of_several(names, (64, 64, 64))
        seen += ncu.rows(report(f'"0","gemm","{sectors}","1","9","10"'))
    assert counters.of_several(names, (64, 64, 64)) == [{"sectors": 5}, {"sectors": 7}]


def test_the_candidates_of_cublaslt_are_counted_from_0(monkeypatch):
    launched = []
    stream = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(launch.device, "cupy", lambda: SimpleNamespace(
        asarray=np.asarray, cuda=SimpleNamespace(get_current_stream=lambda: stream)))
    monkeypatch.setattr(launch.cublaslt, "candidates", lambda problem, *first: [
        SimpleNamespace(gemm=lambda *_, place=place: launched.append(place)) for place in (0, 1)])
    launch.launch_once(None, Problem(8, 8, 8), candidate=1)
    assert launched == [1]
    with pytest.raises(ValueError, match="offers 2 candidates"):
        launch.launch_once(None, Problem(8, 8, 8), candidate=2)


@pytest.mark.parametrize("output", ["==ERROR== nothing", report()])
def test_no_profiled_kernel_is_said(output):
    with pytest.raises(ncu.ProfilerMissing, match="profiled no kernel"):
        ncu.rows(output)


def test_every_counter_of_the_emulator_has_a_name_at_ncu():
    from lib import ptx

    assert set(counters.EMULATED) == set(ptx.Trace(None, None).counters())


def overview(*rows):
    return np.array(rows, dtype=np.uint64)


def test_two_blocks_of_one_sm_that_ran_together_are_chosen():
    other = timeline.SM + 1
    blocks = overview((other, 0, 90), (timeline.SM, 10, 50), (timeline.SM, 60, 80),
                      (timeline.SM, 12, 70))
    assert timeline._pair_on_one_sm(blocks) == [1, 3]


def test_one_block_alone_is_enough():
    assert timeline._pair_on_one_sm(overview((timeline.SM, 5, 9), (timeline.SM, 20, 30))) == [0]


def events(*warps):
    """Marks as the device writes them: {clock, phase} pairs, zeros where none was noted."""
    made = np.zeros((len(warps), 4, 2), dtype=np.uint32)
    for warp, marks in enumerate(warps):
        for place, (phase, clock) in enumerate(marks):
            made[warp, place] = (clock & 0xFFFFFFFF, phase)
    return made


def test_marks_are_counted_from_the_first_of_all_though_the_clock_wraps():
    near_end = 2**32 - 10
    blocks = timeline._relative({
        3: events([(0, near_end), (1, near_end + 30)], [(0, near_end + 5)]),
        8: events([(0, near_end - 4), (5, near_end + 100)], []),
    })
    assert [block.block for block in blocks] == [3, 8]
    assert blocks[0].warps == (((0, 4), (1, 34)), ((0, 9),))
    assert blocks[1].warps == (((0, 0), (5, 104)),)


def test_the_overview_counts_from_the_first_block_s_start():
    assert timeline._relative_overview(overview((4, 1000, 1900), (5, 1200, 2000))) == [
        (4, 0, 900), (5, 200, 1000),
    ]


def test_phases_are_those_of_the_header():
    text = (timeline.CUDA / "include" / "timeline.cuh").read_text()
    names = text.split("enum Phase {")[1].split("}")[0].replace(" ", "").lower().split(",")
    assert tuple(names) == timeline.PHASES


def test_the_rival_is_recorded_on_each_type_and_layout():
    from lib.measure import cublas

    for name, (dtype, out, layout) in {
        "fp32": ("float32", "float32", "row"), "fp16": ("float16", "float32", "row"),
        "fp16_out": ("float16", "float16", "row"),
        "bf16_column": ("bfloat16", "bfloat16", "column"),
    }.items():
        problem = cublas.problem(name, 4, 5, 6, 0.5, -2.0)
        assert (problem.dtype, problem.out, problem.b_layout) == (dtype, out, layout)
        assert (problem.shape, problem.alpha, problem.beta) == ("4x5x6", 0.5, -2.0)
        assert cublas.name_of(problem) == name
    with pytest.raises(ValueError, match="bfloat16 to float32"):
        cublas.name_of(Problem(4, 5, 6, dtype="bfloat16"))
    with pytest.raises(ValueError, match="'fp8'; known: fp32, fp16"):
        cublas.problem("fp8", 4, 5, 6)


LISTING = """
Device NVIDIA H100 80GB HBM3 (GH100)
------------------------------------------ ---------- ---------------------------------
Metric Name                                Metric Type Metric Unit
l1tex__data_pipe_lsu_wavefronts_mem_shared Counter     # of data-stage wavefronts processed
  smsp__inst_executed_op_ldgsts            Counter     inst
"""


def test_names_of_metrics_are_read_from_ncu_s_listing(monkeypatch):
    monkeypatch.setattr(ncu, "_run", lambda *_: LISTING)
    assert ncu.available() == {
        "l1tex__data_pipe_lsu_wavefronts_mem_shared", "smsp__inst_executed_op_ldgsts",
    }


def test_a_metric_that_this_ncu_does_not_list_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(counters.ncu, "available", lambda: {"smsp__inst_executed_pipe_alu"})
    counters.asked.cache_clear()
    try:
        asked = counters.asked()
    finally:
        counters.asked.cache_clear()
    assert asked["pipe_alu"] == "smsp__inst_executed_pipe_alu.sum" and "pipe_xu" not in asked
    assert set(counters.ALL) < set(asked) and not set(counters.ALL) & set(counters.ISSUE)


def test_several_variants_are_profiled_under_one_ncu(monkeypatch):
    def profile(metrics, command, kernel):
        assert command[:2] == ["launch", "01_naive/coalesced,swapped"]
        return [{name: str(place) for name in metrics} for place in range(4)]

    monkeypatch.setattr(counters.device, "cupy", lambda: None)
    monkeypatch.setattr(counters.ncu, "profile", profile)
    monkeypatch.setattr(counters, "asked", lambda: counters.ALL)
    found = counters.of_variants("01_naive", ["coalesced", "swapped"], [(8,) * 3, (9,) * 3])
    assert [row["cycles"] for row in found["coalesced"]] == [0, 1]
    assert [row["cycles"] for row in found["swapped"]] == [2, 3]
    with pytest.raises(ncu.ProfilerMissing, match="4 launches of 01_naive, not 2"):
        counters.of_variants("01_naive", ["coalesced", "swapped"], [(8,) * 3])


@pytest.mark.parametrize("said, status", [("==ERROR== ERR_NVGPUCTRPERM - denied", 1),
                                          ("==ERROR== ERR_NVGPUCTRPERM - denied", 0)])
def test_who_may_not_read_counters_is_told_the_two_ways(monkeypatch, said, status):
    done = SimpleNamespace(stdout=said, stderr="", returncode=status)
    monkeypatch.setattr(ncu.shutil, "which", lambda name: "/ncu")
    monkeypatch.setattr(ncu.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(ncu.ProfilerMissing, match="run as root.*NVreg_RestrictProfilingToAdmin"):
        ncu.available()


def test_cycles_are_of_the_rival_that_was_faster(monkeypatch):
    asked = []

    def profile(metrics, command, kernel=None):
        asked.append(command)
        row = {name: "100" for name in metrics} | {"Kernel Name": "a"}
        mark = {**row, "Kernel Name": "void busy<(int)1>(unsigned long long)"}
        return [mark, row, row] if kernel is None else [row]

    monkeypatch.setattr(counters.device, "cupy", lambda: None)
    monkeypatch.setattr(counters.ncu, "profile", profile)
    kernel, rival = CATALOGUE["01_naive"], built.parsed_row().rival
    rival = structs.replace(rival, best=structs.replace(rival.best, place=5))
    problem = Problem(64, 64, 64)
    found = counters.cycles(kernel, kernel.variants[0], problem, rival)
    assert found == counters.Cycles(100, 200)  # of a product split into two kernels
    assert asked[1][:4] == ["launch", "cublas/fp32", "--shape", "64x64x64"]
    assert asked[1][-2:] == ["--candidate=5", "--apart"]
    counters.cycles(kernel, kernel.variants[0], problem, structs.replace(rival, best=None))
    assert "--candidate=-1" in asked[3]

    def refused(*_, **__):
        raise ncu.ProfilerMissing(ncu.FORBIDDEN)

    monkeypatch.setattr(counters.ncu, "profile", refused)
    cycles = counters.cycles(kernel, kernel.variants[0], problem, rival)
    assert "cycles are not read: the driver lets only" in cycles.why_not


def _calibrated(monkeypatch, rows):
    """What `calibration.measure` makes of an ncu that saw these launches."""
    from lib.measure import calibration

    monkeypatch.setattr(calibration.device, "cupy", lambda: None)
    monkeypatch.setattr(calibration.device, "arch", lambda: "sm_90a")
    monkeypatch.setattr(calibration.ncu, "available", lambda: {"l1tex__t_requests"})
    monkeypatch.setattr(calibration.ncu, "profile", lambda *_, **__: rows)
    monkeypatch.setattr(calibration, "errors_by_depth", lambda stem, name, signs, backend: [
        (K, float(f"{K}e-9")) for K in DEPTHS if (stem, backend) == (STEM, "gpu")])
    return calibration.measure()


def test_each_launch_of_the_calibration_set_is_given_to_its_pattern(monkeypatch):
    from lib.measure.patterns import patterns

    rows = [
        {"Kernel Name": f"void {p.access}(unsigned char *)", "memory_l1_wavefronts_shared": str(i)}
        for i, p in enumerate(patterns())
    ]
    made = _calibrated(monkeypatch, rows)
    assert made.metrics == ["memory_l1_wavefronts_shared"]  # the others are not in every row
    assert [row.counts for row in made.patterns.values()] == [(i,) for i in range(len(rows))]
    assert list(made.patterns) == [p.name for p in patterns()]
    assert [(row.kernel, row.signs, row.K, row.error) for row in made.sums] == [
        (f"{STEM}/{name}", signs, K, float(f"{K}e-9"))
        for name in COMPARED for signs in SIGNS for K in DEPTHS]
    with pytest.raises(ncu.ProfilerMissing, match="saw 1 launches"):
        _calibrated(monkeypatch, rows[:1])
    with pytest.raises(ncu.ProfilerMissing, match="where nothing<false>: baseline"):
        _calibrated(monkeypatch, rows[::-1])


def test_a_wrong_result_is_not_timed(monkeypatch):
    monkeypatch.setattr(bench.device, "cupy", lambda: np)
    problem = Problem(8, 8, 8)
    A, B, C = problem.inputs(0, np)
    reference = problem.reference(A, B, C)

    def product(index, more=0.0):
        C[...] = A @ B + more

    bench.refuse_wrong("right", product, problem, (A, B, C), reference)
    for name, wrong in (("off", lambda index: product(index, 1.0)), ("idle", lambda index: None)):
        with pytest.raises(WrongResult, match=f"{name} at 8x8x8: wrong.*not timed"):
            bench.refuse_wrong(name, wrong, problem, (A, B, C), reference)
