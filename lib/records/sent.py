"""What is wrong with records that somebody sent: for the workflow that looks at a pull request."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.paths import ROOT
from lib.records import store
from lib.records.plausible import faults_of_date
from lib.records.schema import QUICK

# What `git describe` adds where the tree differs from the commit.
DIRTY = "-dirty"


def faults(
    files: Sequence[Path], today: datetime.date,
    in_history: Callable[[str], bool] | None = None,
) -> list[str]:
    """Say what is wrong with some files, a line each; nothing if they can be taken.

    Whether they can be read, hang together and are of their digest is seen when they are read.

    Parameters
    ----------
    files : sequence of Path
        Below ``results/``.
    today : datetime.date
    in_history : callable, optional
        Whether a commit is one that HEAD goes back to; asked of git if not given.
    """
    found = []
    for file in files:
        try:
            record = store.read(file)
        except store.RecordError as error:
            found.append(str(error))
            continue
        sealed = [] if "digest" in record else ["it has no digest: send the file as it was written"]
        clauses = [*sealed, *faults_of_date(record, today), *_stale(record),
                   *_revisions(record, in_history or is_in_history)]
        found += [f"{file}: {clause}" for clause in clauses]
    return found


def _stale(record: Mapping[str, Any]) -> Iterator[str]:
    """Kernels that have changed since they were measured."""
    versions = record["versions"] if record["kernel"] == QUICK else {
        record["kernel"]: record.get("variants", {})}
    for stem, variants in versions.items():
        if stem not in CATALOGUE:
            continue
        for name, kept in variants.items():
            if store.changed(CATALOGUE[stem], name, kept):
                yield f"{stem} {name} is not today's source: measure again from main as it is now"


def _revisions(
    record: Mapping[str, Any], in_history: Callable[[str], bool]
) -> Iterator[str]:
    """Chunks that were measured with no commit of this project."""
    for name, chunk in record.get("chunks", {}).items():
        revision = chunk["revision"].removesuffix(DIRTY)
        if not in_history(revision):
            yield (f"chunk {name} was measured at {revision}, which is no commit of this project: "
                   "measure in a clone of it")


def is_in_history(revision: str) -> bool:
    """Whether HEAD goes back to a commit.

    Raises
    ------
    OSError
        If git is missing.
    """
    git = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", f"{revision}^{{commit}}", "HEAD"]
    return subprocess.run(git, capture_output=True, check=False).returncode == 0
