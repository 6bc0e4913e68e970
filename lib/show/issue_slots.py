"""What becomes of the issue slots: FMAs, other instructions by kind, and what empty ones wait for.

An SM issues four instructions a cycle, one in each sub-partition, and the FP32 peak of the data
sheet is an FFMA in each of these slots. So a kernel's share of the peak is the share of slots that
hold an FFMA, and whatever else becomes of a slot is a loss that has a name. All of it follows from
the counters of one profiled run:

=========  ===================================================================
fma        thread FFMAs / 32
tensor     instructions of the tensor pipe
memory     instructions of the LSU: loads, stores, barriers' and shuffles' too
integer    instructions of the ALU and the uniform pipe, and what the FMA pipe does besides FFMA
control    the rest: branches, barriers, conversions
empty      slots of SMs that had a warp, less all instructions
idle       the rest: the SM had no warp (the last wave, the start, the end)
=========  ===================================================================

Which stall an empty slot is due to, no counter says: in such a cycle all warps of a sub-partition
wait, each for its own reason. The empty share is divided in proportion to the warps that wait for
each reason; that division is a model, and figures draw it pale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lib.ptx.core.machine import WARP
from lib.records import ladder
from lib.records import store as records
from lib.records.reader import RecordedRival
from lib.show.cycles import PARTS
from lib.show.display import once_recorded, show
from lib.show.scene import Scene, Span, key, lanes
from lib.show.version import RECORDED_ON, Version, short_name
from lib.show.words import percent

SLOTS_PER_SM = 4
"""Warp instructions that an SM can issue in a cycle."""

READY = ("stall_selected", "stall_not_selected")
"""States of a warp that doesn't wait: it was issued, or could have been."""


@dataclass(frozen=True)
class Account:
    """Shares of all issue slots between a kernel's first cycle and its last; they add up to 1.

    Attributes
    ----------
    issued : mapping of str to float
        Share of all slots by kind of instruction; recorded.
    empty : mapping of str to float
        Share of all slots by the stall that they are put down to, the largest first; modelled.
    idle : float
        Share of slots of SMs without a warp.
    """

    issued: Mapping[str, float]
    empty: Mapping[str, float] = field(default_factory=dict)
    idle: float = 0.0

    def share(self, part: str) -> float:
        """One part: a kind, ``"issued"``, ``"other"``, ``"empty"``, ``"idle"``, or a stall's name.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        sums = {"issued": sum(self.issued.values()), "empty": sum(self.empty.values()),
                "other": sum(self.issued.values()) - self.issued["fma"], "idle": self.idle}
        every = {**self.issued, **self.empty, **sums}
        if part not in every:
            raise ValueError(f"no part {part!r} of the issue slots; there are: {', '.join(every)}")
        return every[part]


def account_of(metrics: Mapping[str, float], sms: int) -> Account:
    """Say what became of the issue slots in one profiled run.

    Parameters
    ----------
    metrics : mapping of str to float
        A record's counters (`lib.measure.counters`): `instructions` of warps, those of its pipes,
        `ffma_thread_instructions`, `cycles` of the longest SM, `issue_active_percent` of the cycles
        in which an SM had a warp, and all ``stall_…`` ratios.
    sms : int
        SMs of the GPU.

    Raises
    ------
    ValueError
        If no instruction was issued.
    """
    issued = metrics["instructions"]
    active = metrics["issue_active_percent"] / 100
    if not issued or not active:
        raise ValueError("no instruction was issued: these are no counters of a kernel")
    every = SLOTS_PER_SM * sms * metrics["cycles"]
    at_work = min(issued / active, every)  # the percentage is rounded
    fma = metrics["ffma_thread_instructions"] / WARP
    of_alu = metrics["pipe_alu"] + metrics["pipe_uniform"] + metrics["pipe_fma"]
    kinds = {"fma": fma, "tensor": metrics["pipe_tensor"], "memory": metrics["pipe_lsu"],
             "integer": of_alu - fma}
    kinds["control"] = max(issued - sum(kinds.values()), 0)
    waits = {name.removeprefix("stall_"): value for name, value in metrics.items()
             if name.startswith("stall_") and name not in READY and value > 0}
    empty = (at_work - issued) / every / sum(waits.values()) if waits else 0.0
    return Account({kind: count / every for kind, count in kinds.items()},
                   {reason: empty * value
                    for reason, value in sorted(waits.items(), key=lambda wait: -wait[1])},
                   (every - at_work) / every)


# Name in the counters, name for people, colour; the last of each is all that isn't named.
ISSUED = (("fma", "FMA", "compute"), ("tensor", "tensor", "compute"),
          ("memory", "load, store", "memory"), ("integer", "integer, address", "integer"),
          ("control", "other", "control"))
STALLS = (("long_scoreboard", "long scoreboard", "stall-long-scoreboard"),
          ("lg_throttle", "LG throttle", "stall-lg-throttle"),
          ("short_scoreboard", "short scoreboard", "stall-short-scoreboard"),
          ("mio_throttle", "MIO throttle", "stall-mio-throttle"),
          ("barrier", "barrier", "stall-barrier"), ("wait", "wait", "stall-wait"),
          ("dispatch_stall", "dispatch", "stall-dispatch-stall"), ("gmma", "gmma", "stall-gmma"),
          ("", "other stalls", "stalls"))
_SMALL = 0.02  # a part that is smaller in every bar joins the last one


def picture(kernels: Mapping[str, Account], *, evidence: str) -> Scene:
    """Draw one bar a kernel, issued slots full, empty ones pale, by stall.

    Parameters
    ----------
    kernels : mapping of str to Account
        By name, in the order to draw; the last is this chapter's.
    """
    current, keys = list(kernels)[-1], []
    bars: dict[str, list[Span]] = {name: [] for name in kernels}
    for pale, (*named, rest) in enumerate((ISSUED, STALLS)):
        shares = {name: one.empty if pale else one.issued for name, one in kernels.items()}
        large = [part for part in named
                 if any(found.get(part[0], 0) >= _SMALL for found in shares.values())]
        keys.append([(colour, label, bool(pale)) for _, label, colour in (*large, rest)])
        for name, found in shares.items():
            each = [found.get(part, 0.0) for part, _, _ in large]
            for share, (colour, _, _) in zip(
                    (*each, sum(found.values()) - sum(each)), keys[-1], strict=True):
                _add(bars[name], share, f"{colour} pale" if pale else colour)
    for name, one in kernels.items():
        _add(bars[name], one.idle, "hollow")
    keys[-1].append(("hollow", "SM without a warp", False))
    return Scene(_finding(current, kernels[current]),
                 "".join(key(*entries) for entries in keys) + lanes(bars.items(), 1.0),
                 evidence, "% of issue slots; pale: empty, by stall, modelled by warps stalled")


def _add(bar: list[Span], share: float, colour: str) -> None:
    at = bar[-1][1] if bar else 0.0
    bar.append((at, at + share, colour, f"{100 * share:.0f}"))


def label(stall: str) -> str:
    """A stall's name for people."""
    return stall.removesuffix("_stall").replace("_", " ").replace("lg", "LG").replace("mio", "MIO")


