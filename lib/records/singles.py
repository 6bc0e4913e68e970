"""Records of which there is one, of no GPU's folder: written whole, with the digest of the rest."""

from __future__ import annotations

import json as standard_json
import os
import tempfile
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, ValidationError, json, structs

from lib.paths import bytes_of, naming
from lib.records.schema import Part
from lib.records.store import RecordError, digest


class Single(Part, kw_only=True, frozen=True):
    """What such a record has beside its own fields: the digest is empty until it is written."""

    digest: str = ""


S = TypeVar("S", bound=Single)


def read(path: Path, kind: type[S], again: str) -> S | None:
    """Read and check such a record.

    Parameters
    ----------
    path : Path
    kind : type
    again : str
        The command that makes it anew.

    Returns
    -------
    kind or None
        None if nothing is recorded.

    Raises
    ------
    RecordError
        If it can't be read, is of another form, or was edited since it was written.
    """
    try:
        text = bytes_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path} can't be read ({error.strerror}): remove it") from None
    try:
        found = json.decode(text, type=kind)
        document = json.decode(text)
    except ValidationError as error:
        raise RecordError(f"{path} does not fit its schema: {error}; {again}") from None
    except (DecodeError, RecursionError) as error:
        raise RecordError(f"{path} is torn ({error}); {again}") from None
    if not found.digest:
        raise RecordError(f"{path} has no digest, so an edited figure would not be noticed; "
                          f"{again}")
    if found.digest != digest(document):
        raise RecordError(f"{path} was edited since it was written: its digest is not that of its "
                          f"figures (git checkout brings back the one that was committed); {again}")
    return found


def write(path: Path, record: Single) -> None:
    """Write such a record, sealed, whole or not at all."""
    document = json.decode(json.encode(structs.replace(record, digest="")))
    document["digest"] = digest(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".json")
    try:
        with naming(path), os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(standard_json.dumps(document, indent=1, sort_keys=True) + "\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
