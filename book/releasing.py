"""A release: what one command writes, and what must hold before it is tagged.

`python -m lib release 1.0.0` sets the version and what readers are sent to, dates the changes,
takes the interface's description over and stamps every copy. `python -m lib release --check` is
`make release-check`: it runs all checks and says at the end which failed. Who clicks what, in which
order, stands in docs/publishing.md.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

from book import interface, release
from lib.ptx.files import text_of, write_whole

ROOT = release.ROOT
UNRELEASED = "## Unreleased"
HEADING = re.compile(r"(?m)^## (\d+\.\d+\.\d+), (\d{4}-\d{2}-\d{2})$")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", "0"]
LIB = [sys.executable, "-m", "lib"]
# What is checked, and the words of the command that does it. Built pages are left to `make test`.
# Records come last: to mend them takes a GPU.
CHECKS: tuple[tuple[str, list[str]], ...] = (
    ("every copy of address, version and numbers", [*LIB, "stamp", "--check", "--release"]),
    ("the chapters' notebooks", [*LIB, "notebooks", "--check"]),
    ("workflows, interface, papers", [
        *PYTEST, "tests/test_workflows.py", "tests/book/test_interface.py",
        "tests/book/test_release.py", "tests/book/test_paper.py",
        "tests/book/test_releasing.py", "-k", "not makes_the_release and not built"]),
    ("the package and its README, on every interpreter here", [*PYTEST, "tests/test_package.py"]),
    ("no record is stale", [*LIB, "results", "--check"]),
)


class ReleaseError(ValueError):
    """A release that can't be made; nothing was written."""


def prepare(version: str, root: Path = ROOT, today: datetime.date | None = None) -> list[Path]:
    """Write a release into the repository.

    Parameters
    ----------
    version : str
        Three numbers, such as 1.0.0.
    root : Path
        The repository.
    today : datetime.date, optional
        The date of the release.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ReleaseError
        If the version is not one that may follow, if there is nothing to release, or if the
        interface has changes that nobody accepted.
    """
    described = interface.read(root)
    _check_version(version, described)
    changes = interface.compare(described["interface"], interface.describe())
    if changes.part != "patch":
        raise ReleaseError("the interface has changed: "
                           f"{'; '.join(changes.breaks + changes.adds)}; see "
                           "python -m book.interface --accept")
    date = (today or datetime.date.today()).isoformat()
    new = {
        root / "CHANGELOG.md": dated(text_of(root / "CHANGELOG.md"), version, date),
        root / "book/release.py": _versioned(text_of(root / "book/release.py"), version),
        root / "CITATION.cff": _cited(text_of(root / "CITATION.cff"), date),
    }
    for path, text in new.items():
        write_whole(path, text.encode())
    interface.write({**described, "released": version, "next": "patch"}, root)
    release.VERSION, release.REVISION = version, f"v{version}"
    return [*new, root / interface.FILE, *release.stamp(root, write=True)]


def dated(text: str, version: str, date: str) -> str:
    """`text` of CHANGELOG.md with what was unreleased under the release's own heading.

    Raises
    ------
    ReleaseError
        If there is no such heading, or nothing under it.
    """
    before, heading, after = text.partition(f"{UNRELEASED}\n")
    if not heading:
        raise ReleaseError(f"CHANGELOG.md has no line '{UNRELEASED}'")
    if not re.search(r"(?m)^- ", HEADING.split(after)[0]):
        raise ReleaseError(f"CHANGELOG.md has nothing under '{UNRELEASED}'")
    return f"{before}{heading}\n## {version}, {date}\n{after}"


def notes(text: str, version: str) -> str:
    """What CHANGELOG.md says of a release.

    Raises
    ------
    ReleaseError
        If it says nothing.
    """
    parts = HEADING.split(text)
    for number, _, said in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if number == version and said.strip():
            return f"{said.strip()}\n"
    raise ReleaseError(f"CHANGELOG.md has no release {version}")