def _finding(name: str, found: Account) -> str:
    work = "tensor" if found.issued["tensor"] > found.issued["fma"] else "fma"
    kind = "a tensor instruction" if work == "tensor" else "an FMA"
    main = next(iter(found.empty), None)
    what = f"{percent(found.issued[work])} of the issue slots hold {kind}"
    empty = sum(found.empty.values())
    if main is None:
        return f"{name}: {what}"
    return f"{name}: {what}, {percent(empty)} stay empty; the largest stall is {label(main)}"


SIZE = 4096  # M = N = K of the recorded launches


@once_recorded()
def draw(version: Version, above: Sequence[str] | None = None, rival: bool = False) -> None:
    """Draw the account of issue slots: of versions before, of cuBLAS and of this one.

    Parameters
    ----------
    rival : bool
        Draw cuBLAS between them.
    """
    if above is None:
        above = [version.before.kernel.stem] if version.before else []
    bars = {short_name(page.kernel): _account(page) for page in map(version.of, above)}
    if rival:
        cublas = RecordedRival(RECORDED_ON)
        bars["cuBLAS"] = account_of(cublas.counters(SIZE, "fp32"), cublas.record.gpu.sms)
    bars[short_name(version.kernel)] = _account(version)
    show(picture(bars, evidence=f"{records.label(version.record)}, ncu, {SIZE:,}³"))


def _account(version: Version) -> Account:
    return account_of(version.metrics(SIZE), version.record.gpu.sms)


def shares(version: Version) -> dict[str, float]:
    """Of all issue slots of a version's fastest kernel in the ladder's pass, by `PARTS`' names."""
    record = ladder.load(RECORDED_ON)
    entry = record.entries[f"{version.kernel.stem}/{version.kernel.fastest.name}"]
    metrics = next(one.metrics for one in entry.counters if one.is_cube(SIZE))
    found = account_of(metrics, record.gpu.sms)
    parts = zip(PARTS, ("fma", "other", "empty", "idle"), strict=True)
    return {name: found.share(part) for (_, name), part in parts}
