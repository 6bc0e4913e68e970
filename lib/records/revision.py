"""Which commit a record is of, and whether that is all of what was measured."""

from __future__ import annotations

import os
import subprocess

from lib.paths import ROOT

# Behind a commit whose cuda/ or lib/ were changed when it was measured. Records before schema 3
# have it wherever any file differed, a record written in the chunk before among them.
DIRTY = "-dirty"
UNKNOWN = "unknown"
# What decides what is measured, and how.
MEASURED = ("cuda", "lib")


def revision() -> str:
    """The commit, marked if cuda/ or lib/ differ from it; REVISION names it where git can't."""
    if named := os.environ.get("REVISION"):
        return named
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return UNKNOWN
    return commit + (DIRTY if changed() else "")


def changed() -> list[str]:
    """Files of cuda/ and lib/ that are not as they were committed, those that git doesn't know too.
    """
    said = _git("status", "--porcelain", "--untracked-files=all", "--", *MEASURED)
    return [line[3:] for line in (said or "").splitlines()]


def history() -> str | None:
    """The commits that HEAD goes back to, a line each behind a first empty one; None where git
    doesn't have them all.
    """
    if _git("rev-parse", "--is-shallow-repository") != "false":
        return None
    return f"\n{_git('rev-list', 'HEAD')}"


def refuse_dirty() -> None:
    """Raise unless a commit names all of what is measured.

    Raises ValueError if cuda/ or lib/ differ from the commit, or no commit is known.
    """
    found = revision()
    draft = "or measure a draft with --draft, which no page shows"
    if found == UNKNOWN:
        raise ValueError("a record names a commit, and git knows none here: set REVISION to it, "
                         f"{draft}")
    if found.endswith(DIRTY):
        files = changed()
        which = f" ({', '.join(files[:3])}{' and more' if len(files) > 3 else ''})" if files else ""
        raise ValueError(f"a record names a commit, and cuda/ or lib/ differ from it{which}: "
                         f"commit first, {draft}")


def _git(*arguments: str) -> str | None:
    """What git says here; None where it can't."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True,
                              check=True).stdout.rstrip("\n")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
