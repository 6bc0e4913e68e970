"""What the accesses of a warp touch in global memory, drawn from a traced run."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.display import both
from lib.topics.memory.accesses.model import ARGUMENTS, named
from lib.topics.memory.coalescing import figure as coalescing_figure
from lib.topics.version import Version


def draw(
    version: Version, *variants: str, shape: tuple[int, int, int] | None = None,
    watch: tuple[int, int] = (0, 0), sms: int | None = None,
    arguments: Sequence[str] = ARGUMENTS, but: Sequence[str] = (),
) -> None:
    """Draw what a warp's loads and stores touched in global memory, variant by variant.

    Parameters
    ----------
    *variants : str
        All of them if none is named, but for those whose matrices the copy engine moves.
    shape : (int, int, int), optional
        M, N and K of another run than the traced one, whose block and warp are `watch`.
    watch : (int, int)
    sms : int, optional
        How many SMs that run is launched for, where not for the book's GPU.
    arguments : sequence of str
        Names of the kernel's arguments, where it has others.
    but : sequence of str
        Arrays to leave out.
    """
    groups = []
    chosen = [version.kernel.variant(name) for name in variants] or version.kernel.variants
    for variant in chosen:
        if shape:
            options = {"sms": sms} if sms else {}
            launch = version.run(variant.problem(*shape), variant.name, backend="emulator",
                                 exact=True, watch=watch, **options).emulated
        else:
            launch = version.traced(variant.name).emulated
        panels = [
            coalescing_figure.panel(one.label, one.access, one.allocation, array=one.array,
                                    kind=one.kind, where=one.where)
            for one in sorted(named(launch, "global", arguments), key=lambda n: n.kind == "store")
            if one.array not in but
        ]
        name = variant.name if len(chosen) > 1 else ""
        if panels:
            groups.append(coalescing_figure.Group(name, panels))
        if not groups and variant is chosen[-1] or variants and not panels:
            raise ValueError(f"{version.kernel.stem}, {variant.name}: no lane reads or writes "
                             "global memory itself; draw its boxes instead: box()")
    evidence = version.emulated_label()
    if shape:
        evidence = (f"emulated: {version.kernel.min_arch} PTX, {'×'.join(map(str, shape))}"
                    + f" on {sms} SMs" * (sms is not None))
    both(coalescing_figure.draw, groups, evidence=evidence)
