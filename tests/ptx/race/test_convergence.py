"""Lanes of a warp that take different paths and then act together: shuffles, votes, __syncwarp."""

import numpy as np
import pytest

import lib
from lib import ptx

from ..conftest import each_schedule, s32s
from ..conftest import run as run_ptx

SOURCE = r"""
// NVRTC puts a cold path behind the code that both paths join: lanes come to it one after another.
extern "C" __global__ void shuffle(int* out, const int* in, int n)
{
    int v = threadIdx.x;
    if (__builtin_expect(in[threadIdx.x] < 0, 0))
        for (int i = 0; i < n; ++i) v = v * 3 + in[v & 31];
    out[threadIdx.x] = v + __shfl_xor_sync(0xffffffffu, v, 16);
}
extern "C" __global__ void exchange(int* out, const int* in, int n)
{
    __shared__ int s[32];
    int v = in[threadIdx.x];
    if (__builtin_expect(v < 0, 0))
        for (int i = 0; i < n; ++i) v = v * 3 + in[v & 31];
    s[threadIdx.x] = v;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void vote(int* out, const int* in, int n)
{
    int v = in[threadIdx.x];
    if (__builtin_expect(v < 0, 0))
        for (int i = 0; i < n; ++i) v = v * 3 + in[v & 31];
    out[threadIdx.x] = __ballot_sync(0xffffffffu, v & 1);
}
extern "C" __global__ void two_places(int* out, const int* in, int n)
{
    __shared__ int s;
    if (threadIdx.x == 0) { s = in[0]; __syncwarp(); out[0] = s; }
    else { __syncwarp(); out[threadIdx.x] = s; }
}
extern "C" __global__ void some_left(int* out, const int* in, int n)
{
    if (threadIdx.x >= n) return;
    __syncwarp();
    out[threadIdx.x] = __shfl_sync(0xffffffffu, in[threadIdx.x], 0);
}
extern "C" __global__ void reads_who_left(int* out, const int* in, int n)
{
    if (threadIdx.x >= n) return;                                       // left
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, in[threadIdx.x], 4);  // reads
}
extern "C" __global__ void reads_who_stayed(int* out, const int* in, int n)
{
    if (threadIdx.x >= n) return;
    const int last = n - 1;
    int v = __shfl_sync(0xffffffffu, in[threadIdx.x], min(threadIdx.x + 4, last));
    v += __shfl_xor_sync((1u << n) - 1, v, 1);                // n is even: none beyond it is read
    out[threadIdx.x] = v + __shfl_up_sync((1u << n) - 1, v, 4);  // at the edge it reads itself
}
extern "C" __global__ void half_of_them(int* out, const int* in, int n)
{
    int v = in[threadIdx.x];
    if (threadIdx.x < n) v += __shfl_down_sync((1u << n) - 1, v, 1);  // half
    out[threadIdx.x] = v;  // sum
}
extern "C" __global__ void too_many_named(int* out, const int* in, int n)
{
    int v = in[threadIdx.x];
    if (threadIdx.x < n) v += __shfl_down_sync(0xffffffffu, v, 1);
    __syncthreads();
    out[threadIdx.x] = v;
}
extern "C" __global__ void one_never_comes(int* out, const int* in, int n)
{
    if (threadIdx.x < n) __syncwarp();
    __syncthreads();
    out[threadIdx.x] = in[threadIdx.x];
}
"""
@pytest.fixture(scope="module")
def module():
    return lib.RawModule(code=SOURCE)


@pytest.fixture
def given():
    values = np.arange(1, 33, dtype=np.int32)
    values[[3, 20]] = -4, -1
    return values


def slow(values, start, n=2):
    """What the cold path makes of a value."""
    for _ in range(n):
        start = (start * 3 + int(values[start & 31]) + 2**31) % 2**32 - 2**31
    return start


def run(module, name, given, n=2, **options):
    out = s32s(32)
    args = (out, given, np.int32(n))
    launch = module.get_function(name)((1,), (32,), args, races=True, **options)
    assert not launch.hazards
    return out


@each_schedule
def test_lanes_of_a_cold_path_are_waited_for(module, given, schedule):
    v = np.array([slow(given, i) if given[i] < 0 else i for i in range(32)], np.int32)
    assert (run(module, "shuffle", given, schedule=schedule) == v + v[np.arange(32) ^ 16]).all()
    v = np.array([slow(given, int(x)) if x < 0 else x for x in given], np.int32)
    assert (run(module, "exchange", given, schedule=schedule) == v[np.arange(32) ^ 1]).all()
    ballot = sum(int(x & 1) << i for i, x in enumerate(v))
    assert set(run(module, "vote", given, schedule=schedule).view(np.uint32).tolist()) == {ballot}


@each_schedule
def test_a_warp_s_lanes_may_wait_for_each_other_at_different_places(module, given, schedule):
    assert (run(module, "two_places", given, schedule=schedule) == given[0]).all()


