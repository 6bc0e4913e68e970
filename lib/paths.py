"""Where things lie in a checkout of this repository, and how its files are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA = ROOT / "cuda"
CHAPTERS = ROOT / "chapters"
RESULTS = ROOT / "results"


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Let an error while a file is written name it, which that of a full disk doesn't."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(file)) from error
