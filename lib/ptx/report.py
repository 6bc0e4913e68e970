"""A launch in words: how it ended, what is suspicious, and what each line of the source asked for.

An access inside a header of CUDA's is told at the line that called it, and accesses of one line and
kind are added up, as a reader of the source would count them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from . import advice
from .core.code import Code
from .core.errors import Error
from .core.hazards import SAME_VALUE, Access, Hazard
from .core.segment import Allocation
from .count.trace import COUNTS, Site, Trace
from .source_lines import SourceLines

Place = tuple[str, int]


@dataclass(frozen=True)
class Finding:
    """Hazards of one kind between the same two lines of the source.

    Attributes
    ----------
    kind : str
        See `Hazard`.
    first, second : str
        The lines, such as ``"gemm.cu:14"``; PTX lines where the code was compiled without them.
    pairs : int
        Of PTX instructions.
    example : Hazard
        The first one found.
    """

    kind: str
    first: str
    second: str
    pairs: int
    example: Hazard

    def __str__(self) -> str:
        lines = self.first if self.second in ("", self.first) else f"{self.first} and {self.second}"
        several = f", {self.pairs:,} pairs of instructions" if self.pairs > 1 else ""
        return f"{self.kind}: {lines}{several}"

    @property
    def advice(self) -> str:
        """What to do about it, in one sentence."""
        return advice.for_hazard(self.example)


@dataclass
class Launch:
    """What a launch left behind; ``print(launch)`` tells of it.

    Attributes
    ----------
    kernel : str
        Name of the entry.
    races, merged : bool
        Whether races were looked for, and whether ptxas's merging of accesses was made known.
    looked_at : int
        Reads and writes of a word, of a lane or of the hardware, that were looked at for races.
    trace : Trace or None
        Counters, sites and watched addresses; None if the launch was told not to trace.
    hazards : list of Hazard
        Races and torn barriers, by pair of instructions; `findings` has them by pair of lines.
    remarks : list of Hazard
        What makes no launch unclean: one value that several lanes store to one word, and, of a
        strict launch, what PTX's text leaves open.
    allocations : list of Allocation
        Which addresses are which argument's array.
    shared : list of Allocation
        Where each variable lies in a block's shared memory.
    errors : list of Error
        What stopped blocks of it, if the launch was told to go on.
    seconds : float
        How long the emulator took.
    code : Code or None
        What ran.
    sources : SourceLines
        Where reports find the lines of the source.
    failed : list of int
        Indices of the waits for mbarriers that failed in a second run, as they may: behind them
        the kernel may go on all the same. Arrays and counters are those of the first.
    """

    kernel: str
    races: bool
    merged: bool
    trace: Trace | None
    hazards: list[Hazard] = field(default_factory=list)
    remarks: list[Hazard] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    shared: list[Allocation] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    seconds: float = 0.0
    looked_at: int = 0
    code: Code | None = field(default=None, repr=False)
    sources: SourceLines = field(default_factory=SourceLines, repr=False)
    failed: list[int] = field(default_factory=list)

    @property
    def traced(self) -> Trace:
        """`trace`, of a launch that has one.

        Raises
        ------
        Error
            If the launch was told not to trace.
        """
        if self.trace is None:
            raise Error(f"{self.kernel}: the launch was told not to trace")
        return self.trace

    @property
    def findings(self) -> list[Finding]:
        """The hazards, those of one kind between the same two lines of the source as one.

        One missing barrier is hundreds of hazards, a pair of instructions each, in unrolled code.
        """
        return grouped(self.hazards)

    @property
    def clean(self) -> bool:
        """Whether it ran to its end and nothing is suspicious."""
        return not self.hazards and not self.errors

    def __str__(self) -> str:
        return report(self)


@dataclass
class Line:
    """What one line of the source asked of one memory."""

    place: str  # such as ``"gemm.cu:14"``
    # kind, space: see `Site`; "fma" and no space for multiply-adds, whose lanes are counted.
    kind: str
    space: str
    # requests, lanes, sectors, wavefronts, ideal: see `Site`; summed over its accesses.
    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0

    def add(self, site: Site) -> None:
        """Add an access."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(site, name))


