"""Small records of each kind as JSON has them, in the order of `lib.measure.record`'s."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert, structs

from lib.kernels.catalogue import CATALOGUE
from lib.records import schema, seal
from lib.records import store as records
from lib.records.launched import launch_hash
from lib.records.schema import Block, Row, Timeline

NAIVE = CATALOGUE["01_naive"]
BOARD, CHUNK = "0123456789abcdef", "20261122T100000-0123"
GPU = {"key": "H100", "name": "NVIDIA H100 80GB HBM3", "driver": "580.1", "sms": 132,
       "memory_bytes": 85017493504, "l2_bytes": 52428800}
SOFTWARE = {"cuda": "13.0", "nvrtc": "13.0", "cublas": "13.1.0", "cupy": "14.2.0",
            "numpy": "2.5.2", "python": "3.12.3"}
MHZ = 1755.0


def clock(seconds: float, mhz: float = MHZ, series: int = 1) -> dict[str, Any]:
    """What is said of the clock of launches that took so long."""
    return {"mhz": mhz, "cycles": mhz * 1e6 * seconds, "series_mhz": [mhz] * series, "sms": 132,
            "tick_ns": 32.0, "error": 1e-5, "outside": 1e-3}


def row(size: int = 1024, seconds: float = 1e-3, default: float = 6e-4, best: float = 5e-4
        ) -> dict[str, Any]:
    """A row of a cube, with all that a row may have."""
    flops = 2.0 * size**3

    def side(time: float, **more: Any) -> dict[str, Any]:
        return {"seconds": time, "spread": 0.01, "tflops": flops / time / 1e12,
                "clock": clock(time), **more}

    def alone(time: float) -> dict[str, Any]:
        return {**side(time), "temperature_c": 55.0, "throttle": []}

    def steady(time: float) -> dict[str, Any]:
        return {**side(time), "spread": 0.0, "series": [time] * 2, "launches": 4000,
                "joules": 600 * time, "joules_error": 0.005, "clock": clock(time, 1400.0, 2)}

    both = {"clock": clock(seconds), "cublas_clock": clock(best)}

    turns = {
        "seconds": seconds, "spread": 0.0, "tflops": flops / seconds / 1e12,
        "cublas_seconds": best, "cublas_spread": 0.01, "cublas_tflops": flops / best / 1e12,
        "ratio": best / seconds,
    }
    return {
        "M": size, "N": size, "K": size, "dtype": "float32", "out": "float32", "b_layout": "row",
        "alpha": 1.0, "beta": 0.0, **turns, "instantiation": "naive<32, true>",
        "clock": clock(seconds, series=5), "cublas_clock": clock(best, series=5),
        "temperature_c": 55.0, "throttle": [], "rounds": 20,
        "series": [seconds] * 5, "spread_within": 0.01,
        "inputs": "uniform",
        "rival": {"default": side(default, kernels=["gemm_a"]),
                  "best": side(best, place=0, algorithm=66, tile="128x128", stages="64x4",
                               cluster="2x1x1", split_k=1, workspace_bytes=0,
                               kernels=["gemm_b", "reduce"]),
                  "candidates": 8},
        "board": BOARD, "alone": alone(seconds), "cublas_alone": alone(best),
        "turns": [{"milliseconds": 50.0, "seconds": seconds, "cublas_seconds": best,
                   "spread": 0.01, **both}],
        "other_inputs": [{"inputs": "zeros", "seconds": seconds, "cublas_seconds": best,
                          "spread": 0.01, **both}],
        "trials": {"of": 8, "instantiation": "naive<float, float, float>", **turns, **both},
        "packing": {"seconds": seconds / 4, "spread": 0.01},
        "sustained": {"own": steady(seconds), "cublas": steady(best), "idle_w": 90.0,
                      "seconds_each": 2.0, "throttle": ["power cap"]},
        "pair": {"variant": "swapped", "seconds": 2 * seconds, "spread": 0.01,
                 "tflops": flops / (2 * seconds) / 1e12, "cublas_seconds": best,
                 "ratio": best / (2 * seconds), "clock": clock(2 * seconds)},
        "chunk": CHUNK,
    }


def plain(made: dict[str, Any]) -> dict[str, Any]:
    """A row without what only some rows have."""
    some = ("alone", "cublas_alone", "turns", "other_inputs", "trials", "packing", "sustained",
            "pair")
    return {key: value for key, value in made.items() if key not in some}


def code() -> dict[str, Any]:
    """What a variant says of its machine code."""
    return {"arch": "sm_90a", "registers": 32, "shared_bytes": 0}


def spreading(made: dict[str, Any], spread: float) -> dict[str, Any]:
    """A row whose series lie so far apart, at one clock."""
    series = [made["seconds"] * (1 + side * spread) for side in (-1, -1, 0, 1, 1)]
    return {**made, "series": series, "spread": spread}


def by_default(made: dict[str, Any]) -> dict[str, Any]:
    """A row that knows no more of cuBLAS than its default, which it takes turns with."""
    default = {**made["rival"]["default"],
               **{key: made[f"cublas_{key}"] for key in ("seconds", "tflops")},
               "clock": clock(made["cublas_seconds"])}
    return {**made, "rival": {"default": default, "best": None, "candidates": 0}}


def timeline(source_hash: str) -> dict[str, Any]:
    """The marks of a warp."""
    return {
        "hash": source_hash, **dict.fromkeys("MNK", 2048), "dtype": "float32", "sm": 1, "warps": 8,
        "total_blocks": 64, "mark_cycles": 4.0, "seconds_with": 2e-3, "seconds_without": 1e-3,
        "events": ["start"], "blocks": [{"block": 0, "sm": 1, "warps": [[[0, 5]]]}],
        "overview": [[1, 0, 9]],
    }


def marks(given: dict[str, Any]) -> Timeline:
    """A timeline of marks that are given; what is not said is made up."""
    blocks = [Block(**{"sm": 0, **one}) for one in given["blocks"]]
    return Timeline(**{**dict.fromkeys("MNK", 2048), "dtype": "float32", "hash": "0" * 16,
                       "sm": 0, **given, "blocks": blocks})


def head(stem: str) -> dict[str, Any]:
    """What every record begins with."""
    return {
        "schema": schema.SCHEMA, "kernel": stem, "gpu": dict(GPU), "software": dict(SOFTWARE),
        "date": "2026-11-22", "revision": "abc",
        "method": {"bench": "in turns", "clocks": "free", "counters": {"cycles": "sm__cycles.max"}},
    }


def chunks() -> dict[str, Any]:
    """The chunk that every row is of."""
    return {CHUNK: {"started": "2026-11-22T10:00:00Z", "board": BOARD, "driver": "580.1",
                    "revision": "abc", "others": 0}}


def record(stem: str = "01_naive", rows: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A version's record, each variant with the same rows."""
    kernel = CATALOGUE[stem]
    return head(stem) | {"variants": {
        variant.name: {
            "bench": [{**copy.deepcopy(one), "instantiation": kernel.expression(variant)}
                      for one in rows or [row()]],
            "counters": [{"M": 256, "N": 256, "K": 256, "metrics": {"cycles": 1000}}],
            "hash": kernel.hash(variant), "launch": launch_hash(kernel, variant),
            **code(),
            "timeline": timeline(kernel.hash(variant, marks=True)),
        } for variant in kernel.variants
    }, "chunks": chunks()}


