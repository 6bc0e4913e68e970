"""Races: two accesses to one word, one of them a write, that no barrier orders (PTX ISA 8.7.1).

Each warp has a clock, which a barrier advances. `known[block, a, b]` is the last time of warp b
whose accesses are ordered before what warp a does now; a barrier joins these. A word remembers its
last writer and its readers with their times, and an access conflicts with those that it does not
know. Lanes of one warp count as ordered by ``bar.warp.sync`` only; a conflict between them is a
warning, as is a word written twice with the same value.

Words of shared memory remember the last read by each warp; those of global memory, which are too
many for that, some of the reads (`global_races`). What orders blocks is in `between`, and what
orders asynchronous copies and wgmma in `proxy`.
"""

from __future__ import annotations

import numpy as np

from .between import GPU, Between, orders_blocks, strength
from .global_races import GlobalShadow, report_lost
from .hazards import Access, Hazards
from .masks import any_in_warp
from .proxy import INDEX, PENDING, THREAD, TIME, Proxy
from .syntax import SIZES

_MEMORY_OPCODES = ("ld", "ldu", "st", "atom", "red")


class Races:
    """The detector of one launch.

    Parameters
    ----------
    hazards : Hazards
        Where findings go.
    code : Code
        Whose instructions the stamps refer to.
    """

    def __init__(self, hazards: Hazards, code):
        self.hazards, self.code = hazards, code
        widths = [4]
        atomic = np.zeros(len(code.steps) + 1, bool)
        for i, step in enumerate(code.steps):
            parts = step.instruction.parts
            if parts[0] in _MEMORY_OPCODES:
                widths += [SIZES[part] for part in parts[1:] if part in SIZES]
            atomic[i] = parts[0] in ("atom", "red")
        self.granule = min(widths)  # bytes of a word, so that neighbours are not confused
        self.is_atomic = atomic
        self.strength = np.array([*(strength(s.instruction) for s in code.steps), 0])
        self.between = Between(self) if orders_blocks(code) else None
        self.global_shadows: dict[int, GlobalShadow] = {}
        self.asynchronous = any(
            step.instruction.parts[0] in ("mbarrier", "wgmma", "mapa")
            or "cluster" in step.instruction.parts
            or step.instruction.opcode.startswith(("cp.async.bulk", "cp.reduce.async.bulk"))
            for step in code.steps
        )
        self.proxy: Proxy | None = None

    def begin(self, f):
        """Start a batch: its clocks and its shared memory are new."""
        self.f = f
        shape = (f.blocks, f.warps)
        self.peers = f.geometry.peers
        self.warps = self.peers * f.warps  # of a cluster
        self.clock = np.ones(shape, np.int64)
        self.proxy = Proxy(self, f) if self.asynchronous else None
        readers = self.warps + (self.proxy.readers if self.proxy else 0)
        self.known = np.zeros((*shape, readers), np.int64)
        self.floor = 0
        self._grouped = None
        self.stamped = (None,)  # what global_races makes of a group
        self.block = np.arange(f.blocks)[:, None]
        rank = self.block % self.peers
        self.thread = np.arange(f.threads)[None, :] + rank * (32 * f.warps)
        self.warp = np.arange(f.threads)[None, :] // 32
        self.own = np.arange(f.warps)[None, :] + rank * f.warps  # column of each warp
        if self.between is not None:
            self.between.begin(f)
        cells = len(f.memory.shared.storage) // self.granule
        self.shared_shadow = _SharedShadow(self, cells, readers)

    # -- what orders accesses -------------------------------------------------------------------

    def barrier(self, arrived: np.ndarray | None, waiting: np.ndarray | None):
        """Join the clocks of the warps that met; None means all of every block."""
        if arrived is None and self.peers == 1 and self.proxy is None and self.between is None:
            self.known = np.maximum(self.known, self.clock[:, None, :])
            self.clock = self.clock + 1
        else:
            if arrived is None:
                came = waits = np.ones(self.clock.shape, bool)
            else:
                came, waits = any_in_warp(arrived), any_in_warp(waiting)
            self.known = self._joined(self.known, came, waits, True)
            if self.proxy is not None:
                self.proxy.fenced = self._joined(self.proxy.fenced, came, waits, False)
            if self.between is not None:
                self.between.barrier(came, waits)
            self.clock = self.clock + came
        self._set_floor()

    def _joined(self, known, came, waits, own: bool):
        """Return what the warps that waited know, when some of each block have come."""
        joined = np.where(came[:, :, None], known, 0).max(axis=1)
        if own:
            new = np.zeros_like(joined)
            np.put_along_axis(new, self.own + 0 * came, np.where(came, self.clock, 0), axis=1)
            joined = np.maximum(joined, new)
        learned = np.maximum(known, joined[:, None, :])
        return np.where(waits[:, :, None], learned, known)

    def _set_floor(self):
        """Find the time that every warp knows of every other: what is older needs no look."""
        self.floor = int(self.known[:, :, : self.warps].min())

    def fence(self, f):
        """Let a fence of the GPU's scope publish what the active lanes' warps know."""
        if self.between is not None:
            self.between.fence(f)

    def proxy_fence(self, f):
        """Tell the detector of the asynchronous proxy, if there is one, of fence.proxy.async."""
        if self.proxy is not None:
            self.proxy.fence(f)

    def warp_barrier(self, f):
        """Order the lanes of each warp that came to bar.warp.sync."""
        everyone = np.ones((f.blocks, f.threads), bool)
        came = any_in_warp(everyone if f.active is None else f.active.array)
        row, warp = np.nonzero(came)
        own = self.own[row, warp] if self.peers > 1 else warp
        self.known[row, warp, own] = self.clock[row, warp]
        self.clock = self.clock + came
        self._set_floor()

    # -- accesses -------------------------------------------------------------------------------

    def access(self, f, segment, pattern, offset, width, index, instruction, kind, values):
        """Compare an access of the active lanes with what came before, and remember it.

        Parameters
        ----------
        segment, pattern, offset, width
            Where the active lanes access memory, and how many bytes each.
        index : int
            Of the instruction.
        kind : str
            "load", "store", "atomic" or "copy", the write of a cp.async.
        values : list of ndarray or None
            What a store or copy writes, one array an element.
        """
        if segment.space not in ("shared", "global"):
            return
        if segment.space == "shared":
            shadow = self.shared_shadow
        else:
            shadow = self.global_shadow(segment)
        group = self._group(f)
        if segment.rank is not None and self.proxy is not None:
            self._tell_remote(f, segment.rank, pattern.active, index)
        start = (pattern.low + offset - segment.base) // self.granule
        cells = np.broadcast_to(pattern.index(self.granule, segment.rows), (f.blocks, f.threads))
        if pattern.active is not None:
            cells = cells[pattern.active.array]
        old = None
        if kind in ("store", "copy"):
            old = self._differs(f, segment, pattern, offset, values)
        for part in range(width // self.granule):
            where = cells + (start + part)
            if kind == "load":
                shadow.load(where, group, index)
            else:
                shadow.store(where, group, index, old, kind == "atomic")
            if kind == "copy":
                shadow.writer[where] = _pending(index, group[1])
        if self.between is not None and segment.space == "global" and self.strength[index] == GPU:
            self.between.strong(segment, cells + start, group, instruction)

    def _tell_remote(self, f, rank: int, active, index: int):
        """Let the blocks of this rank be used by their peers."""
        lanes = np.ones((f.blocks, f.threads), bool) if active is None else active.array
        for row in np.flatnonzero(lanes.any(axis=1)).tolist():
            home = row // self.peers * self.peers + rank
            if home != row:
                self.proxy.uses_remotely(home, row, np.flatnonzero(lanes[row]), index)

    def global_shadow(self, segment):
        """Return what is remembered of an array in global memory."""
        if segment.base not in self.global_shadows:
            cells = -(-len(segment.storage) // self.granule)
            self.global_shadows[segment.base] = GlobalShadow(self, cells)
        return self.global_shadows[segment.base]

    def landed(self, f, segment, pattern, offset, width, index):
        """Let the copies of the active lanes be their own writes from now on."""
        group = self._group(f)
        _, thread, _, time = group
        start = (pattern.low + offset - segment.base) // self.granule
        cells = np.broadcast_to(pattern.index(self.granule, segment.rows), (f.blocks, f.threads))
        if f.active is not None:
            cells = cells[f.active.array]
        writer, mine = self.shared_shadow.writer, _pending(index, thread)
        for part in range(width // self.granule):
            where = cells + (start + part)
            still = writer.take(where) == mine
            writer[where[still]] = ((time << TIME) | (index << INDEX) | thread)[still]

    def _group(self, f):
        """Return block, thread, warp and time of the active lanes."""
        # Until the next barrier the same lanes have the same times.
        if self._grouped is not None and self._grouped[:2] == (id(self.clock), id(f.active)):
            return self._grouped[2]
        time = np.take_along_axis(self.clock, np.broadcast_to(self.warp, (f.blocks, f.threads)), 1)
        shape = (f.blocks, f.threads)
        arrays = self.block, self.thread, self.warp, time
        group = tuple(np.broadcast_to(a, shape) for a in arrays)
        if f.active is not None:
            group = tuple(a[f.active.array] for a in group)
        self._grouped = (id(self.clock), id(f.active), group, self.clock, f.active)
        return group

    def _differs(self, f, segment, pattern, offset, values):
        """Return the bytes that each lane stores, and whether they change the memory."""
        shape = (f.blocks, f.threads)
        raw = [np.ascontiguousarray(np.broadcast_to(v, shape)) for v in values]
        new = np.stack(raw, axis=-1).view(np.uint8).reshape(*shape, -1)
        now = f.memory.read(segment, pattern, offset, values[0].dtype, len(values))
        now = now.reshape(*now.shape[:2], -1)
        now = np.ascontiguousarray(np.broadcast_to(now, (*shape, len(values))))
        changes = (now.view(np.uint8).reshape(new.shape) != new).any(axis=-1)
        if pattern.active is not None:
            return new[pattern.active.array], changes[pattern.active.array]
        return new, changes

    # -- findings -------------------------------------------------------------------------------

    def report(self, kind, what, earlier, later):
        """Report pairs of accesses, one for each pair of instructions.

        Parameters
        ----------
        earlier, later : tuple of ndarray
            Index of the instruction, linear block, thread; one element a pair.
        """
        keys = earlier[0] * len(self.is_atomic) + later[0]
        for at in np.unique(keys, return_index=True)[1].tolist():
            first, second = (self._access(*(int(a[at]) for a in side)) for side in (earlier, later))
            self.hazards.add_pair(kind, what, first, second)

    def _access(self, index: int, block: int, thread: int) -> Access:
        instruction, geometry = self.code.steps[index].instruction, self.f.geometry
        row = block - geometry.first
        if thread >> 5 >= self.warps:
            row, thread = self.proxy.issuer(row, thread >> 5)
        rank, thread = divmod(thread, 32 * self.f.warps)
        return Access(
            instruction.line, instruction.cuda, instruction.opcode,
            geometry.block_index(row + rank), thread // 32, thread % 32,
        )  # fmt: skip

    def linear(self, rows: np.ndarray) -> np.ndarray:
        """Return, for rows of this batch, the number of the first block of their cluster."""
        return rows // self.peers * self.peers + self.f.geometry.first


def _pending(index: int, thread: np.ndarray) -> np.ndarray:
    """Return the stamp of a copy on its way."""
    return (PENDING << TIME) | (index << INDEX) | thread


class _SharedShadow:
    """Who wrote each word of shared memory last, and who read it since."""

    def __init__(self, races: Races, cells: int, warps: int):
        self.races, self.warps = races, warps
        self.writer = np.zeros(cells, np.int64)
        self.readers = np.zeros(cells * warps, np.int64)

    def load(self, cells, group, index):
        races = self.races
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "read after write", None, False)
        _, thread, _, time = group
        column = thread >> 5
        self.readers[cells * self.warps + column] = (time << TIME) | (index << INDEX) | thread

    def store(self, cells, group, index, old, atomic):
        races = self.races
        _, thread, _, time = group
        seen = self.writer.take(cells)
        if int(seen.max(initial=0)) >> TIME > races.floor:
            self._compare(seen, group, index, "write after write", old, atomic)
        readers = self.readers.reshape(-1, self.warps).take(cells, axis=0)
        if int(readers.max(initial=0)) >> TIME > races.floor:
            for other in range(self.warps):
                seen = readers[..., other]
                if int(seen.max(initial=0)) >> TIME > races.floor:
                    self._compare(seen, group, index, "write after read", None, atomic)
        mine = (time << TIME) | (index << INDEX) | thread
        self.writer[cells] = mine
        if not atomic:
            self._same_instruction(cells, mine, group, index, old)

    def _compare(self, seen, group, index, what, old, atomic):
        """Report the earlier accesses in `seen` that the lanes' warps do not know."""
        races = self.races
        block, thread, warp, _ = group
        other = seen & THREAD
        known = races.known[block, warp, np.minimum(other >> 5, races.known.shape[2] - 1)]
        pending = seen >> TIME >= PENDING  # even for the thread that issued it
        bad = (seen >> TIME > known) & ((other != thread) | pending)
        first = (seen >> INDEX) & ((1 << 20) - 1)
        if atomic:
            bad &= ~races.is_atomic[np.minimum(first, len(races.is_atomic) - 1)]
        if not bad.any():
            return
        mild = bad & (other >> 5 == thread >> 5) & ~pending
        if old is not None:
            mild = mild | (bad & ~old[1])
        for kind, where in (("race", bad & ~mild), ("warning", mild)):
            if where.any():
                rows = races.linear(block[where])
                later = (np.full(rows.shape, index), rows, thread[where])
                races.report(
                    kind, f"{what} in shared memory", (first[where], rows, other[where]), later
                )

    def _same_instruction(self, cells, mine, group, index, old):
        """Report lanes that wrote different values to one word in one instruction."""
        got = self.writer.take(cells)
        lost = got != mine
        if not lost.any():
            return
        block, thread, _, _ = group
        report_lost(self.races, cells, lost, block, thread, index, old, "shared")
