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
each reason; that division is a model, and figures hatch it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.kernels.spec import parted
from lib.ptx.core.machine import WARP
from lib.records import ladder
from lib.records import store as records
from lib.records.reader import RecordedRival
from lib.show import chart as style
from lib.show.cycles import PARTS
from lib.show.display import both, once_recorded
from lib.show.version import RECORDED_ON, Version, short_name

SLOTS_PER_SM = 4
"""Warp instructions that an SM can issue in a cycle."""

KINDS = ("fma", "tensor", "memory", "integer", "control")
"""What an issued instruction is."""

READY = ("selected", "not_selected")
"""States of a warp that doesn't wait: it was issued, or could have been."""


@dataclass(frozen=True)
class Slots:
    """Shares of all issue slots between a kernel's first cycle and its last; they add up to 1."""

    fma: float
    other: float
    empty: float
    idle: float

    @property
    def issued(self) -> float:
        """Share of the slots of working SMs that hold an instruction."""
        return (self.fma + self.other) / (1 - self.idle)


@dataclass(frozen=True)
class Account:
    """`Slots` in detail.

    Attributes
    ----------
    issued : mapping of str to float
        Share of all slots by kind of instruction (`KINDS`); recorded.
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


def slots(metrics: Mapping[str, float], sms: int) -> Slots:
    """Say what became of the issue slots in one profiled run.

    Parameters
    ----------
    metrics : mapping of str to float
        A record's counters (`lib.measure.counters`): `instructions` of warps,
        `ffma_thread_instructions`, `cycles` of the longest SM, `issue_active_percent` of the cycles
        in which an SM had a warp.
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
    fma = metrics["ffma_thread_instructions"] / WARP
    at_work = min(issued / active, every)  # the percentage is rounded
    return Slots(fma=fma / every, other=(issued - fma) / every, empty=(at_work - issued) / every,
                 idle=(every - at_work) / every)


def account_of(metrics: Mapping[str, float], sms: int) -> Account:
    """Divide `slots` further: instructions by kind, empty slots by stall.

    Parameters
    ----------
    metrics : mapping of str to float
        As `slots` takes them, with the ``pipe_…`` instructions and all ``stall_…`` ratios.
    sms : int

    Raises
    ------
    ValueError
        If no instruction was issued, or these counters hold no instructions by pipe.
    """
    found = slots(metrics, sms)
    if "pipe_alu" not in metrics:
        raise ValueError("these counters hold no instructions by pipe: record them again")
    share = (found.fma + found.other) / metrics["instructions"]
    fma = metrics["ffma_thread_instructions"] / WARP
    pipes = {kind: sum(metrics.get(f"pipe_{pipe}", 0) for pipe in names) for kind, names in {
        "tensor": ("tensor",), "memory": ("lsu",), "integer": ("alu", "uniform", "fma"),
    }.items()}
    pipes["integer"] -= fma
    issued = {"fma": found.fma, **{kind: count * share for kind, count in pipes.items()}}
    issued["control"] = max(found.fma + found.other - sum(issued.values()), 0.0)
    waits = {reason: metrics[name] for name, reason in stalls(metrics) if metrics[name] > 0}
    waiting = sum(waits.values())
    return Account(
        {kind: issued[kind] for kind in KINDS},
        {reason: found.empty * value / waiting
         for reason, value in sorted(waits.items(), key=lambda wait: -wait[1])},
        found.idle,
    )


