"""Judges of the worklog's claims on FP32 kernels: naive, tiled, register and warp tiles."""

from __future__ import annotations

from math import isclose

from lib.claims.checks.shared import (
    COALESCED,
    COLUMNS_FIRST,
    FLOAT4,
    FP32_LIMIT,
    LARGE_WARPS,
    NAIVE,
    NAIVE_INTENSITY,
    SEED_TILES,
    SPREAD,
    SQUARE,
    STRIP,
    STRIPS_FIRST,
    SWAPPED,
    TILE32,
    TILED,
    TUNED,
    VECTORIZED,
    WARP_TILE,
    WAVEFRONT_BYTES,
    WORKLOG_NAIVE_DRAM_BYTES,
    WORKLOG_NAIVE_FLOPS,
    comparable_size,
    cube_flops,
    either,
    emulator,
    l1_load_bytes,
    record,
)
from lib.claims.evidence import (
    BARRIER_STALL,
    DRAM_READ,
    EMULATED,
    L2_BYTES,
    MODELLED,
    RECORDED,
    REPORTED,
    STALLS,
    WARPS_ACTIVE,
    Evidence,
    Verdict,
)
from lib.gpus import data_bytes_per_clock
from lib.ptx.core.machine import SECTOR


def ceiling_w2(evidence: Evidence) -> Verdict:
    """The intensity that the claim names, against the traffic that it gives."""
    by_traffic = cube_flops(2048) / WORKLOG_NAIVE_DRAM_BYTES
    bandwidth = evidence.gpu("T4").dram_bytes_per_s
    needed = WORKLOG_NAIVE_FLOPS / NAIVE_INTENSITY
    return Verdict(
        either(isclose(by_traffic, NAIVE_INTENSITY, rel_tol=0.1) and needed <= bandwidth),
        f"{NAIVE_INTENSITY} FLOP/byte counts the bytes that threads ask for, not those that DRAM "
        f"delivers: 465 GFLOP/s at that intensity would take {needed / 1e9:,.0f} GB/s from a "
        f"memory of {bandwidth / 1e9:.0f}. By the text's own traffic the intensity is "
        f"17.18 / 4.3 = {by_traffic:.1f} FLOP/byte.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures and the T4's data sheet",
    )


def traffic_w3(evidence: Evidence) -> Verdict:
    """L1 bytes by trace, warps active as recorded; the DRAM bytes of a T4 are out of reach."""
    l1 = l1_load_bytes(evidence, NAIVE, COALESCED, 2048)
    active = evidence.counter("H100", NAIVE, COALESCED, 2048, WARPS_ACTIVE)
    return Verdict(
        either(isclose(l1, 4.3e9, rel_tol=0.25) and active <= 15),
        f"Loads move {l1 / 1e9:.1f} GB out of L1 at 2,048, {l1 / 4.3e9:.0f} times the 4.3 GB. On "
        f"an H100 {active:.0f}% of the warp slots are active: waiting warps stay active. The bytes "
        f"from DRAM can't be tested here, since at this size the matrices fit an H100's L2.",
        (EMULATED, RECORDED),
        f"{emulator(NAIVE)}; {record('H100', NAIVE)}",
    )


def transactions_w4(evidence: Evidence) -> Verdict:
    """Efficiency of an all-distinct load by trace, and what it costs on the H100."""
    apart = evidence.loads(NAIVE, SWAPPED)["A"].sectors_per_request
    efficiency = 32 * 4 / (apart * SECTOR)
    slower = {
        n: evidence.bench("H100", NAIVE, SWAPPED, n).seconds
        / evidence.bench("H100", NAIVE, COALESCED, n).seconds
        for n in (2048, 8192)
    }
    return Verdict(
        either(isclose(efficiency, 1 / 32, rel_tol=0.05) and max(slower.values()) > 25),
        f"What counts is 32-byte sectors: 32 lanes on {apart:g} sectors use {efficiency:.1%} of "
        f"the bytes, not 3.1%. The swapped mapping is {slower[2048]:.1f}× slower on an H100 at "
        f"2,048 and {slower[8192]:.1f}× at 8,192.",
        (EMULATED, RECORDED),
        f"{emulator(NAIVE)}; {record('H100', NAIVE)}",
    )


