"""Which instantiation of Hopper's kernels a problem gets: the one with the least predicted time.

The prediction is a roofline with a few costs added. A step of a tile takes as long as its slowest
part: the tensor cores' products, the bytes that the L2 gives out, those that warps take in where
they read. Steps add up to waves, waves have a start and an end. Beside that stand the time that
DRAM needs and the energy that the chip may spend; the longest of the three counts, and a little of
the others.

The costs of `H100` were fitted by random descent to times of an H100 SXM (driver 580, CUDA 13): a
search of candidates on layers of eight models and on random shapes, another on cubes and odd shapes
(``results/h100/searches``: ``fitted``, ``recorded_shapes``; `lib.records.rule_searches`), and
searches of the same layers on earlier days. What counted was how much longer than the fastest
candidate the first one takes, a little how far off times are, and that cubes keep what they had
where that was the fastest. The bytes that an SM takes in by TMA changed no choice any more; costs
for the empty part of a wave, for DRAM's idle time between waves, and for what ping-pong reads more
from DRAM, brought nothing.

Two costs are younger than the others. Few rows ask DRAM for little more than B, and fewer bytes
than the rings of the blocks hold can't be under way: `flight`. And where more than half of the SMs
have a block, but not all, DRAM's time is that of a full GPU. For one row, tiles of 8 × 64 move 2.52
TB/s of B with 64 blocks (4096×4096), 2.13 with 72 (4608×3584) and 2.53 with 112 (7168×2048); tiles
of 32 × 128 in clusters of four 2.80 with 56 (7168×5120) and 2.29 with 64 (8192×8192). Why isn't
known; it isn't that two SMs of a pair (TPC) share their way: by %smid, 24 blocks fill pairs, too.

`ranked` gives all candidates in the rule's order, for trials. How the rule chooses on products that
no fit has seen is in ``held_out`` and ``held_out_rows``. FP32's costs are in `cuda_cores`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from lib.dispatch import cuda_cores
from lib.dispatch.fit import laid, misfits, refusal
from lib.gpus import LINE_BYTES
from lib.kernels.grid import GATHERED_SMS, PERSISTENT_SMS
from lib.kernels.spec import TMA_STRIDE, Kernel, Variant
from lib.problem import ITEM_BYTES, Problem

# FLOP of a multiply-add.
FMA = 2
WARPS_OF_WARPGROUP = 4
# Columns of wgmma under which it takes no less time.
NARROW = 32
# Registers come in eights; what a thread that reads tiles has beside their elements, about.
REGISTERS, OTHERS = 8, 16


class Choice(NamedTuple):
    """The name of the candidate that suits a shape, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Costs:
    """What things cost on one GPU, in cycles unless it says otherwise.

    Attributes
    ----------
    sms, gathered : int
        SMs, and how many of them clusters of more than two blocks can fill, since a cluster lies
        in one GPC: 15 clusters of eight, or 30 of four, ran at once.
    shared_bytes, threads, registers : int
        Of an SM, for blocks that share it.
    products : float
        Multiply-adds of an SM's tensor cores per cycle, as a loop of wgmma reaches them.
    alone, swapped : float
        How much longer products take where one warpgroup at a time has an SM's tensor cores, and
        where their operands are swapped in a kernel that isn't persistent.
    ingest : float
        Bytes that an SM takes in per cycle by TMA; infinite where that is never the limit.
    read, read_flight : float
        The same where warps read the tiles; and from asking for a step's bytes to their arrival,
        which warpgroups divide, each with every n-th step.
    l2, l2_misfit : float
        Bytes that the L2 gives out per cycle, to all; and where rows are no multiples of a line.
    aspect : float
        How much more of that a row of A takes than a column of B where the tiles under way at once
        stand taller than wide, and less where they lie wider: the exponent of their height over
        their width. Of persistent kernels it isn't known.
    dram : float
        Bytes that DRAM moves per cycle, where all SMs ask for them.
    flight : float
        From asking DRAM for bytes to their arrival: no more come in this time than rings hold. At
        0 that counts for nothing, and neither does how many SMs ask.
    narrow : float
        How much longer DRAM takes where B is far larger than A and read in narrow columns.
    cut : float
        How much longer DRAM takes where blocks share K.
    start : float
        From the launch to the first product, and from the last store to the end, with TMA.
    persist : float
        What setting up the roles of a persistent kernel adds.
    cluster : float
        What a cluster's meetings add.
    wave, read_wave : float
        What a tile adds for its first bytes where no producer has asked for them before; where
        warps read them the start is in it.
    store, odd, odd_swapped : float
        For each float of a tile of C, and how much longer where C's rows are no multiples of 16
        bytes, with pairs of a row per lane and, operands swapped, of a column.
    share, sums : float
        For adding up what blocks computed that share K: for each such block, and for each float of
        a tile.
    packing_bytes : float
        Bytes that packing moves per cycle.
    energy : float
        Cycles that a FLOP of products takes where power is the limit, all SMs together.
    l2_energy : float
        What a row of a step that the L2 gives out adds to that, for each element of a tile of C.
    sharpness : float
        The exponent by which time, DRAM's time and energy are added; infinite if they overlapped
        perfectly.
    step : float
        The least that a step of a tile takes, however few its products.
    """

    sms: int
    gathered: int
    shared_bytes: int
    threads: int
    registers: int
    products: float
    alone: float
    swapped: float
    ingest: float
    read: float
    read_flight: float
    l2: float
    l2_misfit: float
    aspect: float
    dram: float
    flight: float
    narrow: float
    cut: float
    start: float
    persist: float
    cluster: float
    wave: float
    read_wave: float
    store: float
    odd: float
    odd_swapped: float
    share: float
    sums: float
    packing_bytes: float
    energy: float
    l2_energy: float
    sharpness: float
    step: float = 0.0


