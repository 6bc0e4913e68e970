"""The hierarchical roofline: which roof is over a kernel, at each level of memory.

Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009); a roof for each level after Yang,
Kurth and Williams, "Hierarchical Roofline Analysis" (2020):
attainable FLOP/s = min(peak FLOP/s, intensity × bandwidth of the level), with
intensity = FLOP / bytes that cross that level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import gpus
from lib.gpus import GPUS, Gpu
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.ptx.core.machine import SECTOR, WAVEFRONT
from lib.records import store as records
from lib.records.schema import KernelRecord, MachineRecord
from lib.show import chart as style
from lib.show.display import both, table
from lib.show.markdown import markdown
from lib.show.version import RECORDED_ON, Version, called, measured_on, short_name

LEVELS = ("L1/shared", "DRAM")

# Roofs of tensor-core instructions: the record's key, and the instruction.
PRODUCTS = {"mma_k8": "mma.m16n8k8", "mma_k16": "mma.m16n8k16", "wgmma": "wgmma"}
# wgmma of 8-bit floats, whose roof nothing has measured: the data sheet's peak is its own.
FP8 = "wgmma, FP8"
SIZE = 4096  # M = N = K of the recorded launches


@dataclass(frozen=True)
class Roofs:
    """What one GPU can do at most.

    Attributes
    ----------
    bandwidths : mapping of str to float
        Of `LEVELS`, B/s. L1 and shared memory are one array behind one data path. Nobody gives the
        L2's.
    peaks : mapping of str to float
        FLOP/s: of ``"FFMA"``, of the ``"tensor"`` cores by their data sheet, and of their single
        instructions, by `PRODUCTS`' names.
    """

    bandwidths: Mapping[str, float]
    peaks: Mapping[str, float]

    @classmethod
    def from_record(cls, machine: MachineRecord, gpu: Gpu) -> Roofs:
        """Roofs measured on a machine; what it did not measure is not among them.

        Parameters
        ----------
        machine : MachineRecord
            ``roofs`` has ``copy``, ``shared`` in B/s and ``ffma``, ``mma_k8``, ``mma_k16`` and
            ``wgmma`` in FLOP/s. Its ``l2``, what one loop of reads reached, is passed by kernels
            here, so it is no roof.
        gpu : Gpu
            Gives the tensor cores' peak, which no instruction need reach.
        """
        measured = machine.roofs.named()

        def known(names: Mapping[str, str]) -> dict[str, float]:
            return {name: measured[key].value for key, name in names.items() if key in measured}

        return cls(known({"shared": "L1/shared", "copy": "DRAM"}),
                   {**known({"ffma": "FFMA", **PRODUCTS}), "tensor": gpu.tensor_fp16_flops})

    def shares(self, mine: Sequence[Point], peak: str = "FFMA") -> dict[str, float]:
        """Return how much of each roof one version reaches, by the roof's name.

        Parameters
        ----------
        mine : sequence of Point
            The version, at each level.
        peak : str
            Which of `peaks` it is held against.
        """
        found = {
            point.level: point.flops_per_s / (point.intensity * self.bandwidths[point.level])
            for point in mine if point.level in self.bandwidths
        }
        return {**found, peak: mine[0].flops_per_s / self.peaks[peak]} if found else {}


@dataclass(frozen=True)
class Point:
    """One version at one level of memory.

    Attributes
    ----------
    name, level : str
    intensity : float
        FLOP/B at this level.
    flops_per_s : float
        What the version reaches, FLOP/s.
    """

    name: str
    level: str
    intensity: float
    flops_per_s: float


def instruction(metrics: Mapping[str, float], flops: float, dtype: str) -> str | None:
    """Name the tensor cores' instruction that a launch multiplied with, by what it counted.

    An m16n8k8 of a warp does 2,048 FLOP, an m16n8k16 twice as many; of a wmma ptxas makes the
    latter from sm_80 on.

    Parameters
    ----------
    metrics : mapping of str to float
        By the names of ``lib.measure.counters``.
    flops : float
        Of the launch.
    dtype : str
        Of A and B.

    Returns
    -------
    str or None
        Of `PRODUCTS`' names, or `FP8` for a wgmma of 8-bit floats; None of FP32, which CUDA cores
        multiply.
    """
    if dtype == "float32":
        return None
    if metrics["gmma_instructions"]:
        return FP8 if dtype.startswith("float8") else "wgmma"
    return "mma.m16n8k16" if flops / metrics["hmma_instructions"] > 3000 else "mma.m16n8k8"


def l1_bytes(counters: Mapping[str, float]) -> float:
    """Bytes that cross L1 and shared memory, from a trace's counters or a GPU's.

    Global sectors count 32 bytes each, shared wavefronts 128 bytes each: both are what the data
    path is busy for, whether a lane uses the bytes or not. A GPU counts an asynchronous copy in
    both, and more than once; where it also counts the wavefronts that the data stage served, no
    more than 128 bytes for each of them have crossed it.
    """
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    asked = SECTOR * sectors + WAVEFRONT * counters["shared_wavefronts"]
    served = counters.get("l1_wavefronts")
    return min(asked, WAVEFRONT * served) if served else asked


def points(name: str, flops: float, seconds: float, bytes_by_level: Mapping[str, float]) -> list[
    Point
]:
    """Return one point for each level.

    Parameters
    ----------
    name : str
        The version.
    flops : float
        Floating-point operations of the problem (2·M·N·K and what β adds).
    seconds : float
        Measured or recorded time.
    bytes_by_level : mapping of str to float
        Bytes that cross each of `LEVELS`; levels that are missing give no point.
    """
    return [Point(name, level, flops / bytes_by_level[level], flops / seconds)
            for level in LEVELS if level in bytes_by_level]


_MARKERS = {"L1/shared": ("o", "●"), "DRAM": ("D", "◆")}  # of the dots, and of their roof's name
_HEIGHT = 3.7
_NARROW_HEIGHT = 3.2
_NARROW_LINE = 13.0  # of the names under the chart, pt
_LINE = 12.0  # of the names beside their dots, at least, pt
_BEGINNING = 24.0  # of a name, pt, that no other version's dot may stand in


@style.styled
def picture(
    roofs: Roofs, points: Sequence[Point], *, evidence: str, current: str,
    peaks: Sequence[str] = ("FFMA",), narrow: bool = False,
) -> Figure:
    """Draw the hierarchical roofline.

    Parameters
    ----------
    roofs : Roofs
    points : sequence of Point
        `lib.show.roofline.points` of all versions to show.
    current : str
        Name of this chapter's version; it alone is in full colour.
    peaks : sequence of str
        Which of ``roofs.peaks`` to draw.
    """
    names = list(dict.fromkeys(point.name for point in points))
    width = style.NARROW if narrow else style.WIDTH
    under = (_NARROW_LINE * len(names) + 4) / 72 if narrow else 0.0
    height = _NARROW_HEIGHT if narrow else _HEIGHT
    fig = style.figure(_finding(roofs, points, current, peaks[0]), height + under, width)
    inset = 0.48 if narrow else 0.62
    ax = style.axes(fig, inset, 0.42 + under, width - inset - 0.16, height - 0.5)
    drawn = {name: roofs.peaks[name] for name in peaks}
    ridges = [max(drawn.values()) / bandwidth for bandwidth in roofs.bandwidths.values()]
    xs = [point.intensity for point in points] + ridges
    ys = [point.flops_per_s for point in points]
    left = min(min(xs) / 3, min(ridges, default=np.inf) / 20)  # room for the roofs' names
    labelled = [] if narrow else points  # whose names stand beside their dots
    x_range = (left, _right_edge(left, max([*xs, 8 * max(ridges, default=1.0)]), labelled))
    top = max(drawn.values())
    y_range = (min([*ys, top / 10]) / (8 if narrow else 5), top * 2.2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*x_range)
    ax.set_ylim(*y_range)
    _scales(ax, x_range, y_range)
    _roofs(ax, height - 0.5, roofs, drawn, x_range, y_range)
    for name in sorted(names, key=lambda n: n == current):
        _version(ax, [p for p in points if p.name == name], name == current)
    if narrow:
        _listed(fig, points, names, current, under)
    else:
        _names(ax, points, names, current)
    return style.finish(fig, alt=_alt(roofs, points, current, drawn), evidence=evidence)


def _right_edge(left: float, least: float, points: Sequence[Point]) -> float:
    """Return how far the x-axis must reach for the longest name to fit beside its dot."""
    edge = least * 1.3
    for point in points:
        room = (len(point.name) + 18) * 6.1 / ((style.WIDTH - 0.78) * 72)
        edge = max(edge, left * (point.intensity / left) ** (1 / max(1 - room, 0.3)))
    return edge


def _scales(ax: Axes, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
    x_ticks = [x for x in 10.0 ** np.arange(-3, 6) if x_range[0] <= x <= x_range[1] / 1.6]
    y_ticks = [y for y in 10.0 ** np.arange(8, 17) if y_range[0] <= y <= y_range[1]]
    ax.set_xticks(x_ticks, [f"{x:,g}" for x in x_ticks])
    ax.set_yticks(y_ticks, [style.quantity(y, "FLOP/s").replace("FLOP/s", "") for y in y_ticks])
    ax.minorticks_off()
    ax.grid(True)
    ax.set_xlabel("arithmetic intensity at each level, FLOP/B", labelpad=2)
    ax.text(0, 1.0, "FLOP/s", transform=ax.transAxes, ha="right", va="bottom")


def _roofs(
    ax: Axes, height: float, roofs: Roofs, drawn: dict[str, float], x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> None:
    """Draw the roofs into axes of a height in inches, those of memory with their dots' marks."""
    top = max(drawn.values())
    (x0, y0), (x1, y1) = ax.transData.transform([(1, 1), (10, 10)])
    slope = np.degrees(np.arctan2(y1 - y0, x1 - x0))
    per_decade = height * 72 / np.log10(y_range[1] / y_range[0])
    for level, bandwidth in roofs.bandwidths.items():
        start = max(x_range[0], y_range[0] / bandwidth)
        ax.plot([start, top / bandwidth], [start * bandwidth, top], color=style.INK, linewidth=1.1)
        # From its lower end, where no version is; 5 pt off the line.
        start *= 1.15
        for text, along, angle in ((_MARKERS[level][1], 0.0, 0.0),
                                   (f"{level} {style.quantity(bandwidth, 'B/s')}", 12.0, slope)):
            ax.annotate(text, (start, start * bandwidth),
                        (along * np.cos(np.radians(slope)), 5 + along * np.sin(np.radians(slope))),
                        textcoords="offset points", rotation=angle, rotation_mode="anchor",
                        ha="left", va="bottom")
    widest = max(roofs.bandwidths.values()) if roofs.bandwidths else 1.0
    labels: list[tuple[float, str]] = []  # from the highest; of two close ones, both on the upper
    for name, peak in sorted(drawn.items(), key=lambda one: -one[1]):
        ax.plot([peak / widest, x_range[1]], [peak, peak], color=style.INK, linewidth=1.1)
        text = f"{name} {style.quantity(peak, 'FLOP/s')}"
        if labels and np.log10(labels[-1][0] / peak) * per_decade < 14:
            upper = labels[-1][1].removesuffix(text[text.rindex(" "):])
            labels[-1] = labels[-1][0], f"{upper}, under it {text}"
        else:
            labels.append((peak, text))
    for peak, text in labels:
        ax.annotate(text, (x_range[1], peak), (0, 3), textcoords="offset points", ha="right",
                    va="bottom")