def stalls(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """Name in the counters, and name, of each reason for which a warp waits."""
    reasons = [(name, name.removeprefix("stall_")) for name in metrics
               if name.startswith("stall_")]
    return [(name, reason) for name, reason in reasons if reason not in READY]


_NAME, _BAR, _ROW, _LINE = 128.0, 376.0, 27.0, 15.0
_NARROW_BAR = 248.0
# Kinds of instruction, and reasons to wait, as Nsight Compute's documentation names them.
_ISSUED = {
    "fma": "FMA", "tensor": "tensor", "memory": "load, store", "integer": "integer, address",
    "control": "other",
}
STALLS = {
    "long_scoreboard": "long scoreboard", "lg_throttle": "LG throttle",
    "short_scoreboard": "short scoreboard", "mio_throttle": "MIO throttle", "barrier": "barrier",
    "wait": "wait", "dispatch_stall": "dispatch", "gmma": "gmma",
}
_OTHER, _IDLE = "other stalls", "SM without a warp"
_LEAST = 0.035  # a share that is not narrower than its own number
_SMALL = 0.02  # a part that is smaller in every bar joins the others


@dataclass(frozen=True)
class _Part:
    label: str
    colour: str
    hatched: bool = False


@style.styled
def picture(
    kernels: Mapping[str, Account], *, evidence: str, narrow: bool = False
) -> Figure:
    """Draw one bar a kernel, issued slots filled, empty ones hatched by stall.

    Parameters
    ----------
    kernels : mapping of str to Account
        By name, in the order to draw; the last one's name is bold, and the finding is about it.
    """
    current = list(kernels)[-1]
    parts, shares = _parts(kernels)
    left, full = (0.0, _NARROW_BAR) if narrow else (_NAME, _BAR)
    above = _LINE if narrow else 0.0
    legend = [_rows_of([(part, parts[part]) for part in parts if parts[part].hatched == hatched],
                       full) for hatched in (False, True)]
    lines = sum(len(rows) for rows in legend) + 2 * narrow
    height = _LINE * lines + 8 + (_ROW + above) * len(kernels) + 2
    fig, ax = style.canvas(_finding(current, kernels[current]), height, narrow)
    y = height
    for heading, rows in zip(("issued", "empty, by stall"), legend, strict=True):
        y -= above
        for i, row in enumerate(rows):
            y -= _LINE
            _legend(ax, left, y, row)
            if not i:
                _name(ax, heading, left, y + above + 5, style.SMALL, "normal", narrow)
    y -= 8
    for name, found in shares.items():
        y -= _ROW + above
        _name(ax, name, left, y + (_ROW + above - 6 if narrow else _ROW / 2), style.NORMAL,
              "bold" if name == current else "normal", narrow)
        _bar(ax, left, y, full, parts, found)
    return style.finish(
        fig, alt=_alt(kernels), evidence=evidence,
        note="% of issue slots; hatched: modelled, by warps stalled")


def _parts(kernels: Mapping[str, Account]) -> tuple[dict[str, _Part], dict[str, dict[str, float]]]:
    """What the bars are made of, in order, and each kernel's shares; small ones are joined."""
    def large(name: str) -> bool:
        return any({**one.issued, **one.empty}.get(name, 0) >= _SMALL for one in kernels.values())

    parts = {kind: _Part(_ISSUED[kind], style.ISSUED[kind])
             for kind in _ISSUED if kind == "control" or large(kind)}
    parts |= {stall: _Part(label, style.STALL[stall], True)
              for stall, label in STALLS.items() if large(stall)}
    parts |= {_OTHER: _Part(_OTHER, style.OTHER_STALL, True), _IDLE: _Part(_IDLE, "none", True)}
    shares = {}
    for name, one in kernels.items():
        found = dict.fromkeys(parts, 0.0)
        for kind, share in one.issued.items():
            found[kind if kind in parts else "control"] += share
        for stall, share in one.empty.items():
            found[stall if stall in parts else _OTHER] += share
        found[_IDLE] = one.idle
        shares[name] = found
    return parts, shares


def _name(ax: Axes, text: str, left: float, y: float, size: float, weight: str, narrow: bool
          ) -> None:
    """Write what stands beside a bar or the legend, or above it."""
    ax.text(left if narrow else left - 6, y, text, size=size, ha="left" if narrow else "right",
            va="center", weight=weight)


def _rows_of(parts: list[tuple[str, _Part]], room: float) -> list[list[_Part]]:
    """The legend's entries, in as many rows as they take."""
    rows: list[list[_Part]] = [[]]
    left = 0.0
    for _, part in parts:
        width = _width(part)
        if left + width > room and rows[-1]:
            rows.append([])
            left = 0.0
        rows[-1].append(part)
        left += width
    return rows


def _width(part: _Part) -> float:
    return 26 + 5.4 * len(part.label)


def _legend(ax: Axes, left: float, y: float, row: list[_Part]) -> None:
    for part in row:
        _fill(ax, (left, y, 10, 10), part)
        ax.text(left + 14, y + 5, part.label, va="center")
        left += _width(part)


def _fill(ax: Axes, box: tuple[float, float, float, float], part: _Part) -> None:
    if part.colour == "none":
        style.frames(ax, [box])
    elif part.hatched:
        style.rectangles(ax, [box], facecolor=part.colour, alpha=style.PALE)
        style.rectangles(ax, [box], facecolor="none", edgecolor=part.colour, hatch="////",
                          linewidth=0.6)
    else:
        style.rectangles(ax, [box], facecolor=part.colour)


def _bar(
    ax: Axes, left: float, y: float, full: float, parts: Mapping[str, _Part],
    found: Mapping[str, float],
) -> None:
    x = left
    for name, part in parts.items():
        width = found[name] * full
        if width > 0:
            _fill(ax, (x, y + 4, width, _ROW - 8), part)
        if width >= _LEAST * _BAR:
            ax.text(x + width / 2, y + _ROW / 2 - 0.5, f"{100 * found[name]:.0f}", ha="center",
                    va="center", color=style.INK if part.hatched else style.on(part.colour))
        x += width
    style.frames(ax, [(left, y + 4, full, _ROW - 8)], 0.5, alpha=0.7)


def label(stall: str) -> str:
    """A stall's name for people."""
    return stall.removesuffix("_stall").replace("_", " ").replace("lg", "LG").replace("mio", "MIO")


def _finding(name: str, found: Account) -> str:
    work = "tensor" if found.issued["tensor"] > found.issued["fma"] else "fma"
    kind = "a tensor instruction" if work == "tensor" else "an FMA"
    main = next(iter(found.empty), None)
    what = f"{style.percent(found.issued[work])} of the issue slots hold {kind}"
    empty = sum(found.empty.values())
    if main is None:
        return f"{name}: {what}"
    return f"{name}: {what}, {style.percent(empty)} stay empty; the largest stall is {label(main)}"


def _alt(kernels: Mapping[str, Account]) -> str:
    said = []
    for name, one in kernels.items():
        shares = [f"{style.percent(share)} {_ISSUED[kind]}"
                  for kind, share in one.issued.items() if share >= 0.005]
        shares += [f"{style.percent(share)} empty by {label(stall)}"
                   for stall, share in one.empty.items() if share >= _SMALL]
        said.append(f"{name}: " + ", ".join(shares) + ".")
    return "Of all issue slots, " + " ".join(said)


@once_recorded()
def draw(
    version: Version, *variants: str, above: Sequence[str] | None = None, rival: bool = False,
    size: int = 4096,
) -> None:
    """Draw the account of issue slots: of versions before, of cuBLAS and of some variants.

    Parameters
    ----------
    rival : bool
        Draw cuBLAS between them.
    """
    if above is None:
        above = [version.before.kernel.stem] if version.before else []
    bars = {}
    for one in above:
        stem, name = parted(one)
        page = version.of(stem)
        bars[f"{short_name(page.kernel)} {name or ''}".rstrip()] = account(page, name, size)
    if rival:
        cublas = RecordedRival(RECORDED_ON)
        bars["cuBLAS"] = account_of(cublas.counters(size, "fp32"), cublas.record.gpu.sms)
    for variant in variants or (None,):
        label = f"{version.kernel.stem[:2]} {variant}" if variant else short_name(version.kernel)
        bars[label] = account(version, variant, size)
    evidence = f"{records.label(version.record)}, ncu, {size:,}³"
    both(picture, bars, evidence=evidence)


def account(version: Version, variant: str | None = None, size: int = 4096) -> Account:
    """The account of the recorded run of a variant."""
    return account_of(version.metrics(size, variant), version.record.gpu.sms)


def shares(version: Version, size: int = 4096) -> dict[str, float]:
    """Of all issue slots of a version's fastest kernel in the ladder's pass, by `PARTS`' names."""
    record = ladder.load(RECORDED_ON)
    entry = record.entries[f"{version.kernel.stem}/{version.kernel.fastest.name}"]
    metrics = next(one.metrics for one in entry.counters if one.M == one.N == one.K == size)
    found = account_of(metrics, record.gpu.sms)
    parts = zip(PARTS, ("fma", "other", "empty", "idle"), strict=True)
    return {name: found.share(part) for (_, name), part in parts}
