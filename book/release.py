"""Where this book is published, at which revision, and the copies of both.

`REPOSITORY`, `REVISION` and `VERSION` are the only source. A notebook opened on Colab has nothing
but itself, so its first code cell must say what to fetch; README, `_config.yml` (the rocket) and
`CITATION.cff` carry it too. `.zenodo.json` follows from `CITATION.cff`, the papers' authors and
numbers from what the repository has (`book.paper`).
`python -m lib stamp` writes the copies, `python -m lib stamp --check` compares them, and
`python -m lib release` (`book.releasing`) sets the version.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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


def stamp_readme(text: str) -> str:
    """`text` of README.md with the lines between its markers, and those that clone, renewed."""
    folder = REPOSITORY.rstrip("/").rsplit("/", 1)[1]
    text = replace_once(
        r"(?m)^    git clone .*\n    cd .*$",
        lambda match: f"    git clone {REPOSITORY}\n    cd {folder}",
        text,
        "README.md has no lines that clone the repository and change into its folder",
    )
    return replace_once(
        r"(?s)(<!-- stamp:begin -->\n).*?(<!-- stamp:end -->)",
        lambda match: f"{match[1]}{badges()}\n{match[2]}",
        text,
        "README.md has no <!-- stamp:begin --> … <!-- stamp:end --> lines",
    )


def stamp_config(text: str) -> str:
    """`text` of _config.yml with the repository's address and the rocket's revision renewed."""
    return replace_once(
        r"(?m)(^repository:\n  url: ).*(\n  branch: ).*$",
        lambda match: f"{match[1]}{REPOSITORY}{match[2]}{REVISION}",
        text,
        "_config.yml has no 'repository:' with 'url:' and 'branch:' on its first lines",
    )


def stamp_citation(text: str) -> str:
    """`text` of CITATION.cff with its address and version renewed."""
    for name, value in (("repository-code", REPOSITORY), ("version", VERSION)):
        text = replace_once(rf"(?m)^{name}: .*$", lambda _, new=f"{name}: {value}": new, text,
                            f"CITATION.cff has no {name} line")
    return text


def zenodo(citation: Mapping[str, Any]) -> dict[str, Any]:
    """What Zenodo asks of a release, from what CITATION.cff says.

    Of the text and the figures, which have a licence of their own, the last sentence speaks: Zenodo
    takes one.
    """
    return {
        "title": citation["title"],
        "description": f"{citation['abstract']} Code: {citation['license']}. "
                       "Text and figures: CC BY 4.0.",
        "upload_type": citation["type"],
        "version": citation["version"],
        "license": citation["license"].lower(),
        "keywords": citation["keywords"],
        "creators": [
            {"name": ", ".join(author[key] for key in ("family-names", "given-names")
                               if key in author) or author["name"],
             **({"orcid": author["orcid"].rpartition("/")[2]} if "orcid" in author else {}),
             **({"affiliation": author["affiliation"]} if "affiliation" in author else {})}
            for author in citation["authors"]],
        "related_identifiers": [{
            "identifier": citation["repository-code"], "relation": "isSupplementTo",
            "resource_type": "software", "scheme": "url"}],
    }


def _citation(root: Path) -> dict[str, Any]:
    """CITATION.cff as it is when it is stamped."""
    found = yaml.safe_load(stamp_citation(text_of(root / "CITATION.cff")))
    # YAML takes a version of two numbers for one.
    found["version"] = str(found["version"])
    return found


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
        (root / "README.md", stamp_readme),
        (root / "_config.yml", stamp_config),
        (root / "CITATION.cff", stamp_citation),
        (root / ".zenodo.json",
         lambda _: json.dumps(zenodo(_citation(root)), indent=2, ensure_ascii=False) + "\n"),
        *((root / name, paper.stamp(lambda: _citation(root), name)) for name in paper.PAPERS),
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


def replace_once(pattern: str, new: Callable[[re.Match[str]], str], text: str, error: str) -> str:
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
                    "the first code cell of each chapter, README.md, _config.yml, CITATION.cff and "
                    ".zenodo.json; numbers into the papers.")
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
