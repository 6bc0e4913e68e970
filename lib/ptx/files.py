"""How a file that somebody named is read, a regular one or not at all, and how one is written."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path


def bytes_of(file: str | Path, limit: int | None = None) -> bytes:
    """What a regular file holds.

    A pipe, where a reader would wait for a writer, and a device, which may never end, are refused;
    and so is what has more bytes than `limit`.

    Raises OSError naming the file.
    """
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
    with os.fdopen(handle, "rb") as opened:
        if limit is not None and status.st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", str(file))
        return opened.read()


def text_of(file: str | Path, errors: str = "strict") -> str:
    """The text of a regular file in UTF-8, its lines ended by ``\\n``.

    Raises OSError as of `bytes_of`; UnicodeDecodeError unless `errors` says otherwise.
    """
    text = bytes_of(file).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_whole(file: str | Path, content: bytes) -> None:
    """Write a file whole or not at all, whatever ends this process: beside its place, then renamed.

    Links are followed; what is no regular file, a pipe or a device, is written to as it is.

    Raises OSError naming the file.
    """
    place = Path(os.path.realpath(file))
    renamed = place.is_file() or not place.exists()
    # Of this thread alone: others may be writing the same file.
    part = place.with_name(f".new-{os.getpid()}-{threading.get_ident()}") if renamed else place
    try:
        with open(part, "wb") as stream:
            stream.write(content)
        if renamed:
            if place.exists():
                shutil.copymode(place, part)
            os.replace(part, place)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(file)) from error
    finally:
        if renamed:
            with suppress(OSError):
                part.unlink()
