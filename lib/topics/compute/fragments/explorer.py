"""Which lane holds which element: instruction, matrix, lane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lib.plotting.frames import Control, Explorer
from lib.plotting.live import Live
from lib.show.scene import Scene
from lib.topics.compute.fragments import figure as fragments_figure
from lib.topics.compute.fragments.model import OPERANDS, SHAPES, choices, held


def fragments(
    instructions: Sequence[str] = tuple(SHAPES), default: tuple[int, int, int] = (1, 0, 1),
) -> Explorer:
    """Instruction, matrix and lane against the elements that the lane holds.

    Parameters
    ----------
    instructions : sequence of str
        Keys of `lib.topics.compute.fragments.model.SHAPES`.
    """
    controls = [
        Control.of("Instruction", instructions, default[0]),
        Control.of("Matrix", OPERANDS, default[1]), Control.of("Lane", (0, 5, 30), default[2]),
    ]

    def frame(instruction: str, operand: str, lane: int) -> Scene:
        if instruction.startswith("wgmma") and operand == "B":
            return fragments_figure.absent(operand)
        return fragments_figure.draw(held(instruction, operand), lane=lane)

    return Explorer(controls, frame, "Fragments, and the lanes that hold them")


def registers() -> Live:
    """Choose an instruction and a matrix: see which lane and register hold each element."""
    still = "mma.m16n8k16"
    maps = [held(still, operand) for operand in OPERANDS]
    return Live([], {"maps": choices(), "first": (f"{still}, FP16 or BF16", 1, 2)},
                Path(__file__).with_suffix(".js"), "Registers of an instruction",
                fragments_figure.product(maps, lane=5),
                "modelled: the emulator's layouts, PTX ISA 9.7.14, 9.7.15 and 9.7.16.2.3.1")
