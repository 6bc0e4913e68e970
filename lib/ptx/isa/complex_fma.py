"""Multiply-adds of float32 by products of complex numbers, which NumPy fuses where the CPU can.

(x + iz)(1 + iy) has xy + z as its imaginary part. NumPy computes that of complex64 as fma(x, y, z):
z times 1 is exact, and the other product is rounded together with the sum. So it takes no float64,
and no repair; and the sum stands where the next one has its addend, beside a real part that nobody
needs and into which the next factor is written.

No document promises that, so it is tried once, and without it (on WebAssembly) float64 is used.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

C64, F32 = np.dtype("c8"), np.dtype("f4")
SHAPES = ((1 << 12,), (64, 64), (4, 32, 32), (64, 8, 8))  # that are tried


def multiply_add(
    terms: np.ndarray, x: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """Put x * y + z into the imaginary part of `out`.

    `terms`: their imaginary part is z; the real one is room for x. `x`: broadcast to `terms`.
    `factors`, `out`: what `factors_of` makes of y, and room for the result.
    """
    terms.real[...] = x
    np.multiply(terms, factors, out=out)


def terms_of(z: np.ndarray) -> np.ndarray:
    """Make terms of addends; those of earlier sums are whole already."""
    found = np.empty(z.shape, C64)
    found.imag = z
    return found


def factors_of(y: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
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
