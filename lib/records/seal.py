"""How a record lies in a file: in one form, byte for byte, that ends with the digest of the rest.

What is read is what the digest is of: a file that says the same otherwise, with a key twice or a
default written out, is refused with the line.
"""

from __future__ import annotations

import hashlib
import json as standard_json
import math
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import DecodeError, Struct, ValidationError, convert, json, to_builtins

from lib.ptx.files import bytes_of
from lib.records.schema import Part

P = TypeVar("P", bound=Part)
# One encoder for all values: `dumps` would make one for each.
_flat = standard_json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class RecordError(Exception):
    """A results file can't be used. The message names the file and says what to do."""


class Unfit(Exception):
    """What is wrong with what a file holds, a clause that the file's name goes before."""


def sealed(record: Part) -> bytes:
    """What the file of a record holds; whether it can be right is not looked at."""
    return of_document(to_builtins(record))


def of_document(document: dict[str, Any]) -> bytes:
    """A record as JSON has it, with its digest behind all else."""
    body = _layout({key: value for key, value in document.items() if key != "digest"}, "", 0)
    digest = hashlib.sha256(body.encode()).hexdigest()[:32]
    return (body.removesuffix("\n}") + f',\n "digest": "{digest}"\n}}\n').encode()


def _layout(value: Any, indent: str, width: int = 80) -> str:
    """JSON that a diff can be read in: indented, but lists of numbers on one line each."""
    if type(value) is int or type(value) is float and math.isfinite(value):
        return repr(value)  # as the encoder does, which takes three times as long
    nested = isinstance(value, dict) or isinstance(value, list | tuple) and any(
        isinstance(item, dict) for item in value)
    if not nested or not value or len(json.encode(value)) < width:
        flat = _flat(value)
        if not nested or not value or len(flat) < width:
            return flat
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{_flat(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        rows = [_layout(item, deeper) for item in value]
        opened, closed = "[", "]"
    return f"{opened}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{closed}"


def parsed(data: bytes, kind: type[P]) -> P:
    """The record that a file holds.

    Raises Unfit if it is none of this kind, was edited since it was written, or says more than is
    read.
    """
    try:
        try:
            record = json.decode(data, type=kind)
        except ValidationError as error:
            raise Unfit(_misfit(json.decode(data), kind) or f"does not fit its schema: {error}"
                        ) from None
    except (DecodeError, RecursionError) as error:
        raise Unfit(f"is torn ({error})") from None
    text = sealed(record)
    if text == data:
        return record
    if b'\n "digest": ' not in data:
        raise Unfit("has no digest, so an edited figure would not be noticed")
    lines = list(zip_longest(data.split(b"\n"), text.split(b"\n"), fillvalue=None))
    place, (there, here) = next(
        (number, pair) for number, pair in enumerate(lines, 1) if pair[0] != pair[1])
    if here and here.startswith(b' "digest": '):
        raise Unfit("was edited since it was written: its digest is not that of its figures "
                    "(git checkout brings back the one that was committed)")
    raise Unfit(f"says more than is read of it, or says it otherwise: its line {place} is "
                f"{_shown(there)}, and where it is written it is {_shown(here)}")


def _shown(line: bytes | None) -> str:
    return "missing" if line is None else repr(line.decode(errors="replace").strip()[:60])


def _misfit(value: Any, kind: Any) -> str | None:
    """Say where a value is not of its type, or return None."""
    try:
        convert(value, kind)
    except ValidationError as error:
        # msgspec doesn't say under which key of a mapping: the first item that fails alone is it.
        hints = get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, Struct) else {}
        for field, hint in hints.items():
            inside = value.get(field) if isinstance(value, dict) else None
            if get_origin(hint) is Mapping and isinstance(inside, dict):
                for key, item in inside.items():
                    if fault := _misfit(item, get_args(hint)[1]):
                        return fault.replace(" at $", f" at $.{field}.{key}", 1)
        said, _, at = str(error).partition(" - at ")
        return f"does not fit its schema: {said} at {at.strip('`') or '$'}"
    except RecursionError:
        return "is nested too deep at $"
    return None


def read(file: Path, kind: type[P], again: str) -> P | None:
    """Read a record of which there is one, of no GPU's folder; None if there is none.

    Raises RecordError if it can't be read or can't be trusted; `again` is the command that makes it
    anew.
    """
    try:
        return parsed(bytes_of(file), kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{file} can't be read ({error.strerror}): remove it") from None
    except Unfit as fault:
        raise RecordError(f"{file} {fault}; {again}") from None