H100 = Costs(
    sms=PERSISTENT_SMS, gathered=GATHERED_SMS,
    shared_bytes=227 * 1024, threads=2048, registers=65536,
    products=1883.0, alone=1.409, swapped=1.157, ingest=math.inf,
    read=13.84, read_flight=2215.0,
    l2=6017.0, l2_misfit=2283.0, aspect=0.1045,
    dram=2875.0, flight=2213.0, narrow=1.144, cut=1.57,
    start=1319.0, persist=1379.0, cluster=982.4, wave=3162.0, read_wave=1754.0,
    store=0.143, odd=13.66, odd_swapped=4.793,
    share=157.8, sums=0.3062, packing_bytes=1888.0,
    energy=5.338e-07, l2_energy=33.62, sharpness=2.379,
)

# So many rows of C, each of so many columns at least, have costs and candidates of their own. They
# were fitted to the searches ``h100/rows`` and ``h200/fitted_rows``; in ``h200/held_out_rows`` is
# what they choose on products that the fit hasn't seen. Elsewhere `H100` chooses better.
ROWS, COLUMNS = range(65, 401), 1024
ROWS_H100 = replace(
    H100,
    products=1811.0, alone=1.1, swapped=0.9763, read=18.67, read_flight=1645.0, l2=5536.0,
    l2_misfit=2222.0, aspect=0.1077, dram=2976.0, flight=2602.0, narrow=1.099, cut=1.176,
    start=690.2, persist=1487.0, cluster=791.0, wave=2313.0, read_wave=1564.0, store=0.1639,
    odd=9.988, odd_swapped=3.15, share=94.73, sums=0.4229, packing_bytes=1921.0, energy=4.792e-07,
    l2_energy=47.34, sharpness=2.302,
)

# The fit before, less a cost of ping-pong: to 369 sets of candidates, on kernels of an earlier
# release. What 25 and 26 choose was measured with it; no search has timed their kernels since.
EARLIER = replace(
    H100, products=1789.0, alone=1.33, swapped=1.075, ingest=77.45,
    read=13.04, read_flight=2352.0,
    l2=5402.0, l2_misfit=3253.0, aspect=0.16, dram=3596.0, flight=0.0, narrow=1.61, cut=1.6,
    start=2427.0, persist=1668.0, cluster=794.9, wave=2273.0, read_wave=1862.0, store=0.0854,
    share=236.8, sums=0.2763, packing_bytes=1778.0,
    energy=5.948e-07, l2_energy=25.36, sharpness=2.669,
)


