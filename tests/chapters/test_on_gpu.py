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


@pytest.mark.parametrize("stem", in_book())
def test_a_chapter_measures_where_there_is_a_gpu(stem):
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(ROOT / "chapters")}})
    client.execute(env=dict(os.environ))
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
