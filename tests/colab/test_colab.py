"""Google Colab, played: its packages, its kernel, and every chapter by "Run all" to its end.

Two runtimes, the one without a GPU and the one with a T4 (`tests.played`), each a clean environment
that is filled from the registry as Colab publishes it. The first cell fetches this working tree in
place of the published repository. It takes half an hour: `make test-colab PYTHON=python3.13`.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from book import redirects
from lib.kernels.catalogue import CATALOGUE
from tests.chapters.form import DRAWN
from tests.colab.runtime import ROOT, Runtime, commit_tree, first_code, make, output

pytestmark = pytest.mark.colab
CHAPTERS = [path.stem for path in redirects.notebooks(ROOT)]
# What Colab runs on: a first cell that changes one of these needs a restart of the kernel.
LEFT_ALONE = ("ipywidgets", "numpy", "matplotlib", "ipykernel", "ipython")
FIRST_KERNEL = "from lib.chapter import Chapter\n\nassert Chapter('01_naive').run().verdict.ok"


@pytest.fixture(scope="session")
def origin(tmp_path_factory) -> Path:
    """The repository that the first cell fetches from."""
    folder = tmp_path_factory.mktemp("origin")
    commit_tree(folder)
    return folder


@pytest.fixture(scope="session", params=["cpu", "gpu"])
def runtime(request, origin, tmp_path_factory) -> Runtime:
    """A runtime as one gets it."""
    base = os.environ.get("COLAB_PYTHON", sys.executable)
    version = output(base, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    if version != "3.13":
        pytest.fail(f"Colab has Python 3.13 and {base} is {version}: "
                    "make test-colab PYTHON=python3.13", pytrace=False)
    return make(request.param, base, tmp_path_factory.mktemp(request.param), origin)


def test_the_first_kernel_runs_after_the_first_cell(runtime, record_property):
    """First of all: the environment is still as Colab gives it."""
    before = runtime.versions()
    notebook = nbformat.read(ROOT / "chapters" / "01_naive.ipynb", 4)
    at = first_code(notebook)
    notebook.cells = [notebook.cells[at], new_code_cell(FIRST_KERNEL)]
    start = time.perf_counter()
    runtime.execute(notebook)
    seconds = time.perf_counter() - start
    record_property(f"seconds to the first kernel, {runtime.name}", round(seconds, 1))
    print(f"\n{runtime.name}: the first kernel had run after {seconds:.1f} s")
    said = str(notebook.cells[0].outputs)
    assert "Installing" in said
    assert ("Change runtime type" in said) == (runtime.name == "cpu")
    after = runtime.versions()
    assert {name: after[name] for name in LEFT_ALONE} == {name: before[name] for name in LEFT_ALONE}
    assert after["cupy-cuda12x"] == before.get("cupy-cuda12x", after["cupy-cuda12x"])
    assert [name for name in after if name.startswith("cupy")] == ["cupy-cuda12x"]


@pytest.mark.parametrize("stem", [*CHAPTERS, *redirects.REDIRECTS])
def test_run_all_reaches_the_end(runtime, stem):
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", 4)
    runtime.execute(notebook)
    kernel = CATALOGUE.get(stem)
    if kernel is None:
        return
    here = runtime.name == "gpu" and kernel.min_arch == "sm_75"
    for call, verbs in {"check": (".check(",), "speed": (".speed(",), "timeline": DRAWN["timeline"]
                        }.items():
        asked = [cell for cell in notebook.cells if any(verb in cell.source for verb in verbs)]
        if call == "speed" and not asked:
            continue  # of a version that no GPU has timed yet
        shown = "".join(str(cell.get("outputs")) for cell in asked)
        # Beside a version that is too new for the GPU stands the one before, measured.
        kinds = "measured: Tesla T4" if here else "recorded: |emulated: |Not recorded yet"
        assert re.search(kinds, shown), call
        assert runtime.name == "gpu" or "measured: " not in shown, call
