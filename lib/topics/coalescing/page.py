"""What the accesses of a warp touch in global memory, drawn from a traced run."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.accesses.model import named
from lib.topics.coalescing import figure as coalescing_figure
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
        launch = version.traced(variant.name).emulated
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
    show(*(coalescing_figure.draw(groups, evidence=version.emulated_label(), narrow=narrow)
           for narrow in (False, True)))
