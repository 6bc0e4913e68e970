"""SentryWard's recorded verdicts on the kernels of the zoo: ``results/sentryward.json``.

A static verifier of PTX by Zhihao Jia, from the package ``sentryward``. It proves or refuses a
kernel for all schedules, and says so where a kernel has what it doesn't model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lib.paths import RESULTS
from lib.ptx.files import write_whole
from lib.records import seal
from lib.records.schema import Date, Hash, Name, Part

FILE = RESULTS / "sentryward.json"
AGAIN = "delete it and record again: python -m lib zoo --sentryward, with pip install sentryward"
CLEAN = "race_free"
FINDINGS = ("not_wellsynced", "potential_race", "invalid_lifecycle")


class Proof(Part, kw_only=True, frozen=True):
    """Its result on one kernel, with its mistake and cured, and the hash of the source."""

    hash: Hash
    mistake: Name
    cured: Name


class SentryWard(Part, kw_only=True, frozen=True):
    """All results, and the release that the last ones are of."""

    version: Name
    date: Date
    kernels: Mapping[str, Proof]
    digest: str = ""


def read(path: Path = FILE) -> SentryWard | None:
    """The record; None if nothing is recorded."""
    return seal.read(path, SentryWard, AGAIN)


def write(record: SentryWard, path: Path = FILE) -> None:
    """Write the record."""
    write_whole(path, seal.sealed(record))


def current(record: SentryWard | None, name: str, source: str) -> Proof | None:
    """The results on a kernel, if they are of its present source."""
    found = record.kernels.get(name) if record else None
    return found if found and found.hash == source else None
