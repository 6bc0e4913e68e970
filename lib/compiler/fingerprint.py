"""The CUDA files: where they are, what they include, and a fingerprint of an instantiation.

A record carries the fingerprint of the code that it was made with. When that no longer matches, the
record is stale.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

# The header of the timeline's marks, and a line that is a mark or includes it.
MARKS_HEADER = "timeline.cuh"
_MARK = re.compile(
    r"^\s*(?:MARK\w*\(.*\)|TIMELINE_\w+(?:\(.*\))?)(?:;.*)?$|^#include \"timeline\.cuh\"$"
)


def fingerprint(source: Path, expression: str, marks: bool = False) -> str:
    """Fingerprint of an instantiation of any CUDA file of this repository (see `Kernel.hash`)."""
    parts = _parts(source, marks)
    return _digest(expression, (_code_of(path, file_identity(path), marks) for path in parts))


def fingerprint_of(text: str, source: Path, expression: str, marks: bool = False) -> str:
    """Fingerprint of an instantiation of a CUDA file whose own text was changed to `text`."""
    return _digest(expression, (
        _code(text if path == source else path.read_text(encoding="utf-8"), marks)
        for path in _parts(source, marks)
    ))


def _parts(source: Path, marks: bool) -> list[Path]:
    return [path for path in included(source) if marks or path.name != MARKS_HEADER]


def _digest(expression: str, codes: Iterable[str]) -> str:
    return hashlib.sha256(f"{expression}\n{' '.join(codes)}".encode()).hexdigest()[:16]


def included(source: Path) -> tuple[Path, ...]:
    """Return a CUDA file and, depth first, every header that it includes from its own folder."""
    return _included(source, include_folder(source))


def include_folder(source: Path) -> Path:
    """Where a CUDA file's headers lie: in the folder ``include`` beside it or beside its folder."""
    include = source.parent / "include"
    return include if include.is_dir() else source.parent.parent / "include"


@cache
def _included(file: Path, folder: Path) -> tuple[Path, ...]:
    found = [file]
    text = file.read_text(encoding="utf-8")
    for header in re.findall(r'^[ \t]*#include "([^"]+)"', text, re.MULTILINE):
        found += [path for path in _included(folder / header, folder) if path not in found]
    return tuple(found)


def file_identity(path: str | Path) -> str:
    """A text that changes when another file is put in a file's place."""
    found = os.stat(path)
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _code(text: str, marks: bool) -> str:
    """What of a CUDA source counts, its white space made one space."""
    code = _without_comments(text)
    return " ".join((code if marks else without_marks(code)).split())


# A page asks for the fingerprint of each row of each record: thousands of times for the same code.
@lru_cache(maxsize=256)
def _code_of(path: Path, identity: str, marks: bool) -> str:
    """`_code` of a file, until another one with another `identity` lies there."""
    return _code(path.read_text(encoding="utf-8"), marks)


def without_marks(text: str) -> str:
    """CUDA source without the timeline's marks, which compile to nothing unless asked for."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not _MARK.match(line.rstrip("\n"))
    )


def _without_comments(text: str) -> str:
    """CUDA source without comments, its lines kept."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)
