"""A ring's barriers, event by event, and cp.async's groups, wait by wait."""

from __future__ import annotations

from functools import cache

from lib.plotting.display import table
from lib.ptx.core.machine import WARP
from lib.topics.time.phases import model
from lib.topics.version import Version


@cache
def _events(stem: str, variant: str) -> tuple[model.Event, ...]:
    kernel = Version(stem).kernel
    return model.trace(kernel, kernel.variant(variant))


def trace(version: Version, variant: str | None = None, steps: tuple[int, ...] | None = None
          ) -> None:
    """Display what the barriers of a ring count while one block computes one tile.

    Parameters
    ----------
    version : Version
        18 to 23: one that loads by TMA.
    steps : tuple of int, optional
        Steps along K whose events are shown: the first, and the one that meets its stage again,
        with the other parity, if none are given.
    """
    chosen = version.kernel.variant(variant)
    events = _events(version.kernel.stem, chosen.name)
    stages = 1 + max(event.stage for event in events if event.barrier == "filled")
    wanted = (0, stages) if steps is None else steps
    rows = [
        (f"{event.step}, {event.stage}", _who(event, chosen.roles.warps),
         _does(event) + ("" if event.parity is None else f" of parity {event.parity}"),
         event.barrier, f"{event.arrivals}, {event.pending:,}",
         f"{event.phase} → {event.phase + 1}" if event.completes else event.phase)
        for event in events if event.step in wanted
    ]
    table(
        ("step, stage", "who", "does", "barrier", "pending arrivals, bytes", "phase"),
        rows, f"emulated: {version.kernel.stem}, {chosen.name}, one tile in "
        f"{1 + max(event.step for event in events if event.kind == 'expect')} steps, copies "
        "landing as late as they may; counts are those behind the event",
    )


def groups(version: Version, variant: str | None = None) -> None:
    """Display the groups of cp.async that a thread has committed and waited for, wait by wait.

    Parameters
    ----------
    version : Version
        16 or 17: one whose ring cp.async fills.
    """
    chosen = version.kernel.variant(variant)
    stages = chosen.schedule.stages
    rows: list[tuple[object, ...]] = []
    waits = model.groups(version.kernel, chosen)
    tiles = len(waits) - 2  # one wait before the loop, one in each step, one behind it
    for number, one in enumerate(waits):
        last = one.complete - 1
        read = f"{last}, in stage {last % stages}" if last < tiles else "none: behind the last"
        rows.append((number, one.committed, one.keep, f"0 to {last}", read, one.flying))
    if len(rows) > 6:  # what lies between the first and the last is the same
        rows[3:-3] = [("…", *[""] * (len(rows[0]) - 1))]
    table(
        ("wait", "groups committed", "N of `wait_group N`", "groups complete",
         "tile that may be read now", "copies of the thread still under way"),
        rows, f"emulated: {version.kernel.stem}, {chosen.name}, {stages} stages, thread 0; group i "
        f"has the copies of tile i, of {tiles}; behind the last it is empty",
    )


def _who(event: model.Event, roles: tuple[tuple[str, int], ...]) -> str:
    if not event.threads:
        return "TMA" if event.kind == "land" else "the cluster's other blocks"
    warps = sorted({thread // WARP for thread in event.threads})
    where = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]} to {warps[-1]}"
    if len(warps) == 2 and warps[1] > warps[0] + 1:
        where = f"warps {warps[0]} and {warps[1]}"
    whole = len(event.threads) == WARP * len(warps)
    said = where if whole else f"{where}, {len(event.threads) // len(warps)} thread" + (
        " each" if len(warps) > 1 else "")
    role = _role(warps, roles)
    return f"{role}: {said}" if role else said


def _role(warps: list[int], roles: tuple[tuple[str, int], ...]) -> str:
    first = 0
    for name, count in roles:
        if all(first <= warp < first + count for warp in warps):
            return name
        first += count
    return ""


def _does(event: model.Event) -> str:
    if event.kind == "expect":
        return f"`arrive.expect_tx` {event.nbytes:,} B"
    if event.kind == "copy":
        return f"starts the copies, {event.nbytes:,} B"
    if event.kind == "land":
        return f"{event.nbytes:,} B land"
    if event.kind == "arrive":
        others = f", with {event.peers} of the cluster's other blocks" if event.peers and (
            event.threads) else ""
        return f"`arrive`{others}: the stage is given back"
    which = "the tile is there" if event.barrier == "filled" else "the stage is free"
    return f"`try_wait`: {which}" if event.kind == "wait" else "`try_wait`: not yet"
