"""Speed against cuBLAS, measured or recorded, and what was recorded with it."""

from __future__ import annotations

from collections.abc import Sequence

from lib.kernels.spec import Variant
from lib.records import store as records
from lib.records.revision import DIRTY
from lib.records.schema import Benchmark
from lib.show import chart as style
from lib.show.columns import Column, listed, of_cublas
from lib.show.display import folded
from lib.show.markdown import markdown
from lib.show.version import Version

# The sizes of a chapter's table of speeds.
SPEED_SIZES = (1024, 2048, 4096)

# NumPy's names of types, for people.
_TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "float8_e4m3fn": "E4M3"}


def provenance() -> None:
    """Display where each record comes from, folded: GPU, driver, toolkit, date, revision, method.

    Records of drafts, of files that no commit has, are counted and not shown.
    """
    every = list(records.every())
    shown = [r for r in every if not r.revision.endswith(DIRTY)]
    head = ("record", "GPU", "driver", "CUDA", "cuBLAS", "date", "revision")
    rows = [(r.kernel, r.gpu.key, r.gpu.driver, r.software.cuda, r.software.cublas, r.date,
             r.revision) for r in shown]
    left_out = style.plural(len(every) - len(shown), "record")
    also = f"; {left_out} of a draft not shown" if len(every) > len(shown) else ""
    machines = "; ".join(f"{key}: {name}" for key, name in sorted({
        (r.gpu.key, r.gpu.name) for r in shown}))
    methods = dict.fromkeys(r.method.bench for r in shown if r.method.bench)
    clocks = dict.fromkeys(r.method.clocks for r in shown)
    folded("Each record: GPU, driver, toolkit, day, revision, method", markdown(head, rows),
           f"*recorded: the files in results/{also}; {machines}*",
           f"Timing: {'; '.join(methods)}.", f"Clocks: {'; '.join(clocks)}.")


def speed(version: Version, *variants: str) -> None:
    """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
    names = version.named(variants)
    chosen = [version.kernel.variant(name) for name in names]
    rows = [(variant.name, row) for variant in chosen for row in _benchmarks(version, variant)]
    listed([
        Column("variant", lambda one: one[0]), Column("M = N = K", lambda one: one[1].M, ","),
        Column("TFLOP/s", lambda one: one[1].tflops, ".2f"),
        Column("cuBLAS, same run", lambda one: one[1].cublas_tflops, ".2f"),
        Column(of_cublas(row for _, row in rows), lambda one: one[1].ratio, ".1%"),
        Column("spread", lambda one: 100 * one[1].spread, ".1g", "%"),
    ], rows, f"{version.timed_on(names)}; {' and '.join(dict.fromkeys(map(_types, chosen)))}, "
       "α = 1, β = 0")


def _benchmarks(version: Version, variant: Variant) -> Sequence[Benchmark]:
    if version.measures(variant):
        return [version.timed(variant, size) for size in SPEED_SIZES]
    return [row for row in version.reader.variant(variant.name).bench
            if row.M == row.N == row.K and row.M in SPEED_SIZES]


def _types(variant: Variant) -> str:
    """What a variant multiplies, and into what."""
    if variant.dtype == "float32":
        return "FP32, TF32 off"
    layout = ", B by columns" if variant.b_layout == "column" else ""
    scales = f", scales by {variant.scaling}" if variant.scaling else ""
    return f"A and B {_TYPES[variant.dtype]}, C {_TYPES[variant.out]}{layout}{scales}"
