"""What is measured for records, in which order: a list of tasks, each done whole or not at all.

A task is all of a version's variants on one shape, with the rival, so that whatever is compared was
measured together; or a version's counters, its timelines, or all of another record. Tasks come in
the order in which pages need them. Where time is over, the last are missing: first the shapes that
are no cubes, then the small cubes; never a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lib.kernels.catalogue import KERNELS, find
from lib.kernels.shapes import CUBES, timed
from lib.kernels.spec import Kernel, Variant, parted
from lib.measure import cublas
from lib.records import schema
from lib.records.schema import Shape

BENCH, COUNTERS, TIMELINE = "bench", "counters", "timeline"
THOROUGH, JOULES = "thorough", "joules"
OTHERS = (schema.MACHINE, schema.SEARCH, schema.CUBLAS, schema.SWEEPS, schema.CALIBRATION)

# Headline sizes. At the first each version's energy of a product is measured, and of those that
# others are held against all that a thorough row has; at the others these only where they are the
# last of their kind.
HEADLINE = (4096, 8192)
# Cubes in the order in which pages need them: the ladder, the chapters' time, large, small.
FIRST_CUBES = (4096, 2048, 8192)
# What `--quick` measures, the size that says most first.
QUICK_CUBES = (2048, 4096, 1024)

Runs = Callable[[Kernel, Variant], bool]


@dataclass(frozen=True)
class Task:
    """What is measured whole or not at all."""

    kind: str  # `BENCH`, `COUNTERS`, `TIMELINE`, or the name of a record that is no version's
    stem: str  # whose record it goes into
    variants: tuple[str, ...] = ()
    shape: Shape | None = None  # of a benchmark: M, N and K
    pair: str = ""  # the variant that an added one is measured beside, if one was named by itself
    # How much is measured of the version's first variant, if it is among them: see `depth`.
    depth: str = ""

    @property
    def name(self) -> str:
        """What people read: ``bench 01_naive 4096x4096x4096 coalesced,swapped``."""
        if self.kind in OTHERS:
            return self.kind
        where = "x".join(map(str, self.shape)) if self.shape else ""
        return " ".join(filter(None, (self.kind, self.stem, where, ",".join(self.variants))))


def tasks(names: Sequence[str], runs: Runs, headline: bool = False) -> list[Task]:
    """What is measured of some names, in order.

    `names`: versions, ``version/variant``, or records of `OTHERS`; everything if there are none.
    `runs`: whether a variant can run on this GPU. `headline`: time versions and cuBLAS on the
    headline sizes, and measure nothing else: what a second GPU is recorded for. What isolates a
    step's cause is left out, and only the last versions of their kind are measured thoroughly, at
    the first size. Raises ValueError if there is no such version or variant, or nothing of them has
    headline sizes.
    """
    names = names or [*OTHERS, *KERNELS]
    others = [name for name in names if name in OTHERS]
    versions = []
    for stem, name in map(parted, names):
        if stem not in OTHERS:
            kernel = find(stem)
            of = (kernel.variant(name),) if name else kernel.measured
            if headline and not name:
                of = kernel.variants
            if of := tuple(variant for variant in of if runs(kernel, variant)):
                versions.append((kernel, of, bool(name)))

    def benches(shapes: Sequence[Shape]) -> list[Task]:
        return [task for shape in shapes for version in versions
                for task in _bench(*version, shape, headline)]

    def cubes(sizes: Sequence[int]) -> list[Shape]:
        return [(size,) * 3 for size in sizes]

    rival = [Task(BENCH, schema.CUBLAS, (name,), shape)
             for shape in cubes(HEADLINE if headline else CUBES) for name in cublas.PROBLEMS
             if schema.CUBLAS in others]
    if headline:
        if found := benches(cubes(HEADLINE)) + rival:
            return found
        raise ValueError(f"the headline sizes are of versions and {schema.CUBLAS}: name one")
    rival += [Task(COUNTERS, schema.CUBLAS, task.variants) for task in rival
              if task.shape == (CUBES[0],) * 3]
    small = [size for size in reversed(CUBES) if size not in FIRST_CUBES]
    odd = dict.fromkeys(shape for kernel, of, _ in versions for variant in of
                        for shape in timed(kernel, variant) if shape not in cubes(CUBES))

    def of_each(kind: str) -> list[Task]:
        return [Task(kind, kernel.stem, _names(of)) for kernel, of, _ in versions]

    def whole(*kinds: str) -> list[Task]:
        return [Task(kind, kind) for kind in kinds if kind in others]

    return [*whole(schema.MACHINE, schema.SEARCH), *benches(cubes(FIRST_CUBES[:1])),
            *of_each(COUNTERS), *benches(cubes(FIRST_CUBES[1:])), *of_each(TIMELINE), *rival,
            *benches(cubes(small)), *whole(schema.SWEEPS, schema.CALIBRATION), *benches([*odd])]


def quick(runs: Runs) -> list[Task]:
    """What `--quick` measures: each version's first variant on cubes, no counters."""
    return [task for size in QUICK_CUBES for kernel in KERNELS.values()
            if runs(kernel, kernel.variants[0])
            for task in _bench(kernel, kernel.variants[:1], False, (size,) * 3, False)]


def last_of_its_kind(kernel: Kernel) -> bool:
    """Whether a version is the last of its group and architecture."""
    kinds = {(other.group, other.min_arch): other for other in KERNELS.values()}
    return kernel is kinds[kernel.group, kernel.min_arch]


def depth(kernel: Kernel, shape: Shape) -> str:
    """How much is measured of a version's first variant on a shape.

    Returns `THOROUGH`, `JOULES` (the energy of a product and no more), or an empty text.
    """
    size = shape[0]
    if size not in HEADLINE or shape != (size,) * 3:
        return ""
    if size == HEADLINE[0]:
        hopper = kernel.min_arch == "sm_90a"
        return THOROUGH if hopper or last_of_its_kind(kernel) else JOULES
    return THOROUGH if last_of_its_kind(kernel) else ""


def pair(kernel: Kernel, variant: Variant) -> Variant | None:
    """The variant that an added one is held against: the other side of its first pair.

    Where it has none of its version, the one before it in the catalogue's order, and of the first
    the one behind it; None where there is no other.
    """
    names = [v.name for v in kernel.measured]
    own = f"{kernel.stem}/{variant.name}"
    for declared in kernel.pairs:
        sides = {declared.first, declared.second}
        if own in sides:
            stem, name = parted((sides - {own}).pop())
            if stem == kernel.stem and name in names:
                return kernel.variant(name)
    place = names.index(variant.name)
    other = place - 1 if place else place + 1
    return kernel.measured[other] if other < len(names) else None


def _bench(kernel: Kernel, variants: Sequence[Variant], added: bool, shape: Shape, headline: bool
           ) -> Iterator[Task]:
    here = [variant for variant in variants if shape in timed(kernel, variant)]
    if not here:
        return
    deep = depth(kernel, shape) if kernel.variants[0] in here else ""
    if headline and not (last_of_its_kind(kernel) and shape[0] == HEADLINE[0]):
        deep = ""
    partner = pair(kernel, here[0]) if added else None
    yield Task(BENCH, kernel.stem, _names(here), shape, partner.name if partner else "", deep)


def _names(variants: Sequence[Variant]) -> tuple[str, ...]:
    return tuple(variant.name for variant in variants)
