"""mbarriers made for another number of arrivals than come: told in every order."""

from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule
from lib.paths import ROOT
from lib.ptx import advice

from ..conftest import s32s

ORDERS = [(schedule, landing) for schedule in ("lowest", "highest", "random")
          for landing in ("early", "late")]
KINDS = {"mbarrier", "race", "UninitialisedRead", "Deadlock", "Error"}
RING = r"""
#include "asm.cuh"
// Warps 0 to 3 fill a buffer of ROUNDS numbers a thread, turn by turn; warps 4 and 5 read it.
extern "C" __global__ void ring(const int* x, int* y)
{
    __shared__ Barrier full[2], empty[2];
    __shared__ int s[2][128];
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) { init(&full[i], FULL); init(&empty[i], EMPTY); }
    __syncthreads();
    const int t = threadIdx.x;
    if (t < 128) {
        for (int i = 0; i < 4; ++i) {
            wait_for(&empty[i % 2], i / 2 % 2 ^ 1);
            s[i % 2][t] = x[128 * i + t];
            ARRIVE_FULL;
        }
    } else {
        for (int i = 0; i < 4; ++i) {
            wait_for(&full[i % 2], i / 2 % 2);
            int sum = 0;
            for (int j = 0; j < 4; ++j) sum += s[i % 2][(t * 4 + j + 64) % 128];
            y[64 * i + t - 128] = sum;
            __syncwarp();
            ARRIVE_EMPTY;
        }
    }
}
"""


FILL, TAKE = "arrive(&full[i % 2])", "if (t % 32 == 0) arrive(&empty[i % 2])"


@cache
def module(code: str) -> RawModule:
    """Code that is launched in every order, compiled once."""
    return RawModule(code=code, options=[f"-I{ROOT / 'cuda' / 'zoo'}"], arch="sm_90a")


def launched(schedule, landing, code=None, kernel="ring", blocks=1, threads=192, full=128, empty=2,
             fill=FILL, take=TAKE):
    """Launch a kernel, by default the ring."""
    if code is None:
        code = RING.replace("ARRIVE_FULL", fill).replace("ARRIVE_EMPTY", take)
        code = code.replace("FULL", str(full)).replace("EMPTY", str(empty))
    x, y = np.arange(512, dtype=np.int32), s32s(512)
    return module(code).get_function(kernel)(
        blocks, threads, (x, y), races=True, trace=False, seed=5, schedule=schedule,
        landing=landing)


def said(*order, **options) -> set[str]:
    """Kinds of hazards and the error's class; nothing if it is clean."""
    try:
        return {h.kind for h in launched(*order, **options).hazards}
    except ptx.Error as error:
        return {type(error).__name__, *(h.kind for h in error.hazards)}


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_ring_with_the_right_counts_is_clean(order):
    assert said(*order) == set()


def test_a_warp_knows_by_its_own_order_which_phases_it_completed():
    code = r"""#include "asm.cuh"
    extern "C" __global__ void alone(const int* x, int* y)
    {
        __shared__ Barrier bar;
        if (threadIdx.x == 0) init(&bar, 32);
        __syncthreads();
        arrive(&bar);
        arrive(&bar);
        wait_for(&bar, 1);
    }"""
    assert said("lowest", "early", code=code, kernel="alone", threads=32) == set()


TWOS = r"""if (t % 2 == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;"
                 ::"r"(shared_address(&full[i % 2])) : "memory")"""
MISTAKES = {  # what differs
    "one too few": {"full": 127}, "a warp too few": {"full": 96}, "half": {"full": 64},
    "a third": {"full": 43}, "one": {"full": 1}, "one empty": {"empty": 1},
    "all say empty": {"take": "arrive(&empty[i % 2])"},
    "swapped": {"fill": "arrive(&empty[i % 2])"},
    "two too few, by twos": {"full": 126, "fill": TWOS}, "too many": {"full": 129},
}


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_arrivals_with_a_count_are_added_up(order):
    assert said(*order, fill=TWOS) == set()


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_count_is_told_in_every_order(mistake, order):
    assert said(*order, **MISTAKES[mistake]) & KINDS


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_phase_that_a_wait_can_miss_is_told_in_every_order(order):
    # Arrivals of the other buffer are ordered, and each read finds its numbers; but the second
    # phase may be complete before a wait for the first has looked.
    assert "mbarrier" in said(*order, fill="arrive(&full[(i + 1) % 2])")


def test_a_wait_that_can_miss_its_phase_is_told_with_both_lines_and_the_way_out():
    launch = launched("highest", "early", fill="arrive(&full[(i + 1) % 2])")
    (found,) = launch.hazards
    assert "this wait for phase 1 can miss it" in found.message
    assert found.first.opcode.startswith("mbarrier.try_wait") and found.first.warp in (4, 5)
    assert found.second.opcode.startswith("mbarrier.arrive") and found.second.warp < 4
    assert "an arrival that comes behind the wait" in advice.for_hazard(found)


