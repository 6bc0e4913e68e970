"""What happened, reduced as it happens: nothing here grows with the number of accesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from . import banks
from .masks import by_warp

WATCHED_MOST = 64  # accesses that are kept of one line
MATRIX = ("ldmatrix", "stmatrix")  # kinds whose passes are the rows of one 8 x 8 matrix


@dataclass(frozen=True)
class Wide:
    """A PTX access that ptxas made wider: `nbytes` a lane at the base register plus `offset`."""

    offset: int
    nbytes: int


@dataclass
class Site:
    """One memory instruction, and what it did over the whole launch.

    Attributes
    ----------
    line : int
        PTX line.
    cuda : tuple of (str, int) or None
        CUDA file and line.
    opcode : str
        For example ``ld.shared.f32``.
    kind : str
        "load", "store", "atomic", "ldmatrix", "stmatrix" or "copy" (cp.async: a site in global
        memory for what it reads and one in shared memory for what it writes).
    space : str
        "global", "shared", "local", "const" or "generic".
    bytes_per_lane : int
        Width of the access, after merging.
    requests : int
        Warp instructions with at least one active lane.
    lanes : int
        Active lanes, summed over requests.
    sectors : int
        Distinct 32-byte sectors, summed over requests (global memory).
    wavefronts, ideal : int
        Shared-memory wavefronts, summed over requests; see `banks`.
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

    addresses: np.ndarray
    active: np.ndarray
    bytes_per_lane: int
    step: int


