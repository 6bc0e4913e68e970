"""The race zoo: small kernels with one mistake each, and what the emulator says of them.

Each is a file of its own in `cuda/zoo`. Its first comment says what is wrong, the cure, where such
a mistake was reported, how it is launched and what the emulator should say; ``-DCURED`` compiles
the cure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler import arguments
from lib.compiler.cache import digest as fingerprint
from lib.paths import ROOT
from lib.ptx.files import bytes_of, text_of
from lib.records import sanitizer, sentryward
from lib.show.columns import Column, listed
from lib.show.display import note
from lib.show.words import spaced

FOLDER = ROOT / "cuda" / "zoo"
# In which orders a kernel runs until something is found: mistakes show in one and not in another.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"schedule": "lowest", "landing": "early"},
    {"schedule": "lowest", "landing": "late"},
    {"schedule": "highest", "landing": "late"},
    {"schedule": "random", "landing": "early", "seed": 3},
)
ANY = "hazard or error"
MISSED = "nothing"  # of a mistake that the emulator doesn't tell
CLEAN = sanitizer.summary({})  # what it says where no tool reports anything
FORMAT = 1  # of the rows as JSON: one more when a field goes, or means something else


@dataclass(frozen=True)
class Specimen:
    """A kernel with a mistake.

    Attributes
    ----------
    name : str
        Of the kernel and its file.
    mistake, cure : str
        One sentence each.
    seen : tuple of str
        Addresses of public threads about such a mistake.
    says : str
        The kind of hazard, or the error's class, that the emulator should tell; `ANY` if which one
        depends on the schedule, `MISSED` if it tells none.
    arch : str
    grid, block : int
    shared : int
        Bytes of dynamic shared memory.
    words : tuple of str
        Arguments, as `lib.compiler.arguments` reads them.
    """

    name: str
    mistake: str
    cure: str
    seen: tuple[str, ...]
    says: str
    arch: str
    grid: int
    block: int
    shared: int
    words: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / f"{self.name}.cu"

    def expects(self, kind: str) -> bool:
        """Whether a verdict's kind is what the file says."""
        return not kind if self.says == MISSED else bool(kind) and self.says in (kind, ANY)

    def args(self) -> list[arguments.Argument]:
        """Arguments of one launch, new each time; one may keep the array that its map is of."""
        return arguments.parse(list(self.words))


@dataclass(frozen=True)
class Verdict:
    """What the emulator says of a kernel.

    Attributes
    ----------
    kind : str
        The kind of hazard, or the error's class; empty if it is clean.
    message : str
        The first line of what it says.
    lines : tuple of int
        The lines of the kernel's file that it names.
    setting : str
        Under which schedule and landing.
    """

    kind: str
    message: str = ""
    lines: tuple[int, ...] = ()
    setting: str = ""


@lru_cache
def specimens() -> tuple[Specimen, ...]:
    """The kernels of the zoo, by name.

    Raises
    ------
    ValueError
        If a file lacks a part of its comment.
    """
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.cu")))


def _read(path: Path) -> Specimen:
    comment = re.match(r"(?://[^\n]*\n)+", text_of(path))
    text = re.sub(r"\n//   ", " ", comment[0]) if comment else ""
    parts: dict[str, list[str]] = {}
    for label, value in re.findall(r"^// (\w+): (.*)$", text, re.M):
        parts.setdefault(label, []).append(value)
    try:
        launch = re.fullmatch(r"(\w+) grid (\d+) block (\d+)(?: shared (\d+))? args (.*)",
                              parts["Launch"][0])
        if launch is None:
            raise ValueError(f"{path.name}: its Launch is no 'ARCH grid N block N args …'")
        arch, grid, block, shared, words = launch.groups()
        return Specimen(path.stem, parts["Mistake"][0], parts["Cure"][0],
                        tuple(parts.get("Seen", ())), parts["Says"][0], arch, int(grid), int(block),
                        int(shared or 0), tuple(words.split()))
    except KeyError as error:
        raise ValueError(f"{path.name}: its first comment lacks Mistake, Cure, Launch or Says"
                         ) from error


