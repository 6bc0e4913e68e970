"""Judges of what the worklog says of its ladder as a whole, and of what it leaves open."""

from __future__ import annotations

from lib.claims.checks.shared import either, record
from lib.claims.evidence import EMULATED, MODELLED, RECORDED, Evidence, Verdict

GPU, SIZE, LARGE = "H100", 2048, 4096
# The eight rows of the worklog's closing table, by this book's versions.
STEPS = (
    ("01_naive", "02_shared_tile"), ("02_shared_tile", "04_register_tile"),
    ("04_register_tile", "06_vectorized"), ("06_vectorized", "10_wmma"),
    ("10_wmma", "12_wmma_pipeline"), ("12_wmma_pipeline", "13_wmma_vectorized"),
    ("13_wmma_vectorized", "14_ldmatrix"), ("14_ldmatrix", "16_cp_async"),
)
# Its FP32 stages, which can be counted for each multiply-add.
STAGES = ("01_naive", "02_shared_tile", "03_strip", "04_register_tile", "06_vectorized",
          "08_warp_tile")
CHANGED = 0.05  # a level is touched where its cost changes by more
SYNCHRONOUS, BETTER, ASYNCHRONOUS = "14_ldmatrix", "15_turing_limit", "16_cp_async"


def bottlenecks_w30(evidence: Evidence) -> Verdict:
    """The busiest unit before and after each of the eight steps, from recorded counters."""
    units = {stem: evidence.busiest(GPU, stem, SIZE) for pair in STEPS for stem in pair}
    same = [(before, after) for before, after in STEPS if units[before] == units[after]]
    ladder = ", ".join(f"{stem[:2]} {unit}" for stem, unit in units.items())
    steps = ", ".join(f"{before[:2]} to {after[:2]}" for before, after in same)
    rest = f"The same unit stays the longest from {steps}." if same else "It changes every time."
    return Verdict(
        either(not same),
        f"The unit that needs longest, version by version: {ladder}. {rest}",
        (RECORDED, MODELLED),
        f"`results/{GPU.lower()}/` at {SIZE:,}, `lib/topics/limits/bottleneck/model.py`",
    )


def one_level_w32(evidence: Evidence) -> Verdict:
    """At how many levels of the machine each FP32 step changes the cost of a multiply-add."""
    costs = {stem: evidence.per_fma(stem) for stem in STAGES}
    touched = {}
    for before, after in zip(STAGES, STAGES[1:], strict=False):
        old, new = costs[before], costs[after]
        touched[f"{before[:2]} to {after[:2]}"] = [
            level for level in old
            if abs(new[level] - old[level]) > CHANGED * max(old[level], new[level])
        ]
    largest = max(touched, key=lambda step: len(touched[step]))
    several = sum(len(levels) > 1 for levels in touched.values())
    return Verdict(
        either(not several),
        f"{several} of {len(touched)} steps change the cost of a multiply-add at more than one "
        f"level; {largest} changes it at {', '.join(touched[largest])}. A tile of a thread is made "
        f"of registers and relieves shared memory and the L2 alike.",
        (EMULATED, MODELLED),
        "the kernels in the emulator, 128×128×128; ptxas",
    )


def needs_w60(evidence: Evidence) -> Verdict:
    """For which architectures the assembler takes the instructions."""
    copies = [evidence.legal("cp_async.cuh", "copies_commit()", a) for a in ("sm_75", "sm_80")]
    boxes = [evidence.legal("tma.cuh", "tma_commit()", a) for a in ("sm_80", "sm_90a")]
    return Verdict(
        either(copies == [False, True] == boxes),
        f"ptxas {'takes' if copies[0] else 'refuses'} cp.async for sm_75 and "
        f"{'takes' if copies[1] else 'refuses'} it for sm_80; it "
        f"{'takes' if boxes[0] else 'refuses'} TMA's bulk copies for sm_80 and "
        f"{'takes' if boxes[1] else 'refuses'} them for sm_90a.",
        (MODELLED,),
        "`cuda/include/cp_async.cuh` and `tma.cuh`, compiled for each",
    )


def remedy_w61(evidence: Evidence) -> Verdict:
    """What a better kernel without cp.async gains over v11's design, and what cp.async adds."""
    times = {}
    for stem in (SYNCHRONOUS, BETTER, ASYNCHRONOUS):
        times[stem] = evidence.first(GPU, stem, LARGE).seconds
    without = times[SYNCHRONOUS] / times[BETTER]
    more = times[BETTER] / times[ASYNCHRONOUS]
    return Verdict(
        either(more > without),
        f"Without cp.async, 15 is {without:.2f}× as fast as v11's design on an H100; with it, 16 "
        f"is {more:.2f}× as fast as 15, part of which is its wider product. The larger part of "
        f"what v11 lacks is no matter of asynchronous copies.",
        (RECORDED,),
        ", ".join(record(GPU, stem) for stem in times) + f", at {LARGE:,}",
    )
