"""Modules, functions and launches: CuPy's calling convention over NumPy arrays."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy import ndarray

from . import (
    advice,
    isa,  # noqa: F401 - enters every instruction
)
from .core.arguments import Layout, device_memory, initial_bytes, parameter_bytes
from .core.code import Code
from .core.errors import Error, LaunchError, ParseError, source_line
from .core.execution import Execution, Settings
from .core.geometry import (
    LOCAL_LIMIT,
    STATIC_LIMIT,
    Geometry,
    Pending,
    check_geometry,
    cluster_sizes,
    shared_base,
    shared_limit,
    three_sizes,
)
from .core.hazards import FAILED, Access, Hazard, Hazards
from .core.linking import referred
from .core.memory import Memory
from .core.parser import parse
from .core.recorder import Recorded, Recorder
from .core.segment import DeviceMemory
from .core.syntax import Entry, Program
from .count.trace import Trace, Wide
from .progress import Progress
from .race.detector import RaceDetector
from .report import Launch
from .source_lines import SourceLines

# Blocks are independent (but see `spin_loops`), so a big grid runs in batches of about so many
# lanes, and shared and local memory of about so many bytes. Larger batches gain nothing.
LANES_PER_BATCH = 1 << 16
BYTES_PER_BATCH = 1 << 26
BYTES_TOGETHER = 1 << 31  # of blocks that wait for each other, which are one batch
RESIDENT = 2  # clusters that run at once where a running one may cancel those that have not begun
TURNS = 1 << 20  # of a batch; the longest kernels of this size take a few ten thousand
if sys.platform == "linux":
    # glibc gives freed arrays of 128 KiB and more back to the system at once, so that each new
    # register costs page faults, until one so large was freed: then it keeps them for the next.
    np.empty(BYTES_PER_BATCH // 4, np.uint8)
SCHEDULES = ("lowest", "highest", "random")
LANDINGS = ("early", "late")
MAX_MODULES = 32  # parsed and decoded: a few MB each where loops are unrolled


@dataclass(frozen=True)
class _Parts:
    """What the runs of one launch have in common."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    device: DeviceMemory
    layout: Layout
    parameters: ndarray
    shared_mem: int
    size: int  # blocks of a batch
    workspace: int


@contextmanager
def _as_before(device: DeviceMemory, before: Sequence[ndarray]) -> Iterator[None]:
    """Let global memory be what it was before a launch; afterwards, what it is."""
    results = [segment.storage.copy() for segment in device.segments]
    try:
        for segment, storage in zip(device.segments, before, strict=False):
            if segment.writeable:
                segment.storage[:] = storage
        yield
    finally:
        for segment, storage in zip(device.segments, results, strict=False):
            if segment.writeable:
                segment.storage[:] = storage


@lru_cache(MAX_MODULES)
def parsed(text: str) -> Program:
    """What a PTX text says, for everybody who reads it: nobody changes it."""
    return parse(text)


@lru_cache(MAX_MODULES)
def _read(text: str, machine: str | None) -> tuple[Program, dict[str, Code]]:
    """Parse a module; beside it lies what has been decoded of it. No launch changes either.

    Reading unrolled code takes longer than running it on a small problem, and the same kernel is
    run on many problems. Modules share this, but not their variables.
    """
    program = parsed(text)
    return replace(program, machine=machine or program.target), {}


