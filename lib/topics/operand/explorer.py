"""Descriptors, swizzles and fragment maps: swizzle, type, order and element of one operand."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib.plotting.frames import Control, Explorer
from lib.topics.operand import figure as operand_figure
from lib.topics.operand.model import TYPES, Operand


def operands(default: tuple[int, int, int, int] = (0, 0, 0, 1)) -> Explorer:
    """One WGMMA's operand in shared memory: its descriptor, and where each element lies.

    Parameters
    ----------
    default : (int, int, int, int)
        Positions shown first.
    """
    controls = [
        Control("Swizzle", [("128 B", 128), ("64 B", 64), ("32 B", 32), ("none", 0)],
                default=default[0]),
        Control("Type", list(TYPES.items()), default=default[1]),
        Control("Rows run along", [("K", "K"), ("M or N", "MN")], default=default[2]),
        Control("Element followed", [("row 0, k 0", (0, 0)), ("row 13, k 5", (13, 5))],
                default=default[3]),
    ]

    def frame(span: int, item: int, order: str, element: tuple[int, int]) -> Figure:
        try:
            operand = Operand(span, item, order)
        except ValueError as refused:
            return operand_figure.absent(str(refused))
        return operand_figure.draw(operand, *element)

    return Explorer(controls, frame, "A WGMMA operand: descriptor, swizzle, lanes and banks")
