"""The planned ladder: which version removes which bottleneck, at which level of the machine.

A version that is in the catalogue (``lib.kernels``) speaks for itself; this table only holds what
is still to come, and gives way as soon as the catalogue has a version of the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lib.kernels import CATALOGUE


@dataclass(frozen=True)
class Version:
    """One rung of the ladder.

    Attributes
    ----------
    stem : str
        Name of its files; the two digits in front are its place.
    title, change, level : str
        What it is called, what it changes, and the level of the machine that it works at.
    group : str
        ``"FP32"`` or ``"FP16"``.
    needs : str
        The oldest architecture it is legal on.
    coded : bool
        Whether the catalogue has it.
    finished : bool
        Whether it has its chapter, too.
    """

    stem: str
    title: str
    change: str
    level: str
    group: str
    needs: str
    coded: bool = False
    finished: bool = False

    @property
    def state(self) -> str:
        """What there is of it, for tables."""
        return "**here**" if self.finished else "the kernel is here" if self.coded else "to come"

    @property
    def number(self) -> str:
        """Its place on the ladder, two digits."""
        return self.stem[:2]


def _fp32(stem: str, title: str, change: str, level: str) -> Version:
    return Version(stem, title, change, level, "FP32", "sm_75")


def _fp16(stem: str, title: str, change: str, level: str, needs: str = "sm_75") -> Version:
    return Version(stem, title, change, level, "FP16", needs)


PLANNED: tuple[Version, ...] = (
    _fp32("01_naive", "Naive", "one thread an element, straight from global memory",
          "grid and thread"),
    _fp32("02_shared_tile", "Shared tile", "a block shares tiles through shared memory", "block"),
    _fp32("03_bank_conflicts", "Bank conflicts", "what padding costs where nothing conflicts",
          "shared-memory banks"),
    _fp32("04_double_buffer", "Double buffer", "load the next tile while computing on this one",
          "block, over time"),
    _fp32("05_strip", "Strip", "one thread computes a strip of C", "thread, registers"),
    _fp32("06_register_tile", "Register tile", "one thread computes a square of C",
          "thread, registers"),
    _fp32("07_vectorized", "Vectorised", "128-bit loads and stores", "issue slots"),
    _fp32("08_warp_tile", "Warp tile", "a warp owns a rectangle of C", "warp"),
    _fp32("09_fp32_limit", "FP32 limit", "everything FP32 can use, tuned together",
          "all of them"),
    _fp16("10_wmma", "Tensor cores", "warp-wide matrix instructions on global memory", "warp"),
    _fp16("11_wmma_shared", "Tensor cores, shared tile", "feed them from shared memory", "block"),
    _fp16("12_wmma_pipeline", "Tensor cores, pipelined", "overlap loading and computing",
          "block, over time"),
    _fp16("13_wmma_vectorized", "Tensor cores, vectorised", "128-bit copies and a wider tile",
          "issue slots"),
    _fp16("14_ldmatrix", "ldmatrix", "documented fragments, ldmatrix and a swizzle",
          "warp, shared-memory banks"),
    _fp16("15_turing_limit", "Turing limit", "what a T4 can do without asynchronous copies",
          "all of them"),
    _fp16("16_cp_async", "cp.async", "copies that need no registers and no waiting",
          "block, over time", "sm_80"),
    _fp16("17_tma_wgmma", "TMA and WGMMA", "one thread copies a tile, a warpgroup multiplies it",
          "warpgroup", "sm_90a"),
    _fp16("18_hopper_limit", "Hopper limit", "clusters, a persistent grid, an order that suits L2",
          "grid and cluster", "sm_90a"),
)


def versions() -> tuple[Version, ...]:
    """All rungs in order: the catalogue's where it has them, the planned ones where it has not."""
    finished = {
        stem[:2]: Version(stem, kernel.title, kernel.change, kernel.level, kernel.group,
                          kernel.min_arch, coded=True, finished=kernel.chapter.exists())
        for stem, kernel in CATALOGUE.items()
    }
    planned = {version.number: version for version in PLANNED}
    return tuple(version for _, version in sorted({**planned, **finished}.items()))


def markdown() -> str:
    """The ladder as a Markdown table."""
    return _table(
        ("version", "level of the machine", "types", "runs on"),
        lambda v: (v.title, v.level, v.group, _runs_on(v.needs)),
    )


def contents() -> str:
    """What each version changes, and whether it is here, as a Markdown table."""
    return _table(
        ("version", "what changes", "state"),
        lambda v: (v.title, v.change, v.state),
    )


def _runs_on(needs: str) -> str:
    """An architecture with the suffix ``a`` has instructions that no later one promises."""
    return f"{needs} only" if needs.endswith("a") else f"{needs} and later"


def _table(head: Sequence[str], cells: Callable[[Version], Sequence[str]]) -> str:
    lines = [f"| | {' | '.join(head)} |", "|---|" + "---|" * len(head)]
    lines += [f"| {version.number} | {' | '.join(cells(version))} |" for version in versions()]
    return "\n".join(lines)


def counts() -> tuple[int, int]:
    """How many versions are finished, and how many the ladder has in all."""
    rungs = versions()
    return sum(version.finished for version in rungs), len(rungs)


def summary() -> str:
    """One sentence: how much of the ladder is there."""
    finished, planned = counts()
    return f"**{finished}** of {planned} versions are here."
