"""Draw what limits resident blocks: four bars for each GPU, and tables of registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lib import gpus
from lib.compiler.arch import legal
from lib.gpus import GPUS
from lib.kernels.spec import Variant
from lib.show.display import show, table
from lib.show.markdown import markdown
from lib.show.occupancy import Occupancy, occupancy
from lib.show.scene import Scene, Span, column, lanes, words
from lib.show.version import Version
from lib.show.words import percent, plural


def picture(found: Mapping[str, Occupancy]) -> Scene:
    """Draw four bars for each GPU, by its key: a segment is what one block takes."""
    return Scene(_finding(found), column(*(
        column(words(f"{key}: {plural(one.blocks, 'block')} an SM, {one.warps} warps "
                     f"({percent(one.fraction)} of its slots)", bold=True),
               lanes([(f"{name}: room for {limit}", _blocks(one, name))
                      for name, limit in one.limits.items()], 1.0, tall=12))
        for key, one in found.items())), "modelled: CUDA Occupancy Calculator's rules",
        "bar = what one SM has; segment = one block's share; pink: the limit")


def _blocks(one: Occupancy, name: str) -> list[Span]:
    colour = "focus" if name in one.limited_by.split(" and ") else "other pale"
    share = one.used[name] / one.blocks
    return [*((i * share, (i + 1) * share, colour, "") for i in range(one.blocks)),
            (one.used[name], 1.0, "hollow", "")]


def _finding(found: Mapping[str, Occupancy]) -> str:
    limits = {one.limited_by for one in found.values()}
    if len(limits) == 1 and len(found) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on {', '.join(found)}"
    if len(limits) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on every GPU"
    parts = [f"{one.limited_by} on {key}" for key, one in found.items()]
    return f"What limits the resident blocks: {'; '.join(parts)}"


def draw(version: Version) -> None:
    """Draw what limits resident blocks on a T4, an A100 and an H100, as far as they run it."""
    variant = version.kernel.fastest
    found = {}
    for arch in legal(version.kernel.needs(variant)):
        used, key = version.compiled(arch).resources, gpus.for_arch(arch).key
        if used.shared_bytes <= gpus.GPUS[key].shared_bytes_per_block:
            found[key] = occupancy(gpus.GPUS[key], used.registers, used.shared_bytes,
                                   variant.threads)
    show(picture(found))


def resources(version: Version, *variants: str) -> None:
    """Display registers, shared memory, spills and resident warps for each architecture.

    Parameters
    ----------
    *variants : str
        All of them if none is named.
    """
    rows = []
    for variant in map(version.kernel.variant, version.named(variants)):
        rows += [_resource_row(version, variant, arch, gpus.for_arch(arch).key)
                 for arch in legal(version.kernel.needs(variant))]
    toolkit = version.compiled(legal(version.kernel.min_arch)[-1]).toolkit
    table(
        ("variant", "for", "registers per thread", "shared B per block", "spilled B",
         "warps per SM", "limited by"),
        rows, f"modelled: CUDA's occupancy rules on what ptxas of NVRTC {toolkit} reports",
    )


def _resource_row(version: Version, variant: Variant, arch: str, key: str) -> tuple[object, ...]:
    used, gpu = version.compiled(arch, variant.name).resources, gpus.GPUS[key]
    spilled = used.spill_store_bytes + used.spill_load_bytes
    if used.shared_bytes > gpu.shared_bytes_per_block:
        resident = "none: too large", "shared memory"
    else:
        fits = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
        resident = f"{fits.warps} of {gpu.warps_per_sm}", fits.limited_by
    return (
        variant.name, f"{arch} ({key})", used.registers, f"{used.shared_bytes:,}", spilled,
        *resident,
    )


def residents(registers: Iterable[int], *, threads: int) -> str:
    """Warps resident on one SM of a T4, an A100 and an H100, for several register counts."""
    keys = ("T4", "A100", "H100")
    rows = []
    for count in registers:
        fits = [occupancy(GPUS[key], count, 0, threads) for key in keys]
        rows.append((count, *(f"{fit.warps} ({100 * fit.fraction:.3g}%), {fit.limited_by}"
                              for fit in fits)))
    return markdown(("registers per thread", *keys), rows)
