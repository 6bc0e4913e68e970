"""What was launched, as fingerprints: of a variant, and of the candidate that took its place."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from lib.dispatch.plan import plan
from lib.kernels.catalogue import find
from lib.kernels.spec import Kernel, Variant
from lib.records.schema import Shape

# What a grid's attributes were called when the first records were hashed.
_GRID_WORDS = {"blocks_per_sm": "resident", "cluster_n": "beside", "stream_k_share": "wave_share"}


def launch_hash(kernel: Kernel, variant: Variant) -> str:
    """Fingerprint of what the catalogue launches a variant with, and each of its candidates.

    The number of a persistent kernel's blocks, say, stands in no source.
    """
    launches = map(_launched, (variant, *map(kernel.variant, variant.candidates)))
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


def forget() -> None:
    """Choose anew: for tests that change what the rule goes by."""
    _choice.cache_clear()


def _launched(one: Variant) -> str:
    """What a variant is launched with, in the words that records were hashed by: they stay."""
    narrow = {name.upper(): value for name, value in one.vectors.narrow.items()}
    vectors = (f"Vectors(narrow={narrow}, along={one.vectors.along}, "
               f"between={one.vectors.between}, alignment={one.vectors.alignment})")
    maps = None
    if one.maps:
        by_lanes = {"STAGED": 0} if one.maps.lanes_store else None
        maps = f"TensorMaps(boxes={one.maps.boxes}, lanes_store={by_lanes})"
    # Until November 2026 there were more of these clusters than ran at once.
    held = ", at once" if one.grid.blocks_per_sm and one.grid.size > 2 else ""
    grid = str(one.grid)
    for now, then in _GRID_WORDS.items():
        grid = grid.replace(f"{now}=", f"{then}=")
    return (f"({one.tile}, {one.block}, {one.step}, {one.shared_bytes}, {vectors}, {grid}, "
            f"{maps}{held})")