def own_place(places: Sequence[Place], own: str) -> Place | None:
    """Of a line and the lines that called it, inside out, the first in the user's own files.

    `places`: file and line. `own`: a file of the user's: those in its folder and below are, too.
    """
    folder = PurePath(own).parent
    mine = (p for p in places if PurePath(p[0]) == PurePath(own)
            or folder != PurePath(".") and PurePath(p[0]).is_relative_to(folder))
    return next(mine, places[-1] if places else None)


def by_line(
    sites: Iterable[Site], source: str | None = None,
    multiply_adds: Mapping[tuple[Place, ...], int] | None = None,
) -> list[Line]:
    """Add up memory accesses by the user's line, in the order of the lines.

    `sites`: of `Trace.sites`. `multiply_adds`: `Trace.multiply_adds`. `source`: the user's file;
    the one that the first access was called from if not given.
    """
    found: dict[tuple, Line] = {}
    for site in sites:
        places = (*([site.cuda] if site.cuda else []), *site.callers)
        source = source or (places[-1][0] if places else None)
        place = own_place(places, source) if source is not None and places else None
        key = (place or ("", site.line), site.kind, site.space)
        if key not in found:
            found[key] = Line(_named(place, site.line), site.kind, site.space)
        found[key].add(site)
    for places, lanes in (multiply_adds or {}).items():
        source = source or places[-1][0]
        place = own_place(places, source) if places[0][0] else None
        line = found.setdefault(
            (place or places[0], "fma", ""), Line(_named(place, places[0][1]), "fma", "")
        )
        line.lanes += lanes
    return [found[key] for key in sorted(found)]


def grouped(hazards: Iterable[Hazard]) -> list[Finding]:
    """Put hazards of one kind between the same two lines of the source together.

    What is inlined from a header of CUDA's is told where it was called.
    """
    found: dict[tuple[str, str, str], list[Hazard]] = {}
    for hazard in hazards:
        key = hazard.kind, _line_of(hazard.first), _line_of(hazard.second)
        found.setdefault(key, []).append(hazard)
    return [Finding(*key, len(several), several[0]) for key, several in found.items()]


def report(launch: Launch) -> str:
    """Tell of a launch: how it ended, what is suspicious, what each line asked for."""
    stopped = len(launch.errors)
    ended = f"was stopped in {stopped:,} of its parts" if stopped else "ran to its end"
    words = "; ".join(f"{thing}: {what}" for thing, what in verdicts(launch).items())
    parts = [f"kernel '{launch.kernel}' {ended}; {words}{':' if launch.findings else '.'}"]
    for error in launch.errors[:MAX_ERRORS]:
        parts += [f"  {type(error).__name__}: {error}",
                  *(f"    {note}" for note in getattr(error, "__notes__", ()))]
    if stopped > MAX_ERRORS:
        parts.append(f"  and {stopped - MAX_ERRORS:,} more")
    if launch.failed and launch.code is not None:
        waits = [launch.code.steps[index].instruction for index in launch.failed]
        places = dict.fromkeys(_line_of(Access.of(each, (0, 0, 0), 0)) for each in waits)
        parts.append(f"  It ran twice, once with the waits at {', '.join(places)} failing at "
                     "first: it may go on behind them all the same.")
    parts += [f"  {row}" for row in hazard_lines(launch.findings, launch.sources)]
    parts += [f"  {row}" for each in grouped(launch.remarks)
              for row in _finding_lines(each, launch.sources)]
    if launch.trace is not None and launch.trace.sites:
        lines = by_line(launch.trace.sites, None, launch.trace.multiply_adds)
        parts += ["", *_table(lines)]
        if not launch.merged:
            parts.append("Accesses are those of the PTX; ptxas may merge some of them.")
    return "\n".join(parts)


# Kinds of hazard that are two accesses of a word which nothing orders.
RACES = ("race", "warning", SAME_VALUE)


def verdicts(launch: Launch) -> dict[str, str]:
    """What was looked at in a launch, races at least, and what each came to."""
    kinds = [finding.kind in RACES for finding in launch.findings]
    races, others = sum(kinds), len(kinds) - sum(kinds)
    looked = f"none found, {launch.looked_at:,} accesses looked at" if launch.races else (
        "not looked for")
    return {"races": f"{races:,} found" if races else looked,
            **({"other hazards": f"{others:,} found"} if others else {})}


MAX_ERRORS = 4  # that are told whole
MAX_FINDINGS = 16  # likewise; the rest lies in `Launch.findings`


