"""Judges of the worklog's claims on its last two versions, and on what a T4 can do at all."""

from __future__ import annotations

from collections.abc import Mapping

from lib.claims.checks.shared import FLOAT4, VECTORIZED, either, emulator
from lib.claims.evidence import (
    CONTRADICTED,
    EMULATED,
    MODELLED,
    RECORDED,
    REPORTED,
    REPRODUCED,
    Evidence,
    Verdict,
)
from lib.gpus import KIB
from lib.topics.limits.bottleneck.model import longest

PIPELINE, VECTORS, WIDE = "12_wmma_pipeline", "13_wmma_vectorized", "vectors_128x128"
LDMATRIX, MIRRORED, SWAPPED = "14_ldmatrix", "k8", "swapped"
TURING, LIMIT = "15_turing_limit", "tile_128x256"
# The first four versions on tensor cores, the worklog's tiles where a version has others too.
AT_ONCE, SMALL = "at_once", "vectors_32x64"
FIRST_FOUR = (
    ("10_wmma", "one_fragment"), ("11_wmma_shared", "tile_32x64"), (PIPELINE, AT_ONCE),
    (VECTORS, SMALL),
)
ALIGNMENT = 16  # bytes: of a row that ldmatrix is given (PTX ISA, ldmatrix)


def _file(stem: str) -> str:
    return f"`results/h100/{stem}.json`"


def regression_w19(evidence: Evidence) -> Verdict:
    """The worklog's vectorised tile against the pipeline before it, at both sizes."""
    speed = {
        (stem, n): evidence.bench("H100", stem, name, n).tflops
        for stem, name in FIRST_FOUR[2:] for n in (2048, 4096)
    }
    change = speed[VECTORS, 2048] / speed[PIPELINE, 2048] - 1
    growth = speed[VECTORS, 4096] / speed[VECTORS, 2048]
    return Verdict(
        either(-0.1 < change < 0 and growth > 3),
        f"With the tiles that the text gives, the vectorised kernel's speed at 2,048 is "
        f"{change:+.0%} against the one before it on an H100. At 4,096 it is {growth:.2f} times as "
        f"fast as at 2,048, where the text's two figures give {12380 / 2983:.1f}: they seem to be "
        f"of two kernels (see W20).",
        (RECORDED,),
        f"{_file(PIPELINE)}; {_file(VECTORS)}",
    )


def one_block_w20(evidence: Evidence) -> Verdict:
    """Shared memory of the tile in the text, and of the one that the figure fits."""
    used = evidence.resources(VECTORS, SMALL).shared_bytes
    fit = evidence.occupancy("T4", VECTORS, SMALL).blocks
    other = evidence.resources(VECTORS, WIDE).shared_bytes
    return Verdict(
        either(fit == 1 and abs(used / 1000 - 37) < 1),
        f"Two buffers of the 32×64×16 tile that the text describes take {used:,} bytes, and {fit} "
        f"blocks fit a T4's SM. {other:,} bytes are two buffers of 128×128×16, padded in the same "
        f"way: the figure, and the 25% of warps active, seem to be of that tile.",
        (MODELLED,),
        "ptxas for sm_75; `lib/topics/limits/occupancy/model.py` for the T4",
    )


def fp32_w39(evidence: Evidence) -> Verdict:
    """The vectorised FP32 kernel against four kernels on tensor cores, at one size."""
    fp32 = evidence.bench("H100", VECTORIZED, FLOAT4, 2048).tflops
    tensor = {stem: evidence.bench("H100", stem, name, 2048).tflops for stem, name in FIRST_FOUR}
    slower = sum(speed < fp32 for speed in tensor.values())
    return Verdict(
        either(slower == len(tensor)),
        f"At 2,048 on an H100 {slower} of the four {'is' if slower == 1 else 'are'} slower than "
        f"its {fp32:.1f} TFLOP/s: they reach "
        f"{', '.join(f'{speed:.1f}' for speed in tensor.values())}. (The text compares 3,304 at "
        f"one size with figures at another.)",
        (RECORDED,),
        "; ".join(map(_file, (VECTORIZED, *tensor))),
    )


def no_epilogue_w56(evidence: Evidence) -> Verdict:
    """Thread FFMAs of the same kernel without and with β."""
    n = 64
    without, with_beta = (
        counters["ffma_thread_instructions"] for counters in
        (evidence.counters(VECTORS, SMALL, n), evidence.counters_with_beta(VECTORS, SMALL, n))
    )
    return Verdict(
        either(with_beta == 0),
        f"With β = 0 an epilogue only multiplies by α: {without} FFMA. With β = 0.5 the same "
        f"kernel executes {with_beta:,}, one for each of the {n * n:,} elements. A count of 0 says "
        f"nothing about an epilogue.",
        (EMULATED,),
        emulator(VECTORS),
    )


