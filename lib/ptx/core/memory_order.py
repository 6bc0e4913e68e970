"""Memory consistency as opcodes state it: strong and weak accesses, scopes, fences (PTX ISA 8)."""

from __future__ import annotations

from .syntax import Instruction

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


def is_fence(instruction: Instruction) -> bool:
    """Tell whether an instruction orders memory for the whole GPU."""
    parts = instruction.parts
    if parts[0] not in ("membar", "fence") or "proxy" in parts:
        return False
    return any(_SCOPES.get(p) == GPU for p in parts) and (
        parts[0] == "membar" or len(parts) == 2 or any(p in _FENCES for p in parts)
    )


def synchronizes_blocks(steps) -> bool:
    """Tell whether a kernel has anything that orders its blocks."""
    for step in steps:
        instruction = step.instruction
        if is_fence(instruction):
            return True
        if strength(instruction) == GPU and {"acquire", "release", "acq_rel"} & set(
            instruction.parts
        ):
            return True
    return False
