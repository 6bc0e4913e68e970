"""What a ring's barriers count, event by event: read from the emulator while a block runs.

One block of a kernel runs a small problem, and after each instruction that touches an mbarrier, or
that copies, the barrier's phase, its pending arrivals and its pending bytes are noted. Copies land
as late as PTX allows, when somebody waits for them: so a wait that has to wait is seen.

`groups` does the same for cp.async, which has no barrier: a thread counts its own groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from lib import ptx
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem
from lib.ptx.core.batch import Issuer
from lib.ptx.core.machine import WARP
from lib.ptx.core.syntax import Address, Immediate, Register
from lib.ptx.isa.cp_async import CpAsyncGroups
from lib.ptx.isa.mbarrier import Mbarrier, Mbarriers
from lib.run.runner import emulate, prepare
from lib.show.display import table
from lib.show.version import Version

ROUNDS = 2  # how often the ring goes round: the parity has both values


@dataclass(frozen=True)
class Event:
    """One thing that happened to a barrier.

    Attributes
    ----------
    kind : str
        ``"expect"`` (arrive.expect_tx), ``"copy"`` (copies are started), ``"land"`` (their bytes
        arrive), ``"arrive"``, ``"wait"`` (a wait that returns) or ``"held"`` (one that does not).
    barrier : str
        ``"filled"``, whose phase needs bytes, or ``"freed"``.
    stage, step : int
        Which of the ring's stages, and the step along K: the one whose tile is loaded, waited for
        or given back; where a producer waits for a freed stage, the step that it will load.
    threads : tuple of int
        Who did it; none where bytes land, or where threads of another block of the cluster arrive.
    parity : int or None
        Waited for.
    nbytes : int
        Announced, copied or landed.
    arrivals, pending : int
        Pending arrivals and pending bytes behind it; zeros where it completes the phase.
    phase : int
        The phase in which it happened, from 0.
    completes : bool
        Whether it completes that phase.
    peers : int
        Arrivals that threads of the cluster's other blocks made at the same time.
    """

    kind: str
    barrier: str
    stage: int
    step: int
    threads: tuple[int, ...]
    parity: int | None
    nbytes: int
    arrivals: int
    pending: int
    phase: int
    completes: bool
    peers: int = 0


class Waited(NamedTuple):
    """A wait_group of one thread.

    Attributes
    ----------
    committed : int
        Groups that the thread had committed before.
    keep : int
        How many of the youngest may still be under way: the N of wait_group N.
    complete : int
        Groups that are complete behind it, the oldest first.
    flying : int
        Copies of the thread that are still under way behind it.
    """

    committed: int
    keep: int
    complete: int
    flying: int


class _State(NamedTuple):
    phase: int
    arrivals: int
    pending: int
    flying: int

    @staticmethod
    def of(barrier: Mbarrier) -> _State:
        return _State(barrier.phase, barrier.pending, barrier.tx,
                      sum(nbytes for nbytes, _, _ in barrier.flights))


@dataclass
class _Raw:
    """An event, the barrier still by its place in shared memory."""

    kind: str
    offset: int
    threads: tuple[int, ...]
    parity: int | None
    nbytes: int
    before: _State
    after: _State


@dataclass
class _Watch(ptx.Recorder):
    """Notes what the instructions of all warps of one block do to barriers."""

    raw: list[_Raw] = field(default_factory=list)
    last: dict[int, _State] = field(default_factory=dict)

    def begin(self, f: Any, index: int) -> tuple[Any, ...] | None:
        instruction = f.code.steps[index].instruction
        row = f.geometry.row_of(self.block)
        opcode = instruction.opcode
        if row is None or not opcode.startswith(("mbarrier.", "cp.async.bulk.tensor")) or (
                opcode.startswith("mbarrier.init") or "bulk_group" in opcode):
            return None
        threads = np.flatnonzero(_active(f, index, row))
        if not len(threads):
            return None
        self._landed(f, row)
        # Of a cluster, some threads of an instruction may name another block's barrier.
        named = [self._barrier(f, Issuer(row, thread, instruction, index))
                 for thread in threads.tolist()]
        barrier = next((one for one in named if one.row == row), None)
        if barrier is None:
            return None
        before = _State.of(barrier)
        who = tuple(thread for thread, one in zip(threads.tolist(), named, strict=True)
                    if one is barrier)
        if ".try_wait" in opcode or ".test_wait" in opcode:
            parity = int(value(f, instruction.operands[2], row, who[0])) & 1
            kind = "wait" if before.phase & 1 != parity else "held"
            self.raw.append(_Raw(kind, barrier.offset, who, parity, 0, before, before))
            return None
        return instruction, row, who, barrier, before

    def end(self, f: Any, index: int, taking: tuple[Any, ...] | None) -> None:
        if taking is None:
            return
        instruction, row, who, barrier, before = taking
        after = _State.of(barrier)
        if instruction.opcode.startswith("cp."):
            kind, nbytes = "copy", after.flying - before.flying
        elif "expect_tx" in instruction.opcode:
            kind = "expect"
            nbytes = int(value(f, instruction.operands[-1], row, who[0]))
        else:
            kind, nbytes = "arrive", 0
        self.last[barrier.offset] = after
        self.raw.append(_Raw(kind, barrier.offset, who, None, nbytes, before, after))

    def _landed(self, f: Any, row: int) -> None:
        """Note what came since the last look, by no instruction of this block."""
        for (home, offset), barrier in f.waiter(Mbarriers).objects.items():
            if home != row:
                continue
            now = _State.of(barrier)
            then = self.last.get(offset, now)
            if now.flying < then.flying:
                self.raw.append(_Raw("land", offset, (), None, then.flying - now.flying, then, now))
            elif (now.phase, now.arrivals) != (then.phase, then.arrivals):
                self.raw.append(_Raw("arrive", offset, (), None, 0, then, now))
            self.last[offset] = now

    def _barrier(self, f: Any, by: Issuer) -> Any:
        """The barrier that an instruction names: of a copy its last address, else its first."""
        instruction = by.instruction
        addresses = [o for o in instruction.operands if isinstance(o, Address)]
        address = addresses[-1 if instruction.opcode.startswith("cp.") else 0]
        if not isinstance(address.base, Register):
            raise ValueError(f"PTX line {instruction.line}: its mbarrier is no register's")
        at = int(value(f, address.base, by.row, by.thread)) + address.offset
        return f.waiter(Mbarriers).find(by, at)


@dataclass
class _Groups(ptx.Recorder):
    """Notes what the waits of one block's first thread find."""

    waits: list[Waited] = field(default_factory=list)

    def begin(self, f: Any, index: int) -> tuple[Any, ...] | None:
        instruction = f.code.steps[index].instruction
        row = f.geometry.row_of(self.block)
        if row is None or not instruction.opcode.startswith("cp.async.wait_group"):
            return None
        return (row, instruction.operands[0].bits) if _active(f, index, row)[0] else None

    def end(self, f: Any, index: int, taking: tuple[Any, ...] | None) -> None:
        if taking is None:
            return
        row, keep = taking
        shape, groups = (f.blocks, f.threads), f.waiter(CpAsyncGroups)
        committed = int(np.broadcast_to(groups.opened, shape)[row, 0])
        flying = [int(np.broadcast_to(copy.group, shape)[row, 0]) for copy in groups.pending
                  if copy.lanes[row, 0]]
        complete = min([committed, *flying]) if flying else max(0, committed - keep)
        self.waits.append(Waited(committed, keep, complete, len(flying)))


