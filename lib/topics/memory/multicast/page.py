"""What a chapter shows of a cluster's loads."""

from __future__ import annotations

from lib.plotting.display import show, table
from lib.topics.memory.multicast import figure, model
from lib.topics.version import Version


def loads(version: Version, variant: str | None = None) -> None:
    """Display what each block of a cluster loads in a step, for whom, and whom it waits for."""
    chosen = version.kernel.variant(variant)
    found = model.observed(version.kernel, chosen)
    count = len(found)
    rows = [
        (one.rank, f"{one.m}, {one.n}", f"{one.a:,} B", _mask(one.a_mask, count),
         f"{one.b:,} B", _mask(one.b_mask, count), _ranks(one.waits_for)) for one in found
    ]
    down, across = chosen.schedule.cluster
    table(("rank", "m, n", "loads of A", "mask: for blocks", "loads of B", "mask: for blocks",
           "a stage is free when these have read it"),
          rows, f"emulated: {version.kernel.stem}, {chosen.name}, clusters of {down} × {across}; "
          "a step of K, masks in binary, bit 0 last")


def draw(version: Version, variant: str | None = None) -> None:
    """Draw the blocks of a cluster, and which block loads each part of their tiles.

    Parameters
    ----------
    version : Version
    variant : str, optional
        The first if none is named.
    """
    chosen = version.kernel.variant(variant)
    show(figure.draw(model.observed(version.kernel, chosen),
                     evidence=f"emulated: {version.kernel.stem}, {chosen.name}"))


def _mask(mask: int, blocks: int) -> str:
    return f"`{mask:0{blocks}b}`: {_ranks(model.ranks(mask))}"


def _ranks(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks))