def ranked(
    kernel: Kernel, variant: Variant, problem: Problem, costs: Costs | None = None
) -> list[Choice]:
    """A variant's candidates, by the time predicted for them, the least first.

    Those whose warps read A and B are considered only where TMA can't step over the rows.

    `variant`: one with candidates. `costs`: by default those of an H100 for so many rows.
    """
    rows = problem.M in ROWS and problem.N >= COLUMNS
    candidates = [laid(one, problem) for one in map(kernel.variant, variant.candidates)
                  if (rows or not one.for_rows) and not refusal(one, problem)]
    costs = costs or (ROWS_H100 if any(one.for_rows for one in candidates) else H100)
    if not misfits(problem, TMA_STRIDE):
        candidates = [candidate for candidate in candidates if not candidate.warps_read]
    if problem.dtype == "float32":
        candidates.sort(key=lambda candidate: cuda_cores.cycles(candidate, problem))
    else:
        candidates.sort(key=lambda candidate: cycles(candidate, problem, costs))
    of = f"of {len(candidates)} candidates"
    return [
        Choice(one.name, f"{one.name}: predicted to be number {place} {of}" if place > 1 else
               f"{one.name}: the least predicted time {of}")
        for place, one in enumerate(candidates, 1)
    ]


def cycles(variant: Variant, problem: Problem, costs: Costs = H100) -> float:
    """Predict how long a variant takes on a problem, cycles."""
    tile, grid = variant.tile, variant.grid
    area, item = tile[0] * tile[1], ITEM_BYTES[variant.dtype]
    # Rows of 128 bytes that a block asks of the L2 in a step; a cluster shares them.
    rows = tile[0] / grid.cluster_n + tile[1] / grid.cluster
    blocks = grid.cluster_tiles(problem, tile) * grid.size
    sms = costs.gathered if grid.size > 2 else costs.sms
    at_once = min(blocks, sms * _blocks_of_sm(variant, costs))
    busy = min(blocks, sms)
    sharing = -(-at_once // busy)  # blocks of the SM that has most
    steps = math.ceil(math.ceil(problem.K / variant.step) / grid.split)

    products = _multiplied(variant) * variant.step / costs.products
    if _one_warpgroup(variant, blocks, costs) and sharing == 1:
        products *= costs.alone
    if variant.schedule.swapped and not grid.blocks_per_sm:
        products *= costs.swapped
    l2 = costs.l2 if _fits_lines(problem) else costs.l2_misfit
    weighed = rows if grid.blocks_per_sm else _weighed(variant, problem, at_once, costs.aspect)
    from_l2 = weighed * LINE_BYTES * busy / min(l2, costs.l2)
    taken = costs.read if variant.warps_read else costs.ingest
    of_block = max(products, sum(tile) * LINE_BYTES / taken, from_l2)
    loop = steps * max(of_block * sharing, costs.step)
    stored = costs.store * area * ITEM_BYTES[variant.out] / ITEM_BYTES["float32"]
    if problem.N * ITEM_BYTES[variant.out] % TMA_STRIDE:
        stored *= costs.odd_swapped if variant.schedule.swapped else costs.odd
    tail = stored * sharing
    waves = -(-blocks // at_once)

    start = 0.0 if variant.warps_read else costs.start
    busy_time = start
    if grid.size > 1:
        busy_time += costs.cluster
    if variant.warps_read:  # an SM's blocks overlap but for what it can read and store
        arrival = costs.read_flight / variant.schedule.loaders
        one = steps * max(of_block, arrival) + costs.read_wave + stored
        busy_time += max(waves * one, -(-blocks // sms) * (steps * of_block + stored))
    elif not grid.blocks_per_sm:
        busy_time += waves * (loop + costs.wave + tail)
    elif variant.schedule.ping_pong:  # stores hide behind the other's products, the last apart
        busy_time += costs.persist + waves * max(loop, (loop + tail) / 2) + tail
    else:
        busy_time += costs.persist + waves * (loop + tail)
    if grid.split > 1:
        busy_time += costs.share * grid.split + costs.sums * area

    M, N, K, count = problem.M, problem.N, problem.K, problem.batch
    read = _panels(variant, problem, at_once) * K * item * count
    dram = (read + M * N * ITEM_BYTES[variant.out] * count) / costs.dram
    if tile[1] < LINE_BYTES and N > 4 * M:
        dram *= costs.narrow
    if grid.split > 1:
        dram *= costs.cut
    if costs.flight and not variant.warps_read:
        if at_once == busy > sms / 2:  # as if all had one
            dram *= sms / busy
        dram = max(dram, read / _under_way(variant, problem, at_once) * costs.flight)
    dram_time = start + dram
    energy_time = FMA * M * N * K * count * costs.energy * (1 + costs.l2_energy * rows / area)
    power = costs.sharpness
    total: float = (busy_time**power + dram_time**power + energy_time**power) ** (1 / power)

    packed = misfits(problem, TMA_STRIDE)
    if packed and not variant.warps_read:
        traffic = sum(one.lines * one.length * one.distinct
                    for one in map(problem.operand, packed)) * item
        total += 2 * traffic / costs.packing_bytes
    return total


def _panels(variant: Variant, problem: Problem, blocks: int) -> float:
    """Rows of A and columns of B that DRAM sends, where the L2 keeps those that are in use.

    The tiles that so many blocks work on at once make a rectangle of C, and its rows and columns
    are read once for each such rectangle.
    """
    rows, columns = _rectangle(variant, problem, blocks)
    return problem.M * problem.N / (rows * columns) * (rows + columns)


def _under_way(variant: Variant, problem: Problem, blocks: int) -> float:
    """Bytes of A and B, each counted once, that the rings of so many blocks hold."""
    rows, columns = _rectangle(variant, problem, blocks)
    ring: int = variant.schedule.stages * variant.step * ITEM_BYTES[variant.dtype]
    return ring * variant.grid.split * (rows + columns)


def _rectangle(variant: Variant, problem: Problem, blocks: int) -> tuple[int, float]:
    """Rows and columns of C that so many blocks work on at once."""
    down, across = _at_once(variant, problem, blocks)
    return (min(down * variant.tile[0] * variant.grid.cluster, problem.M),
            min(across * variant.tile[1] * variant.grid.cluster_n, problem.N))


def _at_once(variant: Variant, problem: Problem, blocks: int) -> tuple[int, float]:
    """Clusters' tiles, down and across C, that so many blocks work on at once."""
    grid = variant.grid
    down = -(-problem.M // (variant.tile[0] * grid.cluster))
    across = -(-problem.N // (variant.tile[1] * grid.cluster_n))
    clusters = max(blocks // grid.size, 1)
    band = min(variant.schedule.group if grid.blocks_per_sm else down, down, clusters)
    return band, min(clusters / band, across)


def _weighed(variant: Variant, problem: Problem, blocks: int, aspect: float) -> float:
    """Rows that a block asks of the L2 in a step, those of A and B weighed by the `aspect`."""
    (height, width), grid = variant.tile, variant.grid
    down, across = _at_once(variant, problem, blocks)
    high, wide = down * height * grid.cluster, across * width * grid.cluster_n
    of_a: float = height / grid.cluster_n * 2 / (1 + (wide / high) ** aspect)
    of_b: float = width / grid.cluster * 2 / (1 + (high / wide) ** aspect)
    return of_a + of_b


def _blocks_of_sm(variant: Variant, costs: Costs) -> int:
    """Blocks that an SM holds, by shared memory and threads; a persistent kernel's are few."""
    if variant.grid.blocks_per_sm:
        return variant.grid.blocks_per_sm
    by_shared = costs.shared_bytes // (variant.shared_bytes + 1024)
    by_threads = costs.threads // variant.threads
    if not variant.warps_read:
        return min(by_shared, by_threads)
    # A thread holds two elements of every fourth row, in a register each, and some more.
    registers = math.ceil((sum(variant.tile) / 2 + OTHERS) / REGISTERS) * REGISTERS
    return min(by_shared, by_threads, costs.registers // (registers * variant.threads))


def _one_warpgroup(variant: Variant, blocks: int, costs: Costs) -> bool:
    """Whether one warpgroup at a time multiplies on an SM that holds one block."""
    if variant.grid.blocks_per_sm:  # ping-pong, and no second tile for the other one
        return variant.schedule.ping_pong and blocks <= costs.sms
    return dict(variant.roles.warps)["consumers"] == WARPS_OF_WARPGROUP


def _multiplied(variant: Variant) -> int:
    """Elements of C that the tensor cores' time goes by: fewer than 32 columns take as long as 32.

    It has to read its first operand, 64 rows of 32 bytes, at 128 bytes of shared memory per cycle.
    """
    rows, columns = variant.tile
    return max(rows, NARROW) * columns if variant.schedule.swapped else rows * columns


def _fits_lines(problem: Problem) -> bool:
    """Whether rows of A and B are multiples of a line of the L2."""
    return not any(one.lead * ITEM_BYTES[one.dtype] % LINE_BYTES for one in problem.operands[:2])
