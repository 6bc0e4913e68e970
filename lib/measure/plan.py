"""What a pass measures, in which order, and about how long it takes.

A unit is measured whole or not at all, in one chunk of GPU time: all of a version's variants on one
shape, with the rival, so that whatever is compared was measured together. Units come in the order
in which pages need them. Where the time of a pass is over, what is last is left out: first the
shapes that are no cubes, then the small cubes; never a version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lib.kernels.catalogue import KERNELS, find
from lib.kernels.shapes import CUBES, timed
from lib.kernels.spec import Kernel, Variant, parted
from lib.measure import cublas
from lib.records import schema
from lib.records.launched import chosen, launch_hash

Shape = tuple[int, int, int]

# The open pass's journal, in a GPU's folder.
PASS = ".pass.jsonl"
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

# About how long things take on an H100, s: measured as a unit's time, and mended by what the pass
# itself has taken so far.
ROW_SECONDS = 0.6
THOROUGH_SECONDS = 25.0
ENERGY_SECONDS = 12.0
COUNTERS_SECONDS, LAUNCH_SECONDS = 8.0, 0.5
TIMELINE_SECONDS = 0.7
OTHER_SECONDS = {schema.MACHINE: 8.0, schema.SEARCH: 70.0, schema.SWEEPS: 30.0,
                 schema.CALIBRATION: 60.0}


@dataclass(frozen=True)
class Unit:
    """What is measured whole or not at all.

    Attributes
    ----------
    kind : str
        `BENCH`, `COUNTERS`, `TIMELINE`, or the name of a record that is no version's.
    stem : str
        Whose record it goes into.
    variants : tuple of str
    shape : (int, int, int), optional
        Of a benchmark: M, N and K.
    mark : str
        Fingerprint of the source that is measured.
    estimate : float
        About how long it takes, s.
    pair : str
        The variant that an added one is measured beside, if one was named by itself.
    depth : str
        How much is measured of the version's first variant, if it is among them: see `depth`.
    """

    kind: str
    stem: str
    variants: tuple[str, ...]
    shape: Shape | None
    mark: str
    estimate: float
    pair: str = ""
    depth: str = ""

    @property
    def compared(self) -> tuple[str, Shape | None] | None:
        """What is shown beside each other, and so should be of one chunk: a cube's benchmarks.

        None of what stands by itself.
        """
        cube = self.shape is not None and len(set(self.shape)) == 1
        return (self.kind, self.shape) if self.kind == BENCH and cube else None

    @property
    def name(self) -> str:
        """What the journal calls it, and people read: ``bench 01_naive 4096x4096x4096``."""
        if self.kind in OTHERS:
            return self.kind
        where = "x".join(map(str, self.shape)) if self.shape else ""
        return " ".join(filter(None, (self.kind, self.stem, where, ",".join(self.variants))))


def mark(kernel: Kernel, variants: Iterable[Variant], shape: Shape | None = None) -> str:
    """Fingerprint of the variants' sources, with their marks, and of what they are launched with.

    On one shape that is, of a variant that follows a rule, what the rule takes.
    """
    parts = [part for v in variants for part in (
        kernel.hash(v), kernel.hash(v, marks=True),
        chosen(kernel, v, shape)[1] if v.by_rule and shape else launch_hash(kernel, v))]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def last_of_its_kind(kernel: Kernel) -> bool:
    """Whether a version is the last of its group and architecture."""
    kinds = {(other.group, other.min_arch): other for other in KERNELS.values()}
    return kernel is kinds[kernel.group, kernel.min_arch]


def depth(kernel: Kernel, shape: Shape) -> str:
    """How much is measured of a version's first variant on a shape.

    Returns
    -------
    str
        `THOROUGH`, `JOULES` (the energy of a product and no more), or an empty text.
    """
    size = shape[0]
    if size not in HEADLINE or shape != (size,) * 3:
        return ""
    if size == HEADLINE[0]:
        hopper = kernel.min_arch == "sm_90a"
        return THOROUGH if hopper or last_of_its_kind(kernel) else JOULES
    return THOROUGH if last_of_its_kind(kernel) else ""


def units(
    names: Sequence[str], runs: Callable[[Kernel, Variant], bool], headline: bool = False
) -> list[Unit]:
    """What a pass of some names measures, in order.

    Parameters
    ----------
    names : sequence of str
        Versions, ``version/variant``, or records of `OTHERS`.
    runs : callable
        Whether a variant can run on this GPU.
    headline : bool
        Time versions and cuBLAS on the headline sizes, and measure nothing else: what a second
        GPU is recorded for. What isolates a step's cause is left out, and only the last versions
        of their kind are measured thoroughly, at the first size.

    Raises
    ------
    ValueError
        If there is no such version or variant, or nothing of them has headline sizes.
    """
    chosen = [(find(stem), name) for stem, name in map(parted, names)
              if stem not in OTHERS]
    others = [name for name in names if name in OTHERS]
    of = [Chosen(kernel, tuple(v for v in _variants(kernel, name) if runs(kernel, v)),
                 name is not None) for kernel, name in chosen]
    of = [one for one in of if one.variants]
    if headline:
        shapes = [(size,) * 3 for size in HEADLINE]
        of = [replace(one, variants=_written(one)) for one in of]
        timings = [unit for unit in _cublas(HEADLINE) if unit.kind == BENCH]
        found = _benches(of, shapes, headline=True) + (timings if schema.CUBLAS in others else [])
        if not found:
            raise ValueError(f"the headline sizes are of versions and {schema.CUBLAS}: name one")
        return found
    found = [_other(name) for name in (schema.MACHINE, schema.SEARCH) if name in others]
    small = [size for size in CUBES if size not in FIRST_CUBES]
    found += _benches(of, [(FIRST_CUBES[0],) * 3])
    found += [_counters(one.kernel, one.variants) for one in of]
    found += _benches(of, [(size,) * 3 for size in FIRST_CUBES[1:]])
    found += [_timelines(one.kernel, one.variants) for one in of]
    if schema.CUBLAS in others:
        found += _cublas()
    found += _benches(of, [(size,) * 3 for size in reversed(small)])
    found += [_other(name) for name in (schema.SWEEPS, schema.CALIBRATION) if name in others]
    cubes = {(size,) * 3 for size in CUBES}
    every = dict.fromkeys(
        shape for one in of for v in one.variants for shape in timed(one.kernel, v))
    return found + _benches(of, [shape for shape in every if shape not in cubes])


def quick(runs: Callable[[Kernel, Variant], bool]) -> list[Unit]:
    """What `--quick` measures: each version's first variant on cubes, no counters."""
    of = [Chosen(kernel, kernel.variants[:1], False) for kernel in KERNELS.values()
          if runs(kernel, kernel.variants[0])]
    return _benches(of, [(size,) * 3 for size in QUICK_CUBES])


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