@each_schedule
def test_lanes_that_left_need_not_come(module, given, schedule):
    assert run(module, "some_left", given, 7, schedule=schedule).tolist() == [1] * 7 + [0] * 25


def launched(module, name, given, n, block=32):
    args = (s32s(64), np.resize(given, 64), np.int32(n))
    return module.get_function(name)((1,), (block,), args)


def line_of(mark):
    return next(i for i, row in enumerate(SOURCE.splitlines(), 1) if row.endswith(f"// {mark}"))


@pytest.mark.parametrize("n, readers", [(28, range(24, 28)), (7, range(3, 7))])
def test_a_shuffle_that_reads_a_lane_that_left_is_reported(module, given, n, readers):
    launch = launched(module, "reads_who_left", given, n)
    (hazard,) = launch.hazards
    assert hazard.kind == "shuffle from a missing lane"
    said = [f"warp 0 lane {lane} reads lane {lane + 4}" for lane in readers]
    assert all(text in hazard.message for text in said)
    assert hazard.message.count(" reads lane ") == len(said)
    first, second = hazard.first, hazard.second
    assert (first.lane, second.lane) == (readers[0] + 4, readers[0])
    assert second.opcode.startswith("shfl.sync") and second.cuda[1] == line_of("reads")
    assert "What to do: let all lanes of the warp live until the shuffle" in str(launch)


def test_a_shuffle_reads_no_lane_that_the_block_lacks(module, given):
    """A block of 44 threads: the second warp has twelve lanes, which the mask doesn't say."""
    (hazard,) = launched(module, "reads_who_left", given, 64, 44).hazards
    assert hazard.second is None and hazard.first.cuda[1] == line_of("reads")
    assert "a block of 44 threads" in hazard.message
    assert "warp 1 lane 8 reads lane 12" in hazard.message and "warp 0" not in hazard.message


@pytest.mark.parametrize("n", [6, 28, 32])
def test_a_shuffle_from_lanes_that_are_there_is_clean(module, given, n):
    if n < 32:
        assert not launched(module, "reads_who_stayed", given, n).hazards
    assert not launched(module, "some_left", given, n).hazards
    assert not launched(module, "reads_who_left", given, 32).hazards


def test_a_mask_of_those_that_run_it_is_right_where_its_lanes_are_read(module, given):
    launch = launched(module, "half_of_them", given, 20)
    out = s32s(32)
    module.get_function("half_of_them")((1,), (32,), (out, given, np.int32(20)))
    assert (out[:19] == given[:19] + given[1:20]).all() and (out[20:] == given[20:]).all()
    # Lane 19 reads a lane that its mask leaves out, which PTX says nothing of, and stores the sum.
    (hazard,) = launch.hazards
    assert hazard.kind == "shuffle from a missing lane"
    assert "block (0, 0, 0) warp 0 lane 19 reads lane 20" in hazard.message
    assert hazard.message.count("reads lane") == 1
    assert (hazard.first.lane, hazard.second.lane) == (19, 19)
    assert hazard.first.cuda[1] == line_of("half") and hazard.second.cuda[1] == line_of("sum")
    assert "What to do: name every lane that is read in the mask" in str(launch)


# Lanes 0 to 15 run each shuffle by themselves; the first lane that reads one of the others.
LEFT_OUT = {
    "idx": ("add.u32 %s, %t, 4; shfl.sync.idx.b32 %x, %v, %s, 31, 0xFFFF;", 12, 16),
    "up": ("shfl.sync.up.b32 %x, %v, 4, 0, 0xFFF0;", 4, 0),
    "down": ("shfl.sync.down.b32 %x, %v, 4, 31, 0xFFFF;", 12, 16),
    "bfly": ("shfl.sync.bfly.b32 %x, %v, 16, 31, 0xFFFF;", 0, 16),
    "with its predicate": ("shfl.sync.down.b32 %x|%q, %v, 4, 31, 0xFFFF;", 12, 16),
    "of lanes that have left": ("shfl.sync.down.b32 %x, %v, 1, 31, 0xFFFF;", 15, 16),
}


def shuffled(shuffle, after="st.global.u32 [%g], %x;", others="", **options):
    """Run a shuffle in lanes 0 to 15, or 4 to 15; the result and the launch."""
    last = "setp.lt.u32 %p, %t, 16;"
    if "0xFFF0" in shuffle:
        last += "setp.gt.u32 %q, %t, 3; and.pred %p, %p, %q;"
    body = f"""
    .reg .b32 %t, %v, %s, %x, %y; .reg .b64 %o, %g; .reg .pred %p, %q;
    mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %g, %t, 4, %o;
    add.u32 %v, %t, 100; mov.u32 %x, 7;
    {last} @!%p bra OTHERS;
    {shuffle} {after} bra DONE;
    OTHERS: {others}
    DONE:"""
    out = np.full(32, 77, np.uint32)
    launch = run_ptx(body, out, **options)
    return out.tolist(), launch