# Two threads pass numbers on; who fills arrives for each, and who reads waits for each.
PASSED = r"""
#include "asm.cuh"
extern "C" __global__ void passed(const int* x, int* y)
{
    __shared__ Barrier full;
    __shared__ int s[4];
    if (threadIdx.x == 0) init(&full, 1);
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        if (threadIdx.x == 0) { s[i] = x[i]; arrive(&full); }
        if (threadIdx.x / 32 == 1) { wait_for(&full, i % 2); y[32 * i + threadIdx.x % 32] = s[i]; }
        BETWEEN
    }
}
"""


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("between, clean", [
    ("", False), ("__syncthreads();", True), ("__syncwarp();", False),
    # Only the warp that reads tells, through a barrier of its own; an elected lane is enough.
    ('if (threadIdx.x / 32 == 1) asm volatile("bar.arrive 1, 64;" ::: "memory");'
     'else asm volatile("bar.sync 1, 64;" ::: "memory");', True),
    # The wrong way round.
    ('if (threadIdx.x / 32 == 0) asm volatile("bar.arrive 1, 64;" ::: "memory");'
     'else asm volatile("bar.sync 1, 64;" ::: "memory");', False),
])
def test_the_next_phase_waits_for_who_waits_for_this_one(between, clean, order):
    code = PASSED.replace("BETWEEN", between)
    found = said(*order, code=code, kernel="passed", threads=64)
    assert found == set() if clean else "mbarrier" in found


def test_more_arrivals_than_are_counted_are_told_with_the_count_and_the_line():
    with pytest.raises(ptx.Deadlock) as stopped:
        launched("lowest", "early", empty=1)
    found = next(h for h in stopped.value.hazards if h.kind == "mbarrier")
    assert "more arrive than the 1 that a phase counts" in found.message
    assert found.first.opcode.startswith("mbarrier.init")
    assert found.second.opcode.startswith("mbarrier.arrive") and found.second.warp == 5
    assert advice.for_hazard(found).startswith("initialise the mbarrier for all arrivals")


# -- one round, in other ways to arrive and to wait ------------------------------------------------

ROUND = r"""
#include "asm.cuh"
extern "C" __global__ void CLUSTER once(const int* x, int* y)
{
    __shared__ Barrier bar;
    __shared__ alignas(16) int s[512];
    const int t = threadIdx.x;
    if (t == 0) init(&bar, COUNT);
    BODY
}
"""
WRITE = "__syncthreads(); s[t] = x[t];"
READ = "wait_for(&bar, 0); y[t] = s[(t + 37) % 128];"
WAYS = {  # how; how many arrive
    "all": (f"{WRITE} arrive(&bar); {READ}", 128),
    "one thread reads": (f"{WRITE} arrive(&bar); if (t == 5) {{ {READ} }}", 128),
    "a lane a warp": (f"{WRITE} __syncwarp(); if (t % 32 == 0) arrive(&bar); {READ}", 4),
    "cp.async": (
        """__syncthreads(); copy16(&s[4 * t], &x[4 * t]);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                     ::"r"(shared_address(&bar)) : "memory");
        wait_for(&bar, 0); y[t] = s[(4 * t + 37) % 512];""", 128),
    "a state": (
        """for (int i = 0; i < 3; ++i) {
            __syncthreads(); s[t] = x[t] + i;
            unsigned long long state;
            unsigned done = 0;
            asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
                         : "=l"(state) : "r"(shared_address(&bar)) : "memory");
            while (!done)
                asm volatile("{ .reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2;"
                             "selp.u32 %0, 1, 0, p; }"
                             : "=r"(done) : "r"(shared_address(&bar)), "l"(state) : "memory");
            y[t] = s[(t + 37) % 128];
        }""", 128),
    "another warp waits each time": (
        """for (int i = 0; i < 5; ++i) {
            __syncthreads(); s[t] = x[t] + i; arrive(&bar);
            if (t / 32 == i % 4) wait_for(&bar, i & 1);
            __syncthreads(); y[t] = s[(t + 37) % 128];
        }""", 128),
    "the other block's": (
        """if (t == 0) fence_init();
        cluster_sync();
        s[t] = x[t];
        asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1;"
                     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }"
                     ::"r"(shared_address(&bar)), "r"(cluster_rank() ^ 1) : "memory");
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                         "p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(shared_address(&bar)) : "memory");
        y[128 * cluster_rank() + t] = load_from(cluster_rank() ^ 1, &s[(t + 37) % 128]);
        cluster_sync();""", 128),
}


def said_of(way: str, count: int, schedule: str, landing: str) -> set[str]:
    body, _ = WAYS[way]
    cluster = "__cluster_dims__(2, 1, 1)" if way == "the other block's" else ""
    code = ROUND.replace("BODY", body).replace("COUNT", str(count)).replace("CLUSTER", cluster)
    blocks = 2 if cluster else 1
    return said(schedule, landing, code=code, kernel="once", blocks=blocks, threads=128)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("way", WAYS)
def test_a_round_counts_its_arrivals(way, order):
    many = WAYS[way][1]
    assert said_of(way, many, *order) == set()
    for few in {many - 1, many // 2}:
        assert said_of(way, few, *order) & KINDS