def trace_of(kernel: Kernel, variant: Variant) -> tuple[Event, ...]:
    """Run one tile, twice round the ring and one step more, and return what its barriers counted.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        One that loads by TMA.

    Raises
    ------
    ValueError
        If the block has no mbarrier that expects bytes.
    """
    watch = _Watch(0, 0)
    observe(kernel, variant, watch)
    return tuple(named(watch.raw))


def groups_of(kernel: Kernel, variant: Variant) -> tuple[Waited, ...]:
    """Run one tile of a kernel whose ring cp.async fills; what thread 0's waits found.

    Raises
    ------
    ValueError
        If the kernel waits for no group.
    """
    watch = _Groups(0, 0)
    observe(kernel, variant, watch)
    if not watch.waits:
        raise ValueError(f"{kernel.stem} {variant.name}: no cp.async.wait_group")
    return tuple(watch.waits)


def named(raw: Iterable[_Raw]) -> list[Event]:
    """Give barriers their roles and stages, and put the copies of one tile together."""
    raw = list(raw)
    filling = sorted({one.offset for one in raw if one.kind == "expect"})
    freeing = sorted({one.offset for one in raw} - set(filling))
    if not filling:
        raise ValueError("no mbarrier of this kernel expects bytes")
    found: list[Event] = []
    for one in raw:
        fills = one.offset in filling
        stage = (filling if fills else freeing).index(one.offset)
        turn = one.before.phase
        if one.kind == "wait" and fills:
            turn -= 1  # the phase that is over
        elif one.kind == "held" and not fills:
            turn += 1  # the stage is not free yet
        completes = one.after.phase > one.before.phase
        came = one.before.arrivals - (0 if completes else one.after.arrivals)
        event = Event(
            one.kind, "filled" if fills else "freed", stage, turn * len(filling) + stage,
            one.threads, one.parity, one.nbytes, 0 if completes else one.after.arrivals,
            0 if completes else one.after.pending, one.before.phase, completes,
            came - len(one.threads) if one.kind == "arrive" else 0)
        if found and event.kind == "copy" and (
                found[-1].kind, found[-1].step, found[-1].barrier) == (
                    "copy", event.step, "filled"):
            event = replace(event, nbytes=event.nbytes + found.pop().nbytes)
        if not (found and event.kind == "held" and event == found[-1]):
            found.append(event)
    return found


