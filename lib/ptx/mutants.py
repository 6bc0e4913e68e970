"""A kernel's PTX with one thing that orders it left out or weakened, again and again.

A kernel without a barrier, wait, fence or commit that it needs may still give the right result on
the machine at hand. So each such mutant should be reported, or give a wrong result under some
schedule; one that does neither either changes nothing, or shows what the emulator cannot see.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from .core.errors import Error
from .core.parser import parse
from .report import Launch

# Under which schedules and landings a mutant runs until it is found out.
SETTINGS = (
    {"schedule": "lowest", "landing": "early"},
    {"schedule": "lowest", "landing": "late"},
    {"schedule": "random", "landing": "late", "seed": 3},
    {"schedule": "highest", "landing": "early"},
)


@dataclass(frozen=True)
class Mutant:
    """A changed PTX text; its lines are where they were."""

    line: int  # of the changed statement, or of the first copy of it that the compiler made
    # How many the compiler made, by unrolling a loop or duplicating code: all are changed.
    copies: int
    # What is the same for one statement of the CUDA source, whatever constants it is compiled with:
    # where it stands, its opcode, and which of the changes this is.
    key: tuple
    cuda: tuple[str, int] | None  # its CUDA file and line, if there is line information
    # statement, change: what stood there, and what stands there now; empty if it was left out.
    statement: str
    change: str
    text: str  # the whole PTX

    @property
    def opcode(self) -> str:
        """The statement's opcode."""
        return re.sub(r"^@!?\S+\s+", "", self.statement).split()[0].rstrip(";")

    def __str__(self) -> str:
        return f"{self.statement} → {self.change or 'nothing'}"


def _more(match: re.Match) -> str:
    """Let one group more be in flight behind a wait."""
    return re.sub(r"(?<!\d)(\d+)\s*;$", lambda n: f"{int(n[1]) + 1};", match.group())


def _succeeds(match: re.Match) -> str:
    """Let a wait be over at once."""
    return re.sub(r"\A.*?\s([%\w$]+)(?:\|\S+)?\s*,.*", r"setp.eq.u32 \1, 0, 0;", match.group(),
                  count=1, flags=re.S)


def _nothing(match: re.Match) -> str:
    return ""


def _without(pattern: str, put: str = "") -> Callable[[re.Match], str]:
    return lambda match: re.sub(pattern, put, match.group(), count=1)


# What writes memory that others may read; mbarrier.init is none of it.
_WRITES = re.compile(r"(?:^|[;{}:])[ \t]*(?:@!?[%\w$]+\s+)?"
                     r"(?:st|atom|red|cp|wgmma|tcgen05|mbarrier\.(?!init))\b", re.M)

# What orders something, by the beginning of a statement, and how it is weakened.
RULES: tuple[tuple[str, tuple[Callable[[re.Match], str], ...]], ...] = (
    (r"(?:bar|barrier)(?:\.cta|\.warp)?\.(?:sync|arrive)\b", (_nothing,)),
    (r"barrier\.cluster\.(?:arrive|wait)", (_nothing,)),
    (r"(?:barrier\.cluster|mbarrier)\.arrive\S*\.release", (_without("release", "relaxed"),)),
    (r"mbarrier\.\w+_wait\S*\.acquire", (_without("acquire", "relaxed"),)),
    (r"cp\.async\.(?:commit_group|wait_all)", (_nothing,)),
    (r"cp\.async\.wait_group", (_nothing, _more)),
    (r"cp\.async\.mbarrier\.arrive", (_nothing,)),
    (r"cp\.async\.bulk\.commit_group", (_nothing,)),
    (r"cp\.async\.bulk\.wait_group\.read", (_nothing, _more)),
    (r"cp\.async\.bulk\.wait_group(?!\.read)", (_nothing, _more, _without("group", "group.read"))),
    (r"(?:membar|fence)\.(?:\w+\.)?(?:gl|gpu|sys)\b",
     (_nothing, _without(r"\.(?:gl|gpu|sys)\b", ".cta"))),
    (r"membar\.cta|fence\.(?:\w+\.)?cta\b|fence\.(?:\w+\.)?cluster\b", (_nothing,)),
    (r"fence\.(?:proxy|mbarrier_init)", (_nothing,)),
    (r"mbarrier\.(?:init|expect_tx)", (_nothing,)),
    (r"mbarrier\.arrive\.expect_tx",
     (_nothing, lambda m: re.sub(r",[^,\]]*;$", ";", m.group()).replace(".expect_tx", ""))),
    (r"mbarrier\.(?:arrive|arrive_drop)(?!\.expect_tx)(?!_)", (_nothing,)),
    (r"mbarrier\.(?:try_wait|test_wait)", (_succeeds,)),
    (r"wgmma\.(?:fence|commit_group)", (_nothing,)),
    (r"wgmma\.wait_group", (_nothing, _more)),
    (r"tcgen05\.(?:fence::|wait::|commit|dealloc)", (_nothing,)),
    (r"(?:st|ld|atom|red)\.[^\s]*\b(?:acquire|release|acq_rel)\b",
     (_without("acquire|release|acq_rel", "relaxed"),)),
)

