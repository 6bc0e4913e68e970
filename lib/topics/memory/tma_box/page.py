"""The rows of a tensor map's box, drawn."""

from __future__ import annotations

from lib.plotting.display import show
from lib.problem import ITEM_BYTES
from lib.topics.memory.tma_box import figure as box_figure
from lib.topics.memory.tma_box import model as box
from lib.topics.version import Version


def draw(version: Version, matrix: str = "A", size: int = 4096, variant: str | None = None) -> None:
    """Draw the rows of a tensor map's box as sectors of global memory.

    Parameters
    ----------
    matrix : {"A", "B", "C"}
        Of those that the kernel takes through tensor maps.
    """
    chosen = version.kernel.variant(variant)
    if chosen.maps is None or matrix not in chosen.maps.boxes:
        raise ValueError(f"{version.kernel.stem} {chosen.name} loads no {matrix} by TMA")
    rows, columns = chosen.maps.boxes[matrix]
    item = ITEM_BYTES[chosen.out if matrix == "C" else chosen.dtype]
    found = box.box(rows, columns * item, size * item)
    show(box_figure.draw(found, name=matrix,
                         evidence="modelled: sectors of a tensor map's box"))


def draw_placed(version: Version, variant: str | None = None) -> None:
    """Draw where the boxes of one step lie in A and B, and where in the stage they land.

    Parameters
    ----------
    version : Version
        18 or later, B by rows.

    Raises
    ------
    ValueError
        If the variant loads no A and B by TMA.
    """
    chosen = version.kernel.variant(variant)
    if chosen.maps is None or not {"A", "B"} <= set(chosen.maps.boxes):
        raise ValueError(f"{version.kernel.stem} {chosen.name} loads no A and B by TMA")
    found = box.placed(chosen.tile, chosen.step, chosen.maps.boxes["A"], chosen.maps.boxes["B"],
                       ITEM_BYTES[chosen.dtype])
    show(box_figure.placed(
        found, evidence=f"modelled: {version.kernel.stem}, {chosen.name}; a block and a step of a "
                        "small product"))
