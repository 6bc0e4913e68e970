"""Hints to the caches: prefetch, applypriority, discard, createpolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode

if TYPE_CHECKING:
    from ..core.step import Run


@opcode("prefetch", "prefetchu", "applypriority", "discard")
def hint(d: Decoding) -> Run:
    """Hints to the caches: nothing to do."""
    return lambda f: None


@opcode("createpolicy")
def policy(d: Decoding) -> Run:
    """createpolicy.{fractional,range,cvt}...b64 d, ...: a hint to L2, whose bits nobody reads"""
    if not d.has("fractional", "range", "cvt"):
        d.unsupported("createpolicy.{fractional,range,cvt}")
    put, none = d.write(0, "b64"), np.zeros((1, 1), np.uint64)
    return lambda f: put(f.r, none)
