"""Cases of ``sf-tensor/tcgen05`` with the words that its authors' B200 gave for them.

They are those of ``tcgen05_model/validation.py`` (MIT): a seed of Python's random numbers, what is
drawn, and the results. A case is a row of A, a column of B and an element of C, as words of 32
bits; of bfloat16 the upper half is the number.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Published:
    """Two cases of one type.

    Attributes
    ----------
    k : int
        Elements along K.
    seed : int
    below : int
        Codes are drawn below this; 0: finite floats of 32 bits, 1 << 16: any half.
    words : tuple of int
        What the B200 gave.
    scales : int
        Scales of A, and of B.
    scales_below : int
        Codes of theirs are drawn below this.
    """

    k: int
    seed: int
    below: int
    words: tuple[int, int]
    scales: int = 0
    scales_below: int = 0


PUBLISHED = {
    "tf32": Published(8, 104, 0, (0xFF800000, 0xFC347E7C)),
    "bf16": Published(16, 104, 0, (0x7F800000, 0x7F800000)),
    "f16": Published(16, 103, 1 << 16, (0x7FFFFFFF, 0x49776BBA)),
    "e4m3": Published(32, 104, 0x7F, (0xEC63D12A, 0x452AF963)),
    "e5m2": Published(32, 300, 0x7C, (0x4D92B09A, 0x4C9C1102)),
    "e2m3": Published(32, 301, 0x40, (0xC29DD800, 0x449D14C1)),
    "e3m2": Published(32, 302, 0x40, (0x52C9EC63, 0xC33B7700)),
    "e2m1": Published(32, 303, 0x10, (0xC1FE0000, 0xDC3B62A3)),
    "nvfp4": Published(64, 700, 0x10, (0x4429730B, 0xC30545D3), scales=4, scales_below=0x77),
}
# Threads and registers of a probe's first warp whose word is the result, as the repository's
# ``hardware_validation/mma_probe/tcgen05.py`` has them: its rows overlap in shared memory. Of NVFP4
# the kernel fills the first row and the first column.
_HALF_ROWS = [(t, r) for t in range(32) for r in range(4 if t < 16 else 2)]
_VALID = {
    "tf32": [(t, r) for t in range(32) for r in range(4)], "bf16": _HALF_ROWS, "f16": _HALF_ROWS,
    "e4m3": [(t, r) for t in (0, 1, 4, 5) for r in range(4)]
    + [(t, r) for t in (8, 9, 12, 13) for r in range(2)],
    "nvfp4": [(0, 0)],
}


def finite(rng: random.Random) -> int:
    """Draw the bits of a finite float of 32 bits."""
    bits = rng.getrandbits(32)
    return bits & 0x807FFFFF if bits & 0x7F800000 == 0x7F800000 else bits


def cases(kind: str) -> np.ndarray:
    """Draw the cases of a type.

    Returns
    -------
    ndarray of uint32, shape (2, 2 K + 1 + 2 scales)
        A, B, C and scales of each.
    """
    one = PUBLISHED[kind]
    rng = random.Random(one.seed)
    if not one.below:
        draw: Callable[[], int] = partial(finite, rng)
    elif one.below == 1 << 16:
        draw = partial(rng.getrandbits, 16)
    else:
        draw = partial(rng.randrange, one.below)
    rows = [
        [draw() for _ in range(2 * one.k)] + [finite(rng)]
        + [rng.randrange(one.scales_below) for _ in range(2 * one.scales)]
        for _ in one.words
    ]
    return np.array(rows, np.uint32)


def written_out(word: str) -> str:
    """Return an argument ``NAME=published:TYPE`` as `lib.compiler.arguments` reads it."""
    match = re.fullmatch(r"(\w+)=published:(\w+)", word)
    if match is None:
        return word
    numbers = cases(match[2])
    sizes = ",".join(map(str, numbers.shape))
    return f"{match[1]}=uint32[{sizes}]:{','.join(map(str, numbers.ravel().tolist()))}"


def right(kind: str, args: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a probe's outputs, (case, thread, register), are the B200's words."""
    threads, registers = zip(*_VALID[kind], strict=True)
    found = args["outputs"][:, list(threads), list(registers)]
    return bool((found == np.array(PUBLISHED[kind].words, np.uint32)[:, None]).all())


CHECKS = {f"words_of_{kind}": partial(right, kind) for kind in _VALID}