def _version(ax: Axes, mine: Sequence[Point], is_current: bool) -> None:
    colour = style.FOCUS if is_current else style.OTHER
    ax.plot([p.intensity for p in mine], [p.flops_per_s for p in mine], color=colour,
            linewidth=0.8 if is_current else 0.5, zorder=3 + is_current)
    for point in mine:
        ax.plot([point.intensity], [point.flops_per_s], _MARKERS[point.level][0], color=colour,
                markersize=7 if is_current else 5, markeredgewidth=0, zorder=4 + is_current)


def _names(ax: Axes, points: Sequence[Point], names: Sequence[str], current: str) -> None:
    """Write each version's name at its rightmost dot, at least a line apart."""
    last = {
        name: max((p for p in points if p.name == name), key=lambda p: p.intensity)
        for name in names
    }
    dots = {name: _points_of(ax, one.intensity, one.flops_per_s) for name, one in last.items()}
    wanted = {name: y for name, (_, y) in dots.items()}
    placed: dict[str, float] = {}
    edge = np.inf  # from the top, since close under the roof there is room below only
    for name in sorted(names, key=lambda n: -wanted[n]):
        placed[name] = edge = min(wanted[name], edge - _LINE)
    for name, point in last.items():
        x = right = dots[name][0]
        # Other versions' dots may lie where the name would begin.
        for there, height in sorted(dots.values()):
            if right <= there < right + _BEGINNING and abs(height - placed[name]) < 9:
                right = there
        ax.annotate(f"{name}, {style.quantity(point.flops_per_s, 'FLOP/s')}",
                    (point.intensity, point.flops_per_s),
                    (right - x + 8, placed[name] - wanted[name]), textcoords="offset points",
                    ha="left", va="center", weight="bold" if name == current else "normal")


