"""Values that are not defined: followed until one of them is used.

They are read from memory that nobody wrote, or by a shuffle from a lane that its mask leaves out.

A right program may do either: a vector load takes an element that nobody looks at, a tile's edge
goes through a product whose rows are not stored, a reduction of half a warp shuffles from the other
half what only lanes get that are not asked. So a launch does not stop at the read. From there on
its steps run one by one, and beside each register stands which lanes hold a value that depends on
such a read, and on which. Such a value is used when it is stored to global memory, decides a branch
or whether an instruction has an effect, is an address, or is given to an instruction that exchanges
values in a way that is not followed (a vote, an atomic operation, wgmma). Then the launch stops if
the value came from memory; a shuffle is reported as a hazard, and its value followed no further.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .errors import UninitialisedRead
from .hazards import MISSING_LANE, Access, access
from .memory import LOADS, WRITTEN
from .segment import WINDOWS, Segment
from .step import BasicBlock, Step
from .syntax import SIZES, Address, Instruction, Not, Pair, Register, Selected, Vector

if TYPE_CHECKING:
    from .batch import Batch
    from .step import Run
    from .syntax import Operand

DOUBTFUL = 2  # beside 0 and 1 of `Segment.valid`: written, with a value that is followed
# What has no effect but on its own registers, lane by lane, or is looked at on its own here.
FOLLOWED = {
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign",
    "cos", "cvt", "cvta", "div", "ex2", "fma", "fns", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad",
    "mad24", "madc", "mapa", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc",
    "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shfl", "shl", "shr", "sin",
    "slct", "sqrt", "st", "sub", "subc", "szext", "tanh", "testp", "xor", "mma", "dp2a", "dp4a",
    "isspacep", "getctarank", "activemask",
}
# One in each type that a product may take, two where two share a register.
ONES = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "f32": 0x3F800000}


@dataclass(frozen=True)
class Origin:
    """A read that gave a value which is not defined.

    Attributes
    ----------
    text : str
        What is told of it.
    shuffle : Access or None
        The shuffle, if it was one: else memory was read.
    """

    text: str
    shuffle: Access | None = None


def registers_of(operand: Operand) -> list[int]:
    """The slots of the registers in an operand, those of an address left out."""
    match operand:
        case Register():
            return [operand.slot]
        case Vector():
            return [slot for item in operand.items for slot in registers_of(item)]
        case Pair():
            return [*registers_of(operand.first), *registers_of(operand.second)]
        case Not():
            return registers_of(operand.operand)
        case Selected():
            return [operand.register.slot]
    return []


def addresses_of(instruction: Instruction) -> list[int]:
    """The slots of the registers that an instruction's addresses are made of."""
    return [
        slot for operand in instruction.operands if isinstance(operand, Address)
        for part in (operand.base, *operand.coordinates) for slot in registers_of(part)
    ]


def sources_of(step: Step) -> list[int]:
    """The slots of the registers whose values an instruction takes."""
    operands = step.instruction.operands
    target = registers_of(operands[0]) if operands else []
    only_written = target and set(target) <= set(step.writes)
    if only_written and step.instruction.parts[0] != "wgmma":  # which adds to its target
        operands = operands[1:]
    return [slot for operand in operands for slot in registers_of(operand)]


