"""The roofs of a GPU, and the versions under them."""

from __future__ import annotations

from dataclasses import replace

from lib import gpus
from lib.gpus import GPUS
from lib.kernels.catalogue import in_book
from lib.plotting import style
from lib.plotting.display import both, table
from lib.plotting.markdown import markdown
from lib.records import store as records
from lib.records.schema import KernelRecord, MachineRecord
from lib.topics.limits.roofline import figure as roofline_figure
from lib.topics.limits.roofline import model as roofline
from lib.topics.version import RECORDED_ON, Version, called, measured_on, short_name


def draw(version: Version, size: int = 4096, against: str = "") -> None:
    """Draw this version and those before it under the roofs measured on the recorded GPU.

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
    roofs = replace(roofline.Roofs.from_record(machine, sheet),
                    tensor=sheet.flops(version.kernel.dtype if version.kernel.group == "FP8"
                                       else "float16"))
    points = []
    for stem, kernel in {**in_book(), version.kernel.stem: version.kernel}.items():
        if kernel.group == version.kernel.group and (
                stem == version.kernel.stem or records.load(KernelRecord, RECORDED_ON, stem)):
            points += _points(version.of(stem), size)
        if stem == version.kernel.stem:
            points += _points(version, size, against) if against else []
            break
    label = f"{records.label(version.record)}, M = N = K = {size:,}"
    if version.measures(version.kernel.fastest):
        points += _here(version, size)
        label = f"{measured_on()} (yours); {label}"
    product = roofline.product_of(version.traced().trace.instructions)
    peaks = [name for name in (product, "tensor") if name in roofs.peaks] if product else [
        "FFMA"
    ]
    both(roofline_figure.draw, roofs, points, current=short_name(version.kernel), peaks=peaks,
         evidence=label)


def _here(version: Version, size: int) -> list[roofline.Point]:
    """The point of the GPU that is here."""
    run = version.traced()
    crossed = roofline.l1_bytes(run.trace.counters()) / run.problem.flops
    flops = 2.0 * size**3
    seconds = version.timed(version.kernel.fastest, size).seconds
    return roofline.points(f"yours: {measured_on().partition(': ')[2]}", flops, seconds,
                           {"L1/shared": crossed * flops})


def _points(version: Version, size: int, variant: str = "") -> list[roofline.Point]:
    """One point a level of memory: recorded time over recorded traffic; of a version's fastest."""
    chosen = variant or version.kernel.fastest.name
    metrics = version.metrics(size, chosen)
    seconds = version.recorded(size, chosen).seconds
    name = called(version.kernel.stem, variant) if variant else short_name(version.kernel)
    return roofline.points(name, 2.0 * size**3, seconds, {
        "L1/shared": roofline.l1_bytes(metrics),
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
           for key, name in (("mma_k8", "mma.m16n8k8"), ("mma_k16", "mma.m16n8k16"),
                             ("wgmma", "wgmma"))},
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
