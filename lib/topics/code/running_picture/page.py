"""The running picture of a version, from its traced run and its record."""

from __future__ import annotations

from dataclasses import replace

from lib.kernels.spec import Variant
from lib.plotting.display import show
from lib.problem import ITEM_BYTES
from lib.records import store as records
from lib.topics.code.mapping import model as mapping
from lib.topics.code.running_picture import figure, model
from lib.topics.version import Version

SIZE = 4096


def draw(version: Version, variant: str | None = None) -> None:
    """Draw where a variant is in the machine: its tiles, its loops, its bytes per FMA."""
    chosen = version.kernel.variant(variant)
    work = mapping.work(version.stored_by_lanes(_multiplying(version, chosen).name))
    try:
        metrics, label = version.metrics(SIZE, variant), f"; {records.label(version.record)}"
    except records.NotRecorded:
        metrics, label = None, ""
    levels = model.levels(version.kernel.stem, work, chosen.step, SIZE, metrics,
                          ITEM_BYTES[chosen.dtype], chosen.schedule.cluster)
    thread = levels[-1]
    extents = [(work.M, work.N), (work.block.rows, work.block.columns),
               model.extent_of_warp(work), (thread.rows, thread.columns)]
    evidence = f"{version.emulated_label()}{label}"
    show(figure.draw(levels, extents, evidence=evidence, note=f"bytes: n = {SIZE:,}"))


def _multiplying(version: Version, variant: Variant) -> Variant:
    """Whose stores say which lane multiplied what.

    Where blocks share K, sums are dealt anew before they are stored: then it is the variant that
    differs in nothing else.
    """
    alone = replace(variant.schedule, split=1)
    return next((one for one in version.kernel.variants if one.schedule == alone and (
        one.dtype, one.out, one.b_layout) == (variant.dtype, variant.out, variant.b_layout)),
        variant)
