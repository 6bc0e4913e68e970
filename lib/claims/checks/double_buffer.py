"""Judges of the double-buffering tutorial's claims (ids beginning with D)."""

from __future__ import annotations

from collections import Counter
from math import isclose

from lib.claims.checks.shared import (
    BOTH,
    CONFLICTS,
    DOUBLE,
    PADDED,
    TILE32,
    TILED,
    TWO_BUFFERS,
    either,
    emulator,
    fma_per_tensor_core,
    record,
)
from lib.claims.evidence import (
    EMULATED,
    FMA_PIPE,
    L1_DATA,
    LONG_SCOREBOARD,
    MODELLED,
    RECORDED,
    REPORTED,
    Evidence,
    Verdict,
)
from lib.records.schema import SWEEPS, Swept
from lib.records.sweeps import DOUBLE_BUFFER, gain, intensity, tile_of
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.time.pipeline.model import period


def padding_d9(evidence: Evidence) -> Verdict:
    """Whether the unpadded tiled kernel has conflicts to remove, and what padding it costs."""
    counters = evidence.counters(TILED, TILE32)
    padded = evidence.counters(CONFLICTS, PADDED)
    extra = counters["shared_wavefronts"] - counters["shared_wavefronts_ideal"]
    slower = (
        evidence.bench("H100", CONFLICTS, PADDED, 2048).seconds
        / evidence.bench("H100", TILED, TILE32, 2048).seconds
    )
    return Verdict(
        either(extra > 0),
        f"Without padding the tiled kernel needs {counters['shared_wavefronts']:,} wavefronts and "
        f"the ideal is {counters['shared_wavefronts_ideal']:,}: {extra} to remove. One operand is "
        f"a broadcast, the other 32 consecutive floats. Padded it needs "
        f"{padded['shared_wavefronts']:,}, since rows of 33 floats rule out 128-bit loads, and "
        f"takes {slower:.2f}× the time on an H100 at 2,048.",
        (EMULATED, RECORDED),
        f"{emulator(TILED)}; {emulator(f'steps/{CONFLICTS}_tile')}; {record('H100', CONFLICTS)}",
    )


def compute_time_d12(evidence: Evidence) -> Verdict:
    """Multiply-adds of one tile step, against the claim's TILE³ FLOP."""
    n = 32
    count = evidence.counters(TILED, TILE32, n)["ffma_thread_instructions"]
    return Verdict(
        either(2 * count == n**3),
        f"A {n}×{n}×{n} step is {count:,} multiply-adds, TILE³, and so {2 * count:,} FLOP: over "
        f"FLOP per cycle, a factor 2 is missing.",
        (EMULATED, MODELLED),
        f"`cuda/{TILED}.cu` in the emulator, {n}×{n}×{n}",
    )


def _gain(evidence: Evidence, variant: str, n: int) -> float:
    """Speed of one of 07's small tiles over that of the padded kernel, less 1."""
    before = evidence.bench("H100", CONFLICTS, PADDED, n).seconds
    return before / evidence.bench("H100", DOUBLE, variant, n).seconds - 1


def half_idle_d1(evidence: Evidence) -> Verdict:
    """How busy the FMA pipe is without a second buffer, and what time the second one saves."""
    busy = evidence.counter("H100", CONFLICTS, PADDED, 2048, FMA_PIPE)
    gains = {name: _gain(evidence, name, 2048) for name in (TWO_BUFFERS, BOTH)}
    return Verdict(
        either(isclose(busy, 50, abs_tol=10) and max(gains.values()) > 0.2),
        f"On an H100 at 2,048 the FMA pipe is idle for {100 - busy:.0f}% of the time, not for "
        f"half, and hardly for want of data from global memory: 700 to 550 would be 27% more "
        f"speed, and the seed's form gives {gains[TWO_BUFFERS]:+.1%}, the staged form "
        f"{gains[BOTH]:+.1%}. What is busy is shared memory.",
        (RECORDED,),
        f"{record('H100', CONFLICTS)}; {record('H100', DOUBLE)}",
    )


