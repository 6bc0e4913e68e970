"""Registers, shared memory and resident warps of a version."""

from __future__ import annotations

from collections.abc import Iterable

from lib import gpus
from lib.compiler.arch import legal
from lib.gpus import GPUS
from lib.kernels.spec import Variant
from lib.plotting.display import both, table
from lib.plotting.markdown import markdown
from lib.topics.limits.occupancy import figure as occupancy_figure
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.version import Version


def draw(version: Version) -> None:
    """Draw what limits resident blocks on a T4, an A100 and an H100, as far as they run it."""
    variant = version.kernel.fastest
    found = {}
    for arch in legal(version.kernel.needs(variant)):
        used, key = version.compiled(arch).resources, gpus.for_arch(arch).key
        if used.shared_bytes <= gpus.GPUS[key].shared_bytes_per_block:
            found[key] = occupancy(gpus.GPUS[key], used.registers, used.shared_bytes,
                                   variant.threads)
    both(occupancy_figure.draw, found)


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


def residents(registers: Iterable[int], *, threads: int, shared_bytes: int = 0) -> str:
    """Warps resident on one SM of a T4, an A100 and an H100, for several register counts."""
    keys = ("T4", "A100", "H100")
    rows = []
    for count in registers:
        fits = [occupancy(GPUS[key], count, shared_bytes, threads) for key in keys]
        rows.append((count, *(f"{fit.warps} ({100 * fit.fraction:.3g}%), {fit.limited_by}"
                              for fit in fits)))
    return markdown(("registers per thread", *keys), rows)
