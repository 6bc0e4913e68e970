"""The form in which a chapter is committed.

A chapter is committed as executed on a machine without a GPU, with its text outputs, and without
what differs from run to run or belongs to the built page: images, figures, HTML, widget views and
their state, timings of the execution, the version of the kernel. The pages draw their figures and
lay out their listings when the book is built.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book import execution, numbers, roles, worklogs
from book.release import ROOT
from lib.ptx.files import text_of, write_whole

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
# HTML is as long as the page that it makes: what a cell says beside it as plain text stays.
TEXT_TYPES = ("text/plain", "text/markdown", "text/latex")
CELL_METADATA = ("tags", "mystnb")
NOTEBOOK_METADATA = ("kernelspec", "language_info", "mystnb", "myst")
DRAWING = re.compile(
    r"<(svg|img|canvas|video|audio|iframe|script|figure)\b|!\[[^\]]*\]\(data:", re.IGNORECASE)
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
CELL_TIMEOUT = 120  # seconds
# The tag of what a page folds, such as a solution: JupyterLab is told to fold it too.
FOLDED = "hide-cell"


class NotebookError(ValueError):
    """A notebook that cannot be brought to its normal form, with the reason."""


def parse(text: str) -> NotebookNode:
    """The notebook that `text` holds, in format 4.

    Raises
    ------
    NotebookError
        Where `text` is no JSON or no notebook.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"no JSON: {error}") from error
    if not isinstance(document, dict) or "cells" not in document:
        raise NotebookError("no notebook of format 4: it has no cells")
    # Notebooks saved by Colab hold widget metadata without its `state`, which no reader accepts.
    # Widget state is dropped in any case, so dropping it first mends them.
    document.get("metadata", {}).pop("widgets", None)
    if document.get("nbformat") != 4:
        raise NotebookError(f"format {document.get('nbformat')}; only format 4 is read")
    document["nbformat_minor"] = 5
    try:
        _name_cells(document["cells"])
        notebook = nbformat.v4.reads(json.dumps(document))
        nbformat.validate(notebook)
    except (nbformat.ValidationError, AttributeError, TypeError) as error:
        raise NotebookError(f"no valid notebook: {str(error).splitlines()[0]}") from error
    return notebook


def normalise(notebook: NotebookNode) -> NotebookNode:
    """The normal form of `notebook`, as a new object.

    Raises
    ------
    NotebookError
        Where a cell's output is an error: such a chapter was not executed.
    """
    notebook = copy.deepcopy(notebook)
    stored = {key: notebook.metadata[key] for key in NOTEBOOK_METADATA if key in notebook.metadata}
    stored["kernelspec"] = dict(KERNELSPEC)
    stored["language_info"] = dict(LANGUAGE)
    notebook.metadata = nbformat.from_dict(stored)
    notebook.nbformat_minor = 5
    _name_cells(notebook.cells)
    count = 0
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)})
        if FOLDED in cell.metadata.get("tags", ()):
            cell.metadata.jupyter = nbformat.from_dict(
                {"source_hidden": True, "outputs_hidden": True})
        cell.source = cell.source.rstrip("\n")
        if cell.cell_type != "code":
            cell.pop("attachments", None)
            if role := roles.ROLE.search(cell.source):
                raise NotebookError(f"cell {cell.id} has {role[0]}…`, which JupyterLab shows raw: "
                                    "write a link to glossary.md#term-… or references.md#…")
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = _text_outputs(cell.outputs, cell.id)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return notebook


def to_text(notebook: NotebookNode) -> str:
    """The bytes of a committed notebook, as text."""
    return nbformat.writes(notebook) + "\n"


def normal_text(text: str) -> str:
    """`text` of a notebook in its normal form."""
    return to_text(normalise(parse(text)))


def _name_cells(cells: list[dict]) -> None:
    """Give each cell an id of its own; ids that are there and unique stay."""
    seen: set[str] = set()
    for index, cell in enumerate(cells):
        name = cell.get("id")
        if not name or name in seen:
            name = f"cell-{index:02}"
            while name in seen:
                name += "-again"
            cell["id"] = name
        seen.add(name)


