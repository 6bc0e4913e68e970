"""What can go wrong, and how it is told: the kernel, the PTX line, the lanes, the CUDA line."""

from __future__ import annotations

import re
from pathlib import PurePath

import numpy as np

from .syntax import Instruction


class Error(RuntimeError):
    """Base of everything that the emulator raises on purpose.

    Attributes
    ----------
    hazards : list of Hazard
        What was found in the launch before.
    """

    hazards: list = []  # noqa: RUF012 - never changed, only replaced


class ParseError(Error):
    """The text is no PTX that the emulator can read."""


class UnsupportedInstruction(Error):
    """The PTX is well formed, but the emulator has no function for this instruction."""


class LaunchError(Error):
    """Grid, block or arguments that CUDA would refuse as well."""


class OutOfBounds(Error):
    """A lane touched memory that belongs to no allocation."""


class Misaligned(Error):
    """An address was no multiple of the access's width.

    Attributes
    ----------
    addresses : ndarray of int64, shape (blocks, threads), or None
        Where each lane's access begins, if it was an access of lanes to memory.
    line : int or None
        PTX line of that access.
    """

    def __init__(
        self, text: str, addresses: np.ndarray | None = None, line: int | None = None
    ) -> None:
        super().__init__(text)
        self.addresses, self.line = addresses, line


class UninitialisedRead(Error):
    """A lane used what it read from memory that nobody had written.

    Attributes
    ----------
    instruction : Instruction or None
        The load, if it was one; or a shuffle from a lane that its mask leaves out, while it is not
        yet known whether anybody uses what it read (see `unwritten`).
    """

    def __init__(self, text: str, instruction: Instruction | None = None) -> None:
        super().__init__(text)
        self.instruction = instruction


class Deadlock(Error):
    """Nothing can run any more, and somebody still waits."""


class Endless(Error):
    """The kernel ran for longer than the launch allowed."""


class Divergence(Error):
    """Part of a warp executed an operation that needs the whole warp."""


def place(kernel: str, instruction: Instruction) -> str:
    """Say where an instruction of a kernel stands.

    What is inlined from another file, such as a header's wrapper of an instruction, is told at the
    line that called it first. Returns for example ``kernel 'naive', PTX line 81 (ld.global.f32),
    CUDA naive.cu:23``.
    """
    where = f"kernel '{kernel}', "
    if instruction.function:
        where += f"function '{instruction.function}', "
    where += f"PTX line {instruction.line} ({instruction.opcode})"
    source = source_line(instruction.cuda, instruction.callers)
    return f"{where}, CUDA {source}" if source else where


def source_line(
    cuda: tuple[str, int] | None, callers: tuple[tuple[str, int], ...] = ()
) -> str:
    """Name a CUDA line: of what is inlined from another file, the line that called it first.

    Calls between headers of CUDA's are passed over: the line is in the folder of the outermost.

    `cuda`: file and line that ``.loc`` gave, if it did. `callers`: the calls that it was inlined
    from, from the inside out. Returns such as ``naive.cu:23``, or ``naive.cu:23, inlined from
    copies.cuh:7``; empty if there is none.
    """
    if cuda is None:
        return ""
    own = f"{PurePath(cuda[0]).name}:{cuda[1]}"
    folder = PurePath(callers[-1][0]).parent if callers else PurePath()
    caller = next((each for each in callers
                   if each[0] != cuda[0] and PurePath(each[0]).is_relative_to(folder)), None)
    if caller is None:
        return own
    return f"{PurePath(caller[0]).name}:{caller[1]}, inlined from {own}"


# -- Control characters in what a kernel says. -----------------------------------------------------


# All but tabs and line ends: what moves the cursor, changes colours or titles, or turns letters
# round (Unicode's explicit bidirectional formatting).
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with its control characters written out, such as ``\\x1b``."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