def buffers_d2(evidence: Evidence) -> Verdict:
    """Static shared memory of the padded kernel and of the double-buffered one."""
    single = evidence.resources(CONFLICTS, PADDED).shared_bytes
    double = evidence.resources(DOUBLE, TWO_BUFFERS).shared_bytes
    return Verdict(
        either(isclose(single, 8.4e3, rel_tol=0.01) and isclose(double, 16.8e3, rel_tol=0.01)),
        f"{single:,} bytes, 2 × 32 × 33 × 4, and {double:,} with two buffers.",
        (MODELLED,),
        "what ptxas reports for both, sm_75",
    )


def asynchronous_d3(evidence: Evidence) -> Verdict:
    """Arithmetic between the loads and the stores that need them; stalls for global memory."""
    work = {
        name: [evidence.work_between(DOUBLE, name, arch) for arch in ("sm_75", "sm_80", "sm_90a")]
        for name in (TWO_BUFFERS, BOTH)
    }
    stalls = {
        name: evidence.counter("H100", DOUBLE, name, 2048, LONG_SCOREBOARD)
        for name in (TWO_BUFFERS, BOTH)
    }
    return Verdict(
        either(min(work[TWO_BUFFERS]) > 0),
        f"A load is asynchronous until something needs its value, and in the seed's form the next "
        f"statement does: its machine code has {max(work[TWO_BUFFERS])} multiply-adds between the "
        f"loads and the stores. Kept in registers until the tile is done, there are "
        f"{min(work[BOTH])} to {max(work[BOTH])} of 32, and the stall for global memory falls "
        f"from {stalls[TWO_BUFFERS]:.1f} to {stalls[BOTH]:.2f} warps per issue (H100, 2,048).",
        (MODELLED, RECORDED),
        f"SASS of the main loop for sm_75, sm_80, sm_90a; {record('H100', DOUBLE)}",
    )


def one_barrier_d4(evidence: Evidence) -> Verdict:
    """Races with the one barrier, and without it."""
    with_it = {name: evidence.races(DOUBLE, name) for name in (TWO_BUFFERS, BOTH)}
    without = {
        name: evidence.races(DOUBLE, name, "the next tiles are whole")
        for name in (TWO_BUFFERS, BOTH)
    }
    return Verdict(
        either(not any(with_it.values()) and all(without.values())),
        "The race detector finds nothing in either form with one barrier per tile, and finds races "
        "in both when it is left out.",
        (EMULATED,),
        f"`cuda/steps/{DOUBLE}_tile.cu` in the emulator, 64×64×96, sm_75",
    )


def gain_d5(evidence: Evidence) -> Verdict:
    """Speed over the padded kernel, and over the tiled one that it should be compared with."""
    n = 1024
    over_padded = _gain(evidence, TWO_BUFFERS, n)
    tiled = evidence.bench("H100", TILED, TILE32, n).seconds
    over_tiled = tiled / evidence.bench("H100", DOUBLE, TWO_BUFFERS, n).seconds - 1
    return Verdict(
        either(isclose(over_padded, 0.04, abs_tol=0.02)),
        f"On an H100 at {n:,} it is {over_padded:+.1%}, and {over_tiled:+.1%} against plain "
        f"tiling, which the text leaves out; the staged form has "
        f"{_gain(evidence, BOTH, n):+.1%} over the padded kernel. (The claim's GPU is another, "
        f"a laptop's.)",
        (RECORDED,),
        f"{record('H100', TILED)}; {record('H100', CONFLICTS)}; {record('H100', DOUBLE)}",
    )


def occupancy_d6(evidence: Evidence) -> Verdict:
    """Registers and resident warps of the padded kernel and of the double-buffered one."""
    used, warps = {}, {}
    for stem, variant in ((CONFLICTS, PADDED), (DOUBLE, TWO_BUFFERS)):
        for arch, key in (("sm_75", "T4"), ("sm_80", "A100"), ("sm_90a", "H100")):
            found = evidence.resources(stem, variant, arch)
            used[stem, key] = found.registers
            warps[stem, key] = occupancy(
                evidence.gpu(key), found.registers, found.shared_bytes, 1024
            ).warps
    keys = ("T4", "A100", "H100")
    more = all(used[DOUBLE, key] > used[CONFLICTS, key] for key in keys)
    fewer = any(warps[DOUBLE, key] < warps[CONFLICTS, key] for key in keys)
    registers = ", ".join(
        f"{used[CONFLICTS, key]} and {used[DOUBLE, key]} on {key}" for key in keys
    )
    return Verdict(
        either(more and fewer),
        f"Registers without and with it: {registers}. Resident warps are the same, "
        + ", ".join(f"{warps[DOUBLE, key]} on {key}" for key in keys)
        + ": a block of 1,024 threads fills a T4's SM with one buffer or two.",
        (MODELLED,),
        "what ptxas reports; CUDA's occupancy rules in `lib/topics/limits/occupancy/model.py`",
    )


