"""Where a verdict may look: data sheets, a run in the emulator, the records. Nothing else.

A judge (``lib.judges``) gets one `Evidence` and asks it for numbers, so a test can hand it other
numbers and see the verdict change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lib import gpus, kernels, runner
from lib.measure import records
from lib.models import accesses
from lib.problem import Problem

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
NOT_TESTABLE = "not testable here"
NOT_YET = "not yet judged"
VERDICTS = (REPRODUCED, CONTRADICTED, NOT_TESTABLE, NOT_YET)

MEASURED = "measured"
RECORDED = "recorded"
EMULATED = "emulated"
MODELLED = "modelled"
REPORTED = "reported"
KINDS = (MEASURED, RECORDED, EMULATED, MODELLED, REPORTED)

SECTOR_BYTES = 32

# The records' names (``lib.measure.counters``) of the counters that judges ask for.
DRAM_READ = "dram_read_bytes"
L2_BYTES = "l2_bytes"
WARPS_ACTIVE = "warps_active_percent"


class Missing(LookupError):
    """The evidence that a judge asked for is not in the repository; the message names it."""


@dataclass(frozen=True)
class Verdict:
    """What the evidence says about a claim.

    Attributes
    ----------
    kind : str
        One of `VERDICTS`.
    sentence : str
        Why, with the numbers.
    evidence : tuple of str
        Kinds of evidence, out of `KINDS`; empty only for a claim not yet judged.
    where : str
        Where in the repository, or in which publication, the evidence is.
    """

    kind: str
    sentence: str
    evidence: tuple[str, ...]
    where: str

    def __post_init__(self) -> None:
        if self.kind not in VERDICTS:
            raise ValueError(f"{self.kind!r} is no verdict; use one of {', '.join(VERDICTS)}")
        unknown = set(self.evidence) - set(KINDS)
        if unknown:
            raise ValueError(f"{sorted(unknown)} is no kind of evidence; use {', '.join(KINDS)}")
        if self.kind != NOT_YET and not (self.evidence and self.where and self.sentence):
            raise ValueError(f"a verdict of {self.kind!r} needs a sentence, evidence and a place")


@dataclass(frozen=True)
class Loads:
    """Global loads of one matrix in one run: warp requests and the sectors they touched."""

    requests: int
    sectors: int

    @property
    def sectors_per_request(self) -> float:
        """Sectors that one request touches, on average."""
        return self.sectors / self.requests


class Evidence:
    """The repository's evidence: data sheets, emulated runs, records."""

    def gpu(self, key: str) -> gpus.Gpu:
        """The data sheet of a GPU."""
        return gpus.GPUS[key]

    def counters(self, stem: str, variant: str, n: int = 64) -> Mapping[str, int]:
        """Counters of an n×n×n run in the emulator, compiled for sm_75, α = 1, β = 0."""
        return _emulate(stem, variant, n).launch.trace.counters()

    def loads(self, stem: str, variant: str, n: int = 64) -> Mapping[str, Loads]:
        """Global loads of ``"A"`` and of ``"B"`` in an n×n×n run in the emulator.

        Which matrix a load reads is told by its addresses, taken from the first warp.
        """
        launch = _emulate(stem, variant, n).launch
        found: dict[str, Loads] = {}
        for site in launch.trace.sites:
            if site.kind != "load" or site.space != "global" or not site.requests:
                continue
            matrix = accesses.array(launch.trace.watched[site.line][0], launch.allocations)
            before = found.get(matrix, Loads(0, 0))
            found[matrix] = Loads(before.requests + site.requests, before.sectors + site.sectors)
        return found

    def counter(self, gpu: str, stem: str, variant: str, n: int, metric: str) -> float:
        """One ncu counter of an n×n×n run, as recorded.

        Raises
        ------
        Missing
            If there is no such record, size or counter.
        """
        for entry in self._variant(gpu, stem, variant).get("counters", []):
            if _is_cube(entry, n) and metric in entry["metrics"]:
                return float(entry["metrics"][metric])
        raise Missing(f"{metric} of {stem} ({variant}) at {n:,} on the {gpu}")

    def bench(self, gpu: str, stem: str, variant: str, n: int) -> Mapping[str, Any]:
        """The recorded timing of an n×n×n run: ``seconds``, ``tflops``, ``ratio`` and more.

        Raises
        ------
        Missing
            If there is no such record or size.
        """
        for entry in self._variant(gpu, stem, variant).get("bench", []):
            if _is_cube(entry, n):
                return entry
        raise Missing(f"the time of {stem} ({variant}) at {n:,} on the {gpu}")

    def _variant(self, gpu: str, stem: str, variant: str) -> Mapping[str, Any]:
        record = records.load(gpu, stem)
        if record is None or variant not in record["variants"]:
            raise Missing(f"a record of {stem} ({variant}) on the {gpu}")
        return record["variants"][variant]


def _is_cube(entry: Mapping[str, Any], n: int) -> bool:
    return entry["M"] == entry["N"] == entry["K"] == n


@cache
def _emulate(stem: str, variant: str, n: int) -> Any:
    """One run, kept for the process: several judges ask about the same one."""
    kernel = kernels.find(stem)
    return runner.run(kernel, Problem(n, n, n), variant=kernel.variant(variant),
                      backend="emulator", arch="sm_75", watch=(0, 0))
