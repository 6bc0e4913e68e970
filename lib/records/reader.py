"""One record of a version, or of cuBLAS, on one GPU: what pages, claims and tests read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lib.dispatch.fit import instantiations
from lib.dispatch.plan import choose
from lib.kernels.catalogue import find
from lib.kernels.shapes import timed
from lib.kernels.spec import Kernel
from lib.kernels.spec import Variant as KernelVariant
from lib.records import searches, store
from lib.records.schema import (
    Counters,
    CublasRecord,
    KernelRecord,
    MachineCode,
    RivalVariant,
    Row,
    Shape,
    Timeline,
    Variant,
)
from lib.records.store import NotRecorded, NotYet


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a kernel version on a GPU."""

    stem: str  # the version's
    gpu: str  # key of its data sheet
    # Whether what was measured of other source than today's counts as not recorded.
    fresh: bool = False

    @property
    def kernel(self) -> Kernel:
        """The catalogue's entry."""
        return find(self.stem)

    @cached_property
    def record(self) -> KernelRecord:
        """The whole record. Raises NotYet if there is none."""
        found = store.load(KernelRecord, self.gpu, self.stem)
        if found is None:
            raise NotYet(f"{self.stem} has no record: python -m lib record {self.stem}")
        return found

    def stale(self, name: str | None = None) -> bool:
        """Whether something recorded of a variant is of other source or launch than today's."""
        stored = self.record.variants.get(self._name(name))
        return stored is not None and store.changed(self.kernel, self._name(name), stored)

    def variant(self, name: str | None = None) -> Variant:
        """What was recorded of a variant; of a `fresh` record what is of today's source.

        Raises NotYet if nothing was.
        """
        stored = self.record.variants.get(self._name(name))
        if stored is None:
            raise NotYet(self.nothing(name, "nothing"))
        return self.current(name) if self.fresh else stored

    def current(self, name: str | None = None) -> Variant:
        """What was recorded of a variant of today's source and launch (see `store.current`).

        Raises NotYet if nothing was.
        """
        stored = self.record.variants.get(self._name(name))
        found = stored and store.current(self.kernel, self._name(name), stored)
        if not found:
            raise NotYet(self.nothing(name, "nothing of today's source"))
        return found

    def code(self, name: str | None = None, ptx_arch: str | None = None) -> Variant | MachineCode:
        """What was recorded of a variant's code for the GPU, or of an older architecture's.

        Raises NotRecorded if nothing was.
        """
        stored = self.variant(name)
        if not ptx_arch:
            return stored
        if ptx_arch not in stored.ptx:
            raise self.nothing(name, f"no code of {ptx_arch}")
        return stored.ptx[ptx_arch]

    def bench(self, size: int, variant: str | None = None, ptx_arch: str | None = None) -> Row:
        """The recorded benchmark at one size.

        `size`: M = N = K. `ptx_arch`: an older architecture, whose code was assembled for the
        recorded GPU. Raises NotRecorded if there is no such record, variant, code or size; `NotYet`
        where a pass that was broken off has left out what it was to time.
        """
        for row in self.code(variant, ptx_arch).bench:
            if row.is_cube(size):
                return row
        nothing = self.nothing(variant, f"no time at {size:,}")
        if (size,) * 3 in timed(self.kernel, self.kernel.variant(self._name(variant))):
            raise NotYet(str(nothing))
        raise nothing

    def counters(self, size: int, variant: str | None = None) -> Mapping[str, float]:
        """The recorded hardware counters at one size (`lib.measure.counters`' names).

        Of a variant whose place another takes by a search, those of the one that was timed: what is
        divided by each other must be of one kernel. One that follows a rule is profiled as it is
        launched.

        Raises NotRecorded as `bench` does.
        """
        chosen = self.kernel.variant(variant)
        if chosen.candidates and not chosen.by_rule:
            timed = self.launched(self.bench(size, chosen.name).instantiation, (size,) * 3)
            variant = (timed or chosen).name
        found = counted(self.variant(variant).counters, size)
        if found is None:
            raise self.nothing(variant, f"no counters at {size:,}")
        return found

    def timeline(self, variant: str | None = None) -> Timeline:
        """The recorded marks inside a variant. Raises NotRecorded if there are none."""
        times = self.variant(variant).timeline
        if times is None:
            raise self.nothing(variant, "no timeline")
        return times

    def launched(self, instantiation: str, shape: Shape) -> KernelVariant | None:
        """The variant that a row of a shape is of; None if the catalogue has it no more.

        Of several that differ in how they are launched today's choice, if it is among them.
        """
        names = self._instantiations.get(instantiation, [])
        tuned = self.kernel.variants[0]
        if len(names) > 1 and tuned.candidates:
            search = searches.of(self.kernel, tuned)
            chosen = choose(self.kernel, tuned, tuned.problem(*shape), search).name
            names = [chosen] if chosen in names else names
        return self.kernel.variant(names[0]) if names else None

    @cached_property
    def _instantiations(self) -> dict[str, list[str]]:
        return instantiations(self.kernel)

    def nothing(self, variant: str | None, missing: str) -> NotRecorded:
        """The error that says what a record lacks, and how to record it."""
        return NotRecorded(
            f"the record of {self.stem} has {missing} for {self._name(variant)}: "
            f"python -m lib record {self.stem}"
        )

    def _name(self, variant: str | None) -> str:
        """The variant's name, the fastest one's if none is named."""
        return self.kernel.variant(variant).name


@dataclass(frozen=True)
class RecordedRival:
    """What was recorded of cuBLAS by itself on a GPU."""

    gpu: str  # key of its data sheet

    @cached_property
    def record(self) -> CublasRecord:
        """The whole record. Raises NotRecorded if there is none."""
        found = store.load(CublasRecord, self.gpu)
        if found is None:
            raise NotRecorded("cuBLAS has no record: python -m lib record cublas")
        return found

    def variant(self, problem: str) -> RivalVariant:
        """What was recorded of one combination of types and layout, such as ``"fp32"``.

        Raises NotRecorded if nothing was.
        """
        if problem not in self.record.variants:
            raise self._nothing(f"nothing for {problem}")
        return self.record.variants[problem]

    def counters(self, size: int, problem: str, best: bool = False) -> Mapping[str, float]:
        """The recorded hardware counters of its default at one size, or of its `best`.

        Raises NotRecorded if there are none.
        """
        stored = self.variant(problem)
        found = counted(stored.best_counters if best else stored.counters, size)
        if found is None:
            what = "counters of its best" if best else "counters"
            raise self._nothing(f"no {what} for {problem} at {size:,}")
        return found

    def _nothing(self, missing: str) -> NotRecorded:
        return NotRecorded(f"the record of cuBLAS has {missing}: python -m lib record cublas")


def counted(counters: Sequence[Counters], size: int) -> Mapping[str, float] | None:
    """The counters of a cube, if they were read."""
    return next((one.metrics for one in counters if one.is_cube(size)), None)