def _written(one: Chosen) -> tuple[Variant, ...]:
    """A version's own variants, without those that isolate a cause, unless one was named."""
    return tuple(v for v in one.variants if one.added or v in one.kernel.variants)


def _variants(kernel: Kernel, name: str | None) -> tuple[Variant, ...]:
    return kernel.measured if name is None else (kernel.variant(name),)


@dataclass(frozen=True)
class Chosen:
    """Variants of a version; `added`, where one of them was named by itself."""

    kernel: Kernel
    variants: tuple[Variant, ...]
    added: bool


def _benches(
    of: Sequence[Chosen], shapes: Sequence[Shape], headline: bool = False
) -> list[Unit]:
    """Shape by shape, and in each all versions."""
    return [unit for shape in shapes for one in of for unit in _bench(one, shape, headline)]


def _bench(one: Chosen, shape: Shape, headline: bool) -> Iterator[Unit]:
    kernel, variants = one.kernel, one.variants
    here = tuple(v for v in variants if shape in timed(kernel, v))
    if not here:
        return
    first = kernel.variants[0] in here
    rows = len(here) + (len(kernel.ptx_archs) if first else 0)
    seconds = ROW_SECONDS * (rows + 2)  # the rival's candidates take as long as two
    deep = depth(kernel, shape) if first else ""
    if headline and not (last_of_its_kind(kernel) and shape[0] == HEADLINE[0]):
        deep = ""
    seconds += {THOROUGH: THOROUGH_SECONDS, JOULES: ENERGY_SECONDS, "": 0.0}[deep]
    partner = pair(kernel, here[0]) if one.added else None
    yield Unit(BENCH, kernel.stem, _names(here), shape, mark(kernel, here, shape), seconds,
               partner.name if partner else "", deep)


def _counters(kernel: Kernel, variants: tuple[Variant, ...]) -> Unit:
    seconds = COUNTERS_SECONDS * (1 + len(kernel.ptx_archs)) + LAUNCH_SECONDS * 4 * len(variants)
    return Unit(COUNTERS, kernel.stem, _names(variants), None, mark(kernel, variants), seconds)


def _timelines(kernel: Kernel, variants: tuple[Variant, ...]) -> Unit:
    return Unit(TIMELINE, kernel.stem, _names(variants), None, mark(kernel, variants),
                TIMELINE_SECONDS * len(variants))


def _cublas(sizes: Sequence[int] = CUBES) -> list[Unit]:
    found = [
        Unit(BENCH, schema.CUBLAS, (name,), (size,) * 3, "", 2 * ROW_SECONDS)
        for size in sizes for name in cublas.PROBLEMS
    ]
    return found + [Unit(COUNTERS, schema.CUBLAS, (name,), None, "", COUNTERS_SECONDS + 6.0)
                    for name in cublas.PROBLEMS]


def _other(name: str) -> Unit:
    return Unit(name, name, (), None, "", OTHER_SECONDS[name])


def _names(variants: Iterable[Variant]) -> tuple[str, ...]:
    return tuple(v.name for v in variants)
