"""Begin a version: `python -m lib new 29_mine` (or `make new NAME=29_mine`).

Writes what a version consists of, each part small and right, for its author to change: a kernel
that multiplies, its entry, a chapter that calls what every chapter calls, its line in the table of
contents and its budget. The entry is a file of its own (`lib.kernels.catalogue.OWN`), so that
nothing else of the house changes with it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import notebooks
from book.release import ROOT, setup_cell
from lib.compiler.compiled import compile_source
from lib.compiler.nvrtc import CompileError
from lib.ptx.files import text_of, write_whole

NAME = re.compile(r"(\d\d)_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")
ENTRY = '''\
"""{number}: its variants, and what it is compared with."""

from lib.kernels.families import square
from lib.kernels.spec import Kernel

KERNEL = Kernel(
    stem="{stem}",
    function="{function}",
    title="{title}",
    change="what {number} changes, in a few words",
    builds_on=("01_naive",),
    variants=(square("first", 16, 1, "one thread per element, blocks of 16×16"),),
)
'''
SOURCE = '''\
// {number}: what changes, in one sentence.
//
// Changes:    what the version before it does not have.
// Bottleneck: what that removes.
// Launch:     grid (ceil(N / TILE), ceil(M / TILE)), block (TILE, TILE); any M, N, K.
// Runs on:    sm_75 and later.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int TILE>
__global__ void __launch_bounds__(TILE * TILE)
{function}(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int col = blockIdx.x * TILE + threadIdx.x;
    TIMELINE_BEGIN;

    float sum = 0.0f;
    TIMELINE_UNROLL
    for (int k = 0; k < K; ++k) {{
        TIMELINE_SAMPLE(k % 4 == 0);
        MARK(LOAD);
        float a = row < M ? A[(size_t)row * K + k] : 0.0f;
        float b = col < N ? B[(size_t)k * N + col] : 0.0f;
        MARK_ARRIVAL(a, b);
        sum += a * b;
    }}

    TIMELINE_SAMPLE(true);
    MARK(STORE);
    if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum, beta);
    TIMELINE_END;
}}
'''
# Text with its tags, or code with them: the first cells are the card. A chapter must check, time,
# draw a timeline and a roofline, and have a cell that is compared (test_chapters.py);
# `tests/chapters/test_form.py` says what else a finished one has.
CELLS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("text", "# {number} · {title}\n\nWhat changes and what it gains, in a sentence.", ("card",)),
    ("setup", "", ()),
    ("code", """\
from lib.chapter import Chapter
from lib.show.display import show
from lib.show.scene import Grid, Scene
from lib.show.card import change

page = Chapter("{stem}")
tile = Grid(16, 16)
tile.boxes([tile.box(3, 5)], "focus").ruled()
show(Scene("A block computes 16×16 elements of C, a thread one of them", tile.html(),
           "modelled: from the tile"))""", ("card", "draws")),
    ("code", 'change(page.version, ("float sum", "update("))', ("card", "draws")),
    ("text", """\
| what changes | predicted | measured | the counter |
|---|---|---|---|
| the idea | with its arithmetic | | that names the cause |

**What limits it now**, and what comes next: a sentence.""", ("card",)),
    ("text", "## Why, as a finding\n\n*Before you read on:* how many sectors per load?", ()),
    ("text", "## Run it", ()),
    ("code", """\
from lib.problem import Problem

done = page.run(Problem(50, 40, 70), backend="emulator", races=True)
print("right:", done.verdict.ok, "· hazards:", len(done.launch.hazards))""",
     ("nbval-check-output",)),
    ("text", "<!-- run it here -->\n\n## What to see in its timeline, in a sentence", ()),
    ("code", "page.timeline()", ("draws",)),
    ("text", "What to see in its accesses.", ()),
    ("code", "page.coalescing()", ("draws",)),
    ("text", "Which roof is over it.", ()),
    ("code", "page.roofline()", ("draws",)),
    ("text", "## What did not pay\n\n- A line each.", ()),
    ("text", """\
## Exercises

**1. Change a constant.** Predict the sectors per request, then look.

**2. Mend a bug.**

