"""fma.rn.f32, which is most of what an FP32 GEMM does: one by one, or many at once.

Products of 24-bit numbers are exact in float64, so that the sum with c is rounded twice, to float64
and to float32. That goes wrong only where the first result lies between two float32 numbers; these
few are repaired (see `rounding`).

Unrolled code has dozens of them behind each other, none of which needs another's result. On a small
grid each would cost more Python than arithmetic, so such a run is one step on stacked registers.
The bits are the same: it is the same arithmetic, element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from operator import is_, itemgetter

import numpy as np
from numpy import ndarray

from ..core.access_pattern import make_room
from ..core.batch import Batch, Fusible, Registers
from ..core.masks import over_lanes
from ..core.rounding import LOW_BITS, repaired

# Multiply-adds of float32 by products of complex numbers, which NumPy fuses where the CPU can.
#
# (x + iz)(1 + iy) has xy + z as its imaginary part. NumPy computes that of complex64 as fma(x, y,
# z): z times 1 is exact, and the other product is rounded together with the sum. So it takes no
# float64, and no repair; and the sum stands where the next one has its addend, beside a real part
# that nobody needs and into which the next factor is written.
#
# No document promises that, so it is tried once, and without it (on WebAssembly) float64 is used.


C64, F32, F64, I64 = map(np.dtype, ("c8", "f4", "f8", "i8"))
SHAPES = ((1 << 12,), (64, 64), (4, 32, 32), (64, 8, 8))  # that are tried


def multiply_add(
    terms: ndarray, x: ndarray, factors: ndarray, out: ndarray
) -> None:
    """Put x * y + z into the imaginary part of `out`.

    `terms`: their imaginary part is z; the real one is room for x. `x`: broadcast to `terms`.
    `factors`, `out`: what `factors_of` makes of y, and room for the result.
    """
    terms.real[...] = x
    np.multiply(terms, factors, out=out)


def terms_of(z: ndarray) -> ndarray:
    """Make terms of addends; those of earlier sums are whole already."""
    found = np.empty(z.shape, C64)
    found.imag = z
    return found


def factors_of(y: ndarray, room: ndarray | None = None) -> ndarray:
    """Make the second factors of sums, in a room of ones if there is one."""
    found = np.ones(y.shape, C64) if room is None else room
    found.imag = y
    return found


@lru_cache(maxsize=1)
def fuses() -> bool:
    """Whether NumPy rounds such sums once on this machine, in shapes and places as they come."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, (3, 1 << 12), np.uint32)
    # ± 0.5 to 2: sums that cancel and that round, and all of them are exact in float64.
    x, y, z = (0x3F000000 | bits & 0x80FFFFFF).view(F32)
    once, twice = (x.astype(np.float64) * y + z).astype(F32), x * y + z
    if np.array_equal(once, twice):
        return False
    with np.errstate(all="ignore"):
        for shape in SHAPES:
            for first in (0, 1, 3):
                a, b, c, wanted = (each.reshape(shape)[..., first:] for each in (x, y, z, once))
                out = np.empty(shape, C64)[..., first:]
                multiply_add(terms_of(c), a, factors_of(b), out)
                if not np.array_equal(out.imag, wanted):
                    return False
    return True


CHUNKED_LEAST, CHUNK = 1 << 11, 1 << 14  # elements: what is done in pieces, and of what size
STACKS = 8  # that are remembered
# Sums that a stack forms at a time, and of how many lanes: more fall out of the cache.
MAX_STACKED, STACKED_LANES = 1 << 16, 1 << 13


def _as_f32(value: ndarray) -> ndarray:
    return value if value.dtype is F32 else value.view(F32)


class FusedMultiplyAdd(Fusible):
    """The step of one instruction on registers of 32 bits."""

    kind = "fma.rn.f32"

    def __init__(self, to: int, reads: tuple[int, int, int]) -> None:
        self.to, self.reads, self.writes = to, reads, (to,)

    def __call__(self, f: Batch) -> None:
        r = f.r
        a, b, c = self.reads
        x, y, z = _as_f32(r[a]), _as_f32(r[b]), _as_f32(r[c])
        if x.size >= CHUNKED_LEAST and x.shape == y.shape == z.shape:
            r[self.to] = _as_complex(f, x, y, z) if fuses() else _in_chunks(f, x, y, z)
        else:
            r[self.to] = _sum(x.astype(F64), y.astype(F64), z.astype(F64)).astype(F32)

    @staticmethod
    def fused(steps: list[FusedMultiplyAdd]) -> _Stack:
        """Make one step of several, none of which reads what another one writes."""
        return _Stack(steps)


