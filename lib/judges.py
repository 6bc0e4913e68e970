"""The judges: one small function a claim, from the evidence to a verdict.

The claims' own figures (a T4, FP32 unless said) stand beside the judge that examines them. A judge
that misses a record lets `Missing` through, and the ledger then says what is missing.
"""

from __future__ import annotations

from math import isclose, log2

from lib import history
from lib.evidence import (
    BARRIER_STALL,
    CONTRADICTED,
    DRAM_READ,
    EMULATED,
    FMA_PIPE,
    L1_DATA,
    L2_BYTES,
    LONG_SCOREBOARD,
    MODELLED,
    NOT_TESTABLE,
    RECORDED,
    REPORTED,
    REPRODUCED,
    SECTOR_BYTES,
    STALLS,
    WARPS_ACTIVE,
    Evidence,
    Missing,
    Verdict,
)
from lib.gpus import KIB
from lib.models.occupancy import occupancy
from lib.models.pipeline import period
from lib.models.units import data_bytes_per_clock

NAIVE, COALESCED, SWAPPED = "01_naive", "coalesced", "swapped"
TILED, TILE32 = "02_shared_tile", "tile32"
BANKS, PADDED = "03_bank_conflicts", "padded"
DOUBLE, SEED, STAGED = "04_double_buffer", "seed", "staged"
STRIP, COLUMNS_FIRST, STRIPS_FIRST = "05_strip", "columns_first", "strips_first"
SQUARE, SPREAD = "06_register_tile", "spread"
VECTORIZED, FLOAT4 = "07_vectorized", "float4"
WARP_TILE, GOOD = "08_warp_tile", "good"
SEED_TILES = ("seed", "seed16", "seed32")  # the worklog's tile with BK = 8, 16 and 32

# The worklog's figures that more than one judge needs.
WORKLOG_NAIVE_FLOPS = 465e9
WORKLOG_NAIVE_DRAM_BYTES = 4.3e9
WORKLOG_CUBLAS_DRAM_BYTES = 276e6
NAIVE_INTENSITY = 2 / (2 * 4)  # FLOP per byte asked for: a multiply and an add for two floats

WAVEFRONT_BYTES = 128  # 32 banks of 4 bytes

# Tensor cores of one SM: the architecture white papers (nvidia2018turing, nvidia2020ampere,
# nvidia2022hopper).
TENSOR_CORES_PER_SM = {"T4": 8, "A100": 4, "H100": 4, "H200": 4}


def _either(holds: bool) -> str:
    return REPRODUCED if holds else CONTRADICTED


def _cube_flops(n: int) -> float:
    return 2.0 * n**3


def _l1_load_bytes(evidence: Evidence, stem: str, variant: str, n: int) -> float:
    """Bytes that global loads move out of L1 at n×n×n, B.

    Every multiply-add brings the same sectors with it whatever the size (a multiple of the tile),
    so a small run gives the bytes of one multiply-add, and n³ of them give the whole.
    """
    counters = evidence.counters(stem, variant)
    bytes_each = counters["global_load_sectors"] * SECTOR_BYTES
    return bytes_each / counters["ffma_thread_instructions"] * n**3


def _comparable(evidence: Evidence, n: int) -> int:
    """The size at which an H100 can stand for a T4 at n×n×n, where DRAM traffic is in question.

    What reaches DRAM depends on how far the matrices exceed the L2. At 2,048 a matrix is four
    times a T4's L2 and a third of an H100's: the same size would compare nothing. So n is doubled
    until a matrix exceeds the H100's L2 at least as far.
    """
    t4, h100 = evidence.gpu("T4"), evidence.gpu("H100")
    size = n
    while size**2 / h100.l2_bytes < n**2 / t4.l2_bytes:
        size *= 2
    return size


def _emulator(stem: str) -> str:
    return f"`cuda/{stem}.cu` in the emulator, 64×64×64, sm_75"


def _record(gpu: str, stem: str) -> str:
    return f"`results/{gpu.lower()}/{stem}.json`"


# ---------------------------------------------------------------- method: history and data sheets


def history_w31(evidence: Evidence) -> Verdict:
    """Clocks against the growth rates that the claim gives for them."""
    first, last = history.find("Intel 386"), history.find("Pentium 4 (130 nm)")
    growth = history.yearly_growth(first, last)
    would_be = first.clock_hz * 1.52 ** (last.year - first.year)
    return Verdict(
        _either(growth > 0.45),
        f"The transistor counts and the end of Dennard scaling stand. The growth does not: 52% a "
        f"year is single-thread *performance*. The clock grew {growth:.0%} a year from "
        f"{first.year} to {last.year} ({history.clock_text(first)} to {history.clock_text(last)}); "
        f"52% would have ended at {would_be / 1e9:.0f} GHz. In 2006 the 2.93 GHz part was a Core "
        f"2 Extreme, and Apple publishes no clock.",
        (REPORTED, MODELLED),
        "`lib/history.py`; Hennessy and Patterson 2019, ch. 1; Dennard 1974; Borkar and Chien 2011",
    )


def moore_w43(evidence: Evidence) -> Verdict:
    """What Moore said, and when; and what the counts since 1971 say."""
    first, last = history.PROCESSORS[0], history.PROCESSORS[-1]
    years = (last.year - first.year) / log2(last.transistors / first.transistors)
    return Verdict(
        CONTRADICTED,
        f"In 1965 Moore saw a doubling every year; two years is his revision of 1975. Since "
        f"{first.year} it has been one in {years:.1f} years.",
        (REPORTED, MODELLED),
        "Moore 1965; Moore 1975; Denning and Lewis 2017; `lib/history.py`",
    )


def t4_peaks_w1(evidence: Evidence) -> Verdict:
    """The claim's figures against the data sheet's, to 2%."""
    t4 = evidence.gpu("T4")
    pairs = (
        (320e9, t4.dram_bytes_per_s),
        (65e12, t4.tensor_fp16_flops),
        (8.1e12, t4.fp32_flops),
        (203.0, t4.tensor_ridge),
        (25.3, t4.fp32_ridge),
    )
    return Verdict(
        _either(all(isclose(claimed, ours, rel_tol=0.02) for claimed, ours in pairs)),
        f"{t4.dram_bytes_per_s / 1e9:.0f} GB/s, {t4.tensor_fp16_flops / 1e12:.0f} TFLOP/s and "
        f"{t4.fp32_flops / 1e12:.2f} TFLOP/s give ridge points of {t4.tensor_ridge:.0f} and "
        f"{t4.fp32_ridge:.1f} FLOP/byte.",
        (REPORTED, MODELLED),
        "data sheet of the T4 in `lib/gpus.py`",
    )


