"""Speed against cuBLAS, measured or recorded, and what was recorded with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lib import gpus
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Variant
from lib.plotting.display import note, once_recorded, table
from lib.plotting.markdown import reading
from lib.records import reported
from lib.records import store as records
from lib.records.store import HOT_ROUNDS
from lib.topics.bottleneck.model import HMMA_1688
from lib.topics.version import RECORDED_ON, Version

# The sizes of a chapter's table of speeds.
SPEED_SIZES = (1024, 2048, 4096)

# NumPy's names of types, for people.
_TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}

# Multiply-adds of a warp's FMA, by which accesses are counted in all chapters.
WARP = 32


def provenance() -> None:
    """Display where each record comes from: GPU, driver, toolkit, date, revision, method."""
    rows = [
        (r["kernel"], r["gpu"]["name"], r["gpu"]["driver"], r["software"]["cuda"],
         r["software"]["cublas"], r["date"], r["revision"])
        for r in records.every()
    ]
    head = ("record", "GPU", "driver", "CUDA", "cuBLAS", "date", "revision")
    table(head, rows, "recorded: the files in results/")
    methods = dict.fromkeys(
        r["method"]["bench"] for r in records.every() if r["kernel"] in CATALOGUE)
    clocks = dict.fromkeys(r["method"]["clocks"] for r in records.every())
    note("\n\n".join([f"Timing: {'; '.join(methods)}.", f"Clocks: {'; '.join(clocks)}."]))


def speed(version: Version, *variants: str) -> None:
    """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
    rows, types, timed = [], {}, []
    names = variants or tuple(v.name for v in version.kernel.variants)
    for variant in map(version.kernel.variant, names):
        types[_types(variant)] = None
        for row in _benchmarks(version, variant):
            timed.append(row)
            rows.append((variant.name, f"{row['M']:,}", f"{row['tflops']:.2f}",
                         f"{row['cublas_tflops']:.2f}", f"{row['ratio']:.1%}",
                         f"{100 * row['spread']:.1g}%"))
    head = ("variant", "M = N = K", "TFLOP/s", "cuBLAS, same run", _of(timed), "spread")
    table(head, rows, f"{version.timed_on(names)}; {' and '.join(types)}, α = 1, β = 0")


@once_recorded()
def codes(version: Version, variant: str | None = None, old: str = "sm_75") -> None:
    """Display the speed of this GPU's own code beside that of an older architecture's.

    Where a source reports the version's speed on a T4, that stands beside them.

    Parameters
    ----------
    version : Version
    variant : str, optional
    old : str
        The architecture whose code was assembled for the recorded GPU.
    """
    rows = []
    known = reported.T4_TENSOR_GFLOPS.get(version.kernel.stem, {})
    for size in SPEED_SIZES:
        own, other = (version.recorded(size, variant, arch) for arch in (None, old))
        row = [f"{size:,}", f"{own['cublas_tflops']:.0f}", f"{own['tflops']:.1f}",
               f"{own['ratio']:.0%}", f"{other['tflops']:.1f}", f"{other['ratio']:.0%}"]
        if known:
            row.append(f"{known[size] / 1e3:.1f}" if size in known else "")
        rows.append(row)
    own = gpus.GPUS[RECORDED_ON].arch
    of = _of([version.recorded(size, variant, code)
              for size in SPEED_SIZES for code in (None, old)])
    head = ["M = N = K", "cuBLAS", f"{own} code", of, f"{old} code", of]
    table(head + (["on a T4, reported"] if known else []), rows,
          f"TFLOP/s; {records.label(version.record)}, {version.kernel.variant(variant).name}; "
          f"{old} code assembled for {own}" + ("; T4: the worklog" if known else ""))


def _benchmarks(version: Version, variant: Variant) -> list[Mapping[str, Any]]:
    if version.measures(variant):
        return [version.timed(variant, size) for size in SPEED_SIZES]
    return [row for row in version.kept.variant(variant.name)["bench"]
            if row["M"] == row["N"] == row["K"] and row["M"] in SPEED_SIZES]


def compare(version: Version, size: int, *variants: str) -> None:
    """Display recorded speed and traffic of some variants side by side, a row each.

    Parameters
    ----------
    version : Version
    size : int
        M = N = K.
    *variants : str
        All of them if none is named.
    """
    rows, timed = [], []
    tensor = version.kernel.group == "FP16"
    for name in variants or tuple(v.name for v in version.kernel.variants):
        metrics, row = version.metrics(size, name), version.recorded(size, name)
        timed.append(row)
        # A product of 16×8×8 on tensor cores is a warp's, as 32 multiply-adds are.
        steps = size**3 / HMMA_1688 if tensor else metrics["ffma_thread_instructions"] / 32
        pipe = metrics["tensor_pipe_percent" if tensor else "fma_pipe_percent"]
        rows.append((
            name, version.kernel.variant(name).meaning, f"{row['tflops']:.1f}",
            f"{row['ratio']:.1%}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
            f"{metrics['l2_bytes'] / 1e9:.1f}", f"{metrics['shared_wavefronts'] / steps:.2f}",
            f"{pipe:.0f}%",
        ))
    table(
        (f"at {size:,}", "", "TFLOP/s", _of(timed), "GB from DRAM", "GB through L2",
         "wavefronts per 16×8×8 product" if tensor else "wavefronts per warp's FMA",
         "tensor pipe busy" if tensor else "FMA pipe busy"),
        rows, records.label(version.record),
    )


