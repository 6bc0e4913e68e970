"""Judges of the worklog's claims on tensor cores and the kernels that use them."""

from __future__ import annotations

from math import isclose

from lib.claims.checks.shared import TENSOR_CORES_PER_SM, cube_flops, either, fma_per_tensor_core
from lib.claims.evidence import (
    EMULATED,
    MODELLED,
    NOT_TESTABLE,
    RECORDED,
    REPORTED,
    Evidence,
    Verdict,
)
from lib.gpus import data_bytes_per_clock
from lib.topics.limits.occupancy.model import occupancy


def mma_w13(evidence: Evidence) -> Verdict:
    """FLOP of one mma_sync, and the cycles that a sub-partition's tensor cores need for it."""
    flops = 2 * 16**3
    per_subpartition = fma_per_tensor_core(evidence, "T4") * TENSOR_CORES_PER_SM["T4"] / 4
    cycles = 16**3 / per_subpartition
    return Verdict(
        either(flops == 8192 and cycles <= 2.5),
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
        either(needed >= 60e12),
        f"One byte a FLOP is no reuse at all. A 16×16×16 instruction reads {operand_bytes:,} bytes "
        f"of registers for {flops:,} FLOP: {needed / 1e12:.1f} TB/s at the peak, and from "
        f"registers, not from memory.",
        (MODELLED, REPORTED),
        "arithmetic on the T4's data sheet",
    )


def vectors_w18(evidence: Evidence) -> Verdict:
    """128-bit vectors of a 32×64×16 tile among 256 threads, and the requests of a run."""
    a, b, c = 32 * 16 // 8, 16 * 64 // 8, 32 * 64 // 4
    n, warps, lanes = 64, 8, 32
    tiles = (n // 32) * (n // 64) * (n // 16)
    loads = evidence.loads("13_wmma_vectorized", "vectors_32x64", n)
    at_work = {name: loads[name].requests / tiles for name in "AB"}
    return Verdict(
        either((a, b, c) == (64, 128, 512) and at_work["A"] * lanes == a
               and 1 - a / 256 == 0.75),
        f"{a}, {b} and {c} vectors; {1 - a / 256:.0%} of 256 threads have none of A's. (That is "
        f"{256 // a} threads to a vector, where the text says 3.) Of a block's {warps} warps "
        f"{at_work['A']:g} request something of A in a step, and {at_work['B']:g} of B.",
        (MODELLED, EMULATED),
        f"arithmetic; `cuda/13_wmma_vectorized.cu` in the emulator, {n}×{n}×{n}, sm_75",
    )


def overshoot_w28(evidence: Evidence) -> Verdict:
    """A ceiling that is exceeded."""
    ceiling = 37.0 * evidence.gpu("T4").dram_bytes_per_s
    return Verdict(
        either(12_380e9 <= ceiling),
        f"12,380 / {ceiling / 1e9:,.0f} = {12_380e9 / ceiling:.1%}. No kernel passes a real "
        f"ceiling: 37 FLOP/byte is not the intensity that DRAM saw.",
        (MODELLED, REPORTED),
        "arithmetic on the claim's figures and the T4's data sheet",
    )


def intensities_w35(evidence: Evidence) -> Verdict:
    """Three intensities for one kernel at one size."""
    flops = cube_flops(4096)
    by_table, by_text = flops / 464e6, flops / 1.14e9
    return Verdict(
        either(isclose(by_table, by_text, rel_tol=0.1) and isclose(by_text, 37.0, rel_tol=0.1)),
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
        either(instructions == 512),
        f"512 halves are 512 thread loads, and {instructions} instructions of a warp: one load "
        f"serves 32 lanes.",
        (MODELLED,),
        "arithmetic",
    )


def stores_w42(evidence: Evidence) -> Verdict:
    """Store instructions with four floats each."""
    left = 4 / 16
    return Verdict(
        either(left == 0.5),
        f"A float4 store writes four floats: {left:.0%} of the instructions are left, not 50%.",
        (MODELLED,),
        "arithmetic",
    )


def resident_w21(evidence: Evidence) -> Verdict:
    """Bytes, and blocks that fit one SM of a T4, with the text's registers and with ours."""
    shared, t4 = 128 * 40 * 2 + 32 * 136 * 2, evidence.gpu("T4")
    ours = evidence.resources("14_ldmatrix", "k8")
    fit, own = (
        occupancy(t4, registers=registers, shared_bytes=shared, threads=256)
        for registers in (116, ours.registers)
    )
    return Verdict(
        either(shared == ours.shared_bytes == 18_944 and fit.blocks == own.blocks == 2
               and isclose(fit.fraction, 0.5)),
        f"{shared:,} bytes. With 116 registers {fit.blocks} blocks are resident, and with the "
        f"{ours.registers} that 14 takes: {fit.fraction:.0%} of the warp slots, limited by "
        f"{fit.limited_by}.",
        (MODELLED,),
        "ptxas for sm_75; `lib/topics/limits/occupancy/model.py` for the T4",
    )


def jump_w25(evidence: Evidence) -> Verdict:
    """17.06 TFLOP/s against the peak, and against both figures for v10; the same step here."""
    share = 17.06e12 / evidence.gpu("T4").tensor_fp16_flops
    gain, mixed = 17.06 / 12.38, 17.06 / 2.983
    before, after = (
        evidence.bench("H100", stem, name, 4096).tflops
        for stem, name in (("13_wmma_vectorized", "vectors_128x128"), ("14_ldmatrix", "k8"))
    )
    return Verdict(
        either(isclose(gain, 5.7, rel_tol=0.05)),
        f"{share:.1%} of the peak and {gain - 1:+.0%} follow from the figures. The {mixed:.1f}× "
        f"divides a speed at 4,096 by one at 2,048; at one size it is {gain:.2f}×. On an H100 the "
        f"step between the same two designs, both with tiles of 128×128, is "
        f"{after / before - 1:+.0%}.",
        (MODELLED, REPORTED, RECORDED),
        "arithmetic on the claim's figures; `results/h100/13_wmma_vectorized.json`; "
        "`results/h100/14_ldmatrix.json`",
    )


def ldmatrix_w54(evidence: Evidence) -> Verdict:
    """Bytes of one ldmatrix.x4 against what a T4's shared memory delivers in a cycle."""
    nbytes = 4 * 8 * 8 * 2
    each = data_bytes_per_clock(evidence.gpu("T4"))
    return Verdict(
        either(nbytes * 8 == 256 and nbytes <= each),
        f"x4 moves four 8×8 tiles of halves, {nbytes} bytes: {nbytes * 8:,} bits. At {each} bytes "
        f"per cycle a T4's SM needs at least {nbytes // each} cycles.",
        (MODELLED,),
        "arithmetic; PTX ISA, ldmatrix; `lib/gpus.py`",
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
