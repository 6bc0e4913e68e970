"""Speed against cuBLAS, measured or recorded, and what was recorded with it."""

from __future__ import annotations

from collections.abc import Sequence

from lib import gpus
from lib.kernels.spec import Variant
from lib.plotting import style
from lib.plotting.display import note, once_recorded, table
from lib.plotting.markdown import markdown, reading, without_unread
from lib.ptx.core.machine import WARP
from lib.records import reported
from lib.records import store as records
from lib.records.revision import DIRTY
from lib.records.schema import Benchmark, Clock, Side, Steady, mhz
from lib.records.store import HOT_ROUNDS
from lib.topics.limits.bottleneck.model import HMMA_1688
from lib.topics.version import RECORDED_ON, Version

# The sizes of a chapter's table of speeds.
SPEED_SIZES = (1024, 2048, 4096)

# NumPy's names of types, for people.
_TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "float8_e4m3fn": "E4M3"}

# Multiply-adds of a warp's FMA, by which accesses are counted in all chapters.


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
    rows, timed = [], []
    names = variants or tuple(v.name for v in version.kernel.variants)
    chosen = [version.kernel.variant(name) for name in names]
    types = dict.fromkeys(map(_types, chosen))
    for variant in chosen:
        for row in _benchmarks(version, variant):
            timed.append(row)
            rows.append((variant.name, f"{row.M:,}", f"{row.tflops:.2f}",
                         f"{row.cublas_tflops:.2f}", f"{row.ratio:.1%}",
                         f"{100 * row.spread:.1g}%"))
    head = ("variant", "M = N = K", "TFLOP/s", "cuBLAS, same run", _of(timed), "spread")
    table(head, rows, f"{version.timed_on(names)}; {' and '.join(types)}, α = 1, β = 0")


@once_recorded()
def codes(version: Version, variant: str | None = None, old: str = "sm_75") -> None:
    """Display the speed of this GPU's own code beside that of an older architecture's.

    A row for each size at which both are recorded. Where a source reports the version's speed on
    a T4, that stands beside them.

    Parameters
    ----------
    old : str
        The architecture whose code was assembled for the recorded GPU.
    """
    rows = []
    known = reported.T4_TENSOR_GFLOPS.get(version.kernel.stem, {})
    sizes = _cubes_of_both(version, variant, old) or SPEED_SIZES  # none of them: says so
    for size in sizes:
        own, other = (version.recorded(size, variant, arch) for arch in (None, old))
        row = [f"{size:,}", f"{own.cublas_tflops:.0f}", f"{own.tflops:.1f}",
               f"{own.ratio:.0%}", f"{other.tflops:.1f}", f"{other.ratio:.0%}"]
        if known:
            row.append(f"{known[size] / 1e3:.1f}" if size in known else "")
        rows.append(row)
    arch = gpus.GPUS[RECORDED_ON].arch
    of = _of([version.recorded(size, variant, code)
              for size in sizes for code in (None, old)])
    head = ["M = N = K", "cuBLAS", f"{arch} code", of, f"{old} code", of]
    table(head + (["on a T4, reported"] if known else []), rows,
          f"TFLOP/s; {records.label(version.record)}, {version.kernel.variant(variant).name}; "
          f"{old} code assembled for {arch}" + ("; T4: the worklog" if known else ""))


def _cubes_of_both(version: Version, variant: str | None, old: str) -> tuple[int, ...]:
    """Those of the table's sizes at which the GPU's own code and an older one's are recorded."""
    both = [version.reader.code(variant, arch).bench for arch in (None, old)]
    return tuple(size for size in SPEED_SIZES
                 if all(any(row.is_cube(size) for row in rows) for rows in both))


def _benchmarks(version: Version, variant: Variant) -> Sequence[Benchmark]:
    if version.measures(variant):
        return [version.timed(variant, size) for size in SPEED_SIZES]
    return [row for row in version.reader.variant(variant.name).bench
            if row.M == row.N == row.K and row.M in SPEED_SIZES]


@once_recorded()
def compare(version: Version, size: int, *variants: str) -> None:
    """Display recorded speed and traffic of some variants side by side, a row each.

    Parameters
    ----------
    *variants : str
        All of them if none is named.
    """
    rows, timed = [], []
    tensor = version.kernel.group != "FP32"
    for name in variants or tuple(v.name for v in version.kernel.variants):
        metrics, row = version.metrics(size, name), version.recorded(size, name)
        timed.append(row)
        # A product of 16×8×8 on tensor cores is a warp's, as 32 multiply-adds are.
        steps = size**3 / HMMA_1688 if tensor else metrics["ffma_thread_instructions"] / 32
        pipe = metrics["tensor_pipe_percent" if tensor else "fma_pipe_percent"]
        rows.append((
            name, version.kernel.variant(name).meaning, f"{row.tflops:.1f}",
            f"{row.ratio:.1%}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
            f"{metrics['l2_bytes'] / 1e9:.1f}", f"{metrics['shared_wavefronts'] / steps:.2f}",
            f"{pipe:.0f}%",
        ))
    table(
        (f"at {size:,}", "", "TFLOP/s", _of(timed), "GB from DRAM", "GB through L2",
         "wavefronts per 16×8×8 product" if tensor else "wavefronts per warp's FMA",
         "tensor pipe busy" if tensor else "FMA pipe busy"),
        rows, records.label(version.record),
    )


