"""The judges: one small function a claim, from the evidence to a verdict.

The claims' own figures (a T4, FP32 unless said) stand beside the judge that examines them. A judge
that misses a record lets `Missing` through, and the ledger then says what is missing.
"""

from __future__ import annotations

from math import isclose, log2

from lib import history
from lib.evidence import (
    CONTRADICTED,
    DRAM_READ,
    EMULATED,
    L2_BYTES,
    MODELLED,
    NOT_TESTABLE,
    RECORDED,
    REPORTED,
    REPRODUCED,
    SECTOR_BYTES,
    WARPS_ACTIVE,
    Evidence,
    Verdict,
)
from lib.gpus import KIB
from lib.models.occupancy import occupancy
from lib.models.units import data_bytes_per_clock

NAIVE, COALESCED, SWAPPED = "01_naive", "coalesced", "swapped"
TILED, TILE32 = "02_shared_tile", "tile32"

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
    """Whether the unpadded tiled kernel has conflicts to remove."""
    counters = evidence.counters(TILED, TILE32)
    extra = counters["shared_wavefronts"] - counters["shared_wavefronts_ideal"]
    return Verdict(
        _either(extra > 0),
        f"Without padding the tiled kernel needs {counters['shared_wavefronts']:,} wavefronts and "
        f"the ideal is {counters['shared_wavefronts_ideal']:,}: {extra} to remove. One operand is "
        f"a broadcast, the other 32 consecutive floats.",
        (EMULATED,),
        _emulator(TILED),
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


# ----------------------------------------------------------------------------- double buffering


def buffers_d2(evidence: Evidence) -> Verdict:
    """Two padded tiles of 32×33 floats, once and twice."""
    single = 2 * 32 * 33 * 4
    return Verdict(
        _either(isclose(single, 8.4e3, rel_tol=0.01) and isclose(2 * single, 16.8e3, rel_tol=0.01)),
        f"2 × 32 × 33 × 4 = {single:,} bytes, and {2 * single:,} with two buffers.",
        (MODELLED,),
        "arithmetic",
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
