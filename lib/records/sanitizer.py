"""compute-sanitizer's recorded verdicts on the kernels of the zoo: ``results/sanitizer.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from lib.paths import RESULTS
from lib.ptx.files import write_whole
from lib.records import seal
from lib.records.schema import Count, Date, Hash, Name, Part

FILE = RESULTS / "sanitizer.json"
AGAIN = "delete it and record again: python -m lib zoo --record, on a machine with a GPU"

Tool = Literal["memcheck", "racecheck", "synccheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck")


class Verdict(Part, kw_only=True, frozen=True):
    """What a tool says of one kernel; `first` is the first line of its report."""

    said: Literal["errors", "clean", "hangs", "failed"]
    errors: Count
    warnings: Count
    first: str


class Checked(Part, kw_only=True, frozen=True):
    """A kernel of the zoo with its mistake and cured, each by tool; and the hash of its source."""

    hash: Hash
    mistake: Mapping[Tool, Verdict]
    cured: Mapping[Tool, Verdict]


class Sanitizer(Part, kw_only=True, frozen=True):
    """All verdicts, and the machine and compute-sanitizer's release that the last ones are of."""

    gpu: Name
    driver: Name
    sanitizer: Name
    date: Date
    kernels: Mapping[str, Checked]
    digest: str = ""


def read(path: Path = FILE) -> Sanitizer | None:
    """The record; None if nothing is recorded.

    Raises RecordError if it can't be read, or was edited since it was written.
    """
    return seal.read(path, Sanitizer, AGAIN)


def write(record: Sanitizer, path: Path = FILE) -> None:
    """Write the record."""
    write_whole(path, seal.sealed(record))


def current(record: Sanitizer | None, name: str, source: str) -> Checked | None:
    """The verdicts on a kernel, if they are of its present source."""
    found = record.kernels.get(name) if record else None
    return found if found and found.hash == source else None


def summary(verdicts: Mapping[Tool, Verdict]) -> str:
    """What the tools say of one variant, in a few words: ``"racecheck"``, ``"nothing"``."""
    words = []
    for tool, verdict in verdicts.items():
        if verdict.said == "errors":
            words.append(tool if verdict.errors else f"{tool} (warning)")
        elif verdict.said != "clean":
            words.append(f"{tool} {verdict.said}")
    return ", ".join(words) or "nothing"
