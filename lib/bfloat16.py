"""bfloat16 where nothing adds it to NumPy, in a browser: its bits, with the casts of a problem.

Elsewhere it is ml_dtypes', which has no build for WebAssembly.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

DTYPE = np.dtype(np.uint16)


def as_bits() -> bool:
    """Whether arrays of bfloat16 are `Bits` here."""
    return sys.platform == "emscripten"


class Bits(np.ndarray):
    """An array of uint16 that holds bfloat16; `astype` gives its numbers.

    What works on the bits wants them as ``numpy.asarray`` gives them, which shares the memory.
    """

    def astype(self, dtype: Any, *args: Any, **options: Any) -> np.ndarray:
        """The numbers in another type, exactly if that is float32 or wider."""
        # Here, so that commands which round nothing start without the emulator.
        from lib.ptx.core.rounding import from_bf16

        return from_bf16(self.view(np.ndarray)).astype(dtype, *args, **options)


def rounded(values: np.ndarray) -> Bits:
    """float32 to the nearest bfloat16, ties to even."""
    from lib.ptx.core.rounding import to_bf16

    return to_bf16(np.ascontiguousarray(values, np.float32)).view(Bits)