def _text_outputs(outputs: Iterable[NotebookNode], cell: str) -> list[NotebookNode]:
    stored: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "error":
            raise NotebookError(f"cell {cell} ended in {output.ename}: {output.evalue}")
        if output.output_type == "stream":
            # Progress bars and warnings name times and paths of one machine.
            if output.name == "stderr":
                continue
            if stored and stored[-1].output_type == "stream":
                stored[-1].text += output.text
            else:
                stored.append(output)
            continue
        if any(not kind.startswith("text/") for kind in output.data):
            continue
        data = {kind: output.data[kind] for kind in TEXT_TYPES if kind in output.data}
        if not data or any(DRAWING.search(text) for text in output.data.values()):
            continue
        output.data = nbformat.from_dict(
            {kind: ADDRESS.sub(" at 0x…", text) for kind, text in data.items()})
        output.metadata = nbformat.from_dict({})
        stored.append(output)
    return stored


def execute(path: Path, timeout: int = CELL_TIMEOUT) -> NotebookNode:
    """The notebook at `path`, executed in its own folder as on a machine without a GPU.

    Raises
    ------
    NotebookError
        Where a cell raises or takes longer than `timeout` seconds.
    """
    parse(text_of(path))
    [(_, done)] = execution.execute(
        [path], timeout=timeout, workers=execution.cpus(), kernels=[path.stem],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    if done.error:
        raise NotebookError(done.error)
    return done.notebook


def _executed(path: Path) -> NotebookNode:
    """The notebook at `path` in its normal form, executed, its sentences' numbers filled in."""
    notebook = normalise(execute(path))
    try:
        numbers.fill(notebook, path.stem)
    except ValueError as error:
        raise NotebookError(str(error)) from error
    return notebook


def assembled_worklogs() -> Iterator[tuple[Path, str]]:
    """Each worklog that is there, and its text with the cards as the chapters have them now."""
    chapters = {path.stem: parse(text_of(path)) for path in _chapters() if path.stem[:2].isdigit()}
    for name in worklogs.WORKLOGS:
        path = ROOT / "chapters" / f"{name}.ipynb"
        if path.is_file():
            made = worklogs.assembled(name, parse(text_of(path)), chapters)
            yield path, to_text(normalise(made))


def _chapters() -> list[Path]:
    return sorted((ROOT / "chapters").glob("*.ipynb"))


def _shown(path: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(ROOT)) if resolved.is_relative_to(ROOT) else str(path)


def add_command(subparsers) -> None:
    """Add `notebooks` to the commands of `python -m lib`; its namespace's `run` is `run`."""
    parser = subparsers.add_parser(
        "notebooks", help="check, normalise or execute the chapters' notebooks",
        description="The form in which chapters are committed: text outputs, no images, no widget "
                    "state, nothing that differs from run to run.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true",
                        help="list the files that are not in their normal form; exit 1 if any")
    action.add_argument("--write", action="store_true", help="bring the files to their normal form")
    action.add_argument("--worklogs", action="store_true",
                        help="assemble the two worklogs anew from the chapters' cards")
    action.add_argument("--execute", action="store_true",
                        help="execute the files as without a GPU, then write their normal form")
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; all chapters by default")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out `notebooks`; return the exit status.

    0 done or normal, 1 a file is not normal, 2 a file cannot be read, executed or written.
    """
    status = 0
    if arguments.worklogs:
        for path, new in assembled_worklogs():
            if new != text_of(path):
                write_whole(path, new.encode())
                print(f"{_shown(path)}: written")
        return 0
    for path in arguments.paths or _chapters():
        name = _shown(path)
        try:
            text = text_of(path)
            new = to_text(_executed(path)) if arguments.execute else normal_text(text)
            if new == text:
                continue
            if arguments.check:
                print(f"{name}: not normal; run `python -m lib notebooks --write {name}`")
                status = max(status, 1)
            else:
                write_whole(path, new.encode())
                print(f"{name}: written")
        except (NotebookError, execution.Ended, OSError, UnicodeDecodeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 2
    return status