def broadcast_w5(evidence: Evidence) -> Verdict:
    """Sectors that one request for A touches."""
    each = evidence.loads(NAIVE, COALESCED)["A"].sectors_per_request
    return Verdict(
        either(each == 1),
        f"A request for A touches {each:g} sector: all 32 lanes ask for the same float.",
        (EMULATED,),
        emulator(NAIVE),
    )


def l2_w34(evidence: Evidence) -> Verdict:
    """Bytes asked of L2 against bytes that L2 asks of DRAM, at a size comparable to the claim's.

    L1 helps too, and more; so throughput alone would not tell the L2's part.
    """
    n = comparable_size(evidence, 4096)
    asked = evidence.counter("H100", NAIVE, COALESCED, n, L2_BYTES)
    fetched = evidence.counter("H100", NAIVE, COALESCED, n, DRAM_READ)
    return Verdict(
        either(asked / fetched < 1.1),
        f"At {n:,} on an H100, where the matrices exceed the L2 as far as at 4,096 on a T4, "
        f"{asked / 1e9:,.0f} GB pass through L2 and {fetched / 1e9:,.0f} GB come from DRAM: it "
        f"still serves {asked / fetched:.1f} bytes for each that it fetches.",
        (RECORDED, MODELLED),
        record("H100", NAIVE),
    )


def cublas_traffic_w40(evidence: Evidence) -> Verdict:
    """DRAM bytes of the naive kernel against cuBLAS's, at a size comparable to the claim's."""
    n = comparable_size(evidence, 2048)
    ours = evidence.counter("H100", NAIVE, COALESCED, n, DRAM_READ)
    theirs = evidence.counter("H100", "cublas", "fp32", n, DRAM_READ)
    return Verdict(
        either(isclose(ours / theirs, 15, rel_tol=0.25)),
        f"{ours / theirs:.1f}× on an H100 at {n:,} ({ours / 1e9:.1f} GB against "
        f"{theirs / 1e9:.1f} GB), where the matrices exceed the L2 as far as at 2,048 on a T4. At "
        f"2,048 they fit an H100's L2, and there is nothing to see. The 276 MB themselves are a "
        f"T4's.",
        (RECORDED, MODELLED),
        f"{record('H100', NAIVE)}; {record('H100', 'cublas')}",
    )


def unused_w44(evidence: Evidence) -> Verdict:
    """An FP32 kernel against the FP32 ridge and peak."""
    t4 = evidence.gpu("T4")
    below = t4.fp32_ridge / NAIVE_INTENSITY
    used = WORKLOG_NAIVE_FLOPS / t4.fp32_flops
    return Verdict(
        either(below >= 800 and used <= 0.01),
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
        either(count == n**3),
        f"{count:,} thread instructions at {n}³, which is M·N·K; at 2,048³ that is "
        f"{2048**3 / 1e9:.2f} billion.",
        (EMULATED,),
        emulator(NAIVE),
    )


def no_cache_w46(evidence: Evidence) -> Verdict:
    """Whether DRAM could have delivered what the loads move."""
    l1 = l1_load_bytes(evidence, NAIVE, COALESCED, 2048)
    seconds = cube_flops(2048) / WORKLOG_NAIVE_FLOPS
    bandwidth = evidence.gpu("T4").dram_bytes_per_s
    return Verdict(
        either(l1 / seconds <= bandwidth),
        f"The loads move {l1 / 1e9:.1f} GB in the reported {seconds * 1e3:.0f} ms: "
        f"{l1 / seconds / 1e9:,.0f} GB/s, where a T4's DRAM gives {bandwidth / 1e9:.0f}. "
        f"The caches serve most of it.",
        (EMULATED, MODELLED, REPORTED),
        f"{emulator(NAIVE)}; arithmetic on the claim's throughput",
    )


