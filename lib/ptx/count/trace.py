"""What happened, reduced as it happens: nothing here grows with the number of accesses."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern, Shape
from ..core.batch import BasicBlock, Batch
from ..core.code import Code
from ..core.machine import LINE, WARP
from ..core.masks import Mask, by_warp
from ..core.syntax import Instruction, MemoryAccess
from . import cp_async
from .banks import matrix_wavefronts, sectors, total_sectors, wavefronts

# -- What one access by all active lanes costs: requests, sectors, wavefronts. --------------------


# How shared memory serves an access: whether its passes are the rows of 8 x 8 matrices, and
# whether passes may go together.
LOAD, STORE, ROWS = "load", "store", "rows"
ADDRESS_BITS = (1 << 44) - 1  # which hold every window of shared memory


def served_as(kind: str) -> str:
    return {"ldmatrix": ROWS, "stmatrix": ROWS, "store": STORE}.get(kind, LOAD)


def access_cost(pattern: AccessPattern, space: str, offset: int, nbytes: int, served: str) -> tuple:
    """Return (requests, lanes, sectors, wavefronts, ideal) of one access with a pattern.

    Sectors do not change when all addresses move by a multiple of 32, nor do banks when they move
    by a multiple of 128; so a register that is read at many offsets is analysed once for each
    remainder.
    """
    period = 128 if space == "shared" else 32
    key = (space == "shared", (pattern.low + offset) % period, nbytes, served)
    counts = pattern.shape.counts
    if key not in counts:
        counts[key] = _analyse(pattern, *key)
    return counts[key]


def _rows(relative: ndarray, f: Any) -> ndarray:
    """Return addresses by warp, (blocks or 1, warps, 32)."""
    if relative.shape[1] == 1:
        relative = np.broadcast_to(relative, (len(relative), f.threads))
    return by_warp(relative)


def _taking(pattern: AccessPattern) -> ndarray:
    """Return the lanes that take part by warp, (blocks or 1, warps, 32)."""
    active = pattern.active
    lanes = np.ones((1, pattern.f.threads), bool) if active is None else active.array
    return by_warp(lanes, False)


def _of_warps(pattern: AccessPattern, shared: bool, phase: int, nbytes: int, served: str) -> tuple:
    """Count for a mask of whole warps: what each warp costs does not depend on the others.

    The schedules that part the warps make a new mask at every turn. So each warp's cost is kept
    with the register, and only summed over the warps that run.
    """
    f = pattern.f
    costs = f.warp_costs(pattern.register)
    key = (shared, (phase - pattern.low) % 128, nbytes, served)
    if key not in costs:
        raw = pattern.register.view(f"i{pattern.register.dtype.itemsize}").astype(np.int64)
        rows = _rows(raw + key[1], f)
        shape, flat = rows.shape[:2], np.ascontiguousarray(rows).reshape(-1, 32)
        if shared:
            flat = flat & ADDRESS_BITS  # of warps that do not run it may be anything
            costs[key] = [c.reshape(shape) for c in _waves(flat, None, nbytes, served)]
        else:
            costs[key] = [sectors(flat, None, nbytes).reshape(shape)]
    totals = [int(np.where(pattern.by_warps, cost, 0).sum()) for cost in costs[key]]
    return pattern.warps, pattern.lanes, *((0, *totals) if shared else (*totals, 0, 0))


def _waves(rows: ndarray, active: ndarray | None, nbytes: int, served: str) -> tuple:
    """Return wavefronts and ideal of each warp."""
    if served == ROWS:
        return matrix_wavefronts(rows, active)
    return wavefronts(rows, active, nbytes, served == STORE)


def _analyse(pattern: AccessPattern, shared: bool, phase: int, nbytes: int, served: str) -> tuple:
    f, relative, active = pattern.f, pattern.relative, pattern.active
    requests, lanes = pattern.warps, pattern.lanes
    if relative.shape[1] == 1 and (not shared or nbytes <= 4) and phase % nbytes == 0:
        # One address a warp: one sector, one wavefront.
        sector, wave = (0, requests) if shared else (requests, 0)
        return requests, lanes, sector, wave, wave
    relative = relative + phase
    if active is None and f.threads % WARP == 0:
        mask = None
        if not shared and not (pattern.bits | phase) & (nbytes - 1):
            total = total_sectors(relative.reshape(-1))
            if total is not None:
                return requests, lanes, f.blocks // len(relative) * total, 0, 0
    elif active is not None and active.whole_warps:
        return _of_warps(pattern, shared, phase, nbytes, served)
    else:
        mask = _taking(pattern)
    rows = _rows(relative, f)
    if mask is not None:
        shape = np.broadcast_shapes(rows.shape, mask.shape)
        rows = np.broadcast_to(rows, shape)
        mask = np.ascontiguousarray(np.broadcast_to(mask, shape)).reshape(-1, 32)
    scale = f.blocks // len(rows)  # blocks that share their addresses were analysed once
    rows = np.ascontiguousarray(rows).reshape(-1, 32)
    if not shared:
        return (requests, lanes, scale * int(sectors(rows, mask, nbytes).sum()), 0, 0)
    waves, ideal = _waves(rows, mask, nbytes, served)
    return (requests, lanes, 0, scale * int(waves.sum()), scale * int(ideal.sum()))


def copy_cost(
    to: AccessPattern, source: AccessPattern | None, to_phase: int, source_phase: int | None,
    nbytes: int, past_l1: bool,
) -> cp_async.Totals:
    """Sum the costs of all warps' copies."""
    f, asking = to.f, _taking(to)
    arrays = np.broadcast_arrays(
        _rows(to.relative + to_phase, f),
        _rows(to.relative if source is None else source.relative + (source_phase or 0), f),
        asking, np.zeros_like(asking) if source is None else _taking(source),
    )
    scale = f.blocks // len(arrays[0])  # blocks that share their addresses are analysed once
    flat = [np.ascontiguousarray(array).reshape(-1, 32) for array in arrays]
    # Whole lines of distance change nothing, so warps that differ in those alone are one.
    for i, rows in enumerate(flat[:2]):
        flat[i] = rows - rows.min(axis=1, keepdims=True) // LINE * LINE
    first, many = _alike(flat)
    where_to, where_from, active, reading = (array[first] for array in flat)
    found = cp_async.cost(where_to, where_from, active, reading, nbytes, past_l1)
    sums = (scale * int((count * many).sum()) for count in found)
    return cp_async.Totals(*sums)


