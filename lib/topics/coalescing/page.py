"""What the accesses of a warp touch in global memory, drawn from a traced run."""

from __future__ import annotations

from collections.abc import Iterable

from lib.plotting.display import show
from lib.plotting.markdown import markdown
from lib.topics.accesses.model import named
from lib.topics.coalescing import figure as coalescing_figure
from lib.topics.coalescing import model as coalescing
from lib.topics.version import Version


def draw(version: Version, *variants: str) -> None:
    """Draw what a warp's loads and stores touched in global memory, variant by variant.

    Parameters
    ----------
    version : Version
    *variants : str
        All of them if none is named, but for those whose matrices the copy engine moves.
    """
    groups = []
    chosen = [version.kernel.variant(name) for name in variants] or version.kernel.variants
    for variant in chosen:
        launch = version.traced(variant.name).launch
        panels = [
            coalescing_figure.panel(
                one.label, one.access, one.allocation, array=one.array, kind=one.kind,
                where=one.where,
            )
            for one in sorted(named(launch, "global"), key=lambda n: n.kind == "store")
        ]
        name = variant.name if len(chosen) > 1 else ""
        if panels:
            groups.append(coalescing_figure.Group(name, panels))
        if not groups and variant is chosen[-1] or variants and not panels:
            raise ValueError(f"{version.kernel.stem}, {variant.name}: no lane reads or writes "
                             "global memory itself; draw its boxes instead: box()")
    show(coalescing_figure.draw(groups, evidence=version.emulated_label()))


def sectors(strides: Iterable[int], bytes_per_lane: int = 4) -> str:
    """What one load of a warp costs, for several distances between neighbouring lanes.

    Parameters
    ----------
    strides : iterable of int
        Elements from one lane's address to the next lane's.
    bytes_per_lane : int
        Size of an element, B.
    """
    rows = []
    for stride in strides:
        found = coalescing.describe(coalescing.strided(stride, bytes_per_lane=bytes_per_lane))
        rows.append((stride, len(found.sectors), found.moved_bytes, found.useful_bytes,
                     f"{100 * found.efficiency:.3g}%"))
    return markdown(("stride, elements", "sectors", "bytes moved", "bytes used", "useful"), rows)
