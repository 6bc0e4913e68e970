"""What a record says must hang together: its figures follow from each other, and none is too good.

A schema can't see that a speed was doubled, beside its time. These rules can: they need nothing but
the record, the data sheets and today's date.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any

from lib import gpus
from lib.gpus import GPUS
from lib.records import schema

# The first commit. Nothing was measured before.
BEGAN = datetime.date(2026, 11, 21)
# Of what follows from something else, both written with all their digits.
EXACT = 1e-9
_ROOFS = {"copy": "dram_bytes_per_s", "ffma": "fp32_flops"}


def faults(record: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a record of the right schema, a clause each; nothing if it is sound."""
    yield from _gpu(record)
    part = record.get(schema.PARTS.get(record["kernel"], "variants"), {})
    sheet = GPUS.get(record["gpu"]["key"])
    if record["kernel"] == schema.MACHINE:
        yield from _roofs(part, sheet)
    elif record["kernel"] == schema.SEARCH:
        for name, search in part.items():
            for row in search["rows"]:
                yield from _times(name, row, "FP32", sheet, [row["cublas_seconds"],
                                                            *row["seconds"].values()])
    elif record["kernel"] == schema.SWEEPS:
        for name, sweep in part.items():
            shape = dict(zip("MNK", sweep["shape"], strict=True))
            for row in sweep["rows"]:
                yield from _times(name, shape, "float32", sheet, [row["cublas_seconds"],
                                                                 *row["seconds"].values()])
    elif record["kernel"] == schema.RIVALS:
        for name, peer in part.items():
            for row in peer["rows"]:
                yield from _row(f"{name}, {_shape(row)}", row, sheet)
                yield from _chunk(f"{name}, {_shape(row)}", row, record)
    elif record["kernel"] != schema.CALIBRATION:
        quick = record["kernel"] == schema.QUICK
        for where, code in _codes(_flat(part) if quick else part):
            for row in code["bench"]:
                yield from _row(f"{where}, {_shape(row)}", row, sheet)
                yield from _chunk(f"{where}, {_shape(row)}", row, record)


def faults_of_date(record: Mapping[str, Any], today: datetime.date) -> Iterator[str]:
    """What is wrong with a record's dates, as seen from a day.

    A day is left for those who are ahead of us.
    """
    for what, text in (("date", record["date"]), ("timed", record.get("timed", {}).get("date")),
                       *((f"chunk {name}", chunk["started"][:10])
                         for name, chunk in record.get("chunks", {}).items())):
        if text is None:
            continue
        try:
            day = datetime.date.fromisoformat(text)
        except ValueError:
            yield f"its {what} {text} is no day"
            continue
        if day > today + datetime.timedelta(days=1):
            yield f"its {what} {text} is in the future"
        if day < BEGAN:
            yield f"its {what} {text} is before the project began, {BEGAN}"


def peak(sheet: gpus.Gpu, dtype: str) -> float:
    """What no product of these types can pass on a GPU, FLOP/s: its data sheet's peak."""
    return sheet.fp32_flops if dtype == "float32" else sheet.tensor_fp16_flops


def _gpu(record: Mapping[str, Any]) -> Iterator[str]:
    gpu = record["gpu"]
    if gpu["key"] != gpus.key_of(gpu["name"]):
        yield f"gpu.key is {gpu['key']} and gpu.name {gpu['name']}"
    sheet = GPUS.get(gpu["key"])
    if sheet and gpu["sms"] > sheet.sms:
        yield f"gpu.sms is {gpu['sms']}, and {sheet.name} has {sheet.sms}"


def _flat(versions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{stem} {name}": variant for stem, variants in versions.items()
            for name, variant in variants.items()}


def _codes(variants: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, variant in variants.items():
        yield name, variant
        for arch, older in variant.get("ptx", {}).items():
            yield f"{name} as {arch}", older


def _shape(row: Mapping[str, Any]) -> str:
    return "×".join(str(row[side]) for side in "MNK")


def _row(where: str, row: Mapping[str, Any], sheet: gpus.Gpu | None) -> Iterator[str]:
    flops = 2.0 * row["M"] * row["N"] * row["K"]
    rival = row.get("rival")
    sides = [("", row["seconds"], row["tflops"]),
             ("cublas_", row["cublas_seconds"], row["cublas_tflops"])]
    parts = [(name, row.get(name)) for name in ("alone", "cublas_alone", "ours", "trials")]
    if rival:
        parts += [(f"rival.{name}", rival[name]) for name in ("default", "best")]
    sides += [(f"{name}.", part["seconds"], part["tflops"]) for name, part in parts if part]
    for name, seconds, tflops in sides:
        if not math.isclose(tflops, flops / seconds / 1e12, rel_tol=EXACT):
            yield (f"{where}: {name}tflops is {tflops:g}, and {flops:g} FLOP in {seconds:g} s are "
                   f"{flops / seconds / 1e12:g}")
        if sheet and tflops * 1e12 > peak(sheet, row["dtype"]):
            yield (f"{where}: {name}tflops is {tflops:g}, above the {sheet.key}'s peak of "
                   f"{peak(sheet, row['dtype']) / 1e12:g}")
    for name, part in (("", row), ("trials.", row.get("trials"))):
        if part and not math.isclose(
                part["ratio"], part["cublas_seconds"] / part["seconds"], rel_tol=EXACT):
            yield (f"{where}: {name}ratio is {part['ratio']:g}, and the times' is "
                   f"{part['cublas_seconds'] / part['seconds']:g}")


def _chunk(where: str, row: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    if "chunk" not in row:
        return
    chunk = record["chunks"].get(row["chunk"])
    if chunk is None:
        yield f"{where}: its chunk {row['chunk']} is none of the record's"
    elif chunk["board"] != row["board"]:
        yield f"{where}: its board is {row['board']}, and its chunk's {chunk['board']}"


def _times(
    name: str, shape: Mapping[str, Any], dtype: str, sheet: gpus.Gpu | None, seconds: list[float]
) -> Iterator[str]:
    flops = 2.0 * shape["M"] * shape["N"] * shape["K"]
    # A search doesn't say its types: what tensor cores can't reach, nothing can.
    most = sheet and peak(sheet, dtype if dtype == "float32" else "float16")
    if most and flops / min(seconds) > most:
        yield (f"{name}, {_shape(shape)}: {min(seconds):g} s are {flops / min(seconds) / 1e12:g} "
               f"TFLOP/s, above the {sheet.key}'s peak of {most / 1e12:g}")


def _roofs(roofs: Mapping[str, Any], sheet: gpus.Gpu | None) -> Iterator[str]:
    for name, roof in roofs.items() if sheet else ():
        tensor = "mma" in name
        if name in _ROOFS or tensor:
            most = sheet.tensor_fp16_flops if tensor else getattr(sheet, _ROOFS[name])
            if roof["value"] > most:
                yield (f"roof {name} is {roof['value']:g} {roof['unit']}, above the {sheet.key}'s "
                       f"{most:g}")
