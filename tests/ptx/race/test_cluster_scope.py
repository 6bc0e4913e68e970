"""What an mbarrier of a peer's orders: what arrival and wait name in their scopes."""

from __future__ import annotations

import numpy as np
import pytest

from lib import ptx

from ..conftest import compile_text

# The second block writes, and arrives at a barrier of the first one's, which then reads (or, where
# the first block hands its own buffer over, writes again).
SOURCE = r"""
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
extern "C" __global__ __cluster_dims__(2) void k(float* o)
{
    __shared__ float s[128];
    __shared__ alignas(8) uint64_t bar;
    uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar), rank, there, peer;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    s[threadIdx.x] = 1;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" :: "r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    uint32_t mine = (uint32_t)__cvta_generic_to_shared(&s[threadIdx.x]);
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(b));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(mine), "r"(1 - rank));
    if (rank == 1) {
        FIRST
        asm volatile("ARRIVE" :: "r"(there) : "memory");
    } else {
        uint32_t done = 0;
        while (!done) asm volatile("{ .reg .pred p; WAIT p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                                   : "=r"(done) : "r"(b) : "memory");
        SECOND
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""
LOAD = 'float v; asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(peer) : "memory");'
KEEP = "o[threadIdx.x + 128 * rank] = v;"
ARRIVALS = {"narrow": "mbarrier.arrive.shared::cluster.b64 _, [%0];",
            "cta": "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];",
            "relaxed": "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];",
            "wide": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"}
WAITS = {"narrow": "mbarrier.try_wait.parity.shared::cta.b64",
         "relaxed": "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64",
         "wide": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"}


def launched(arrive, wait, first, second):
    text = SOURCE.replace("FIRST", first).replace("SECOND", second)
    text = text.replace("ARRIVE", ARRIVALS[arrive]).replace("WAIT", WAITS[wait])
    kernel = ptx.Module(compile_text(text, "compute_90a")).get_function("k")
    return kernel(2, 128, (np.zeros(256, np.float32),), races=True)


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("arrive", ARRIVALS)
def test_what_was_written_is_to_be_seen_if_both_scopes_are_the_clusters(arrive, wait):
    launch = launched(arrive, wait, "s[threadIdx.x] = 2;", LOAD + KEEP)
    wide = (arrive, wait) == ("wide", "wide")
    assert {hazard.kind for hazard in launch.hazards} == (set() if wide else {"race"})
    for hazard in launch.hazards:
        assert "read after write" in hazard.message and "name .cluster" in (
            ptx.advice.for_hazard(hazard))


@pytest.mark.parametrize("wait", ["narrow", "wide"])
@pytest.mark.parametrize("arrive", ["narrow", "wide"])
def test_a_buffer_that_was_read_may_be_overwritten_as_cutlass_has_it(arrive, wait):
    assert launched(arrive, wait, LOAD + KEEP, "s[threadIdx.x] = 3;").clean


def test_what_was_never_handed_back_may_not():
    launch = launched("wide", "wide", "", "s[threadIdx.x] = 3;")
    assert launch.clean
    text = SOURCE.replace("WAIT p, [%1], 0;", "setp.eq.u32 p, 0, 0;")
    text = text.replace("FIRST", LOAD + KEEP).replace("SECOND", "s[threadIdx.x] = 3;")
    kernel = ptx.Module(compile_text(text.replace("ARRIVE", ARRIVALS["wide"]), "compute_90a"))
    launch = kernel.get_function("k")(2, 128, (np.zeros(256, np.float32),), races=True)
    assert "race" in {hazard.kind for hazard in launch.hazards}