def warp_is_row_w48(evidence: Evidence) -> Verdict:
    """Thread (x, y) of a 32×32 block is thread 32·y + x, and warps are 32 in a row."""
    rows = {(32 * y + x) // 32 == y for y in range(32) for x in range(32)}
    return Verdict(
        either(rows == {True}),
        "Thread (x, y) is number 32·y + x, and warp w holds 32·w to 32·w + 31: row w.",
        (MODELLED,),
        "thread numbering of the CUDA C++ programming guide",
    )


def tile_w6(evidence: Evidence) -> Verdict:
    """Intensity at L1 by trace; DRAM and L2 bytes of both kernels at a comparable size."""
    counters = evidence.counters(TILED, TILE32)
    intensity = 2 * counters["ffma_thread_instructions"] / (
        counters["global_load_sectors"] * SECTOR
    )
    n = comparable_size(evidence, 2048)
    fewer, fewer_l2 = (
        evidence.counter("H100", NAIVE, COALESCED, n, metric)
        / evidence.counter("H100", TILED, TILE32, n, metric)
        for metric in (DRAM_READ, L2_BYTES)
    )
    return Verdict(
        either(isclose(intensity, 8, rel_tol=0.01) and fewer > 9),
        f"The trace gives {intensity:g} FLOP for each byte that global loads move. But on an H100 "
        f"at {n:,}, where the matrices exceed the L2 as far as at 2,048 on a T4, the naive kernel "
        f"reads {fewer:.1f}× as much from DRAM and moves {fewer_l2:.1f}× as much through L2: its "
        f"reuse inside a block was caught by L1 before. (A T4's L1 is smaller, and not tested.)",
        (EMULATED, RECORDED),
        f"{emulator(TILED)}; {record('H100', NAIVE)}; {record('H100', TILED)}",
    )


def tile_l1_w49(evidence: Evidence) -> Verdict:
    """Bytes that the tiled kernel's global loads move."""
    l1 = l1_load_bytes(evidence, TILED, TILE32, 2048)
    return Verdict(
        either(isclose(l1, 270e6, rel_tol=0.25)),
        f"{l1 / 1e9:.2f} GB at 2,048: 2·N³·4 / 32 bytes, each element once for every tile that "
        f"uses it. 270 MB would need tiles eight times as wide.",
        (EMULATED,),
        emulator(TILED),
    )


def compute_bound_w50(evidence: Evidence) -> Verdict:
    """Least time of the shared-memory pipe against that of the FMA pipe on a T4's SM."""
    t4 = evidence.gpu("T4")
    counters = evidence.counters(TILED, TILE32)
    fma_cycles = counters["ffma_thread_instructions"] / t4.fp32_lanes_per_sm
    shared_cycles = counters["shared_wavefronts"] * WAVEFRONT_BYTES / data_bytes_per_clock(t4)
    return Verdict(
        either(fma_cycles >= shared_cycles),
        f"Above DRAM's ridge is not compute-bound: the roof is shared memory. For each cycle that "
        f"the FMA pipe needs, its wavefronts need {shared_cycles / fma_cycles:.1f}.",
        (EMULATED, MODELLED),
        f"{emulator(TILED)}; rates of the units in `lib/gpus.py`",
    )


def transactions_w10(evidence: Evidence) -> Verdict:
    """Requests and sectors of the same tiles, loaded one float and four floats at a time."""
    scalar, vector = (
        evidence.counters(stem, variant, 128)
        for stem, variant in ((SQUARE, SPREAD), (VECTORIZED, FLOAT4))
    )
    fewer = scalar["global_load_requests"] / vector["global_load_requests"]
    sectors = scalar["global_load_sectors"] / vector["global_load_sectors"]
    return Verdict(
        either(isclose(fewer, 4) and isclose(sectors, 4)),
        f"{fewer:g} times fewer load instructions, and so requests: that half is right. What the "
        f"requests move is the same {vector['global_load_sectors']:,} sectors ({sectors:g}×). "
        f"512 bytes lie in four lines and 16 sectors, however wide the loads are.",
        (EMULATED,),
        f"`cuda/{SQUARE}.cu` and `cuda/{VECTORIZED}.cu` in the emulator, 128×128×128, sm_75",
    )


def fp32_end_w11(evidence: Evidence) -> Verdict:
    """The share of cuBLAS that the text's last FP32 design but one has, and those of later ones."""
    last, tiles, limit = (
        evidence.bench("H100", stem, variant, 4096).ratio for stem, variant in (
            (VECTORIZED, FLOAT4), (WARP_TILE, LARGE_WARPS), (FP32_LIMIT, TUNED))
    )
    return Verdict(
        either(isclose(last, 0.9, rel_tol=0.05) and max(tiles, limit) <= 1.02 * last),
        f"The same design, 128×128 tiles read four floats at a time, has {last:.0%} of cuBLAS at "
        f"4,096 on an H100. And the path does not end there: warp tiles have {tiles:.0%}, and with "
        f"all that FP32 can use it is {limit:.0%}. (The 3,985 GFLOP/s are a T4's.)",
        (RECORDED,),
        "; ".join(record("H100", stem) for stem in (VECTORIZED, WARP_TILE, FP32_LIMIT)),
    )


def depth_w12(evidence: Evidence) -> Verdict:
    """The seed's tile with three depths, against 06: speed, DRAM bytes, wavefronts."""
    n = 4096
    before = evidence.bench("H100", VECTORIZED, FLOAT4, n).seconds
    slower = [
        evidence.bench("H100", WARP_TILE, name, n).seconds / before for name in SEED_TILES
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
        either(slower[0] > 1.05 and min(slower[1:]) < 1.05 and dram[0] > 1.5),
        f"It is slower than {VECTORIZED[:2]}: {slower[0]:.2f}× the time at {n:,} on an H100. But "
        f"with BK = 16 and 32 it is {slower[1]:.2f}× and {slower[2]:.2f}×: depth is not the "
        f"cause. It does read {dram[0]:.1f} times cuBLAS's bytes from DRAM, but {dram[1]:.1f} and "
        f"{dram[2]:.1f} times with the deeper tiles, which are no slower for it. The cause is the "
        f"smaller thread tile: {each[0]:.2f} wavefronts of shared memory for each multiply-add of "
        f"a warp, where {VECTORIZED[:2]} needs {each[1]:.2f} and an SM has time for 0.25. (The "
        f"1.75 is a T4's.)",
        (RECORDED, EMULATED),
        f"{record('H100', WARP_TILE)}; {record('H100', VECTORIZED)}; `cuda/{WARP_TILE}.cu` in "
        f"the emulator, 128×128×128, sm_75",
    )


def barriers_w51(evidence: Evidence) -> Verdict:
    """What the tiled kernel's warps wait for."""
    stalls = {name: evidence.counter("H100", TILED, TILE32, 2048, name) for name in STALLS}
    share = stalls[BARRIER_STALL] / sum(stalls.values())
    worst = max(stalls, key=lambda name: stalls[name])
    return Verdict(
        either(share >= 0.4),
        f"Barriers are {share:.0%} of the stalls of the tiled kernel on an H100 at 2,048. The "
        f"largest is {worst.removeprefix('stall_').replace('_', ' ')}, "
        f"{stalls[worst] / sum(stalls.values()):.0%}: the queue to shared memory.",
        (RECORDED,),
        record("H100", TILED),
    )


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
        either(isclose(as_written, 1.78, rel_tol=0.01) and isclose(rows, 8, rel_tol=0.1)),
        f"2·8 / (8 + 1) = {as_written:.2f} FLOP per float as the source reads them; ptxas "
        f"merges loads and makes it {executed:.2f} FLOP per load. In the mapping described, where "
        f"a warp is a row of columns, all lanes read one float of As, a broadcast, {found}. A warp "
        f"of 8 strips by 4 columns does conflict, {strips:g}-way.",
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
        either(after.warps > before.warps and now > was),
        f"Registers hold the sums now, {registers} per thread instead of "
        f"{evidence.resources(TILED, TILE32).registers}, and registers are what warps compete "
        f"for. On a T4 {after.warps} warps fit an SM, before {before.warps}; on an H100 "
        f"{now:.0f}% of the warp slots are active, before {was:.0f}%. The kernel is faster "
        f"because its warps ask less, not because there are more of them.",
        (MODELLED, RECORDED),
        f"`python -m lib resources {STRIP}`; {record('H100', TILED)}; {record('H100', STRIP)}",
    )


def register_tile_w9(evidence: Evidence) -> Verdict:
    """FLOP per load by formula and in machine code; registers as ptxas allots them."""
    as_written = 2 * 64 / (8 + 8)
    executed = _flop_per_shared_load(evidence, SQUARE, SPREAD)
    registers = {a: evidence.resources(SQUARE, SPREAD, a).registers for a in ("sm_75", "sm_90a")}
    return Verdict(
        either(as_written == 8 and max(registers.values()) <= 80),
        f"128 / 16 = {as_written:g} FLOP per float stands ({executed:.1f} per load, since ptxas "
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
        either(t4.fraction >= 0.6),
        f"With so many registers per thread {t4.warps} warps fit a T4's SM, {t4.fraction:.0%} of "
        f"its slots: 60% can't be active. On an H100 {h100.warps} fit, and {active:.0f}% of the "
        f"slots are active. What a thread has in flight grew (64 independent sums), not the "
        f"number of warps.",
        (MODELLED, RECORDED),
        f"`python -m lib resources {SQUARE}`; {record('H100', SQUARE)}",
    )