@dataclass
class _Tally:
    """A site's accesses with one pattern, counted but not yet added up."""

    site: Site
    offset: int
    nbytes: int
    pattern: object = None
    counts: tuple = ()
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
    """

    watch: tuple[int, int] | None = None
    merge: Mapping[int, Wide | None] | None = None
    watched: dict[int, list[WarpAccess]] = field(default_factory=dict)
    _sites: dict[tuple, Site] = field(default_factory=dict)
    _tallies: dict[int, _Tally | None] = field(default_factory=dict)
    _blocks: dict[int, list[int]] = field(default_factory=dict)
    _guarded: dict[int, list[int]] = field(default_factory=dict)
    _code: object = None

    # -- told by the lanes ----------------------------------------------------------------------

    def begin(self, code):
        """Remember whose instructions these are."""
        self._code = code

    def executed(self, block, f):
        """Count a block of instructions run by the active lanes."""
        tally = self._blocks.get(block.start)
        if tally is None:
            tally = self._blocks[block.start] = [0, 0]
        if f.active is None:
            tally[0] += f.blocks * f.warps
            tally[1] += f.lanes
        else:
            tally[0] += f.active.warps
            tally[1] += f.active.lanes

    def guarded(self, index: int, chosen, f):
        """Count an instruction with a predicate, for the lanes where it holds."""
        tally = self._guarded.setdefault(index, [0, 0])
        if chosen is None:
            tally[0] += f.blocks * f.warps
            tally[1] += f.lanes
        elif chosen is not False:
            tally[0] += chosen.warps
            tally[1] += chosen.lanes

    def access(self, index, pattern, f, instruction, kind, space, offset, nbytes, part=0):
        """Count an access of the active lanes to global or shared memory.

        An instruction that the hardware does in several accesses (wmma.load) numbers its parts.
        """
        # A generic access may come to both spaces; each is a site of its own.
        place = index if space == "global" else ~index
        if part:
            place = place, part
        try:
            tally = self._tallies[place]
        except KeyError:
            tally = self._enter(place, index, instruction, kind, space, offset, nbytes)
        if tally is None:
            return
        if tally.pattern is not pattern:
            self._flush(tally)
            tally.pattern = pattern
            tally.counts = _count(
                pattern, tally.site.space, tally.offset, tally.nbytes, tally.site.kind in MATRIX
            )
        tally.times += 1
        if self.watch is not None:
            self._watch(tally, pattern, f, f.origin + index)

    def end(self):
        """Add up what the last batch left; patterns of a batch die with it."""
        for tally in self._tallies.values():
            if tally is not None:
                self._flush(tally)
                tally.pattern = None

    def _enter(self, place, index, instruction, kind, space, offset, nbytes):
        if self.merge is not None and instruction.line in self.merge:
            wide = self.merge[instruction.line]
            if wide is None:
                self._tallies[place] = None
                return None
            offset, nbytes = wide.offset, wide.nbytes
        key = (instruction.line, index, space, kind)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = Site(
                instruction.line, instruction.cuda, instruction.opcode, kind, space, nbytes
            )
        tally = self._tallies[place] = _Tally(site, offset, nbytes)
        return tally

    def _flush(self, tally: _Tally):
        if tally.times:
            site, times = tally.site, tally.times
            requests, lanes, sectors, wavefronts, ideal = tally.counts
            site.requests += times * requests
            site.lanes += times * lanes
            site.sectors += times * sectors
            site.wavefronts += times * wavefronts
            site.ideal += times * ideal
            tally.times = 0

    def _watch(self, tally: _Tally, pattern, f, step: int):
        block, warp = self.watch
        row = f.geometry.row_of(block)
        if row is None or warp >= f.warps:
            return
        kept = self.watched.setdefault(tally.site.line, [])
        if len(kept) >= WATCHED_MOST:
            return
        threads = slice(warp * 32, min(warp * 32 + 32, f.threads))
        width = threads.stop - threads.start
        active = np.zeros(32, bool)
        active[:width] = True if pattern.active is None else pattern.active.array[row, threads]
        if not active.any():
            return
        addresses = np.zeros(32, np.int64)
        every = pattern.addresses(tally.offset)
        addresses[:width] = np.broadcast_to(every, (f.blocks, f.threads))[row, threads]
        kept.append(WarpAccess(np.where(active, addresses, 0), active, tally.nbytes, step))

    # -- asked by people ------------------------------------------------------------------------

    @property
    def sites(self) -> list[Site]:
        """Every memory instruction that ran, by PTX line."""
        return [self._sites[key] for key in sorted(self._sites)]

    @property
    def instructions(self) -> dict[str, tuple[int, int]]:
        """Opcode to (warp instructions, thread instructions) that were executed."""
        total: dict[str, list[int]] = {}
        code = self._code
        for start, (warps, threads) in self._blocks.items():
            block = code.blocks[start]
            for step in code.steps[start : start + block.length]:
                if step.guard is None or step.ends:
                    count = total.setdefault(step.instruction.opcode, [0, 0])
                    count[0] += warps
                    count[1] += threads
        for index, (warps, threads) in self._guarded.items():
            count = total.setdefault(code.steps[index].instruction.opcode, [0, 0])
            count[0] += warps
            count[1] += threads
        return {name: tuple(total[name]) for name in sorted(total)}

    def counters(self) -> dict[str, int]:
        """Return the totals that a GPU's profiler counts as well.

        Returns
        -------
        dict of str to int
            Requests and sectors of global memory; warp instructions, wavefronts and ideal
            wavefronts of shared memory; lanes that executed a single-precision fma. The wavefronts
            are those of every access of shared memory, ldmatrix, stmatrix and cp.async included;
            their instructions are counted by `matrix_counters`.
        """
        total = self._total
        return {
            "global_load_requests": total("global", "load", "requests"),
            "global_load_sectors": total("global", "load", "sectors"),
            "global_store_requests": total("global", "store", "requests"),
            "global_store_sectors": total("global", "store", "sectors"),
            "shared_load_instructions": total("shared", "load", "requests"),
            "shared_store_instructions": total("shared", "store", "requests"),
            "shared_wavefronts": sum(s.wavefronts for s in self._sites.values()),
            "shared_wavefronts_ideal": sum(s.ideal for s in self._sites.values()),
            "ffma_thread_instructions": sum(
                threads
                for name, (_, threads) in self.instructions.items()
                if name.startswith("fma.") and name.endswith(".f32")
            ),
        }

    def matrix_counters(self) -> dict[str, int]:
        """Return what tensor-core kernels do besides: matrix moves, products, asynchronous copies.

        Returns
        -------
        dict of str to int
            Warp instructions of LDSM and STSM (those that wmma.load expands to included) and their
            wavefronts; warp instructions of mma and of wmma.mma, as PTX counts them; requests,
            global sectors and shared wavefronts of cp.async (LDGSTS), which are counted apart from
            loads and stores.
        """
        total, executed = self._total, self.instructions.items()

        def warps(name: str) -> int:
            return sum(count for opcode, (count, _) in executed if opcode.startswith(name))

        return {
            "ldmatrix_instructions": total("shared", "ldmatrix", "requests"),
            "ldmatrix_wavefronts": total("shared", "ldmatrix", "wavefronts"),
            "ldmatrix_wavefronts_ideal": total("shared", "ldmatrix", "ideal"),
            "stmatrix_instructions": total("shared", "stmatrix", "requests"),
            "stmatrix_wavefronts": total("shared", "stmatrix", "wavefronts"),
            "stmatrix_wavefronts_ideal": total("shared", "stmatrix", "ideal"),
            "mma_instructions": warps("mma."),
            "wmma_instructions": warps("wmma.mma."),
            "copy_instructions": total("shared", "copy", "requests"),
            "copy_requests": total("global", "copy", "requests"),
            "copy_sectors": total("global", "copy", "sectors"),
            "copy_wavefronts": total("shared", "copy", "wavefronts"),
            "copy_wavefronts_ideal": total("shared", "copy", "ideal"),
        }

    def _total(self, space: str, kind: str, what: str) -> int:
        """Sum a count over the sites of a kind."""
        return sum(
            getattr(s, what) for s in self._sites.values() if (s.space, s.kind) == (space, kind)
        )


def _count(pattern, space: str, offset: int, nbytes: int, rows: bool) -> tuple:
    """Return (requests, lanes, sectors, wavefronts, ideal) of one access with a pattern.

    Sectors do not change when all addresses move by a multiple of 32, nor do banks when they move
    by a multiple of 128; so a register that is read at many offsets is analysed once for each
    remainder.
    """
    period = 128 if space == "shared" else 32
    key = (space == "shared", (pattern.low + offset) % period, nbytes, rows)
    if key not in pattern.counts:
        pattern.counts[key] = _analyse(pattern, *key)
    return pattern.counts[key]


def _rows(relative: np.ndarray, f) -> np.ndarray:
    """Return addresses by warp, (blocks or 1, warps, 32)."""
    if relative.shape[1] == 1:
        relative = np.broadcast_to(relative, (len(relative), f.threads))
    return by_warp(relative)


def _of_warps(pattern, shared: bool, phase: int, nbytes: int, rows_of_8: bool) -> tuple:
    """Count for a mask of whole warps: what each warp costs does not depend on the others.

    The schedules that part the warps make a new mask at every turn. So each warp's cost is kept
    with the register, and only summed over the warps that run.
    """
    f, active = pattern.f, pattern.active
    costs = f.warp_costs(pattern.register)
    key = (shared, (phase - pattern.low) % 128, nbytes, rows_of_8)
    if key not in costs:
        raw = pattern.register.view(f"i{pattern.register.dtype.itemsize}").astype(np.int64)
        rows = _rows(raw + key[1], f)
        shape, flat = rows.shape[:2], np.ascontiguousarray(rows).reshape(-1, 32)
        if shared:
            costs[key] = [c.reshape(shape) for c in _waves(flat, None, nbytes, rows_of_8)]
        else:
            costs[key] = [banks.sectors(flat, None, nbytes).reshape(shape)]
    totals = [int(np.where(active.by_warps, cost, 0).sum()) for cost in costs[key]]
    return pattern.warps, pattern.lanes, *((0, *totals) if shared else (*totals, 0, 0))


def _waves(rows, active, nbytes: int, rows_of_8: bool) -> tuple:
    """Return wavefronts and ideal of each warp."""
    if rows_of_8:
        return banks.matrix_wavefronts(rows, active)
    return banks.wavefronts(rows, active, nbytes)


def _analyse(pattern, shared: bool, phase: int, nbytes: int, rows_of_8: bool) -> tuple:
    f, relative, active = pattern.f, pattern.relative, pattern.active
    requests, lanes = pattern.warps, pattern.lanes
    if relative.shape[1] == 1 and (not shared or nbytes <= 4) and phase % nbytes == 0:
        # One address a warp: one sector, one wavefront.
        sector, wave = (0, requests) if shared else (requests, 0)
        return requests, lanes, sector, wave, wave
    relative = relative + phase
    if active is None and f.threads % 32 == 0:
        mask = None
        if not shared and not (pattern.bits | phase) & (nbytes - 1):
            total = banks.total_sectors(relative.reshape(-1))
            if total is not None:
                return requests, lanes, f.blocks // len(relative) * total, 0, 0
    elif active is not None and active.whole_warps:
        return _of_warps(pattern, shared, phase, nbytes, rows_of_8)
    else:
        mask = np.ones((1, f.threads), bool) if active is None else active.array
        mask = by_warp(mask, False)
    rows = _rows(relative, f)
    if mask is not None:
        shape = np.broadcast_shapes(rows.shape, mask.shape)
        rows = np.broadcast_to(rows, shape)
        mask = np.ascontiguousarray(np.broadcast_to(mask, shape)).reshape(-1, 32)
    scale = f.blocks // len(rows)  # blocks that share their addresses were analysed once
    rows = np.ascontiguousarray(rows).reshape(-1, 32)
    if not shared:
        return (requests, lanes, scale * int(banks.sectors(rows, mask, nbytes).sum()), 0, 0)
    waves, ideal = _waves(rows, mask, nbytes, rows_of_8)
    return (requests, lanes, 0, scale * int(waves.sum()), scale * int(ideal.sum()))