@lru_cache(maxsize=256)  # each specimen twice
def compiled(specimen: Specimen, cured: bool) -> Any:
    """The kernel, with its mistake or cured: a `lib.compiler.raw_module.Kernel`."""
    from lib.compiler.raw_module import RawModule  # loads CuPy

    flags = ["-DCURED"] if cured else []
    module = RawModule(path=specimen.path, options=flags, arch=specimen.arch)
    return module.get_function(specimen.name)


def digest(specimen: Specimen) -> str:
    """A hash of what is compiled for it and how it is launched: a record of other code is stale."""
    text = bytes_of(specimen.path)
    own = [name for name in ("tcgen05.cuh", "pair.cuh", "cluster.cuh")
           if f'"{name}"'.encode() in text]
    headers = ["asm.cuh", *own]
    return fingerprint([text, *(bytes_of(FOLDER / name) for name in headers)])[:16]


def runs_on(specimen: Specimen, capability: tuple[int, int]) -> bool:
    """Whether a GPU of a compute capability runs what a specimen is compiled for.

    ``sm_90a`` runs on 9.0 alone, ``sm_80`` on 8.0 and all later ones. A tensor map here is one of
    the emulator's, which no GPU reads.
    """
    if any(word.startswith("map") for word in specimen.words):
        return False
    parts = re.fullmatch(r"sm_(\d+)([a-z]?)", specimen.arch)
    assert parts is not None, specimen.arch
    number, family = parts.groups()
    needed = int(number[:-1]), int(number[-1])
    return capability == needed if family else capability >= needed


def verdicts(specimen: Specimen, cured: bool) -> Iterator[Verdict]:
    """What the emulator says under each of `SETTINGS`."""
    kernel = compiled(specimen, cured)
    for setting in SETTINGS:
        args = specimen.args()
        named = f"{setting['schedule']}, {setting['landing']}"
        try:
            launch = kernel(specimen.grid, specimen.block, [one.value for one in args],
                            specimen.shared,
                            races=True, trace=False, strict=True, **setting)
        except ptx.Error as error:
            reported = [int(line) for line in re.findall(r"PTX line (\d+)", str(error))]
            yield Verdict(
                type(error).__name__, str(error), _lines(kernel, specimen, reported), named)
            continue
        if not launch.hazards:
            yield Verdict("", setting=named)
            continue
        wanted = [one for one in launch.hazards if one.kind == specimen.says]
        hazard = (wanted or launch.hazards)[0]
        reported = [side.line for side in (hazard.first, hazard.second) if side]
        yield Verdict(hazard.kind, hazard.message, _lines(kernel, specimen, reported), named)


def _lines(kernel: Any, specimen: Specimen, ptx_lines: Sequence[int]) -> tuple[int, ...]:
    """Lines of a specimen's own file: of what is inlined from a header, where it was called."""
    places = {
        each.line: (*([each.cuda] if each.cuda else []), *each.callers)
        for each in kernel.function.entry.instructions
    }
    own = (next((line for file, line in places.get(one, ())
                 if Path(file).name == specimen.path.name), None) for one in ptx_lines)
    return tuple(line for line in dict.fromkeys(own) if line is not None)


@lru_cache(maxsize=256)
def found(specimen: Specimen) -> Verdict:
    """The first verdict on the mistake that is what the file says, or else any, or a clean one."""
    every = []
    for one in verdicts(specimen, cured=False):
        if one.kind and specimen.expects(one.kind):
            return one
        every.append(one)
    return next((one for one in every if one.kind), every[0])


@lru_cache(maxsize=256)
def cured_clean(specimen: Specimen) -> bool:
    """Whether the emulator says nothing of the cure, in any order."""
    return not any(one.kind for one in verdicts(specimen, cured=True))


def right_by_luck(specimen: Specimen) -> bool:
    """Whether the kernel gives the cured one's result all the same, in the usual order of warps."""
    results = []
    for cured in (False, True):
        held = specimen.args()
        args = [one.value for one in held]
        try:
            compiled(specimen, cured)(
                specimen.grid, specimen.block, args, specimen.shared, trace=False)
        except ptx.Error:
            return False
        results.append([one.tobytes() for one in args if isinstance(one, np.ndarray)])
    return results[0] == results[1]


