"""Waits that are there and too weak: what is told names the wait, not a write that is missing."""

import numpy as np
import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from lib.ptx import advice

from ..conftest import s32s

SOURCE = r"""
#include "asm.cuh"
extern "C" __global__ void groups(const int* x, int* y)
{
    __shared__ alignas(16) int s[2][128];
    const int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        copy16(&s[i][4 * t], &x[128 * i + 4 * t]);
        commit();
    }
    wait<KEEP>();
    __syncthreads();
    y[t] = s[1][127 - t];
}
extern "C" __global__ void parity(const int* x, int* y)
{
    __shared__ Barrier bar;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&bar, 1);
        fence_init();
        arrive_expecting(&bar, 128);
        bulk_load(s, x, 128, &bar);
    }
    __syncthreads();
    wait_for(&bar, KEEP);
    y[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void stored(const int* x, int* y)
{
    __shared__ alignas(16) int s[32];
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                     ::"l"(y), "r"(shared_address(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        if (KEEP)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        else
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    y[32 + threadIdx.x] = ((volatile int*)y)[31 - threadIdx.x];
}
"""


def launched(kernel: str, weak: int, landing: str = "late", **options):
    options_of = [f"-I{ROOT / 'cuda' / 'zoo'}", f"-DKEEP={weak}"]
    module = RawModule(code=SOURCE, options=options_of, arch="sm_90a")
    x, y = np.arange(256, dtype=np.int32), s32s(64)
    return module.get_function(kernel)(1, 32, (x, y), landing=landing, trace=False, **options)


@pytest.mark.parametrize("kernel, named", [
    ("groups", "cp.async.wait_group N leaves the newest N groups on their way"),
    ("parity", "with the parity of the phase that it completes, 0 for the first"),
])
def test_a_read_while_the_copy_is_on_its_way_names_the_copy_and_its_wait(kernel, named):
    launched(kernel, 0)
    with pytest.raises(ptx.UninitialisedRead) as stopped:
        launched(kernel, 1)
    (note,) = (note for note in stopped.value.__notes__ if note.startswith("What to do"))
    before = SOURCE[: SOURCE.index({"groups": "copy16", "parity": "bulk_load"}[kernel])]
    line = 1 + before.count("\n")
    assert named in note and f"the copy at module.cu:{line}" in note
    assert "is on its way at that moment" in note and "write the memory" not in note


@pytest.mark.parametrize("kernel, named", [
    ("groups", "of N, the newest N groups are not waited for"),
    ("stored", "with .read it waits for the source to be read, not for the result"),
])
def test_a_race_with_a_copy_names_what_its_wait_lacks(kernel, named):
    assert not launched(kernel, 0, "early", races=True).hazards
    found = launched(kernel, 1, "early", races=True).hazards
    assert any(named in advice.for_hazard(hazard) for hazard in found if hazard.kind == "race")


def test_memory_that_nobody_writes_is_told_as_before():
    source = """extern "C" __global__ void k(int* y)
    {
        __shared__ volatile int s[32];
        if (threadIdx.x == 5) s[5] = 1;
        y[threadIdx.x] = s[threadIdx.x];
    }"""
    with pytest.raises(ptx.UninitialisedRead) as stopped:
        RawModule(code=source).get_function("k")(1, 32, (s32s(32),))
    assert any("write the memory on every path" in note for note in stopped.value.__notes__)
