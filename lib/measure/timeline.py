"""What the warps of a block do, cycle by cycle: marks inside the kernel, read back and sorted.

See ``cuda/include/timeline.cuh`` for how a mark is made. Events of one SM share its clock; SMs are
compared through the nanoseconds that each block notes at its start and end.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import cast

import numpy as np

from lib.compiler.compiled import compile_file
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch
from lib.kernels.spec import Kernel, Variant
from lib.measure.bench import elapsed
from lib.paths import CUDA
from lib.problem import Problem
from lib.ptx.core.machine import WARP
from lib.records.schema import Block, Timeline, Type
from lib.run import device
from lib.run.runner import prepare

# The order of `Timeline::Phase` in timeline.cuh; END closes the last phase.
PHASES = ("load", "wait", "compute", "barrier", "store", "end")

# What is noted: by the blocks that begin in the first wave on one SM, the first warps, the first
# events. Marks slow the SM that is looked at; all others run at nearly their usual speed.
BLOCKS = 1024
WARPS = 12  # two warpgroups that multiply, and the one of the producer (17, 18)
CAPACITY = 128
SM = 0

# Blocks of the overview that a record keeps: enough for a picture, small enough for a diff.
OVERVIEW_BLOCKS = 512

_BUFFERS = np.dtype(
    [("events", "u8"), ("overview", "u8"), ("blocks", "u4"), ("warps", "u4"), ("capacity", "u4"),
     ("sm", "u4"), ("zero", "u4"), ("padding", "u4")]
)


def timeline(kernel: Kernel, variant: Variant, problem: Problem) -> Timeline:
    """Run a kernel with its marks compiled in and return a record's timeline.

    `kernel`, `variant`, `problem`: what to run. Returns `blocks`: two blocks of one SM that ran at
    the same time (one if none did), each with its first warps' (phase, cycle) pairs, cycles counted
    from the first event. `overview`: for each of the first blocks its SM, first and last
    nanosecond. `mark_cycles`: what one mark costs. `seconds_with` and `seconds_without` marks.
    Raises NoGpu if there is no GPU.
    """
    cp = device.cupy()
    operands = problem.inputs(0, cp)
    prepared = prepare(kernel, variant, problem, [operands], exact=not variant.by_rule)
    selected, launch, args = prepared.steps[0][-1]
    arch = device.arch(kernel.needs(selected))
    marked = device.Loaded(compile_kernel(kernel, selected, arch, timeline=True))
    plain = device.Loaded(compile_kernel(kernel, selected, arch))
    buffers = _Buffers(launch)
    marked.set_symbol("timeline_buffers", buffers.symbol)
    with_marks = _seconds(lambda: marked(launch, args))
    without = _seconds(lambda: plain(launch, args))
    buffers.clear()
    marked(launch, args)
    overview = buffers.overview.get()
    chosen = _pair_on_one_sm(overview[:buffers.blocks])
    events = {block: buffers.events[block].get() for block in chosen}
    warps = launch.block[0] * launch.block[1] // WARP
    return Timeline(
        M=problem.M, N=problem.N, K=problem.K, dtype=cast(Type, problem.dtype),
        hash=kernel.hash(variant, marks=True), events=tuple(PHASES),
        mark_cycles=mark_cycles(), seconds_with=with_marks, seconds_without=without,
        warps=warps, sm=SM, total_blocks=len(overview),
        blocks=tuple(_relative(events)),
        overview=tuple(_relative_overview(overview[:OVERVIEW_BLOCKS])),
    )


class _Buffers:
    """Device memory for the marks of one launch."""

    def __init__(self, launch: Launch) -> None:
        cp = device.cupy()
        grid = launch.grid[0] * launch.grid[1]
        self.blocks = min(BLOCKS, grid)
        self.events = cp.zeros((self.blocks, WARPS, CAPACITY, 2), dtype=cp.uint32)
        self.overview = cp.zeros((grid, 3), dtype=cp.uint64)
        self.symbol = np.array(
            (self.events.data.ptr, self.overview.data.ptr, self.blocks, WARPS, CAPACITY, SM, 0, 0),
            dtype=_BUFFERS,
        )

    def clear(self) -> None:
        self.events[...] = 0
        self.overview[...] = 0


def mark_cycles() -> float:
    """What one mark costs: the median distance of marks that have nothing between them, cycles."""
    compiled = compile_file(CUDA / "mark_cost.cu", "mark_cost<64>", device.arch(), ("-DTIMELINE",))
    loaded = device.Loaded(compiled)
    # One block an SM at most, so that one of them is on the SM that notes.
    launch = Launch((2 * device.sms(), 1, 1), (32, 1, 1))
    buffers = _Buffers(launch)
    loaded.set_symbol("timeline_buffers", buffers.symbol)
    for _ in range(3):  # the first run meets cold instruction caches
        loaded(launch, ())
    events = buffers.events[:, 0, :64].get()
    noted = events[(events[..., 0] != 0).all(axis=1)]
    return float(np.median(np.diff(_cycles(noted))))


def _cycles(events: np.ndarray) -> np.ndarray:
    """Clocks counted from each row's first one; the 32-bit clock may wrap once."""
    clock = events[..., 0]
    return (clock - clock[..., :1]).astype(np.int64)


def _pair_on_one_sm(overview: np.ndarray) -> list[int]:
    """The first block on the SM that notes, and another that shared its time, if one did."""
    sm, start, end = (overview[:, i].astype(np.int64) for i in range(3))
    on_it = np.flatnonzero(sm == SM)
    first = int(on_it[np.argmin(start[on_it])])
    together = on_it[(start[on_it] < end[first]) & (on_it != first)]
    return [first, *(int(b) for b in together[np.argsort(start[together])][:1])]


def _relative(events: dict[int, np.ndarray]) -> list[Block]:
    """The events of the chosen blocks, cycles counted from the earliest one."""
    # A clock of 32 bits wraps every few seconds; differences from a common one do not care.
    origin = next(iter(events.values()))[0, 0, 0]
    relative = {
        block: (rows[..., 0] - origin).astype(np.int32).astype(np.int64)
        for block, rows in events.items()
    }
    first = min(
        int(cycles[events[block][:, 0, 0] != 0, 0].min()) for block, cycles in relative.items()
    )
    blocks = []
    for block, rows in events.items():
        warps = []
        for row, cycles in zip(rows, relative[block], strict=True):
            noted = row[:, 0] != 0
            pairs = zip(row[noted, 1], cycles[noted] - first, strict=True)
            warps.append(tuple((int(phase), int(cycle)) for phase, cycle in pairs))
        blocks.append(Block(block=block, sm=SM, warps=tuple(filter(None, warps))))
    return blocks


def _relative_overview(overview: np.ndarray) -> list[tuple[int, int, int]]:
    """SM, start and end in nanoseconds since the first block began."""
    first = int(overview[:, 1].min())
    return [(int(sm), int(start) - first, int(end) - first) for sm, start, end in overview]


def _seconds(call: Callable[[], None], repeats: int = 7) -> float:
    """Median seconds of a launch between two events."""
    call()
    return statistics.median(elapsed(call) for _ in range(repeats))