def balance_d7(evidence: Evidence) -> Verdict:
    """Where the pipeline model gains the most from a second buffer."""
    compute = 300.0
    gains = {
        load: period(load, compute, 1) / period(load, compute, 2)
        for load in (75.0, 150.0, 300.0, 600.0, 1200.0)
    }
    best = max(gains, key=lambda load: gains[load])
    return Verdict(
        either(best == compute),
        f"In the model of one block that is alone on its SM the gain is (load + compute) / "
        f"max(load, compute): at most {gains[best]:g}×, where both take equally long. With other "
        f"warps to fill the gaps there is less to gain everywhere; D8 is about those.",
        (MODELLED,),
        "`lib/topics/time/pipeline/model.py`",
    )


def sweep_d8(evidence: Evidence) -> Verdict:
    """Gains over tile size and warps on an SM, of a register-tiled kernel in three forms.

    Few warps: with each tile the gain is larger at the fewest blocks than at the most. Large
    tiles: among all tiles with as many warps on an SM, the gain is largest with the tiles of the
    most FLOP per byte.
    """
    sweep = evidence.sweep("H100", DOUBLE_BUFFER)
    tiles: dict[str, list[Swept]] = {}
    for row in sweep.rows:
        tiles.setdefault(tile_of(row), []).append(row)
    series = [sorted(rows, key=lambda row: row.warps) for rows in tiles.values()
              if len(rows) > 1]
    fewer = sum(gain(rows[0]) > gain(rows[-1]) for rows in series)
    widest = max(series, key=lambda rows: rows[-1].warps / rows[0].warps)
    # The number of warps at which the most tiles were measured.
    counts = Counter(row.warps for row in sweep.rows)
    warps = max(counts, key=lambda n: (counts[n], n))
    alike = sorted((row for row in sweep.rows if row.warps == warps), key=intensity)
    largest = max(alike, key=gain)
    low, high = alike[0], alike[-1]
    return Verdict(
        either(fewer == len(series) and intensity(largest) == intensity(high)),
        f"Few warps: in {fewer} of {len(series)} tiles the gain is larger with the fewest warps "
        f"than with the most; with {tile_of(widest[0])} it goes from {gain(widest[0]):+.0%} at "
        f"{widest[0].warps} warps per SM to {gain(widest[-1]):+.0%} at {widest[-1].warps}. "
        f"Large tiles: with {warps} warps per SM it is {gain(low):+.0%} for {tile_of(low)} "
        f"({intensity(low):.0f} FLOP per byte), {gain(high):+.0%} for {tile_of(high)} "
        f"({intensity(high):.0f}), and the most, {gain(largest):+.0%}, for {tile_of(largest)}. A "
        f"larger tile is less bound to memory, so the claim asks for two opposite things. "
        f"(H100, {sweep.shape[0]:,}³; 08's kernel, loads ahead and two buffers against loads "
        f"when they are needed.)",
        (RECORDED, MODELLED),
        record("H100", SWEEPS),
    )


def alternation_d13(evidence: Evidence) -> Verdict:
    """Which buffer each step of the main loop fills and reads."""
    steps = {name: evidence.buffers(DOUBLE, name)[:2] for name in (TWO_BUFFERS, BOTH)}
    return Verdict(
        either(all(found == [(1, 0), (0, 1)] for found in steps.values())),
        "By the addresses of a run, the first step fills buffer "
        f"{steps[TWO_BUFFERS][0][0]} and reads buffer {steps[TWO_BUFFERS][0][1]}, the second fills "
        f"{steps[TWO_BUFFERS][1][0]} and reads {steps[TWO_BUFFERS][1][1]}, in both forms. That "
        f"says nothing about both happening at once: see D3.",
        (EMULATED,),
        f"`cuda/steps/{DOUBLE}_tile.cu` in the emulator, 128×128×128, sm_75",
    )


