"""The records in ``results/``: what was measured, on which machine, from which source.

One JSON file a kernel and GPU, ``results/<gpu>/<stem>.json``. A record carries the hash of each
instantiation it measured, so that a page can tell when the source has changed since.
"""

from __future__ import annotations

import hashlib
import json as standard_json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import DecodeError, Struct, ValidationError, convert, json

from lib.compiler.fingerprint import file_identity, fingerprint
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel, Variant
from lib.paths import CUDA, RESULTS
from lib.records.plausible import faults
from lib.records.schema import (
    CALIBRATION,
    CUBLAS,
    MACHINE,
    OLDER,
    QUICK,
    RIVALS,
    SCHEMA,
    SEARCH,
    SWEEPS,
    type_of,
)

# Samples of a series that is long enough for clock, power and temperature to follow.
HOT_ROUNDS = 60

CALIBRATION_SOURCE = CUDA / "calibration.cu"


class RecordError(Exception):
    """A results file can't be used. The message names the file and says what to do."""


class NotRecorded(RecordError):
    """Nothing was recorded of what is asked for. The message names the command that records it."""


@dataclass(frozen=True)
class Row:
    """One benchmark: the keys of a row of ``python -m lib results --json``.

    `arch` is what the machine code is for, `ptx_arch` what its PTX is legal on; `rival` is
    ``"best"`` where cuBLAS is the fastest that it has, ``"default"`` where it is what its own
    heuristic takes.
    """

    kernel: str
    variant: str
    gpu: str
    arch: str
    ptx_arch: str
    dtype: str
    out: str
    b_layout: str
    M: int
    N: int
    K: int
    seconds: float
    spread: float
    tflops: float
    cublas_tflops: float
    ratio: float
    rival: str
    date: str
    stale: bool


def path(gpu_key: str, stem: str, root: Path | None = None) -> Path:
    """Where the record of a kernel on a GPU is kept."""
    return (root or RESULTS) / gpu_key.lower() / f"{stem}.json"


def load(gpu_key: str, stem: str, root: Path | None = None) -> dict[str, Any] | None:
    """Read one record; not to be changed, for whoever asks next gets the same one.

    Returns
    -------
    dict or None
        None if nothing was recorded.

    Raises
    ------
    RecordError
        As `read` does.
    """
    file = path(gpu_key, stem, root)
    return read(file) if file.exists() else None


def read(file: Path) -> dict[str, Any]:
    """Read and check one results file, or return what was read of it before: not to be changed.

    Raises
    ------
    RecordError
        If it can't be read, is not JSON, not of a schema that this code reads, edited since it was
        written, or says what can't be.
    """
    try:
        return _read(file, file_identity(file))
    except OSError as error:
        raise RecordError(
            f"{file} can't be read ({error.strerror}): only the file that python -m lib record "
            f"{file.stem} writes may lie there"
        ) from None


# A page asks for the same records dozens of times; to read them all takes a third of a second.
@lru_cache(maxsize=256)
def _read(file: Path, identity: str) -> dict[str, Any]:
    """What a file holds, until another one with another `identity` lies there."""
    again = f"delete it and record again: python -m lib record {file.stem}"
    try:
        record = json.decode(file.read_bytes())
    except (DecodeError, RecursionError) as error:
        raise RecordError(f"{file} is torn ({error}); {again}") from None
    if fault := _fault(record) or _fault_of_place(record, file):
        raise RecordError(f"{file} {fault}; {again}")
    return record


def _fault(record: Any) -> str | None:
    """Say what is wrong with what a file holds, or return None."""
    found = record.get("schema") if isinstance(record, dict) else None
    if found not in (OLDER, SCHEMA) or isinstance(found, bool):
        return f"has schema {found!r}, this code reads {OLDER} and {SCHEMA}"
    kind = type_of(str(record.get("kernel")), found)
    if fault := _misfit(record, kind):
        return fault
    if "digest" in record and record["digest"] != digest(record):
        return ("was edited since it was written: its digest is not that of its figures "
                "(git checkout brings back the one that was committed)")
    return next(faults(record), None)