def _alike(arrays: list[ndarray]) -> tuple[ndarray, ndarray]:
    """Find the distinct rows of arrays of one length: where each comes first, and how often."""
    places: dict[tuple[bytes, ...], list[int]] = {}
    for i, rows in enumerate(zip(*arrays, strict=True)):
        places.setdefault(tuple(row.tobytes() for row in rows), []).append(i)
    first = np.array([each[0] for each in places.values()], np.intp)
    return first, np.array([len(each) for each in places.values()], np.int64)


MAX_WATCHED = 64  # accesses that are kept of one line
Place = int | tuple[int, int]  # of a site: an index, ~index for shared memory; and the part
PEER = "shared::cluster"  # the space of loads from the shared memory of a peer
COUNTS = ("requests", "lanes", "sectors", "wavefronts", "ideal")  # of a `Site`
NOTHING = 0, 0, 0, 0, 0  # of these


class Wide(NamedTuple):
    """A PTX access that ptxas made wider: `nbytes` a lane at the base register plus `offset`.

    With `turns` it serves several turns of a loop, and is executed in those where it is aligned.
    """

    offset: int
    nbytes: int
    turns: bool = False


@dataclass
class Site:
    """One memory instruction, and what it did over the whole launch.

    Attributes
    ----------
    line : int
        PTX line.
    cuda : tuple of (str, int) or None
        CUDA file and line.
    callers : tuple of (str, int)
        File and line of each call that it was inlined from, from the inside out.
    opcode : str
        For example ``ld.shared.f32``.
    kind : str
        "load", "store", "atomic", "ldmatrix", "stmatrix", "wgmma" and "tcgen05" (their operands in
        shared memory) or "copy" (cp.async: a site in global memory for what it reads and one in
        shared memory for what it writes).
    space : str
        "global", "shared", "local", "const" or "generic"; "shared::cluster" for what a block loads
        from a peer's shared memory, which the counters leave out as Nsight Compute does.
    bytes_per_lane : int
        Width of the access, after merging.
    requests : int
        Warp instructions with at least one active lane.
    lanes : int
        Active lanes, summed over requests.
    sectors : int
        Distinct 32-byte sectors, summed over requests (global memory); of a copy's site in shared
        memory, its transfers (see `cp_async`).
    wavefronts, ideal : int
        Shared-memory wavefronts, summed over requests; see `banks` and `cp_async`.
    """

    line: int
    cuda: tuple[str, int] | None
    opcode: str
    kind: str
    space: str
    bytes_per_lane: int
    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0
    callers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class WarpAccess:
    """One access of the watched warp.

    Attributes
    ----------
    addresses : ndarray of int64, shape (32,)
        Byte address of each lane; 0 where it was not active.
    active : ndarray of bool, shape (32,)
        Which lanes took part.
    bytes_per_lane : int
        Width of the access.
    step : int
        Instructions that the emulator had run before; an order, not a time.
    """

    addresses: ndarray
    active: ndarray
    bytes_per_lane: int
    step: int


