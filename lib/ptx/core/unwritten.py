"""Values that are not defined: followed until one of them is used.

They are read from a register or from memory that nobody wrote, or by a shuffle from a lane that its
mask leaves out.

A right program may do either: a vector load takes an element that nobody looks at, a tile's edge
goes through a product whose rows are not stored, a reduction of half a warp shuffles from the other
half what only lanes get that are not asked. So a launch does not stop at the read. From there on
its steps run one by one, and beside each register stands which lanes hold a value that depends on
such a read, and on which. Such a value is used when it is stored to global memory, decides a branch
or whether an instruction has an effect, is an address, or is given to an instruction that exchanges
values in a way that is not followed (a vote, an atomic operation, wgmma). A branch is no use by
itself if what lies between it and where all lanes meet again has no effect but on registers: what
these hold then is followed, too. At a use the launch stops,
unless the value came by a shuffle: that is reported as a hazard, and followed no further.

Of a kernel in which a register may be read before it is written (`analysis`), this begins with the
kernel. It ends where no register that may still be read holds such a value, and no memory does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
from numpy import ndarray

from .addressing import space_of
from .analysis import PURE, accumulators_of, addresses_of, registers_of, sources_of, writes_of
from .batch import BasicBlock, Batch, Run, Step
from .errors import UninitialisedRead
from .hazards import MISSING_LANE, Access, access
from .memory import LOADS, WRITTEN
from .segment import WINDOWS, Segment
from .syntax import SIZES, Address, Instruction, Register, Symbol, Vector

DOUBTFUL = 2  # beside 0 and 1 of `Segment.valid`: written, with a value that is followed
# What has no effect but on its own registers, lane by lane, or is looked at on its own here.
FOLLOWED = PURE | {
    "ldmatrix", "mapa", "shfl", "st", "mma", "dp2a", "dp4a", "isspacep", "getctarank", "activemask",
    "stmatrix",
}
# One in each type that a product may take, two where two share a register.
ONES = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "f32": 0x3F800000}


@dataclass(frozen=True)
class Origin:
    """A read that gave a value which is not defined."""

    text: str  # what is told of it
    shuffle: Access | None = None  # the shuffle, if it was one: else memory was read


class Unwritten:
    """The values of a batch of blocks that are not defined.

    `origins`: the reads that gave such values. The first stands for none. `doubts`: by slot: of
    which read, by its number in `origins`, each lane's value depends; 0 if it is defined. Of
    several, one is kept.
    """

    def __init__(self, f: Batch) -> None:
        self.f = f
        self.origins = [Origin("")]
        self.doubts: dict[int, ndarray] = {}
        self._doubted = 0  # their slots, as bits
        self._suspects = np.zeros(f.shape, bool)  # lanes that may have a register in doubt
        self._known: dict[str, int] = {}  # numbers of origins by their text
        # Of this step, while it runs: a shuffle's lanes and origin, what tensor memory gave whom.
        self._shuffled: tuple[ndarray, int] | None = None
        self._words: dict[int, ndarray] = {}
        self._stored_from = 0  # the read that a value stored last came from
        self._in_memory = False  # whether such a value was stored
        # Registers that nobody wrote and nobody has read stand first in `origins`, by their names.
        self._unread = 0
        # On which read it depends where each lane is, and the block at which it does no more.
        self.astray = np.zeros(f.shape, np.int32)
        self.home = np.full(f.shape, -1, np.int64)
        f.memory.follows = True

    @classmethod
    def of_registers(cls, f: Batch) -> Unwritten | None:
        """Begin with the registers that may be read before they are written, if there are any."""
        slots = f.code.unwritten
        if not slots:
            return None
        made = cls(f)
        for register in f.code.entry.registers:
            if slots >> register.slot & 1:
                made.origins.append(Origin(f"register {register.name}"))
                made._unread += 1
                made._hold(register.slot, np.full(f.shape, made._unread, np.int32))
        return made

    def undefined(self, lanes: ndarray, text: str, reader: Access) -> None:
        """Hear of a shuffle, while it runs, which of its lanes read lanes that its mask leaves out.

        `lanes`: (blocks, threads). `text`: what is told of it. `reader`: the first of these lanes.
        """
        self._shuffled = lanes, self._number(Origin(text, reader))

    def undefined_words(self, lanes: dict[int, ndarray], text: str) -> None:
        """Hear of a load from tensor memory, while it runs, which lanes' registers nobody wrote.

        `lanes`: by slot: (blocks, threads). `text`: what is told of it.
        """
        number = self._number(Origin(text))
        self._words = {slot: where * np.int32(number) for slot, where in lanes.items()}

    def _number(self, origin: Origin) -> int:
        if origin.text not in self._known:
            self._known[origin.text] = len(self.origins)
            self.origins.append(origin)
        return self._known[origin.text]

    def concerns(self, block: BasicBlock) -> bool:
        """Hear that a block begins; tell whether it may have to do with what is followed."""
        f, here = self.f, self.f.active_lanes
        if self.astray.any():
            self.astray = np.where(here & (self.home == block.start), 0, self.astray)
        doubted = 0
        if np.count_nonzero(self._suspects & here):
            self._forget(f.code.live[block.start])
            doubted = self._doubted
        self._end_if_over()
        if f.unwritten is None:
            return False
        touched = reduce(or_, f.code.touched[block.start : block.start + block.length], 0)
        return touched < 0 or touched & doubted != 0 or bool(self.astray.any())

    def run(self, block: BasicBlock, first: int) -> None:
        """Run the steps of a block from the instruction `first` on, and look at its end.

        Following ends where nothing is left to follow.
        """
        f = self.f
        merge, touched, astray = f.merge, f.code.touched, bool(self.astray.any())
        for index, (run, writes) in enumerate(block.single[first - block.start :], first):
            def one(f: Batch, run: Run = run, writes: tuple[int, ...] = writes) -> None:
                if merge is None:
                    run(f)
                else:
                    f.masked(run, writes, merge)

            taking = None if f.recorder is None else f.recorder.begin(f, index)
            if astray or touched[index] < 0 or touched[index] & self._doubted:
                self._step(index, one)
            else:
                one(f)
            if f.recorder is not None:
                f.recorder.end(f, index, taking)
        if block.end is not None:
            self._end(block.start + block.length - 1)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self.doubts and not self._in_memory and not self.astray.any():
            self.f.unwritten, self.f.memory.follows = None, False

    def _forget(self, live: int) -> None:
        """Follow no further what the active lanes read no more: `live`, as bits, they may."""
        if self.f.code.calls or not self._doubted & ~live:
            return  # what a function doesn't read, who called it may
        others = self.f.live_lanes & ~self.f.active_lanes
        for slot in [slot for slot in self.doubts if not live >> slot & 1]:
            self._hold(slot, self.doubts[slot] * others)
        self._suspects = reduce(np.logical_or, self.doubts.values(), np.zeros(self.f.shape, bool))

    def _step(self, index: int, run: Run) -> None:
        f, step = self.f, self.f.code.steps[index]
        instruction, kind = step.instruction, step.instruction.parts[0]
        lanes = f.active_lanes
        unsure, guard = np.zeros_like(lanes), np.zeros(lanes.shape, np.int32)
        if step.guard is not None:
            slot, negated = step.guard
            unsure = self._lanes(slot) & lanes
            if unsure.any() and kind not in FOLLOWED - {"st", "stmatrix"}:
                self._used(instruction, slot, unsure, "decides whether it runs")
                unsure = self._lanes(slot) & lanes
            self._read(instruction, slot, lanes)
            guard = self._origins(slot)
            lanes = lanes & (~f.r[slot] if negated else f.r[slot])
        addresses = addresses_of(instruction)
        private = kind in LOADS and space_of(instruction) in ("const", "local", "param")
        for slot in () if private else addresses:
            self._refuse(instruction, slot, lanes, "is its address")
        sources = sources_of(step)
        accumulators, scale = accumulators_of(instruction)
        if isinstance(scale, Register):  # where it is false, nothing is added to them
            self._refuse(instruction, scale.slot, lanes, "decides whether it adds")
            added = lanes & f.r[scale.slot]
            for slot in accumulators:
                self._refuse(instruction, slot, added, "is added to")
            sources = [slot for slot in sources if slot not in accumulators]
        if kind not in FOLLOWED:
            for slot in sources:
                self._refuse(instruction, slot, lanes, "is given to it")
        elif kind != "mov":
            for slot in sources:
                self._read(instruction, slot, lanes)
        found = self._incoming(index, step, sources, lanes, run)
        stored = self._stored(instruction, lanes) if kind == "st" else ()
        if kind == "stmatrix" and any(slot in self.doubts for slot in sources):
            stored = self._stored_rows(step, run)
        if private and any(slot in self.doubts for slot in addresses):
            doubtful = self._latest(addresses)
            found = {slot: np.maximum(found.get(slot, 0), doubtful) for slot in step.writes}
        writes = writes_of(step)
        doubts = {slot: self.doubts[slot] for slot in writes if slot in self.doubts}
        self._words = {}
        run(f)
        found |= self._words
        nothing = np.zeros(lanes.shape, np.int32)
        for slot in writes:
            old, new = doubts.get(slot, nothing), found.get(slot, nothing)
            # A lane for which it is not known whether the step runs keeps either value.
            new = np.maximum(new, self.astray)
            either = np.maximum(old, np.maximum(new, guard))
            self._hold(slot, np.where(unsure, either, np.where(lanes, new, old)))
        for segment, starts, nbytes in stored:
            self._in_memory |= len(starts) > 0
            segment.valid[(starts[:, None] + np.arange(nbytes)).ravel()] = DOUBTFUL
            for shown in self._tracked():
                shown.complete = False

    # -- what an instruction's results depend on ------------------------------------------------

    def _incoming(
        self, index: int, step: Step, sources: list[int], lanes: ndarray, run: Run
    ) -> dict[int, ndarray]:
        """On which read the results of a step depend in each lane, by slot; 0 where on none."""
        instruction = step.instruction
        kind = instruction.parts[0]
        if kind in LOADS:
            return self._loaded(index, step, lanes, run)
        if kind == "shfl":
            return self._exchanged(step, lanes, run)
        if not any(slot in self.doubts for slot in sources):
            return {}
        if kind == "mma":
            return self._product(step, run)
        if kind == "selp":
            a, b, p = (registers_of(o) for o in instruction.operands[1:])
            chosen = np.broadcast_to(self.f.r[p[0]], lanes.shape) if p else lanes
            found = np.where(chosen, self._latest(a), self._latest(b))
            found = np.maximum(found, self._latest(p))
        else:
            found = self._latest(sources)
        return dict.fromkeys(step.writes, found)

    def _exchanged(self, step: Step, lanes: ndarray, run: Run) -> dict[int, ndarray]:
        """What a shuffle brings: doubts of other lanes, and its own where the mask leaves some out.

        Which lane is read and whether there is one are defined in either case.
        """
        target, value, *rest = step.instruction.operands
        self._shuffled = None
        which = [slot for operand in rest for slot in registers_of(operand)]
        given = {slot: self.doubts[slot].astype(np.uint32) for slot in registers_of(value)
                 if slot in self.doubts and slot not in which}  # which chooses the lane, too
        brought_by = self._shadow(given, step, run)
        found = dict.fromkeys(step.writes, self._latest(which))
        for slot in registers_of(target)[:1]:
            brought = np.zeros(lanes.shape, np.int32)
            if given:
                brought = np.broadcast_to(brought_by[slot], lanes.shape).astype(np.int32)
            if self._shuffled is not None:
                left_out, origin = self._shuffled
                brought = np.where(left_out, np.int32(origin), brought)
            found[slot] = np.maximum(found[slot], brought)
        return found

    def _loaded(
        self, index: int, step: Step, lanes: ndarray, run: Run
    ) -> dict[int, ndarray]:
        """Which lanes load bytes that nobody wrote: the same load, of the bytes' validity."""
        f, instruction = self.f, step.instruction
        space = space_of(instruction).partition("::")[0]
        source = instruction.operands[1]
        of_kernel = (isinstance(source, Address) and isinstance(source.base, Symbol)
                     and source.base.name in f.code.registers.parameters)
        if space in ("global", "const") or of_kernel:
            return {}
        base = addresses_of(instruction)
        if space == "generic":
            if not base:
                return {}
            address = np.broadcast_to(f.r[base[0]].astype(np.int64), lanes.shape)
            low, high = min(WINDOWS.values()), max(WINDOWS.values()) + (1 << 32)
            lanes = lanes & (address >= low) & (address < high)
        resolved = f.resolved[index]
        f.resolved[index] = None
        with self._in_place_of_memory(lambda segment: segment.valid):
            seen = self._shadow({}, step, run)
        f.resolved[index] = resolved
        width = 4 if instruction.parts[0] == "ldmatrix" else SIZES[instruction.type]
        found = {}
        for slot, value in seen.items():
            bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
            missing = np.broadcast_to(bits != WRITTEN[width], lanes.shape) & lanes
            if not missing.any():
                found[slot] = np.zeros(lanes.shape, np.int32)
                continue
            origin = self._number(Origin(
                f"{f.place(instruction)}: {space if space != 'generic' else 'shared'} "
                f"memory was read before anybody wrote it: {f.lane_names(missing)}"))
            carried = bits & bits.dtype.type(WRITTEN[width] * DOUBTFUL)
            from_read = np.where(carried != 0, self._stored_from, origin)
            found[slot] = np.where(missing, from_read, 0).astype(np.int32)
        return found

    def _product(self, step: Step, run: Run) -> dict[int, ndarray]:
        """Which results of an mma depend on doubtful factors: those that a NaN there makes NaN.

        They are said to come of one read, the latest of all lanes'.
        """
        instruction = step.instruction
        kinds = [part for part in instruction.parts if part in SIZES]
        sparse = len(instruction.operands) != 4  # whose metadata is no number
        if sparse or len(kinds) != 4 or any(kind not in ONES for kind in kinds):
            for slot in sources_of(step):
                self._refuse(instruction, slot, self.f.active_lanes, "is given to it")
            return {}
        given = {}
        for operand, kind in zip(instruction.operands[1:], kinds[1:], strict=True):
            for slot in registers_of(operand):
                one = np.uint32(ONES[kind])
                given[slot] = np.where(self._lanes(slot), np.uint32(0xFFFFFFFF), one)
        seen = self._shadow(given, step, run)
        latest = self._latest(sources_of(step)).max()
        found = {}
        for slot, value in seen.items():
            value = np.ascontiguousarray(value)
            if kinds[0] == "f32":
                doubtful = np.isnan(value.view(np.float32))
            else:
                halves = value.view(np.float16).reshape(*value.shape, 2)
                doubtful = np.logical_or.reduce(np.isnan(halves), axis=-1)
            found[slot] = np.where(doubtful, latest, np.int32(0))
        return found

    def _shadow(
        self, registers: dict[int, ndarray], step: Step, run: Run
    ) -> dict[int, ndarray]:
        """Run a step on other values, unseen; what it would write, and nothing changed."""
        f = self.f
        registers_before, trace, races, observed = list(f.r), f.trace, f.races, f.observed
        f.trace, f.races, f.observed = None, None, False
        try:
            for slot, value in registers.items():
                f.r[slot] = value
            run(f)
            return {slot: f.r[slot] for slot in step.writes}
        finally:
            f.r[:] = registers_before
            f.trace, f.races, f.observed = trace, races, observed

    # -- stores, and what counts as a use -------------------------------------------------------

    def _stored(
        self, instruction: Instruction, lanes: ndarray
    ) -> list[tuple[Segment, ndarray, int]]:
        """Refuse doubtful values on their way to global memory; find the bytes of the others."""
        found: list[tuple[Segment, ndarray, int]] = []
        address = instruction.operands[0]
        if not isinstance(address, Address):
            return found
        nbytes = SIZES[instruction.type]
        values = instruction.operands[1]
        for i, item in enumerate(values.items if isinstance(values, Vector) else (values,)):
            for slot in registers_of(item):
                doubtful = (self._lanes(slot) | (self.astray != 0)) & lanes
                if doubtful.any():
                    at = self._places(address) + i * nbytes
                    found += self._destinations(instruction, slot, doubtful, at, nbytes)
        return found

    def _stored_rows(self, step: Step, run: Run) -> list[tuple[Segment, ndarray, int]]:
        """Where the doubtful elements of an stmatrix go: the same store, of what is doubtful."""
        sources = sources_of(step)
        self._stored_from = self._latest(sources).max()
        given = {slot: self._lanes(slot) * np.uint32(0x02020202) for slot in sources}
        bytes_of: dict[int, ndarray] = {}  # what is stored there, by the memory's identity
        with self._in_place_of_memory(lambda segment: bytes_of.setdefault(
                id(segment.storage), np.zeros_like(segment.storage))):
            self._shadow(given, step, run)
        return [(s, np.flatnonzero(bytes_of[id(s.storage)].view(bool)), 1) for s in self._tracked()]

    @contextmanager
    def _in_place_of_memory(self, other: Callable[[Segment], ndarray]) -> Iterator[None]:
        """Let other bytes lie where it is known which ones were written."""
        swapped = [(s, s.storage, s._views) for s in self._tracked()]
        others = [other(segment) for segment, _, _ in swapped]
        for (segment, _, _), there in zip(swapped, others, strict=True):
            segment.storage, segment._views = there, {}
        try:
            yield
        finally:
            for segment, storage, views in swapped:
                segment.storage, segment._views = storage, views

    def _places(self, address: Address) -> ndarray:
        """Where an access begins in each lane, int64 (blocks, threads)."""
        f, base = self.f, address.base
        if isinstance(base, Symbol):
            slot = f.code.registers.address_of(base.name, 0, np.dtype("u8"))
            at = f.r[slot]
        else:
            at = f.r[registers_of(base)[0]] if registers_of(base) else np.zeros((1, 1))
        return f.full(at.astype(np.int64) + address.offset)

    def _destinations(
        self, instruction: Instruction, slot: int, doubtful: ndarray, at: ndarray, nbytes: int
    ) -> list[tuple[Segment, ndarray, int]]:
        """Where a doubtful value goes to shared or local memory; elsewhere it is used."""
        found = []
        for segment in self.f.memory.segments[space_of(instruction)]:
            if not segment.tracked or segment.space == "param":
                continue
            inside = doubtful & (at >= segment.first) & (at + nbytes <= segment.end)
            if inside.any():
                self._stored_from = np.maximum(self._origins(slot), self.astray)[inside].max()
                rows = 0 if segment.rows is None else segment.rows
                places = np.broadcast_to(at - segment.base + rows, at.shape)
                found.append((segment, places[inside], nbytes))
                doubtful = doubtful & ~inside
        if doubtful.any():
            self._used(instruction, slot, doubtful, "is stored")
        return found

    def _tracked(self) -> list[Segment]:
        """All segments, each once, whose bytes are known to be written or not."""
        segments = (s for found in self.f.memory.segments.values() for s in found)
        return list({id(s): s for s in segments if s.tracked}.values())

    def _end(self, index: int) -> None:
        """Refuse a doubtful predicate or index at the end of a block; what it writes is defined."""
        step, lanes = self.f.code.steps[index], self.f.active_lanes
        if step.guard is not None:
            slot, negated = step.guard
            if not self._strays(index, slot, lanes):
                self._refuse(step.instruction, slot, lanes, "decides where lanes go")
            lanes = lanes & (~self.f.r[slot] if negated else self.f.r[slot])
        for slot in (*sources_of(step), *addresses_of(step.instruction)):
            self._refuse(step.instruction, slot, lanes, "decides where lanes go")
        for slot in writes_of(step):
            self._hold(slot, np.where(lanes, np.int32(0), self._origins(slot)))

    def _strays(self, index: int, slot: int, lanes: ndarray) -> bool:
        """Follow lanes that a doubtful predicate sends somewhere, if that has no effect there.

        Until all come together again, what they write is doubtful, and so is what they would have
        written elsewhere. Only a use of that is told.
        """
        f, doubtful = self.f, self._lanes(slot) & lanes
        if not doubtful.any() or f.code.calls or f.code.steps[index].instruction.parts[0] != "bra":
            return False
        self._read(f.code.steps[index].instruction, slot, lanes)
        region = f.code.regions.of(f.at)
        if not region.pure:
            return False
        numbers = self._origins(slot)
        self.home = np.where(doubtful & (self.astray == 0), region.end, self.home)
        self.astray = np.where(doubtful, numbers, self.astray)
        for each in region.writes:
            self._hold(each, np.where(doubtful, numbers, self._origins(each)))
        return True

    def _read(self, instruction: Instruction, slot: int, lanes: ndarray) -> None:
        """Let lanes read a register: of one that nobody wrote, this is where it is read first."""
        if not self._unread or slot not in self.doubts:
            return
        numbers = self.doubts[slot]
        unread = lanes & (numbers > 0) & (numbers <= self._unread)
        if not unread.any():
            return
        for number in np.unique(numbers[unread]).tolist():
            here = unread & (numbers == number)
            origin = self._number(Origin(
                f"{self.f.place(instruction)}: {self.origins[number].text} was read before anybody "
                f"wrote it: {self.f.lane_names(here)}"))
            numbers = np.where(here, np.int32(origin), numbers)
        self._hold(slot, numbers)

    def _refuse(self, instruction: Instruction, slot: int, lanes: ndarray, how: str) -> None:
        self._read(instruction, slot, lanes)
        doubtful = self._lanes(slot) & lanes
        if doubtful.any():
            self._used(instruction, slot, doubtful, how)

    def _used(self, instruction: Instruction, slot: int, lanes: ndarray, how: str) -> None:
        """Stop at a use of what was read from memory; report one of what a shuffle brought."""
        f = self.f
        self._read(instruction, slot, lanes)
        numbers = self._origins(slot)
        for number in np.unique(numbers[lanes]).tolist():
            origin, users = self.origins[number], lanes & (numbers == number)
            text = (f"{origin.text}. That value {how}: {f.place(instruction)}, "
                    f"{f.lane_names(users)}")
            if origin.shuffle is None:
                raise UninitialisedRead(text)
            row, thread = np.argwhere(users)[0].tolist()
            f.hazards.add(MISSING_LANE, text, origin.shuffle, access(instruction, row, thread, f))
            self._drop(origin.shuffle.line)

    def _drop(self, line: int) -> None:
        """Follow no further what the shuffle at a line brings: it is reported."""
        gone = [n for n, one in enumerate(self.origins) if one.shuffle and one.shuffle.line == line]
        for slot, numbers in list(self.doubts.items()):
            self._hold(slot, np.where(np.isin(numbers, gone), np.int32(0), numbers))
        if self._stored_from in gone:
            self._stored_from = 0

    # -- registers ------------------------------------------------------------------------------

    def _origins(self, slot: int) -> ndarray:
        """On which read each lane of a register depends, int32 (blocks, threads)."""
        found = self.doubts.get(slot)
        return np.zeros(self.f.shape, np.int32) if found is None else found

    def _lanes(self, slot: int) -> ndarray:
        return self._origins(slot) != 0

    def _latest(self, slots: list[int]) -> ndarray:
        """Of several registers, the latest read that each lane depends on."""
        nothing = np.zeros(self.f.shape, np.int32)
        return reduce(np.maximum, map(self._origins, slots), nothing)

    def _hold(self, slot: int, origins: ndarray) -> None:
        if origins.any():
            self.doubts[slot] = self.f.full(origins)
            self._doubted |= 1 << slot
            self._suspects = self._suspects | (origins != 0)
        else:
            self.doubts.pop(slot, None)
            self._doubted &= ~(1 << slot)


def follows(error: UninitialisedRead, steps: Iterable[Step], strict: bool) -> int | None:
    """The index of the read at which following may begin, if it may: a load's or a shuffle's.

    A strict launch follows what comes from tensor memory alone, of which half a tile's lanes are
    empty by design (PTX ISA 9.7.16.2.3, data path layouts).
    """
    kinds = ("tcgen05",) if strict else (*LOADS, "shfl", "tcgen05")
    if error.instruction is None or error.instruction.parts[0] not in kinds:
        return None
    return next(i for i, step in enumerate(steps) if step.instruction is error.instruction)
