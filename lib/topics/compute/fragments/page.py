"""Which lane holds which element, drawn and as formulae."""

from __future__ import annotations

from lib.plotting.display import show, table
from lib.topics.compute.fragments import figure as fragments_figure
from lib.topics.compute.fragments import model as fragments


def draw(instruction: str, operand: str, lane: int = 5) -> None:
    """Draw which lane holds what of one operand (`lib.topics.compute.fragments.model.held`)."""
    found = fragments.held(instruction, operand)
    show(fragments_figure.draw(found, lane=lane))


def maps(instruction: str, lane: int = 5) -> None:
    """Draw A, B and C of one mma as they meet, with the formulae of their maps.

    Parameters
    ----------
    instruction : str
        ``"mma.m16n8k8"`` or ``"mma.m16n8k16"``.
    lane : int
        The lane whose registers are written out.
    """
    of = [fragments.held(instruction, operand) for operand in fragments.OPERANDS]
    show(fragments_figure.product(of, lane=lane))


def formulae(*instructions: str) -> None:
    """Display where the elements of each operand lie, as formulae.

    Parameters
    ----------
    *instructions : str
        Such as ``"mma.m16n8k16"`` or ``"wgmma.m64n256k16"``.
    """
    rows = []
    for instruction in instructions:
        for operand in fragments.OPERANDS:
            if instruction.startswith("wgmma") and operand == "B":
                rows.append((f"`{instruction}`", operand, "none", "in shared memory", ""))
                continue
            found = fragments.held(instruction, operand)
            row, column = fragments.formulae(found)
            each = "two halves" if found.packed == 2 else "one float"
            if instruction.startswith("wgmma") and operand == "A":
                each += ", in the form that takes A from registers"
            rows.append((f"`{instruction}`", "C and D" if operand == "C" else operand,
                         f"{found.registers} of {each}", row, column))
    table(("instruction", "matrix", "registers per lane", "row", "column"), rows,
          "modelled: the emulator's layout, PTX ISA 9.7.14 and 9.7.15; register m, half h of lane "
          "4 g + t, of warp w in its warpgroup; / rounds down")
