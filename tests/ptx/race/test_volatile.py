"""Lanes of one warp that exchange volatile values: told, unless something orders the lanes."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import compile_text, each_schedule, function_of, kinds, run, s32s, u32s

REDUCE = r"""
extern "C" __global__ void reduce(const int* x, int* sum)
{
    __shared__ volatile int s[64];
    const int i = threadIdx.x;
    s[i] = x[i];
    __syncthreads();
    if (i < 32) {
        #pragma unroll
        for (int half = 32; half > 0; half /= 2) {
            const int other = i < half ? s[i + half] : 0;
            BETWEEN
            if (i < half) s[i] = s[i] + other;
            AT_END
        }
    }
    if (i == 0) *sum = s[0];
}
"""
def reduced(between: str, at_end: str, **options) -> ptx.Launch:
    source = REDUCE.replace("BETWEEN", between).replace("AT_END", at_end)
    x, total = np.arange(64, dtype=np.int32), s32s(1)
    text = compile_text(source, filename="reduce.cu")
    launch = function_of(text, "reduce")(1, 64, (x, total), races=True, **options)
    assert total[0] == x.sum()
    return launch


@each_schedule
def test_a_warp_synchronous_reduction_is_a_warning_at_its_own_lines(schedule):
    launch = reduced("", "", schedule=schedule)
    assert kinds(launch) == {"warning"}
    lines = {side.cuda[1] for hazard in launch.hazards for side in (hazard.first, hazard.second)}
    rows = REDUCE.splitlines()
    own = {i for i, row in enumerate(rows, 1) if "s[i + half]" in row or "s[i] + other" in row}
    assert lines and lines <= own | {rows.index("    if (i == 0) *sum = s[0];") + 1}
    for hazard in launch.hazards:
        assert hazard.first.warp == hazard.second.warp and hazard.first.lane != hazard.second.lane
        assert "volatile does not order" in hazard.message
    assert "What to do: order the lanes with __syncwarp()" in str(launch)


@each_schedule
@pytest.mark.parametrize("between, at_end", [
    ("", "__syncwarp();"),
    ("", "if (__shfl_sync(0xffffffffu, other, 0) == -1) s[i] = 1;"),
    ("", "if (__any_sync(0xffffffffu, other == -1)) s[i] = 1;"),
])
def test_what_lets_the_lanes_meet_orders_them(between, at_end, schedule):
    assert not reduced(between, at_end, schedule=schedule).hazards


def test_the_barrier_must_stand_between_the_write_and_the_read():
    found = reduced("__syncwarp();", "").hazards
    assert {hazard.message.partition(" in ")[0] for hazard in found} == {"read after write"}


HAND_OVER = """
.reg .b32 %t, %v, %s; .reg .b64 %o; .reg .pred %p, %q;
.shared .align 4 .b32 flag; .shared .align 4 .b32 word;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out];
setp.eq.u32 %p, %t, 0;
@%p st.volatile.shared.u32 [flag], 0;
@%p st.volatile.shared.u32 [word], 0;
bar.sync 0;
"""


@each_schedule
def test_lanes_of_a_warp_that_take_turns_by_a_polled_flag_are_clean(schedule):
    body = HAND_OVER + """
POLL: ld.volatile.shared.u32 %v, [flag]; setp.ne.u32 %q, %v, %t; @%q bra POLL;
add.u32 %v, %v, 1; st.volatile.shared.u32 [flag], %v;
bar.sync 0;
@%p ld.volatile.shared.u32 %v, [flag]; @%p st.global.u32 [%o], %v;
"""
    out = u32s(1)
    done = run(body, out, block=64, races=True, schedule=schedule)
    assert out[0] == 64 and not done.hazards, done.hazards[:2]


@each_schedule
def test_a_flag_with_fences_orders_the_lanes_of_a_warp(schedule):
    body = HAND_OVER + """
setp.eq.u32 %q, %t, 9; @!%p bra READ;
st.volatile.shared.u32 [word], 7; membar.cta; st.volatile.shared.u32 [flag], 1;
bra DONE;
READ: @!%q bra DONE;
POLL: ld.volatile.shared.u32 %v, [flag]; setp.eq.u32 %p, %v, 0; @%p bra POLL;
membar.cta; ld.volatile.shared.u32 %v, [word]; st.global.u32 [%o], %v;
DONE:
"""
    out = u32s(1)
    done = run(body, out, races=True, schedule=schedule)
    assert out[0] == 7 and not done.hazards, done.hazards[:2]


@pytest.mark.parametrize("space, order, expected", [
    ("volatile", "", {"warning"}),
    ("volatile", "bar.warp.sync 0xffffffff;", set()),
    ("volatile", "bar.sync 0;", set()),
    ("volatile", "shfl.sync.idx.b32 %s, %t, 0, 31, 0xffffffff;", set()),
    ("volatile", "vote.sync.ballot.b32 %s, %q, 0xffffffff;", set()),
    ("volatile", "membar.cta;", {"warning"}),  # orders this thread's accesses, not the lanes
    ("relaxed.cta", "", set()),  # an atomic object's: meant to be unordered
    ("weak", "", {"warning"}),
    ("weak", "shfl.sync.idx.b32 %s, %t, 0, 31, 0xffffffff;", {"warning"}),  # no memory barrier
])
def test_what_orders_two_accesses_by_different_lanes(space, order, expected):
    body = HAND_OVER + f"""
setp.eq.u32 %q, %t, 5;
@%q st.{space}.shared.u32 [word], 1;
{order}
setp.eq.u32 %q, %t, 9;
@%q ld.{space}.shared.u32 %v, [word];
@%q st.global.u32 [%o], %v;
"""
    done = run(body, u32s(1), races=True)
    assert kinds(done) == expected


SHUFFLE = "shfl.sync.idx.b32 %s, %t, 0, 31, 0xffffffff;"
WRITE = "setp.eq.u32 %q, %t, 5; @%q st.volatile.shared.u32 [word], 1;"
READ = "setp.eq.u32 %q, %t, LANE; @%q ld.volatile.shared.u32 %v, [word];"


@pytest.mark.parametrize("body, lane, message", [
    (SHUFFLE + WRITE + READ + SHUFFLE, 9, "read after write"),
    (READ + WRITE, 9, "write after read"),
    (WRITE + READ, 40, None),  # volatile accesses of different warps are no data race
])
def test_which_lanes_and_in_which_order(body, lane, message):
    hazards = run(HAND_OVER + body.replace("LANE", str(lane)), u32s(1), block=64,
                  races=True).hazards
    assert len(hazards) == (message is not None)
    for hazard in hazards:
        assert {hazard.first.lane, hazard.second.lane} == {5, lane} and hazard.kind == "warning"
        assert hazard.message.startswith(message)


def test_a_read_through_the_read_only_cache_of_what_the_kernel_wrote_names_both():
    source = """extern "C" __global__ void f(int* a, int* out) {
    a[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = __ldg(a + 31 - threadIdx.x);
}"""
    module = ptx.Module(compile_text(source, filename="f.cu"))
    a, out = s32s(32), s32s(32)
    hazard, *_ = module.get_function("f")(1, 32, (a, out), races=True).hazards
    assert "read-only cache" in hazard.message
    assert (hazard.first.cuda[1], hazard.second.cuda[1]) == (2, 4)
