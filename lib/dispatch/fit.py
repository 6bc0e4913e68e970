"""What a problem's rows and the addresses of its matrices allow of an instantiation.

A variant with vectors reads A and B so many elements at a time, and C in vectors of no more bytes
or elements. That is legal where each row begins on a multiple of a vector's elements, and each
matrix at an address that is a multiple of a vector. Elsewhere its narrower schedule is taken. A
tensor map asks for rows and addresses that are multiples of 16 bytes: elsewhere C is stored by the
lanes, and A and B are copied into rows that are, or refused.

Templates of 22 to 24 and a step beside 09 have instantiations for all layouts and types. They need
no variant each: an instantiation follows from a variant and a problem (`laid`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lib.kernels.fused import misfit
from lib.kernels.grid import MAX_GRID_X
from lib.kernels.hopper import ROW, boxes
from lib.kernels.spec import TMA_STRIDE, Kernel, Variant
from lib.problem import ITEM_BYTES, Epilogue, Problem
from lib.problem.scales import FORMATS

# Of an address no more than this matters: no vector, tensor map or fragment asks for more, B.
MAX_ALIGNMENT = 32
# Rows of more bytes than an int can hold are not for kernels that step over them with ints.
MAX_ROW_FLOATS = (2**31 - 1) // ITEM_BYTES["float32"]


class Fit(NamedTuple):
    """A variant as a problem's types, layouts and matrices allow it."""

    variant: Variant  # the one that was asked for, or that one with a narrower schedule
    packed: Sequence[str] = ()  # ``"A"``, ``"B"``: the matrices that its `packing` copies first
    # Why it is not the one that was asked for, or what is done besides; empty if neither.
    reason: str = ""


def alignment(address: int) -> int:
    """All that matters of an address: the power of two that divides it, at most `MAX_ALIGNMENT`."""
    return min(address & -address or MAX_ALIGNMENT, MAX_ALIGNMENT)


def fit(
    kernel: Kernel, variant: Variant, problem: Problem, addresses: Sequence[int] = ()
) -> Fit:
    """Find the form of a variant that a problem's types, layouts, rows and addresses allow.

    `problem`: one whose types it takes (`refusal`). `addresses`: where A, B and C begin, or their
    alignments, if that is known; of several sets, one after the other. Raises ValueError if a
    matrix begins where no form of the variant can reach it, or the shape is one that the form can't
    compute.
    """
    chosen = laid(variant, problem)
    found = (_by_maps if chosen.maps else _by_vectors)(problem, chosen, addresses)
    _check_addresses(kernel, found.variant, problem, addresses)
    check_shape(kernel, found.variant, problem)
    return found


def forms(variant: Variant) -> Iterator[Variant]:
    """The instantiations that `fit` may make of a variant, itself the first, the narrowest last."""
    yield variant
    if variant.maps:
        yield stored_by_lanes(variant)
    elif variant.vectors.narrow:
        yield from (variant.scheduled(vec=width) for width in variant.vectors.between)
        yield variant.scheduled(**variant.vectors.narrow)


def stored_by_lanes(variant: Variant) -> Variant:
    """The variant with C stored by its lanes, where it stores C through a tensor map."""
    maps = variant.maps
    if maps is None or not maps.lanes_store or "C" not in maps.boxes:
        return variant
    others = {name: box for name, box in maps.boxes.items() if name != "C"}
    return replace(variant.scheduled(staged=0), maps=replace(maps, boxes=others))


def instantiations(kernel: Kernel) -> dict[str, list[str]]:
    """By C++ name, the variants that an instantiation may be: in one of their forms.

    There may be several, which differ in how they are launched; and none, where the catalogue has
    changed since.
    """
    found: dict[str, list[str]] = {}
    for variant in (*kernel.measured, *kernel.menu):
        # A variant with candidates is launched as one of them.
        if not variant.candidates or variant.name in variant.candidates:
            for expression in dict.fromkeys(map(kernel.expression, forms(variant))):
                found.setdefault(expression, []).append(variant.name)
    return found


