"""The CUDA files: where they are, what they include, and a fingerprint of an instantiation.

A record carries the fingerprint of the code that it was made with. When that no longer matches, the
record is stale.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

# The header of the timeline's marks, and a line that is a mark or includes it.
MARKS_HEADER = "timeline.cuh"
_MARK = re.compile(
    r"^\s*(?:MARK\w*\(.*\)|TIMELINE_\w+(?:\(.*\))?)(?:;.*)?$|^#include \"timeline\.cuh\"$"
)


def fingerprint(source: Path, expression: str, marks: bool = False) -> str:
    """Fingerprint of an instantiation of any CUDA file of this repository (see `Kernel.hash`)."""
    return fingerprint_of(source.read_text(), source, expression, marks)


def fingerprint_of(text: str, source: Path, expression: str, marks: bool = False) -> str:
    """Fingerprint of an instantiation of a CUDA file whose own text was changed to `text`."""
    files = [path for path in included(source) if marks or path.name != MARKS_HEADER]
    codes = (_without_comments(text if p == source else p.read_text()) for p in files)
    code = " ".join(" ".join((c if marks else without_marks(c)).split()) for c in codes)
    return hashlib.sha256(f"{expression}\n{code}".encode()).hexdigest()[:16]


def included(source: Path) -> tuple[Path, ...]:
    """Return a CUDA file and, depth first, every header that it includes from its own folder."""
    return _included(source, include_folder(source))


def include_folder(source: Path) -> Path:
    """Where the headers of a CUDA file lie: in the folder ``include`` beside it."""
    return source.parent / "include"


@cache
def _included(file: Path, folder: Path) -> tuple[Path, ...]:
    found = [file]
    for header in re.findall(r'^\s*#include "([^"]+)"', file.read_text(), re.MULTILINE):
        found += [path for path in _included(folder / header, folder) if path not in found]
    return tuple(found)


def without_marks(text: str) -> str:
    """CUDA source without the timeline's marks, which compile to nothing unless asked for."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not _MARK.match(line.rstrip("\n"))
    )


def _without_comments(text: str) -> str:
    """CUDA source without comments, its lines kept."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)