def _sum(x: ndarray, y: ndarray, z: ndarray) -> ndarray:
    """Return x * y + z of widened float32 values, ready to be rounded to float32."""
    total = np.multiply(x, y)  # exact: 24 + 24 bits fit 53
    total = np.add(total, z, out=total) if total.shape == z.shape else np.add(total, z)
    low = np.bitwise_and(total.view(I64), LOW_BITS)
    if np.count_nonzero(low) != total.size:
        these = low == 0
        x, y, z = (over_lanes(each, total.shape)[these] for each in (x, y, z))
        total[these] = repaired(x * y, z, total[these])
    return total


def _in_chunks(f: Batch, x: ndarray, y: ndarray, z: ndarray) -> ndarray:
    """Return x * y + z of large float32 arrays of one shape.

    What is wider than they are stays in two pieces of memory that fit the cache: arrays of float64
    of all lanes would be written to memory that is cold, and read from there.
    """
    blocks, threads = x.shape
    rows = max(1, CHUNK // threads)
    found = np.empty(x.shape, F32)
    rooms = _rooms(f, 2, (min(rows, blocks), threads))
    for start in range(0, blocks, rows):
        part = slice(start, min(start + rows, blocks))
        total, other = (room[: part.stop - start] for room in rooms)
        total[...] = x[part]
        other[...] = y[part]
        np.multiply(total, other, out=total)
        other[...] = z[part]
        np.add(total, other, out=total)
        found[part] = total
        low = total.view(I64)  # the sums are not needed any more
        np.bitwise_and(low, LOW_BITS, out=low)
        if not low.min():
            these = low == 0
            a, b, c = (each[part][these].astype(F64) for each in (x, y, z))
            found[part][these] = _rounded_once(a * b, c)
    return found


def _as_complex(f: Batch, x: ndarray, y: ndarray, z: ndarray) -> ndarray:
    """Return the same, as the imaginary part of an array; z may be what was returned before."""
    blocks, threads = x.shape
    terms = z.base
    if terms is None or terms.dtype is not C64 or terms.shape != z.shape:
        terms = terms_of(z)
    found = np.empty(z.shape, C64)
    rows = max(1, CHUNK // threads)
    many = min(rows, blocks) * threads
    if f.room is None or len(f.room) < many:
        f.room = np.ones(many, C64)
    room = f.room[:many].reshape(-1, threads)
    for start in range(0, blocks, rows):
        some = slice(start, min(start + rows, blocks))
        factors = factors_of(y[some], room[: some.stop - start])
        multiply_add(terms[some], x[some], factors, found[some])
    return found.imag


def _rounded_once(exact: ndarray, addend: ndarray) -> ndarray:
    """Return sums that may lie between two float32 numbers, ready to be rounded to float32."""
    addend = addend.astype(F64)
    return repaired(exact, addend, exact + addend)


def _rooms(f: Batch, number: int, shape: tuple[int, ...]) -> ndarray:
    """Return room for float64 arrays of a shape, which the batch keeps for the next step."""
    many = number * prod(shape)
    if f.room is None or len(f.room) < many:
        f.room = np.empty(many, F64)
    return f.room[:many].reshape(number, *shape)


class _Stack:
    """The step of several at once.

    Sums that an earlier stack left, in whatever order, are taken from it whole.
    """

    def __init__(self, steps: list[FusedMultiplyAdd]) -> None:
        self.steps = steps
        self.to = [step.to for step in steps]
        factors, self.places = zip(*(self._distinct(i) for i in (0, 1)), strict=True)
        self.factors = [_getter(slots) for slots in factors]
        self.addends = _getter([step.reads[2] for step in steps])
        self._plans: dict[int, list] = {}

    def _distinct(self, operand: int) -> tuple[list[int], ndarray]:
        """Return the slots of an operand, each once, and where each instruction finds its own."""
        slots = [step.reads[operand] for step in self.steps]
        each = list(dict.fromkeys(slots))
        return each, np.array([each.index(slot) for slot in slots], np.intp)

    def __call__(self, f: Batch) -> None:
        r = f.r
        operands = [get(r) for get in (*self.factors, self.addends)]
        before = self._sums(f, operands[2])
        shapes = [{value.shape for value in values} for values in operands[:2]]
        shapes.append({value.shape for value in operands[2]} if before is None else
                      {before.shape[1:]})
        shape = np.broadcast_shapes(*set().union(*shapes))
        rows = max(1, STACKED_LANES // shape[1])
        many = MAX_STACKED // (min(rows, shape[0]) * shape[1])
        # Each result must have this shape by itself, and enough of them must go together.
        if many < 2 or {shape} not in shapes:
            for step in self.steps:
                step(f)
            return
        fused = fuses()
        x, y = (_stacked(values, shape, F32 if fused else F64) for values in operands[:2])
        z = before
        if z is None or z.shape[1:] != shape:
            z = _stacked(operands[2], shape, F32)
            z = terms_of(z) if fused else z
        y = factors_of(y) if fused else y
        found = np.empty((len(self.to), *shape), C64 if fused else F32)
        for start in range(0, shape[0], rows):
            blocks = slice(start, start + rows)
            self._form(f, x[:, blocks], y[:, blocks], z[:, blocks], found[:, blocks], many)
        values = list(found.imag if fused else found)
        for slot, value in zip(self.to, values, strict=True):
            r[slot] = value
        make_room(f.stacks, STACKS)
        f.stacks[id(values[0])] = values, found

    def _form(
        self, f: Batch, x: ndarray, y: ndarray, z: ndarray, found: ndarray,
        many: int,
    ) -> None:
        """Fill in the results for some blocks, (instructions, blocks, threads)."""
        shape = found.shape[1:]
        if found.dtype is C64:
            for _, _, products in self._planned(many):
                for first, last, i, j in products:
                    a, b = x[i], y[j]
                    whole = *map(max, a.shape[:2], b.shape[:2]), *shape
                    terms, out = (each[first:last].reshape(whole) for each in (z, found))
                    multiply_add(terms, a, b, out)
            return
        (room,) = _rooms(f, 1, (min(many, len(found)), *shape))
        for start, stop, products in self._planned(many):
            total = room[: stop - start]
            for first, last, i, j in products:
                a, b = x[i], y[j]
                part = total[first - start : last - start]
                np.multiply(a, b, out=part.reshape(*map(max, a.shape[:2], b.shape[:2]), *shape))
            np.add(total, z[start:stop], out=total)
            found[start:stop] = total
            low = total.view(I64)  # the sums are not needed any more
            np.bitwise_and(low, LOW_BITS, out=low)
            if not low.min():
                row, *rest = np.nonzero(low == 0)
                i, j = (at[row + start] for at in self.places)
                exact, addend = x[(i, *rest)] * y[(j, *rest)], z[(row + start, *rest)]
                found[(row + start, *rest)] = _rounded_once(exact, addend)

    def _planned(self, many: int) -> list[tuple[int, int, list[tuple]]]:
        """Part the instructions into so many at a time, and those into products with one factor.

        The unrolled loops of a tile multiply one element of A by neighbours of B, or the other way
        round: then one call of NumPy has all their products.
        """
        if many not in self._plans:
            plan = []
            for start in range(0, len(self.to), many):
                stop = min(start + many, len(self.to))
                plan.append((start, stop, self._products(start, stop)))
            self._plans[many] = plan
        return self._plans[many]

    def _products(self, start: int, stop: int) -> list[tuple]:
        """Runs of instructions, first and behind the last, with the places of their factors.

        Places are an index of two axes, of which one is that of the other factor: so all products
        of some elements of A and some of B are one call as well.
        """
        x, y = (at.tolist() for at in self.places)
        runs, at = [], start
        while at < stop:
            first, i, j = at, x[at], y[at]
            at += 1
            if at < stop and x[at] == i:
                while at < stop and x[at] == i and y[at] == j + at - first:
                    at += 1
                runs.append((first, at, i, j, True))
            else:
                while at < stop and y[at] == j and x[at] == i + at - first:
                    at += 1
                runs.append((first, at, j, i, False))
        found = []
        while runs:
            first, last, one, many, left = runs[0]
            length, rows = last - first, 1
            # The next runs are of the next elements with the same others.
            while rows < len(runs) and runs[rows] == (
                first + rows * length, last + rows * length, one + rows, many, left
            ):
                rows += 1
            places = (slice(one, one + rows), None), (None, slice(many, many + length))
            found.append((first, first + rows * length, *(places if left else places[::-1])))
            del runs[:rows]
        return found

    @staticmethod
    def _sums(f: Batch, values: tuple[ndarray, ...]) -> ndarray | None:
        """Return the addends as one array, if they are the results of an earlier stack."""
        rows, stack = f.stacks.pop(id(values[0]), ((), None))
        if len(rows) == len(values) and all(map(is_, rows, values)):
            return stack
        return None


def _getter(slots: list[int]) -> Callable[[Registers], tuple[ndarray, ...]]:
    """Make the function that reads slots from the list of registers, always as a tuple."""
    return itemgetter(*slots) if len(slots) > 1 else lambda r: (r[slots[0]],)


def _stacked(values: tuple[ndarray, ...], shape: tuple[int, ...], dtype: np.dtype) -> ndarray:
    """Put registers of 32 bits, all broadcast to a shape, into one array."""
    if {(value.shape, value.dtype) for value in values} != {(shape, F32)}:
        values = tuple(np.broadcast_to(_as_f32(value), shape) for value in values)
    return np.concatenate(values, dtype=dtype).reshape(len(values), *shape)
