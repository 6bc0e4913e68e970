"""What an mbarrier of a peer's orders: what arrival and wait name in their scopes."""

import numpy as np
import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from tests.tables import cases

from ..conftest import compile_text, each_landing, f32s, function_of, kinds

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
            "fence behind": "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];"
                            " fence.acq_rel.cluster;",
            "wide": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"}
WAITS = {"narrow": "mbarrier.try_wait.parity.shared::cta.b64",
         "relaxed": "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64",
         "wide": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"}


def launched(arrive, wait, first, second):
    text = SOURCE.replace("FIRST", first).replace("SECOND", second).replace(
        "WAIT p, [%1], 0;", "setp.eq.u32 p, 0, 0;" if wait == "none" else "WAIT p, [%1], 0;")
    text = text.replace("ARRIVE", ARRIVALS[arrive]).replace("WAIT", WAITS.get(wait, ""))
    kernel = function_of(compile_text(text, "compute_90a"))
    return kernel(2, 128, (f32s(256),), races=True)


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("arrive", ARRIVALS)
def test_what_was_written_is_to_be_seen_if_both_scopes_are_the_clusters(arrive, wait):
    launch = launched(arrive, wait, "s[threadIdx.x] = 2;", LOAD + KEEP)
    wide = (arrive, wait) == ("wide", "wide")
    assert kinds(launch) == (set() if wide else {"race"})
    for hazard in launch.hazards:
        assert "read after write" in hazard.message and "name .cluster" in (
            ptx.advice.for_hazard(hazard))


@pytest.mark.parametrize("wait", ["narrow", "wide"])
@pytest.mark.parametrize("arrive", ["narrow", "wide"])
def test_a_buffer_that_was_read_may_be_overwritten_as_cutlass_has_it(arrive, wait):
    assert launched(arrive, wait, LOAD + KEEP, "s[threadIdx.x] = 3;").clean


def test_what_was_never_handed_back_may_not():
    assert launched("wide", "wide", "", "s[threadIdx.x] = 3;").clean
    launch = launched("wide", "none", LOAD + KEEP, "s[threadIdx.x] = 3;")
    assert "race" in kinds(launch)


FENCE, NARROW_FENCE = "fence.acq_rel.cluster;", "fence.acq_rel.cta;"


@cases("""
first         | arrive  | wait    | second        | ordered
cluster       | relaxed | wide    |               | True
gpu           | relaxed | wide    |               | True
cta           | relaxed | wide    |               | False
cluster       | relaxed | narrow  |               | False
              | wide    | relaxed | cluster       | True
              | wide    | relaxed | cta           | False
cluster       | relaxed | relaxed | cluster       | True
cluster       | relaxed | relaxed |               | False
""")
def test_a_fence_beside_what_is_relaxed_orders_as_far_as_both_reach(
    first, arrive, wait, second, ordered
):
    def asm(scope):
        fence = f"fence.acq_rel.{scope};" if scope else ""
        return f'asm volatile("{fence}" ::: "memory");'

    launch = launched(
        arrive, wait, "s[threadIdx.x] = 2;" + asm(first), asm(second) + LOAD + KEEP)
    assert kinds(launch) == (set() if ordered else {"race"})


@pytest.mark.parametrize("arrive, fence, ordered", [
    ("release", "", True), ("relaxed", "", False), ("relaxed", FENCE, True),
    ("relaxed", NARROW_FENCE, False),
])
def test_a_fence_before_a_relaxed_arrival_at_the_clusters_barrier(arrive, fence, ordered):
    meeting = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    text = SOURCE.replace(meeting, f"{fence} barrier.cluster.arrive.{arrive}.aligned; "
                          "barrier.cluster.wait.aligned;", 1)
    text = text.replace("FIRST", "").replace("SECOND", LOAD + KEEP)
    text = text.replace("ARRIVE", ARRIVALS["narrow"]).replace("WAIT", WAITS["narrow"])
    kernel = ptx.Module(compile_text(text, "compute_90a"))
    launch = kernel.get_function("k")(2, 128, (f32s(256),), races=True)
    assert bool(launch.hazards) != ordered


ATOMIC = r"""
extern "C" __global__ __cluster_dims__(2) void k(float* o)
{
    __shared__ float s[32];
    unsigned mine = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]), there;
    s[threadIdx.x] = 0;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(mine));
    asm volatile("red.relaxed.SCOPE.shared::cluster.add.u32 [%0], 1;" :: "r"(there) : "memory");
    asm volatile("red.relaxed.SCOPE.global.add.f32 [%0], 0f3F800000;"
                 :: "l"(o + threadIdx.x + 32 * OWN) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""


@pytest.mark.parametrize("own", ["0", "(blockIdx.x / 2)"])
@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu"])
def test_atomics_meet_in_the_scope_that_they_name(scope, own):
    text = ATOMIC.replace("SCOPE", scope).replace("OWN", own)
    kernel = function_of(compile_text(text, "compute_90a"))
    launch = kernel(4, 32, (f32s(64),), races=True)
    spaces = {space for hazard in launch.hazards for space in ("shared", "global")
              if f"in {space} memory" in hazard.message}
    assert spaces == {"cta": {"shared", "global"}, "gpu": set(),
                      "cluster": {"global"} if own == "0" else set()}[scope]


# The first block copies to both. The second one waits for its own barrier, or for the first block
# to have waited for its.
MULTICAST = r"""
#include "asm.cuh"
extern "C" __global__ __cluster_dims__(2) void k(const float* a, float* o)
{
    __shared__ alignas(16) float s[32];
    __shared__ Barrier bar;
    if (threadIdx.x == 0) { init(&bar, 1); fence_init(); arrive_expecting(&bar, 128); }
    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], 128, [%2], %3;"
                     :: "r"(shared_address(s)), "l"(a), "r"(shared_address(&bar)), "h"((short)3)
                     : "memory");
    if (WHO) wait_for(&bar, 0);
    cluster_sync();
    o[32 * cluster_rank() + threadIdx.x] = s[threadIdx.x];
}
"""


@each_landing
@pytest.mark.parametrize("who, expected", [("true", set()), ("cluster_rank() == 0", {"race"})])
def test_what_a_multicast_brings_each_block_waits_for_by_its_own_barrier(who, expected, landing):
    text = MULTICAST.replace("WHO", who)
    module = RawModule(code=text, options=[f"-I{ROOT / 'cuda' / 'zoo'}"], arch="sm_90a")
    args = np.ones(32, np.float32), f32s(64)
    try:
        launch = module.get_function("k")(2, 32, args, races=True, landing=landing)
    except ptx.UninitialisedRead:
        assert expected
        return
    assert kinds(launch) >= expected and launch.clean == (not expected)


# Each block's copy of its own, behind its own barrier, tells its reader that it may arrive again at
# both blocks' barriers, as fast.cu's kernels have it: a whole warp's lanes arrive together.
RING = r"""
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
#define ASM(text, ...) asm volatile(text :: __VA_ARGS__ : "memory")
__device__ uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void wait(uint64_t* b, uint32_t parity)
{
    uint32_t done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], "
                               "%2; selp.u32 %0, 1, 0, p; }"
                               : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
}
extern "C" __global__ __cluster_dims__(2) void k(const float* x, float* o)
{
    __shared__ alignas(16) float s[4];
    __shared__ alignas(8) uint64_t full, empty;
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        ASM("mbarrier.init.shared::cta.b64 [%0], 1;", "r"(at(&full)));
        ASM("mbarrier.init.shared::cta.b64 [%0], COUNT;", "r"(at(&empty)));
        ASM("fence.mbarrier_init.release.cluster; // %0", "r"(0));
    }
    ASM("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // %0", "r"(0));
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i) {
            wait(&empty, i % 2);
            ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;", "r"(at(&full)));
            ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, "
                "[%2];", "r"(at(s)), "l"(x + 4 * i), "r"(at(&full)));
        }
    } else if (threadIdx.x >= 32) {
        for (int i = 0; i <= 4; ++i) {
            if (i) {
                wait(&full, (i - 1) % 2);
                if (threadIdx.x == 32) o[4 * rank + i - 1] = s[i - 1];
                __syncwarp();
            }
            if (threadIdx.x < 34 && i < 4)
                ASM("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
                    "mbarrier.arrive.SCOPE.shared::cluster.b64 _, [there]; }",
                    "r"(at(&empty)), "r"(threadIdx.x - 32));
        }
    }
    ASM("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // %0", "r"(0));
}
"""


@pytest.mark.parametrize("scope", ["release.cta", "release.cluster"])
@each_landing
def test_arrivals_are_counted_whatever_their_scope(landing, scope):
    kinds = {}
    for count in (2, 1):
        text = RING.replace("SCOPE", scope).replace("COUNT", str(count))
        kernel = function_of(compile_text(text, "compute_90a"))
        arrays = np.arange(16, dtype=np.float32), f32s(8)
        try:
            kinds[count] = {hazard.kind for hazard in kernel(
                2, 64, arrays, races=True, landing=landing).hazards}
        except ptx.Error as error:
            kinds[count] = {type(error).__name__, *(one.kind for one in error.hazards)}
    assert kinds[2] == set() and "mbarrier" in kinds[1]
