"""A kernel, decoded: its steps, the basic blocks they form, which of them poll or need warps."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .addressing import mark_origins, space_of
from .analysis import (
    Regions,
    is_between_blocks,
    live,
    slots_of,
    spin_loops,
    unheeded,
    unused,
)
from .batch import PASSED, BasicBlock, Step, fuse
from .decode import DECODE_PASSES, Decoding, decoder, predicated
from .errors import ParseError
from .linking import link
from .memory import LOADS
from .registers import RegisterFile
from .syntax import Entry, Instruction, Program, Variable

# What the lanes that a mask names do together, and wait for each other to do.
WARP_COLLECTIVES = ("shfl", "vote", "match", "redux", "elect")


class Code:
    """An entry, decoded.

    `registers`: slots of what the steps read and write. `steps`: one per instruction. `blocks`:
    basic blocks by the index of their first instruction. `aligned`: blocks in which a step needs
    all lanes of a warp. `polling`: blocks inside of loops that only wait for a flag. `start`: the
    kernel's first instruction; before it stand the functions that it calls. `calls`: whether it
    calls any. `cooperative`: whether blocks of the grid may wait for each other. `cancels`: whether
    a block may take over the work of another that has not begun.
    """

    def __init__(self, program: Program, entry: Entry) -> None:
        self.entry = entry = link(program, entry)
        self.kernel, self.start = entry.name, entry.start
        self.registers = RegisterFile(program, entry)
        self.place = self.registers.place
        self.steps = [self._step(i, each) for i, each in enumerate(entry.instructions)]
        for callee in entry.functions.values():
            for variable in (*callee.formals, *callee.results) if callee.frame else ():
                if isinstance(variable, Variable):
                    self.registers.address_of(variable.name, 0, np.dtype("u8"))
        self.calls = any(
            step.instruction.parts[0] in ("call", "alloca", "stacksave") for step in self.steps
        )
        mark_origins(self.steps, self.registers)
        for decode_pass in DECODE_PASSES:
            decode_pass(self.steps)
        self.blocks = self._blocks()
        self.aligned = {
            start
            for start, block in self.blocks.items()
            if any(map(_needs_warps, self.steps[start : start + block.length]))
        }
        loops = spin_loops(self.steps)
        self.polling = {start for start in self.blocks if any(start in loop for loop in loops)}
        self.cooperative = any(is_between_blocks(loop, self.steps) for loop in loops)
        self.cancels = any(
            step.instruction.opcode.startswith("clusterlaunchcontrol.try_cancel")
            for step in self.steps
        )

    @cached_property
    def live(self) -> dict[int, int]:
        """The slots that are live where each block begins, as bits, by its first instruction."""
        return live(self.steps, self.blocks)

    @cached_property
    def regions(self) -> Regions:
        """What lies between each branch and where its lanes come together again."""
        return Regions(self.steps, self.blocks)

    @cached_property
    def unwritten(self) -> int:
        """The slots of registers that may be read before anybody writes them, as bits."""
        return self.live.get(self.start, 0)

    @cached_property
    def touched(self) -> list[int]:
        """The slots of each step's registers, as bits; -1 if it may read what nobody wrote."""
        return [-1 if _reads_more(step.instruction) else sum(1 << slot for slot in _slots(step))
                for step in self.steps]

    @cached_property
    def unused_loads(self) -> set[int]:
        """The indices of loads that nothing with an effect is made of."""
        instructions = [step.instruction for step in self.steps]
        return {i for i in unused(instructions) if instructions[i].parts[0] == "ld"}

    @cached_property
    def unheeded(self) -> frozenset[int]:
        """The indices of waits that the kernel may go on behind although they have failed."""
        return unheeded(self.steps)

    def _step(self, index: int, instruction: Instruction) -> Step:
        decoding = Decoding(self.registers, instruction, index)
        decode = decoder(decoding)
        try:
            run = decode(decoding)
        except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as fault:
            # The decoding functions take well-formed operands for granted.
            raise ParseError(
                f"{decoding.place}: operands or modifiers do not fit the instruction"
            ) from fault
        guard = None
        if instruction.guard is not None:
            guard = (instruction.guard[0].slot, instruction.guard[1])
        return Step(run, tuple(decoding.writes), instruction, decoding.ends, guard)

    def _blocks(self) -> dict[int, BasicBlock]:
        """Cut the steps at labels and behind every step that may part the lanes."""
        starts = {0, self.start} | {c.start for c in self.entry.functions.values()}
        starts |= {i.target for i in self.entry.instructions if i.target is not None}
        starts |= {target for i in self.entry.instructions for target in i.targets}
        starts |= {i + 1 for i, step in enumerate(self.steps) if step.ends}
        blocks: dict[int, BasicBlock] = {}
        for start in sorted(starts):
            block = blocks[start] = BasicBlock(start)
            at = start
            while at < len(self.steps):
                step = self.steps[at]
                at += 1
                if step.ends:
                    block.end = step.run
                    break
                run, writes = step.run, step.writes
                if step.guard is not None:
                    # A guarded step merges what it writes by itself.
                    run, writes = predicated(step, at - 1, step.guard), ()
                block.single.append((run, writes))
                if at in starts:
                    break
            block.pairs, block.put_off = fuse(
                block.single, [_touched(s) for s in self.steps[start : start + len(block.single)]]
            )
            block.runs = [run for run, _ in block.pairs]
            block.next, block.length = at, at - start
        return blocks


def _touched(step: Step) -> set[int] | None:
    """The slots that a step reads or writes; None if steps before it must not wait for it."""
    return _slots(step) if step.instruction.parts[0] in PASSED else None


def _slots(step: Step) -> set[int]:
    """The slots that a step reads or writes."""
    guard = () if step.guard is None else step.guard[:1]
    return slots_of(step.instruction).union(step.writes, guard)


def _reads_more(instruction: Instruction) -> bool:
    """Whether what nobody wrote may come from elsewhere than the registers that are named.

    What lies in global memory is the caller's.
    """
    kind = instruction.parts[0]
    return kind in ("shfl", "tcgen05") or (
        kind in LOADS and space_of(instruction) not in ("global", "const"))


def _needs_warps(step: Step) -> bool:
    """Tell whether a step needs all lanes of a warp; barriers see to that by themselves."""
    parts = step.instruction.parts
    if parts[0] in WARP_COLLECTIVES:
        return "sync" in parts
    return "aligned" in parts and parts[0] not in ("bar", "barrier")
