"""Which instantiation of Hopper's kernels a problem gets: the one with the least predicted time.

The prediction is a roofline with a few costs added. A step of a tile takes as long as its slowest
part: the tensor cores' products, the bytes that the SM takes in, the bytes that the L2 gives out.
Steps add up to waves, waves have a start and an end. Beside that stand the time that DRAM needs and
the energy that the chip may spend; the longest of the three counts, and a little of the others.

The costs of `H100` were fitted by random descent, in the end all of them at once, to medians of
times on H100s SXM (driver 580, CUDA 13): 369 sets of candidates in turns on 294 problems. Of these
sets 217 hold 3 to 45 candidates; the others the choice of an earlier fit and the fastest of the
eight that it ranked first. The problems are random shapes (sides log-uniform, in multiples of 1, 8
and 64), cubes, layers of Llama 3 and skinny ones, in FP16 and BF16. The kernels were those of one
version of an earlier release, of which 20 to 24 are the parts; 253 of their times are in
`tests/dispatch/timed.json`, and what was recorded then had to be chosen again. Five costs that the
fit brought down to nothing were taken out: none changed a choice. No size stands in the costs. That
ping-pong reads more from DRAM the longer K is, is a guess: at 16,384 its kernels took up to 1.35
times as long in some turns as in others, while a cooperative one's turns differed by less than 1 %.

`aspect` was fitted last and alone, with the others as they were, to the first of two searches of
candidates on layers of public models and on random shapes (``results/h100/searches``,
`lib.records.rule_searches`): its value by that one alone, while its form was settled with both in
sight. A fit of all costs to that search did little for the other one, and changed the choice of
cubes unless they were held. Costs for the empty part of a wave, or for the
flight of a ring's tiles, brought nothing on either.

On 30 random shapes that no fit had seen the choice reached 1.22 of cublasLt's best in the geometric
mean, and the fastest of the first eight 1.29. Three choices lay below 0.9, the least at 0.80: their
K was 15 to 370 times as long as M or N.

`ranked` gives all candidates in the rule's order, for trials. On 16 random shapes, with up to 40
candidates each, the fastest of an earlier fit's first eight took 0.4 % longer than the fastest of
all on average and 6 % at most; that fit's first took 8 % and 28 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lib.dispatch.choice import Choice
from lib.dispatch.fit import laid, misfits, refusal
from lib.gpus import GPUS, LINE_BYTES
from lib.kernels.grid import GATHERED_SMS, PERSISTENT_SMS
from lib.kernels.spec import TMA_STRIDE, Kernel, Variant
from lib.problem import ITEM_BYTES, Problem

L2_BYTES = GPUS["H100"].l2_bytes
# FLOP of a multiply-add.
FMA = 2
WARPS_OF_WARPGROUP = 4
# Columns of wgmma under which it takes no less time.
NARROW = 32
# Registers come in eights; what a thread that reads tiles has beside their elements, about.
REGISTERS, OTHERS = 8, 16


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
        Bytes that an SM takes in per cycle.
    read, read_flight : float
        The same where warps read the tiles; and from asking for a step's bytes to their arrival,
        which warpgroups that read in turn divide. For TMA's rings the fit found no such cost.
    l2, l2_misfit : float
        Bytes that the L2 gives out per cycle, to all; and where rows are no multiples of a line.
    aspect : float
        How much more of that a row of A takes than a column of B where the tiles under way at once
        stand taller than wide, and less where they lie wider: the exponent of their height over
        their width. Of persistent kernels it isn't known.
    dram : float
        Bytes that DRAM moves per cycle, where all SMs ask for them.
    flight : float
        From asking DRAM for bytes to their arrival: no more come in this time than rings hold.
    spill : float
        What DRAM reads more under ping-pong, as a share, for each time that A and B together fill
        the L2.
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
    spill: float
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
    products=1789.0, alone=1.33, swapped=1.075, ingest=77.45,
    read=13.04, read_flight=2352.0,
    l2=5402.0, l2_misfit=3253.0, aspect=0.16, dram=3596.0, flight=1345.0, spill=0.13, narrow=1.61, cut=1.6,
    start=2427.0, persist=1668.0, cluster=794.9, wave=2273.0, read_wave=1862.0,
    store=0.0854, odd=13.66, odd_swapped=4.793,
    share=236.8, sums=0.2763, packing_bytes=1778.0,
    energy=5.948e-07, l2_energy=25.36, sharpness=2.669,
)


def choose(kernel: Kernel, variant: Variant, problem: Problem, costs: Costs = H100) -> Choice:
    """Choose among a variant's candidates by the least predicted time: the first of `ranked`."""
    return ranked(kernel, variant, problem, costs)[0]


def ranked(
    kernel: Kernel, variant: Variant, problem: Problem, costs: Costs = H100
) -> list[Choice]:
    """A variant's candidates, by the time predicted for them, the least first.

    Those whose warps read A and B are considered only where TMA can't step over the rows.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        One with candidates.
    problem : Problem
    costs : Costs
    """
    candidates = [laid(one, problem) for one in map(kernel.variant, variant.candidates)
                  if not refusal(one, problem)]
    if not misfits(problem, TMA_STRIDE):
        candidates = [candidate for candidate in candidates if not candidate.warps_read]
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
    if variant.schedule.ping_pong:
        read *= 1 + costs.spill * (M + N) * K * item / L2_BYTES
    dram = (read + M * N * ITEM_BYTES[variant.out] * count) / costs.dram
    if tile[1] < LINE_BYTES and N > 4 * M:
        dram *= costs.narrow
    if grid.split > 1:
        dram *= costs.cut
    if not variant.warps_read:
        if at_once == busy > sms / 2:  # SMs in pairs: those where both have a block take longest
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
    are read once for each such rectangle, but all of them once at least.
    """
    M, N, grid = problem.M, problem.N, variant.grid
    down, across = _at_once(variant, problem, blocks)
    rows = min(down * variant.tile[0] * grid.cluster, M)
    columns = min(across * variant.tile[1] * grid.cluster_n, N)
    return max(max(M * N / (rows * columns), 1) * (rows + columns), M + N)


def _under_way(variant: Variant, problem: Problem, blocks: int) -> float:
    """Bytes of A and B, each counted once, that the rings of so many blocks hold."""
    (height, width), grid = variant.tile, variant.grid
    down, across = _at_once(variant, problem, blocks)
    rows = min(down * height * grid.cluster, problem.M)
    columns = min(across * width * grid.cluster_n, problem.N)
    ring: int = variant.schedule.stages * variant.step * ITEM_BYTES[variant.dtype]
    return ring * grid.split * (rows + columns)


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
    item = ITEM_BYTES[problem.dtype]
    return not any(one.lead * item % LINE_BYTES for one in problem.operands[:2])