def ridge_w33(evidence: Evidence) -> Verdict:
    """Which of the two ridge points the data sheet gives."""
    ridge = evidence.gpu("T4").fp32_ridge
    return Verdict(
        _either(10 <= ridge <= 15),
        f"FP32 peak over bandwidth is {ridge:.1f} FLOP/byte; 10–15 does not follow from any "
        f"figure in the text.",
        (REPORTED, MODELLED),
        "data sheet of the T4 in `lib/gpus.py`",
    )


def cores_w52(evidence: Evidence) -> Verdict:
    """Cores of a whole T4 from those of one SM."""
    t4 = evidence.gpu("T4")
    lanes, tensor = t4.sms * t4.fp32_lanes_per_sm, t4.sms * TENSOR_CORES_PER_SM["T4"]
    return Verdict(
        _either(lanes == 2560 and tensor == 320),
        f"{t4.sms} SMs × {t4.fp32_lanes_per_sm} FP32 lanes = {lanes:,}; "
        f"{t4.sms} × {TENSOR_CORES_PER_SM['T4']} tensor cores = {tensor}.",
        (REPORTED, MODELLED),
        "data sheet of the T4 in `lib/gpus.py`; Turing white paper",
    )


def shared_memory_w7(evidence: Evidence) -> Verdict:
    """164 KB a SM, on the GPU that the text is about."""
    t4, a100 = evidence.gpu("T4"), evidence.gpu("A100")
    return Verdict(
        _either(t4.shared_bytes_per_sm == 164 * KIB),
        f"A T4 has {t4.shared_bytes_per_sm // KIB} KiB a SM; "
        f"{a100.shared_bytes_per_sm // KIB} KiB is an A100.",
        (REPORTED,),
        "data sheets in `lib/gpus.py`",
    )


def carveout_w53(evidence: Evidence) -> Verdict:
    """Up to 64 KB of the 96 KB can be shared memory."""
    shared = evidence.gpu("T4").shared_bytes_per_sm
    return Verdict(
        _either(shared == 64 * KIB),
        f"{shared // KIB} KiB of the 96 KiB that L1 and shared memory have together. (The same "
        f"text says 164 KB elsewhere: W7.)",
        (REPORTED,),
        "data sheet of the T4 in `lib/gpus.py`; Turing tuning guide",
    )


def sector_w47(evidence: Evidence) -> Verdict:
    """A 128-byte sector: what one broadcast and one row of floats touch."""
    loads = evidence.loads(NAIVE, COALESCED)
    row = loads["B"].sectors_per_request
    return Verdict(
        CONTRADICTED if isclose(row * SECTOR_BYTES, 128) else REPRODUCED,
        f"A cache line is 128 bytes; it is cut in four sectors of {SECTOR_BYTES}, and a miss "
        f"fetches sectors. A warp that reads 128 consecutive bytes touches {row:g} sectors in one "
        f"request.",
        (REPORTED, EMULATED),
        f"Nsight Compute profiling guide; {_emulator(NAIVE)}",
    )


def warps_active_w36(evidence: Evidence) -> Verdict:
    """What the counter counts."""
    return Verdict(
        CONTRADICTED,
        "A warp is active from its first instruction to its exit, stalled or not. 49.5% active "
        "means that half of the SM's warp slots held a warp: it says nothing about stalls.",
        (REPORTED,),
        "Nsight Compute profiling guide, CUDA C++ programming guide",
    )


# ------------------------------------------------------------------------------------- 01_naive


def ceiling_w2(evidence: Evidence) -> Verdict:
    """The intensity that the claim names, against the traffic that it gives."""
    by_traffic = _cube_flops(2048) / WORKLOG_NAIVE_DRAM_BYTES
    bandwidth = evidence.gpu("T4").dram_bytes_per_s
    needed = WORKLOG_NAIVE_FLOPS / NAIVE_INTENSITY
    return Verdict(
        _either(isclose(by_traffic, NAIVE_INTENSITY, rel_tol=0.1) and needed <= bandwidth),
        f"{NAIVE_INTENSITY} FLOP/byte counts the bytes that threads ask for, not those that DRAM "
        f"delivers: 465 GFLOP/s at that intensity would take {needed / 1e9:,.0f} GB/s from a "
        f"memory of {bandwidth / 1e9:.0f}. By the text's own traffic the intensity is "
        f"17.18 / 4.3 = {by_traffic:.1f} FLOP/byte.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures and the T4's data sheet",
    )


def traffic_w3(evidence: Evidence) -> Verdict:
    """L1 bytes by trace, warps active as recorded; the DRAM bytes of a T4 are out of reach."""
    l1 = _l1_load_bytes(evidence, NAIVE, COALESCED, 2048)
    active = evidence.counter("H100", NAIVE, COALESCED, 2048, WARPS_ACTIVE)
    return Verdict(
        _either(isclose(l1, 4.3e9, rel_tol=0.25) and active <= 15),
        f"Loads move {l1 / 1e9:.1f} GB out of L1 at 2,048, {l1 / 4.3e9:.0f} times the 4.3 GB. On "
        f"an H100 {active:.0f}% of the warp slots are active: waiting warps stay active. The bytes "
        f"from DRAM can't be tested here, since at this size the matrices fit an H100's L2.",
        (EMULATED, RECORDED),
        f"{_emulator(NAIVE)}; {_record('H100', NAIVE)}",
    )


