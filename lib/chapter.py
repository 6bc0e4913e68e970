"""What a chapter calls: one kernel version, and the verbs that most chapters show it by.

On a machine with a GPU a chapter measures. Without one it shows what was recorded, and says so.
What only a chapter or two show is a function of its subject, ``lib.show.<subject>``.
"""

from __future__ import annotations

from typing import Any

from lib import gpus
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem
from lib.records import store as records
from lib.records.schema import Benchmark, Timeline
from lib.run.runner import Run
from lib.show.display import note, once_recorded, show, table
from lib.show.version import RECORDED_ON, TRACED, Version

__all__ = ["RECORDED_ON", "TRACED", "Chapter", "gpus", "note", "once_recorded", "records",
           "show", "table"]

# Samples of a chapter's own benchmark: enough for a median, few enough that a reader waits for it.
ROUNDS = 5


class Here:
    """What measures on the GPU that is here."""

    def lacks(self, variant: Variant) -> str:
        """What must be installed for a variant to be timed; empty if nothing."""
        from lib.measure import cublaslt

        return cublaslt.lacking() if variant.scaling else ""

    def bench(self, kernel: Kernel, variant: Variant, problem: Problem) -> Benchmark:
        """Time a variant against cuBLAS (see `lib.measure.bench.bench`)."""
        from lib.measure.bench import bench

        return bench(kernel, variant, problem, rounds=ROUNDS)

    def timeline(self, kernel: Kernel, variant: Variant, problem: Problem) -> Timeline:
        """Take marks inside a variant (see `lib.measure.timeline.timeline`)."""
        from lib.measure.timeline import timeline

        return timeline(kernel, variant, problem)


class Chapter:
    """One kernel version, as its chapter shows it.

    A verb imports its subject when it is called: a chapter then depends on the subjects that it
    shows, and on no others, which is what decides whether it must be executed again.

    Parameters
    ----------
    stem : str
        Name in the catalogue.

    Attributes
    ----------
    version : Version
        What was run, compiled and recorded of it: what functions of a subject take.
    """

    def __init__(self, stem: str) -> None:
        self.version = Version(stem, Here())

    @property
    def kernel(self) -> Kernel:
        """The catalogue's entry."""
        return self.version.kernel

    @property
    def fastest(self) -> str:
        """The fastest variant; of a GPU here that is too old for it the first that it runs."""
        from lib.run import device

        fits = (one.name for one in (self.kernel.fastest, *self.kernel.variants)
                if device.runs(self.kernel, one))
        return next(fits, self.kernel.fastest.name)

    # What is known of it.

    def run(self, problem: Problem = TRACED, variant: str | None = None, **options: Any) -> Run:
        """Run the kernel on a problem (see `lib.run.runner.run`)."""
        return self.version.run(problem, variant, **options)

    # Where we are, and the code.

    def code(self) -> None:
        """Display the difference to the version before, or a new kernel; the whole file folded."""
        from lib.show import source as page

        page.code(self.version)

    def excerpt(self, first: str, last: str, **options: Any) -> None:
        """Display the kernel's lines from one that holds `first` to one that holds `last`."""
        from lib.show import source as page

        page.excerpt(self.version, first, last, **options)

    # What the compiler made of it.

    def resources(self, *variants: str) -> None:
        """Display registers, shared memory, spills and resident warps for each architecture."""
        from lib.show import occupancy_chart as page

        page.resources(self.version, *variants)

    def occupancy(self) -> None:
        """Draw what limits resident blocks on a T4, an A100 and an H100, as far as they run it."""
        from lib.show import occupancy_chart as page

        page.draw(self.version)

    def inner_loop(self, arch: str = "sm_90a") -> None:
        """Display the inner loop's machine code, folded."""
        from lib.show import source as page

        page.inner_loop(self.version, arch)

    # Does it compute the right thing, and what memory sees of it.

    def check(self, *variants: str) -> None:
        """Run variants, all if none is named, on awkward shapes; display the errors' bounds."""
        from lib.show import correctness as page

        page.check(self.version, *variants)

    def verify(self, text: str, variant: str | None = None, **options: Any) -> None:
        """Print what is wrong with a reader's own text of this kernel: result, races, counters.

        Parameters
        ----------
        text : str
            The whole .cu file, changed; empty, it says what to write.
        variant : str, optional
            Whose template arguments and launch it is run with: the fastest if not given.
        **options
            `sizes` and `sms`, where a mistake shows on other problems than the usual ones: see
            `lib.show.correctness.findings`.
        """
        from lib.show import correctness as page

        page.verify(self.version, text, variant, **options)

    def counters(self, *variants: str) -> None:
        """Display the counters of the traced run, one column a variant."""
        from lib.show import counters as page

        page.counters(self.version, *variants)

    def coalescing(self, *variants: str, **options: Any) -> None:
        """Draw what warps touched in global memory (`lib.show.coalescing`)."""
        from lib.show import accesses as page

        page.coalescing(self.version, *variants, **options)

    def banks(self, variant: str | None = None, kind: str | None = None) -> None:
        """Draw which banks a warp's shared accesses meet, a wavefront a row."""
        from lib.show import accesses as page

        page.banks(self.version, variant, kind)

    # Time.

    @once_recorded()
    def speed(self, *variants: str) -> None:
        """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
        from lib.show import speed as page

        page.speed(self.version, *variants)

    @once_recorded()
    def timeline(self, *variants: str, **options: Any) -> None:
        """Draw what some warps of one SM do, cycle by cycle (`lib.show.timeline`)."""
        from lib.show import timeline as page

        page.draw(self.version, *variants, **options)

    # What limits it.

    @once_recorded()
    def issue_slots(self) -> None:
        """Draw what each issue slot held, here and before (`lib.show.issue_slots`)."""
        from lib.show import issue_slots as page

        page.draw(self.version)

    @once_recorded()
    def roofline(self, against: str = "") -> None:
        """Draw this version and the fastest before it under the roofs measured on the recorded GPU.

        Parameters
        ----------
        against : str, optional
            Another of the version's variants to draw.
        """
        from lib.show import roofline as page

        page.draw(self.version, against)

    @once_recorded()
    def busiest(self) -> None:
        """Draw the least time that each unit needs, and the time that the kernel took."""
        from lib.show import bottleneck as page

        page.draw(self.version)
