"""What a pass of measuring has done so far, so that one that is cut off goes on where it was.

``results/<gpu>/.pass.jsonl``: a line for what the pass is of, a line for each chunk, and a line for
each unit when all of it is measured. Lines are only added, each at once and whole; the last one may
be torn, and then its unit counts as not measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Raw, Struct, field, json

from lib.records.schema import Chunk
from lib.records.store import RecordError


class _Opened(Struct, kw_only=True, frozen=True):
    """What a pass is of, whether of the headline sizes alone, and whether all of it anew."""

    names: list[str] = field(name="pass")
    headline: bool = False
    whole: bool = False


class _Begun(Struct, kw_only=True, frozen=True):
    """A chunk."""

    chunk: str
    where: Chunk


class Done(Struct, kw_only=True, frozen=True):
    """A unit that was measured: of which source, in which chunk, and how long it took."""

    unit: str
    mark: str
    chunk: str
    seconds: float
    made: Raw

    def decoded(self, kind: Any) -> Any:
        """What was measured, of the type that such a unit has.

        Raises
        ------
        RecordError
            If it is of another form: one that an older release has noted.
        """
        try:
            return json.decode(self.made, type=kind)
        except DecodeError as error:
            raise RecordError(f"the open pass has noted {self.unit} in another form ({error}): "
                              "throw it away with python -m lib record --again") from None


_Line = _Opened | _Begun | Done


class Journal:
    """The journal in a file, which need not exist yet.

    Raises
    ------
    RecordError
        If the file can't be read.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines = list(_read(file))

    @property
    def names(self) -> list[str] | None:
        """What the open pass is of; None where none is open."""
        return next((line.names for line in self._lines if isinstance(line, _Opened)), None)

    @property
    def chunks(self) -> dict[str, Chunk]:
        """Where and when each chunk was measured, by its name."""
        return {line.chunk: line.where for line in self._lines if isinstance(line, _Begun)}

    @property
    def headline(self) -> bool:
        """Whether the open pass is of the headline sizes alone."""
        return any(line.headline for line in self._lines if isinstance(line, _Opened))

    @property
    def whole(self) -> bool:
        """Whether the open pass measures what records have, too."""
        return any(line.whole for line in self._lines if isinstance(line, _Opened))

    @property
    def _done(self) -> list[Done]:
        return [line for line in self._lines if isinstance(line, Done)]

    def open(self, names: list[str], headline: bool = False, whole: bool = False) -> None:
        """Begin a pass."""
        self._append(_Opened(names=names, headline=headline, whole=whole))

    def begin(self, chunk: str, where: Chunk) -> None:
        """Note a chunk."""
        self._append(_Begun(chunk=chunk, where=where))

    def done(self, unit: str, mark: str, chunk: str, seconds: float, made: Any) -> None:
        """Note a unit, all of it, and how long it took."""
        self._append(Done(unit=unit, mark=mark, chunk=chunk, seconds=seconds,
                          made=Raw(json.encode(made))))

    def find(self, unit: str, mark: str) -> Done | None:
        """What was measured last of a unit, of this very source; None if nothing was."""
        return next((line for line in reversed(self._done)
                     if line.unit == unit and line.mark == mark), None)

    def made(self, beginning: str, kind: Any) -> Iterator[Any]:
        """What was measured of the units whose names begin so, which are all of one type."""
        for line in self._done:
            if line.unit.startswith(beginning):
                yield line.decoded(kind)

    def took(self) -> dict[str, float]:
        """Seconds of each unit that was measured."""
        return {line.unit: line.seconds for line in self._done}

    def close(self) -> None:
        """End the pass: all that it measured has been written."""
        self.file.unlink(missing_ok=True)
        self._lines = []

    def _append(self, line: _Line) -> None:
        text = json.encode(line)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab") as stream:
            # What was torn before must not make this line unreadable too.
            if stream.tell() and not _ends_whole(self.file):
                stream.write(b"\n")
            stream.write(text + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._lines.append(line)


def _ends_whole(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _read(file: Path) -> Iterator[_Line]:
    try:
        lines = file.read_bytes().split(b"\n") if file.exists() else []
    except OSError as error:
        raise RecordError(f"{file} can't be read ({error.strerror}): remove it") from None
    for line in filter(None, lines):
        kinds: tuple[type[_Line], ...] = (Done, _Begun, _Opened)
        for kind in kinds:
            try:
                yield json.decode(line, type=kind)
            except (DecodeError, RecursionError):
                continue  # of another kind; or cut off, and its unit is measured again
            break