def rows(
    names: Sequence[str] = (), record: sanitizer.Sanitizer | None = None,
    proofs: sentryward.SentryWard | None = None,
) -> list[dict]:
    """A table of the zoo.

    Parameters
    ----------
    names : sequence of str
        Only these kernels.
    record : Sanitizer, optional
        compute-sanitizer's verdicts, as `lib.records.sanitizer.read` gives them.
    proofs : SentryWard, optional
        SentryWard's, as `lib.records.sentryward.read` gives them.

    Returns
    -------
    list of dict
        kernel, file, kind, mistake, cure, seen; arch, grid, block, shared, args: the launch; says,
        message, lines, setting: see `Verdict`; as_expected: whether it is what the file says;
        cured_clean; sanitizer: which of its tools report it, None where that isn't recorded for
        this source; sanitizer_of_cure: the same of the cure; sentryward, sentryward_of_cure: its
        results, or None.

    Raises
    ------
    ValueError
        For a name that the zoo lacks.
    """
    known = {one.name: one for one in specimens()}
    if unknown := set(names) - set(known):
        raise ValueError(f"no such kernel in the zoo: {', '.join(sorted(unknown))}")
    table = []
    for specimen in (known[name] for name in names or known):
        reported = found(specimen)
        table.append({
            "kernel": specimen.name, "file": specimen.path.relative_to(ROOT).as_posix(),
            "kind": specimen.says, "mistake": specimen.mistake, "cure": specimen.cure,
            "seen": list(specimen.seen), "arch": specimen.arch, "grid": specimen.grid,
            "block": specimen.block, "shared": specimen.shared, "args": list(specimen.words),
            "says": reported.kind, "message": reported.message, "lines": list(reported.lines),
            "setting": reported.setting,
            "as_expected": specimen.expects(reported.kind),
            "cured_clean": cured_clean(specimen), **others(specimen, record, proofs),
        })
    return table


def others(
    specimen: Specimen, record: sanitizer.Sanitizer | None, proofs: sentryward.SentryWard | None
) -> dict[str, str | None]:
    """What the other checkers were recorded to say of a kernel's present source."""
    source = digest(specimen)
    recorded = sanitizer.current(record, specimen.name, source)
    proof = sentryward.current(proofs, specimen.name, source)
    return {
        "sanitizer": sanitizer.summary(recorded.mistake) if recorded else None,
        "sanitizer_of_cure": sanitizer.summary(recorded.cured) if recorded else None,
        "sentryward": proof.mistake if proof else None,
        "sentryward_of_cure": proof.cured if proof else None,
    }


@dataclass
class Tally:
    """How many kernels a checker tells from their cures, and what it says of the others.

    Attributes
    ----------
    detected : int
        The mistake is reported and the cure is not.
    both, missed : int
        Both are, or the mistake is not.
    refused : int
        It says that it can't tell, of either.
    not_run : int
    """

    detected: int = 0
    both: int = 0
    missed: int = 0
    refused: int = 0
    not_run: int = 0

    def add(self, mistake: bool | None, cured: bool | None) -> None:
        """Count a kernel by whether it and its cure are reported; None: it can't tell."""
        if mistake is None or cured is None:
            self.refused += 1
        elif not mistake:
            self.missed += 1
        elif cured:
            self.both += 1
        else:
            self.detected += 1


def tallies(table: Sequence[dict]) -> dict[str, Tally]:
    """Who finds what in a table of `rows`, by the checker's name."""
    emulator, tools, proofs = Tally(), Tally(), Tally()
    reported = {sentryward.CLEAN: False, **dict.fromkeys(sentryward.FINDINGS, True)}
    for row in table:
        emulator.add(bool(row["says"]), not row["cured_clean"])
        if row["sanitizer"] is None:
            tools.not_run += 1
        else:
            tools.add(*(row[one] != CLEAN for one in ("sanitizer", "sanitizer_of_cure")))
        if row["sentryward"] is None:
            proofs.not_run += 1
        else:
            proofs.add(*(reported.get(row[one]) for one in ("sentryward", "sentryward_of_cure")))
    return {"this emulator": emulator, "compute-sanitizer": tools, "SentryWard": proofs}


