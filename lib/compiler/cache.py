"""What was compiled before, kept on disk: chapters, book and tests compile the same kernels.

A file is named by a digest of all that its content depends on, so it can't be out of date; what
is no longer asked for is removed when the folder has grown too large. `make clean` removes it all.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from lib.ptx.files import bytes_of, write_whole


def _folder(package: str) -> Path:
    """In this repository beside what else is built; where it is installed, the user's cache."""
    if package == "lib":
        return Path(__file__).resolve().parents[2] / "_build" / "kept"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / package


FOLDER = _folder(__name__.partition(".")[0])
LIMIT_BYTES = 1 << 28
SEAL = hashlib.sha256().digest_size
# Of the files, in the order of their last use, so many stay when the folder is over its limit.
STAYS = 0.75
# After so much of the limit a process looks whether it is over: thousands of files lie there.
LOOKS_AFTER = 1 / 64
_unseen = LIMIT_BYTES  # bytes written since this process last looked: before the first, others'


def digest(parts: Iterable[str | bytes]) -> str:
    """Digest of parts: no two lists of parts have the same, wherever one part ends."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        made.update(f"{len(data)}:".encode() + data)
    return made.hexdigest()


def cached(parts: Iterable[str | bytes], make: Callable[[], bytes]) -> bytes:
    """Return what `make` made of the same parts before, or let it make that now.

    `parts`: all that the result depends on. `make`: called at most once. What it raises is not
    kept.
    """
    path = _path(parts)
    try:
        sealed = zlib.decompress(bytes_of(path))
        content = sealed[SEAL:]
        if sealed[:SEAL] == _seal(content):
            with suppress(OSError):  # a folder that can only be read serves all the same
                os.utime(path)
            return content
    except (OSError, zlib.error):
        pass
    # Not there, removed by another process just now, torn when the machine stopped, or not of here.
    content = make()
    try:
        _write(path, zlib.compress(_seal(content) + content, 1))
    except OSError as error:
        _say_unwritable(error.strerror)
    return content


def _path(parts: Iterable[str | bytes]) -> Path:
    """Where something made of these parts is kept: sealed, which what was kept before is not."""
    return FOLDER / digest(("sealed", *parts))


def _seal(content: bytes) -> bytes:
    """What stands before a content that was written whole."""
    return hashlib.sha256(content).digest()


def is_cached(parts: Iterable[str | bytes]) -> bool:
    """Whether something made of these parts is kept."""
    return _path(parts).is_file()


@lru_cache
def _say_unwritable(why: str) -> None:
    """Say once that a folder can't be written to, which costs time and changes no result."""
    if sys.stderr is not None:  # print would take standard output in its place
        print(f"note: nothing that is compiled can be kept in {FOLDER}: {why}", file=sys.stderr)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or not path.is_file():  # a pipe, say, which would be written to
        path.unlink(missing_ok=True)
    write_whole(path, content)
    global _unseen
    _unseen += len(content)
    if _unseen > LOOKS_AFTER * LIMIT_BYTES:
        _unseen = 0
        _trim(path.parent)


def _trim(folder: Path) -> None:
    """Remove the files that nobody has asked for the longest, if there is too much."""
    files = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # another process renamed or removed it just now
            found = entry.stat()
            files.append((found.st_mtime_ns, found.st_size, entry.path))
    if sum(size for _, size, _ in files) <= LIMIT_BYTES:
        return
    room = STAYS * LIMIT_BYTES
    for _, size, path in sorted(files, reverse=True):
        room -= size
        if room < 0:
            Path(path).unlink(missing_ok=True)
