"""Small records of each kind and schema, as `lib.measure.record` makes them."""

from __future__ import annotations

from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.records import store as records

NAIVE = CATALOGUE["01_naive"]
BOARD, CHUNK = "0123456789abcdef", "20261122T100000"
GPU = {"key": "H100", "name": "NVIDIA H100 80GB HBM3", "driver": "580.1", "sms": 132,
       "memory_bytes": 85017493504, "l2_bytes": 52428800}
SOFTWARE = {"cuda": "13.0", "nvrtc": "13.0", "cublas": "13.1.0", "cupy": "14.2.0",
            "numpy": "2.5.2", "python": "3.12.3"}
SENSED = {"sm_clock_mhz": 1755.0, "power_w": 650.0, "temperature_c": 55.0}


def row(size: int = 1024, seconds: float = 1e-3, cublas_seconds: float = 5e-4) -> dict[str, Any]:
    """A row of schema 1, of a cube."""
    flops = 2.0 * size**3
    return {
        "M": size, "N": size, "K": size, "dtype": "float32", "out": "float32", "b_layout": "row",
        "alpha": 1.0, "beta": 0.0, "seconds": seconds, "spread": 0.01,
        "tflops": flops / seconds / 1e12, "cublas_seconds": cublas_seconds,
        "cublas_spread": 0.01, "cublas_tflops": flops / cublas_seconds / 1e12,
        "ratio": cublas_seconds / seconds, "instantiation": "naive<32, true>", **SENSED,
        "rounds": 15,
    }


def newer(size: int = 1024, seconds: float = 1e-3, default: float = 6e-4, best: float = 5e-4
          ) -> dict[str, Any]:
    """A row of schema 2."""
    def side(time: float, **more: Any) -> dict[str, Any]:
        return {"seconds": time, "spread": 0.01, "tflops": 2.0 * size**3 / time / 1e12, **more}

    def alone(time: float) -> dict[str, Any]:
        return {**side(time), **SENSED, "throttle": []}

    return {
        **row(size, seconds, best), "series": [seconds] * 5, "spread_within": 0.01,
        "inputs": "uniform", "board": BOARD, "chunk": CHUNK, "throttle": [],
        "rival": {"default": side(default, kernels=["gemm_a"]),
                  "best": side(best, kernels=["gemm_b", "reduce"], tile="128x128", stages="64x4",
                               cluster="2x1x1", split_k=1, workspace_bytes=0, algorithm=66),
                  "candidates": 8},
        "turns": [{"milliseconds": 50.0, "seconds": seconds, "cublas_seconds": best,
                   "spread": 0.01, "sm_clock_mhz": 1700.0}],
        "energy": {"joules": 0.3, "cublas_joules": 0.3, "idle_w": 90.0, "seconds_each": 2.0,
                   "sm_clock_mhz": 1700.0, "cublas_sm_clock_mhz": 1700.0},
        "alone": alone(seconds), "cublas_alone": alone(best),
        "pair": {"variant": "swapped", "seconds": 2e-3, "spread": 0.01, "tflops": 1.0,
                 "cublas_seconds": best, "ratio": best / 2e-3},
        "trials": {"of": 8, "instantiation": "naive<float, float, float>", "seconds": seconds,
                   "spread": 0.01, "tflops": row(size, seconds, best)["tflops"],
                   "cublas_seconds": best, "cublas_spread": 0.01,
                   "cublas_tflops": row(size, seconds, best)["cublas_tflops"],
                   "ratio": best / seconds},
        "other_inputs": [{"inputs": "zeros", "seconds": seconds, "cublas_seconds": best,
                          "spread": 0.01, "sm_clock_mhz": 1980.0, "power_w": 400.0}],
    }


def timeline(source_hash: str) -> dict[str, Any]:
    """The marks of a warp."""
    return {
        "hash": source_hash, **dict.fromkeys("MNK", 2048), "dtype": "float32", "sm": 1, "warps": 8,
        "total_blocks": 64, "mark_cycles": 4.0, "seconds_with": 2e-3, "seconds_without": 1e-3,
        "events": ["start"], "blocks": [{"block": 0, "sm": 1, "warps": [[[0, 5]]]}],
        "overview": [[1, 0, 9]],
    }


def head(stem: str, schema: int = records.OLDER) -> dict[str, Any]:
    """What every record begins with."""
    return {
        "schema": schema, "kernel": stem, "gpu": dict(GPU), "software": dict(SOFTWARE),
        "date": "2026-11-22", "revision": "abc",
        "method": {"bench": "in turns", "clocks": "free", "counters": {"cycles": "sm__cycles.max"}},
    }


def record(stem: str = "01_naive", rows: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A version's record of schema 1, each variant with the same rows."""
    kernel = CATALOGUE[stem]
    return head(stem) | {"variants": {
        variant.name: {
            "hash": kernel.hash(variant), "arch": "sm_90a", "registers": 32, "shared_bytes": 0,
            "bench": [dict(one) for one in rows or [row()]],
            "counters": [{"M": 256, "N": 256, "K": 256, "metrics": {"cycles": 1000}}],
            "timeline": timeline(kernel.hash(variant, marks=True)),
        } for variant in kernel.variants
    }}


def newer_record(stem: str = "01_naive", rows: list[dict[str, Any]] | None = None
                 ) -> dict[str, Any]:
    """A version's record of schema 2."""
    made = record(stem, rows or [newer()]) | head(stem, records.SCHEMA)
    kernel = CATALOGUE[stem]
    for variant in kernel.variants:
        made["variants"][variant.name]["launch"] = records.launch_hash(kernel, variant)
    chunk = {"started": "2026-11-22T10:00:00Z", "board": BOARD, "driver": "580.1",
             "revision": "abc"}
    return made | {"chunks": {CHUNK: chunk}}


def calibrated(source_hash: str = "0" * 16) -> dict[str, Any]:
    """A record of the calibration set, of one pattern."""
    made = head(records.CALIBRATION) | {"arch": "sm_90a", "hash": source_hash, "metrics": ["m"]}
    return made | {"patterns": {"load<4>: all": {"offsets": [0] * 32, "counts": [1]}}}


def machine() -> dict[str, Any]:
    """A record of the machine's roofs."""
    values = {"copy": ("B/s", 3e12), "l2": ("B/s", 6e12), "shared": ("B/s", 3e13),
              "ffma": ("FLOP/s", 6e13), "mma_k8": ("FLOP/s", 4e14)}
    return head(records.MACHINE) | {"roofs": {
        name: {"value": value, "unit": unit, "method": "copy", "sm_clock_mhz": None}
        for name, (unit, value) in values.items()
    }}
