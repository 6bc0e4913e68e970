"""How long FP32 on CUDA cores takes, by a roofline with a few costs added: what `cost` ranks by.

A step of K takes a block its multiply-adds, what reads their operands, and the copies that bring
the next ones: 16 bytes at once where rows allow it, else a float. Few resident sums hide less.
Beside these steps stand the time that a ring waits for its bytes, that of DRAM and of the L2; the
longest counts, and a little of the others. Waves, shared tiles and stores come on top.

The costs of `H100` were fitted by random descent to times of shapes off the cubes, of an H100 SXM
and of an H200 (``results/h100/searches/fp32.jsonl``, ``results/h200/searches/fitted_rows.jsonl``).
What they choose on shapes that the fit hasn't seen is in ``held_out_rows.jsonl``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from lib.kernels.grid import GATHERED_SMS, PERSISTENT_SMS
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES, Problem

# Of an SM: multiply-adds per cycle, registers, threads and shared memory for its blocks.
FMA, REGISTERS, THREADS, SHARED = 128, 65536, 2048, 227 * 1024
# Floats of a copy of 16 bytes, and registers of a thread beside its sums and fragments, about.
WIDE, OTHERS = 4, 40


@dataclass(frozen=True)
class Costs:
    """What things cost on one GPU, in cycles unless it says otherwise."""

    # Reading 16 bytes of operands, a warp's; copying 128 floats one by one across the rows of A,
    # along rows of B, and 128 times 16 bytes of them.
    read: float
    across: float
    along: float
    wide: float
    spread: float  # of that, what 09's own loop needs, which deals copies out over several steps
    # Sums, and warps, that an SM would need to be half as fast as with many.
    sums_half: float
    warps_half: float
    step: float  # the barrier of a step, for eight warps
    flight: float  # from asking for a stage to its arrival
    # Bytes per cycle of all SMs.
    dram: float
    l2: float
    # A launch, and the share of that where it may begin while another one ends; a wave of tiles.
    start: float
    early: float
    wave: float
    # For each block that shares K, for each sum that blocks and warps add up, for each of a tile
    # that is cut, and for each that is stored.
    share: float
    added: float
    cut: float
    store: float
    sharpness: float  # the exponent by which times are added


H100 = Costs(
    read=0.2599, across=24.82, along=53.22, wide=63.87, spread=0.7853, sums_half=329.4,
    warps_half=0.04464, step=5.607, flight=1007.0, dram=881.2, l2=1292.0, start=5503.0,
    early=0.3437, wave=1037.0, share=203.6, added=0.2267, cut=2.698, store=0.03991, sharpness=5.611,
)


def cycles(variant: Variant, problem: Problem, costs: Costs = H100) -> float:
    """Predict how long a variant of 09, or of the step beside it, takes on a problem, cycles."""
    schedule, grid = variant.schedule, variant.grid
    (BM, BN), BK, area = schedule.tile, variant.step, schedule.tile[0] * schedule.tile[1]
    # A lane's rows and columns: 09 names those of a warp, which are 8 lanes by 4.
    TM, TN = schedule.thread if variant.file else (schedule.warp[0] // 8, schedule.warp[1] // 4)
    slices = int(schedule.own.get("SLICES", 1))
    tiles, steps = grid.cluster_tiles(problem, variant.tile), max(ceil(problem.K / BK), 1)
    resident = grid.blocks_per_sm or max(schedule.blocks, min(
        SHARED // (variant.shared_bytes + 1024), THREADS // variant.threads,
        REGISTERS // (variant.threads * (TM * TN + 2 * (TM + TN) + OTHERS))))
    sms = GATHERED_SMS if grid.split > 2 else PERSISTENT_SMS
    blocks = grid.blocks(problem, variant.tile, BK, PERSISTENT_SMS)[0]
    shared_out = bool(grid.blocks_per_sm) and blocks != tiles  # in equal shares
    if shared_out:
        of_sm, waves, each = max(blocks / sms, 1.0), 1, steps * tiles / blocks
    else:
        of_sm, waves = ceil(blocks / sms), ceil(blocks / (sms * resident))
        each = ceil(steps / grid.split)
    at_once = min(resident, of_sm)

    wide = schedule.vec == WIDE and problem.N % WIDE == 0
    along = costs.wide / WIDE if wide else costs.along
    copies = (BM * (costs.across if problem.a_layout == "row" else along)
              + BN * (along if problem.b_layout == "row" else costs.across))
    copies *= 1 if variant.file else costs.spread
    issue = BK / FMA * (area + costs.read * area * (1 / TM + 1 / TN) / WIDE + copies)
    issue *= 1 + costs.sums_half / (at_once * area * slices**2)
    warps = at_once * variant.threads / 32
    issue = issue * (1 + costs.warps_half / warps) + costs.step / min(warps / 8, 4)

    item = ITEM_BYTES["float32"]
    M, N, K = problem.M, problem.N, problem.K
    traffic = item * (M * K + K * N + M * N) * problem.batch
    asked = BK * (min(BM, M) + min(BN, N)) * item  # by a block, in a step
    ahead = max(schedule.stages - 1, 1)
    under_way = min(blocks, sms * resident) * ahead * asked
    power = costs.sharpness
    parts = (of_sm * each * issue, waves * each * costs.flight / ahead,
             max(traffic / costs.dram, traffic / under_way * costs.flight),
             tiles * steps * asked / costs.l2)
    total: float = sum(part**power for part in parts) ** (1 / power)
    total += costs.start * (costs.early if variant.programmatic_launch else 1)
    total += waves * costs.wave + costs.store * area
    if slices * grid.split > 1:
        total += costs.added * area * slices * of_sm
    if grid.split > 1:
        total += costs.share * grid.split
    return total + costs.cut * area * shared_out