class Unwritten:
    """The values of a batch of blocks that are not defined.

    Parameters
    ----------
    f : Execution

    Attributes
    ----------
    origins : list of Origin
        The reads that gave such values. The first stands for none.
    doubts : dict of int to ndarray
        By slot: of which read, by its number in `origins`, each lane's value depends; 0 if it is
        defined. Of several, one is kept.
    """

    def __init__(self, f: Batch) -> None:
        self.f = f
        self.origins = [Origin("")]
        self.doubts: dict[int, np.ndarray] = {}
        self._known: dict[str, int] = {}  # numbers of origins by their text
        self._shuffled: tuple[np.ndarray, int] | None = None  # lanes and origin, of this step
        self._stored_from = 0  # the read that a value stored last came from
        f.memory.follows = True

    def undefined(self, lanes: np.ndarray, text: str, reader: Access) -> None:
        """Hear of a shuffle, while it runs, which of its lanes read lanes that its mask leaves out.

        Parameters
        ----------
        lanes : ndarray of bool
            (blocks, threads).
        text : str
            What is told of it.
        reader : Access
            The first of these lanes.
        """
        self._shuffled = lanes, self._number(Origin(text, reader))

    def _number(self, origin: Origin) -> int:
        if origin.text not in self._known:
            self._known[origin.text] = len(self.origins)
            self.origins.append(origin)
        return self._known[origin.text]

    def run(self, block: BasicBlock, first: int) -> None:
        """Run the steps of a block from the instruction `first` on, and look at its end."""
        f = self.f
        merge = f.merge
        for index, (run, writes) in enumerate(block.single[first - block.start :], first):
            def one(f: Batch, run: Run = run, writes: tuple[int, ...] = writes) -> None:
                if merge is None:
                    run(f)
                else:
                    f.masked(run, writes, merge)

            if f.recorder is None:
                self._step(index, one)
            else:
                taking = f.recorder.begin(f, index)
                self._step(index, one)
                f.recorder.end(f, index, taking)
        if block.end is not None:
            self._end(block.start + block.length - 1)

    def _step(self, index: int, run: Run) -> None:
        f, step = self.f, self.f.code.steps[index]
        instruction, kind = step.instruction, step.instruction.parts[0]
        lanes = f.active_lanes
        unsure, guard = np.zeros_like(lanes), np.zeros(lanes.shape, np.int32)
        if step.guard is not None:
            slot, negated = step.guard
            unsure = self._lanes(slot) & lanes
            if unsure.any() and kind not in FOLLOWED - {"st"}:
                self._used(instruction, slot, unsure, "decides whether it runs")
                unsure = self._lanes(slot) & lanes
            guard = self._origins(slot)
            lanes = lanes & (~f.r[slot] if negated else f.r[slot])
        for slot in addresses_of(instruction):
            self._refuse(instruction, slot, lanes, "is its address")
        sources = sources_of(step)
        if kind not in FOLLOWED:
            for slot in sources:
                self._refuse(instruction, slot, lanes, "is given to it")
        found = self._incoming(index, step, sources, lanes, run)
        stored = self._stored(instruction, lanes) if kind == "st" else ()
        doubts = {slot: self.doubts[slot] for slot in step.writes if slot in self.doubts}
        run(f)
        nothing = np.zeros(lanes.shape, np.int32)
        for slot in step.writes:
            old, new = doubts.get(slot, nothing), found.get(slot, nothing)
            # A lane for which it is not known whether the step runs keeps either value.
            either = np.maximum(old, np.maximum(new, guard))
            self._hold(slot, np.where(unsure, either, np.where(lanes, new, old)))
        for segment, starts, nbytes in stored:
            segment.valid[(starts[:, None] + np.arange(nbytes)).ravel()] = DOUBTFUL
            for shown in self._tracked():
                shown.complete = False

    # -- what an instruction's results depend on ------------------------------------------------

    def _incoming(
        self, index: int, step: Step, sources: list[int], lanes: np.ndarray, run: Run
    ) -> dict[int, np.ndarray]:
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

    def _exchanged(self, step: Step, lanes: np.ndarray, run: Run) -> dict[int, np.ndarray]:
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
        self, index: int, step: Step, lanes: np.ndarray, run: Run
    ) -> dict[int, np.ndarray]:
        """Which lanes load bytes that nobody wrote: the same load, of the bytes' validity."""
        f, instruction = self.f, step.instruction
        space = next((p.partition("::")[0] for p in instruction.parts[1:]
                      if p.partition("::")[0] in ("global", "shared", "local", "const", "param")),
                     "generic")
        if space in ("global", "const", "param"):
            return {}
        base = addresses_of(instruction)
        if space == "generic":
            if not base:
                return {}
            address = np.broadcast_to(f.r[base[0]].astype(np.int64), lanes.shape)
            low, high = min(WINDOWS.values()), max(WINDOWS.values()) + (1 << 32)
            lanes = lanes & (address >= low) & (address < high)
        swapped = [(s, s.storage, s._views) for s in self._tracked()]
        resolved = f.resolved[index]
        f.resolved[index] = None
        for segment, _, _ in swapped:
            segment.storage, segment._views = segment.valid, {}
        try:
            seen = self._shadow({}, step, run)
        finally:
            for segment, storage, views in swapped:
                segment.storage, segment._views = storage, views
            f.resolved[index] = resolved
        width = 4 if instruction.parts[0] == "ldmatrix" else SIZES[
            next(p for p in reversed(instruction.parts) if p in SIZES)]
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

    def _product(self, step: Step, run: Run) -> dict[int, np.ndarray]:
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
        self, registers: dict[int, np.ndarray], step: Step, run: Run
    ) -> dict[int, np.ndarray]:
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
        self, instruction: Instruction, lanes: np.ndarray
    ) -> list[tuple[Segment, np.ndarray, int]]:
        """Refuse doubtful values on their way to global memory; find the bytes of the others."""
        f = self.f
        space = next((p for p in instruction.parts[1:] if p in ("shared", "local")), "")
        found: list[tuple[Segment, np.ndarray, int]] = []
        address = instruction.operands[0]
        if not isinstance(address, Address):
            return found
        nbytes = SIZES[next(p for p in reversed(instruction.parts) if p in SIZES)]
        values = instruction.operands[1]
        for i, item in enumerate(values.items if isinstance(values, Vector) else (values,)):
            for slot in registers_of(item):
                doubtful = self._lanes(slot) & lanes
                if not doubtful.any():
                    continue
                base = registers_of(address.base)
                if not space or not base:
                    self._used(instruction, slot, doubtful, "is stored")
                    continue
                segment = f.memory.segments[space][0]
                self._stored_from = self._origins(slot)[doubtful].max()
                at = np.broadcast_to(f.r[base[0]].astype(np.int64), lanes.shape)
                rows = np.broadcast_to(0 if segment.rows is None else segment.rows, lanes.shape)
                found.append((segment, (at + rows + address.offset + i * nbytes)[doubtful], nbytes))
        return found

    def _tracked(self) -> list[Segment]:
        """All segments, each once, whose bytes are known to be written or not."""
        segments = (s for found in self.f.memory.segments.values() for s in found)
        return list({id(s): s for s in segments if s.tracked}.values())

    def _end(self, index: int) -> None:
        """Refuse a doubtful predicate or index at the end of a block."""
        step = self.f.code.steps[index]
        slots = [] if step.guard is None else [step.guard[0]]
        for slot in (*slots, *sources_of(step), *addresses_of(step.instruction)):
            self._refuse(step.instruction, slot, self.f.active_lanes, "decides where lanes go")

    def _refuse(self, instruction: Instruction, slot: int, lanes: np.ndarray, how: str) -> None:
        doubtful = self._lanes(slot) & lanes
        if doubtful.any():
            self._used(instruction, slot, doubtful, how)

    def _used(self, instruction: Instruction, slot: int, lanes: np.ndarray, how: str) -> None:
        """Stop at a use of what was read from memory; report one of what a shuffle brought."""
        f, numbers = self.f, self._origins(slot)
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

    def _origins(self, slot: int) -> np.ndarray:
        """On which read each lane of a register depends, int32 (blocks, threads)."""
        found = self.doubts.get(slot)
        return np.zeros((self.f.blocks, self.f.threads), np.int32) if found is None else found

    def _lanes(self, slot: int) -> np.ndarray:
        return self._origins(slot) != 0

    def _latest(self, slots: list[int]) -> np.ndarray:
        """Of several registers, the latest read that each lane depends on."""
        nothing = np.zeros((self.f.blocks, self.f.threads), np.int32)
        return reduce(np.maximum, map(self._origins, slots), nothing)

    def _hold(self, slot: int, origins: np.ndarray) -> None:
        if origins.any():
            self.doubts[slot] = np.broadcast_to(origins, (self.f.blocks, self.f.threads))
        else:
            self.doubts.pop(slot, None)


def follows(error: UninitialisedRead, steps: Iterable[Step]) -> int | None:
    """The index of the read at which following may begin, if it may: a load's or a shuffle's."""
    if error.instruction is None or error.instruction.parts[0] not in (*LOADS, "shfl"):
        return None
    return next(i for i, step in enumerate(steps) if step.instruction is error.instruction)
