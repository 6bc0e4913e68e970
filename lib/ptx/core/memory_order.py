"""Memory consistency as opcodes state it: strong and weak accesses, scopes, fences (PTX ISA 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .syntax import Instruction

if TYPE_CHECKING:
    from .step import Step

# How far the effect of a strong access reaches: a weak one, the block, the cluster, the GPU.
WEAK, BLOCK, CLUSTER, GPU = range(4)
_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_SCOPES = {"cta": BLOCK, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU}
_FENCES = ("sc", "acq_rel", "acquire", "release")


def strength(instruction: Instruction) -> int:
    """Tell how far an access is strong: two strong accesses of one word are no race."""
    parts = instruction.parts
    atomic = parts[0] in ("atom", "red") or parts[:2] == ["cp", "reduce"]
    if not atomic and (parts[0] not in ("ld", "st") or not set(parts) & set(_STRONG)):
        return WEAK
    return next((_SCOPES[p] for p in parts[1:] if p in _SCOPES), GPU)


def fence_scope(instruction: Instruction) -> int:
    """Tell how far an instruction orders memory, if it is a fence: WEAK if it is none."""
    parts = instruction.parts
    if parts[0] not in ("membar", "fence") or {"proxy", "mbarrier_init"} & set(parts):
        return WEAK
    if any("sync_restrict" in part for part in parts):
        return WEAK
    if parts[0] == "fence" and len(parts) > 2 and not set(_FENCES) & set(parts):
        return WEAK
    return next((_SCOPES[p] for p in parts[1:] if p in _SCOPES), WEAK)


def order_scope(instruction: Instruction) -> int:
    """Tell how far a fence, or an access with .release or .acquire, orders other accesses."""
    fence = fence_scope(instruction)
    if fence == WEAK and {"acquire", "release", "acq_rel"} & set(instruction.parts):
        return strength(instruction)
    return fence


def scopes_to_follow(steps: Sequence[Step]) -> set[int]:
    """Tell in which scopes flags of a kernel may order its threads.

    GPU: blocks, by flags in global memory. CLUSTER and BLOCK: the threads of one cluster or block,
    by a weaker order than the GPU's, or by flags that may lie in shared memory.
    """
    orders = {order_scope(step.instruction) for step in steps} - {WEAK}
    found = orders & {GPU}
    flags = any(
        strength(step.instruction) != WEAK and "global" not in step.instruction.parts
        for step in steps
    )
    if orders and (flags or orders - {GPU}):
        found |= {BLOCK, CLUSTER}
    return found
