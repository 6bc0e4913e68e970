"""Speed against cuBLAS, measured or recorded, and what was recorded with it."""

from __future__ import annotations

from collections.abc import Sequence

from lib.kernels.spec import Variant
from lib.plotting import style
from lib.plotting.columns import Column, listed
from lib.plotting.display import note, once_recorded, table
from lib.plotting.markdown import markdown, reading, without_unread
from lib.records import store as records
from lib.records.revision import DIRTY
from lib.records.schema import Benchmark, Clock, Side, Steady, mhz
from lib.topics.columns import of_cublas
from lib.topics.version import Version

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
    words = "\n\n".join([
        f"{markdown(head, rows)}\n\n*recorded: the files in results/{also}; {machines}*",
        f"Timing: {'; '.join(methods)}.", f"Clocks: {'; '.join(clocks)}."])
    note("<details>\n<summary>Each record: GPU, driver, toolkit, day, revision, method"
         f"</summary>\n\n{words}\n\n</details>")


def speed(version: Version, *variants: str) -> None:
    """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
    names = variants or tuple(v.name for v in version.kernel.variants)
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


@once_recorded()
def alone(version: Version, *variants: str, above: Sequence[str] = (), size: int = 4096) -> None:
    """Display recorded speeds in turns, alone and sustained, a row each, with clock and power.

    In turns of 5 ms both have the chip by half; alone the kernel has all of it, for tenths of a
    second; sustained, for two seconds. Clock and cycles are those of the launches of each row; of
    power there is only that of a sustained run, by NVML's energy counter.
    """
    rows = []
    for one in version.rows(variants, above):
        row = one.page.recorded(size, one.variant.name)
        rows.append((one.name, "in turns", f"{row.ratio:.3f}", *_side(row)))
        if row.alone:
            other = row.cublas_alone
            share = other.seconds / row.alone.seconds if other else None
            rows.append((one.name, "alone", reading(share, ".3f"), *_side(row.alone)))
        if held := row.sustained:
            rows.append((one.name, f"sustained, {held.seconds_each:.0f} s", f"{held.ratio:.3f}",
                         *_side(held.own)))
    head, shown = without_unread((f"at {size:,}", "run", "ratio", "TFLOP/s", "SM clock, MHz",
                                 "cycles", "W", "joules per product"), rows)
    own = "; clock, cycles and power are of the row's own launches" if "cycles" in head else ""
    table(head, shown, records.label(version.record) + own)


def _side(side: Side | Benchmark) -> tuple[str, ...]:
    """Speed, clock, cycles, power and energy of one run; of 5 ms there is no power."""
    steady = side if isinstance(side, Steady) else None
    return (f"{side.tflops:.0f}", reading(mhz(side.clock), ",.0f"), _cycles(side.clock),
            reading(steady.watts if steady else None, ",.0f"),
            reading(steady.joules if steady else None, ".3f"))


def _cycles(clock: Clock | None) -> str:
    return reading(clock.cycles if clock else None, ",.0f")