def transactions_w4(evidence: Evidence) -> Verdict:
    """Efficiency of an all-distinct load by trace, and what it costs on the H100."""
    apart = evidence.loads(NAIVE, SWAPPED)["A"].sectors_per_request
    efficiency = 32 * 4 / (apart * SECTOR_BYTES)
    slower = {
        n: evidence.bench("H100", NAIVE, SWAPPED, n)["seconds"]
        / evidence.bench("H100", NAIVE, COALESCED, n)["seconds"]
        for n in (2048, 8192)
    }
    return Verdict(
        _either(isclose(efficiency, 1 / 32, rel_tol=0.05) and max(slower.values()) > 25),
        f"What counts is 32-byte sectors: 32 lanes on {apart:g} sectors use {efficiency:.1%} of "
        f"the bytes, not 3.1%. The swapped mapping is {slower[2048]:.1f}× slower on an H100 at "
        f"2,048 and {slower[8192]:.1f}× at 8,192.",
        (EMULATED, RECORDED),
        f"{_emulator(NAIVE)}; {_record('H100', NAIVE)}",
    )


def broadcast_w5(evidence: Evidence) -> Verdict:
    """Sectors that one request for A touches."""
    each = evidence.loads(NAIVE, COALESCED)["A"].sectors_per_request
    return Verdict(
        _either(each == 1),
        f"A request for A touches {each:g} sector: all 32 lanes ask for the same float.",
        (EMULATED,),
        _emulator(NAIVE),
    )


def l2_w34(evidence: Evidence) -> Verdict:
    """Bytes asked of L2 against bytes that L2 asks of DRAM, at a size comparable to the claim's.

    L1 helps too, and more; so throughput alone would not tell the L2's part.
    """
    n = _comparable(evidence, 4096)
    asked = evidence.counter("H100", NAIVE, COALESCED, n, L2_BYTES)
    fetched = evidence.counter("H100", NAIVE, COALESCED, n, DRAM_READ)
    return Verdict(
        _either(asked / fetched < 1.1),
        f"At {n:,} on an H100, where the matrices exceed the L2 as far as at 4,096 on a T4, "
        f"{asked / 1e9:,.0f} GB pass through L2 and {fetched / 1e9:,.0f} GB come from DRAM: it "
        f"still serves {asked / fetched:.1f} bytes for each that it fetches.",
        (RECORDED, MODELLED),
        _record("H100", NAIVE),
    )


def cublas_traffic_w40(evidence: Evidence) -> Verdict:
    """DRAM bytes of the naive kernel against cuBLAS's, at a size comparable to the claim's."""
    n = _comparable(evidence, 2048)
    ours = evidence.counter("H100", NAIVE, COALESCED, n, DRAM_READ)
    theirs = evidence.counter("H100", "cublas", "fp32", n, DRAM_READ)
    return Verdict(
        _either(isclose(ours / theirs, 15, rel_tol=0.25)),
        f"{ours / theirs:.1f}× on an H100 at {n:,} ({ours / 1e9:.1f} GB against "
        f"{theirs / 1e9:.1f} GB), where the matrices exceed the L2 as far as at 2,048 on a T4. At "
        f"2,048 they fit an H100's L2, and there is nothing to see. The 276 MB themselves are a "
        f"T4's.",
        (RECORDED, MODELLED),
        f"{_record('H100', NAIVE)}; {_record('H100', 'cublas')}",
    )


def unused_w44(evidence: Evidence) -> Verdict:
    """An FP32 kernel against the FP32 ridge and peak."""
    t4 = evidence.gpu("T4")
    below = t4.fp32_ridge / NAIVE_INTENSITY
    used = WORKLOG_NAIVE_FLOPS / t4.fp32_flops
    return Verdict(
        _either(below >= 800 and used <= 0.01),
        f"800× and 99% set an FP32 kernel against the tensor cores' FP16 roof. Against its own it "
        f"is {below:.0f}× below the ridge and uses {used:.1%} of the peak.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures and the T4's data sheet",
    )


def ffma_w45(evidence: Evidence) -> Verdict:
    """One fused multiply-add for each of M·N·K."""
    n = 64
    count = evidence.counters(NAIVE, COALESCED, n)["ffma_thread_instructions"]
    return Verdict(
        _either(count == n**3),
        f"{count:,} thread instructions at {n}³, which is M·N·K; at 2,048³ that is "
        f"{2048**3 / 1e9:.2f} billion.",
        (EMULATED,),
        _emulator(NAIVE),
    )


def no_cache_w46(evidence: Evidence) -> Verdict:
    """Whether DRAM could have delivered what the loads move."""
    l1 = _l1_load_bytes(evidence, NAIVE, COALESCED, 2048)
    seconds = _cube_flops(2048) / WORKLOG_NAIVE_FLOPS
    bandwidth = evidence.gpu("T4").dram_bytes_per_s
    return Verdict(
        _either(l1 / seconds <= bandwidth),
        f"The loads move {l1 / 1e9:.1f} GB in the reported {seconds * 1e3:.0f} ms: "
        f"{l1 / seconds / 1e9:,.0f} GB/s, where a T4's DRAM gives {bandwidth / 1e9:.0f}. "
        f"The caches serve most of it.",
        (EMULATED, MODELLED, REPORTED),
        f"{_emulator(NAIVE)}; arithmetic on the claim's throughput",
    )


