"""Records of the schema before this one, brought to it.

Schema 2 had NVML's clock and power beside a row's speed, medians of readings every 20 ms. They were
not those of the launches that were timed, which lasted 5 ms in turns with others: 867 TFLOP/s "at
1,575 MHz" are more than an H100's pipe does at that clock. So they are dropped, and nothing takes
their place until the row is measured again. All else is kept as it was: times, counters, joules of
a product, hashes, dates. ``python -m lib results --migrate`` does it, once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import DecodeError, convert, json

from lib.paths import RESULTS, bytes_of
from lib.records import store
from lib.records.schema import SCHEMA, AnyRecord, type_of

BEFORE = 2
# What readings of NVML were called, in rows and in parts of rows, roofs and sweeps.
DROPPED = frozenset({"sm_clock_mhz", "cublas_sm_clock_mhz", "power_w"})


def migrated(document: dict[str, Any]) -> AnyRecord:
    """A record of schema 2, as JSON has it, as one of this schema that is not sealed.

    Raises
    ------
    RecordError
        If it is of another schema, or was edited since it was written: what can't be trusted is
        not sealed anew.
    """
    if document.get("schema") != BEFORE:
        raise store.RecordError(f"it has schema {document.get('schema')!r}, and only {BEFORE} is "
                                f"brought to {SCHEMA}")
    if document.get("digest") != store.digest(document):
        raise store.RecordError("it was edited since it was written: its digest is not that of its "
                                "figures")
    document_now = _without(document) | {"schema": SCHEMA}
    del document_now["digest"]
    made: AnyRecord = convert(document_now, type_of(str(document.get("kernel"))))
    return made


def _without(value: Any) -> Any:
    """A value without NVML's readings, at any depth."""
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in DROPPED}
    return [_without(one) for one in value] if isinstance(value, list) else value


def migrate(root: Path | None = None) -> list[Path]:
    """Bring each record of schema 2 below a folder of results to this schema, in its place.

    Returns
    -------
    list of Path
        The files that were written; those of this schema are left as they are.

    Raises
    ------
    RecordError
        If a record can't be brought over; the message names the file. Those before it are.
    """
    written = []
    for file in sorted((root or RESULTS).glob("*/*.json")):
        try:
            document = json.decode(bytes_of(file))
        except DecodeError as error:
            raise store.RecordError(f"{file} is torn ({error})") from None
        if isinstance(document, dict) and document.get("schema") == BEFORE:
            try:
                made = migrated(document)
            except (store.RecordError, ValueError) as error:
                raise store.RecordError(f"{file} can't be migrated: {error}") from None
            written.append(store.write(made, file.parent.parent))
    return written
