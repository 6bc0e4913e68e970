"""What a chapter shows of a tile whose K is shared."""

from __future__ import annotations

from lib.plotting.display import show, table
from lib.topics.compute.split_k import figure, model
from lib.topics.version import Version

SHOWN = 3  # steps that are named one by one


def parts(version: Version, variant: str | None = None, K: int = 16384) -> None:
    """Display what each block of a cluster does for the one tile that they share."""
    chosen = version.kernel.variant(variant)
    steps = -(-K // chosen.step)
    rows = [
        (one.rank, _listed(one.steps), f"{one.left:,} B",
         f"{one.rows.start} to {one.rows.stop - 1}", f"{one.read:,} B")
        for one in model.parts(chosen.tile, steps, chosen.schedule.split)
    ]
    table(("block", f"multiplies steps, of {steps:,}", "leaves partial sums", "adds up rows",
           "reads from the others"), rows,
          f"modelled: {version.kernel.stem}, {chosen.name}, a tile of "
          f"{chosen.tile[0]}×{chosen.tile[1]}, K = {K:,}")


def draw(version: Version, variant: str | None = None, K: int = 1024) -> None:
    """Draw which steps each block multiplies, and which rows of all sums it adds up."""
    chosen = version.kernel.variant(variant)
    steps = -(-K // chosen.step)
    show(figure.draw(model.parts(chosen.tile, steps, chosen.schedule.split), steps,
                     evidence=f"modelled: {version.kernel.stem}, {chosen.name}, K = {K:,}"))


def _listed(steps: range) -> str:
    first = ", ".join(str(step) for step in steps[:SHOWN])
    return f"{first}, …, {steps[-1]}" if len(steps) > SHOWN else first