def problems(root: Path = ROOT) -> list[str]:
    """What keeps the repository, as it is, from being the release that it names."""
    found = []
    named = HEADING.findall(text_of(root / "CHANGELOG.md"))
    if not named or named[0][0] != release.VERSION:
        found.append(f"CHANGELOG.md has no heading of {release.VERSION} on top")
    described = interface.read(root)
    if described["released"] != release.VERSION:
        found.append(f"{interface.FILE} is of the release {described['released']}")
    dates = re.findall(r"(?m)^date-released: (.*)$", text_of(root / "CITATION.cff"))
    if named and dates != [named[0][1]]:
        found.append(f"CITATION.cff is dated {dates}, CHANGELOG.md {named[0][1]}")
    if found:
        found.append("`python -m lib release` writes all of these: python -m lib release --help")
    return found


def check() -> int:
    """Run every check, whatever fails; return the exit status."""
    failed = []
    for what, words in CHECKS:
        print(f"— {what}: {' '.join(['python', *words[1:]])}", flush=True)
        if subprocess.run(words, cwd=ROOT, check=False).returncode:
            failed.append(what)
    lacking = problems()
    for line in lacking:
        print(f"release: {line}", file=sys.stderr)
    failed += ["the release itself"] if lacking else []
    print(f"release: {len(failed)} of {len(CHECKS) + 1} checks failed"
          f"{': ' if failed else ''}{'; '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def add_command(subparsers) -> None:
    """Add `release` to the commands of `python -m lib`; its namespace's `run` is `run`."""
    parser = subparsers.add_parser(
        "release", help="write a release into the repository, or check it",
        description="Write a release: version, tag, date, changes, interface and every copy; "
                    "then commit and tag it (docs/publishing.md). Or check what must hold.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", metavar="VERSION", help="three numbers: 1.0.0")
    what.add_argument("--check", action="store_true", help="run every check before a tag")
    what.add_argument("--notes", action="store_true",
                      help="print what CHANGELOG.md says of the present version")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out `release`; return the exit status (0 done, 1 a check failed, 2 cannot)."""
    if arguments.check:
        return check()
    try:
        if arguments.notes:
            print(notes(text_of(ROOT / "CHANGELOG.md"), release.VERSION), end="")
            return 0
        for path in prepare(arguments.version):
            print(f"{path.relative_to(ROOT)}: written")
    except (ReleaseError, release.StampError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    print(f"Now: make release-check; git commit -a; git tag v{arguments.version}; git push")
    return 0


def _check_version(version: str, described: interface.Description) -> None:
    """Refuse a version that may not follow the present one."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version of three numbers, such as 1.0.0")
    before = described["released"]
    numbers = tuple(map(int, version.split(".")))
    if before is None:
        least = tuple(map(int, release.VERSION.split(".")))
    else:
        least = interface.least_version(before, described["next"])
    if numbers < least:
        why = f"since {before} there was a {described['next']} change of warplens's interface" \
            if before else f"the repository is at {release.VERSION}"
        raise ReleaseError(f"{version} is too low: {why}, so it is at least "
                           f"{'.'.join(map(str, least))}")


def _versioned(text: str, version: str) -> str:
    """`text` of book/release.py with another version, and its tag as what readers are sent to."""
    for name, value in (("VERSION", version), ("REVISION", f"v{version}")):
        text = release.replace_once(rf'(?m)^{name} = ".*"$', f'{name} = "{value}"', text,
                                    f"book/release.py has no {name}")
    return text


def _cited(text: str, date: str) -> str:
    """`text` of CITATION.cff with the date of the release behind its version."""
    text = re.sub(r"(?m)^date-released: .*\n", "", text)
    return release.replace_once(r"(?m)^(version: .*\n)", rf"\g<1>date-released: {date}\n", text,
                                "CITATION.cff has no version line")
