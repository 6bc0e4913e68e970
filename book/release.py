"""Where this book is published, at which revision, and the copies of both.

`REPOSITORY`, `REVISION` and `VERSION` are the only source. A notebook opened on Colab has nothing
but itself, so its first code cell must say what to fetch; README, `_config.yml` (the rocket) and
`CITATION.cff`, which Zenodo reads, carry it too. The papers' authors and numbers follow from what
the repository has (`book.paper`).
`python -m lib stamp` writes the copies, `python -m lib stamp --check` compares them, and
`python -m lib release` (`book.releasing`) sets the version.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
import yaml

from book import paper, redirects
from lib.ptx.files import text_of, write_whole

REPOSITORY = "https://github.com/gemm-worklog/gemm-worklog"
VERSION = "0.1.0"
# What readers are sent to: the rocket and the badge open a notebook of this revision, and its first
# cell fetches the same. The branch while there is no release; a release's tag is "v" + VERSION.
REVISION = "main"

ROOT = Path(__file__).resolve().parent.parent
SETUP_TAGS = ["colab-setup", "remove-cell"]

_SETUP_CELL = '''\
# Finds the book's library, which Colab must fetch first. Written by `python -m lib stamp`.
import sys

if "google.colab" in sys.modules:
    !cd /content/; test -f {folder}/chapters/colab.py && exit; rm -rf {folder}; \\
        git clone -q --depth=1 -c advice.detachedHead=false -b {revision} {repository}
    %cd -q /content/{folder}/chapters
import colab

colab.prepare()'''


class StampError(ValueError):
    """A file that should carry a copy of the address has no place for it."""


def setup_cell() -> str:
    """Source of the first code cell of every chapter."""
    folder = REPOSITORY.rstrip("/").rsplit("/", 1)[1]
    return _SETUP_CELL.format(repository=REPOSITORY, revision=REVISION, folder=folder)


def is_release() -> bool:
    """Whether `REVISION` is the tag of the release `VERSION`."""
    return REVISION == f"v{VERSION}"


def on_colab() -> str:
    """Address of the folder of the chapters on Colab."""
    slug = REPOSITORY.removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{slug}/blob/{REVISION}/chapters"


def badges() -> str:
    """The lines between the README's `stamp` markers."""
    slug = REPOSITORY.removeprefix("https://github.com/")
    owner, name = slug.split("/")
    first = f"{on_colab()}/01_naive.ipynb"
    release = f"; the release is {REVISION}" if is_release() else ""
    return "\n".join([
        f"[![Tests]({REPOSITORY}/actions/workflows/test.yml/badge.svg)]"
        f"({REPOSITORY}/actions/workflows/test.yml)",
        f"[![Open chapter 1 on Colab](https://colab.research.google.com/assets/colab-badge.svg)]({first})",
        "",
        f"Read it at <https://{owner}.github.io/{name}/>{release}.",
    ])


def places() -> Mapping[str, Mapping[str, str]]:
    """By file the patterns of its copies, and what stands there."""
    folder = REPOSITORY.rstrip("/").rsplit("/", 1)[1]
    return {
        "README.md": {
            r"(?m)^    git clone .*\n    cd .*$": f"    git clone {REPOSITORY}\n    cd {folder}",
            r"(?s)(<!-- stamp:begin -->\n).*?(<!-- stamp:end -->)": rf"\g<1>{badges()}\n\g<2>",
        },
        "_config.yml": {  # its address, and the rocket's revision
            r"(?m)(^repository:\n  url: ).*(\n  branch: ).*$":
                rf"\g<1>{REPOSITORY}\g<2>{REVISION}"},
        "CITATION.cff": {
            r"(?m)^repository-code: .*$": f"repository-code: {REPOSITORY}",
            r"(?m)^version: .*$": f"version: {VERSION}",
        },
    }


def stamp_file(name: str, text: str) -> str:
    """`text` of a file of `places` with its copies renewed."""
    for pattern, new in places()[name].items():
        text = replace_once(pattern, new, text, f"no single place looks like {pattern}")
    return text