def _of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The head of a column of shares: of the best of cuBLAS, where all rows have it."""
    return "of the best of cuBLAS" if {*map(records.rival, rows)} == {"best"} else "of cuBLAS"


def _types(variant: Variant) -> str:
    """What a variant multiplies, and into what."""
    if variant.dtype == "float32":
        return "FP32, TF32 off"
    columns = ", B by columns" if variant.b_layout == "column" else ""
    return f"A and B {_TYPES[variant.dtype]}, C {_TYPES[variant.out]}{columns}"


def traffic(version: Version, size: int, *variants: str, above: Sequence[str] = ()) -> None:
    """Display recorded speed and traffic, level by level, a row a variant.

    Parameters
    ----------
    version : Version
    size : int
        M = N = K.
    *variants : str
        All of them if none is named.
    above : sequence of str
        Versions to show above, as ``stem`` or ``stem/variant``.
    """
    rows, timed = [], []
    for one in version.rows(variants, above, every=True):
        found = one.page.metrics(size, one.variant.name)
        row = one.page.recorded(size, one.variant.name)
        timed.append(row)
        rows.append((
            one.name, f"{row['tflops']:.1f}",
            f"{row['ratio']:.1%}", f"{found['l1_load_bytes'] / 1e9:.2f}",
            f"{found['l2_bytes'] / 1e9:.2f}", f"{found['dram_read_bytes'] / 1e9:.2f}",
            f"{WARP * found['shared_wavefronts'] / size**3:.3f}",
            f"{found['issue_active_percent']:.0f}%",
        ))
    table(
        (f"at {size:,}", "TFLOP/s", _of(timed), "GB of loads from L1", "GB through L2",
         "GB from DRAM", "wavefronts for 32 multiply-adds", "issue slots used"),
        rows, f"{records.label(version.record)}, ncu",
    )


def tensor_compare(version: Version, size: int, *variants: str, above: Sequence[str] = ()) -> None:
    """Display recorded speed, traffic and clock of some variants side by side.

    Parameters
    ----------
    version : Version
    size : int
        M = N = K.
    *variants : str
        All of them if none is named.
    above : sequence of str
        Versions to show above, as ``stem`` or ``stem/variant``.
    """
    rows, timed = [], []
    for one in version.rows(variants, above, every=True):
        row = one.page.recorded(size, one.variant.name)
        timed.append(row)
        metrics = one.page.metrics(size, one.variant.name)
        rows.append((
            one.name, f"{row['tflops']:.1f}",
            f"{row['ratio']:.1%}", reading(metrics.get("tensor_pipe_percent"), ".0f", "%"),
            f"{metrics['l2_bytes'] / 1e9:.2f}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
            reading(row["sm_clock_mhz"], ",.0f"), reading(row.get("power_w"), ",.0f"),
        ))
    table(
        (f"at {size:,}", "TFLOP/s", _of(timed), "tensor pipe busy", "GB through L2",
         "GB from DRAM", "SM clock, MHz", "W"),
        rows, f"{records.label(version.record)}; busy and bytes by ncu",
    )


def how_it_ran(version: Version, variant: str | None = None) -> None:
    """Display each recorded shape of a variant with clock, power and temperature.

    Where the series was short, of fewer samples than `lib.records.store.HOT_ROUNDS`, nothing is
    said of them: the sensors follow within tenths of a second, and it was over before.
    """
    name = version.kernel.variant(variant).name
    rows = []
    for row in version.record["variants"][name]["bench"]:
        short = row.get("rounds", HOT_ROUNDS) < HOT_ROUNDS
        rows.append((
            "×".join(f"{side:,}" for side in records.shape_of(row)), f"{row['tflops']:.0f}",
            f"{row['cublas_tflops']:.0f}", f"{row['ratio']:.3f}", f"{row['spread']:.1%}",
            *("too short" if short else reading(row.get(key), ",.0f")
              for key in ("sm_clock_mhz", "power_w", "temperature_c")),
        ))
    table(("M×N×K", "TFLOP/s", "cuBLAS", "ratio", "spread", "SM clock, MHz", "W", "°C"), rows,
          f"{records.label(version.record)}, {name}; clock, W and °C: medians while both ran")


def alone(version: Version, *variants: str, above: Sequence[str] = (), size: int = 4096) -> None:
    """Display recorded speed, clock and power beside cuBLAS, and alone.

    Parameters
    ----------
    version : Version
    *variants : str
        The first if none is named.
    above : sequence of str
        Versions to show above, as ``stem`` or ``stem/variant``.
    size : int
        M = N = K.
    """
    rows = []
    for one in version.rows(variants, above):
        row = one.page.recorded(size, one.variant.name)
        alone = row.get("alone", {})
        rows.append((
            one.name, f"{row['ratio']:.3f}",
            f"{row['tflops']:.0f}", reading(row["sm_clock_mhz"], ",.0f"),
            reading(row.get("power_w"), ",.0f"), reading(alone.get("tflops"), ".0f"),
            reading(alone.get("sm_clock_mhz"), ",.0f"), reading(alone.get("power_w"), ",.0f"),
        ))
    table(
        (f"at {size:,}", "ratio", "TFLOP/s in turns", "MHz", "W", "TFLOP/s alone", "MHz", "W"),
        rows, f"{records.label(version.record)}; medians while the samples were taken",
    )


def speed_over(version: Version, other: str, size: int = 4096) -> float:
    """Speed of the first variant over that of another version's, each over its own cuBLAS."""
    return version.recorded(size)["ratio"] / version.of(other).recorded(size)["ratio"]