# Where a statement begins that one of the rules is for: they are looked for in one go.
_GUARD = r"(?:@!?[%\w$]+\s+)?"
_ANY = "|".join(f"(?:{beginning})" for beginning, _ in RULES)
_STATEMENTS = re.compile(rf"(?:(?<=[;{{}}:])|^)[ \t]*(?P<s>{_GUARD}(?:{_ANY})[^;]*;)", re.M)


def mutants(text: str, kernel: str) -> Iterator[Mutant]:
    """Yield every mutant of a kernel; copies of one statement of the source are changed together.

    `text`: PTX. With line information the copies that the compiler makes of a statement are known,
    and the CUDA lines are told; without, each statement of the PTX is taken by itself. `kernel`:
    name of an entry. Raises Error if there is no such kernel.
    """
    entries = parse(text).entries
    if kernel not in entries:
        raise Error(f"no kernel '{kernel}' in this module; there are {', '.join(entries)}")
    cuda = {i.line: i.cuda for i in entries[kernel].instructions}
    begin = next(re.finditer(rf"\.entry\s+{re.escape(kernel)}\b", text)).end()
    end = text.find(".entry", begin)
    end = len(text) if end < 0 else end
    places = _places(text)
    newlines = [one.start() for one in re.finditer("\n", text)]
    ordered = _ordered_by_inits(text, begin, end)
    groups: dict[tuple, list[tuple[int, re.Match, Callable]]] = {}
    starts = [found.start("s") for found in _STATEMENTS.finditer(text, begin, end)]
    for beginning, changes in RULES:
        statement = re.compile(rf"(?P<s>{_GUARD}(?:{beginning})[^;]*;)", re.M)
        matches = filter(None, (statement.match(text, start, end) for start in starts))
        for match, (which, change) in product(matches, enumerate(changes)):
            if match.start("s") in ordered and "relaxed" in change(match):
                continue
            line = bisect_left(newlines, match.start("s")) + 1
            found = next(re.compile(r".+", re.S).finditer(text, *match.span("s")))
            opcode = re.sub(r"^@\S+\s+", "", found.group()).split()[0].rstrip(";")
            key = (places[line - 1] or line, opcode, beginning, which)
            groups.setdefault(key, []).append((line, found, change))
    for key, copies in groups.items():
        at, pieces = 0, list[str]()
        for _, found, change in copies:
            put = change(found)
            lost = "\n" * (found.group().count("\n") - put.count("\n"))
            pieces += text[at : found.start()], put, lost
            at = found.end()
        changed = "".join((*pieces, text[at:]))
        line, found, change = copies[0]
        yield Mutant(
            line, len(copies), key, cuda.get(line), " ".join(found.group().split()),
            " ".join(change(found).split()), changed,
        )


def _ordered_by_inits(text: str, begin: int, end: int) -> range:
    """Where nothing was written yet but mbarriers, which a fence of their own orders.

    An arrival there may be relaxed, as Triton's documentation of fence_init_release_cluster has it:
    then nothing is weakened.
    """
    fence = "fence.mbarrier_init"
    init, write = text.find(fence, begin, end), _WRITES.search(text, begin, end)
    return range(init + len(fence), write.end() if write else end) if init >= 0 else range(0)


def _places(text: str) -> list[str]:
    """Say for each line of PTX where its code stands in the source: its ``.loc``.

    What is inlined is told apart by where it is inlined; labels of the compiler's are left out.
    """
    found, now = [], ""
    for line in text.split("\n"):
        if line.lstrip().startswith(".loc"):
            now = re.sub(r"function_name \S+", "", " ".join(line.split()))
        elif ".entry" in line:
            now = ""
        found.append(now)
    return found


Report = tuple[str, int | None, int | None, str]


def reports(launch: Launch) -> set[Report]:
    """What a launch reports: kinds of hazards, PTX lines of accesses, what is said bar numbers."""
    return {(one.kind, one.first.line if one.first else None,
             one.second.line if one.second else None,
             re.sub(r"[\d\W]+", " ", one.message)) for one in launch.hazards}


def reports_of(run: Callable[..., tuple[Launch, bool]]) -> set[Report]:
    """What a kernel reports as it is, under any of `SETTINGS`: of it, no mutant is guilty."""
    return set().union(*(reports(run(races=True, trace=False, strict=True, **options)[0])
                         for options in SETTINGS))


def verdict(
    run: Callable[..., tuple[Launch, bool]], settings: Any = SETTINGS,
    known: Collection[Report] = (),
) -> str:
    """Run a mutant until it is found out.

    `run`: takes launch options (schedule, landing, races, …); returns the launch, and whether the
    result is right. `settings`: the options to try in turn. `known`: what the unchanged kernel
    reports (`reports_of`), which is no finding. Returns the exception's name, the kinds of hazard
    or "wrong result"; empty if nothing was found.
    """
    for options in settings:
        try:
            launch, right = run(races=True, trace=False, strict=True, **options)
        except Error as error:
            return type(error).__name__
        found = reports(launch) - set(known)
        if found:
            return ", ".join(sorted({one[0] for one in found}))
        if not right:
            return "wrong result"
    return ""
