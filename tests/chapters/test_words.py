"""One meaning per word: what the glossary's words may not stand for, on any page or figure."""

import ast
import re

import nbformat
import pytest

from lib.paths import ROOT

WORDS = ("fragment", "stage", "turn", "group", "tile", "step", "ring", "slab", "atom", "raster",
         "parity")
# By the word: where it meant something else than the glossary says. Claims quote others.
ELSEWHERE = {
    "fragment": r"\bfragments? of step|\bfragments? read a",
    "stage": r"\bdata[- ]stage|\bstage (?:is )?(?:as )?busy",
    "turn": r"\bin turn\b|\btakes? turns\b|\bturns? (?:it|the|its|them) ",
    "group": r"\bgroups? of (?:\w+ )?(?:lanes|banks|rows|SMs|warps|elements|neighbours)\b",
    "step": r"\bsteps? over\b|\bstep by step\b|\bin steps\b(?! of)|\b(?:nine|ten) steps\b",
    "atom": r"\batoms? of (?:16|32)\b",
}
PAGES = [path for path in sorted((ROOT / "chapters").iterdir())
         if path.suffix in (".ipynb", ".md") and path.stem not in ("claims", "references")]
# What draws, and what names variants and pairs.
DRAWS = [path for folder in ("show", "kernels")
         for path in sorted((ROOT / "lib" / folder).rglob("*.py"))]


def read(path):
    """What a page says, itself or by its cells; a module's strings but its docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, 4).cells
        return "\n".join([cell.source for cell in cells if cell.cell_type == "markdown"] + [
            str(output.get("data", {}).get("text/markdown", "")) for cell in cells
            for output in cell.get("outputs", [])])
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return "\n".join(node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
                     and isinstance(node.value, str) and id(node) not in docstrings)


@pytest.mark.parametrize("path", [*PAGES, *DRAWS], ids=lambda path: path.stem)
def test_a_word_means_what_the_glossary_says(path):
    text = read(path)
    assert [found[0] for pattern in ELSEWHERE.values()
            for found in re.finditer(pattern, text, re.I)] == []


def test_the_glossary_has_each_word():
    text = (ROOT / "chapters" / "glossary.md").read_text(encoding="utf-8")
    assert [word for word in WORDS if not re.search(rf"^{word}\n  \S", text, re.M)] == []