@dataclass
class _Tally:
    """A site's accesses with one pattern, counted but not yet added up."""

    site: Site
    offset: int
    nbytes: int
    served: str
    turns: bool = False
    pattern: AccessPattern | None = None
    counts: tuple[int, int, int, int, int] = NOTHING
    times: int = 0


@dataclass
class Trace:
    """Counters of one launch.

    Parameters
    ----------
    watch : tuple of (int, int) or None
        Block and warp whose addresses are kept.
    merge : mapping of int to Wide or None
        What ptxas made of PTX lines: None for an access that another absorbed.
    ffma : mapping of int to int
        FFMA that ptxas made of PTX lines which are no fma.
    watched : dict of int to list of WarpAccess
        Accesses of the watched warp by PTX line, `MAX_WATCHED` of each at most.
    """

    watch: tuple[int, int] | None = None
    merge: Mapping[int, Wide | None] | None = None
    ffma: Mapping[int, int] = field(default_factory=dict)
    watched: dict[int, list[WarpAccess]] = field(default_factory=dict)
    _sites: dict[tuple, Site] = field(default_factory=dict)
    _tallies: dict[Place, _Tally | None] = field(default_factory=dict)
    _blocks: dict[int, list[int]] = field(default_factory=dict)
    _guarded: dict[int, list[int]] = field(default_factory=dict)
    _copies: dict[tuple, cp_async.Totals] = field(default_factory=dict)
    _code: Code | None = None  # whose instructions these are

    # -- told by the lanes ----------------------------------------------------------------------

    def executed(self, block: BasicBlock, f: Batch) -> None:
        """Count a block of instructions run by the active lanes."""
        _count(self._blocks, block.start, f.active, f)

    def guarded(self, index: int, chosen: Mask | None | Literal[False], f: Batch) -> None:
        """Count an instruction with a predicate, for the lanes where it holds."""
        _count(self._guarded, index, chosen, f)

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, space: str
    ) -> None:
        """Count an access of the active lanes to global or shared memory.

        Parameters
        ----------
        f : Batch
        access : MemoryAccess
        pattern : AccessPattern
            Where the active lanes access memory.
        space : str
            The memory that it came to, as `Site` has it: a generic access may come to several.
        """
        site = access.index if space == "global" else ~access.index
        place: Place = site
        if access.part or space == PEER:
            place = site, -1 if space == PEER else access.part
        try:
            tally = self._tallies[place]
        except KeyError:
            tally = self._enter(place, access, access.kind, space)
        if tally is None:
            return
        if tally.pattern is not pattern:
            tally.pattern = pattern
            if tally.turns and (pattern.low + tally.offset) % tally.nbytes:
                counts = NOTHING  # an access of another turn has done it
            else:
                counts = access_cost(
                    pattern, tally.site.space, tally.offset, tally.nbytes, tally.served
                )
            if counts is not tally.counts:  # those of one shape are one object
                self._flush(tally)
                tally.counts = counts
        tally.times += 1
        if self.watch is not None and tally.counts is not NOTHING:
            self._watch(self.watch, tally, pattern, f, f.origin + access.index)

    def copied(
        self, f: Batch, writing: MemoryAccess, to: AccessPattern, reading: MemoryAccess,
        source: AccessPattern | None, past_l1: bool,
    ) -> None:
        """Count a cp.async: what it writes, and what it reads, if any lane does.

        It is a site of shared memory and one of global memory, and what it costs in one depends on
        the addresses in the other.
        """
        halves = [(~writing.index, writing, to)]
        if source is not None:
            halves.append((reading.index, reading, source))
        tallies = []
        for place, access, pattern in halves:
            tally = self._tallies.get(place) or self._enter(place, access, "copy", access.space)
            if tally is None:
                return
            tallies.append((tally, pattern))
        if any(tally.pattern is not pattern for tally, pattern in tallies):
            phase = None if source is None else (source.low + reading.offset) % LINE
            costs = self._copy_costs(
                to, source, (to.low + writing.offset) % LINE, phase, writing.nbytes,
                past_l1,
            )
            shares = (costs.transfers, costs.wavefronts, costs.ideal), (costs.sectors, 0, 0)
            for (tally, pattern), (sectors, waves, ideal) in zip(tallies, shares, strict=False):
                self._flush(tally)
                tally.pattern = pattern
                tally.counts = pattern.warps, pattern.lanes, sectors, waves, ideal
        for tally, pattern in tallies:
            tally.times += 1
            if self.watch is not None:
                self._watch(self.watch, tally, pattern, f, f.origin + writing.index)

    def site(
        self, index: int, instruction: Instruction, kind: str, space: str, nbytes: int
    ) -> Site:
        """Return the site of an instruction, made at its first access."""
        key = (instruction.line, index, space, kind)
        if key not in self._sites:
            self._sites[key] = Site(
                instruction.line, instruction.cuda, instruction.opcode, kind, space, nbytes,
                callers=instruction.callers)
        return self._sites[key]

    def multiplied(self, index: int, instruction: Instruction, warps: int, wavefronts: int) -> None:
        """Count what wgmma or tcgen05.mma reads of shared memory.

        An H100 counts all bytes of the operands that lie there, 128 a wavefront: so it is for the
        128-byte swizzle in the records of 17 and 18. Other layouts have not been measured, nor has
        tcgen05.

        Parameters
        ----------
        index : int
            Of the step.
        instruction : Instruction
        warps : int
            That issued it.
        wavefronts : int
            Of all of their operands.
        """
        site = self.site(index, instruction, instruction.parts[0], "shared", 0)
        site.requests += warps
        site.lanes += warps * WARP
        site.wavefronts += wavefronts
        site.ideal += wavefronts

    def _copy_costs(
        self, to: AccessPattern, source: AccessPattern | None, to_phase: int,
        source_phase: int | None, nbytes: int, past_l1: bool,
    ) -> cp_async.Totals:
        """Return the sums over all warps; a loop's copies differ by a constant, which is nothing.

        So what was found is kept by the contents of the patterns, and beside the destination's
        shape by the source's: shapes that are one object need not be compared.
        """
        shape = source and source.shape
        short = "copy", id(shape), to_phase, source_phase, nbytes, past_l1
        if short not in to.shape.counts:
            whose = _digest(to.shape), source and _digest(source.shape)
            key = (*whose, *short[2:], to.f.blocks)
            if key not in self._copies:
                self._copies[key] = copy_cost(to, source, to_phase, source_phase, nbytes, past_l1)
            # Which keeps the shape, so that its id stays its.
            to.shape.counts[short] = shape, self._copies[key]
        return to.shape.counts[short][1]

    def end(self) -> None:
        """Add up what the last batch left; patterns of a batch die with it."""
        for tally in self._tallies.values():
            if tally is not None:
                self._flush(tally)
                tally.pattern = None

    def _enter(
        self, place: Place, access: MemoryAccess, kind: str, space: str
    ) -> _Tally | None:
        offset, nbytes, turns = access.offset, access.nbytes, False
        instruction = access.instruction
        if self.merge is not None and instruction.line in self.merge:
            wide = self.merge[instruction.line]
            if wide is None:
                self._tallies[place] = None
                return None
            offset, nbytes, turns = wide
        site = self.site(access.index, instruction, kind, space, nbytes)
        tally = self._tallies[place] = _Tally(site, offset, nbytes, served_as(kind), turns)
        return tally

    def _flush(self, tally: _Tally) -> None:
        if tally.times:
            for name, count in zip(COUNTS, tally.counts, strict=True):
                setattr(tally.site, name, getattr(tally.site, name) + tally.times * count)
            tally.times = 0

    def _watch(
        self, watched: tuple[int, int], tally: _Tally, pattern: AccessPattern, f: Batch,
        step: int,
    ) -> None:
        block, warp = watched
        row = f.geometry.row_of(block)
        if row is None or warp >= f.warps:
            return
        accesses = self.watched.setdefault(tally.site.line, [])
        if len(accesses) >= MAX_WATCHED:
            return
        threads = slice(warp * WARP, min(warp * WARP + WARP, f.threads))
        width = threads.stop - threads.start
        active = np.zeros(32, bool)
        active[:width] = pattern.active_lanes[row, threads]
        if not active.any():
            return
        addresses = np.zeros(32, np.int64)
        every = pattern.addresses(tally.offset)
        addresses[:width] = f.full(every)[row, threads]
        accesses.append(WarpAccess(np.where(active, addresses, 0), active, tally.nbytes, step))

    # -- asked by people ------------------------------------------------------------------------

    @property
    def sites(self) -> list[Site]:
        """Every memory instruction that ran, by PTX line."""
        return [self._sites[key] for key in sorted(self._sites)]

    @property
    def instructions(self) -> dict[str, tuple[int, int]]:
        """Opcode to (warp instructions, thread instructions) that were executed."""
        return self._executed(lambda instruction: instruction.opcode)

    @property
    def lines(self) -> dict[int, tuple[int, int]]:
        """PTX line to (warp instructions, thread instructions) that were executed."""
        return self._executed(lambda instruction: instruction.line)

    @property
    def multiply_adds(self) -> dict[tuple[tuple[str, int], ...], int]:
        """Lanes that executed a single-precision fma, by CUDA line and those it was called from."""
        def place(instruction: Instruction) -> tuple[tuple[tuple[str, int], ...], int]:
            where = (instruction.cuda or ("", instruction.line)), *instruction.callers
            return where, self._ffma(instruction)

        found: Counter = Counter()
        for (where, each), (_, threads) in self._executed(place).items():
            if each:
                found[where] += each * threads
        return dict(found)

    def _ffma(self, instruction: Instruction) -> int:
        """Single-precision multiply-adds that an instruction is in the machine code."""
        opcode = instruction.opcode
        fma = opcode.startswith("fma.") and opcode.endswith(".f32")
        return self.ffma.get(instruction.line, int(fma))

    def _executed(self, key: Callable[[Instruction], Any]) -> dict:
        total: dict = {}
        code = self._code
        if code is None:
            return total
        for start, (warps, threads) in self._blocks.items():
            block = code.blocks[start]
            for step in code.steps[start : start + block.length]:
                if step.guard is None or step.ends:
                    count = total.setdefault(key(step.instruction), [0, 0])
                    count[0] += warps
                    count[1] += threads
        for index, (warps, threads) in self._guarded.items():
            count = total.setdefault(key(code.steps[index].instruction), [0, 0])
            count[0] += warps
            count[1] += threads
        return {name: tuple(total[name]) for name in sorted(total)}

    def counters(self) -> dict[str, int]:
        """Return the totals that a GPU's profiler counts as well.

        Returns
        -------
        dict of str to int
            Requests and sectors of global memory; warp instructions, wavefronts and ideal
            wavefronts of shared memory; lanes that executed a single-precision fma. An H100 counts
            cp.async among the requests and sectors of global loads, and so do these. The
            wavefronts are those of every access of shared memory, ldmatrix, stmatrix, wgmma and
            cp.async included; their instructions are counted by `matrix_counters`.
        """
        total = self._total
        return {
            "global_load_requests": total("global", "load", "requests")
            + total("global", "copy", "requests"),
            "global_load_sectors": total("global", "load", "sectors")
            + total("global", "copy", "sectors"),
            "global_store_requests": total("global", "store", "requests"),
            "global_store_sectors": total("global", "store", "sectors"),
            "shared_load_instructions": total("shared", "load", "requests"),
            "shared_store_instructions": total("shared", "store", "requests"),
            "shared_wavefronts": sum(s.wavefronts for s in self._sites.values()),
            "shared_wavefronts_ideal": sum(s.ideal for s in self._sites.values()),
            "ffma_thread_instructions": sum(
                each * threads
                for each, (_, threads) in self._executed(self._ffma).items()
            ),
        }

    def matrix_counters(self) -> dict[str, int]:
        """Return what tensor-core kernels do besides: matrix moves, products, asynchronous copies.

        Returns
        -------
        dict of str to int
            Warp instructions of LDSM and STSM (those that wmma.load expands to included) and their
            wavefronts; warp instructions of mma, of wmma.mma, of wgmma and of tcgen05.mma, as PTX
            counts them, and the wavefronts of wgmma's operands; requests, sectors and shared
            wavefronts of cp.async, as the counters of LDGSTS have them.
        """
        total, executed = self._total, self.instructions.items()

        def warps(name: str) -> int:
            return sum(count for opcode, (count, _) in executed if opcode.startswith(name))

        def of(kind: str) -> dict[str, int]:
            return {f"{kind}_{name}": total("shared", kind, what) for name, what in (
                ("instructions", "requests"), ("wavefronts", "wavefronts"),
                ("wavefronts_ideal", "ideal"))}

        return {
            **of("ldmatrix"), **of("stmatrix"),
            "mma_instructions": warps("mma."),
            "wmma_instructions": warps("wmma.mma."),
            "wgmma_instructions": warps("wgmma.mma_async."),
            "tcgen05_instructions": warps("tcgen05.mma."),
            "wgmma_wavefronts": total("shared", "wgmma", "wavefronts"),
            **of("copy"),
            "copy_requests": total("global", "copy", "requests"),
            "copy_sectors": total("shared", "copy", "sectors"),
        }

    def _total(self, space: str, kind: str, what: str) -> int:
        """Sum a count over the sites of a kind."""
        return sum(
            getattr(s, what) for s in self._sites.values() if (s.space, s.kind) == (space, kind)
        )


def _count(
    tallies: dict[int, list[int]], index: int, lanes: Mask | None | Literal[False], f: Batch
) -> None:
    """Add warps and lanes to those that ran an instruction."""
    tally = tallies.setdefault(index, [0, 0])
    if lanes is None:
        tally[0] += f.blocks * f.warps
        tally[1] += f.lanes
    elif lanes is not False:
        tally[0] += lanes.warps
        tally[1] += lanes.lanes


def _digest(shape: Shape) -> bytes:
    """Stand for the addresses of a shape and the lanes that have them, in any batch."""
    if "digest" not in shape.counts:
        arrays = [shape.relative] if shape.active is None else [shape.relative, shape.active.array]
        content = hashlib.blake2b(digest_size=16)
        for array in arrays:
            content.update(repr(array.shape).encode())
            content.update(np.ascontiguousarray(array).data)
        shape.counts["digest"] = content.digest()
    return shape.counts["digest"]
