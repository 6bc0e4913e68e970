"""Judges of the worklog's claims on machines: history, data sheets, what a unit or counter is."""

from __future__ import annotations

from math import isclose, log2

from lib.claims import history
from lib.claims.checks.shared import COALESCED, NAIVE, TENSOR_CORES_PER_SM, either, emulator
from lib.claims.evidence import (
    CONTRADICTED,
    EMULATED,
    MODELLED,
    REPORTED,
    REPRODUCED,
    Evidence,
    Verdict,
)
from lib.gpus import KIB
from lib.ptx.core.machine import SECTOR


def history_w31(evidence: Evidence) -> Verdict:
    """Clocks against the growth rates that the claim gives for them."""
    first, last = history.find("Intel 386"), history.find("Pentium 4 (130 nm)")
    growth = history.yearly_growth(first, last)
    would_be = history.clock(first) * 1.52 ** (last.year - first.year)
    return Verdict(
        either(growth > 0.45),
        f"The transistor counts and the end of Dennard scaling stand. The growth does not: 52% a "
        f"year is single-thread *performance*. The clock grew {growth:.0%} a year from "
        f"{first.year} to {last.year} ({history.clock_text(first)} to {history.clock_text(last)}); "
        f"52% would have ended at {would_be / 1e9:.0f} GHz. In 2006 the 2.93 GHz part was a Core "
        f"2 Extreme, and Apple publishes no clock.",
        (REPORTED, MODELLED),
        "`lib/claims/history.py`; Hennessy and Patterson 2019, ch. 1; Dennard 1974; Borkar and "
        "Chien 2011",
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
        "Moore 1965; Moore 1975; Denning and Lewis 2017; `lib/claims/history.py`",
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
        either(all(isclose(claimed, ours, rel_tol=0.02) for claimed, ours in pairs)),
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
        either(10 <= ridge <= 15),
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
        either(lanes == 2560 and tensor == 320),
        f"{t4.sms} SMs × {t4.fp32_lanes_per_sm} FP32 lanes = {lanes:,}; "
        f"{t4.sms} × {TENSOR_CORES_PER_SM['T4']} tensor cores = {tensor}.",
        (REPORTED, MODELLED),
        "data sheet of the T4 in `lib/gpus.py`; Turing white paper",
    )


def shared_memory_w7(evidence: Evidence) -> Verdict:
    """164 KB a SM, on the GPU that the text is about."""
    t4, a100 = evidence.gpu("T4"), evidence.gpu("A100")
    return Verdict(
        either(t4.shared_bytes_per_sm == 164 * KIB),
        f"A T4 has {t4.shared_bytes_per_sm // KIB} KiB a SM; "
        f"{a100.shared_bytes_per_sm // KIB} KiB is an A100.",
        (REPORTED,),
        "data sheets in `lib/gpus.py`",
    )


def carveout_w53(evidence: Evidence) -> Verdict:
    """Up to 64 KB of the 96 KB can be shared memory."""
    shared = evidence.gpu("T4").shared_bytes_per_sm
    return Verdict(
        either(shared == 64 * KIB),
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
        CONTRADICTED if isclose(row * SECTOR, 128) else REPRODUCED,
        f"A cache line is 128 bytes; it is cut in four sectors of {SECTOR}, and a miss "
        f"fetches sectors. A warp that reads 128 consecutive bytes touches {row:g} sectors in one "
        f"request.",
        (REPORTED, EMULATED),
        f"Nsight Compute profiling guide; {emulator(NAIVE)}",
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


def load_store_units_w37(evidence: Evidence) -> Verdict:
    """LD/ST units of one sub-partition."""
    per_sm = 16
    return Verdict(
        either(per_sm // 4 == 16),
        f"A Turing SM has {per_sm} load/store units in all, {per_sm // 4} in each of its four "
        f"sub-partitions (Volta: 32 and 8).",
        (REPORTED,),
        "Turing white paper; Cornell Virtual Workshop, Turing SM",
    )