**3. Write the lines.**""", ()),
    ("code", "page.check()\npage.speed()", ("hide-cell", "nbval-check-output", "record")),
    ("text", "[The record of this version](records/{stem}.ipynb): every variant, size, counter "
             "and pair, errors, machine code, the whole file.", ()),
)
# What the chapter above costs.
BUDGET = {"kernels compiled": 6, "kernels disassembled": 4, "blocks emulated": 200,
          "figures drawn": 24}


class NewError(ValueError):
    """A version that can't be begun. The message says why."""


def parts(name: str, root: Path = ROOT) -> dict[Path, str]:
    """The files of a new version and those that name it, each with its new text.

    Raises
    ------
    NewError
        If the name is none, is taken or can't name a function, or a file has no place for it.
    """
    match = NAME.fullmatch(name)
    if not match:
        raise NewError(f"{name!r} is no name of a version: two digits and words, such as 29_mine")
    number, function = match.groups()
    words = {"stem": name, "number": number, "function": function,
             "title": function.replace("_", " ").capitalize()}
    source, chapter = root / "cuda" / f"{name}.cu", root / "chapters" / f"{name}.ipynb"
    entry = root / "lib" / "kernels" / "own" / f"{name}.py"
    for folder in (source.parent, chapter.parent):
        for file in folder.glob(f"{number}_*"):
            raise NewError(f"{number} is taken: {file.relative_to(root)}")
    numbers = [int(path.stem[:2]) for path in source.parent.glob("[0-9][0-9]_*.cu")]
    if int(number) <= max(numbers):
        raise NewError(f"the last version is {max(numbers):02}, and a new one stands behind it")
    text = SOURCE.format(**words)
    try:
        compile_source(text, f"{function}<16>", "sm_75", include=root / "cuda" / "include",
                       ptx_only=True)
    except CompileError as error:
        raise NewError(f"{function!r} can't name a kernel: {str(error).splitlines()[0]}") from error
    budget = root / "tests" / "chapters" / "budget.json"
    contents = root / "_toc.yml"
    return {
        source: text,
        chapter: _notebook(words),
        entry: ENTRY.format(**words),
        contents: _behind(text_of(contents),
                          r"(?s:.*)      - file: chapters/(?:own|\d\d_\w+)\n",
                          f"      - file: chapters/{name}\n", contents),
        budget: _behind(text_of(budget),
                        r'(?s:.*)  "chapters/\d\d_\w+": \{[^}]*\},?\n',
                        f'  "chapters/{name}": {json.dumps(BUDGET)},\n', budget),
    }


def _behind(text: str, place: str, new: str, file: Path) -> str:
    """`text` with `new` put behind the place that a pattern finds."""
    found = re.search(place, text)
    if not found:
        raise NewError(f"{file.name} has no place for a version; has its form changed?")
    return text[:found.end()] + new + text[found.end():]


def _notebook(words: dict[str, str]) -> str:
    cells = []
    for count, (kind, text, tags) in enumerate(CELLS):
        name = f"cell-{count:02}"
        metadata = {"tags": list(tags)} if tags else {}
        if kind == "text":
            cells.append(new_markdown_cell(text.format(**words), id=name, metadata=metadata))
        elif kind == "setup":
            cells.append(new_code_cell(setup_cell(), id="colab-setup",
                                       metadata={"tags": ["colab-setup", "remove-cell"]}))
        else:
            cells.append(new_code_cell(text.format(**words), id=name, metadata=metadata))
    return notebooks.normal_text(nbformat.writes(new_notebook(cells=cells)))


def add_command(subparsers) -> None:
    """Add `new` to the commands of `python -m lib`; its namespace's `run` is `run`."""
    parser = subparsers.add_parser(
        "new", help="begin a kernel version: its source, entry, chapter and line of contents",
        description="Begin a kernel version: write its source, its entry, its chapter, its line in "
                    "_toc.yml and its budget.")
    parser.add_argument("name", metavar="NAME", help="two digits and words, such as 29_mine")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out `new`; return the exit status (0 done, 2 cannot)."""
    try:
        files = parts(arguments.name)
    except NewError as error:
        print(f"new: {error}", file=sys.stderr)
        return 2
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text.encode())
        print(f"{path.relative_to(ROOT)}: written")
    name = arguments.name
    print(f"Now: python -m lib check {name}; make chapter NAME={name}; make quick")
    return 0