def _listed(
    fig: style.Drawing, points: Sequence[Point], names: Sequence[str], current: str,
    under: float,
) -> None:
    """Write the versions' names and speeds under the chart, from the fastest."""
    speeds = {point.name: point.flops_per_s for point in points}
    ax = style.axes(fig, 0.08, 0, style.NARROW - 0.16, under, bare=True)
    for row, name in enumerate(sorted(names, key=lambda n: -speeds[n])):
        y = under * 72 - (row + 1) * _NARROW_LINE + 3
        ax.plot([4], [y + 3.5], "o", color=style.FOCUS if name == current else style.OTHER,
                markersize=6, markeredgewidth=0, clip_on=False)
        ax.text(12, y, f"{name}, {style.quantity(speeds[name], 'FLOP/s')}", va="bottom",
                weight="bold" if name == current else "normal")


def _points_of(ax: Axes, intensity: float, flops_per_s: float) -> tuple[float, float]:
    """Where a dot is drawn, pt from the figure's corner."""
    pixels = ax.transData.transform((intensity, flops_per_s))
    return tuple(pixels / ax.figure.dpi * 72)


def _finding(roofs: Roofs, points: Sequence[Point], current: str, peak: str) -> str:
    """How near the two nearest roofs are."""
    shares = roofs.shares([p for p in points if p.name == current], peak)
    if not shares:
        return "Every version lies under some roof"
    (name, first), *others = sorted(shares.items(), key=lambda pair: -pair[1])
    labelled = f", {style.percent(others[0][1])} of {others[0][0]}'s" if others else ""
    return f"{current}: {style.percent(first)} of the {name} roof{labelled}"


