"""Predicated execution: a step, or the end of a basic block, for the lanes whose guard holds."""

from __future__ import annotations

from .step import Step


def predicated(step: Step, index: int):
    """Wrap a step that has a predicate: it runs for the lanes where the predicate holds."""
    run, writes, (guard, negated) = step.run, step.writes, step.guard

    def when(f):
        predicate = f.r[guard]
        chosen = f.select(~predicate if negated else predicate)
        if chosen is not False:
            active, merge = f.active, f.merge
            if chosen is not active:
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


def predicated_end(d, end):
    """Make the end of a block that holds only for lanes with the predicate; others go on."""
    d.ends = True
    otherwise = d.index + 1
    if d.instruction.guard is None:
        return end
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]

    def step(f):
        active = f.active
        predicate = ~f.r[slot] if negated else f.r[slot]
        chosen = f.select(predicate)
        if chosen is False:
            f.go(otherwise, active)
            return
        if chosen is not active:
            f.active = f.select(~predicate)
            f.go(otherwise, f.active)
        f.active = chosen
        end(f)

    return step