def hazard_lines(findings: Sequence[Finding], sources: SourceLines) -> list[str]:
    """What is suspicious in a launch, in rows: each pair of lines once, with how often it was met.

    Code that was compiled without its lines has a pair for every two instructions. Where there are
    too many, warnings come last, and the rows end with a count of those that are not told.
    """
    more = len(findings) - MAX_FINDINGS
    if more > 0:
        findings = sorted(findings, key=lambda finding: finding.kind == "warning")
    rows = [row for finding in findings[:MAX_FINDINGS] for row in _finding_lines(finding, sources)]
    return [*rows, f"and {more:,} more, between other lines"] if more > 0 else rows


def _finding_lines(finding: Finding, sources: SourceLines) -> list[str]:
    """A finding with its lines of the source, the calls they stand in, and what to do."""
    rows = [str(finding)]
    sides = [finding.example.first]
    if finding.second != finding.first:
        sides.append(finding.example.second)
    for access in sides:
        if access is None:
            continue
        place = _place_of(access)
        text = sources.line(place)
        if text:
            calls = [call for call in _calls(access) if call != _named(place, access.line)]
            inlined = f"   (called from {', from '.join(calls)})" if calls else ""
            rows.append(f"    {_named(place, access.line)}:  {text}{inlined}")
    rows.append(f"    {finding.example.message}")
    if finding.advice:
        rows.append(f"    What to do: {finding.advice}.")
    return rows


def _calls(access: Access) -> list[str]:
    """The lines that an access was inlined from, from the inside out."""
    return [_named(place, access.line) for place in access.callers]


def _place_of(access: Access) -> Place | None:
    """Where an access stands in the user's own files, if it can be told."""
    places = [*([access.cuda] if access.cuda else []), *access.callers]
    return own_place(places, places[-1][0]) if places else None


def document(launch: Launch) -> dict:
    """Return the same as `report`, as JSON holds it.

    Returns kernel, ended ("right to its end" or "stopped"), errors, hazards (kind, first, second,
    pairs, message, advice, and the calls that either side was inlined from), remarks (alike),
    counters, lines (see `Line`), merged, seconds.
    """
    trace = launch.trace
    return {
        "kernel": launch.kernel,
        "ended": "stopped" if launch.errors else "ran to its end",
        "errors": [
            {"kind": type(error).__name__, "message": str(error),
             "notes": list(getattr(error, "__notes__", ()))} for error in launch.errors
        ],
        "races_looked_for": launch.races,
        "verdicts": verdicts(launch),
        "hazards": hazards_document(launch.hazards),
        "remarks": hazards_document(launch.remarks),
        "counters": trace.counters() if trace else {},
        "lines": [dataclasses.asdict(line)
                  for line in by_line(trace.sites, None, trace.multiply_adds)] if trace else [],
        "merged": launch.merged,
        "seconds": launch.seconds,
    }


def hazards_document(hazards: Iterable[Hazard]) -> list[dict]:
    """Return hazards as `document` holds them: all of them, grouped by pair of lines."""
    return [
        {"kind": f.kind, "first": f.first, "second": f.second, "pairs": f.pairs,
         "message": f.example.message, "advice": f.advice,
         "called_from": [_calls(side) if side else []
                         for side in (f.example.first, f.example.second)]}
        for f in grouped(hazards)
    ]


def _table(lines: Sequence[Line]) -> list[str]:
    head = ("line", "access", "requests", "sectors", "per request", "wavefronts", "ideal", "FMA")
    rows: list[tuple[str, ...]] = [head]
    for line in lines:
        if line.kind == "fma":
            rows.append((line.place, "multiply-add", *[""] * 5, f"{line.lanes:,}"))
            continue
        whole = line.space == "global"
        rows.append((
            line.place, f"{line.space} {line.kind}", f"{line.requests:,}",
            f"{line.sectors:,}" if whole else "",
            f"{line.sectors / line.requests:.2f}" if whole and line.requests else "",
            "" if whole else f"{line.wavefronts:,}", "" if whole else f"{line.ideal:,}", "",
        ))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
            for row in rows]


def _line_of(access: Access | None) -> str:
    return "" if access is None else _named(_place_of(access), access.line)


def _named(place: Place | None, ptx_line: int) -> str:
    return f"PTX line {ptx_line}" if place is None else f"{PurePath(place[0]).name}:{place[1]}"
