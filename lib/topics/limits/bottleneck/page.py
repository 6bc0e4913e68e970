"""The least time that each unit of a GPU needs for a version."""

from __future__ import annotations

from lib import gpus
from lib.plotting.display import both
from lib.plotting.frames import Explorer
from lib.records import store as records
from lib.records.schema import MachineRecord, mhz
from lib.run import device
from lib.topics.limits.bottleneck import emulated, explorer
from lib.topics.limits.bottleneck import figure as busiest_figure
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.limits.roofline import model as roofline
from lib.topics.version import RECORDED_ON, TIMED, Version, measured_on


def draw(version: Version, size: int = TIMED, lines: bool = False) -> None:
    """Draw the least time that each unit needs, and the time that the kernel took.

    Where a GPU with a data sheet is here, its units come first, with the time measured on it.

    Parameters
    ----------
    lines : bool
        Take the lines that the L1 looks up from the traced run, scaled, and not the fewest that
        the recorded requests and sectors allow. Loads grow with the size's cube, stores with
        its square.
    """
    if version.measures(version.kernel.fastest):
        _here(version, size, lines)
    row = version.recorded(size)
    machine = records.load(MachineRecord, RECORDED_ON)
    looked_up = None
    if lines:
        trace, larger = version.traced().trace, size / version.problem.K
        looked_up = sum(
            round(busiest.lines([site], trace.watched) * larger ** (3 - (site.kind == "store")))
            for site in trace.sites
        )
    times = busiest.of_record(
        version.metrics(size), gpus.GPUS[RECORDED_ON],
        roofline.Roofs.from_record(machine, gpus.GPUS[RECORDED_ON]) if machine else None,
        product=roofline.product_of(version.traced().trace.instructions), flops=2.0 * size**3,
        clock_mhz=mhz(row.clock), lines=looked_up)
    both(busiest_figure.draw, times, seconds=row.seconds,
         evidence=f"modelled: {RECORDED_ON} rates × {records.label(version.record)}, {size:,}³",
         note="L1 lines: a wavefront each")


def _here(version: Version, size: int, lines: bool) -> None:
    """Draw the units of the GPU that is here, if it has a data sheet, and the time measured."""
    try:
        gpu = gpus.find(device.name())
    except ValueError:
        return
    times, _ = unit_times(version, gpu.key, None, size, lines)
    both(busiest_figure.draw, times,
         seconds=version.timed(version.kernel.fastest, size).seconds,
         seconds_evidence="measured", notes={"DRAM": "compulsory bytes"},
         evidence=f"modelled: {gpu.key} data sheet × emulated counters; {measured_on()}, {size:,}³")


def unit_times(
    version: Version, key: str = "T4", variant: str | None = None, size: int = 4096,
    lines: bool = False,
) -> tuple[dict[str, float], int]:
    """Return the least seconds of each unit, and the bytes asked of the L2 (`saturates`).

    Counters are emulated (`lib.topics.limits.bottleneck.emulated`).

    Raises
    ------
    ValueError
        If tiles don't divide the problem.
    """
    return emulated.unit_times(version.kernel.stem, version.kernel.variant(variant).name,
                               gpus.find(key), size, lines)


def saturated(version: Version, *variants: str, key: str = "T4") -> Explorer:
    """Return an explorer of `saturates` over variants, all if none is named, and sizes."""
    gpu, tiles = gpus.find(key), {}
    for name in variants or tuple(v.name for v in version.kernel.variants):
        variant, used = version.kernel.variant(name), version.compiled(gpu.arch, name).resources
        fit = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
        tiles[name] = (*variant.tile, variant.step, fit.blocks)
    return explorer.saturated(lambda name, n: unit_times(version, key, name, n), tiles, gpu)
