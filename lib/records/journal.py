"""What a pass of measuring has done so far, so that one that is cut off goes on where it was.

``results/<gpu>/.pass.jsonl``: a line for what the pass is of, a line for each chunk, and a line for
each unit when all of it is measured. Lines are only added, each at once and whole; the last one may
be torn, and then its unit counts as not measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import DecodeError, json

from lib.records.store import RecordError


class Journal:
    """The journal in a file, which need not exist yet.

    Raises
    ------
    RecordError
        If the file can't be read, or a line but the last one is torn.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines = list(_read(file))

    @property
    def names(self) -> list[str] | None:
        """What the open pass is of; None where none is open."""
        return next((line["pass"] for line in self._lines if "pass" in line), None)

    @property
    def chunks(self) -> dict[str, dict[str, Any]]:
        """Where and when each chunk was measured, by its name."""
        return {line["chunk"]: line["where"] for line in self._lines if "where" in line}

    @property
    def headline(self) -> bool:
        """Whether the open pass is of the headline sizes alone."""
        return any(line.get("headline", False) for line in self._lines)

    def open(self, names: list[str], headline: bool = False) -> None:
        """Begin a pass."""
        self._append({"pass": names, "headline": headline})

    def begin(self, chunk: str, where: Mapping[str, Any]) -> None:
        """Note a chunk."""
        self._append({"chunk": chunk, "where": dict(where)})

    def done(self, unit: str, mark: str, chunk: str, seconds: float, made: Any) -> None:
        """Note a unit, all of it, and how long it took."""
        self._append({"unit": unit, "mark": mark, "chunk": chunk, "seconds": seconds,
                      "made": made})

    def find(self, unit: str, mark: str) -> dict[str, Any] | None:
        """What was measured of a unit, of this very source; None if nothing was."""
        for line in reversed(self._lines):
            if line.get("unit") == unit and line["mark"] == mark:
                return line
        return None

    def made(self, beginning: str) -> Iterator[Any]:
        """What was measured of the units whose names begin so."""
        for line in self._lines:
            if line.get("unit", "").startswith(beginning):
                yield line["made"]

    def took(self) -> dict[str, float]:
        """Seconds of each unit that was measured."""
        return {line["unit"]: line["seconds"] for line in self._lines if "unit" in line}

    def close(self) -> None:
        """End the pass: all that it measured has been written."""
        self.file.unlink(missing_ok=True)
        self._lines = []

    def _append(self, line: dict[str, Any]) -> None:
        text = json.encode(line)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab") as stream:
            # What was torn before must not make this line unreadable too.
            if stream.tell() and not _ends_whole(self.file):
                stream.write(b"\n")
            stream.write(text + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._lines.append(json.decode(text))


def _ends_whole(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _read(file: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = file.read_bytes().split(b"\n") if file.exists() else []
    except OSError as error:
        raise RecordError(f"{file} can't be read ({error.strerror}): remove it") from None
    for line in filter(None, lines):
        try:
            found = json.decode(line)
        except (DecodeError, RecursionError):
            continue  # cut off while it was written: its unit is measured again
        if isinstance(found, dict):
            yield found
