"""What the chapters print is what is committed, by nbval's own rules.

nbval would execute each chapter once more; the executed ones of the book are compared here.
(`pytest --nbval-lax chapters/01_naive.ipynb` does the same for one chapter, with a kernel.)
"""


import nbformat
import pytest
from nbval.plugin import IPyNbFile, coalesce_streams

from book import executed
from lib.paths import ROOT

pytestmark = pytest.mark.chapters
TAG = "nbval-check-output"


def compared(path):
    """Whether a chapter has a cell whose outputs are compared."""
    return any(TAG in cell.metadata.get("tags", []) for cell in nbformat.read(path, 4).cells)


def differences(session, path, document):
    """What nbval says of the cells of `document` against the compared ones at `path`."""
    committed = list(IPyNbFile.from_parent(session, path=path).collect())
    code = [cell for cell in document.cells if cell.cell_type == "code"]
    unlike = []
    for wanted, cell in zip(committed, code, strict=True):
        if TAG not in wanted.cell.metadata.get("tags", []):
            continue
        found, stored = coalesce_streams(cell.outputs), coalesce_streams(wanted.cell.outputs)
        if not wanted.compare_outputs(found, stored):
            unlike.append("\n".join(
                [f"{wanted.name}:", cell.source, *wanted.comparison_traceback]))
    return unlike


CHAPTERS = [path for path in sorted((ROOT / "chapters").glob("*.ipynb")) if compared(path)]


@pytest.mark.parametrize("path", CHAPTERS, ids=[path.stem for path in CHAPTERS])
def test_outputs_are_those_that_are_committed(path, up_to_date, request):
    done = nbformat.read(executed.place(up_to_date, f"chapters/{path.stem}"), as_version=4)
    unlike = differences(request.session, path, done)
    assert not unlike, "\n\n".join([*unlike, f"if it is right: make chapter NAME={path.stem}"])