def mistakes(*names: str) -> None:
    """Display each mistake, what the emulator and compute-sanitizer say of it, and the cure.

    Parameters
    ----------
    *names : str
        Kernels of the zoo; all if none is named.
    """
    record = sanitizer.read()
    shown = rows(names, record)
    recorded = [row for row in shown if row["sanitizer"] is not None]
    by_tool: list[Column[dict]] = [Column(
        "compute-sanitizer says", lambda row: row["sanitizer"] or "not run")]
    listed([
        Column("kernel", lambda row: f"`{row['kernel']}`"),
        Column("mistake", lambda row: _sentence(row["mistake"]) + _links(row["seen"])),
        Column("the emulator says",
               lambda row: f"{spaced(row['says'])}, line {' and '.join(map(str, row['lines']))}"
               if row["says"] else "nothing"),
        *(by_tool if recorded else ()), Column("cure", lambda row: _sentence(row["cure"])),
    ], shown, _evidence(shown, record if recorded else None))
    if alarms := [row for row in recorded if row["sanitizer_of_cure"] != CLEAN]:
        note("compute-sanitizer reports " + ", ".join(
            f"the cure of `{row['kernel']}`, too ({row['sanitizer_of_cure']})" for row in alarms)
            + ". The emulator's detector finds its accesses ordered.")


def checkers() -> None:
    """Display which of the checkers tells how many mistakes from their cures."""
    record, proofs = sanitizer.read(), sentryward.read()
    every = tallies(rows((), record, proofs))
    listed([
        Column("checker", lambda one: one[0]),
        Column("tells", lambda one: one[1].detected),
        Column("reports the cure, too", lambda one: one[1].both),
        Column("misses", lambda one: one[1].missed),
        Column("can't tell", lambda one: one[1].refused),
        Column("not run", lambda one: one[1].not_run),
    ], list(every.items()), "emulated; recorded" + (
        f" on {record.gpu} with compute-sanitizer {record.sanitizer}, {record.date}"
        if record else "") + (
        f"; recorded with SentryWard {proofs.version}, {proofs.date}" if proofs else ""))


def lucky() -> None:
    """Display how many of the kernels give the right result all the same."""
    every = specimens()
    right = sum(map(right_by_luck, every))
    note(f"Of the {len(every)} kernels with a mistake, {right} give the same result as the cured "
         "one when the emulator runs the warps in its usual order and nobody asks for races.\n\n"
         "*emulated*")


def _evidence(rows: Sequence[dict], record: sanitizer.Sanitizer | None) -> str:
    right = sum(bool(row["says"]) and row["cured_clean"] for row in rows)
    said = (f"emulated, each under {len(SETTINGS)} schedules: {right} of {len(rows)} "
            "mistakes are told, and their cures are clean")
    if record is None:
        return said + "; compute-sanitizer's verdicts are not recorded yet: " \
                      "`python -m lib zoo --record`, on a machine with a GPU"
    return said + f"; recorded on {record.gpu} with compute-sanitizer {record.sanitizer}, " \
                  f"driver {record.driver}, {record.date}"


def _sentence(text: str) -> str:
    """A sentence with a capital, and with what is code set as code."""
    coded = _CODE.sub(r"`\1`", text)
    return coded[0].upper() + coded[1:]


# Functions and variables, instructions of PTX, and words of C++.
_CODE = re.compile(
    r"(\bif \([^)]*\)|\b__\w+(?:\(\))?|"
    r"\b(?:cp|fence|wgmma|mbarrier|tcgen05)(?:\.\w+(?:::\w+)?)+(?: 0)?|"
    r"\b(?:atomicAdd|volatile|float4)\b|(?<=with )\+[+=])"
)


def _links(addresses: Sequence[str]) -> str:
    """Links to public threads, named by their repository and number."""
    found = []
    for address in addresses:
        owner, name, _, number = address.removeprefix("https://github.com/").split("/")
        found.append(f"[{owner}/{name} {number}]({address})")
    return f" Seen in {', '.join(found)}." if found else ""
