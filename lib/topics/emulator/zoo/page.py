"""What the emulator's page shows of the zoo."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lib.plotting.columns import Column, listed
from lib.plotting.display import note
from lib.records import sanitizer, sentryward
from lib.topics.emulator.zoo import model


def mistakes(*names: str) -> None:
    """Display each mistake, what the emulator and compute-sanitizer say of it, and the cure.

    Parameters
    ----------
    *names : str
        Kernels of the zoo; all if none is named.
    """
    record = sanitizer.read()
    rows = model.rows(names, record)
    recorded = [row for row in rows if row["sanitizer"] is not None]
    by_tool: list[Column[dict]] = [Column(
        "compute-sanitizer says", lambda row: row["sanitizer"] or "not run")]
    listed([
        Column("kernel", lambda row: f"`{row['kernel']}`"),
        Column("mistake", lambda row: _sentence(row["mistake"]) + _links(row["seen"])),
        Column("the emulator says",
               lambda row: f"{_words(row['says'])}, line {_lines(row['lines'])}"
               if row["says"] else "nothing"),
        *(by_tool if recorded else ()), Column("cure", lambda row: _sentence(row["cure"])),
    ], rows, _evidence(rows, record if recorded else None))
    if alarms := [row for row in recorded if row["sanitizer_of_cure"] != model.CLEAN]:
        note("compute-sanitizer reports " + ", ".join(
            f"the cure of `{row['kernel']}`, too ({row['sanitizer_of_cure']})" for row in alarms)
            + ". The emulator's detector finds its accesses ordered.")


def checkers() -> None:
    """Display which of the checkers tells how many mistakes from their cures."""
    record, proofs = sanitizer.read(), sentryward.read()
    every = model.tallies(model.rows((), record, proofs))
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
    every = model.specimens()
    right = sum(map(model.right_by_luck, every))
    note(f"Of the {len(every)} kernels with a mistake, {right} give the same result as the cured "
         "one when the emulator runs the warps in its usual order and nobody asks for races.\n\n"
         "*emulated*")


def _evidence(rows: Sequence[dict], record: sanitizer.Sanitizer | None) -> str:
    right = sum(bool(row["says"]) and row["cured_clean"] for row in rows)
    said = (f"emulated, each under {len(model.SETTINGS)} schedules: {right} of {len(rows)} "
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


def _words(kind: str) -> str:
    """A kind of hazard as it is, an error's class in words: ``OutOfBounds`` → out of bounds."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _lines(lines: Sequence[int]) -> str:
    return " and ".join(map(str, lines))


def _links(addresses: Sequence[str]) -> str:
    """Links to public threads, named by their repository and number."""
    found = []
    for address in addresses:
        owner, name, _, number = address.removeprefix("https://github.com/").split("/")
        found.append(f"[{owner}/{name} {number}]({address})")
    return f" Seen in {', '.join(found)}." if found else ""
