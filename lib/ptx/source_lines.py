"""Lines of the source that reports show: from texts that were given, or files in given folders.

PTX names the files that it was compiled from, and PTX from outside may name any file. So none is
read but regular files of source code, of bounded size, that lie in a folder that the caller gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from .files import bytes_of

SUFFIXES = {".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl"}
MAX_BYTES = 4 << 20  # of a file; the largest header of CUDA's has about 1 MiB


@dataclass(frozen=True)
class SourceLines:
    """Where the text of a source line comes from."""

    # Texts of whole files, by the name that they were compiled under or its last part.
    texts: Mapping[str, str] = field(default_factory=dict)
    # Where files may be read, with all folders in them. None: nothing is read.
    folders: tuple[Path, ...] = ()

    def line(self, place: tuple[str, int] | None) -> str:
        """Return a line of the source, without its indentation; empty if it is not to be had.

        `place`: file and line, from 1.
        """
        if place is None:
            return ""
        file, number = place
        text = self.texts.get(file, self.texts.get(PurePath(file).name))
        lines = (self.text(file) if text is None else text).split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def text(self, file: str) -> str:
        """Return the text of a file in the folders; empty if it may not or can't be read."""
        if not self.folders or PurePath(file).suffix not in SUFFIXES:
            return ""
        try:
            path = Path(file).resolve(strict=True)  # where it lies, and not what links to it
            if path.suffix not in SUFFIXES or not any(
                path.is_relative_to(folder.resolve()) for folder in self.folders
            ):
                return ""
            return bytes_of(path, MAX_BYTES).decode("utf-8", errors="replace")
        except (OSError, ValueError, RuntimeError):  # missing; a NUL; links in a circle
            return ""
