"""Predicated execution: a step, or the end of a basic block, for the lanes whose guard holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .step import Step

if TYPE_CHECKING:
    from .batch import Batch
    from .decode import Decoding
    from .step import Run


def predicated(step: Step, index: int, guard_of: tuple[int, bool]) -> Run:
    """Wrap a step that has a predicate: it runs for the lanes where the predicate holds.

    `index`: of the step. `guard_of`: the predicate's slot, and whether it must not hold.
    """
    run, writes = step.run, step.writes
    guard, negated = guard_of

    def when(f: Batch) -> None:
        predicate = f.r[guard]
        chosen = f.select(~predicate if negated else predicate)
        if chosen is not False:
            active, merge = f.active, f.merge
            if chosen is not active and chosen is not None:
                f.active, f.merge = chosen, chosen.array
                f.masked(run, writes, chosen.array)
                f.active, f.merge = active, merge
            elif merge is None:
                run(f)
            else:
                f.masked(run, writes, merge)
        # Last, so that a step that is begun again is counted once.
        if f.trace is not None:
            f.trace.guarded(index, chosen, f)

    return when


def predicated_end(d: Decoding, end: Run) -> Run:
    """Make the end of a block that holds only for lanes with the predicate; others go on."""
    d.ends = True
    otherwise = d.index + 1
    if d.instruction.guard is None:
        return end
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]

    def step(f: Batch) -> None:
        active = f.active
        predicate = ~f.r[slot] if negated else f.r[slot]
        chosen = f.select(predicate)
        if chosen is False:
            f.go(otherwise, active)
            return
        if chosen is not active:
            f.active = f.selected(~predicate)
            f.go(otherwise, f.active)
        f.active = chosen
        end(f)

    return step