def stamp_notebook(text: str) -> str:
    """`text` of a chapter whose first code cell is the set-up cell.

    The cell is found by its tag `colab-setup`; where there is none, it is put after the title.
    """
    notebook = nbformat.reads(text, as_version=4)
    cells = notebook.cells
    places = [i for i, cell in enumerate(cells) if "colab-setup" in cell.metadata.get("tags", [])]
    if len(places) > 1:
        raise StampError(f"{len(places)} cells carry the tag colab-setup; keep one")
    if places:
        cell = cells.pop(places[0])
    else:
        cell = nbformat.v4.new_code_cell(id="colab-setup")
        # The stamped cell prints nothing, so its count is all that a run would add.
        cell.execution_count = 1
    cell.source = setup_cell()
    cell.metadata["tags"] = list(SETUP_TAGS)
    first_code = next((i for i, c in enumerate(cells) if c.cell_type == "code"), len(cells))
    cells.insert(places[0] if places and places[0] <= first_code else min(1, first_code), cell)
    return nbformat.writes(notebook) + "\n"


def copies(root: Path = ROOT) -> list[tuple[Path, Callable[[str], str]]]:
    """The files that carry a copy, each with the function that renews its text."""
    files: list[tuple[Path, Callable[[str], str]]] = [
        *((root / name, functools.partial(stamp_file, name)) for name in places()),
        *((root / name, paper.stamp(lambda: yaml.safe_load(text_of(root / "CITATION.cff")), name))
          for name in paper.PAPERS),
    ]
    files += [(path, stamp_notebook) for path in redirects.notebooks(root)]
    files += [(path, lambda _, old=path.stem: redirects.stub(old, on_colab()))
              for path in sorted((root / "chapters").glob("*.ipynb"))
              if path.stem in redirects.REDIRECTS]
    return files


def stamp(root: Path = ROOT, *, write: bool) -> list[Path]:
    """Renew every copy of the address.

    Parameters
    ----------
    root : Path
        The repository.
    write : bool
        Whether to write the files; without it they are only compared.

    Returns
    -------
    list of Path
        The files whose copies differed.

    Raises
    ------
    StampError
        Where a file has no place for its copy. Nothing is written then.
    """
    changed = []
    for path, renew in copies(root):
        text = text_of(path)
        try:
            new = renew(text)
        except ValueError as error:
            raise StampError(f"{path.relative_to(root)}: {error}") from error
        if new != text:
            changed.append((path, new))
    if write:
        for path, new in changed:
            write_whole(path, new.encode())
    return [path for path, _ in changed]


def replace_once(pattern: str, new: str, text: str, error: str) -> str:
    """`text` with the only match of `pattern` replaced; StampError with `error` if it isn't one."""
    text, count = re.subn(pattern, new, text)
    if count != 1:
        raise StampError(error)
    return text


def add_command(subparsers) -> None:
    """Add `stamp` to the commands of `python -m lib`; its namespace's `run` is `run`."""
    parser = subparsers.add_parser(
        "stamp", help="write the repository's address and revision into their copies",
        description="Write the repository's address, revision and version (book/release.py) into "
                    "the first code cell of each chapter, README.md, _config.yml and "
                    "CITATION.cff; numbers into the papers.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if one differs")
    parser.add_argument("--release", action="store_true",
                        help="refuse a revision that is not the tag of the release")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out `stamp`; return the exit status (0 done or equal, 1 differs, 2 cannot)."""
    if arguments.release and not is_release():
        print(f"stamp: readers are sent to {REVISION}, not to a release: set REVISION = "
              f'"v{VERSION}" in book/release.py and run `python -m lib stamp`', file=sys.stderr)
        return 1
    try:
        changed = stamp(write=not arguments.check)
    except (StampError, OSError) as error:
        print(f"stamp: {error}", file=sys.stderr)
        return 2
    for path in changed:
        print(f"{path.relative_to(ROOT)}: {'differs' if arguments.check else 'stamped'}")
    if arguments.check and changed:
        print("stamp: run `python -m lib stamp`", file=sys.stderr)
        return 1
    return 0