def _misfit(value: Any, kind: Any) -> str | None:
    """Say where a value is not of its type, or return None."""
    try:
        convert(value, kind)
    except ValidationError as error:
        # msgspec doesn't say under which key of a dict: the first item that fails alone is it.
        hints = get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, Struct) else {}
        for field, hint in hints.items():
            inside = value.get(field) if isinstance(value, dict) else None
            if get_origin(hint) is dict and isinstance(inside, dict):
                for key, item in inside.items():
                    if fault := _misfit(item, get_args(hint)[1]):
                        return fault.replace(" at $", f" at $.{field}.{key}", 1)
        said, _, at = str(error).partition(" - at ")
        return f"does not fit its schema: {said} at {at.strip('`') or '$'}"
    except RecursionError:
        return "is nested too deep at $"
    return None


def _fault_of_place(record: Mapping[str, Any], file: Path) -> str | None:
    """Say that a record lies where another should, or return None."""
    key, stem = record["gpu"]["key"], record["kernel"]
    if (file.parent.name, file.stem) != (key.lower(), stem):
        return f"is of {stem} on {key}, and belongs in {path(key, stem, file.parent.parent)}"
    return None


def digest(record: Mapping[str, Any]) -> str:
    """What is noticed of a figure edited by hand: a SHA-256 over all of a record but itself."""
    kept = {key: value for key, value in record.items() if key != "digest"}
    return hashlib.sha256(json.encode(kept, order="sorted")).hexdigest()[:32]


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the digest of what it holds.

    Raises
    ------
    RecordError
        If it doesn't fit its schema, or says what can't be.
    """
    # As it will be read: what JSON can't tell apart must not change the digest.
    made = json.decode(json.encode(record))
    made = {key: value for key, value in made.items() if key != "digest"}
    made["digest"] = digest(made)
    if fault := _fault(made):
        raise RecordError(f"the record of {made.get('kernel')} {fault}: it was not written")
    return made


def write(record: Mapping[str, Any], root: Path | None = None) -> Path:
    """Write a record, sealed, whole or not at all: to a file beside its place, then renamed.

    Raises
    ------
    RecordError
        As `sealed` does.
    """
    made = sealed(record)
    file = path(made["gpu"]["key"], made["kernel"], root)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.stem}-", suffix=".json")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(dumps(made))
        os.chmod(temporary, 0o644)
        os.replace(temporary, file)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return file


def dumps(record: Mapping[str, Any]) -> str:
    """JSON that a diff can be read in: indented, but lists of numbers on one line each."""
    return _layout(record, "") + "\n"


def _layout(value: Any, indent: str) -> str:
    flat = _text(value)
    numbers_only = isinstance(value, list) and not any(isinstance(v, dict) for v in value)
    if not isinstance(value, dict | list) or not value or numbers_only or len(flat) < 80:
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{_text(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        rows = [_layout(item, deeper) for item in value]
        opened, closed = "[", "]"
    return f"{opened}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{closed}"


def _text(value: Any) -> str:
    """JSON on one line, a space behind each comma and colon."""
    return standard_json.dumps(value, ensure_ascii=False, allow_nan=False)


def plain(text: str) -> str:
    """A text of some program's as a record may hold it: on one line, without markup."""
    return " ".join(re.sub(r"[][<>&|`*\\\x00-\x1f]", " ", text).split())[:900]


def stale(record: Mapping[str, Any], variant: str) -> bool:
    """Whether the source of a recorded variant has changed since it was measured.

    That of its marks too, if it has a timeline; and what it is launched with, where the record says
    (schema 1 doesn't).
    """
    if record["kernel"] == SEARCH:
        return _searched_other_code(record, variant)
    kernel = CATALOGUE.get(record["kernel"])
    return kernel is not None and changed(kernel, variant, record["variants"][variant])


def changed(kernel: Kernel, variant: str, kept: Mapping[str, Any]) -> bool:
    """Whether what was recorded of a variant is of other source or another launch than today's."""
    names = {v.name: v for v in kernel.measured}
    if variant not in names:
        return True
    marks = kept.get("timeline", {}).get("hash")
    launch = kept.get("launch")
    return kernel.hash(names[variant]) != kept["hash"] or (
        marks is not None and kernel.hash(names[variant], marks=True) != marks
    ) or (launch is not None and launch_hash(kernel, names[variant]) != launch)


