"""Values read from memory that nobody wrote: followed until one of them is used.

A right program may read such memory: a vector load takes an element that nobody looks at, a tile's
edge goes through a product whose rows are not stored. So a launch does not stop at the read. From
there on its steps run one by one, and beside each register stands which lanes hold a value that
depends on such a byte. It is an error when that value is stored to global memory, decides a branch
or whether an instruction has an effect, is an address, or is given to an instruction that exchanges
values in a way that is not followed (a vote, an atomic operation, wgmma).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .errors import UninitialisedRead
from .memory import LOADS, WINDOWS, WRITTEN, Segment
from .step import BasicBlock, Step
from .syntax import SIZES, Address, Instruction, Not, Pair, Register, Selected, Vector

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
class Doubt:
    """Which lanes of a register depend on what nobody wrote, and the read that it came from."""

    lanes: np.ndarray
    origin: str


def registers_of(operand) -> list[int]:
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
    """The values of a batch of blocks that depend on what nobody wrote.

    Parameters
    ----------
    f : Execution
    origin : str
        What is told of the read at which following began.
    """

    def __init__(self, f, origin: str):
        self.f, self.origin = f, origin
        self.doubts: dict[int, Doubt] = {}
        self.stored_from = origin  # the read that a value stored last came from
        f.memory.follows = True

    def run(self, block: BasicBlock, first: int):
        """Run the steps of a block from the instruction `first` on, and look at its end."""
        f = self.f
        merge = f.merge
        for index, (run, writes) in enumerate(block.single[first - block.start :], first):
            def one(f, run=run, writes=writes):
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

    def _step(self, index: int, run):
        f, step = self.f, self.f.code.steps[index]
        instruction, kind = step.instruction, step.instruction.parts[0]
        lanes = f.active_lanes
        unsure = np.zeros_like(lanes)
        if step.guard is not None:
            slot, negated = step.guard
            unsure = self._lanes(slot) & lanes
            if unsure.any() and kind not in FOLLOWED - {"st"}:
                self._used(instruction, slot, unsure, "decides whether it runs")
            lanes = lanes & (~f.r[slot] if negated else f.r[slot])
        for slot in addresses_of(instruction):
            self._refuse(instruction, slot, lanes, "is its address")
        sources = sources_of(step)
        if kind not in FOLLOWED:
            for slot in sources:
                self._refuse(instruction, slot, lanes, "is given to it")
        found = self._incoming(index, step, sources, lanes, run)
        stored = self._stored(instruction, lanes) if kind == "st" else ()
        run(f)
        for slot in step.writes:
            new, origin = found.get(slot, (None, ""))
            old = self.doubts.get(slot)
            held = self._lanes(slot) & ~lanes
            if new is not None:
                held = held | new & lanes
            held = held | unsure
            origin = origin or (old.origin if old else self.origin)
            self._hold(slot, held, origin)
        for segment, starts, nbytes in stored:
            segment.valid[(starts[:, None] + np.arange(nbytes)).ravel()] = DOUBTFUL
            for shown in self._tracked():
                shown.complete = False

    # -- what an instruction's results depend on ------------------------------------------------

    def _incoming(self, index, step, sources, lanes, run) -> dict[int, tuple[np.ndarray, str]]:
        """Which lanes of what it writes depend on what nobody wrote, and on which read."""
        instruction = step.instruction
        kind = instruction.parts[0]
        if kind in LOADS:
            return self._loaded(index, step, lanes, run)
        doubtful = [slot for slot in sources if slot in self.doubts]
        if not doubtful:
            return {}
        origin = self.doubts[doubtful[0]].origin
        if kind == "shfl":
            value = registers_of(instruction.operands[1])
            moved = self._shadow({s: self._lanes(s).astype(np.uint32) for s in value}, step, run)
            target = registers_of(instruction.operands[0])[0]
            found = {slot: (np.zeros_like(lanes), origin) for slot in step.writes}
            found[target] = (moved[target] != 0, origin)
            return found
        if kind == "mma":
            return {slot: (held, origin) for slot, held in self._product(step, run).items()}
        if kind == "selp":
            a, b, p = (registers_of(o) for o in instruction.operands[1:])
            first, second = (sum((self._lanes(s) for s in side), np.zeros_like(lanes))
                             for side in (a, b))
            chosen = np.broadcast_to(self.f.r[p[0]], lanes.shape) if p else lanes
            held = np.where(chosen, first, second) | (self._lanes(p[0]) if p else False)
        else:
            held = np.logical_or.reduce([self._lanes(slot) for slot in doubtful])
        return {slot: (held, origin) for slot in step.writes}

    def _loaded(self, index, step, lanes, run) -> dict[int, tuple[np.ndarray, str]]:
        """Which lanes load bytes that nobody wrote: the same load, of the bytes' validity."""
        f, instruction = self.f, step.instruction
        space = next((p.partition("::")[0] for p in instruction.parts[1:]
                      if p.partition("::")[0] in ("global", "shared", "local", "const", "param")),
                     "generic")
        if space in ("global", "const", "param"):
            return {}
        base = addresses_of(instruction)
        if space == "generic":
            address = np.broadcast_to(f.r[base[0]].astype(np.int64), lanes.shape) if base else None
            low, high = min(WINDOWS.values()), max(WINDOWS.values()) + (1 << 32)
            lanes = lanes & (address >= low) & (address < high) if base else lanes & False
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
            origin = ""
            if missing.any():
                origin = (f"{f.place(instruction)}: {space if space != 'generic' else 'shared'} "
                          f"memory was read before anybody wrote it: {f.lane_names(missing)}")
                carried = bits & bits.dtype.type(WRITTEN[width] * DOUBTFUL)
                if (np.broadcast_to(carried != 0, lanes.shape) & missing).any():
                    origin = self.stored_from
            found[slot] = (missing, origin)
        return found

    def _product(self, step: Step, run) -> dict[int, np.ndarray]:
        """Which results of an mma depend on doubtful factors: those that a NaN there makes NaN."""
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
        found = {}
        for slot, value in seen.items():
            value = np.ascontiguousarray(value)
            if kinds[0] == "f32":
                found[slot] = np.isnan(value.view(np.float32))
            else:
                halves = value.view(np.float16).reshape(*value.shape, 2)
                found[slot] = np.isnan(halves).any(axis=-1)
        return found

    def _shadow(self, registers: dict[int, np.ndarray], step: Step, run) -> dict[int, np.ndarray]:
        """Run a step on other values, unseen; what it would write, and nothing changed."""
        f = self.f
        kept, trace, races, observed = list(f.r), f.trace, f.races, f.observed
        f.trace, f.races, f.observed = None, None, False
        try:
            for slot, value in registers.items():
                f.r[slot] = value
            run(f)
            return {slot: f.r[slot] for slot in step.writes}
        finally:
            f.r[:] = kept
            f.trace, f.races, f.observed = trace, races, observed

    # -- stores, and what counts as a use -------------------------------------------------------

    def _stored(self, instruction, lanes) -> list[tuple[Segment, np.ndarray, int]]:
        """Refuse doubtful values on their way to global memory; find the bytes of the others."""
        f = self.f
        space = next((p for p in instruction.parts[1:] if p in ("shared", "local")), "")
        found = []
        address = instruction.operands[0]
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
                segment = f.memory.segments[space][0]
                self.stored_from = self.doubts[slot].origin
                at = np.broadcast_to(f.r[base[0]].astype(np.int64), lanes.shape)
                rows = np.broadcast_to(segment.rows, lanes.shape)
                found.append((segment, (at + rows + address.offset + i * nbytes)[doubtful], nbytes))
        return found

    def _tracked(self) -> list[Segment]:
        """All segments, each once, whose bytes are known to be written or not."""
        segments = (s for found in self.f.memory.segments.values() for s in found)
        return list({id(s): s for s in segments if s.valid is not None}.values())

    def _end(self, index: int):
        """Refuse a doubtful predicate or index at the end of a block."""
        step = self.f.code.steps[index]
        slots = [] if step.guard is None else [step.guard[0]]
        for slot in (*slots, *sources_of(step), *addresses_of(step.instruction)):
            self._refuse(step.instruction, slot, self.f.active_lanes, "decides where lanes go")

    def _refuse(self, instruction: Instruction, slot: int, lanes: np.ndarray, how: str):
        doubtful = self._lanes(slot) & lanes
        if doubtful.any():
            self._used(instruction, slot, doubtful, how)

    def _used(self, instruction: Instruction, slot: int, lanes: np.ndarray, how: str):
        raise UninitialisedRead(
            f"{self.doubts[slot].origin}. That value {how}: {self.f.place(instruction)}, "
            f"{self.f.lane_names(lanes)}"
        )

    # -- registers ------------------------------------------------------------------------------

    def _lanes(self, slot: int) -> np.ndarray:
        doubt = self.doubts.get(slot)
        return np.zeros((self.f.blocks, self.f.threads), bool) if doubt is None else doubt.lanes

    def _hold(self, slot: int, lanes: np.ndarray, origin: str):
        if lanes.any():
            self.doubts[slot] = Doubt(lanes, origin)
        else:
            self.doubts.pop(slot, None)


def follows(error: UninitialisedRead, steps: Iterable[Step]) -> int | None:
    """The index of the load at which a read of unwritten memory may be followed, if it may."""
    if error.instruction is None or error.instruction.parts[0] not in LOADS:
        return None
    return next(i for i, step in enumerate(steps) if step.instruction is error.instruction)
