"""What to do about a finding: a sentence for a hazard or an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

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
    source_line,
)
from .core.hazards import FAILED, IN_VAIN, MISSING_LANE, SAME_VALUE, UNCOMMITTED, Access, Hazard
from .core.syntax import Instruction

_OF_ERRORS: tuple[tuple[type[Error], str], ...] = (
    (OutOfBounds, "guard the access with the array's bounds, or correct its index"),
    (Misaligned, "make the index a multiple of the access's width, or use a narrower access"),
    (UninitialisedRead, "write the memory on every path before it is read, with a barrier between"),
    (Deadlock, "let every thread that the wait counts arrive at it, and check the barrier's count, "
               "phase and expected bytes"),
    (Endless, "check what ends the loop; where it is right and long, launch with turns=None "
              "(on the command line --turns 0)"),
    (Divergence, "move the operation to where all lanes of the warp reach it together"),
    (LaunchError, "correct the launch: the kernel has not begun"),
    (UnsupportedInstruction, "the emulator lacks it: compile for another architecture, or without "
                             "the call that needs it"),
    (ParseError, "its PTX may be of a release newer than the emulator: pass what NVRTC gives"),
)
_OF_HAZARDS = {
    "one address": "declare one extern __shared__ array, and let the others begin behind what the "
                   "ones before need of it",
    "warning": "order the lanes with __syncwarp(), or let one lane write",
    "barrier divergence": "let all threads of the block reach the same barrier",
    "barrier reached twice": "let a thread that came by bar.arrive go on to another barrier, or "
                             "wait for what tells it that this one is complete",
    "exited before barrier": "let every thread reach the barrier before it returns",
    MISSING_LANE: "let all lanes of the warp live until the shuffle, out-of-range ones with a "
                  "neutral value, or read from lanes that are there",
    "missing proxy fence": "after the writes, in the thread that wrote, fence.proxy.async "
                           "(cuda::ptx::fence_proxy_async), then the barrier",
    "missing wgmma.fence": "wgmma.fence before the first wgmma that uses the registers",
    "wgmma in flight": "wgmma.wait_group before the registers are touched",
    "tensor memory in flight": "tcgen05.commit and a wait on its mbarrier behind mma and cp, "
                               "tcgen05.wait behind ld and st, before the same words are accessed",
    "missing tcgen05.fence": "tcgen05.fence::before_thread_sync ahead of the barrier, and "
                             "tcgen05.fence::after_thread_sync behind it",
    "tensor memory": "allocate the columns before their first use, free them after the last, and "
                     "let each warp of a warpgroup reach its own 32 lanes",
    "launch control": "read a response behind query_cancel.is_canceled, and end the loop at the "
                      "first request that failed",
    "alignment": "let the matrix begin at a multiple of 32 bytes and its rows lie a multiple of 16 "
                 "bytes apart: PTX leaves open what else is loaded or stored",
    "mbarrier": "let expect_tx name as many bytes as the copies bring, before they complete",
}


def for_hazard(hazard: Hazard) -> str:
    """Say in one sentence what orders the accesses of a hazard; empty if nothing general can."""
    if FAILED in hazard.message:
        return ("look at what the wait returns, and wait again until it is true, before anything "
                "that it is to order")
    if hazard.kind == SAME_VALUE:
        return ("nothing, where all lanes are meant to store the same value, as they did in this "
                "run; else let one of them store it")
    if hazard.kind == "block exited":
        if "wait_group" in hazard.message:
            return "cp.async.bulk.wait_group.read 0 before the thread that issued the copy returns"
        return "keep the cluster together at the end: cluster.sync() before the kernel returns"
    if hazard.kind == "mbarrier" and "an arrival in phase" in hazard.message:
        return ("initialise the mbarrier for all arrivals of a phase, or let the thread wait for "
                "the phase before it arrives again")
    if hazard.kind == "mbarrier" and "can miss it" in hazard.message:
        return ("let the phase after the one that is waited for need an arrival that comes behind "
                "the wait, of the same thread or of one that it tells, such as an mbarrier on "
                "which readers say that a buffer is free")
    if hazard.kind == MISSING_LANE and "the mask leaves out" in hazard.message:
        return ("name every lane that is read in the mask and let it run the shuffle, or use the "
                "result only in lanes that read one which the mask names")
    if hazard.kind == "missing proxy fence" and "tensor map" in hazard.message:
        return ("release the changed map, by tensormap.cp_fenceproxy or by "
                "fence.proxy.tensormap::generic.release.gpu behind the writes; then "
                "fence.proxy.tensormap::generic.acquire.gpu [map], 128 in the thread that issues "
                "the copy, before it")
    if "a copy completes on an mbarrier" in hazard.message:
        return ("fence.mbarrier_init (or fence.proxy.async) behind mbarrier.init, before the "
                "barrier that publishes it and before the copy")
    first, second = hazard.first, hazard.second
    if hazard.kind not in ("race", "warning") or first is None or second is None:
        return _OF_HAZARDS.get(hazard.kind, "")
    if first.block == second.block and (said := _in_place(hazard.message, first, second)):
        return said
    if hazard.kind == "warning":
        return _OF_HAZARDS["warning"]
    if IN_VAIN in hazard.message:
        return ("leave out the load, since no result depends on it; no wrong value comes of this "
                "race as the kernel is")
    opcodes = first.opcode, second.opcode
    if "read-only cache" in hazard.message:
        return ("read it by a plain load: __ldg, and const __restrict__, promise that the kernel "
                "never writes it")
    if "mbarrier" in hazard.message.partition(":")[0]:
        return "after mbarrier.init, fence.mbarrier_init or __syncthreads() before it is used"
    if first.block != second.block:
        if "shared" in hazard.message.partition(":")[0]:
            return ("cluster.sync() between the two lines: the blocks of a cluster run in no order "
                    "(an mbarrier hands over what was written if arrival and wait name .cluster)")
        return ("blocks run in no order: use an atomic, hand over through a flag with release and "
                "acquire (__threadfence()), or launch a second kernel")
    if any(name.startswith("tcgen05") for name in opcodes):
        return ("tcgen05.commit behind what reads shared memory, and a wait on its mbarrier before "
                "that is written")
    if "write after read" in hazard.message and second.opcode.startswith("cp.async"):
        wait = (", wgmma.wait_group before it" if first.opcode.startswith("wgmma") else "")
        return (f"a barrier{wait} between the read at {_line(first)} and this copy: the buffer is "
                "refilled while it may still be read (__syncthreads(), or an mbarrier at which the "
                "readers arrive and for which the thread that issues the copy waits)")
    if any(name.startswith("wgmma") for name in opcodes):
        return "wgmma.wait_group, then a barrier, before shared memory that it reads is written"
    if any(name.startswith("cp.async.bulk") for name in opcodes):
        if "global memory" in hazard.message.partition(":")[0]:
            return ("cp.async.bulk.wait_group in the thread that issued the copy (with .read it "
                    "waits for the source to be read, not for the result to be written), and then "
                    "a barrier")
        return ("wait for the bulk copy: on its mbarrier, with the parity of the phase that it "
                "completes, where it loads; by cp.async.bulk.wait_group.read, before its source is "
                "written, where it stores; and then a barrier")
    if UNCOMMITTED in hazard.message:
        return (f"cp.async.commit_group (__pipeline_commit) between the copy at {_line(first)} and "
                "its wait: wait_group waits for committed groups alone, so this copy may land "
                "behind any of them (where the wait is an mbarrier's, "
                "cp.async.mbarrier.arrive.noinc in place of a plain arrival)")
    if any(name.startswith("cp.async") for name in opcodes):
        return ("wait for the copy in the thread that issued it (cp.async.wait_group, "
                "__pipeline_wait_prior: of N, the newest N groups are not waited for), then "
                "__syncthreads()")
    if first.warp == second.warp:
        return _OF_HAZARDS["warning"]
    return "__syncthreads() between the two lines, on the way from either to the other"


def _in_place(message: str, first: Access, second: Access) -> str:
    """What to do where threads change by one line of the source what others access by it."""
    plain = all(re.match(r"(?:ld|st)\b", one.opcode) for one in (first, second))
    if not plain or not first.cuda or (first.cuda, first.callers) != (second.cuda, second.callers):
        return ""
    if first.line == second.line:
        return ("let one thread write it; where what all of them write counts, by an atomic "
                "(atomicAdd, atomicMax)")
    if "write after read" in message:
        return ("where each thread updates the word that it reads, an atomic (atomicAdd, "
                "atomicMax); where it reads another's, into a register first, and a barrier "
                "between the reads and the stores")
    return ""


def _for_copies(copies: Sequence[Instruction]) -> str:
    """What to do about shared memory that was read while copies into it were on their way."""
    one = copies[-1]
    where = source_line(one.cuda, one.callers) or f"PTX line {one.line}"
    said = (f"the copy at {where} is on its way at that moment: if it brings what is read, its "
            "wait is missing or too weak; ")
    if one.opcode.startswith("cp.async.bulk"):
        return said + ("wait on the copy's mbarrier with the parity of the phase that it "
                       "completes, 0 for the first, then 1 and 0 alternately: with the other one a "
                       "wait goes on at once")
    return said + ("cp.async.wait_group N leaves the newest N groups on their way, so N must be so "
                   "small that the copy's group is none of them, and a barrier must follow")


def _line(access: Access) -> str:
    """Name the source line of an access, or that of its PTX."""
    return source_line(access.cuda, access.callers) or f"PTX line {access.line}"


def for_error(
    error: Error, copies: Sequence[Instruction] = (), dynamic: Collection[str] = (), given: int = 0
) -> str:
    """Say in one sentence what to do about an error.

    `copies`: whose copies into shared memory were on their way then. `dynamic`: the arrays of the
    kernel that the launch sizes. `given`: the bytes that it gave them.
    """
    if dynamic and not given and isinstance(error, OutOfBounds) and "shared" in str(error):
        return ("the launch gives no bytes of dynamic shared memory to a kernel that has it "
                f"({', '.join(sorted(dynamic))}): give them (shared_mem=…, on the command line "
                "--shared …, in CUDA the third number of <<<…>>>)")
    if dynamic and isinstance(error, OutOfBounds) and "of shared memory, which has" in str(error):
        return (f"guard the access, or give more than the launch's {given:,} bytes of dynamic "
                f"shared memory ({', '.join(sorted(dynamic))})")
    if isinstance(error, Deadlock) and "(setmaxnreg" in str(error):
        return ("let setmaxnreg.dec give back what setmaxnreg.inc asks for: the warps must hold no "
                "more than the block has")
    if copies and isinstance(error, UninitialisedRead) and "shared memory" in str(error):
        return _for_copies(copies)
    if isinstance(error, UninitialisedRead) and ": register %" in str(error):
        return ("give the variable a value before it is read, on every path and in every lane "
                "(an accumulator begins with 0)")
    return next((text for kind, text in _OF_ERRORS if isinstance(error, kind)), "")


def instruction_of(error: Error, instructions: list[Instruction]) -> Instruction | None:
    """The instruction that an error's message names, if it names one."""
    waits = isinstance(error, Deadlock) and re.search(
        r"waiting at [^;]*?PTX line (\d+)", str(error))
    named = waits or re.search(r"PTX line (\d+)", str(error))
    line = int(named[1]) if named else None
    return next((each for each in instructions if each.line == line), None)