def observe(kernel: Kernel, variant: Variant, watch: ptx.Recorder) -> None:
    """Run a variant on one tile of C per block of a cluster, its copies landing late.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        Its own tile is kept.
    watch : ptx.Recorder
        What looks on.
    """
    rows, columns = variant.tile
    stages = variant.schedule.stages or variant.roles.stages or 1
    down, across = variant.schedule.cluster
    problem = variant.problem(rows * down, columns * across, (ROUNDS * stages + 1) * variant.step)
    emulate_watched(kernel, variant, problem, watch, landing="late")


def emulate_watched(kernel: Kernel, variant: Variant, problem: Problem, watch: ptx.Recorder,
                    sms: int | None = None, **order: Any) -> None:
    """Run a variant on a problem in some order, while a recorder looks on."""
    main = prepare(kernel, variant, problem, [problem.inputs()], True, sms).steps[0][-1]
    compiled = compile_kernel(kernel, main.variant, kernel.oldest(variant), ptx_only=True)
    emulate(compiled, main.launch, main.arguments, trace=False, recorder=watch, **order)


def _active(f: Any, index: int, row: int) -> np.ndarray:
    """The threads of a block that run an instruction, its guard included."""
    step, active = f.code.steps[index], f.active_lanes[row]
    if step.guard is None:
        return active
    slot, negated = step.guard
    return active & (np.broadcast_to(f.r[slot], (f.blocks, f.threads))[row] ^ negated)


def value(f: Any, operand: object, row: int, thread: int) -> Any:
    """What an operand is to one thread of a batch's row.

    Raises
    ------
    ValueError
        If it is neither a register nor a number.
    """
    if isinstance(operand, Immediate):
        return operand.bits
    if not isinstance(operand, Register):
        raise ValueError(f"{operand} is neither a register nor a number")
    return np.broadcast_to(f.r[operand.slot], (f.blocks, f.threads))[row, thread]


