"""Which instantiation a problem gets: what its rows and pointers allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lib.kernels.spec import TMA_STRIDE, Kernel, Variant, misfits
from lib.problem import ITEM_BYTES, Problem


class Choice(NamedTuple):
    """The name of the variant that suits a shape, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """The instantiation that is launched for a problem.

    Attributes
    ----------
    variant : Variant
        The one that was asked for, or that one with its narrower constants.
    reason : str
        Why it is not the one that was asked for, or what is done besides; empty if neither.
    packed : tuple of str
        ``"A"``, ``"B"``: the matrices that its `pack` copies first.
    """

    variant: Variant
    reason: str = ""
    packed: tuple[str, ...] = ()


def select(
    kernel: Kernel,
    problem: Problem,
    variant: Variant,
    addresses: Sequence[int] = (),
    choice: Choice | None = None,
) -> Selection:
    """Choose the instantiation that a problem's rows and pointers allow.

    A variant with vectors of VEC elements reads A and B VEC elements at a time, and C in vectors of
    no more bytes or elements. That is legal where each row begins on a multiple of VEC elements,
    and each matrix at an address that is a multiple of a vector. Elsewhere its narrower constants
    are taken.

    Parameters
    ----------
    kernel : Kernel
    problem : Problem
    variant : Variant
    addresses : sequence of int
        Where A, B and C begin, if that is known; of several sets, one after the other.
    choice : Choice, optional
        The candidate of a tuned variant that the caller chose for this shape; without one the
        variant keeps its own tile, however few blocks that makes.
    """
    if choice is not None:
        chosen = select(kernel, problem, kernel.variant(choice.name), addresses)
        reason = " and ".join(filter(None, (choice.reason, chosen.reason)))
        return replace(chosen, reason=reason)
    if variant.maps:
        return _by_maps(problem, variant, addresses)
    vectors = variant.vectors
    if not vectors.narrow:
        return Selection(variant)
    width = int(variant.constants["VEC"])
    reasons = _against(problem, variant, width, addresses)
    if not reasons:
        return Selection(variant)
    changed = vectors.narrow
    for narrower in vectors.between:
        if not _against(problem, variant, narrower, addresses):
            changed = {"VEC": narrower}
            break
    constants = {**variant.constants, **changed}
    return Selection(replace(variant, constants=constants), " and ".join(reasons))


def _by_maps(problem: Problem, variant: Variant, addresses: Sequence[int]) -> Selection:
    """Store C by lanes and pack A and B where tensor maps can't describe them."""
    reasons, packed = [], {}
    if "C" in variant.maps.boxes:
        if problem.N * ITEM_BYTES[problem.out] % TMA_STRIDE:
            reasons.append(
                f"rows of C, {problem.N} elements, are no multiple of {TMA_STRIDE} bytes"
            )
        elif any(address % TMA_STRIDE for address in addresses[2::3]):
            reasons.append(f"C is not aligned to {TMA_STRIDE} bytes")
        if reasons:
            variant = stored_by_lanes(variant)
    if variant.pack:
        packed = misfits(problem, variant.row_bytes)
        for place, name in enumerate("AB"):
            if any(address % variant.row_bytes for address in addresses[place::3]):
                packed.setdefault(name, f"it must be aligned to {variant.row_bytes} bytes")
        reasons += (f"{name} is packed: {reason}" for name, reason in packed.items())
    return Selection(variant, " and ".join(reasons), tuple(packed))


def stored_by_lanes(variant: Variant) -> Variant:
    """The variant with C stored by its lanes, where it stores C through a tensor map."""
    maps = variant.maps
    if maps is None or maps.lanes_store is None or "C" not in maps.boxes:
        return variant
    boxes = {name: box for name, box in maps.boxes.items() if name != "C"}
    return replace(variant, constants={**variant.constants, **maps.lanes_store},
                   maps=replace(maps, boxes=boxes))


def instantiated(kernel: Kernel, expression: str) -> list[str]:
    """Names of the variants that an instantiation may be: with their own or narrower constants.

    There may be several, which differ in how they are launched; and none, where the catalogue has
    changed since.
    """
    names = []
    for variant in (*kernel.variants, *kernel.menu):
        if variant.candidates and variant.name not in variant.candidates:
            continue  # it is launched as one of its candidates
        changes = ({}, variant.vectors.narrow, *({"VEC": w} for w in variant.vectors.between))
        forms = (*(replace(variant, constants={**variant.constants, **c}) for c in changes),
                 stored_by_lanes(variant))
        if expression in map(kernel.expression, forms):
            names.append(variant.name)
    return names


def _against(
    problem: Problem, variant: Variant, width: int, addresses: Sequence[int]
) -> list[str]:
    """Say what speaks against vectors of `width` elements."""
    reasons = [
        f"{name} = {size} is no multiple of {width}"
        for name, size in (("N", problem.N), ("K", problem.K))
        if name in variant.vectors.along and size % width
    ]
    nbytes = variant.vectors.alignment or ITEM_BYTES[variant.dtype] * width
    if any(address % nbytes for address in addresses):
        reasons.append(f"a matrix is not aligned to {nbytes} bytes")
    return reasons
