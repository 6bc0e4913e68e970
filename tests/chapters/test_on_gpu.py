"""Each kernel's chapter on a machine with a GPU: it runs, and it measures."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

from lib.fingerprint import ROOT
from lib.kernels import in_book

pytestmark = [pytest.mark.gpu, pytest.mark.chapters]


@pytest.mark.parametrize("stem", in_book())
def test_a_chapter_measures_where_there_is_a_gpu(stem):
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(ROOT / "chapters")}})
    client.execute(env=dict(os.environ))
    shown = {
        cell.source.strip().splitlines()[-1]: str(cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.strip()
    }
    for call in ("page.check()", "page.speed()"):
        assert "measured: " in shown[call], call
    timeline = next(text for line, text in shown.items() if line.startswith("page.timeline"))
    assert "measured: " in timeline, "the timeline was not measured"
