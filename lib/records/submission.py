"""What is wrong with records that somebody sent: for the workflow that looks at a pull request."""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lib.kernels.catalogue import KERNELS
from lib.paths import RESULTS, ROOT
from lib.records import foreign, sanitizer, store
from lib.records.plausible import chunks_of, faults_of_date, rows_of
from lib.records.revision import DIRTY
from lib.records.schema import AnyRecord, KernelRecord, QuickRecord, QuickVariant, Variant


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
        if not file.exists():
            found.append(f"{file} is taken away: records are added, and replaced by newer ones")
            continue
        if file.parent.name == RESULTS.name:
            found += _single(file)
            continue
        try:
            record = store.read(file)
        except store.RecordError as error:
            found.append(str(error))
            continue
        clauses = [*faults_of_date(record, today), *_stale(record),
                   *_revisions(record, in_history or is_in_history)]
        found += [f"{file}: {clause}" for clause in clauses]
    return found


def _single(file: Path) -> Iterator[str]:
    """What is wrong with a record of which there is one."""
    readers: dict[str, Callable[[Path], object]] = {
        sanitizer.FILE.name: sanitizer.read, foreign.FILE.name: foreign.read}
    if file.name not in readers:
        yield f"{file} is none that this command looks at: a maintainer reads it"
        return
    try:
        readers[file.name](file)
    except store.RecordError as error:
        yield str(error)


def _stale(record: AnyRecord) -> Iterator[str]:
    """Kernels that have changed since they were measured."""
    versions: Mapping[str, Mapping[str, Variant] | Mapping[str, QuickVariant]] = {}
    if isinstance(record, QuickRecord):
        versions = record.versions
    elif isinstance(record, KernelRecord):
        versions = {record.kernel: record.variants}
    for stem, variants in versions.items():
        if stem not in KERNELS:
            continue
        for name, stored in variants.items():
            if store.changed(KERNELS[stem], name, stored):
                yield f"{stem} {name} is not today's source: measure again from main as it is now"


def _revisions(record: AnyRecord, in_history: Callable[[str], bool]) -> Iterator[str]:
    """A record, and chunks of it, that were measured with no commit of this project.

    Or with more than the commit: one that has the clock of its launches is marked only where cuda/
    or lib/ were changed. Older ones are marked where any file was.
    """
    clocked = any(row.clock for _, row in rows_of(record))
    revisions = {f"chunk {name}": chunk.revision for name, chunk in chunks_of(record).items()}
    if isinstance(record, KernelRecord):
        revisions |= {f"the timeline of {name}": one.timeline.revision
                      for name, one in record.variants.items()
                      if one.timeline and one.timeline.revision}
    for what, named in {"it": record.revision, **revisions}.items():
        revision = named.removesuffix(DIRTY)
        if named.endswith(DIRTY) and clocked:
            yield (f"{what} is a draft, measured with cuda/ or lib/ changed: commit, and measure "
                   "again")
        if not in_history(revision):
            yield (f"{what} was measured at {revision}, which is no commit of this project: "
                   "measure in a clone of it")


def is_in_history(revision: str) -> bool:
    """Whether HEAD goes back to a commit, which is named by its hash: ``HEAD`` itself is no name.

    Raises
    ------
    OSError
        If git is missing.
    """
    if not re.fullmatch("[0-9a-f]{7,40}", revision):
        return False
    git = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", f"{revision}^{{commit}}", "HEAD"]
    return subprocess.run(git, capture_output=True, check=False).returncode == 0