def of_shape(made: dict[str, Any], flops: float) -> dict[str, Any]:
    """A row whose product is so many times that of another: every speed in it with the same times.
    """
    def scaled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: one * flops if key in ("tflops", "cublas_tflops") else scaled(one)
                    for key, one in value.items()}
        return value

    return scaled(made)


def older_code(variant: dict[str, Any]) -> dict[str, Any]:
    """What a variant has of an older architecture's PTX."""
    return {key: variant[key] for key in ("bench", "counters", "arch", "registers",
                                          "shared_bytes")}


def calibrated(source_hash: str = "0" * 16) -> dict[str, Any]:
    """A record of the calibration set, of one pattern."""
    made = head(schema.CALIBRATION) | {"arch": "sm_90a", "hash": source_hash, "metrics": ["m"]}
    return made | {"patterns": {"load<4>: all": {"offsets": [0] * 32, "counts": [1]}}}


def machine() -> dict[str, Any]:
    """A record of the machine's roofs."""
    values = {"copy": ("B/s", 3e12), "l2": ("B/s", 6e12), "shared": ("B/s", 3e13),
              "ffma": ("FLOP/s", 6e13), "mma_k8": ("FLOP/s", 4e14)}
    return head(schema.MACHINE) | {"roofs": {
        name: {"value": value, "unit": unit, "method": "copy"}
        for name, (unit, value) in values.items()
    }}


def parsed(document: dict[str, Any]) -> Any:
    """The record that a document is; whether it can be is not looked at."""
    return convert(document, schema.type_of(document["kernel"]))


def parsed_row(made: dict[str, Any] | None = None) -> Row:
    """The row that a document is."""
    return convert(made or row(), Row)


def let_bench(version: Any, variant: str, rows: Iterable[Row]) -> None:
    """Give a version whose record is made up other rows of a variant."""
    record = version.record
    version.reader.__dict__["record"] = structs.replace(record, variants={
        **record.variants, variant: structs.replace(record.variants[variant], bench=tuple(rows))})


def write(document: dict[str, Any], root: Path | None = None) -> Path:
    """Write a record as measuring does."""
    return records.write(parsed(document), root)


def sealed(document: dict[str, Any]) -> Any:
    """The record that is read of a document's file."""
    return seal.parsed(seal.sealed(parsed(document)), schema.type_of(document["kernel"]))


def put(document: dict[str, Any], root: Path | None = None) -> Path:
    """Lay a file in a record's place that no command has written, with the digest of its figures.
    """
    file = records.path(document["gpu"]["key"], document["kernel"], root)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        file.write_bytes(seal.sealed(parsed(document)))
    except ValidationError:
        file.write_bytes(seal.of_document(document))
    return file


def document_of(record: Any) -> dict[str, Any]:
    """A record as JSON has it."""
    return json.loads(seal.sealed(record))
