"""The records in ``results/``: what was measured, on which machine, from which source.

One JSON file a kernel and GPU, ``results/<gpu>/<stem>.json``. A record carries the hash of each
instantiation it measured, so that a page can tell when the source has changed since.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lib.compiler.fingerprint import file_identity, fingerprint
from lib.kernels.catalogue import CATALOGUE
from lib.paths import CUDA, RESULTS

SCHEMA = 1
# Samples of a series that is long enough for clock, power and temperature to follow.
HOT_ROUNDS = 60

# Records that are not of a kernel of the catalogue: the rival, the machine's own roofs, what the
# emulator's counters are held against, which tile suits which shape, and series in which one thing
# is varied. Each has its measurements in a part of its own.
CUBLAS = "cublas"
MACHINE = "machine"
CALIBRATION = "calibration"
SEARCH = "search"
SWEEPS = "sweeps"
CALIBRATION_SOURCE = CUDA / "calibration.cu"
_PARTS = {MACHINE: "roofs", CALIBRATION: "patterns", SEARCH: "searches", SWEEPS: "sweeps"}

_ALWAYS = {"schema": int, "kernel": str, "gpu": dict, "software": dict, "date": str,
           "revision": str}
_VARIANT = {"hash": str, "arch": str, "bench": list}
_GPU = {"key": str, "name": str, "driver": str, "sms": int, "memory_bytes": int}


class RecordError(Exception):
    """A results file can't be used. The message names the file and says what to do."""


class NotRecorded(RecordError):
    """Nothing was recorded of what is asked for. The message names the command that records it."""


@dataclass(frozen=True)
class Row:
    """One benchmark: the keys of a row of ``python -m lib results --json``.

    `arch` is what the machine code is for, `ptx_arch` what its PTX is legal on.
    """

    kernel: str
    variant: str
    gpu: str
    arch: str
    ptx_arch: str
    dtype: str
    M: int
    N: int
    K: int
    seconds: float
    spread: float
    tflops: float
    cublas_tflops: float
    ratio: float
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
        If the file is torn or of another schema.
    """
    file = path(gpu_key, stem, root)
    return read(file) if file.exists() else None


def read(file: Path) -> dict[str, Any]:
    """Read and check one results file, or return what was read of it before: not to be changed.

    Raises
    ------
    RecordError
        If it is not JSON, of another schema, or lacks what every record has.
    """
    return _read(file, file_identity(file))


# A page asks for the same records dozens of times; to read them all takes a third of a second.
@lru_cache(maxsize=256)
def _read(file: Path, identity: str) -> dict[str, Any]:
    """What a file holds, until another one with another `identity` lies there."""
    again = f"delete it and record again: python -m lib record {file.stem}"
    try:
        record = json.loads(file.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"{file} is torn ({error}); {again}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else None
        raise RecordError(f"{file} has schema {found!r}, this code reads {SCHEMA}; {again}")
    for required, inside, where in ((_ALWAYS, record, ""), (_GPU, record.get("gpu"), "gpu.")):
        for key, kind in required.items():
            if not isinstance(inside, dict) or not isinstance(inside.get(key), kind):
                raise RecordError(f"{file} lacks {where}{key}; {again}")
    part = _PARTS.get(record["kernel"], "variants")
    if not isinstance(record.get(part), dict):
        raise RecordError(f"{file} lacks {part}; {again}")
    if record["kernel"] in CATALOGUE:
        for name, variant in record[part].items():
            for key, kind in _VARIANT.items():
                if not isinstance(variant, dict) or not isinstance(variant.get(key), kind):
                    raise RecordError(f"{file} lacks {part}.{name}.{key}; {again}")
    return record


def write(record: dict[str, Any], root: Path | None = None) -> Path:
    """Write a record whole or not at all: to a temporary file beside its place, then renamed."""
    file = path(record["gpu"]["key"], record["kernel"], root)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.stem}-", suffix=".json")
    try:
        with os.fdopen(handle, "w") as stream:
            stream.write(dumps(record))
        os.chmod(temporary, 0o644)
        os.replace(temporary, file)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return file


def dumps(record: dict[str, Any]) -> str:
    """JSON that a diff can be read in: indented, but lists of numbers on one line each."""
    return _layout(record, "") + "\n"


def _layout(value: Any, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    numbers_only = isinstance(value, list) and not any(isinstance(v, dict) for v in value)
    if not isinstance(value, dict | list) or not value or numbers_only or len(flat) < 80:
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        rows = [_layout(item, deeper) for item in value]
        opened, closed = "[", "]"
    return f"{opened}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{closed}"


def stale(record: dict[str, Any], variant: str) -> bool:
    """Whether the source of a recorded variant has changed since it was measured.

    That of its marks too, if it has a timeline.
    """
    kernel = CATALOGUE.get(record["kernel"])
    if record["kernel"] == SEARCH:
        return _searched_other_code(record, variant)
    if kernel is None:
        return False
    names = {v.name: v for v in kernel.variants}
    if variant not in names:
        return True
    kept = record["variants"][variant]
    marks = kept.get("timeline", {}).get("hash")
    return kernel.hash(names[variant]) != kept["hash"] or (
        marks is not None and kernel.hash(names[variant], marks=True) != marks
    )


def calibration_hash() -> str:
    """Fingerprint of the calibration set: a record of other kernels says nothing about these."""
    return fingerprint(CALIBRATION_SOURCE, "")


def _searched_other_code(record: dict[str, Any], tuned: str) -> bool:
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
    order = [*CATALOGUE, CUBLAS, MACHINE, CALIBRATION, SEARCH, SWEEPS]
    files = sorted(
        (root or RESULTS).glob("*/*.json"),
        key=lambda f: (f.parent.name, order.index(f.stem) if f.stem in order else len(order), f),
    )
    yield from (read(file) for file in files if not file.name.startswith("."))


def rows(root: Path | None = None) -> list[Row]:
    """Every benchmark of every kernel's record, of code for the GPU itself."""
    return [row for row in all_rows(root) if row.ptx_arch == row.arch]


def all_rows(root: Path | None = None) -> list[Row]:
    """Every benchmark of every kernel's record, of older architectures' PTX too."""
    return [
        Row(
            record["kernel"], name, record["gpu"]["key"], code["arch"], ptx_arch, bench["dtype"],
            bench["M"], bench["N"], bench["K"], bench["seconds"], bench["spread"],
            bench["tflops"], bench["cublas_tflops"], bench["ratio"], record["date"],
            stale(record, name),
        )
        for record in every(root)
        if record["kernel"] in CATALOGUE
        for name, variant in record["variants"].items()
        for ptx_arch, code in {variant["arch"]: variant, **variant.get("ptx", {})}.items()
        for bench in code["bench"]
    ]


def shape_of(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """M, N and K of a recorded row."""
    return row["M"], row["N"], row["K"]


def label(record: dict[str, Any]) -> str:
    """The evidence label of a figure drawn from a record."""
    return f"recorded: {record['gpu']['name'].removeprefix('NVIDIA ')}, {record['date']}"
