"""The calibration set's access patterns: which lanes of a warp take part, and where each begins.

A pattern is one access of one warp. ``cuda/calibration.cu`` makes it, on a GPU under a profiler and
in the emulator; what the two count must be the same number. The first groups are what a kernel
meets: unit stride, strides, broadcasts, permutations, idle lanes. The last group for each width
asks the questions that NVIDIA's documents leave open: when the halves of a warp share a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from lib.ptx.core.machine import WARP
from lib.records import schema

LANES = np.arange(WARP)
EVERYONE = np.ones(WARP, bool)
NOWHERE = np.zeros(WARP, int)

# What cuda/calibration.cu's TILE is, and the bytes of global memory a pattern may touch.
TILE_BYTES = 17408
MEMORY_BYTES = 1 << 15


@dataclass(frozen=True)
class Pattern:
    """One access of one warp."""

    access: str  # the kernel that makes it: a name expression of ``cuda/calibration.cu``
    label: str  # what sets the pattern apart from the others of this access
    # ndarray of int, shape (32,), bytes from the start of the tile in shared memory, or of the
    # array in global memory.
    offsets: np.ndarray
    # ndarray of bool, shape (32,), lanes whose predicate holds.
    active: np.ndarray = field(default_factory=lambda: EVERYONE)
    # ndarray of int, shape (32,), ``copy_async`` only: bytes from the start of the global array.
    sources: np.ndarray = field(default_factory=lambda: NOWHERE)
    stride: int = 0  # ``load_fragment`` and ``store_fragment`` only: elements from row to row
    # ndarray of bool, shape (32,), ``copy_or_zero`` only: lanes that copy; the others write zeros.
    reading: np.ndarray = field(default_factory=lambda: EVERYONE)

    def __post_init__(self) -> None:
        for name in ("offsets", "active", "sources", "reading"):
            lanes = getattr(self, name).copy()
            lanes.flags.writeable = False
            object.__setattr__(self, name, lanes)

    @property
    def name(self) -> str:
        """Unique in the set."""
        return f"{self.access}: {self.label}"

    @property
    def min_arch(self) -> str:
        """The oldest architecture that has the instruction."""
        if self.access.startswith("copy"):
            return "sm_80"
        return "sm_90a" if self.access.startswith("store_matrix") else "sm_75"

    def recorded(self, counts: list[float]) -> schema.Pattern:
        """What a record keeps of it, so that the record explains itself; without what is usual."""
        def some(lanes: np.ndarray) -> str | None:
            return None if lanes.all() else "".join("01"[int(on)] for on in lanes)

        return schema.Pattern(
            offsets=self.offsets.tolist(), active=some(self.active), reading=some(self.reading),
            sources=self.sources.tolist() if self.sources.any() else None,
            stride=self.stride or None, counts=tuple(counts),
        )


def patterns_for(arch: str) -> list[Pattern]:
    """The patterns that an architecture has instructions for, in the order of recording."""
    return [pattern for pattern in patterns() if arch >= pattern.min_arch]


@cache
def patterns() -> tuple[Pattern, ...]:
    """The whole set."""
    made = tuple(
        pattern
        for group in (_baselines, _shared, _bytes, _halves, _quarters, _matrices, _global, _copies,
                      _zeros, _fragments)
        for pattern in group()
    )
    names = [pattern.name for pattern in made]
    if len(set(names)) != len(names):
        raise ValueError("two patterns of the calibration set have one name")
    return made


def _random(seed: int, high: int, size: int = WARP) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, size)


PERMUTED = np.random.default_rng(0).permutation(WARP)
EVEN = LANES % 2 == 0
FIRST_HALF = LANES < 16
SCATTERED = _random(1, 2).astype(bool)
NOBODY = ~EVERYONE


def _baselines() -> Iterator[Pattern]:
    yield Pattern("nothing<false>", "baseline", NOWHERE)
    yield Pattern("nothing<true>", "baseline", NOWHERE)


# Of the shapes, those that stores are asked for: the rules are expected to be the loads'.
OF_STORES = ("unit stride", "broadcast", "pairs share", "the halves alike", "stride 2", "stride 8",
             "random", "random, half the lanes", "no lane")


def _shapes(width: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what is asked of every width: a label, offsets in units of the width, active lanes."""
    yield "unit stride", LANES, EVERYONE
    yield "unit stride, one element on", LANES + 1, EVERYONE
    yield "permuted", PERMUTED, EVERYONE
    yield "broadcast", NOWHERE, EVERYONE
    yield "pairs share", LANES // 2, EVERYONE
    yield "the halves alike", LANES % 16, EVERYONE
    for stride in {4: (2, 3, 8, 32, 33), 8: (2, 3, 8), 16: (2, 8)}[width]:
        yield f"stride {stride}", LANES * stride, EVERYONE
    yield "random", _random(2, 512), EVERYONE
    yield "random, half the lanes", _random(3, 512), SCATTERED
    yield "even lanes", LANES, EVEN
    yield "first half", LANES, FIRST_HALF
    yield "one lane", LANES, LANES == 5
    yield "no lane", LANES, NOBODY