def warp_is_row_w48(evidence: Evidence) -> Verdict:
    """Thread (x, y) of a 32×32 block is thread 32·y + x, and warps are 32 in a row."""
    rows = {(32 * y + x) // 32 == y for y in range(32) for x in range(32)}
    return Verdict(
        _either(rows == {True}),
        "Thread (x, y) is number 32·y + x, and warp w holds 32·w to 32·w + 31: row w.",
        (MODELLED,),
        "thread numbering of the CUDA C++ programming guide",
    )


# ------------------------------------------------------------------------------- 02_shared_tile


def tile_w6(evidence: Evidence) -> Verdict:
    """Intensity at L1 by trace; DRAM and L2 bytes of both kernels at a comparable size."""
    counters = evidence.counters(TILED, TILE32)
    intensity = 2 * counters["ffma_thread_instructions"] / (
        counters["global_load_sectors"] * SECTOR_BYTES
    )
    n = _comparable(evidence, 2048)
    fewer, fewer_l2 = (
        evidence.counter("H100", NAIVE, COALESCED, n, metric)
        / evidence.counter("H100", TILED, TILE32, n, metric)
        for metric in (DRAM_READ, L2_BYTES)
    )
    return Verdict(
        _either(isclose(intensity, 8, rel_tol=0.01) and fewer > 9),
        f"The trace gives {intensity:g} FLOP for each byte that global loads move. But on an H100 "
        f"at {n:,}, where the matrices exceed the L2 as far as at 2,048 on a T4, the naive kernel "
        f"reads {fewer:.1f}× as much from DRAM and moves {fewer_l2:.1f}× as much through L2: its "
        f"reuse inside a block was caught by L1 before. (A T4's L1 is smaller, and not tested.)",
        (EMULATED, RECORDED),
        f"{_emulator(TILED)}; {_record('H100', NAIVE)}; {_record('H100', TILED)}",
    )


def tile_l1_w49(evidence: Evidence) -> Verdict:
    """Bytes that the tiled kernel's global loads move."""
    l1 = _l1_load_bytes(evidence, TILED, TILE32, 2048)
    return Verdict(
        _either(isclose(l1, 270e6, rel_tol=0.25)),
        f"{l1 / 1e9:.2f} GB at 2,048: 2·N³·4 / 32 bytes, each element once for every tile that "
        f"uses it. 270 MB would need tiles eight times as wide.",
        (EMULATED,),
        _emulator(TILED),
    )


def compute_bound_w50(evidence: Evidence) -> Verdict:
    """Least time of the shared-memory pipe against that of the FMA pipe on a T4's SM."""
    t4 = evidence.gpu("T4")
    counters = evidence.counters(TILED, TILE32)
    fma_cycles = counters["ffma_thread_instructions"] / t4.fp32_lanes_per_sm
    shared_cycles = counters["shared_wavefronts"] * WAVEFRONT_BYTES / data_bytes_per_clock(t4)
    return Verdict(
        _either(fma_cycles >= shared_cycles),
        f"Above DRAM's ridge is not compute-bound: the roof is shared memory. For each cycle that "
        f"the FMA pipe needs, its wavefronts need {shared_cycles / fma_cycles:.1f}.",
        (EMULATED, MODELLED),
        f"{_emulator(TILED)}; rates of the units in `lib/models/units.py`",
    )


def padding_d9(evidence: Evidence) -> Verdict:
    """Whether the unpadded tiled kernel has conflicts to remove, and what padding it costs."""
    counters = evidence.counters(TILED, TILE32)
    padded = evidence.counters(BANKS, PADDED)
    extra = counters["shared_wavefronts"] - counters["shared_wavefronts_ideal"]
    slower = (
        evidence.bench("H100", BANKS, PADDED, 2048)["seconds"]
        / evidence.bench("H100", TILED, TILE32, 2048)["seconds"]
    )
    return Verdict(
        _either(extra > 0),
        f"Without padding the tiled kernel needs {counters['shared_wavefronts']:,} wavefronts and "
        f"the ideal is {counters['shared_wavefronts_ideal']:,}: {extra} to remove. One operand is "
        f"a broadcast, the other 32 consecutive floats. Padded it needs "
        f"{padded['shared_wavefronts']:,}, since rows of 33 floats rule out 128-bit loads, and "
        f"takes {slower:.2f}× the time on an H100 at 2,048.",
        (EMULATED, RECORDED),
        f"{_emulator(TILED)}; {_emulator(BANKS)}; {_record('H100', BANKS)}",
    )


def compute_time_d12(evidence: Evidence) -> Verdict:
    """Multiply-adds of one tile step, against the claim's TILE³ FLOP."""
    n = 32
    count = evidence.counters(TILED, TILE32, n)["ffma_thread_instructions"]
    return Verdict(
        _either(2 * count == n**3),
        f"A {n}×{n}×{n} step is {count:,} multiply-adds, TILE³, and so {2 * count:,} FLOP: over "
        f"FLOP per cycle, a factor 2 is missing.",
        (EMULATED, MODELLED),
        f"`cuda/{TILED}.cu` in the emulator, {n}×{n}×{n}",
    )


# ------------------------------------------------------------------ 07_vectorized, 08_warp_tile


def transactions_w10(evidence: Evidence) -> Verdict:
    """Requests and sectors of the same tiles, loaded one float and four floats at a time."""
    scalar, vector = (
        evidence.counters(stem, variant, 128)
        for stem, variant in ((SQUARE, SPREAD), (VECTORIZED, FLOAT4))
    )
    fewer = scalar["global_load_requests"] / vector["global_load_requests"]
    sectors = scalar["global_load_sectors"] / vector["global_load_sectors"]
    return Verdict(
        _either(isclose(fewer, 4) and isclose(sectors, 4)),
        f"{fewer:g} times fewer load instructions, and so requests: that half is right. What the "
        f"requests move is the same {vector['global_load_sectors']:,} sectors ({sectors:g}×). "
        f"512 bytes lie in four lines and 16 sectors, however wide the loads are.",
        (EMULATED,),
        f"`cuda/{SQUARE}.cu` and `cuda/{VECTORIZED}.cu` in the emulator, 128×128×128, sm_75",
    )


def fp32_end_w11(evidence: Evidence) -> Verdict:
    """The share of cuBLAS that the text's last FP32 design but one has, and a later one's."""
    last, later = (
        evidence.bench("H100", stem, variant, 4096)["ratio"]
        for stem, variant in ((VECTORIZED, FLOAT4), (WARP_TILE, GOOD))
    )
    return Verdict(
        _either(isclose(last, 0.9, rel_tol=0.05) and later <= 1.02 * last),
        f"The same design, 128×128 tiles read four floats at a time, has {last:.0%} of cuBLAS at "
        f"4,096 on an H100. And the path does not end there: warp tiles have {later:.0%}. (The "
        f"3,985 GFLOP/s are a T4's.)",
        (RECORDED,),
        f"{_record('H100', VECTORIZED)}; {_record('H100', WARP_TILE)}",
    )


def depth_w12(evidence: Evidence) -> Verdict:
    """The seed's tile with three depths, against 07: speed, DRAM bytes, wavefronts."""
    n = 4096
    before = evidence.bench("H100", VECTORIZED, FLOAT4, n)["seconds"]
    slower = [
        evidence.bench("H100", WARP_TILE, name, n)["seconds"] / before for name in SEED_TILES
    ]
    dram = [
        evidence.counter("H100", WARP_TILE, name, n, DRAM_READ)
        / evidence.counter("H100", "cublas", "fp32", n, DRAM_READ)
        for name in SEED_TILES
    ]
    each = [
        32 * found["shared_wavefronts"] / found["ffma_thread_instructions"]
        for found in (
            evidence.counters(WARP_TILE, SEED_TILES[0], 128),
            evidence.counters(VECTORIZED, FLOAT4, 128),
        )
    ]
    return Verdict(
        _either(slower[0] > 1.05 and min(slower[1:]) < 1.05 and dram[0] > 1.5),
        f"It is slower than 07: {slower[0]:.2f}× the time at {n:,} on an H100. But with BK = 16 "
        f"and 32 it is {slower[1]:.2f}× and {slower[2]:.2f}×: depth is not the cause. It does read "
        f"{dram[0]:.1f} times cuBLAS's bytes from DRAM, but {dram[1]:.1f} and {dram[2]:.1f} times "
        f"with the deeper tiles, which are no slower for it. The cause is the smaller thread tile: "
        f"{each[0]:.2f} wavefronts of shared memory for each multiply-add of a warp, where 07 "
        f"needs {each[1]:.2f} and an SM has time for 0.25. (The 1.75 is a T4's.)",
        (RECORDED, EMULATED),
        f"{_record('H100', WARP_TILE)}; {_record('H100', VECTORIZED)}; `cuda/{WARP_TILE}.cu` in "
        f"the emulator, 128×128×128, sm_75",
    )


# ----------------------------------------------------------------------------- double buffering


def _gain(evidence: Evidence, variant: str, n: int) -> float:
    """Speed of a variant of 04 over that of the padded kernel, less 1."""
    before = evidence.bench("H100", BANKS, PADDED, n)["seconds"]
    return before / evidence.bench("H100", DOUBLE, variant, n)["seconds"] - 1


def half_idle_d1(evidence: Evidence) -> Verdict:
    """How busy the FMA pipe is without a second buffer, and what time the second one saves."""
    busy = evidence.counter("H100", BANKS, PADDED, 2048, FMA_PIPE)
    gains = {name: _gain(evidence, name, 2048) for name in (SEED, STAGED)}
    return Verdict(
        _either(isclose(busy, 50, abs_tol=10) and max(gains.values()) > 0.2),
        f"On an H100 at 2,048 the FMA pipe is idle for {100 - busy:.0f}% of the time, not for "
        f"half, and hardly for want of data from global memory: 700 to 550 would be 27% more "
        f"speed, and the seed's form gives {gains[SEED]:+.1%}, the staged form "
        f"{gains[STAGED]:+.1%}. What is busy is shared memory.",
        (RECORDED,),
        f"{_record('H100', BANKS)}; {_record('H100', DOUBLE)}",
    )


def buffers_d2(evidence: Evidence) -> Verdict:
    """Static shared memory of the padded kernel and of the double-buffered one."""
    single = evidence.resources(BANKS, PADDED).shared_bytes
    double = evidence.resources(DOUBLE, SEED).shared_bytes
    return Verdict(
        _either(isclose(single, 8.4e3, rel_tol=0.01) and isclose(double, 16.8e3, rel_tol=0.01)),
        f"{single:,} bytes, 2 × 32 × 33 × 4, and {double:,} with two buffers.",
        (MODELLED,),
        "what ptxas reports for both, sm_75",
    )


def asynchronous_d3(evidence: Evidence) -> Verdict:
    """Arithmetic between the loads and the stores that need them; stalls for global memory."""
    work = {
        name: [evidence.work_between(DOUBLE, name, arch) for arch in ("sm_75", "sm_80", "sm_90a")]
        for name in (SEED, STAGED)
    }
    stalls = {
        name: evidence.counter("H100", DOUBLE, name, 2048, LONG_SCOREBOARD)
        for name in (SEED, STAGED)
    }
    return Verdict(
        _either(min(work[SEED]) > 0),
        f"A load is asynchronous until something needs its value, and in the seed's form the next "
        f"statement does: its machine code has {max(work[SEED])} multiply-adds between the loads "
        f"and the stores. Kept in registers until the tile is done, there are "
        f"{min(work[STAGED])} to {max(work[STAGED])} of 32, and the stall for global memory falls "
        f"from {stalls[SEED]:.1f} to {stalls[STAGED]:.2f} warps an issue (H100, 2,048).",
        (MODELLED, RECORDED),
        f"SASS of the main loop for sm_75, sm_80, sm_90a; {_record('H100', DOUBLE)}",
    )


def one_barrier_d4(evidence: Evidence) -> Verdict:
    """Races with the one barrier, and without it."""
    with_it = {name: evidence.races(DOUBLE, name) for name in (SEED, STAGED)}
    without = {
        name: evidence.races(DOUBLE, name, "the next tiles are whole") for name in (SEED, STAGED)
    }
    return Verdict(
        _either(not any(with_it.values()) and all(without.values())),
        "The race detector finds nothing in either form with one barrier a tile, and finds races "
        "in both when it is left out.",
        (EMULATED,),
        f"`cuda/{DOUBLE}.cu` in the emulator, 64×64×96, sm_75",
    )


def gain_d5(evidence: Evidence) -> Verdict:
    """Speed over the padded kernel, and over the tiled one that it should be compared with."""
    n = 1024
    over_padded = _gain(evidence, SEED, n)
    tiled = evidence.bench("H100", TILED, TILE32, n)["seconds"]
    over_tiled = tiled / evidence.bench("H100", DOUBLE, SEED, n)["seconds"] - 1
    return Verdict(
        _either(isclose(over_padded, 0.04, abs_tol=0.02)),
        f"On an H100 at {n:,} it is {over_padded:+.1%}, and {over_tiled:+.1%} against plain "
        f"tiling, which the text leaves out; the staged form has "
        f"{_gain(evidence, STAGED, n):+.1%} over the padded kernel. (The claim's GPU is another, "
        f"a laptop's.)",
        (RECORDED,),
        f"{_record('H100', TILED)}; {_record('H100', BANKS)}; {_record('H100', DOUBLE)}",
    )


def occupancy_d6(evidence: Evidence) -> Verdict:
    """Registers and resident warps of the padded kernel and of the double-buffered one."""
    used, warps = {}, {}
    for stem, variant in ((BANKS, PADDED), (DOUBLE, SEED)):
        for arch, key in (("sm_75", "T4"), ("sm_80", "A100"), ("sm_90a", "H100")):
            found = evidence.resources(stem, variant, arch)
            used[stem, key] = found.registers
            warps[stem, key] = occupancy(
                evidence.gpu(key), found.registers, found.shared_bytes, 1024
            ).warps
    keys = ("T4", "A100", "H100")
    more = all(used[DOUBLE, key] > used[BANKS, key] for key in keys)
    fewer = any(warps[DOUBLE, key] < warps[BANKS, key] for key in keys)
    registers = ", ".join(
        f"{used[BANKS, key]} and {used[DOUBLE, key]} on {key}" for key in keys
    )
    return Verdict(
        _either(more and fewer),
        f"Registers without and with it: {registers}. Resident warps are the same, "
        + ", ".join(f"{warps[DOUBLE, key]} on {key}" for key in keys)
        + ": a block of 1,024 threads fills a T4's SM with one buffer or two.",
        (MODELLED,),
        "what ptxas reports; CUDA's occupancy rules in `lib/models/occupancy.py`",
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
        _either(best == compute),
        f"In the model of one block that is alone on its SM the gain is (load + compute) / "
        f"max(load, compute): at most {gains[best]:g}×, where both take equally long. With other "
        f"warps to fill the gaps there is less to gain everywhere; a sweep on a GPU needs tiles "
        f"that can grow, and is still to come.",
        (MODELLED,),
        "`lib/models/pipeline.py`",
    )


def sweep_d8(evidence: Evidence) -> Verdict:
    """Gains over tile size and occupancy: a block of 32×32 threads, one element each, can't grow.

    Raises
    ------
    Missing
        Always, until a register-tiled kernel has been swept.
    """
    raise Missing(
        "a sweep over tile size and resident warps, which needs a kernel whose tiles can grow"
    )


def alternation_d13(evidence: Evidence) -> Verdict:
    """Which buffer each step of the main loop fills and reads."""
    steps = {name: evidence.buffers(DOUBLE, name)[:2] for name in (SEED, STAGED)}
    return Verdict(
        _either(all(found == [(1, 0), (0, 1)] for found in steps.values())),
        "By the addresses of a run, the first step fills buffer "
        f"{steps[SEED][0][0]} and reads buffer {steps[SEED][0][1]}, the second fills "
        f"{steps[SEED][1][0]} and reads {steps[SEED][1][1]}, in both forms. That says nothing "
        f"about both happening at once: see D3.",
        (EMULATED,),
        f"`cuda/{DOUBLE}.cu` in the emulator, 128×128×128, sm_75",
    )


def pipelining_d11(evidence: Evidence) -> Verdict:
    """Loads before the loop, and work between load and store inside it."""
    before = evidence.prologue_loads(DOUBLE, STAGED, "sm_90a")
    work = evidence.work_between(DOUBLE, STAGED, "sm_90a")
    return Verdict(
        _either(before >= 2 and work > 0),
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
    took = evidence.arrival("H100", BANKS, PADDED)
    return Verdict(
        _either(isclose(took, formula, rel_tol=0.5)),
        f"{nbytes:,} bytes at {h100.dram_bytes_per_s / 1e12:.2f} TB/s are {formula:.0f} cycles of "
        f"an H100; a warp's share of a tile takes {took:,.0f} from the asking to the arrival. The "
        f"formula has a bandwidth that all SMs share, and leaves out the latency.",
        (RECORDED, MODELLED),
        f"{_record('H100', BANKS)}; data sheet in `lib/gpus.py`",
    )


def scheduler_d16(evidence: Evidence) -> Verdict:
    """Whether the busiest unit stays busy while warps wait for global memory."""
    waiting = evidence.counter("H100", BANKS, PADDED, 2048, LONG_SCOREBOARD)
    left = evidence.counter("H100", DOUBLE, STAGED, 2048, LONG_SCOREBOARD)
    busy = evidence.counter("H100", BANKS, PADDED, 2048, L1_DATA)
    return Verdict(
        _either(waiting > 1 > left and busy > 80),
        f"Without a second buffer {waiting:.1f} warps wait for global memory for every instruction "
        f"issued on an H100 at 2,048, and other warps keep the data path of shared memory busy for "
        f"{busy:.0f}% of the time meanwhile. The staged form takes the waiting to {left:.2f}, and "
        f"gains {_gain(evidence, STAGED, 2048):+.1%}.",
        (RECORDED,),
        f"{_record('H100', BANKS)}; {_record('H100', DOUBLE)}",
    )


def barriers_w51(evidence: Evidence) -> Verdict:
    """What the tiled kernel's warps wait for."""
    stalls = {name: evidence.counter("H100", TILED, TILE32, 2048, name) for name in STALLS}
    share = stalls[BARRIER_STALL] / sum(stalls.values())
    worst = max(stalls, key=lambda name: stalls[name])
    return Verdict(
        _either(share >= 0.4),
        f"Barriers are {share:.0%} of the stalls of the tiled kernel on an H100 at 2,048. The "
        f"largest is {worst.removeprefix('stall_').replace('_', ' ')}, "
        f"{stalls[worst] / sum(stalls.values()):.0%}: the queue to shared memory.",
        (RECORDED,),
        _record("H100", TILED),
    )


def idle_d14(evidence: Evidence) -> Verdict:
    """What 700 → 550 cycles says about an ALU that was busy half of the time."""
    busy = 0.5 * 700
    after = busy / 550
    return Verdict(
        _either(after > 0.9),
        f"Half of 700 cycles is {busy:.0f} of arithmetic; over 550 cycles that is {after:.0%} "
        f"busy. Full overlap would take {busy:.0f}.",
        (MODELLED,),
        "arithmetic on the claim's figures",
    )


# ------------------------------------------------------------------- 05_strip, 06_register_tile


def _flop_per_shared_load(evidence: Evidence, stem: str, variant: str) -> float:
    """Operations of a thread for each shared load that it executes in machine code."""
    counters = evidence.counters(stem, variant, 128)
    return 2 * counters["ffma_thread_instructions"] / (32 * counters["shared_load_instructions"])


def strip_w8(evidence: Evidence) -> Verdict:
    """FLOP per load by formula and in machine code; conflicts on As in both mappings."""
    as_written = 2 * 8 / (8 + 1)
    executed = _flop_per_shared_load(evidence, STRIP, COLUMNS_FIRST)
    rows, strips = (
        evidence.shared_loads(STRIP, variant)["As"].conflict
        for variant in (COLUMNS_FIRST, STRIPS_FIRST)
    )
    found = "without a conflict" if rows == 1 else f"with a {rows:g}-way conflict"
    return Verdict(
        _either(isclose(as_written, 1.78, rel_tol=0.01) and isclose(rows, 8, rel_tol=0.1)),
        f"2·8 / (8 + 1) = {as_written:.2f} FLOP a float as the source reads them; ptxas merges "
        f"loads and makes it {executed:.2f} FLOP a load. In the mapping described, where a warp is "
        f"a row of columns, all lanes read one float of As, a broadcast, {found}. A warp of 8 "
        f"strips by 4 columns does conflict, {strips:g}-way.",
        (MODELLED, EMULATED),
        f"`cuda/{STRIP}.cu` in the emulator, 128×128×128, sm_75",
    )


def strip_occupancy_w58(evidence: Evidence) -> Verdict:
    """Warps that fit before and after, on the T4 of the claim; warps active on the H100."""
    before = evidence.occupancy("T4", TILED, TILE32)
    after = evidence.occupancy("T4", STRIP, COLUMNS_FIRST)
    was, now = (
        evidence.counter("H100", stem, variant, 2048, WARPS_ACTIVE)
        for stem, variant in ((TILED, TILE32), (STRIP, COLUMNS_FIRST))
    )
    registers = evidence.resources(STRIP, COLUMNS_FIRST).registers
    return Verdict(
        _either(after.warps > before.warps and now > was),
        f"Registers hold the sums now, {registers} a thread instead of "
        f"{evidence.resources(TILED, TILE32).registers}, and registers are what warps compete "
        f"for. On a T4 {after.warps} warps fit an SM, before {before.warps}; on an H100 "
        f"{now:.0f}% of the warp slots are active, before {was:.0f}%. The kernel is faster "
        f"because its warps ask less, not because there are more of them.",
        (MODELLED, RECORDED),
        f"`python -m lib resources {STRIP}`; {_record('H100', TILED)}; {_record('H100', STRIP)}",
    )


def register_tile_w9(evidence: Evidence) -> Verdict:
    """FLOP per load by formula and in machine code; registers as ptxas allots them."""
    as_written = 2 * 64 / (8 + 8)
    executed = _flop_per_shared_load(evidence, SQUARE, SPREAD)
    registers = {a: evidence.resources(SQUARE, SPREAD, a).registers for a in ("sm_75", "sm_90a")}
    return Verdict(
        _either(as_written == 8 and max(registers.values()) <= 80),
        f"128 / 16 = {as_written:g} FLOP a float stands ({executed:.1f} a load, since ptxas "
        f"fetches floats of As in pairs). The registers don't: 80 counts sums and operands and "
        f"forgets addresses, the loop and the floats on their way to shared memory. ptxas takes "
        f"{registers['sm_75']} for a T4 and {registers['sm_90a']} for an H100.",
        (MODELLED, EMULATED),
        f"`cuda/{SQUARE}.cu` in the emulator, 128×128×128; `python -m lib resources {SQUARE}`",
    )


def register_tile_occupancy_w59(evidence: Evidence) -> Verdict:
    """The most warps that can be active on a T4, and what was active on an H100."""
    t4, h100 = (evidence.occupancy(gpu, SQUARE, SPREAD) for gpu in ("T4", "H100"))
    active = evidence.counter("H100", SQUARE, SPREAD, 2048, WARPS_ACTIVE)
    return Verdict(
        _either(t4.fraction >= 0.6),
        f"With so many registers a thread {t4.warps} warps fit a T4's SM, {t4.fraction:.0%} of "
        f"its slots: 60% can't be active. On an H100 {h100.warps} fit, and {active:.0f}% of the "
        f"slots are active. What a thread has in flight grew (64 independent sums), not the "
        f"number of warps.",
        (MODELLED, RECORDED),
        f"`python -m lib resources {SQUARE}`; {_record('H100', SQUARE)}",
    )


# --------------------------------------------------------------------------------- tensor cores


def _fma_per_tensor_core(evidence: Evidence, key: str) -> float:
    """Multiply-adds that one tensor core does in a clock, from the data sheet's dense peak."""
    gpu = evidence.gpu(key)
    return gpu.tensor_fp16_flops / (2 * gpu.sms * TENSOR_CORES_PER_SM[key] * gpu.clock_hz)


def tensor_core_d10(evidence: Evidence) -> Verdict:
    """4×4×4 = 64 multiply-adds a cycle."""
    rates = {key: _fma_per_tensor_core(evidence, key) for key in ("T4", "A100", "H100")}
    return Verdict(
        _either(isclose(rates["T4"], 64, rel_tol=0.05)),
        f"As a rate it is Volta's and Turing's: a T4's peak is {rates['T4']:.0f} FP16 "
        f"multiply-adds for each tensor core and clock, 4×4×4. Newer ones do more: "
        f"{rates['A100']:.0f} on an A100, at least {rates['H100']:.0f} on an H100.",
        (REPORTED, MODELLED),
        "data sheets in `lib/gpus.py`; architecture white papers",
    )


def mma_w13(evidence: Evidence) -> Verdict:
    """FLOP of one mma_sync, and the cycles that a sub-partition's tensor cores need for it."""
    flops = 2 * 16**3
    per_subpartition = _fma_per_tensor_core(evidence, "T4") * TENSOR_CORES_PER_SM["T4"] / 4
    cycles = 16**3 / per_subpartition
    return Verdict(
        _either(flops == 8192 and cycles <= 2.5),
        f"{flops:,} FLOP and {flops // 64}× an FFMA instruction's 64 are right. The 1–2 cycles are "
        f"not: the tensor cores of one sub-partition of a T4 need {cycles:.0f} for it.",
        (REPORTED, MODELLED),
        "arithmetic on the T4's data sheet",
    )


def operands_w38(evidence: Evidence) -> Verdict:
    """Bytes of operands for each FLOP of a 16×16×16 product of halves."""
    flops, operand_bytes = 2 * 16**3, 2 * 16 * 16 * 2
    peak = evidence.gpu("T4").tensor_fp16_flops
    needed = peak * operand_bytes / flops
    return Verdict(
        _either(needed >= 60e12),
        f"One byte a FLOP is no reuse at all. A 16×16×16 instruction reads {operand_bytes:,} bytes "
        f"of registers for {flops:,} FLOP: {needed / 1e12:.1f} TB/s at the peak, and from "
        f"registers, not from memory.",
        (MODELLED, REPORTED),
        "arithmetic on the T4's data sheet",
    )


def vectors_w18(evidence: Evidence) -> Verdict:
    """128-bit vectors of a 32×64×16 tile among 256 threads."""
    a, b, c = 32 * 16 // 8, 16 * 64 // 8, 32 * 64 // 4
    return Verdict(
        _either((a, b, c) == (64, 128, 512) and 1 - a / 256 == 0.75),
        f"{a}, {b} and {c} vectors; {1 - a / 256:.0%} of 256 threads have none of A's. (That is "
        f"{256 // a} threads to a vector, where the text says 3.)",
        (MODELLED,),
        "arithmetic",
    )


def overshoot_w28(evidence: Evidence) -> Verdict:
    """A ceiling that is exceeded."""
    ceiling = 37.0 * evidence.gpu("T4").dram_bytes_per_s
    return Verdict(
        _either(12_380e9 <= ceiling),
        f"12,380 / {ceiling / 1e9:,.0f} = {12_380e9 / ceiling:.1%}. No kernel passes a real "
        f"ceiling: 37 FLOP/byte is not the intensity that DRAM saw.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures and the T4's data sheet",
    )


def intensities_w35(evidence: Evidence) -> Verdict:
    """Three intensities for one kernel at one size."""
    flops = _cube_flops(4096)
    by_table, by_text = flops / 464e6, flops / 1.14e9
    return Verdict(
        _either(isclose(by_table, by_text, rel_tol=0.1) and isclose(by_text, 37.0, rel_tol=0.1)),
        f"For one kernel at one size the text has 464 MB ({by_table:.0f} FLOP/byte), 1.14 GB "
        f"({by_text:.1f}) and 37.0, and 98.3% and 25% of the warps active. At most one of each "
        f"can be right.",
        (MODELLED,),
        "arithmetic on the claim's figures",
    )


def half_tile_w55(evidence: Evidence) -> Verdict:
    """Scalar loads of a 32×16 tile, counted by the warp."""
    instructions = 32 * 16 // 32
    return Verdict(
        _either(instructions == 512),
        f"512 halves are 512 thread loads, and {instructions} instructions of a warp: one load "
        f"serves 32 lanes.",
        (MODELLED,),
        "arithmetic",
    )


def stores_w42(evidence: Evidence) -> Verdict:
    """Store instructions with four floats each."""
    left = 4 / 16
    return Verdict(
        _either(left == 0.5),
        f"A float4 store writes four floats: {left:.0%} of the instructions are left, not 50%.",
        (MODELLED,),
        "arithmetic",
    )


def resident_w21(evidence: Evidence) -> Verdict:
    """Bytes, and blocks that fit one SM of a T4."""
    shared = 128 * 40 * 2 + 32 * 136 * 2
    fit = occupancy(evidence.gpu("T4"), registers=116, shared_bytes=shared, threads=256)
    return Verdict(
        _either(shared == 18_944 and fit.blocks == 2 and isclose(fit.fraction, 0.5)),
        f"{shared:,} bytes. With 116 registers {fit.blocks} blocks are resident: "
        f"{fit.fraction:.0%} of the warp slots, limited by {fit.limited_by}. (The register count "
        f"is the text's.)",
        (MODELLED,),
        "`lib/models/occupancy.py` for the T4",
    )


def jump_w25(evidence: Evidence) -> Verdict:
    """17.06 TFLOP/s against the peak, and against both figures for v10."""
    share = 17.06e12 / evidence.gpu("T4").tensor_fp16_flops
    gain, mixed = 17.06 / 12.38, 17.06 / 2.983
    return Verdict(
        _either(isclose(gain, 5.7, rel_tol=0.05)),
        f"{share:.1%} of the peak and {gain - 1:+.0%} follow from the figures. The {mixed:.1f}× "
        f"divides a speed at 4,096 by one at 2,048; at one size it is {gain:.2f}×.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures",
    )


def limit_w26(evidence: Evidence) -> Verdict:
    """A faster kernel on the same GPU, as published."""
    published = 46.9e12
    return Verdict(
        _either(published <= 17.1e12),
        f"{published / 1e12:.1f} TFLOP/s is published for the same GPU without cp.async, with FP16 "
        f"accumulators, whose data-sheet peak is the same.",
        (REPORTED,),
        "Armbruster 2024",
    )


def ldmatrix_w54(evidence: Evidence) -> Verdict:
    """Bytes of one ldmatrix.x4 against what a T4's shared memory delivers in a cycle."""
    moved = 4 * 8 * 8 * 2
    each = data_bytes_per_clock(evidence.gpu("T4"))
    return Verdict(
        _either(moved * 8 == 256 and moved <= each),
        f"x4 moves four 8×8 tiles of halves, {moved} bytes: {moved * 8:,} bits. At {each} bytes a "
        f"cycle a T4's SM needs at least {moved // each} cycles.",
        (MODELLED,),
        "arithmetic; PTX ISA, ldmatrix; `lib/models/units.py`",
    )


def load_store_units_w37(evidence: Evidence) -> Verdict:
    """LD/ST units of one sub-partition."""
    per_sm = 16
    return Verdict(
        _either(per_sm // 4 == 16),
        f"A Turing SM has {per_sm} load/store units in all, {per_sm // 4} in each of its four "
        f"sub-partitions (Volta: 32 and 8).",
        (REPORTED,),
        "Turing white paper; Cornell Virtual Workshop, Turing SM",
    )


def cublas_t4_w29(evidence: Evidence) -> Verdict:
    """cuBLAS on a T4: there is none here."""
    share = 40e12 / evidence.gpu("T4").tensor_fp16_flops
    return Verdict(
        NOT_TESTABLE,
        f"No T4 here. 40 of 65 TFLOP/s is {share:.0%}, as stated; another author reports 48.7 at "
        f"8,192 with FP16 accumulators.",
        (REPORTED,),
        "Armbruster 2024",
    )
