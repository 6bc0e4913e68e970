"""What a warp's accesses touch in global memory, and which banks they meet, of a traced run."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.display import show
from lib.show import banks as served
from lib.show import coalescing as touched
from lib.topics.memory.accesses.model import ARGUMENTS, named
from lib.topics.version import Version


def coalescing(
    version: Version, *variants: str, shape: tuple[int, int, int] | None = None,
    watch: tuple[int, int] = (0, 0), sms: int | None = None,
    arguments: Sequence[str] = ARGUMENTS, but: Sequence[str] = (),
) -> None:
    """Draw what a warp's loads and stores touched in global memory, variant by variant.

    Parameters
    ----------
    version : Version
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
    groups: list[touched.Group] = []
    chosen = [version.kernel.variant(name) for name in variants] or version.kernel.variants
    for variant in chosen:
        if shape:
            options = {"sms": sms} if sms else {}
            launch = version.run(variant.problem(*shape), variant.name, backend="emulator",
                                 exact=True, watch=watch, **options).emulated
        else:
            launch = version.traced(variant.name).emulated
        panels = [
            touched.panel(access.label, access.access, access.allocation, array=access.array,
                  kind=access.kind, where=access.where)
            for access in sorted(named(launch, "global", arguments),
                                 key=lambda access: access.kind == "store")
            if access.array not in but
        ]
        if panels:
            groups.append(touched.Group(variant.name if len(chosen) > 1 else "", panels))
        if not groups and variant is chosen[-1] or variants and not panels:
            raise ValueError(f"{version.kernel.stem}, {variant.name}: no lane reads or writes "
                             "global memory itself; draw its boxes instead: box()")
    evidence = version.emulated_label()
    if shape:
        evidence = (f"emulated: {version.kernel.min_arch} PTX, {'×'.join(map(str, shape))}"
                    + f" on {sms} SMs" * (sms is not None))
    show(touched.draw(groups, evidence=evidence))


def banks(version: Version, variant: str | None = None, kind: str | None = None) -> None:
    """Draw which banks a warp's shared accesses meet: of one kind, or of all."""
    panels = [
        served.panel(access.label, access.access, kind=access.kind, where=access.where,
              source=access.source, past_l1=access.past_l1)
        for access in sorted(named(version.traced(variant).emulated, "shared"),
                             key=lambda access: access.kind in ("load", "ldmatrix"))
        if kind in (None, access.kind)
    ]
    if not panels:
        raise ValueError(f"{version.kernel.stem} has no shared memory to draw")
    show(served.draw(panels, evidence=version.emulated_label()))