class Module:
    """PTX text, parsed once.

    Parameters
    ----------
    text : str
        PTX, as NVRTC returns it.
    machine : str, optional
        The architecture, such as ``"sm_90a"``, whose machine code is counted where it depends on
        that: later GPUs run older PTX, and move the fragments of wmma.load with fewer, wider
        instructions. The one that the PTX names if not given.
    sources : mapping of str to str, optional
        Texts of the source, by the name that they were compiled under or its last part, so that
        reports can show their lines.
    folders : iterable of str or Path, optional
        Where files of the source may be read for that, if the PTX names them: regular files of at
        most 4 MiB with a suffix of C++ or CUDA, in these folders and below. Without them no file
        is ever read: PTX from outside may name any.

    Raises
    ------
    ParseError
        If the text is no PTX.
    """

    def __init__(
        self, text: str, machine: str | None = None, sources: Mapping[str, str] | None = None,
        folders: Iterable[str | Path] = (),
    ) -> None:
        if not isinstance(text, str):
            raise ParseError(f"PTX text must be a str, not {type(text).__name__}")
        self.program, self._codes = _read(text, machine)
        self.sources = SourceLines(dict(sources or {}), tuple(map(Path, folders)))
        # Weak, for they hold their module: a circle would keep what is decoded for a while.
        self._functions: WeakValueDictionary[str, Function] = WeakValueDictionary()
        self._storage: dict[str, ndarray] = {}

    def get_function(self, name: str) -> Function:
        """Return a kernel, decoded.

        Raises
        ------
        Error
            If there is no such kernel; the message names the nearest.
        UnsupportedInstruction
            If the kernel has an instruction that the emulator lacks.
        """
        entries = self.program.entries
        if name not in entries:
            near = difflib.get_close_matches(str(name), entries, 1, 0.0)
            hint = f"; the nearest is '{near[0]}'" if near else "; the module has no kernels"
            raise Error(f"no kernel '{name}' in this module{hint}")
        function = self._functions.get(name)
        if function is None:
            if name not in self._codes:
                self._codes[name] = Code(self.program, entries[name])
            function = Function(self, entries[name], self._codes[name])
            self._functions[name] = function
        return function

    def get_global(self, name: str) -> ndarray:
        """Return the bytes of a module variable, as a uint8 array that launches update in place."""
        if not self._in_memory(name):
            raise Error(f"no global variable '{name}' in this module")
        if name not in self._storage:
            self._storage[name] = initial_bytes(self.program, self.program.variables[name])
        return self._storage[name]

    def _in_memory(self, name: str) -> bool:
        variable = self.program.variables.get(name)
        return variable is not None and variable.space in ("global", "const") and variable.count > 0

    def variables(self, code: Code) -> dict[str, ndarray]:
        """The bytes of the module variables that a kernel reaches; a header may bring hundreds."""
        named = referred(self.program, {name for _, name, _, _ in code.registers.addresses})
        return {name: self.get_global(name) for name in sorted(named) if self._in_memory(name)}


