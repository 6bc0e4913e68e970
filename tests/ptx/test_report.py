"""What is printed of a launch: hazards by lines of the source, counters by lines of the source."""

from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.ptx import advice
from lib.ptx.count.trace import Site
from lib.ptx.report import (
    MAX_FINDINGS,
    by_line,
    document,
    grouped,
    hazard_lines,
    own_place,
    verdicts,
)

from .conftest import compile_text, f32s, function_of, s32s

SOURCE = r"""
__device__ __forceinline__ float twice(const float* p)
{
    return 2.0f * *p;
}

extern "C" __global__ void turn(const float* a, float* b, int n)
{
    __shared__ float s[32][32];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
        s[threadIdx.y][threadIdx.x] = twice(&a[i * 1024 + threadIdx.y * 32 + threadIdx.x]);
        b[i * 1024 + threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
    }
}
"""


@cache
def launched(source: str = SOURCE, races: bool = True, lineinfo: bool = True) -> ptx.Launch:
    text = compile_text(source, lineinfo=lineinfo, filename="turn.cu")
    a, b = np.arange(2**14, dtype=np.float32), f32s(2**14)
    return function_of(text, "turn")(1, (32, 32), (a, b, np.int32(4)), races=races)


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def test_one_missing_barrier_is_two_findings_however_far_the_loop_is_unrolled():
    launch = launched()
    store, load = (f"turn.cu:{line_of(text)}" for text in ("s[threadIdx.y]", "s[threadIdx.x]"))
    findings = launch.findings
    assert findings == grouped(launch.hazards)
    assert {(f.kind, f.first, f.second) for f in findings} == {
        ("race", store, load), ("race", load, store),
    }
    counted, said = [f.pairs for f in findings], str(launch)
    assert sum(counted) == len(launch.hazards) > 2
    assert said.startswith("kernel 'turn' ran to its end; races: 2 found:")
    for finding in findings:
        assert said.count(f"{finding}\n") == 1 and f"{finding.pairs} pairs" in str(finding)
        assert finding.example.message in said
    assert said.count(" and PTX line ") == 2  # one example each
    assert [each["pairs"] for each in document(launch)["hazards"]] == counted


def test_without_lines_of_the_source_not_every_pair_is_told():
    unrolled = SOURCE.replace("i < 4", "i < 16")
    launch = launched(unrolled, lineinfo=False)
    assert "turn.cu" not in str(launch) and "PTX line" in str(launch)
    findings = launch.findings
    assert len(findings) > MAX_FINDINGS and {f.pairs for f in findings} == {1}
    rows = hazard_lines(findings, launch.sources)
    assert rows[-1] == f"and {len(findings) - MAX_FINDINGS} more, between other lines"
    assert sum(row.startswith("race: ") for row in rows) == MAX_FINDINGS
    assert f"; races: {len(findings)} found:" in str(launch) and f"  {rows[-1]}" in str(launch)
    assert len(document(launch)["hazards"]) == len(findings)
    assert hazard_lines(launched(races=False).findings, launch.sources) == []


def test_counters_stand_beside_the_lines_that_asked():
    lines = {(line.place, line.kind): line for line in by_line(launched().trace.sites)}
    read = lines[f"turn.cu:{line_of('return 2.0f')}", "load"]
    assert (read.requests, read.sectors, read.lanes) == (128, 512, 4096)
    column = lines[f"turn.cu:{line_of('= s[threadIdx.x]')}", "load"]
    assert (column.wavefronts, column.ideal) == (4096, 128)
    row = next(r for r in str(launched()).splitlines() if "global store" in r).split()
    assert row[0] == f"turn.cu:{line_of('= s[threadIdx.x]')}" and row[3:] == ["128", "512", "4.00"]


def test_what_was_not_looked_for_is_said():
    sound = SOURCE.replace("        b[i", "        __syncthreads();\n        b[i").replace(
        "y];\n    }", "y];\n        __syncthreads();\n    }")
    launch = launched(sound)
    # Of 1,024 threads in four turns: a load and a store in global memory, and in shared memory.
    assert launch.looked_at == 1024 * 4 * 4
    assert "; races: none found, 16,384 accesses looked at." in str(launch)
    assert document(launch)["verdicts"] == {"races": "none found, 16,384 accesses looked at"}
    assert "; races: not looked for." in str(launched(sound, races=False))


def test_a_hazard_that_is_no_race_has_a_verdict_of_its_own():
    halves = 'if (threadIdx.x < 16) { __syncthreads(); } else asm("bar.sync 0;");'
    divergent = SOURCE.replace("        b[i", f"        {halves}\n        b[i")
    launch = launched(divergent, races=False)
    assert verdicts(launch) == {"races": "not looked for", "other hazards": "1 found"}
    assert "; races: not looked for; other hazards: 1 found:" in str(launch)


