"""What the warps of a block do, cycle by cycle: marks inside the kernel, read back and sorted.

See ``cuda/include/timeline.cuh`` for how a mark is made. Events of one SM share its clock; SMs are
compared through the nanoseconds that each block notes at its start and end.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from lib import device
from lib.compiler import compile_file, compile_kernel
from lib.kernels import CUDA, Kernel, Launch, Variant
from lib.problem import Problem
from lib.runner import arguments

# The order of `Timeline::Phase` in timeline.cuh; END closes the last phase.
PHASES = ("load", "wait", "compute", "barrier", "store", "end")

# What one warp can note, and how many blocks note events: more than the first wave of any GPU of
# today, so that two blocks of one SM are among them.
CAPACITY = 192
BLOCKS = 528

# What a record keeps: enough for a picture, small enough for a diff.
KEPT_WARPS = 8
KEPT_OVERVIEW = 512

_BUFFERS = np.dtype(
    [("events", "u8"), ("overview", "u8"), ("blocks", "u4"), ("capacity", "u4"), ("skip", "u4"),
     ("zero", "u4")]
)


def timeline(
    kernel: Kernel, variant: Variant, problem: Problem, skip: int = 0, keep: int = 96
) -> dict[str, Any]:
    """Run a kernel with its marks compiled in and return a record's timeline.

    Parameters
    ----------
    kernel, variant, problem
        What to run.
    skip : int
        Events that each warp lets pass first, to look at a later part of the kernel.
    keep : int
        Events to keep of each warp.

    Returns
    -------
    dict
        `blocks`: two blocks of one SM that ran at the same time (one if none did), each with its
        SM and, for its first warps, ``[phase, cycle]`` pairs, cycles counted from the first event
        kept. `overview`: for each of the first blocks its SM, first and last nanosecond.
        `mark_cycles`: what one mark costs. `seconds_with` and `seconds_without` marks.

    Raises
    ------
    NoGpu
        If there is no GPU.
    """
    cp = device.cupy()
    launch = kernel.launch(problem, variant)
    marked = device.Loaded(compile_kernel(kernel, variant, device.arch(), timeline=True))
    plain = device.Loaded(compile_kernel(kernel, variant, device.arch()))
    args = arguments(problem, *problem.inputs(0, cp))
    buffers = _Buffers(launch, skip)
    marked.set_symbol("timeline_buffers", buffers.symbol)
    with_marks = _seconds(lambda: marked(launch, args))
    without = _seconds(lambda: plain(launch, args))
    buffers.clear()
    marked(launch, args)
    overview = buffers.overview.get()
    chosen = _pair_on_one_sm(overview, buffers.blocks)
    events = {int(b): buffers.events[b].get() for b in chosen}
    return {
        "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "phases": list(PHASES),
        "mark_cycles": mark_cycles(), "seconds_with": with_marks, "seconds_without": without,
        "sm_clock_hz": _clock_hz(overview, buffers.events, chosen),
        "skip": skip, "warps": events[chosen[0]].shape[0],
        "blocks": _relative(events, overview, keep),
        "overview": _relative_overview(overview[:KEPT_OVERVIEW]),
    }


class _Buffers:
    """Device memory for the marks of one launch."""

    def __init__(self, launch: Launch, skip: int) -> None:
        cp = device.cupy()
        grid = launch.grid[0] * launch.grid[1]
        warps = -(-launch.block[0] * launch.block[1] // 32)
        self.blocks = min(BLOCKS, grid)
        self.events = cp.zeros((self.blocks, warps, CAPACITY), dtype=cp.uint64)
        self.overview = cp.zeros((grid, 3), dtype=cp.uint64)
        self.symbol = np.array(
            (self.events.data.ptr, self.overview.data.ptr, self.blocks, CAPACITY, skip, 0),
            dtype=_BUFFERS,
        )

    def clear(self) -> None:
        self.events[...] = 0
        self.overview[...] = 0


def mark_cycles() -> float:
    """What one mark costs: the median distance of marks that have nothing between them, cycles."""
    cp = device.cupy()
    compiled = compile_file(CUDA / "mark_cost.cu", "mark_cost<64>", device.arch(), ("-DTIMELINE",))
    loaded = device.Loaded(compiled)
    launch = Launch((1, 1, 1), (32, 1, 1))
    buffers = _Buffers(launch, 0)
    loaded.set_symbol("timeline_buffers", buffers.symbol)
    for _ in range(3):  # the first run meets cold instruction caches
        loaded(launch, ())
    cp.cuda.get_current_stream().synchronize()
    cycles = _cycles(buffers.events[0, 0].get()[:64])
    return float(np.median(np.diff(cycles)))


def _cycles(events: np.ndarray) -> np.ndarray:
    return (events & np.uint64(2**56 - 1)).astype(np.int64)


def _phases(events: np.ndarray) -> np.ndarray:
    return (events >> np.uint64(56)).astype(np.int64)


def _pair_on_one_sm(overview: np.ndarray, blocks: int) -> list[int]:
    """Block 0 and another block that shared its SM and its time, if one did."""
    sm, start, end = (overview[:blocks, i].astype(np.int64) for i in range(3))
    together = np.flatnonzero((sm == sm[0]) & (start < end[0]) & (end > start[0]))
    return [0, *(int(b) for b in together[together != 0][:1])]


def _relative(
    events: dict[int, np.ndarray], overview: np.ndarray, keep: int
) -> list[dict[str, Any]]:
    """The events of the chosen blocks, cycles counted from the earliest kept one."""
    first = min(int(_cycles(e[:KEPT_WARPS, 0]).min()) for e in events.values())
    blocks = []
    for block, rows in events.items():
        warps = []
        for row in rows[:KEPT_WARPS]:
            noted = row[row != 0][:keep]
            pairs = zip(_phases(noted), _cycles(noted) - first, strict=True)
            warps.append([[int(phase), int(cycle)] for phase, cycle in pairs])
        blocks.append({"block": block, "sm": int(overview[block, 0]), "warps": warps})
    return blocks


def _relative_overview(overview: np.ndarray) -> list[list[int]]:
    """SM, start and end in nanoseconds since the first block began."""
    first = int(overview[:, 1].min())
    return [[int(sm), int(start) - first, int(end) - first] for sm, start, end in overview]


def _clock_hz(overview: np.ndarray, events: Any, chosen: list[int]) -> float | None:
    """SM clock while the marks were made: cycles over nanoseconds of one block, if long enough."""
    rows = _cycles(events[chosen[0]].get())
    noted = rows[0][rows[0] != 0]
    # Only a block whose every event was kept spans the same time as its nanoseconds do.
    if len(noted) == 0 or len(noted) == CAPACITY:
        return None
    nanoseconds = int(overview[chosen[0], 2]) - int(overview[chosen[0], 1])
    return float(noted[-1] - noted[0]) / nanoseconds * 1e9 if nanoseconds > 10_000 else None


def _seconds(call: Any, repeats: int = 7) -> float:
    """Median seconds of a launch between two events."""
    cp = device.cupy()
    call()
    times = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(times)
