"""Lanes of a warp that take different paths and then act together: shuffles, votes, __syncwarp."""

import numpy as np
import pytest

import lib
from lib import ptx

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
    if (threadIdx.x < n) v += __shfl_down_sync((1u << n) - 1, v, 1);
    out[threadIdx.x] = v;
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
SCHEDULES = ("lowest", "highest", "random")


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
    out = np.zeros(32, np.int32)
    args = (out, given, np.int32(n))
    launch = module.get_function(name)((1,), (32,), args, races=True, **options)
    assert not launch.hazards
    return out


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_of_a_cold_path_are_waited_for(module, given, schedule):
    v = np.array([slow(given, i) if given[i] < 0 else i for i in range(32)], np.int32)
    assert (run(module, "shuffle", given, schedule=schedule) == v + v[np.arange(32) ^ 16]).all()
    v = np.array([slow(given, int(x)) if x < 0 else x for x in given], np.int32)
    assert (run(module, "exchange", given, schedule=schedule) == v[np.arange(32) ^ 1]).all()
    ballot = sum(int(x & 1) << i for i, x in enumerate(v))
    assert set(run(module, "vote", given, schedule=schedule).view(np.uint32).tolist()) == {ballot}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warp_s_lanes_may_wait_for_each_other_at_different_places(module, given, schedule):
    assert (run(module, "two_places", given, schedule=schedule) == given[0]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_left_need_not_come(module, given, schedule):
    assert run(module, "some_left", given, 7, schedule=schedule).tolist() == [1] * 7 + [0] * 25


def launched(module, name, given, n, block=32):
    args = (np.zeros(64, np.int32), np.resize(given, 64), np.int32(n))
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


def test_a_mask_of_those_that_run_it_is_right(module, given):
    out = run(module, "half_of_them", given, 20)
    # Lane 19 reads a lane that its mask leaves out: PTX says nothing of the value.
    assert (out[:19] == given[:19] + given[1:20]).all() and (out[20:] == given[20:]).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_mask_that_names_others_is_reported(module, given, schedule):
    with pytest.raises(ptx.Divergence, match=r"names lanes that do not run it: .*lane 20"):
        run(module, "too_many_named", given, 20, schedule=schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_lane_that_never_comes_to_its_warp_s_barrier_is_reported(module, given, schedule):
    with pytest.raises((ptx.Deadlock, ptx.Divergence)) as raised:
        run(module, "one_never_comes", given, 20, schedule=schedule)
    assert "bar.warp.sync" in str(raised.value)