def _alt(
    roofs: Roofs, points: Sequence[Point], current: str, drawn: dict[str, float]
) -> str:
    lines = [f"{n} {style.quantity(b, 'B/s')}" for n, b in roofs.bandwidths.items()]
    lines += [f"{n} {style.quantity(p, 'FLOP/s')}" for n, p in drawn.items()]
    parts = [f"Roofs: {', '.join(lines)}."]
    names = list(dict.fromkeys(point.name for point in reversed(points)))
    # This chapter's first: not every reader hears a long text to its end.
    for name in sorted(names, key=lambda one: one != current):
        mine = sorted((p for p in points if p.name == name), key=lambda p: LEVELS.index(p.level))
        where = ", ".join(f"{style.number(p.intensity)} FLOP/B at {p.level}" for p in mine)
        this = " (this chapter)" if name == current else ""
        parts.append(f"{name}{this}: {style.quantity(mine[0].flops_per_s, 'FLOP/s')}; {where}.")
    return " ".join(parts)


def draw(version: Version, against: str = "") -> None:
    """Draw this version and the fastest before it under the roofs measured on the recorded GPU.

    Each is its fastest kernel. Where a GPU is here, its own dot stands among the recorded ones: the
    speed that was measured, over the bytes that the emulator counts between L1 or shared memory and
    the registers.

    Parameters
    ----------
    against : str, optional
        Another of the version's variants to draw.
    """
    machine = records.load(MachineRecord, RECORDED_ON)
    if machine is None:
        raise records.NotRecorded("no roofs are recorded: python -m lib record machine")
    sheet = gpus.GPUS[RECORDED_ON]
    roofs = Roofs.from_record(machine, sheet)
    if version.kernel.group == "FP8":
        roofs = replace(roofs, peaks={**roofs.peaks, "tensor": sheet.flops(version.kernel.dtype)})
    stems = list(in_book())
    earlier = stems[:stems.index(version.kernel.stem)] if version.kernel.stem in stems else stems
    others = [_points(version.of(stem)) for stem in earlier
              if CATALOGUE[stem].group == version.kernel.group
              and records.load(KernelRecord, RECORDED_ON, stem)]
    points = [*max(others, key=lambda dots: dots[0].flops_per_s, default=[]),
              *(_points(version, against) if against else []), *_points(version)]
    label = f"{records.label(version.record)}, M = N = K = {SIZE:,}"
    if version.measures(version.kernel.fastest):
        points += _here(version)
        label = f"{measured_on()} (yours); {label}"
    product = instruction(version.metrics(SIZE), 2.0 * SIZE**3, version.kernel.fastest.dtype)
    peaks = [name for name in (product, "tensor") if name in roofs.peaks] if product else [
        "FFMA"
    ]
    both(picture, roofs, points, current=short_name(version.kernel), peaks=peaks,
         evidence=label)


