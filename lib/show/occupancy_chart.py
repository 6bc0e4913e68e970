"""Draw what limits resident blocks: four bars for each GPU, and tables of registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure

from lib import gpus
from lib.compiler.arch import legal
from lib.gpus import GPUS
from lib.kernels.spec import Variant
from lib.show import chart as style
from lib.show.display import both, table
from lib.show.markdown import markdown
from lib.show.occupancy import Occupancy, occupancy
from lib.show.version import Version

_NAME, _BAR, _ROW, _TITLE = 92.0, 270.0, 14.0, 21.0
# A GPU's blocks stand under its name, the room for them under each bar.
_NARROW_NAME, _NARROW_BAR, _NARROW_ROW, _NARROW_TITLE = 88.0, 160.0, 25.0, 34.0


@style.styled
def picture(found: Mapping[str, Occupancy], *, narrow: bool = False) -> Figure:
    """Draw the four bars for each GPU.

    Parameters
    ----------
    found : mapping of str to Occupancy
        By GPU key, in the order to draw.
    """
    left, full, row, head = ((_NARROW_NAME, _NARROW_BAR, _NARROW_ROW, _NARROW_TITLE) if narrow
                             else (_NAME, _BAR, _ROW, _TITLE))
    each = head + 4 * row + 12
    height = each * len(found)
    fig, ax = style.canvas(_finding(found), height, narrow)
    y = height
    for key, one in found.items():
        ax.text(0, y - 15, key, size=style.LARGE, weight="bold", va="bottom")
        ax.text(
            0 if narrow else left, y - (29 if narrow else 14),
            f"{style.plural(one.blocks, 'block')} an SM, {one.warps} warps "
            f"({style.percent(one.fraction)} of its slots)",
            size=style.NORMAL, va="bottom",
        )
        y -= head
        limiting = one.limited_by.split(" and ")
        for name, used in one.used.items():
            y -= row
            limits, bar = name in limiting, 13 if narrow else 1
            colour = style.FOCUS if limits else style.OTHER
            share = used / one.blocks * full
            ax.text(left - 6, y + bar + 4, name, ha="right", va="center",
                    weight="bold" if limits else "normal")
            cut = 1.0 if share > 3 else 0.0
            style.rectangles(
                ax, [(left + i * share, y + bar, share - cut, 9) for i in range(one.blocks)],
                facecolor=colour, alpha=1.0 if limits else 0.6)
            style.frames(ax, [(left, y + bar, full, 9)], 0.5, alpha=0.6)
            fits = f"room for {style.plural(one.limits[name], 'block')}"
            fits += ": the limit" if limits else ""
            ax.text(left if narrow else left + full + 6, y + 5, fits, va="center",
                    weight="bold" if limits else "normal")
        y -= 12
    return style.finish(fig, alt=_alt(found),
                        evidence="modelled: CUDA Occupancy Calculator's rules",
                        note="bar = what one SM has; segment = one block's share")


def _finding(found: Mapping[str, Occupancy]) -> str:
    limits = {one.limited_by for one in found.values()}
    if len(limits) == 1 and len(found) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on {', '.join(found)}"
    if len(limits) == 1:
        return f"{limits.pop().capitalize()} limit the resident blocks on every GPU"
    parts = [f"{one.limited_by} on {key}" for key, one in found.items()]
    return f"What limits the resident blocks: {'; '.join(parts)}"


def _alt(found: Mapping[str, Occupancy]) -> str:
    return " ".join(
        f"{key}: {style.plural(one.blocks, 'block')} of {one.warps // one.blocks} warps fit an SM, "
        f"{style.percent(one.fraction)} of its warps, limited by {one.limited_by} ("
        + "room by " + ", ".join(f"{name} for {limit}" for name, limit in one.limits.items())
        + ")."
        for key, one in found.items()
    )


def draw(version: Version) -> None:
    """Draw what limits resident blocks on a T4, an A100 and an H100, as far as they run it."""
    variant = version.kernel.fastest
    found = {}
    for arch in legal(version.kernel.needs(variant)):
        used, key = version.compiled(arch).resources, gpus.for_arch(arch).key
        if used.shared_bytes <= gpus.GPUS[key].shared_bytes_per_block:
            found[key] = occupancy(gpus.GPUS[key], used.registers, used.shared_bytes,
                                   variant.threads)
    both(picture, found)


def resources(version: Version, *variants: str) -> None:
    """Display registers, shared memory, spills and resident warps for each architecture.

    Parameters
    ----------
    *variants : str
        All of them if none is named.
    """
    rows = []
    names = variants or tuple(v.name for v in version.kernel.variants)
    for variant in map(version.kernel.variant, names):
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