@pytest.mark.parametrize("form", LEFT_OUT)
@pytest.mark.parametrize("options", [{}, {"races": True, "strict": True}, {"schedule": "highest"}])
def test_what_a_shuffle_reads_from_a_lane_that_its_mask_leaves_out_is_undefined(form, options):
    shuffle, reader, read = LEFT_OUT[form]
    others = "exit;" if "left" in form else ""
    out, launch = shuffled(shuffle, others=others, **options)
    (hazard,) = launch.hazards
    assert hazard.kind == "shuffle from a missing lane"
    assert f"warp 0 lane {reader} reads lane {read}" in hazard.message
    assert hazard.first.lane == reader and hazard.first.opcode.startswith("shfl.sync")
    assert (hazard.second is None) == ("strict" in options)
    assert out[reader] == 0xFFFFFFFF  # and not what the register held before


IN_VAIN = {
    "of lanes that it names": ("shfl.sync.up.b32 %x, %v, 4, 0, 0xFFFF;", "st.global.u32 [%g], %x;"),
    "within its width": ("shfl.sync.bfly.b32 %x, %v, 8, 0x101F, 0xFFFF;",
                         "st.global.u32 [%g], %x;"),
    "of itself, where the clamp ends": ("shfl.sync.down.b32 %x, %v, 4, 15, 0xFFFF;",
                                        "st.global.u32 [%g], %x;"),
    "a reduction whose first lane is asked": (
        "".join(f"shfl.sync.down.b32 %x, %v, {by}, 31, 0xFFFF; add.u32 %v, %v, %x;"
                for by in (8, 4, 2, 1)), "setp.eq.u32 %q, %t, 0; @%q st.global.u32 [%g], %v;"),
    "overwritten": ("shfl.sync.down.b32 %x, %v, 8, 31, 0xFFFF; mov.u32 %x, %t;",
                    "st.global.u32 [%g], %x;"),
    "chosen by the shuffle's own index":
        ("shfl.sync.idx.b32 %x, %t, %t, 31, 0xFFFF;", "st.global.u32 [%g], %x;"),
    "shuffled on from lanes that are right": (
        "shfl.sync.down.b32 %x, %v, 8, 31, 0xFFFF; shfl.sync.idx.b32 %y, %x, 3, 31, 0xFFFF;",
        "st.global.u32 [%g], %y;"),
}


@pytest.mark.parametrize("form", IN_VAIN)
def test_a_shuffle_whose_undefined_lanes_are_not_used_is_no_hazard(form):
    out, launch = shuffled(*IN_VAIN[form], races=True)
    assert not launch.hazards
    if "reduction" in form:
        assert out[0] == sum(range(100, 116)) and set(out[1:]) == {77}
    if "names" in form:
        assert out[:16] == [100, 101, 102, 103, *range(100, 112)]


USES = {
    "branch": ("setp.gt.u32 %q, %x, 5; @%q bra DONE; st.global.u32 [%g], %t;", "where lanes go"),
    "guard": ("setp.gt.u32 %q, %x, 5; @%q st.global.u32 [%g], %t;", "decides whether it runs"),
    "vote": ("setp.gt.u32 %q, %x, 5; vote.sync.any.pred %q, %q, 0xFFFF;", "is given to it"),
    "match": ("match.any.sync.b32 %y, %x, 0xFFFF;", "is given to it"),
    "redux": ("redux.sync.add.u32 %y, %x, 0xFFFF;", "is given to it"),
    "shuffled to another lane": ("shfl.sync.idx.b32 %y, %x, 12, 31, 0xFFFF; @%p st.global.u32 [%g],"
                                 " %y;", "is stored"),
}


@pytest.mark.parametrize("use", USES)
def test_the_first_use_of_an_undefined_lane_is_told_once(use):
    after, how = USES[use]
    _, launch = shuffled(LEFT_OUT["down"][0], after)
    (hazard,) = launch.hazards
    assert how in hazard.message and "lane 12 reads lane 16" in hazard.message


def test_a_read_of_unwritten_memory_still_stops_where_a_shuffle_is_followed():
    body = """.shared .b8 s[128]; mov.u32 %s, s; ld.shared.u32 %y, [%s+64];
    add.u32 %x, %x, 1; st.global.u32 [%g], %x; st.global.u32 [%g], %y;"""
    with pytest.raises(ptx.UninitialisedRead, match="is stored") as error:
        shuffled(LEFT_OUT["down"][0], body)
    assert [one.kind for one in error.value.hazards] == ["shuffle from a missing lane"]


@each_schedule
def test_a_mask_that_names_others_is_reported(module, given, schedule):
    with pytest.raises(ptx.Divergence, match=r"names lanes that do not run it: .*lane 20"):
        run(module, "too_many_named", given, 20, schedule=schedule)


@each_schedule
def test_a_lane_that_never_comes_to_its_warp_s_barrier_is_reported(module, given, schedule):
    with pytest.raises((ptx.Deadlock, ptx.Divergence)) as raised:
        run(module, "one_never_comes", given, 20, schedule=schedule)
    assert "bar.warp.sync" in str(raised.value)