def pipelining_d11(evidence: Evidence) -> Verdict:
    """Loads before the loop, and work between load and store inside it."""
    before = evidence.prologue_loads(DOUBLE, BOTH, "sm_90a")
    work = evidence.work_between(DOUBLE, BOTH, "sm_90a")
    return Verdict(
        either(before >= 2 and work > 0),
        f"In the staged form: {before} global loads before the loop (prologue), a loop with {work} "
        f"multiply-adds between its loads and their stores (steady state), and a last round whose "
        f"loads are switched off (epilogue). The seed's form has the parts, but nothing overlaps "
        f"within a warp.",
        (MODELLED,),
        "SASS for sm_90a",
    )


def load_time_d15(evidence: Evidence) -> Verdict:
    """Bytes over bandwidth, against the time that a tile took to arrive."""
    h100 = evidence.gpu("H100")
    nbytes = 2 * 32 * 32 * 4
    formula = nbytes / h100.dram_bytes_per_s * h100.clock_hz
    took = evidence.arrival("H100", CONFLICTS, PADDED)
    return Verdict(
        either(isclose(took, formula, rel_tol=0.5)),
        f"{nbytes:,} bytes at {h100.dram_bytes_per_s / 1e12:.2f} TB/s are {formula:.0f} cycles of "
        f"an H100; a warp's share of a tile takes {took:,.0f} from the asking to the arrival. The "
        f"formula has a bandwidth that all SMs share, and leaves out the latency.",
        (RECORDED, MODELLED),
        f"{record('H100', CONFLICTS)}; data sheet in `lib/gpus.py`",
    )


def scheduler_d16(evidence: Evidence) -> Verdict:
    """Whether the busiest unit stays busy while warps wait for global memory."""
    waiting = evidence.counter("H100", CONFLICTS, PADDED, 2048, LONG_SCOREBOARD)
    left = evidence.counter("H100", DOUBLE, BOTH, 2048, LONG_SCOREBOARD)
    busy = evidence.counter("H100", CONFLICTS, PADDED, 2048, L1_DATA)
    return Verdict(
        either(waiting > 1 > left and busy > 80),
        f"Without a second buffer {waiting:.1f} warps wait for global memory for every instruction "
        f"issued on an H100 at 2,048, and other warps keep the data path of shared memory busy for "
        f"{busy:.0f}% of the time meanwhile. The staged form takes the waiting to {left:.2f}, and "
        f"gains {_gain(evidence, BOTH, 2048):+.1%}.",
        (RECORDED,),
        f"{record('H100', CONFLICTS)}; {record('H100', DOUBLE)}",
    )


def idle_d14(evidence: Evidence) -> Verdict:
    """What 700 → 550 cycles says about an ALU that was busy half of the time."""
    busy = 0.5 * 700
    after = busy / 550
    return Verdict(
        either(after > 0.9),
        f"Half of 700 cycles is {busy:.0f} of arithmetic; over 550 cycles that is {after:.0%} "
        f"busy. Full overlap would take {busy:.0f}.",
        (MODELLED,),
        "arithmetic on the claim's figures",
    )


def tensor_core_d10(evidence: Evidence) -> Verdict:
    """4×4×4 = 64 multiply-adds per cycle."""
    rates = {key: fma_per_tensor_core(evidence, key) for key in ("T4", "A100", "H100")}
    return Verdict(
        either(isclose(rates["T4"], 64, rel_tol=0.05)),
        f"As a rate it is Volta's and Turing's: a T4's peak is {rates['T4']:.0f} FP16 "
        f"multiply-adds for each tensor core and clock, 4×4×4. Newer ones do more: "
        f"{rates['A100']:.0f} on an A100, at least {rates['H100']:.0f} on an H100.",
        (REPORTED, MODELLED),
        "data sheets in `lib/gpus.py`; architecture white papers",
    )
