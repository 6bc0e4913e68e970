"""One record of a version, or of cuBLAS, on one GPU: what pages, claims and tests read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.kernels.select import instantiated
from lib.kernels.spec import Kernel, Variant
from lib.records import store, tuning
from lib.records.store import NotRecorded


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a kernel version, or of cuBLAS, on a GPU.

    Attributes
    ----------
    stem : str
        The version's, or `store.CUBLAS`.
    gpu : str
        Key of its data sheet.
    """

    stem: str
    gpu: str

    @property
    def kernel(self) -> Kernel | None:
        """The catalogue's entry; None of cuBLAS."""
        return CATALOGUE.get(self.stem)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The whole record.

        Raises
        ------
        NotRecorded
            If there is none.
        """
        found = store.load(self.gpu, self.stem)
        if found is None:
            name = self.stem if self.kernel else "cuBLAS"
            raise NotRecorded(f"{name} has no record: python -m lib record {self.stem}")
        return found

    @property
    def stale(self) -> bool:
        """Whether the source of a variant has changed since."""
        variants = self.kernel.variants if self.kernel else ()
        return any(store.stale(self.record, v.name) for v in variants)

    def variant(self, name: str | None = None, ptx_arch: str | None = None) -> Mapping[str, Any]:
        """What was recorded of a variant, or of an older architecture's code of it.

        Raises
        ------
        NotRecorded
            If nothing was.
        """
        kept = self.record["variants"].get(self._name(name))
        if kept is None:
            raise self.nothing(name, "nothing")
        if ptx_arch:
            kept = kept.get("ptx", {}).get(ptx_arch)
            if kept is None:
                raise self.nothing(name, f"no code of {ptx_arch}")
        return kept

    def bench(
        self, size: int, variant: str | None = None, ptx_arch: str | None = None
    ) -> Mapping[str, Any]:
        """The recorded benchmark at one size: a row of the record.

        Parameters
        ----------
        size : int
            M = N = K.
        variant : str, optional
        ptx_arch : str, optional
            An older architecture, whose code was assembled for the recorded GPU.

        Raises
        ------
        NotRecorded
            If there is no such record, variant, code or size.
        """
        return self._cube(size, variant, ptx_arch, "bench", "time")

    def counters(
        self, size: int, variant: str | None = None, ptx_arch: str | None = None
    ) -> Mapping[str, float]:
        """The recorded hardware counters at one size (`lib.measure.counters`' names).

        Of a variant whose place another takes by a search, those of the one that was timed: what is
        divided by each other must be of one kernel. One that follows a rule is profiled as it is
        launched.

        Raises
        ------
        NotRecorded
            As `bench` does.
        """
        chosen = self.kernel and self.kernel.variant(variant)
        if chosen and chosen.candidates and not chosen.by_rule and not ptx_arch:
            timed = self.launched(self.bench(size, chosen.name))
            variant = (timed or chosen).name
        return self._cube(size, variant, ptx_arch, "counters", "counters")["metrics"]

    def timeline(self, variant: str | None = None) -> Mapping[str, Any]:
        """The recorded marks inside a variant.

        Raises
        ------
        NotRecorded
            If there are none.
        """
        times = self.record["variants"].get(self._name(variant), {}).get("timeline")
        if times is None:
            raise self.nothing(variant, "no timeline")
        return times

    def launched(self, row: Mapping[str, Any]) -> Variant | None:
        """The variant that a recorded row is of; None if the catalogue has it no more.

        Of several that differ in how they are launched today's choice, if it is among them.
        """
        names = instantiated(self.kernel, row["instantiation"])
        tuned = self.kernel.variants[0]
        if len(names) > 1 and tuned.candidates:
            problem = tuned.problem(row["M"], row["N"], row["K"])
            chosen = tuning.choose(self.kernel, tuned, problem).name
            names = [chosen] if chosen in names else names
        return self.kernel.variant(names[0]) if names else None

    def nothing(self, variant: str | None, missing: str) -> NotRecorded:
        """The error that says what a record lacks, and how to record it."""
        return NotRecorded(
            f"the record of {self.stem} has {missing} for {self._name(variant)}: "
            f"python -m lib record {self.stem}"
        )

    def _name(self, variant: str | None) -> str | None:
        """The variant's name, the first one's if none is named."""
        return self.kernel.variant(variant).name if self.kernel else variant

    def _cube(
        self, size: int, variant: str | None, ptx_arch: str | None, part: str, what: str
    ) -> Mapping[str, Any]:
        for row in self.variant(variant, ptx_arch).get(part, []):
            if row["M"] == row["N"] == row["K"] == size:
                return row
        raise self.nothing(variant, f"no {what} at {size:,}")