def _of(rows: Sequence[Benchmark]) -> str:
    """The head of a column of shares: of the best of cuBLAS, where all rows have it."""
    return "of the best of cuBLAS" if {*map(records.rival, rows)} == {"best"} else "of cuBLAS"


def _types(variant: Variant) -> str:
    """What a variant multiplies, and into what."""
    if variant.dtype == "float32":
        return "FP32, TF32 off"
    columns = ", B by columns" if variant.b_layout == "column" else ""
    scales = f", scales by {variant.scaling}" if variant.scaling else ""
    return f"A and B {_TYPES[variant.dtype]}, C {_TYPES[variant.out]}{columns}{scales}"


@once_recorded()
def traffic(version: Version, size: int, *variants: str, above: Sequence[str] = ()) -> None:
    """Display recorded speed and traffic, level by level, a row a variant.

    Parameters
    ----------
    *variants : str
        All of them if none is named.
    """
    rows, timed = [], []
    for one in version.rows(variants, above, every=True):
        found = one.page.metrics(size, one.variant.name)
        row = one.page.recorded(size, one.variant.name)
        timed.append(row)
        rows.append((
            one.name, f"{row.tflops:.1f}",
            f"{row.ratio:.1%}", f"{found['l1_load_bytes'] / 1e9:.2f}",
            f"{found['l2_bytes'] / 1e9:.2f}", f"{found['dram_read_bytes'] / 1e9:.2f}",
            f"{WARP * found['shared_wavefronts'] / size**3:.3f}",
            f"{found['issue_active_percent']:.0f}%",
        ))
    table(
        (f"at {size:,}", "TFLOP/s", _of(timed), "GB of loads from L1", "GB through L2",
         "GB from DRAM", "wavefronts of shared memory per 32 multiply-adds",
         "issue slots used"),
        rows, f"{records.label(version.record)}, ncu",
    )


@once_recorded()
def tensor_compare(version: Version, size: int, *variants: str, above: Sequence[str] = ()) -> None:
    """Display recorded speed, traffic and clock of some variants side by side.

    Parameters
    ----------
    *variants : str
        All of them if none is named.
    """
    rows, timed = [], []
    for one in version.rows(variants, above, every=True):
        row = one.page.recorded(size, one.variant.name)
        timed.append(row)
        metrics = one.page.metrics(size, one.variant.name)
        rows.append((
            one.name, f"{row.tflops:.1f}",
            f"{row.ratio:.1%}", reading(metrics.get("tensor_pipe_percent"), ".0f", "%"),
            f"{metrics['l2_bytes'] / 1e9:.2f}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
            reading(mhz(row.clock), ",.0f"), _cycles(row.clock),
        ))
    table(
        *without_unread(
            (f"at {size:,}", "TFLOP/s", _of(timed), "tensor pipe busy", "GB through L2",
             "GB from DRAM", "SM clock, MHz", "cycles"), rows),
        f"{records.label(version.record)}; busy and bytes by ncu",
    )


def how_it_ran(version: Version, variant: str | None = None) -> None:
    """Display each recorded shape of a variant with its launches' clock, and the temperature.

    Where the series was short, of fewer samples than `lib.records.store.HOT_ROUNDS`, nothing is
    said of the temperature: the sensor follows within tenths of a second, and it was over before.
    """
    name = version.kernel.variant(variant).name
    rows = []
    for row in version.record.variants[name].bench:
        short = row.rounds < HOT_ROUNDS
        rows.append((
            "×".join(f"{side:,}" for side in row.shape), f"{row.tflops:.0f}",
            f"{row.cublas_tflops:.0f}", f"{row.ratio:.3f}", f"{row.spread:.1%}",
            reading(mhz(row.clock), ",.0f"), _cycles(row.clock),
            "too short" if short else reading(row.temperature_c, ",.0f"),
        ))
    table(*without_unread(("M×N×K", "TFLOP/s", "cuBLAS", "ratio", "spread", "SM clock, MHz",
                           "cycles", "°C"), rows),
          f"{records.label(version.record)}, {name}; °C: median while both ran")


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
            ratio = other.seconds / row.alone.seconds if other else None
            rows.append((one.name, "alone", reading(ratio, ".3f"), *_side(row.alone)))
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


def speed_over(version: Version, other: str, size: int = 4096) -> float:
    """Speed of the first variant over that of another version's, each over its own cuBLAS."""
    return version.recorded(size).ratio / version.of(other).recorded(size).ratio