def trace(version: Version, steps: tuple[int, ...]) -> None:
    """Display what the barriers of a ring count while one block computes one tile.

    Parameters
    ----------
    version : Version
        18 to 23: one that loads by TMA.
    steps : tuple of int
        Steps along K whose events are shown.
    """
    chosen = version.kernel.variants[0]
    events = trace_of(version.kernel, chosen)
    rows = [
        (f"{event.step}, {event.stage}", _who(event, chosen.roles.warps),
         _does(event) + ("" if event.parity is None else f" of parity {event.parity}"),
         event.barrier, f"{event.arrivals}, {event.pending:,}",
         f"{event.phase} → {event.phase + 1}" if event.completes else event.phase)
        for event in events if event.step in steps
    ]
    table(
        ("step, stage", "who", "does", "barrier", "pending arrivals, bytes", "phase"),
        rows, f"emulated: {version.kernel.stem}, {chosen.name}, one tile in "
        f"{1 + max(event.step for event in events if event.kind == 'expect')} steps, copies "
        "landing as late as they may; counts are those behind the event",
    )


def groups(version: Version) -> None:
    """Display the groups of cp.async that a thread has committed and waited for, wait by wait.

    Parameters
    ----------
    version : Version
        16 or 17: one whose ring cp.async fills.
    """
    chosen = version.kernel.variants[0]
    stages = chosen.schedule.stages
    rows: list[tuple[object, ...]] = []
    waits = groups_of(version.kernel, chosen)
    tiles = len(waits) - 2  # one wait before the loop, one in each step, one behind it
    for number, one in enumerate(waits):
        last = one.complete - 1
        read = f"{last}, in stage {last % stages}" if last < tiles else "none: behind the last"
        rows.append((number, one.committed, one.keep, f"0 to {last}", read, one.flying))
    if len(rows) > 6:  # what lies between the first and the last is the same
        rows[3:-3] = [("…", *[""] * (len(rows[0]) - 1))]
    table(
        ("wait", "groups committed", "N of `wait_group N`", "groups complete",
         "tile that may be read now", "copies of the thread still under way"),
        rows, f"emulated: {version.kernel.stem}, {chosen.name}, {stages} stages, thread 0; group i "
        f"has the copies of tile i, of {tiles}; behind the last it is empty",
    )


def _who(event: Event, roles: tuple[tuple[str, int], ...]) -> str:
    if not event.threads:
        return "TMA" if event.kind == "land" else "the cluster's other blocks"
    warps = sorted({thread // WARP for thread in event.threads})
    where = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]} to {warps[-1]}"
    if len(warps) == 2 and warps[1] > warps[0] + 1:
        where = f"warps {warps[0]} and {warps[1]}"
    whole = len(event.threads) == WARP * len(warps)
    said = where if whole else f"{where}, {len(event.threads) // len(warps)} thread" + (
        " each" if len(warps) > 1 else "")
    role = _role(warps, roles)
    return f"{role}: {said}" if role else said


def _role(warps: list[int], roles: tuple[tuple[str, int], ...]) -> str:
    first = 0
    for name, count in roles:
        if all(first <= warp < first + count for warp in warps):
            return name
        first += count
    return ""


def _does(event: Event) -> str:
    if event.kind == "expect":
        return f"`arrive.expect_tx` {event.nbytes:,} B"
    if event.kind == "copy":
        return f"starts the copies, {event.nbytes:,} B"
    if event.kind == "land":
        return f"{event.nbytes:,} B land"
    if event.kind == "arrive":
        others = f", with {event.peers} of the cluster's other blocks" if event.peers and (
            event.threads) else ""
        return f"`arrive`{others}: the stage is given back"
    which = "the tile is there" if event.barrier == "filled" else "the stage is free"
    return f"`try_wait`: {which}" if event.kind == "wait" else "`try_wait`: not yet"
