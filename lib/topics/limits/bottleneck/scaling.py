"""Counters of a large problem from two small runs: what a block does is affine in K.

Where tiles divide the matrices every block of a kernel does the same, and along K it repeats one
step. So each counter is blocks × (fixed + K × per k), exactly, and two emulated launches of one
block with different K give both. (The sectors of a block depend on its rows' alignment, which is
the same for all where N and K are multiples of 64 elements.)
"""

from __future__ import annotations

from collections.abc import Mapping


def scaled(
    one: Mapping[str, int], other: Mapping[str, int], depths: tuple[int, int], *, K: int,
    blocks: int,
) -> dict[str, int]:
    """Return the counters of `blocks` blocks and a depth of `K`.

    Parameters
    ----------
    one, other : mapping of str to int
        Counters of one block, at the first and at the second depth.
    depths : (int, int)
        The two K, which differ.
    K, blocks : int
        Of the large problem.

    Raises
    ------
    ValueError
        If the depths are equal, or a counter doesn't grow by whole numbers a step.
    """
    first, second = depths
    if first == second:
        raise ValueError(f"two runs of K = {first} tell nothing of K")
    found = {}
    for name, value in one.items():
        per_k, rest = divmod((other[name] - value) * (K - first), second - first)
        if rest:
            raise ValueError(f"{name} grows by {other[name] - value} from K = {first} to {second}, "
                             f"which gives no whole number at {K}")
        found[name] = blocks * (value + per_k)
    return found
