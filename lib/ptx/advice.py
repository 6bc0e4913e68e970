"""What to do about a finding: a sentence for a hazard or an error, and the source line it is at."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from pathlib import PurePath

from .core.errors import (
    Deadlock,
    Divergence,
    Endless,
    Error,
    LaunchError,
    Misaligned,
    OutOfBounds,
    ParseError,
    UninitialisedRead,
    UnsupportedInstruction,
)
from .core.hazards import Hazard
from .core.syntax import Instruction

_OF_ERRORS: tuple[tuple[type[Error], str], ...] = (
    (OutOfBounds, "guard the access with the array's bounds, or correct its index"),
    (Misaligned, "make the index a multiple of the access's width, or use a narrower access"),
    (UninitialisedRead, "write the memory on every path before it is read, with a barrier between"),
    (Deadlock, "let every thread that the wait counts arrive at it, and check the barrier's count, "
               "phase and expected bytes"),
    (Endless, "check what ends the loop; where it is right and long, launch with turns=None"),
    (Divergence, "move the operation to where all lanes of the warp reach it together"),
    (LaunchError, "correct the launch: the kernel has not begun"),
    (UnsupportedInstruction, "the emulator lacks it: compile for another architecture, or without "
                             "the call that needs it"),
    (ParseError, "its PTX may be of a release newer than the emulator: pass what NVRTC gives"),
)
_OF_HAZARDS = {
    "warning": "order the lanes with __syncwarp(), or let one lane write",
    "barrier divergence": "let all threads of the block reach the same barrier",
    "exited before barrier": "let every thread reach the barrier before it returns",
    "shuffle from a missing lane": "let all lanes of the warp live until the shuffle, out-of-range "
                                   "ones with a neutral value, or read from lanes that are there",
    "missing proxy fence": "after the writes, in the thread that wrote, fence.proxy.async "
                           "(cuda::ptx::fence_proxy_async), then the barrier",
    "missing wgmma.fence": "wgmma.fence before the first wgmma that uses the registers",
    "wgmma in flight": "wgmma.wait_group before the registers are touched",
    "mbarrier": "let expect_tx name as many bytes as the copies bring, before they complete",
}


def for_hazard(hazard: Hazard) -> str:
    """Say in one sentence what orders the accesses of a hazard; empty if nothing general can."""
    if hazard.kind == "block exited":
        if "wait_group" in hazard.message:
            return "cp.async.bulk.wait_group.read 0 before the thread that issued the copy returns"
        return "keep the cluster together at the end: cluster.sync() before the kernel returns"
    if hazard.kind != "race" or hazard.first is None or hazard.second is None:
        return _OF_HAZARDS.get(hazard.kind, "")
    first, second = hazard.first, hazard.second
    opcodes = first.opcode, second.opcode
    if "mbarrier" in hazard.message.partition(":")[0]:
        return "after mbarrier.init, fence.mbarrier_init or __syncthreads() before it is used"
    if first.block != second.block:
        if "shared" in hazard.message.partition(":")[0]:
            return "cluster.sync() between the two lines: the blocks of a cluster run in no order"
        return ("blocks run in no order: use an atomic, hand over through a flag with release and "
                "acquire (__threadfence()), or launch a second kernel")
    if any(name.startswith("wgmma") for name in opcodes):
        return "wgmma.wait_group, then a barrier, before shared memory that it reads is written"
    if any(name.startswith("cp.async.bulk") for name in opcodes):
        return ("wait for the bulk copy: on its mbarrier where it loads, cp.async.bulk.wait_group "
                "(.read before its source is written) where it stores, and then a barrier")
    if any(name.startswith("cp.async") for name in opcodes):
        return ("wait for the copy in the thread that issued it (cp.async.wait_group, "
                "__pipeline_wait_prior), then __syncthreads()")
    if first.warp == second.warp:
        return _OF_HAZARDS["warning"]
    return "__syncthreads() between the two lines, on the way from either to the other"


def for_error(error: Error) -> str:
    """Say in one sentence what to do about an error."""
    return next((text for kind, text in _OF_ERRORS if isinstance(error, kind)), "")


def instruction_of(error: Error, instructions: list[Instruction]) -> Instruction | None:
    """The instruction that an error's message names, if it names one."""
    named = re.search(r"PTX line (\d+)", str(error))
    line = int(named[1]) if named else None
    return next((each for each in instructions if each.line == line), None)


def source_text(place: tuple[str, int] | None, sources: Mapping[str, str]) -> str:
    """A line of the source, without its indentation; empty if it can't be read.

    Parameters
    ----------
    place : tuple of (str, int) or None
        File and line.
    sources : mapping of str to str
        Texts that are in no file, by the last part of the name that they were compiled under.
    """
    if place is None:
        return ""
    file, number = place
    text = sources.get(PurePath(file).name)
    if text is not None:
        lines = text.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return linecache.getline(file, number).strip()
