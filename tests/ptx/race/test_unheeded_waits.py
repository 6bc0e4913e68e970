"""Waits for an mbarrier that may fail, and what a kernel does then."""

import numpy as np
import pytest

from lib.ptx import advice

from ..conftest import compile_text, f32s, function_of, kinds

# A bulk copy fills `s`; each thread waits in its own way, and reads another's element.
SOURCE = r"""
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
__device__ inline bool tried(uint32_t b)
{
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(b) : "memory");
    return done;
}
extern "C" __global__ void k(const float* a, float* o)
{
    __shared__ alignas(128) float s[128];
    __shared__ alignas(8) uint64_t bar;
    uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar);
    uint32_t d = (uint32_t)__cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], COUNT;" :: "r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    FILL
    WAIT
    o[threadIdx.x] += s[127 - threadIdx.x];
}
"""
COPY = """if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(b));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1],"
                     " 512, [%2];" :: "r"(d), "l"(a), "r"(b) : "memory");
    }"""
STORE = """s[threadIdx.x] = a[threadIdx.x];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b) : "memory");"""
FILLS = {"copied": (COPY, 1), "stored": (STORE, 128)}
UNHEEDED = {
    "once": "tried(b);",
    "twice": "if (!tried(b)) tried(b);",
    "for a while": "for (int i = 0; i < 20; ++i) if (tried(b)) break;",
    "noted": "o[threadIdx.x] = tried(b);",
    "asked and passed": "if (!tried(b)) o[threadIdx.x] = 1;",
    "by half of the block": "if (threadIdx.x < 64) while (!tried(b)); else tried(b);",
}
HEEDED = {
    "until it is true": "while (!tried(b));",
    "peeked at": "bool early = tried(b); o[threadIdx.x] = 0; if (!early) while (!tried(b));",
    "or else trapped": "int n = 0; while (!tried(b)) if (++n > 1 << 20) __trap();",
    "or else returned": "if (!tried(b)) return;",
    "only then": "if (tried(b))",
}


def launched(wait, fill, **options):
    text, count = FILLS[fill]
    source = SOURCE.replace("FILL", text).replace("WAIT", wait).replace("COUNT", str(count))
    kernel = function_of(compile_text(source, "compute_90a"))
    a, o = np.arange(128, dtype=np.float32), f32s(128)
    return kernel(1, 128, (a, o), races=True, **options), o


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("wait", UNHEEDED)
def test_a_wait_whose_failure_changes_nothing_orders_nothing(wait, fill):
    launch, o = launched(UNHEEDED[wait], fill)
    assert "race" in kinds(launch) <= {"race", "block exited"}
    assert launch.failed and "It ran twice" in str(launch)
    assert "returns false, as it may" in launch.hazards[0].message
    assert "wait again until it is true" in advice.for_hazard(launch.hazards[0])
    first = np.arange(127, -1, -1) + {"noted": 1}.get(wait, 0)
    assert (o == first).all()  # the arrays are those of the run in which no wait failed


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("wait", HEEDED)
def test_a_wait_that_is_heeded_is_clean(wait, fill):
    launch, o = launched(HEEDED[wait], fill)
    assert launch.clean and (o == np.arange(127, -1, -1)).all()
    assert bool(launch.failed) == (wait == "peeked at")


def test_a_wait_for_what_a_barrier_orders_before_it_need_not_be_looked_at():
    launch, _ = launched("__syncthreads(); tried(b);", "stored")
    assert launch.failed and launch.clean


def test_without_races_no_wait_fails():
    text, count = FILLS["copied"]
    source = SOURCE.replace("FILL", text).replace("WAIT", "tried(b);").replace("COUNT", str(count))
    kernel = function_of(compile_text(source, "compute_90a"))
    launch = kernel(1, 128, (f32s(128), f32s(128)))
    assert not launch.failed and launch.clean
