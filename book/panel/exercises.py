"""The bugs that exercises ask to mend, as launches that "Try your own kernel" opens.

A chapter's notebook makes the text with the bug, and runs it: both are read from its cell.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from lib.chapter import Chapter
from lib.kernels.source import edited
from lib.kernels.spec import Variant
from lib.paths import CHAPTERS, CUDA
from lib.problem import Problem
from lib.ptx.files import text_of

ASKED = "**2. Mend a bug.**"
# Where a cell launches by hand: the variant that it names, and the problem.
_BY_HAND: dict[str, tuple[str, tuple[int, int, int]]] = {
    "01_naive": ("coalesced", (100, 99, 101)), "02_shared_tile": ("", (128, 128, 128)),
    "03_strip": ("columns_first", (128, 128, 128)), "04_register_tile": ("", (128, 128, 128)),
    "05_bank_conflicts": ("tile_swizzled", (64, 64, 64)), "06_vectorized": ("", (128, 128, 128)),
    "07_double_buffer": ("both", (150, 40, 72)), "10_wmma": ("one_fragment", (32, 64, 128)),
}
# Three texts whose results are wrong by their scales, which no line of NumPy says.
_UNTOLD = ("26_fp8",)
_EXERCISE = re.compile(
    r"(<p><strong>(\d)\. (?:Change a constant|Mend a bug|Write [^<]*)\.</strong>.*?)</p>", re.S)


@dataclass(frozen=True)
class Bug:
    """A text with a bug, and how the chapter runs it; `options` are the emulator's."""

    text: str
    variant: Variant
    problem: Any
    sms: int | None
    options: dict[str, Any]


def name(stem: str) -> str:
    """The example of a chapter's bug; its kernel where it has none that can be read."""
    return f"{stem}_bug" if stem not in _UNTOLD and _cell(stem) else stem


def bug(stem: str) -> Bug | None:
    """The bug of a chapter; None where the page can't tell it."""
    if name(stem) == stem or (cell := _cell(stem)) is None:
        return None
    code, call = cell
    page = Chapter(stem)
    chosen, sizes = _BY_HAND.get(stem, ("", ()))
    if not sizes and len(call.args) > 1:
        chosen = ast.literal_eval(call.args[1])
    variant = page.kernel.variant(chosen or None)
    given = {one.arg: one.value for one in call.keywords}
    text = given.get("source", given.get("code"))
    assert isinstance(text, ast.Name)
    names: dict[str, Any] = {"page": page}
    (broken,) = texts(code, [text.id], names, page.kernel.file(variant))
    if sizes:
        return Bug(broken, variant, variant.problem(*sizes), None, {})
    problem = eval(compile(ast.Expression(call.args[0]), stem, "eval"), names)
    options = {key: ast.literal_eval(given[key]) for key in ("schedule", "landing", "seed", "sms")
               if isinstance(given.get(key), ast.Constant)}
    if isinstance(given.get("landing"), ast.Name):  # both are run: one in which the bug shows
        options["landing"] = "late"
    if type(problem) is Problem:
        problem = variant.problem(problem.M, problem.N, problem.K)
    return Bug(broken, variant, problem, options.pop("sms", None), options)


def _cell(stem: str) -> tuple[str, ast.Call] | None:
    """The cell that shows a chapter's bug, and the call in it that runs the text."""
    path = CHAPTERS / f"{stem}.ipynb"
    cells = nbformat.reads(text_of(path), 4).cells if path.is_file() else []
    for cell, behind in zip(cells, cells[1:], strict=False):
        if ASKED in cell.source and behind.cell_type == "code":
            for node in ast.walk(ast.parse(behind.source)):
                if isinstance(node, ast.Call) and any(
                        one.arg in ("source", "code") and isinstance(one.value, ast.Name)
                        for one in node.keywords):
                    return behind.source, node
    return None


def texts(code: str, wanted: Iterable[str], names: dict[str, Any], source: Path) -> list[str]:
    """The texts that a cell calls so, made of a kernel's file.

    Of the cell only what makes them is run, in `names`, which has the chapter's `page`.
    """
    names |= {"source": text_of(source), "edited": edited, "Problem": Problem, "CUDA": CUDA}
    for statement in ast.parse(code).body:
        if isinstance(statement, (ast.Assign, ast.Import, ast.ImportFrom)):
            with contextlib.suppress(NameError):  # what the chapter's own launch takes
                exec(compile(ast.Module([statement], []), "<cell>", "exec"), names)
    return [names[one] for one in wanted]


def linked(body: str, stem: str) -> str:
    """A chapter's HTML where each exercise leads to its kernel."""
    def link(match: re.Match[str]) -> str:
        to = name(stem) if match[2] == "2" else stem
        return f'{match[1]} <a href="try.html#example={to}">Open its kernel</a>.</p>'

    return _EXERCISE.sub(link, body)
