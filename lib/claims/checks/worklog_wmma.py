"""Judges of the worklog's claims on its first tensor-core kernels: wmma, staged, pipelined."""

from __future__ import annotations

from math import isclose

from lib.claims.checks.shared import either, emulator, record
from lib.claims.evidence import (
    CONTRADICTED,
    DRAM_READ,
    EMULATED,
    RECORDED,
    REPORTED,
    REPRODUCED,
    Evidence,
    Verdict,
)
from lib.ptx.core.machine import SECTOR

WMMA, ONE = "10_wmma", "one_fragment"
SHARED, SQUARE, SEED = "11_wmma_shared", "warps_32x32", "tile_32x64"
PIPELINE, AT_ONCE, STAGED, ROLES = "12_wmma_pipeline", "at_once", "staged", "roles"
N = 2048  # the size that the worklog profiles
LARGE = 4096  # and one at which an H100's L2 no longer holds the matrices
HALF = 2  # bytes of an element of A and B


def l1_load_bytes(evidence: Evidence, stem: str, variant: str, n: int) -> float:
    """Bytes that global loads of A and B move out of L1 at n×n×n, from a run of 64×64×64."""
    sectors = evidence.counters(stem, variant)["global_load_sectors"]
    return sectors * SECTOR * (n / 64) ** 3


def fragments_w14(evidence: Evidence) -> Verdict:
    """L1 bytes by trace; how many of them are used; DRAM bytes on an H100 for comparison."""
    nbytes = l1_load_bytes(evidence, WMMA, ONE, N)
    wanted = N**3 / 16**3 * 2 * 16**2 * HALF
    read = evidence.counter("H100", WMMA, ONE, N, DRAM_READ)
    return Verdict(
        either(isclose(nbytes, 4.29e9, rel_tol=0.01)),
        f"The trace gives {nbytes / 1e9:.2f} GB from L1 at {N:,}. What it does not say: the "
        f"fragments are only {wanted / 1e9:.2f} GB. Each load of a warp takes 16 bytes of eight "
        f"rows, half of a sector. DRAM is the GPU's own: an H100, whose L2 holds these matrices, "
        f"reads {read / 1e9:.2f} GB where a T4 reads 1.28.",
        (EMULATED, RECORDED, REPORTED),
        f"{emulator(WMMA)}; {record('H100', WMMA)}",
    )


def staging_w15(evidence: Evidence) -> Verdict:
    """Both kernels' L1 bytes by trace; DRAM bytes and times on an H100; where the factor is from.

    The reuse of a block of 32×64 is 64/16 for A and 32/16 for B, whose bytes are as many.
    """
    less_l1 = l1_load_bytes(evidence, WMMA, ONE, N) / l1_load_bytes(evidence, SHARED, SEED, N)
    reuse = 2 / (16 / 64 + 16 / 32)
    faster = [
        evidence.bench("H100", WMMA, ONE, n).seconds
        / evidence.bench("H100", SHARED, SEED, n).seconds
        for n in (N, LARGE)
    ]
    less_dram = (evidence.counter("H100", WMMA, ONE, LARGE, DRAM_READ)
                 / evidence.counter("H100", SHARED, SEED, LARGE, DRAM_READ))
    bears_out = isclose(less_l1, 5.4, rel_tol=0.05) and isclose(reuse, 64 / 16, rel_tol=0.05)
    return Verdict(
        either(bears_out and min(faster) > 1.5),
        f"{less_l1:.2f}× less from L1 is right; BN/16 is not why. A is used {64 // 16} times and B "
        f"{32 // 16} times, which makes {reuse:.2f}× less. The other {less_l1 / reuse:.0f}× comes "
        f"from using sectors whole. On an H100 the step is worth {faster[0]:.2f}× at "
        f"{N:,} and {faster[1]:.2f}× at {LARGE:,}, and DRAM reads {less_dram:.2f}× less there. "
        f"(1.9× and 1.7× are a T4's.)",
        (EMULATED, RECORDED, REPORTED),
        f"{emulator(SHARED)}; {record('H100', WMMA)}; {record('H100', SHARED)}",
    )


def overlap_w16(evidence: Evidence) -> Verdict:
    """The worklog's order of load, store, multiply against the kernel before, same tile."""
    gains = [
        evidence.bench("H100", SHARED, SQUARE, n).seconds
        / evidence.bench("H100", PIPELINE, AT_ONCE, n).seconds
        for n in (N, LARGE)
    ]
    cycles = evidence.arrival("H100", PIPELINE, AT_ONCE)
    staged = evidence.bench("H100", PIPELINE, AT_ONCE, LARGE).seconds / (
        evidence.bench("H100", PIPELINE, STAGED, LARGE).seconds)
    return Verdict(
        either(max(gains) < 1.05),
        f"A value has to arrive before it can be stored: {cycles:,.0f} cycles pass from a warp's "
        f"first load of a tile to the arrival of the last (with marks), without a product. With "
        f"11's tile the second buffer is worth {gains[0] - 1:+.0%} at {N:,} and "
        f"{gains[1] - 1:+.0%} at {LARGE:,} on an H100. Storing after the products changes "
        f"that by {staged - 1:+.0%} at {LARGE:,}: other blocks hid the wait before, and the "
        f"registers leave room for fewer of them.",
        (RECORDED,),
        f"{record('H100', SHARED)}; {record('H100', PIPELINE)}",
    )


def epilogue_w17(evidence: Evidence) -> Verdict:
    """FFMA of a run with β ≠ 0, and of one with β = 0."""
    n = 64
    with_c = evidence.counters_with_beta(PIPELINE, AT_ONCE, n)["ffma_thread_instructions"]
    without = evidence.counters(PIPELINE, AT_ONCE, n)["ffma_thread_instructions"]
    return Verdict(
        either(with_c == n * n),
        f"With β ≠ 0 the trace counts {with_c:,} at {n}×{n}: one for each element of C. With β = 0 "
        f"it counts {without}: there is nothing to add to, and α · sum is an FMUL.",
        (EMULATED,),
        emulator(PIPELINE),
    )


def roles_w41(evidence: Evidence) -> Verdict:
    """What single warps do in the kernel as described, and in one that has such roles."""
    first, *others = evidence.work_of_warps(PIPELINE, AT_ONCE)
    alike = all(one == first for one in others)
    kinds = {tuple(sorted(one)) for one in evidence.work_of_warps(PIPELINE, ROLES)}
    split = kinds == {("load",), ("multiply",)}
    gains = [
        evidence.bench("H100", PIPELINE, AT_ONCE, n).seconds
        / evidence.bench("H100", PIPELINE, ROLES, n).seconds
        for n in (N, LARGE)
    ]
    summary = (
        f"its speed is {gains[0] - 1:+.0%} at {N:,} and {gains[1] - 1:+.0%} at {LARGE:,} on an "
        f"H100, against the one as described"
    )
    return Verdict(
        CONTRADICTED if alike and first == {"load", "multiply"} and split else REPRODUCED,
        f"In the kernel as described there are no such warps: each of them loads and each "
        f"multiplies. A variant with such roles (`{ROLES}`) is another kernel: {summary}.",
        (EMULATED, RECORDED),
        f"{emulator(PIPELINE)}; {record('H100', PIPELINE)}",
    )