def test_an_access_in_a_header_of_cuda_is_told_where_it_was_called():
    header, own, helper = ("/cuda/include/mma.hpp", 9), ("/me/gemm.cu", 40), ("/me/lib/t.cuh", 3)
    assert own_place([header, own], "/me/gemm.cu") == own
    assert own_place([header, helper, own], "/me/gemm.cu") == helper
    assert own_place([("mma.hpp", 9), ("gemm.cu", 4)], "gemm.cu") == ("gemm.cu", 4)
    sites = [Site(i, header, "ld.shared.b32", "load", "shared", 4, requests=2, callers=(own,))
             for i in range(3)]
    (line,) = by_line(sites)
    assert (line.place, line.requests) == ("gemm.cu:40", 6)


def test_an_inlined_access_is_told_with_the_line_that_called_it():
    source = r"""
__device__ void put(int* p, int i) { p[i] = i; }
extern "C" __global__ void late(int* out)
{
    __shared__ int s[64];
    put(s, threadIdx.x);
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""
    text = compile_text(source, lineinfo=True, filename="late.cu")
    out = s32s(64)
    launch = ptx.Module(text, sources={"late.cu": source}).get_function("late")(
        1, 64, (out,), races=True)
    assert "late.cu:7:  out[threadIdx.x] = s[63" in str(launch)
    assert "late.cu:2:" in str(launch) and "(called from late.cu:6)" in str(launch)
    (hazard,) = document(launch)["hazards"]
    assert hazard["called_from"] == [["late.cu:6"], []] and "syncthreads" in hazard["advice"]


def test_multiply_adds_stand_at_their_line():
    source = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y)
{
    y[threadIdx.x] += a * x[threadIdx.x];
}
"""
    text = compile_text(source, lineinfo=True, filename="axpy.cu")
    x, y = np.ones(40, np.float32), np.ones(40, np.float32)
    launch = function_of(text, "axpy")(1, 40, (np.float32(2), x, y))
    (line,) = (line for line in document(launch)["lines"] if line["kind"] == "fma")
    assert (line["place"], line["lanes"]) == ("axpy.cu:4", 40)
    (row,) = (row for row in str(launch).splitlines() if "multiply-add" in row)
    assert row.split() == ["axpy.cu:4", "multiply-add", "40"]


FAULTY = r"""
extern "C" __global__ void past(int* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = n;
}
"""


def faulty(**options):
    text = compile_text(FAULTY, lineinfo=True, filename="past.cu")
    x = s32s(96)
    return x, ptx.Module(text, sources={"past.cu": FAULTY}).get_function("past")(
        4, 32, (x, np.int32(7)), **options)


def test_an_error_carries_its_line_and_what_to_do():
    with pytest.raises(ptx.OutOfBounds, match="kernel 'past'.*past.cu:5.*block") as error:
        faulty()
    notes = error.value.__notes__
    assert notes[0] == "There: x[i] = n;" and notes[1].startswith("What to do: guard the access")


def test_a_launch_can_go_on_after_an_error():
    x, launch = faulty(go_on=True)
    assert (x == 7).all() and len(launch.errors) == 1 and not launch.clean
    said = str(launch)
    assert "was stopped" in said and "OutOfBounds" in said and "There: x[i] = n;" in said
    assert document(launch)["ended"] == "stopped"


@pytest.mark.parametrize("kind", [
    "warning", "barrier divergence", "exited before barrier", "barrier reached twice",
    "missing proxy fence", "one address",
    "shuffle from a missing lane",
    "missing wgmma.fence", "wgmma in flight", "mbarrier", "block exited",
    "tensor memory in flight", "missing tcgen05.fence", "tensor memory", "launch control",
])
def test_there_is_advice_for_every_kind_of_hazard(kind):
    assert advice.for_hazard(ptx.Hazard(kind, ""))


@pytest.mark.parametrize("kind", [
    error for error in vars(ptx).values()
    if isinstance(error, type) and issubclass(error, ptx.Error) and error is not ptx.Error
])
def test_there_is_advice_for_every_error(kind):
    assert advice.for_error(kind("something"))


WRAPPED = """
#line 1 "copies.cuh"
__device__ __forceinline__ void put(volatile float* s, int i, float v) { *(float*)(s + i) = v; }
__device__ __forceinline__ float get(const float* s, int i) { return s[i]; }
#line 1 "gemm.cu"
extern "C" __global__ void turn(float* out)
{
    __shared__ float s[64];
    put(s, threadIdx.x, 1.0f);
    out[threadIdx.x] = get(s, threadIdx.x ^ 32);
}
"""


def test_both_sides_of_a_hazard_name_the_line_that_called_a_wrapper():
    text = compile_text(WRAPPED, lineinfo=True, filename="gemm.cu")
    launch = function_of(text, "turn")(1, 64, (f32s(64),), races=True)
    (finding,) = launch.findings
    message = finding.example.message
    assert "CUDA gemm.cu:4, inlined from copies.cuh:1, by block (0, 0, 0) warp" in message
    assert "CUDA gemm.cu:5, inlined from copies.cuh:2, by block (0, 0, 0) warp" in message
    assert document(launch)["hazards"][0]["called_from"] == [["gemm.cu:4"], ["gemm.cu:5"]]


