"""Mistakes by somebody who had not read the detector: found, with their own cause and cure."""

import numpy as np
import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from lib.ptx import advice

from ..conftest import s32s

HEAD = '#include "asm.cuh"\nextern "C" __global__ void k(const int* x, int* y)\n'


def launched(body: str, threads: int = 64, arch: str = "sm_90a", shared: int = 0, **settings):
    """Launch a kernel of two arrays of 64 integers."""
    kernel = RawModule(code=HEAD + body, options=[f"-I{ROOT / 'cuda' / 'zoo'}"],
                       arch=arch).get_function("k")
    x = np.arange(64, dtype=np.int32)
    return kernel((1,), (threads,), (x, s32s(96)), shared, **settings)


def raised(body: str, **settings) -> tuple[ptx.Error, str]:
    with pytest.raises(ptx.Error) as caught:
        launched(body, **settings)
    return caught.value, "\n".join(caught.value.__notes__)


@pytest.mark.parametrize("threads, whole", [(64, True), (96, False), (128, True)])
def test_more_threads_than_a_named_barrier_counts_come_to_its_next_turn(threads, whole):
    body = """{
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[threadIdx.x % 96] = 1;
    }"""
    if whole:
        launched(body, threads)
        return
    error, _ = raised(body, threads=threads)
    assert isinstance(error, ptx.Deadlock) and "Barrier 1 has 32 of 64 threads" in str(error)


@pytest.mark.parametrize("between, clean", [("", False), ("__syncthreads();", True)])
def test_every_warp_that_uses_an_mbarrier_knows_of_its_initialisation(between, clean):
    launch = launched("""{
        __shared__ Barrier b;
        if (threadIdx.x == 0) init(&b, 64);
        BETWEEN
        arrive(&b);
        wait_for(&b, 0);
        y[threadIdx.x] = x[threadIdx.x];
    }""".replace("BETWEEN", between), races=True)
    assert launch.clean == clean
    assert clean or "nothing orders its initialisation" in launch.hazards[0].message


@pytest.mark.parametrize("body, cure", [
    ("{ y[0] = x[threadIdx.x]; }", "let one thread write it"),
    ("""{
        __shared__ int counts[8];
        if (threadIdx.x < 8) counts[threadIdx.x] = 0;
        __syncthreads();
        counts[x[threadIdx.x] % 8]++;
        __syncthreads();
        if (threadIdx.x < 8) y[threadIdx.x] = counts[threadIdx.x];
    }""", "where each thread updates the word that it reads, an atomic"),
])
def test_what_one_line_does_to_itself_is_not_cured_by_a_barrier_between_two(body, cure):
    launch = launched(body, arch="sm_80", races=True)
    cures = [advice.for_hazard(one) for one in launch.hazards if one.kind in ("race", "warning")]
    assert cures and all(one.startswith(cure) for one in cures)


def test_a_copy_on_an_mbarrier_without_the_fence_of_its_initialisation_is_told_so():
    launch = launched("""{
        __shared__ alignas(16) int s[64];
        __shared__ Barrier b;
        if (threadIdx.x == 0) {
            init(&b, 1);
            arrive_expecting(&b, 256);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], 256, [%2];"
                         :: "r"(shared_address(s)), "l"(x), "r"(shared_address(&b)) : "memory");
        }
        __syncthreads();
        wait_for(&b, 0);
        y[threadIdx.x] = s[63 - threadIdx.x];
    }""", races=True)
    [hazard] = launch.hazards
    assert advice.for_hazard(hazard).startswith("fence.mbarrier_init (or fence.proxy.async)")


def test_an_unsigned_index_below_zero_is_told_as_such():
    error, _ = raised("{ unsigned i = threadIdx.x; y[i] = x[i - 3]; }", arch="sm_80")
    assert "argument 0: an unsigned index of 32 bits went 3 below 0" in str(error)


@pytest.mark.parametrize("shared, cure", [
    (0, "gives no bytes of dynamic shared memory"),
    (128, "more than the launch's 128 bytes of dynamic shared memory (s)"),
])
def test_too_few_bytes_of_dynamic_shared_memory_are_told_as_the_launch_s(shared, cure):
    body = "{ extern __shared__ int s[]; s[threadIdx.x] = x[threadIdx.x]; y[0] = s[0]; }"
    _, notes = raised(body, arch="sm_80", shared=shared)
    assert cure in notes


def test_a_deadlock_shows_the_line_that_waits():
    _, notes = raised("""{
        __shared__ Barrier b;
        if (threadIdx.x == 0) init(&b, 65);
        __syncthreads();
        arrive(&b);
        wait_for(&b, 0);
    }""")
    assert "(parity)" in notes.partition("There: ")[2].partition("\n")[0]  # and not the init
