"""Each kernel's chapter on a machine with a GPU: it runs, and it measures what the GPU can run."""

import os
import re

import nbformat
import pytest
from nbclient import NotebookClient

from lib.kernels import catalogue as kernels
from lib.kernels.catalogue import in_book
from lib.paths import ROOT
from lib.run import device

pytestmark = [pytest.mark.gpu, pytest.mark.chapters]


# What a chapter can do without: cuBLAS's candidates, sensors, PyTorch, names of captured kernels.
OPTIONAL = ("nvmath", "pynvml", "torch", "cuda.bindings")


def chapters(*quick: str) -> list:
    """The chapters of kernels; all but these are slow."""
    return [pytest.param(stem, marks=[] if stem in quick else [pytest.mark.slow])
            for stem in in_book()]


def executed(stem: str, **environment: str) -> nbformat.NotebookNode:
    """A chapter, run to its end here."""
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(ROOT / "chapters")}})
    client.execute(env=os.environ | environment)
    return notebook


@pytest.mark.parametrize("stem", chapters("26_fp8"))
def test_a_chapter_runs_to_its_end_without_an_optional_package(stem, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL}))\n")
    notebook = executed(stem, PYTHONPATH=str(tmp_path))
    timed = [str(cell.get("outputs")) for cell in notebook.cells if "page.speed(" in cell.source]
    assert timed and all("measured: " in text or "recorded: " in text for text in timed)
    if stem == "26_fp8":
        assert all("pip install -U nvmath-python" in text or "measured: " not in text
                   for text in timed)


@pytest.mark.parametrize("stem", chapters("01_naive", "08_warp_tile", "18_tma"))
def test_a_chapter_measures_where_there_is_a_gpu(stem):
    notebook = executed(stem)
    shown: dict[str, list[str]] = {}
    for cell in notebook.cells:
        for call in re.findall(r"\bpage\.(check|speed|timeline)\(", cell.source):
            shown.setdefault(call, []).append(str(cell.get("outputs")))
    assert set(shown) == {"check", "speed", "timeline"}
    kernel = kernels.find(stem)
    here = [device.runs(kernel, variant) for variant in kernel.variants]
    for call, outputs in shown.items():
        if all(here):
            assert all("measured: " in text for text in outputs), f"page.{call} measured nothing"
        if not any(here):
            said = ("recorded: ", "emulated: ")
            assert all(any(kind in text for kind in said) for text in outputs), call
