"""Chapters that had another name in an earlier release: where they are told now.

Their old addresses on the published pages lead on (`book.gemm_book`), and so do their notebooks,
which old links to Colab open: each is a stub of one cell, outside of the book's contents, that
``python -m lib stamp`` writes.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

# Names of notebooks in the folder `chapters`, without their ending.
REDIRECTS = {
    "03_bank_conflicts": "05_bank_conflicts",
    "04_double_buffer": "07_double_buffer",
    "05_strip": "03_strip",
    "06_register_tile": "04_register_tile",
    "07_vectorized": "06_vectorized",
    "17_tma_wgmma": "17_wgmma",
    "18_hopper_limit": "20_persistent",
    "20_hopper_limit": "20_persistent",
    "21_every_shape": "22_few_tiles",
}


def stub(old: str, on_colab: str) -> str:
    """Text of the notebook that leads on from an old name.

    Parameters
    ----------
    old : str
        A key of `REDIRECTS`.
    on_colab : str
        Address of the folder `chapters` on Colab, where links between notebooks lead nowhere.
    """
    new = REDIRECTS[old]
    cell = new_markdown_cell(
        f"# Moved\n\n`{old}` is now [{new}]({new}.ipynb): "
        f"[open it on Colab]({on_colab}/{new}.ipynb).", id="moved")
    notebook = new_notebook(cells=[cell], metadata={
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    return nbformat.writes(notebook) + "\n"


def notebooks(root: Path) -> list[Path]:
    """The notebooks of the book in the repository `root`, without stubs, in order."""
    return [path for path in sorted((root / "chapters").glob("*.ipynb"))
            if path.stem not in REDIRECTS]
