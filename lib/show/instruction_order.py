"""In which order does a loop's machine code load, compute, store and wait?

The compiler may move instructions past each other wherever the result stays the same. So the order
of the source's statements is a wish, and this is what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence


def work_between(opcodes: Sequence[str]) -> int:
    """Count the FMA, or the products, between the last global load and the next shared store.

    That is the work that can hide the loads' latency without another warp's help. 0 if the loop
    loads nothing or stores nothing.
    """
    bases = [opcode.partition(".")[0] for opcode in opcodes]
    if "LDG" not in bases or "STS" not in bases:
        return 0
    loaded = len(bases) - 1 - bases[::-1].index("LDG")
    behind = bases[loaded + 1 :] + bases[:loaded]  # the loop goes round
    # Products of tensor cores stand where multiply-adds of lanes do.
    return sum(base in ("FFMA", "HMMA") for base in behind[: behind.index("STS")])
