"""The claims ledger: what the two source texts assert, and what the evidence says.

Ids beginning with D are from the double-buffering tutorial, with W from the worklog
(``lessup2026doublebuffer`` and ``danepham2026worklog`` in ``chapters/references.bib``). The texts
are put in our words. A claim without a judge belongs to a chapter that is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lib.claims.checks import (
    double_buffer,
    worklog_fp32,
    worklog_ladder,
    worklog_machine,
    worklog_tensor,
    worklog_turing,
    worklog_wmma,
)
from lib.claims.evidence import NOT_YET, VERDICTS, Evidence, Missing, Verdict
from lib.plotting.markdown import markdown as table

Judge = Callable[[Evidence], Verdict]

SOURCES = {"D": "lessup2026doublebuffer", "W": "danepham2026worklog"}
METHOD = "method"
# The worklog's claims are of this GPU, the tutorial's of a laptop's that nobody is asked for.
CLAIMED_OF, FOLDER = "T4", "results/t4/"


@dataclass(frozen=True)
class Claim:
    """One thing that a source asserts."""

    id: str  # ``D`` or ``W`` and a number
    chapter: str  # stem of the chapter that judges it
    text: str  # the claim, in our words
    judge: Judge | None = None  # from the evidence to a verdict; None until its chapter exists

    @property
    def source(self) -> str:
        """Citation key of the text that makes the claim."""
        return SOURCES[self.id[0]]


@dataclass(frozen=True)
class Row:
    """A claim with its verdict, as tables show it."""

    claim: Claim
    verdict: Verdict


CLAIMS: tuple[Claim, ...] = (
    # The double-buffering tutorial.
    Claim("D1", "07_double_buffer",
          "Without double buffering the arithmetic units idle about half of the time; with it 700 "
          "cycles become 550.",
          double_buffer.half_idle_d1),
    Claim("D2", "07_double_buffer",
          "Two buffers raise shared memory from 8.4 KB to 16.8 KB (padded 32×33 tiles).",
          double_buffer.buffers_d2),
    Claim("D3", "07_double_buffer",
          "Loading the next tile in the body of the same loop is asynchronous.",
          double_buffer.asynchronous_d3),
    Claim("D4", "07_double_buffer", "One barrier an iteration is enough.",
          double_buffer.one_barrier_d4),
    Claim("D5", "07_double_buffer",
          "Double buffering gains 4% over the padded kernel at 1,024 (673 to 701 GFLOP/s).",
          double_buffer.gain_d5),
    Claim("D6", "07_double_buffer",
          "It costs registers and occupancy.",
          double_buffer.occupancy_d6),
    Claim("D7", "07_double_buffer",
          "Overlap is best where computing a tile takes as long as loading it.",
          double_buffer.balance_d7),
    Claim("D8", "07_double_buffer",
          "It helps most with a memory-bound kernel, large tiles and few warps, and least with a "
          "compute-bound one.", double_buffer.sweep_d8),
    Claim("D9", "05_bank_conflicts",
          "Padding the tiles removes the tiled kernel's bank conflicts.", double_buffer.padding_d9),
    Claim("D10", "10_wmma",
          "A tensor core does a 4×4×4 multiply-accumulate in one cycle.",
          double_buffer.tensor_core_d10),
    Claim("D11", "07_double_buffer",
          "Double buffering is software pipelining: prologue, steady state, epilogue.",
          double_buffer.pipelining_d11),
    Claim("D12", "02_shared_tile",
          "Computing a tile takes TILE³ / (threads × FLOP per cycle).",
          double_buffer.compute_time_d12),
    Claim("D13", "07_double_buffer",
          "The buffers alternate as T1: load 1, compute 0; T2: load 0, compute 1.",
          double_buffer.alternation_d13),
    Claim("D14", "07_double_buffer",
          "From 700 to 550 cycles, the arithmetic units go from about 50% to about 100% busy.",
          double_buffer.idle_d14),
    Claim("D15", "07_double_buffer",
          "Loading a tile takes TILE² × 2 × 4 bytes / bandwidth.",
          double_buffer.load_time_d15),
    Claim("D16", "07_double_buffer",
          "The gain is small because the warp scheduler already hides the latency.",
          double_buffer.scheduler_d16),
    # The worklog.
    Claim("W1", METHOD,
          "A T4 has 320 GB/s, 65 TFLOP/s in FP16 and 8.1 in FP32, so its ridge points are 203 and "
          "25.3 FLOP/byte.", worklog_machine.t4_peaks_w1),
    Claim("W2", "01_naive",
          "The naive kernel has 0.25 FLOP/byte and so a ceiling of 80 GFLOP/s; the L2 lifts it to "
          "465.", worklog_fp32.ceiling_w2),
    Claim("W3", "01_naive",
          "Naive, at 2,048: 6–10% of the warps active, 4.3 GB from DRAM, 4.3 GB from L1.",
          worklog_fp32.traffic_w3),
    Claim("W4", "01_naive",
          "A load costs as many transactions as it touches 128-byte segments; 32 distinct ones are "
          "1/32 efficient and 32 times slower.", worklog_fp32.transactions_w4),
    Claim("W5", "01_naive",
          "Reading A is a broadcast: one transaction serves the warp.", worklog_fp32.broadcast_w5),
    Claim("W6", "02_shared_tile",
          "A 32×32 shared tile gives 8 FLOP/byte and cuts DRAM reads about 13 times.",
          worklog_fp32.tile_w6),
    Claim("W7", "02_shared_tile", "An SM has about 164 KB of shared memory.",
          worklog_machine.shared_memory_w7),
    Claim("W8", "03_strip",
          "A strip of 8 does 1.78 FLOP for each shared load, and reads As with 8-way bank "
          "conflicts.", worklog_fp32.strip_w8),
    Claim("W9", "04_register_tile",
          "An 8×8 register tile does 8 FLOP for each shared load and takes 80 registers.",
          worklog_fp32.register_tile_w9),
    Claim("W10", "06_vectorized",
          "float4 takes a quarter of the load instructions, and 4 transactions instead of 16.",
          worklog_fp32.transactions_w10),
    Claim("W11", "09_fp32_limit",
          "The FP32 path ends at 3,985 GFLOP/s, 90% of cuBLAS.", worklog_fp32.fp32_end_w11),
    Claim("W12", "08_warp_tile",
          "Warp tiling with BK = 8 is slower than the version before because of BK, with 1.75 "
          "times cuBLAS's DRAM traffic.", worklog_fp32.depth_w12),
    Claim("W13", "10_wmma",
          "One 16×16×16 mma_sync does 8,192 FLOP, 128 times an FFMA, in 1–2 cycles.",
          worklog_tensor.mma_w13),
    Claim("W14", "10_wmma",
          "Tensor cores fed from global memory: 1.28 GB from DRAM, 4.29 GB from L1, 13.4 "
          "FLOP/byte.", worklog_wmma.fragments_w14),
    Claim("W15", "11_wmma_shared",
          "Staging through shared memory: 1.9 times less DRAM, 5.4 times less L1, 1.7 times "
          "faster; the reuse is BN/16.", worklog_wmma.staging_w15),
    Claim("W16", "12_wmma_pipeline",
          "The double-buffered tensor-core kernel overlaps nothing and is no faster.",
          worklog_wmma.overlap_w16),
    Claim("W17", "12_wmma_pipeline", "Its epilogue executes exactly M·N FFMA.",
          worklog_wmma.epilogue_w17),
    Claim("W18", "13_wmma_vectorized",
          "128-bit loads need an eighth of the instructions: 64, 128 and 512 vectors for A, B and "
          "C; three quarters of the threads have nothing of A to load.",
          worklog_tensor.vectors_w18),
    Claim("W19", "13_wmma_vectorized",
          "The vectorised kernel is 4% slower at 2,048 (2,983 against 3,105 GFLOP/s), and reaches "
          "12,380 at 4,096.",
          worklog_turing.regression_w19),
    Claim("W20", "13_wmma_vectorized",
          "It needs 37 KB of shared memory, so one block fits an SM.",
          worklog_turing.one_block_w20),
    Claim("W21", "14_ldmatrix",
          "18,944 bytes and about 116 registers let two blocks share an SM; warps active rise from "
          "25% to 49.4%.", worklog_tensor.resident_w21),
    Claim("W22", "14_ldmatrix",
          "load_matrix_sync scatters element by element; ldmatrix is one instruction.",
          worklog_turing.scatter_w22),
    Claim("W23", "14_ldmatrix",
          "Addresses swapped for ldmatrix read overlapping windows, with an error of 162.",
          worklog_turing.windows_w23),
    Claim("W24", "14_ldmatrix", "Every thread issues two 128-bit loads per tile, for A and for B.",
          worklog_turing.loads_w24),
    Claim("W25", "14_ldmatrix",
          "17.06 TFLOP/s is 26.2% of the peak, 37% above the version before, and a jump of 5.7 "
          "times over it.", worklog_tensor.jump_w25),
    Claim("W26", "15_turing_limit",
          "17 TFLOP/s is an architectural limit without cp.async.", worklog_turing.limit_w26),
    Claim("W27", "15_turing_limit",
          "Three conditions are needed together: a 128×128 tile with as many vectors as threads, "
          "128-bit loads, at most 19 KB a block.",
          worklog_turing.conditions_w27),
    Claim("W28", "13_wmma_vectorized",
          "The vectorised kernel reaches 105% of its bandwidth ceiling, 37 FLOP/byte × 320 GB/s.",
          worklog_tensor.overshoot_w28),
    Claim("W29", "15_turing_limit",
          "cuBLAS reaches about 40 TFLOP/s in FP16 on a T4, 62% of the peak.",
          worklog_tensor.cublas_t4_w29),
    Claim("W30", "20_persistent",
          "Each step removes one bottleneck and exposes the next (a table of eight steps).",
          worklog_ladder.bottlenecks_w30),
    Claim("W31", METHOD,
          "Transistor counts and clocks 1971–2023; clocks grew 52% a year from 1986 to 2002; "
          "Dennard scaling ended about 2004–2006.", worklog_machine.history_w31),
    Claim("W32", "20_persistent",
          "Each stage of optimisation belongs to one level of the machine's hierarchy.",
          worklog_ladder.one_level_w32),
    Claim("W33", METHOD,
          "The FP32 ridge point of a T4 is 10–15 FLOP/byte (25.3 in another place).",
          worklog_machine.ridge_w33),
    Claim("W34", "01_naive",
          "At 4,096 the L2's help to the naive kernel vanishes entirely.", worklog_fp32.l2_w34),
    Claim("W35", "13_wmma_vectorized",
          "The vectorised kernel has 120.6 FLOP/byte (37.0 in another place) and 98.3% of its "
          "warps active (25% in another place).", worklog_tensor.intensities_w35),
    Claim("W36", METHOD,
          "\"49.5% warps active\" means that 49.5% of the warps are stalled.",
          worklog_machine.warps_active_w36),
    Claim("W37", "06_vectorized",
          "Each sub-partition of an SM has 16 load/store units.",
          worklog_machine.load_store_units_w37),
    Claim("W38", "10_wmma",
          "Tensor cores at 65 TFLOP/s need about 65 TB/s of operands.",
          worklog_tensor.operands_w38),
    Claim("W39", "13_wmma_vectorized",
          "The vectorised FP32 kernel is faster than any of the first four tensor-core kernels.",
          worklog_turing.fp32_w39),
    Claim("W40", "01_naive",
          "The naive kernel reads about 15 times as much from DRAM as cuBLAS, which reads 276 MB "
          "at 2,048.", worklog_fp32.cublas_traffic_w40),
    Claim("W41", "12_wmma_pipeline",
          "A memory warp prefetches while a compute warp computes.", worklog_wmma.roles_w41),
    Claim("W42", "13_wmma_vectorized",
          "float4 stores in the epilogue halve the store instructions.", worklog_tensor.stores_w42),
    # Found on a second reading.
    Claim("W43", METHOD,
          "In 1965 Moore observed that transistor counts double about every two years.",
          worklog_machine.moore_w43),
    Claim("W44", "01_naive",
          "At 0.25 FLOP/byte the naive kernel is 800 times below the ridge point and leaves 99% "
          "of the machine unused.", worklog_fp32.unused_w44),
    Claim("W45", "01_naive",
          "The naive kernel executes 8.59 billion fused multiply-adds at 2,048.",
          worklog_fp32.ffma_w45),
    Claim("W46", "01_naive",
          "Nothing is cached: every load of the naive kernel goes to DRAM.",
          worklog_fp32.no_cache_w46),
    Claim("W47", METHOD, "Memory is read in 128-byte sectors.", worklog_machine.sector_w47),
    Claim("W48", "01_naive",
          "In a 32×32 block, warp w is row w of the block.", worklog_fp32.warp_is_row_w48),
    Claim("W49", "02_shared_tile",
          "The tiled kernel's global loads move about 270 MB at 2,048, as much as DRAM delivers.",
          worklog_fp32.tile_l1_w49),
    Claim("W50", "02_shared_tile",
          "At 57 FLOP/byte the tiled kernel is past the ridge point and so compute-bound.",
          worklog_fp32.compute_bound_w50),
    Claim("W51", "07_double_buffer",
          "Waiting at barriers halves the tiled kernel's use of the arithmetic units.",
          worklog_fp32.barriers_w51),
    Claim("W52", METHOD, "A T4 has 2,560 CUDA cores and 320 tensor cores.",
          worklog_machine.cores_w52),
    Claim("W53", METHOD,
          "A T4's SM has 96 KB for L1 and shared memory together, up to 64 KB of it shared.",
          worklog_machine.carveout_w53),
    Claim("W54", "14_ldmatrix",
          "ldmatrix.x4 routes 256 bits in one cycle.", worklog_tensor.ldmatrix_w54),
    Claim("W55", "13_wmma_vectorized",
          "Filling a 32×16 tile of A with scalar loads takes 512 load instructions per warp.",
          worklog_tensor.half_tile_w55),
    Claim("W56", "13_wmma_vectorized",
          "The vectorised kernel executes no FFMA because it has no epilogue (the text describes "
          "one).",
          worklog_turing.no_epilogue_w56),
    Claim("W57", "15_turing_limit",
          "Being compute-bound is out of software's reach on Turing.",
          worklog_turing.compute_bound_w57),
    Claim("W58", "03_strip",
          "A strip per thread improves occupancy, to 50–60% of the warps: register reuse lets more "
          "of them stay active.", worklog_fp32.strip_occupancy_w58),
    Claim("W59", "04_register_tile",
          "The outer product keeps more warps in flight: 60–70% active.",
          worklog_fp32.register_tile_occupancy_w59),
    Claim("W60", "16_cp_async",
          "A T4 supports neither cp.async, which needs sm_80, nor TMA, which needs sm_90.",
          worklog_ladder.needs_w60),
    Claim("W61", "16_cp_async",
          "What holds the last version, v11, back are synchronous copies from global to shared "
          "memory; cp.async is the remedy.", worklog_ladder.remedy_w61),
)


def find(claim_id: str) -> Claim:
    """Return the claim of that id; a ValueError lists the range of ids."""
    for claim in CLAIMS:
        if claim.id == claim_id:
            return claim
    raise ValueError(f"no claim {claim_id!r}; ids run from D1 to D16 and from W1 to W61")


def judged(claim: Claim, evidence: Evidence | None = None) -> Verdict:
    """Ask a claim's judge.

    A claim without a judge, or one whose judge misses a record, is not yet judged; the sentence
    says what is missing.
    """
    if claim.judge is None:
        return Verdict(NOT_YET, f"Belongs to chapter {claim.chapter}.", (), "")
    try:
        return claim.judge(evidence or Evidence())
    except Missing as missing:
        return Verdict(NOT_YET, f"Not recorded yet: {missing.args[0]}.", (), "")


def rows(chapter: str | None = None, evidence: Evidence | None = None) -> tuple[Row, ...]:
    """Every claim with its verdict, or those of one chapter."""
    return tuple(
        Row(claim, judged(claim, evidence))
        for claim in CLAIMS
        if chapter is None or claim.chapter == chapter
    )


def markdown(chapter: str | None = None, evidence: Evidence | None = None) -> str:
    """Claims and verdicts as a Markdown table, those of one chapter or all; the judged ones first.

    Three columns, so that it can be read on a phone.
    """
    cells = []
    for row in sorted(rows(chapter, evidence), key=lambda row: row.verdict.kind == NOT_YET):
        verdict = row.verdict
        text = f"**{verdict.kind}**. {verdict.sentence}"
        if verdict.evidence:
            text += f" *{', '.join(verdict.evidence)}*: {verdict.where}"
        cells.append((row.claim.id, _cell(row.claim.text), _cell(text)))
    return table(("id", "the claim", "the verdict, and its evidence"), cells)


def summary(evidence: Evidence | None = None) -> str:
    """How many claims have each verdict, and which a record of a T4 would settle, in Markdown."""
    found = rows(evidence=evidence)
    kinds = [row.verdict.kind for row in found]
    counted = ", ".join(f"**{kinds.count(kind)}** {kind}" for kind in VERDICTS)
    text = f"Of {len(kinds)} claims: {counted}."
    if names := [row.claim.id for row in waiting(found)]:
        text += (
            f"\n\n{len(names)} of them are about a {CLAIMED_OF} and judged by what another GPU "
            f"measured: {', '.join(names)}. They wait for a {CLAIMED_OF}'s own record, which "
            "`python -m lib record` makes there."
        )
    return text


def waiting(found: Iterable[Row]) -> list[Row]:
    """Claims about a T4 that were judged by the records of other GPUs."""
    return [row for row in found if row.claim.id.startswith("W")
            and "recorded" in row.verdict.evidence and FOLDER not in row.verdict.where]


def _cell(words: str) -> str:
    """Words that cannot break a Markdown table's row."""
    return words.replace("|", "\\|").replace("\n", " ")