def scatter_w22(evidence: Evidence) -> Verdict:
    """How fragments leave shared memory in the machine code of both."""
    wmma, ours = (evidence.loop(stem, name, "sm_75")
                  for stem, name in ((VECTORS, WIDE), (LDMATRIX, MIRRORED)))

    def count(loop: Mapping[str, float], kind: str) -> float:
        return sum(number for name, number in loop.items() if name.startswith(kind))

    each = count(wmma, "matrix load") / wmma["tensor"], count(ours, "matrix load") / ours["tensor"]
    return Verdict(
        either(count(wmma, "shared load") > 0),
        f"For sm_75, load_matrix_sync compiles to LDSM, as ldmatrix does, and to no other load: "
        f"{each[0]:.3f} for each HMMA.1688, two matrices at a time. ldmatrix.x4 takes four, and so "
        f"{each[1]:.3f}.",
        (MODELLED,),
        "SASS for sm_75 of 13's and 14's inner loops",
    )


def windows_w23(evidence: Evidence) -> Verdict:
    """The addresses of the swapped map, where the emulator stops."""
    places = sorted(int(address) for address in evidence.refused(LDMATRIX, SWAPPED))
    overlaps = sum(
        any(0 < abs(place - other) < ALIGNMENT for other in places) for place in places
    )
    off = sum(place % ALIGNMENT != 0 for place in places)
    return Verdict(
        either(overlaps > 0),
        f"{overlaps} of 32 windows overlap others. But {off} of the addresses are "
        f"no multiple of {ALIGNMENT} bytes, which PTX leaves undefined: the emulator stops there, "
        f"so the 162 is neither confirmed nor refuted.",
        (EMULATED, REPORTED),
        f"`cuda/{LDMATRIX}.cu` in the emulator, one tile, sm_75; PTX ISA, ldmatrix",
    )


def loads_w24(evidence: Evidence) -> Verdict:
    """Load requests of each warp for a tile, and their lanes."""
    n, warps, steps = 128, 8, 128 // 32
    loads = evidence.loads(LDMATRIX, MIRRORED, n)
    each = {name: loads[name].requests / warps / steps for name in "AB"}
    # Sixteen sectors are 512 bytes: 16 for each of 32 lanes.
    full = all(loads[name].sectors_per_request == 16 for name in "AB")
    return Verdict(
        either(full and set(each.values()) == {2.0}),
        f"{each['A']:g} requests of each warp for a tile of A and {each['B']:g} for one of B, "
        f"{'all' if full else 'not all'} of them with 32 lanes.",
        (EMULATED,),
        f"`cuda/{LDMATRIX}.cu` in the emulator, {n}×{n}×{n}, sm_75",
    )


def limit_w26(evidence: Evidence) -> Verdict:
    """Faster code without cp.async on one GPU, and on a T4 as published."""
    published = 46.9e12
    worklog, ours = (evidence.bench("H100", stem, name, 4096, "sm_75").tflops
                     for stem, name in ((LDMATRIX, MIRRORED), (TURING, LIMIT)))
    return Verdict(
        either(ours <= worklog and published <= 17.1e12),
        f"Two kernels of sm_75 code, FP32 accumulators, on one H100 at 4,096: the worklog's design "
        f"(14) has {worklog:.0f} TFLOP/s and 15 {ours:.0f}, neither with cp.async. On a T4 "
        f"{published / 1e12:.1f} TFLOP/s are published, with FP16 accumulators, whose data-sheet "
        f"peak is the same.",
        (RECORDED, REPORTED),
        f"{_file(LDMATRIX)}; {_file(TURING)}; Armbruster 2024",
    )


def conditions_w27(evidence: Evidence) -> Verdict:
    """A kernel that breaks two of the three conditions, against the one that keeps them."""
    same, broken = ((LDMATRIX, MIRRORED), (TURING, LIMIT))
    shared = evidence.resources(*broken).shared_bytes
    blocks = evidence.occupancy("T4", *broken).blocks
    old, new = (evidence.bench("H100", *one, 4096, "sm_75").tflops for one in (same, broken))
    needed = new <= old
    return Verdict(
        either(needed),
        f"15 keeps one of them, 128-bit loads. It has tiles of 128×256, with more vectors than "
        f"threads, and {shared / KIB:.0f} KiB a block, so that {blocks} block fits a T4's SM. Its "
        f"sm_75 code is {new / old:.2f} times as fast as 14's, which keeps all three (on an H100).",
        (RECORDED, MODELLED),
        f"{_file(LDMATRIX)}; {_file(TURING)}; ptxas for sm_75",
    )


def compute_bound_w57(evidence: Evidence) -> Verdict:
    """The unit that a T4 would saturate."""
    found = {
        stem: evidence.unit_times("T4", stem, name, 4096)
        for stem, name in ((LDMATRIX, MIRRORED), (TURING, LIMIT))
    }
    busiest = {stem: longest(times) for stem, times in found.items()}
    next_longest = sorted(found[TURING].values())[-2] / max(found[TURING].values())
    return Verdict(
        CONTRADICTED if busiest[TURING] == "tensor pipe" else REPRODUCED,
        f"In the worklog's design (14) the unit with the most work on a T4 is the "
        f"{busiest[LDMATRIX]}, in 15 the {busiest[TURING]}, where every other unit needs "
        f"at most {next_longest:.0%} of its time. And {46.9 / 65:.0%} of the T4's peak are "
        f"published.",
        (MODELLED, EMULATED, REPORTED),
        f"`cuda/{TURING}.cu` in the emulator, one tile, sm_75; "
        "`lib/topics/limits/bottleneck/model.py` for the T4; Armbruster 2024",
    )