def launch_hash(kernel: Kernel, variant: Variant) -> str:
    """Fingerprint of what the catalogue launches a variant with, and each of its candidates.

    The number of a persistent kernel's blocks, say, stands in no source.
    """
    launched = [variant, *(kernel.variant(name) for name in variant.candidates)]
    data = [(one.tile, one.block, one.step, one.shared_bytes, one.vectors, one.grid, one.maps)
            for one in launched]
    return hashlib.sha256(repr(data).encode()).hexdigest()[:16]


def calibration_hash() -> str:
    """Fingerprint of the calibration set: a record of other kernels says nothing about these."""
    return fingerprint(CALIBRATION_SOURCE, "")


def _searched_other_code(record: Mapping[str, Any], tuned: str) -> bool:
    """Whether the source of a candidate of ``stem/variant`` has changed since the search."""
    stem, _, name = tuned.partition("/")
    kernel = CATALOGUE.get(stem)
    return kernel is None or record["searches"][tuned]["hashes"] != {
        candidate: kernel.hash(kernel.variant(candidate))
        for variant in kernel.variants if variant.name == name
        for candidate in variant.candidates
    }


def every(root: Path | None = None) -> Iterator[dict[str, Any]]:
    """All records, GPU by GPU, kernels in the catalogue's order, then cuBLAS and the machine's."""
    order = [*CATALOGUE, CUBLAS, RIVALS, MACHINE, CALIBRATION, SEARCH, SWEEPS, QUICK]
    files = sorted(
        (root or RESULTS).glob("*/*.json"),
        key=lambda f: (f.parent.name, order.index(f.stem) if f.stem in order else len(order), f),
    )
    yield from (read(file) for file in files if not file.name.startswith("."))


def rows(root: Path | None = None) -> list[Row]:
    """Every benchmark of every kernel's record, of code for the GPU itself."""
    return [row for row in all_rows(root) if row.ptx_arch == row.arch]


def all_rows(root: Path | None = None) -> list[Row]:
    """Every benchmark of every kernel's record, of older architectures' PTX too.

    A reader's quick record counts for the versions of which its GPU has no whole one.
    """
    kept = list(every(root))
    whole = {(record["kernel"], record["gpu"]["key"]) for record in kept}
    return [
        Row(
            kernel.stem, name, record["gpu"]["key"], code["arch"], ptx_arch, bench["dtype"],
            bench["out"], bench["b_layout"], bench["M"], bench["N"], bench["K"], bench["seconds"],
            bench["spread"], bench["tflops"], bench["cublas_tflops"], bench["ratio"], rival(bench),
            record["date"], changed(kernel, name, variant),
        )
        for record in kept
        for kernel, variants in _versions(record)
        if record["kernel"] != QUICK or (kernel.stem, record["gpu"]["key"]) not in whole
        for name, variant in variants.items()
        for ptx_arch, code in {variant["arch"]: variant, **variant.get("ptx", {})}.items()
        for bench in code["bench"]
    ]


def _versions(record: Mapping[str, Any]) -> Iterator[tuple[Kernel, Mapping[str, Any]]]:
    """The catalogue's kernels that a record has benchmarks of, and their variants."""
    if record["kernel"] == QUICK:
        for stem, variants in record["versions"].items():
            if stem in CATALOGUE:
                yield CATALOGUE[stem], variants
    elif record["kernel"] in CATALOGUE:
        yield CATALOGUE[record["kernel"]], record["variants"]


def rival(row: Mapping[str, Any]) -> str:
    """Which cuBLAS a row's ratio is to: the ``"best"`` that it has, or its ``"default"``."""
    return "best" if row.get("rival", {}).get("best") else "default"


def shape_of(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """M, N and K of a recorded row."""
    return row["M"], row["N"], row["K"]


def span(dates: Iterable[str]) -> str:
    """Days as a page tells them, the first and the last: ``"2026-11-22 to 23"``.

    Parameters
    ----------
    dates : iterable of str
        ``"2026-11-22"``, one at least.
    """
    first, last = min(dates := list(dates)), max(dates)
    if first == last:
        return first
    same = 8 if first[:8] == last[:8] else 5 if first[:5] == last[:5] else 0
    return f"{first} to {last[same:]}"


def label(record: Mapping[str, Any]) -> str:
    """The evidence label of a figure drawn from a record."""
    return f"recorded: {record['gpu']['name'].removeprefix('NVIDIA ')}, {record['date']}"