class Function:
    """A kernel that can be launched: ``function(grid, block, args, shared_mem=0)``."""

    def __init__(self, module: Module, entry: Entry, code: Code) -> None:
        self.module, self.entry, self.name, self.code = module, entry, entry.name, code

    def __call__(
        self, grid: object, block: object, args: Sequence[Any], shared_mem: int = 0, *,
        watch: tuple[int, int] | None = None, trace: bool = True, races: bool = False,
        schedule: str = "lowest", seed: int = 0, merge: Mapping[int, Any] | None = None,
        ffma: Mapping[int, int] | None = None, cluster: object | None = None,
        landing: str = "early", turns: int | None = TURNS, strict: bool = False,
        go_on: bool = False, recorder: Recorder | None = None,
        progress: Progress | None = None,
    ) -> Launch:
        """Run the kernel; arrays are updated in place.

        Parameters
        ----------
        grid, block : tuple of int
            Up to three sizes each.
        args : sequence
            One value a parameter: NumPy arrays for pointers, numbers for scalars, bytes for
            structures.
        shared_mem : int
            Bytes of dynamic shared memory a block.
        watch : tuple of (int, int), optional
            Linear block number and warp whose addresses shall be kept.
        trace : bool
            Whether to count.
        races : bool
            Whether to look for races; about three times slower. A kernel that may go on behind a
            wait for an mbarrier which has failed runs twice (`Launch.failed`).
        schedule : str
            "lowest": all warps together, the lowest program counter first. "highest": in each
            block the highest warp runs until it must wait. "random": random warps at each turn.
        seed : int
            For the random schedule.
        merge : mapping of int to Wide, tuple or None, optional
            What ptxas made of the accesses at these PTX lines, as `Wide` has it: None where another
            absorbed it, or it was left out. Without it accesses are counted as the PTX has them.
        ffma : mapping of int to int, optional
            How many FFMA ptxas made of each of these PTX lines, where not one of each fma.
        cluster : int or tuple of int, optional
            Blocks of a cluster, up to three sizes; by default what the kernel was compiled for.
        landing : str
            When asynchronous copies and wgmma have their effect. "early": at once. "late": when
            somebody waits for them, as late as PTX allows. wgmma reads shared memory when it is
            issued in either case: beside copies that land late, that is what shows a missing wait.
            Who overwrites its operands before wgmma.wait_group is reported as a race.
        turns : int or None
            Runs of instructions between branches that a batch of blocks may take before the
            kernel is stopped as endless; None: any number.
        strict : bool
            Stop where shared or local memory is read that nobody wrote. Without it such a value
            may be read, and stops the kernel when it is used: see `core.unwritten`. Also remark on
            what PTX's text leaves open, such as a ``tcgen05.fence`` behind the wait for operands.
        go_on : bool
            Go on after an error: the block (or cluster) that it stops is left, the others run, and
            `Launch.errors` has what happened. Blocks then run one after the other.
        recorder : Recorder, optional
            Keeps what one warp does, instruction by instruction. The launch ends when it has
            enough: its blocks are then not done, and their counts mean nothing.
        progress : Progress, optional
            Told how far the launch is.

        Returns
        -------
        Launch
            Counters, hazards, allocations.

        Raises
        ------
        LaunchError
            For a grid, block or argument that CUDA would refuse as well.
        Error
            What the kernel did wrong: see `errors`.
        """
        grid, block = three_sizes(grid, "grid"), three_sizes(block, "block")
        check_geometry(self.entry, grid, block, shared_mem)
        for name, given, known in (
            ("schedule", schedule, SCHEDULES), ("landing", landing, LANDINGS)
        ):
            if given not in known:
                raise LaunchError(f"{name} '{given}'; there are {', '.join(known)}")
        cluster = cluster_sizes(self.entry, cluster, grid)
        device = device_memory(self.module.program, self.module.variables(self.code))
        parameters = parameter_bytes(self.entry, args, device)
        workspace = 0
        # this_grid().sync() counts blocks there
        if "%envreg2" in dict(self.code.registers.specials).values():
            workspace = device.add("of the grid", np.zeros(64, np.uint32))
        target = self.module.program.machine
        layout = Layout(self.code.registers, device, shared_mem, shared_base(target))
        for what, wanted, limit in (
            ("", layout.shared_bytes, shared_limit(target)),
            ("static ", layout.static_bytes, STATIC_LIMIT),
        ):
            if wanted > limit:
                raise LaunchError(
                    f"kernel '{self.name}' wants {wanted} bytes of {what}shared memory a block; "
                    f"{target} has {limit}"
                )
        if layout.local_bytes > LOCAL_LIMIT:
            raise LaunchError(
                f"kernel '{self.name}' wants {layout.local_bytes} bytes of local memory a thread; "
                f"there are {LOCAL_LIMIT}"
            )
        merged = merge and {line: wide and Wide(*wide) for line, wide in merge.items()}
        record = Trace(watch, merged, ffma or {}, _code=self.code) if trace else None
        hazards = Hazards()
        threads, total = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
        # Races keep a record of every word for every warp, which is much larger than the word.
        own = layout.shared_bytes * (16 if races else 1) + layout.local_bytes * threads
        size = max(1, min(LANES_PER_BATCH // threads, BYTES_PER_BATCH // max(1, own)))
        if self.code.cooperative:
            size = total
            if total * own > BYTES_TOGETHER:
                raise LaunchError(
                    f"kernel '{self.name}': its {total} blocks wait for each other, and together "
                    f"they take {total * own:,} bytes of shared and local memory"
                    f"{' and of what races are found by' if races else ''}; the most is "
                    f"{BYTES_TOGETHER:,}. Launch fewer blocks"
                )
        together = int(np.prod(cluster or 1))
        size = together if go_on else max(1, size // together) * together
        if self.code.cancels:
            size = min(size, RESIDENT * together)
        parts = _Parts(
            grid, block, cluster, device, layout, parameters, shared_mem, size, workspace)
        began = time.perf_counter()
        failing = self.code.unheeded if races and recorder is None else frozenset()
        before = [each.storage.copy() for each in device.segments] if failing else []
        settings = Settings(
            schedule, np.random.default_rng(seed), landing, turns, strict, go_on, recorder)
        errors = self._run(parts, settings, hazards, record, races, progress)
        looked_at = hazards.looked_at
        if failing:
            with _as_before(device, before):
                self._fail(parts, replace(
                    settings, random=np.random.default_rng(seed), landing="late", go_on=False,
                    failing=failing), hazards)
        return Launch(
            self.name, races, merge is not None, record, hazards.found, hazards.remarks,
            device.allocations, layout.shared, errors, time.perf_counter() - began, looked_at,
            self.code, self.module.sources, sorted(failing),
        )

    def _fail(self, parts: _Parts, settings: Settings, hazards: Hazards) -> None:
        """Run it once more, late, with waits that fail; what is found then says so."""
        waits = [self.code.steps[index].instruction for index in sorted(settings.failing)]
        lines = ", ".join(dict.fromkeys(
            source_line(each.cuda, each.callers) or f"PTX line {each.line}" for each in waits))
        known = len(hazards.found)
        hazards.when = f" ({FAILED} at {lines})"
        try:
            self._run(parts, settings, hazards, None, True, None)
        except Error as error:
            if len(hazards.found) == known:
                hazards.add("mbarrier", f"what comes behind the wait fails: {error}",
                            Access.of(waits[0], (0, 0, 0), 0))
        finally:
            hazards.when = ""

    def _run(
        self, parts: _Parts, settings: Settings, hazards: Hazards, record: Trace | None,
        races: bool, progress: Progress | None,
    ) -> list[Error]:
        """Run all blocks, batch by batch; return what stopped some, if the launch goes on then."""
        grid, block = parts.grid, parts.block
        detector = RaceDetector(hazards, self.code) if races else None
        total = grid[0] * grid[1] * grid[2]
        pending = Pending(total)
        errors: list[Error] = []
        try:
            while pending.next < total:
                first = pending.next
                blocks = min(parts.size, total - first)
                pending.next += blocks
                shared = (parts.layout.static_bytes, parts.shared_mem)
                geometry = Geometry(grid, block, first, blocks, shared, parts.cluster)
                geometry.workspace, geometry.pending = parts.workspace, pending
                memory = Memory(parts.device, parts.layout, parts.parameters, geometry)
                lanes = Execution(self.code, geometry, memory, record, detector, hazards, settings)
                if detector is not None:
                    detector.begin(lanes)
                if progress is not None:
                    progress.begin(total, first, lanes)
                try:
                    lanes.run()
                except Recorded:
                    break
                except Error as error:
                    self._tell(error, hazards.found, lanes)
                    if not settings.go_on:
                        raise
                    errors.append(error.with_traceback(None))  # frames hold the batch's arrays
                finally:
                    lanes.release()
                if record is not None:
                    record.end()
        finally:
            if detector is not None:
                detector.release()
        return errors

    def _tell(self, error: Error, found: list[Hazard], lanes: Execution) -> None:
        """Let an error say what the source has at its line, what to do, and what came before."""
        error.hazards = found
        at = advice.instruction_of(error, self.entry.instructions)
        text = self.module.sources.line(at.cuda) if at else ""
        if text:
            error.add_note(f"There: {text}")
        copies = [copy for waiter in lanes.waiters.values() for copy in waiter.copies()]
        if what := advice.for_error(
            error, copies, lanes.memory.layout.dynamic, lanes.memory.layout.dynamic_bytes,
        ):
            error.add_note(f"What to do: {what}.")
        if found:
            error.add_note("Found before: " + found[0].message)