def refusal(variant: Variant, problem: Problem) -> str:
    """Say what of a problem no instantiation of a variant takes, as the end of a sentence.

    Empty if there is one that takes it. Shapes and addresses are none of it (`fit`).
    """
    if variant.any_layout:
        if ITEM_BYTES[variant.dtype] != ITEM_BYTES[problem.dtype]:
            return f"A and B in {variant.dtype}, not {problem.dtype}"
        if problem.a_layout == "column" and not by_columns(variant):
            return (f"A by columns only in tiles whose rows are multiples of {ROW}, operands not "
                    "swapped")
        return ""
    given = (
        ("A and B in", variant.dtype, problem.dtype), ("C in", variant.out, problem.out),
        ("B in layout", variant.b_layout, problem.b_layout),
        ("A in layout", variant.a_layout, problem.a_layout),
        ("scales by", variant.scaling or "nothing", problem.scaling or "nothing"),
        ("the epilogue", _named(variant.epilogue), _named(problem.epilogue)),
    )
    for what, takes, asked in given:
        if takes != asked:
            return f"{what} {takes}, not {asked}"
    if problem.batch > 1 and not variant.strided:
        return f"one product at a time, not {problem.batch}"
    for one in problem.operands:
        if not one.dense and (variant.maps is None or one.name == "C"):
            return f"{one.name} with its {one.layout}s one behind the other, not {one.lead} apart"
    return ""


def _named(epilogue: Epilogue | None) -> str:
    """An epilogue as a refusal calls it; a product without one is the product alone."""
    return (epilogue or Epilogue()).name


def by_columns(variant: Variant) -> bool:
    """Whether a variant's template takes A by columns."""
    if not variant.schedule.stages or not (variant.maps or variant.warps_read):
        return variant.any_layout  # no tensor cores
    return not variant.schedule.swapped and variant.tile[0] % ROW == 0


def laid(variant: Variant, problem: Problem) -> Variant:
    """The instantiation of a variant for a problem's types and layouts; itself if it is that.

    `problem`: one that it takes (`refusal`).
    """
    one = variant
    types = {name: getattr(problem, name) for name in ("dtype", "out", "b_layout", "a_layout")}
    if variant.any_layout and any(getattr(one, name) != it for name, it in types.items()):
        one = replace(one, **types)
        if one.maps:
            one = replace(one, maps=replace(one.maps, boxes=boxes(one)))
    if variant.any_layout and not one.strided:
        one = _strided(one, problem)
    if one.packing and (one.packing.dtype != one.dtype or not problem.plain):
        gaps = () if problem.plain else ("S",)
        one = replace(one, packing=replace(one.packing, dtype=one.dtype, template=("T", *gaps),
                                        strided=not problem.plain))
    return variant if one == variant else one


def _strided(variant: Variant, problem: Problem) -> Variant:
    """With the arguments of the template behind its first ones, as far as the problem asks."""
    # Tensor maps know the gaps of A and B, and warps that read them don't.
    gaps = not problem.operand("C").tight if variant.maps else not problem.plain
    if not gaps and variant.a_layout == "row":
        return variant
    if variant.vectors.narrow:
        variant = variant.scheduled(**variant.vectors.narrow)
    template = (*variant.template, "A_BY_ROWS", *(("S",) if gaps else ()))
    if gaps and variant.maps and "C" in variant.maps.boxes:  # its lanes store C
        variant = stored_by_lanes(variant)
    return replace(variant, template=template, strided=gaps)


def misfits(problem: Problem, row_bytes: int) -> dict[str, str]:
    """Which of A and B have rows that are no multiples of so many bytes, and what would mend it."""
    found = {}
    for one in problem.operands[:2]:
        unit = row_bytes // ITEM_BYTES[one.dtype]
        by_rows = one.layout == "row"
        size = ("K" if by_rows else "M") if one.name == "A" else ("N" if by_rows else "K")
        if one.lead == one.length and one.length % unit:
            each = problem.per_byte
            found[one.name] = f"{size} = {each * one.length} must be a multiple of {each * unit}"
        elif one.lead % unit:
            found[one.name] = (f"its {one.layout}s lie {one.lead} elements apart, which must be a "
                               f"multiple of {unit}")
        elif one.products > 1 and one.stride % unit:
            found[one.name] = (f"its matrices lie {one.stride} elements apart, which must be a "
                               f"multiple of {unit}")
    return found