def _shared() -> Iterator[Pattern]:
    for kind in ("load", "store"):
        for width in (4, 8, 16):
            for label, units, active in _shapes(width):
                if kind == "load" or label in OF_STORES:
                    yield Pattern(f"{kind}<SHARED, {width}>", label, units * width, active)


def _bytes() -> Iterator[Pattern]:
    for kind in ("load", "store"):
        for width in (1, 2):
            access = f"{kind}<SHARED, {width}>"
            yield Pattern(access, "unit stride", LANES * width)
            yield Pattern(access, "a word apart", LANES * 4)
            yield Pattern(access, "a row of banks apart", LANES % 8 * 128 + LANES // 8 * width)


def _row(*words: int) -> np.ndarray:
    return np.repeat(np.array(words), WARP // len(words))


def _halves() -> Iterator[Pattern]:
    """64 bits: does the second half of a warp share the first one's passes?"""
    pair, two = LANES // 2, LANES // 4 * 2 + LANES % 2
    in_half = pair % 8
    asked = {
        # Addresses in units of 8 bytes; 16 of them are a row of banks.
        "a half each, no conflict": _row(0, 1),
        "a half each, conflict": _row(0, 16),
        "a half each, banks overlap by half": LANES % 2 * 4 + _row(0, 16),
        "a quarter each, no conflict": _row(0, 1, 2, 3),
        "a quarter each, conflict in the halves": _row(0, 16, 1, 17),
        "a quarter each, conflict across the halves": _row(0, 1, 16, 17),
        "a quarter each, all in conflict": _row(0, 16, 32, 48),
        "pairs, conflict across the halves": in_half + _row(0, 16),
        "pairs, one conflict across the halves": pair + 8 * (LANES >= 30),
        "pairs, conflict in the first half": np.where(FIRST_HALF, in_half % 4 + pair // 4 * 16,
                                                      8 + in_half),
        "pairs, stride 2": pair * 2,
        "pairs, stride 4": pair * 4,
        "pairs, stride 16": pair * 16,
        "pairs by two": two,
        "pairs by two, stride 2": two * 2,
        "pairs by two, conflict across the halves": two % 8 + _row(0, 16),
        "pairs, then pairs by two": np.where(FIRST_HALF, pair, two),
        "pairs by four": LANES // 8 * 4 + LANES % 4,
        "pairs reversed": 15 - pair,
        "random pairs": _random(4, 256, 16)[pair],
        "random pairs, other": _random(5, 64, 16)[pair],
        "random pairs by two": _random(6, 256, 16)[two],
        "two columns of eight": LANES % 8 * 4 + LANES // 8 % 2,
        "columns 32 bytes apart, alike in the halves": LANES % 16 * 4,
        "columns 32 bytes apart, pairs": pair % 8 * 4 + _row(0, 1),
    }
    for kind in ("load", "store"):
        for label, units in asked.items():
            if kind == "load" or label in (
                "a half each, no conflict", "a half each, conflict", "pairs, stride 2",
                "pairs, conflict across the halves", "pairs by two", "random pairs",
                "pairs, then pairs by two", "columns 32 bytes apart, alike in the halves",
            ):
                yield Pattern(f"{kind}<SHARED, 8>", label, units * 8)
    for label, units, active in (
        ("even lanes, stride 1 among them", LANES // 2, EVEN),
        ("even lanes, stride 16 across the halves", in_half + _row(0, 16), EVEN),
        ("a lane of each half, conflict", _row(0, 16), LANES % 16 == 0),
        ("a lane of each half, no conflict", _row(0, 1), LANES % 16 == 0),
        ("pairs, some lanes idle", pair, SCATTERED),
    ):
        yield Pattern("load<SHARED, 8>", label, units * 8, active)


def _quarters() -> Iterator[Pattern]:
    """128 bits: which quarters of a warp share a pass?"""
    pair, two = LANES // 2, LANES // 4 * 2 + LANES % 2
    asked = {
        # Addresses in units of 16 bytes; 8 of them are a row of banks.
        "a half each, no conflict": _row(0, 1),
        "a half each, conflict": _row(0, 8),
        "a quarter each, no conflict": _row(0, 1, 2, 3),
        "a quarter each, conflict in the halves": _row(0, 8, 1, 9),
        "a quarter each, conflict across the halves": _row(0, 1, 8, 9),
        "the quarters alike": LANES % 8,
        "pairs, conflict in the halves": pair % 4 + _row(0, 8, 16, 24),
        "pairs, one conflict in the first half": pair + 4 * (pair == 7),
        "pairs, conflict in the first quarter": np.where(LANES < 8, pair * 8, pair),
        "pairs, stride 2": pair * 2,
        "pairs, stride 8": pair * 8,
        "pairs by two": two,
        "pairs by two, conflict in the halves": two % 4 + _row(0, 8, 16, 24),
        "pairs, then pairs by two": np.where(FIRST_HALF, pair, two),
        "pairs by four": LANES // 8 * 4 + LANES % 4,
        "random pairs": _random(7, 256, 16)[pair],
        "random pairs, other": _random(8, 32, 16)[pair],
        "random pairs by two": _random(9, 256, 16)[two],
        "rows of four, 8 alike": LANES // 8 * 2 + LANES % 2,
        "columns 32 bytes apart, alike in the halves": LANES % 16 * 2,
    }
    for kind in ("load", "store"):
        for label, units in asked.items():
            if kind == "load" or label in (
                "a half each, no conflict", "pairs, conflict in the halves", "pairs by two",
                "pairs, stride 2", "random pairs", "pairs, then pairs by two",
            ):
                yield Pattern(f"{kind}<SHARED, 16>", label, units * 16)
    for label, units, active in (
        ("even lanes, stride 1 among them", pair, EVEN),
        ("a lane of each quarter, no conflict", _row(0, 1, 2, 3), LANES % 8 == 0),
        ("a lane of each quarter, conflict", _row(0, 8, 16, 24), LANES % 8 == 0),
        ("first quarter", LANES, LANES < 8),
        ("first and third quarter", LANES, LANES // 8 % 2 == 0),
        ("pairs, some lanes idle", pair, SCATTERED),
    ):
        yield Pattern("load<SHARED, 16>", label, units * 16, active)


def _matrices() -> Iterator[Pattern]:
    row, matrix = LANES % 8, LANES // 8
    rows = {
        "rows one after another": LANES * 16,
        "rows 128 bytes apart": row * 128 + matrix * 16,
        "rows 144 bytes apart": row * 144 + matrix * 16,
        "rows 64 bytes apart": row * 64 + matrix * 16,
        "rows 128 bytes apart, swizzled": row * 128 + (matrix ^ row) * 16,
        "one row": NOWHERE,
        "random rows": _random(10, 1024) * 16,
    }
    for kind in ("load", "store"):
        for number in (4, 2, 1):
            for label, offsets in rows.items():
                if number == 4 or label in ("rows one after another", "rows 128 bytes apart"):
                    yield Pattern(f"{kind}_matrix<{number}, false>", label, offsets)
        for number in (4, 2, 1):
            yield Pattern(f"{kind}_matrix<{number}, true>", "rows 64 bytes apart",
                          rows["rows 64 bytes apart"])


def _global() -> Iterator[Pattern]:
    for kind in ("load", "store"):
        for width in (4, 8, 16):
            units = {
                "unit stride": (LANES, EVERYONE),
                "unit stride, one element on": (LANES + 1, EVERYONE),
                "reversed": (LANES[::-1], EVERYONE),
                "permuted": (PERMUTED, EVERYONE),
                "broadcast": (NOWHERE, EVERYONE),
                "stride 2": (LANES * 2, EVERYONE),
                "stride 33": (LANES * 33, EVERYONE),
                "two rows of a matrix": (LANES % 16 + LANES // 16 * 100, EVERYONE),
                "random": (_random(11, 1024), EVERYONE),
                "half the lanes": (LANES, SCATTERED),
                "no lane": (LANES, NOBODY),
            }
            for label, (offsets, active) in units.items():
                if kind == "store" and label in ("reversed", "broadcast", "stride 33"):
                    continue
                yield Pattern(f"{kind}<GLOBAL, {width}>", label, offsets * width, active)
        for width in (1, 2):
            yield Pattern(f"{kind}<GLOBAL, {width}>", "across two lines", LANES * width + 120)


def _copies() -> Iterator[Pattern]:
    for width, past in ((4, False), (8, False), (16, False), (16, True)):
        access = f"copy_async<{width}, {str(past).lower()}>"
        unit, row = LANES * width, LANES // 8
        shapes = {
            "unit stride": (unit, unit),
            "shared stride 2": (unit * 2, unit),
            "shared rows of eight, 272 bytes apart": (unit % (8 * width) + row * 272, unit),
            "shared rows of eight, 256 bytes apart": (unit % (8 * width) + row * 256, unit),
            "one source": (unit, NOWHERE),
            "source stride 2": (unit, unit * 2),
            "source one element on": (unit, unit + width),
            "source random": (unit, _random(12, 1024) * width),
            "pairs share a destination": (unit // (2 * width) * width, unit),
        }
        for label, (offsets, sources) in shapes.items():
            if past is False and width != 4 and label != "unit stride" and "source" in label:
                continue
            yield Pattern(access, label, offsets, EVERYONE, sources)
        yield Pattern(access, "half the lanes", unit, SCATTERED, unit)
        yield Pattern(access, "no lane", unit, NOBODY, unit)
    # How GEMMs copy: rows of a matrix to rows of a tile, their 16-byte chunks swizzled.
    chunk, row = LANES % 8, LANES // 8
    of_four = LANES % 4, LANES // 4
    for past in (False, True):
        access = f"copy_async<16, {str(past).lower()}>"
        for label, offsets, sources in (
            ("rows of eight, swizzled", row * 128 + (chunk ^ row) * 16, row * 1024 + chunk * 16),
            ("rows of eight, last rows of a swizzle", row * 128 + (chunk ^ (row + 4)) * 16,
             row * 1024 + chunk * 16),
            ("rows of four, swizzled", of_four[1] * 64 + (of_four[0] ^ of_four[1] // 2 % 4) * 16,
             of_four[1] * 1024 + of_four[0] * 16),
            ("rows of four, rotated", of_four[1] * 64 + (of_four[0] + of_four[1]) % 4 * 16,
             of_four[1] * 1024 + of_four[0] * 16),
            ("rows of eight, rotated", row * 128 + (chunk + row) % 8 * 16,
             row * 1024 + chunk * 16),
            ("halves of sectors swapped", (LANES ^ 1) * 16, LANES * 16),
            ("sectors swapped", (LANES ^ 2) * 16, LANES * 16),
            ("reversed", LANES[::-1] * 16, LANES * 16),
            ("one lane", LANES * 16, LANES * 16),
        ):
            on = LANES == 5 if label == "one lane" else EVERYONE
            yield Pattern(access, label, offsets, on, sources)


def _zeros() -> Iterator[Pattern]:
    for width, past in ((4, False), (16, False), (16, True)):
        access = f"copy_or_zero<{width}, {str(past).lower()}>"
        unit = LANES * width
        for label, offsets, reading in (
            ("all copy", unit, EVERYONE),
            ("half the lanes copy", unit, SCATTERED),
            ("half the lanes copy, shared stride 2", unit * 2, SCATTERED),
            ("first half copies", unit, FIRST_HALF),
            ("even lanes copy", unit, EVEN),
            ("no lane copies", unit, NOBODY),
        ):
            yield Pattern(access, label, offsets, EVERYONE, unit, 0, reading)


def _fragments() -> Iterator[Pattern]:
    for fragment in ("A_ROW", "A_COL", "B_ROW", "B_COL"):
        for stride in (16, 24):
            yield _fragment("load", "SHARED", fragment, stride)
        yield _fragment("load", "GLOBAL", fragment, 16)
        yield _fragment("load", "GLOBAL", fragment, 104)
    for kind in ("load", "store"):
        for fragment in ("C_ROW", "C_COL"):
            for space, stride in (("SHARED", 16), ("SHARED", 20), ("GLOBAL", 16), ("GLOBAL", 100)):
                yield _fragment(kind, space, fragment, stride)


def _fragment(kind: str, space: str, fragment: str, stride: int) -> Pattern:
    access = f"{kind}_fragment<{space}, {fragment}>"
    return Pattern(access, f"rows {stride} elements apart", NOWHERE, stride=stride)
