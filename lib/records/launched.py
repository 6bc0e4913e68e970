"""What was launched, as fingerprints: of a variant, and of the candidate that took its place."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import lru_cache
from typing import Any

from lib.dispatch.plan import plan
from lib.kernels.catalogue import find
from lib.kernels.grid import Line
from lib.kernels.spec import Kernel, TensorMaps, Variant, Vectors
from lib.records.schema import Shape


def launch_hash(kernel: Kernel, variant: Variant) -> str:
    """Fingerprint of what the catalogue launches a variant with, and each of its candidates.

    The number of a persistent kernel's blocks, say, stands in no source. Candidates for some rows
    alone are left out: where a rule takes one, `chosen` says so.
    """
    every = [one for one in map(kernel.variant, variant.candidates) if not one.for_rows]
    launches = map(_launched, (variant, *every))
    return hashlib.sha256(f"[{', '.join(launches)}]".encode()).hexdigest()[:16]


def candidate_hash(kernel: Kernel, candidate: Variant) -> str:
    """Fingerprint of a candidate by itself: its source, its constants and its launch."""
    own = f"{kernel.hash(candidate)} {launch_hash(kernel, candidate)}"
    return hashlib.sha256(own.encode()).hexdigest()[:16]


def chosen(kernel: Kernel, variant: Variant, shape: Shape) -> tuple[str, str]:
    """The instantiation that a rule takes today for a shape, and its `candidate_hash`."""
    name, expression = _choice(kernel.stem, variant.name, shape)
    return expression, candidate_hash(kernel, kernel.variant(name))


# To rank all candidates takes tens of milliseconds a shape, and a page asks for a row many times.
@lru_cache(maxsize=1024)
def _choice(stem: str, name: str, shape: Shape) -> tuple[str, str]:
    """The candidate that takes a variant's place, by its name, and its instantiation."""
    kernel = find(stem)
    variant = kernel.variant(name)
    launched = plan(kernel, variant, variant.problem(*shape)).variant
    return launched.name, kernel.expression(launched)


def _launched(one: Variant) -> str:
    """What a variant is launched with."""
    parts = map(_values, (one.vectors, one.grid, one.maps))
    return str((one.tile, one.block, one.step, one.shared_bytes, *parts))


def _values(part: Vectors | Line | TensorMaps | None) -> tuple[Any, ...]:
    """A part's type and values in their order, without the last ones that have their default:
    another name of a field, or one more, makes no record stale.
    """
    if part is None:
        return ()
    values = [(getattr(part, one.name), one.default) for one in fields(part)]
    while values and values[-1][0] == values[-1][1]:
        values.pop()
    return type(part).__name__, *(value for value, _ in values)
