"""How many bytes are under way."""

from __future__ import annotations

from lib import gpus
from lib.plotting.display import once_recorded, table
from lib.problem import ITEM_BYTES
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.version import RECORDED_ON, Version


@once_recorded()
def under_way(version: Version, *variants: str, gpu: str = RECORDED_ON) -> None:
    """Display how many bytes are under way at most, of a block and on an SM.

    Those of all stages but one where the variant has a ring, of a step's loads where it has none.

    Parameters
    ----------
    gpu : str
        Key of the data sheet; its own machine code says how many blocks fit.
    """
    sheet, rows = gpus.GPUS[gpu], []
    for name in variants:
        variant, used = version.kernel.variant(name), version.compiled(sheet.arch, name).resources
        fit = occupancy(sheet, used.registers, used.shared_bytes, variant.threads)
        nbytes = bytes_in_flight(version, name)
        rows.append((name, variant.threads, fit.blocks, f"{nbytes:,}",
                     f"**{fit.blocks * nbytes:,}**"))
    table(("", "threads per block", "blocks per SM", "bytes under way, per block", "per SM"), rows,
          f"modelled: CUDA's occupancy rules, for {sheet.key} ({sheet.arch})")


def bytes_in_flight(version: Version, variant: str | None = None) -> int:
    """Bytes that a block has asked for, at most, before it waits: all stages but one.

    Without a ring those of one step's tiles.
    """
    chosen = version.kernel.variant(variant)
    ahead = max(chosen.schedule.stages - 1, 1)
    return ahead * sum(chosen.tile) * chosen.step * ITEM_BYTES[chosen.dtype]
