"""fma.rn.f32, which is most of what an FP32 GEMM does: one by one, or many at once.

Products of 24-bit numbers are exact in float64, so that the sum with c is rounded twice, to float64
and to float32. That goes wrong only where the first result lies between two float32 numbers; these
few are repaired (see `rounding`).

Unrolled code has dozens of them behind each other, none of which needs another's result. On a small
grid each would cost more Python than arithmetic, so such a run is one step on stacked registers.
The bits are the same: it is the same arithmetic, element by element.
"""

from __future__ import annotations

import numpy as np

from ..core.rounding import LOW_BITS, repaired
from ..core.step import Fusible

F32, F64, I64 = np.dtype("f4"), np.dtype("f8"), np.dtype("i8")
STACKED_MOST = 1 << 15  # elements of a stack; larger ones fall out of the cache and gain nothing


def _as_f32(value: np.ndarray) -> np.ndarray:
    return value if value.dtype is F32 else value.view(F32)


class FusedMultiplyAdd(Fusible):
    """The step of one instruction on registers of 32 bits.

    Operands are kept as float64 beside the register (its twin), for a value that was loaded once is
    multiplied many times.
    """

    kind = "fma.rn.f32"

    def __init__(self, to: int, reads: tuple[int, int, int]):
        self.to, self.reads, self.writes = to, reads, (to,)

    def __call__(self, f):
        r, twins = f.r, f.twins
        a, b, c = self.reads
        x, y, z = r[a], r[b], r[c]
        twin = twins[a]
        x = twin[1] if twin[0] is x else _widened(twins, a, x)
        twin = twins[b]
        y = twin[1] if twin[0] is y else _widened(twins, b, y)
        twin = twins[c]
        z = twin[1] if twin[0] is z else _widened(twins, c, z)
        r[self.to] = _sum(x, y, z).astype(F32)

    @staticmethod
    def fused(steps: list[FusedMultiplyAdd]):
        """Make one step of several, none of which reads what another one writes."""
        return _Stack(steps)


def _widened(twins, slot: int, value: np.ndarray) -> np.ndarray:
    twin = _as_f32(value).astype(F64)
    twins[slot] = (value, twin)
    return twin


def _sum(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return x * y + z of widened float32 values, ready to be rounded to float32."""
    total = np.multiply(x, y)  # exact: 24 + 24 bits fit 53
    total = np.add(total, z, out=total) if total.shape == z.shape else np.add(total, z)
    low = np.bitwise_and(total.view(I64), LOW_BITS)
    if np.count_nonzero(low) != total.size:
        these = low == 0
        x, y, z = (np.broadcast_to(each, total.shape)[these] for each in (x, y, z))
        total[these] = repaired(x * y, z, total[these])
    return total


def _rooms(f, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return room for float64 sums and for their bits, which the batch keeps for the next stack."""
    many = shape[0] * shape[1] * shape[2]
    if f.room is None or f.room.shape[1] < many:
        f.room = np.empty((2, many), F64)
    sums, bits = f.room[:, :many]
    return sums.reshape(shape), bits.view(I64).reshape(shape)


class _Stack:
    """The step of several at once.

    Sums that an earlier stack left, in whatever order, are taken from it whole.
    """

    def __init__(self, steps: list[FusedMultiplyAdd]):
        self.steps = steps
        self.to = [step.to for step in steps]
        self.factors, self.places = zip(*(self._distinct(i) for i in (0, 1)), strict=True)
        self.addends = [step.reads[2] for step in steps]
        self._plans: dict[int, list] = {}

    def _distinct(self, operand: int) -> tuple[list[int], np.ndarray]:
        """Return the slots of an operand, each once, and where each instruction finds its own."""
        slots = [step.reads[operand] for step in self.steps]
        each = list(dict.fromkeys(slots))
        return each, np.array([each.index(slot) for slot in slots], np.intp)

    def __call__(self, f):
        r = f.r
        shapes = [{r[slot].shape for slot in slots} for slots in (*self.factors, self.addends)]
        shape = np.broadcast_shapes(*set().union(*shapes))
        many = STACKED_MOST // (shape[0] * shape[1])
        # Each result must have this shape by itself, and enough of them must go together.
        if many < 2 or {shape} not in shapes:
            for step in self.steps:
                step(f)
            return
        x, y = (self._stacked(r, slots, shape, F64) for slots in self.factors)
        z = self._sums(f, shape)
        found, stacks = np.empty((len(self.to), *shape), F32), f.stacks
        room, bits = _rooms(f, (min(many, len(self.to)), *shape))
        for start, stop, products in self._planned(many):
            total = room[: stop - start]
            for first, last, i, j in products:
                np.multiply(x[i], y[j], out=total[first - start : last - start])
            np.add(total, z[start:stop], out=total)
            low = np.bitwise_and(total.view(I64), LOW_BITS, out=bits[: stop - start])
            if np.count_nonzero(low) != low.size:
                row, *rest = np.nonzero(low == 0)
                i, j = (at[row + start] for at in self.places)
                exact = x[(i, *rest)] * y[(j, *rest)]
                before = z[(row + start, *rest)].astype(F64)
                total[(row, *rest)] = repaired(exact, before, total[(row, *rest)])
            found[start:stop] = total
        for row, (slot, value) in enumerate(zip(self.to, found, strict=True)):
            r[slot] = value
            stacks[slot] = value, found, row

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
        """Runs of instructions, first and behind the last, with the places of their factors."""
        x, y = (at.tolist() for at in self.places)
        found, at = [], start
        while at < stop:
            first, i, j = at, x[at], y[at]
            at += 1
            if at < stop and x[at] == i:
                while at < stop and x[at] == i and y[at] == j + at - first:
                    at += 1
            else:
                while at < stop and y[at] == j and x[at] == i + at - first:
                    at += 1
                if at > first + 1:
                    found.append((first, at, slice(i, i + at - first), slice(j, j + 1)))
                    continue
            found.append((first, at, slice(i, i + 1), slice(j, j + at - first)))
        return found

    @staticmethod
    def _stacked(r, slots, shape, dtype) -> np.ndarray:
        values = [_as_f32(r[slot]) for slot in slots]
        if any(value.shape != shape for value in values):
            values = [np.broadcast_to(value, shape) for value in values]
        return np.concatenate(values, dtype=dtype).reshape(len(slots), *shape)

    def _sums(self, f, shape) -> np.ndarray:
        """Return the addends, from one stack if they are its rows."""
        r, stacks = f.r, f.stacks
        rows, first = [], stacks[self.addends[0]][1]
        for slot in self.addends:
            value, stack, row = stacks[slot]
            if stack is not first or value is not r[slot]:
                return self._stacked(r, self.addends, shape, F32)
            rows.append(row)
        if first.shape[1:] != shape:
            return self._stacked(r, self.addends, shape, F32)
        return first if rows == list(range(len(first))) else first.take(rows, 0)
