"""How many bytes are under way."""

from __future__ import annotations

from lib import gpus
from lib.plotting.display import once_recorded, table
from lib.problem import ITEM_BYTES
from lib.topics.occupancy.model import occupancy
from lib.topics.version import RECORDED_ON, Version


@once_recorded()
def under_way(version: Version, *variants: str, gpu: str = RECORDED_ON) -> None:
    """Display how many bytes the loads of a step have under way, of a block and on an SM.

    Parameters
    ----------
    version : Version
    *variants : str
    gpu : str
        Key of the data sheet; its own machine code says how many blocks fit.
    """
    sheet, rows = gpus.GPUS[gpu], []
    for name in variants:
        variant, used = version.kernel.variant(name), version.compiled(sheet.arch, name).resources
        fit = occupancy(sheet, used.registers, used.shared_bytes, variant.threads)
        nbytes = sum(variant.tile) * variant.step * ITEM_BYTES[variant.dtype]
        rows.append((name, variant.threads, fit.blocks, f"{nbytes:,}",
                     f"**{fit.blocks * nbytes:,}**"))
    table(("", "threads per block", "blocks per SM", "bytes under way, per block", "per SM"), rows,
          f"modelled: CUDA's occupancy rules, for {sheet.key} ({sheet.arch})")


def bytes_in_flight(version: Version, variant: str | None = None) -> int:
    """Bytes that a block has asked for, at most, before it waits: all stages but one."""
    chosen = version.kernel.variant(variant)
    rows, columns = chosen.tile
    return (chosen.schedule.stages - 1) * (rows + columns) * chosen.step * 2
