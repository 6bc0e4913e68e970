"""Lets the notebooks of this folder import the book's library; on Colab it gets what is missing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from book.colab import prepare  # noqa: E402, F401 - what the notebooks' first cells call
