"""Calls of device functions while they run: who returns where, and what each call had of its own.

Each call makes a record; a lane knows the record that it is in. Registers of a function stand in
slots of their own, so that only a function which may be called again before it returns must have
its registers put away: since register arrays are never changed in place, that is keeping them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike

from .batch import Batch
from .errors import Error
from .linking import Callee
from .masks import Mask
from .syntax import Instruction, Register, Variable

DEPTH = 1 << 10  # calls inside of each other; a GPU's stack of 1 KiB a thread ends earlier

Passed = Variable | Register | str | int  # what is passed: names of variables, constants' slots


@dataclass(eq=False)
class CallSite:
    """A call instruction: what it passes and where its lanes go on."""

    instruction: Instruction
    following: int
    results: tuple[Passed, ...]
    arguments: tuple[Passed, ...]
    caller: Callee | None


@dataclass(eq=False)
class Record:
    """One call of some lanes at once."""

    site: CallSite
    callee: Callee
    parent: ndarray  # the records that the lanes were in, (blocks, threads) or (1, 1)
    stack: ndarray  # where their frames began
    left: int  # lanes that have not returned
    depth: int
    saved: list[tuple[int, ndarray]]


class CallStack:
    """The calls of one batch that have not returned."""

    def __init__(self, f: Batch) -> None:
        self.f = f
        self.records: dict[int, Record] = {}
        self.last = 0
        self.current = np.zeros((1, 1), np.int64)
        self.stack = np.full((1, 1), f.memory.layout.static_local, np.int64)

    # -- calling --------------------------------------------------------------------------------

    def call(self, site: CallSite, callee: Callee) -> None:
        """Let the active lanes enter a function."""
        f = self.f
        if len(site.arguments) != len(callee.formals) or len(site.results) > len(callee.results):
            raise Error(
                f"{f.place(site.instruction)}: {len(site.arguments)} arguments for function "
                f"'{callee.name}', which takes {len(callee.formals)}"
            )
        lanes = f.active_lanes
        depth = 1 + max((self.records[n].depth for n in self._numbers(lanes)), default=0)
        layout = f.memory.layout
        if depth > DEPTH:
            self._overflow(site, callee, f"{DEPTH} calls inside of each other")
        passed = [self._value(a) for a in site.arguments]
        saved: list[tuple[int, ndarray]] = []
        if site.caller is not None and site.caller.name in callee.reaches | {callee.name}:
            slots = [register.slot for register in site.caller.registers]
            slots += [slot for slot, _, _ in layout.frames.get(site.caller.name, ())]
            saved = [(slot, f.r[slot]) for slot in slots]
        self.last += 1
        self.records[self.last] = Record(
            site, callee, self.current, self.stack, int(lanes.sum()), depth, saved
        )
        self.current = self._merged(np.full((1, 1), self.last), self.current, f.active)
        if callee.frame:
            base = self.stack
            end = base + layout.frame_bytes[callee.name]
            if (f.of_active(end) > layout.local_bytes).any():
                self._overflow(site, callee, f"{layout.stack_bytes} bytes of local memory")
            self.stack = self._merged(end, base, f.active)
            for slot, offset, dtype in layout.frames.get(callee.name, ()):
                self.set(slot, (base + offset).astype(dtype), f.active)
        for formal, (kind, value) in zip(callee.formals, passed, strict=True):
            self._pass(formal, kind, value, f.active)
        f.go(callee.start, f.active)

    def _overflow(self, site: CallSite, callee: Callee, what: str) -> None:
        f = self.f
        raise Error(
            f"{f.place(site.instruction)}: the call of '{callee.name}' needs more than {what}: "
            f"does its recursion end? {f.lane_names(f.active_lanes)}"
        )

    def leave(self) -> None:
        """Let the active lanes return, each to where it was called from."""
        f, active = self.f, self.f.active
        for number in self._numbers(f.active_lanes):
            record = self.records[number]
            mask = active if self.current.size == 1 else f.selected(self.current == number)
            values = [self._value(formal) for formal in record.callee.results]
            for slot, value in record.saved:
                self.set(slot, value, mask)
            for given, (kind, value) in zip(record.site.results, values, strict=False):
                self._pass(given, kind, value, mask)
            self.current = self._merged(record.parent, self.current, mask)
            self.stack = self._merged(record.stack, self.stack, mask)
            record.left -= f.lanes if mask is None else mask.lanes
            if record.left <= 0:
                del self.records[number]
            f.go(record.site.following, mask)

    def _numbers(self, lanes: ndarray) -> list[int]:
        """The records that lanes are in."""
        if self.current.size == 1:
            found = [int(self.current[0, 0])]
        else:
            found = np.unique(np.broadcast_to(self.current, lanes.shape)[lanes]).tolist()
        return [n for n in found if n]

    def _merged(self, new: ndarray, old: ndarray, mask: Mask | None) -> ndarray:
        if mask is None or new is old:
            return new
        if new.size == old.size == 1 and new[0, 0] == old[0, 0]:
            return old
        out = np.where(mask.array, new, old)
        return out[:1, :1] if (out == out[0, 0]).all() else out

    def set(self, slot: int, value: ndarray, mask: Mask | None) -> None:
        """Let some lanes have a register's value."""
        f = self.f
        old = f.r[slot]
        if mask is not None and value is not old:
            if old.dtype != value.dtype:
                old = old.view(value.dtype) if old.itemsize == value.itemsize else old.astype(
                    value.dtype)
            value = np.where(mask.array, value, old)
        f.r[slot] = value

    # -- alloca -----------------------------------------------------------------------------------

    def allocate(self, size: ndarray, align: int, instruction: Instruction) -> ndarray:
        """Return the local address of new memory, until the function returns."""
        f = self.f
        start = -(-self.stack // align) * align
        end = -(-(start + size) // 16) * 16
        if (f.of_active(end) > f.memory.layout.local_bytes).any() or (f.of_active(size) < 0).any():
            raise Error(
                f"{f.place(instruction)}: alloca needs more than {f.memory.layout.stack_bytes} "
                f"bytes of stack: {f.lane_names(f.active_lanes)}"
            )
        self.stack = self._merged(end, self.stack, f.active)
        return start

    def restore(self, stack: ndarray) -> None:
        """Let the memory of alloca end where it ended before."""
        self.stack = self._merged(stack, self.stack, self.f.active)

    # -- what the runtime's own functions are given (`isa.control_flow`) ------------------------

    def argument(self, site: CallSite, i: int, dtype: DTypeLike) -> ndarray:
        """Return an argument of a call in each lane, (blocks, threads)."""
        f, dtype = self.f, np.dtype(dtype)
        if i >= len(site.arguments):
            raise Error(f"{f.place(site.instruction)}: argument {i} is missing")
        kind, value = self._value(site.arguments[i])
        if kind == "memory":
            value = np.ascontiguousarray(self._bytes(value, dtype.itemsize, None)[0]).view(dtype)
            return value.reshape(f.shape)
        return f.full(value).view(dtype)

    def give(self, site: CallSite, value: ndarray) -> None:
        """Let the active lanes have the result of a call."""
        for given in site.results[:1]:
            self._pass(given, "register", value, self.f.active)

    # -- what is passed -------------------------------------------------------------------------

    def _value(self, given: Passed) -> tuple[str, ndarray]:
        """What an actual parameter or a result holds: a register's array, or an address."""
        if isinstance(given, int):
            return "register", self.f.r[given]
        if isinstance(given, Register):
            return "register", self.f.r[given.slot]
        name = given.name if isinstance(given, Variable) else given
        return "memory", self.address(name)

    def address(self, name: str) -> ndarray:
        """Where a variable of a function lies in local memory, of each lane or of all."""
        layout = self.f.memory.layout
        if name in layout.in_frame:
            return self.f.r[layout.in_frame[name]].astype(np.int64)
        return np.full((1, 1), layout.address_of(name), np.int64)

    def _pass(self, to: Passed, kind: str, value: ndarray, mask: Mask | None) -> None:
        f = self.f
        if to == "_":
            return
        if isinstance(to, Register):
            if kind == "memory":
                size = f.r[to.slot].itemsize
                value = np.ascontiguousarray(self._bytes(value, size, None)[0]).view(f"u{size}")
                value = value.reshape(f.shape)
            self.set(to.slot, value, mask)
            return
        name = to.name if isinstance(to, Variable) else str(to)
        target, nbytes = self.address(name), f.memory.layout.sizes[name]
        lanes = None if mask is None else mask.array.ravel()
        if kind == "register":
            raw = np.ascontiguousarray(f.full(value))[..., None].view(np.uint8)
            data = raw.reshape(f.lanes, -1)[:, :nbytes]
            data = data if lanes is None else data[lanes]
            valid: ndarray | int = 1
        else:
            data, valid = self._bytes(value, nbytes, lanes)
        where = self._places(target, nbytes, lanes)
        for rows, values in zip(f.memory.local_rows, (data, valid), strict=True):
            rows[where] = values

    def _bytes(
        self, address: ndarray, nbytes: int, lanes: ndarray | None
    ) -> tuple[ndarray, ndarray]:
        (storage, known), where = self.f.memory.local_rows, self._places(address, nbytes, lanes)
        return storage[where], known[where]

    def _places(self, address: ndarray, nbytes: int, lanes: ndarray | None) -> tuple:
        """Index the bytes of some lanes in local memory."""
        f = self.f
        if address.size == 1:
            at = int(address[0, 0])
            return slice(None) if lanes is None else lanes, slice(at, at + nbytes)
        where = f.full(address).ravel()
        rows = np.arange(f.lanes) if lanes is None else np.flatnonzero(lanes)
        limit = f.memory.layout.local_bytes - nbytes  # lanes that are elsewhere hold anything
        columns = np.clip(where[rows], 0, max(0, limit))
        return rows[:, None], columns[:, None] + np.arange(nbytes)