def check_shape(kernel: Kernel, variant: Variant, problem: Problem) -> None:
    """Refuse a shape that an instantiation can't compute, wherever its matrices lie.

    Raises ValueError if the shape passes what 32-bit indices can hold, or if rows of A or B are no
    multiples of `row_bytes` and nothing packs them.
    """
    if variant.row_bytes and not variant.packing:
        for name, reason in misfits(problem, variant.row_bytes).items():
            raise ValueError(
                f"{kernel.stem} loads {name} in rows that are multiples of {variant.row_bytes} "
                f"bytes: {reason}"
            )
    # The lanes of 25 and of 28 with block scales store pairs, or nothing at all.
    if (problem.epilogue or problem.scaling in FORMATS) and (rule := misfit(problem)):
        raise ValueError(f"{kernel.stem} moves rows that are multiples of {TMA_STRIDE} bytes: "
                         f"{rule}")
    # Row, column and k are ints inside the kernel and may run one tile past the edge.
    for name, size, step in (
        ("M", problem.M, variant.grid.rows_past_the_end(variant.tile)),
        ("N", problem.N, variant.tile[1]), ("K", problem.K, max(variant.tile)),
    ):
        if size > MAX_GRID_X - step:
            raise ValueError(f"{name} = {size} passes what a 32-bit index can hold")
    for one in problem.operands:
        lines = one.lines * one.distinct if one.name != "C" else 0  # `packing` counts them
        if not problem.plain and max(one.lead, lines) > MAX_GRID_X:
            raise ValueError(
                f"{one.name} has {one.lines * one.distinct} {one.layout}s, {one.lead} elements "
                "apart: a 32-bit index holds less"
            )
    if variant.grid.least_share and max(problem.N, problem.K) > MAX_ROW_FLOATS:
        raise ValueError(
            f"{kernel.stem} takes rows of at most {MAX_ROW_FLOATS} floats; N is {problem.N} "
            f"and K {problem.K}"
        )


def _by_vectors(problem: Problem, variant: Variant, addresses: Sequence[int]) -> Fit:
    """Take the widest vectors that lie along all rows, and begin where they may."""
    *wider, narrowest = forms(variant)  # which takes everything
    found = next((one for one in wider if not _against(problem, one, addresses)), narrowest)
    reasons = _against(problem, variant, addresses) if found is not variant else []
    return Fit(found, (), " and ".join(reasons))


def _against(problem: Problem, variant: Variant, addresses: Sequence[int]) -> list[str]:
    """Say what speaks against the vectors of a form."""
    width = variant.schedule.vec
    reasons = [
        f"{name} = {size} is no multiple of {width}"
        for name, size in (("N", problem.N), ("K", problem.K))
        if name in variant.vectors.along and size % width
    ]
    nbytes = variant.vectors.alignment or ITEM_BYTES[variant.dtype] * width
    if any(address % nbytes for address in addresses):
        reasons.append(f"a matrix is not aligned to {nbytes} bytes")
    return reasons


def _by_maps(problem: Problem, variant: Variant, addresses: Sequence[int]) -> Fit:
    """Store C by lanes and pack A and B where tensor maps can't describe them."""
    assert variant.maps is not None
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
    if variant.packing:
        packed = misfits(problem, variant.row_bytes)
        for place, name in enumerate("AB"):
            if any(address % variant.row_bytes for address in addresses[place::3]):
                packed.setdefault(name, f"it must be aligned to {variant.row_bytes} bytes")
        reasons += (f"{name} is packed: {reason}" for name, reason in packed.items())
    return Fit(variant, list(packed), " and ".join(reasons))


def _check_addresses(
    kernel: Kernel, variant: Variant, problem: Problem, addresses: Sequence[int]
) -> None:
    """Refuse matrices that begin where vectors of 16 bytes, or pairs of C, can't be loaded."""
    wanted = {"A": variant.row_bytes, "B": variant.row_bytes} if not variant.packing else {}
    if (variant.row_bytes or variant.warps_read) and problem.N % 2 == 0 and not variant.strided:
        wanted["C"] = 2 * ITEM_BYTES[problem.out]
    for name, nbytes in wanted.items():
        if nbytes and any(one % nbytes for one in addresses["ABC".index(name)::3]):
            raise ValueError(
                f"{kernel.stem}: {name} must begin at a multiple of {nbytes} bytes; copy it first"
            )