def _here(version: Version) -> list[Point]:
    """The point of the GPU that is here."""
    run = version.traced()
    crossed = l1_bytes(run.trace.counters()) / run.problem.flops
    flops = 2.0 * SIZE**3
    seconds = version.timed(version.kernel.fastest, SIZE).seconds
    return points(f"yours: {measured_on().partition(': ')[2]}", flops, seconds,
                           {"L1/shared": crossed * flops})


def _points(version: Version, variant: str = "") -> list[Point]:
    """One point a level of memory: recorded time over recorded traffic; of a version's fastest."""
    chosen = variant or version.kernel.fastest.name
    metrics = version.metrics(SIZE, chosen)
    seconds = version.recorded(SIZE, chosen).seconds
    name = called(version.kernel.stem, variant) if variant else short_name(version.kernel)
    return points(name, 2.0 * SIZE**3, seconds, {
        "L1/shared": l1_bytes(metrics),
        "DRAM": metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
    })


def roofs_table() -> None:
    """Display the roofs measured on each machine, beside its data sheet's figure."""
    rows, labels = [], []
    sheet = {
        "copy": ("DRAM", lambda g: g.dram_bytes_per_s, None),
        "shared": ("shared memory", lambda g: None, None),
        "ffma": ("FFMA", lambda g: g.fp32_flops, lambda g: g.clock_hz),
        **{key: (name, lambda g: g.tensor_fp16_flops, lambda g: g.tensor_clock_hz)
           for key, name in PRODUCTS.items()},
    }
    for record in records.every():
        if not isinstance(record, MachineRecord):
            continue
        key = record.gpu.key
        gpu = gpus.GPUS.get(key)  # None of a reader's own that no data sheet here is of
        labels.append(records.label(record))
        for kind, (name, peak, clock) in sheet.items():
            if (roof := record.roofs.named().get(kind)) is None:
                continue
            unit, given = roof.unit, gpu and peak(gpu)
            at = f" at {clock(gpu) / 1e6:,.0f} MHz" if gpu and clock else ""
            rows.append((
                f"{key}, {name}", style.quantity(roof.value, unit),
                f"{style.quantity(given, unit)}{at}" if given else "not given", roof.method,
            ))
    table(("roof", "measured", "data sheet", "how"), rows, "; ".join(labels))


def ridge_points() -> str:
    """Peaks, bandwidth and ridge points of every GPU with a data sheet here, all at one clock.

    A vendor may print the tensor cores' peak at another clock than the FP32 units'.
    """
    return markdown(
        ("GPU", "SM clock, MHz", "FP32 peak, TFLOP/s", "tensor FP16 peak, TFLOP/s",
         "the vendor's tensor peak, at MHz", "DRAM, GB/s", "FP32 ridge, FLOP/byte",
         "tensor ridge, FLOP/byte"),
        (
            (gpu.key, f"{gpu.clock_hz / 1e6:,.0f}", f"{gpu.fp32_flops / 1e12:.1f}",
             f"{gpu.tensor_boost_flops / 1e12:,.0f}",
             f"{gpu.tensor_fp16_flops / 1e12:,.0f} at {gpu.tensor_clock_hz / 1e6:,.0f}",
             f"{gpu.dram_bytes_per_s / 1e9:,.0f}", f"{gpu.fp32_ridge:.1f}",
             f"{gpu.tensor_boost_flops / gpu.dram_bytes_per_s:.0f}")
            for gpu in GPUS.values()
        ),
    )
