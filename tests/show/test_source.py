"""What a page shows of the code: differences, excerpts, one instantiation, machine code."""

import ast
import re
from functools import cache

import nbformat
import pytest

from lib import RawModule
from lib.compiler.fingerprint import without_marks
from lib.kernels import source
from lib.paths import CUDA, ROOT
from lib.show import source as page
from lib.show.version import Version


@pytest.fixture
def html(monkeypatch):
    """What is displayed as HTML, and the same as plain text."""
    found = []
    monkeypatch.setattr(page, "display", lambda what, raw: found.extend(what.values()))
    return found


def test_a_difference_says_of_each_line_what_became_of_it(html, shown):
    page.code(Version("02_shared_tile"))
    rows = re.findall(r'<span class="(\w+)">(.) ', html[0])
    assert {("added", "+"), ("removed", "-"), ("kept", " ")} <= set(rows)
    assert 'aria-label="Difference from 01_naive to 02_shared_tile"' in html[0]
    assert "&lt;int TILE&gt;" in html[0] and "white-space:pre-wrap" in html[0]
    assert "\n+ template <int TILE>\n" in html[1] and len(html[1].splitlines()) == len(rows)
    assert "<details>" in shown[0] and "The whole of" in shown[0]


def test_a_kernel_written_anew_is_shown_whole(html, shown):
    page.code(Version("01_naive"))
    assert not html and shown[0].startswith("```cpp\ntemplate <int TILE, bool COALESCED>")


def test_an_excerpt_names_its_file_and_has_no_marks(shown):
    page.excerpt(Version("02_shared_tile"), "As[ty][tx] = a;", "sum += As[ty][k]")
    assert "MARK" not in shown[0] and "*cuda/02_shared_tile.cu*" in shown[0]
    page.excerpt(Version("02_shared_tile"), "template <", "{", variant="only_a")
    assert "*cuda/steps/02_shared_tile_one.cu*" in shown[1]


def value(node):
    """A literal of a cell, in which the pragma may go by its name."""
    return eval(compile(ast.Expression(node), "cell", "eval"), {"UNROLL": page.UNROLL})


def excerpts_with_constants():
    """The excerpts of the chapters that put constants in: (stem, the call's arguments)."""
    for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type != "code" or "arguments={" not in cell.source:
                continue
            for call in ast.walk(ast.parse(cell.source)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "page.excerpt":
                    given = {one.arg: value(one.value) for one in call.keywords}
                    if "arguments" in given:
                        first, last = map(ast.literal_eval, call.args)
                        yield pytest.param(path.stem, first, last, given, id=f"{path.stem}-{first}")


@pytest.mark.parametrize("stem, first, last, given", list(excerpts_with_constants()))
def test_the_constants_in_a_chapter_s_excerpt_are_those_of_its_version(stem, first, last, given):
    """The kernel with the excerpt's lines as shown compiles to what it compiles to without."""
    version = Version(stem)
    text = without_marks(version.kernel.source.read_text(encoding="utf-8"))
    part = source.excerpt(text, first, last, given.get("closed", False))
    constants, text = dict(given["arguments"]), at_the_edge(text)
    if page.UNROLL in constants:  # the compiler is asked for less, on both sides
        bare = source.edited(part, page.UNROLL, constants.pop(page.UNROLL))
        text, part = source.edited(text, at_the_edge(part), at_the_edge(bare)), bare
    shown = part
    for old, new in constants.items():
        shown = source.edited(shown, old, new)
    as_shown = source.edited(text, at_the_edge(part), at_the_edge(shown))
    assert as_shown != text or not constants
    expression = version.kernel.expression(version.kernel.variant())
    arch = version.kernel.min_arch
    assert ptx_of(as_shown, expression, arch) == ptx_of(text, expression, arch)


def at_the_edge(text):
    """Lines without their indentation."""
    return "\n".join(row.strip() for row in text.splitlines())


@cache
def ptx_of(text, expression, arch):
    """What it compiles to, without what debuggers read: lines, and names that NVRTC numbers."""
    options = ("-std=c++17", f"-I{CUDA / 'include'}")
    ptx = RawModule(code=text, options=options, name_expressions=[expression], arch=arch).ptx
    code = re.split(r"^\s*\.section\b", ptx, flags=re.M)[0]
    code = re.sub(r"^\s*(\.loc\b.*)?\n", "", code, flags=re.M)
    return re.sub(r"(?<=%)([a-z]+)<?\d+>?", r"\1", code)  # registers are numbered anew
