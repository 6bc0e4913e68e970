"""What the issue slots of an inner loop are spent on, drawn from its SASS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lib.plotting.display import both, table
from lib.topics.code.instruction_mix import figure as mix_figure
from lib.topics.code.instruction_mix import model as mix
from lib.topics.version import Version, short_name


def draw(version: Version, arch: str = "sm_90a") -> None:
    """Draw what the inner loop's issue slots are spent on, against the version before."""
    def of(version: Version) -> tuple[str, Mapping[str, float]]:
        loop = version.compiled(arch).inner_loop
        return short_name(version.kernel), mix.per_thousand_fma(i.opcode for i in loop)

    evidence = f"modelled: SASS of the inner loop, {arch}, NVRTC {version.compiled(arch).toolkit}"
    before = of(version.before) if version.before else None
    both(mix_figure.draw, of(version), before, evidence=evidence)


def products_mix(version: Version, arch: str = "sm_90a") -> None:
    """Draw what the inner loop issues for a thousand products of 16×8×16 of a warp, against
    the version before: their tensor instructions are of other sizes."""
    def of(version: Version) -> tuple[str, Mapping[str, float]]:
        loop = version.compiled(arch).inner_loop
        return short_name(version.kernel), mix.per_thousand_products(i.opcode for i in loop)

    before = of(version.before) if version.before else None
    both(mix_figure.draw, of(version), before, unit="products of 16×8×16",
         evidence=f"modelled: SASS of the inner loop, {arch}, NVRTC "
                  f"{version.compiled(arch).toolkit}")


def fragment_loads(version: Version, above: Sequence[str] = (), *archs: str) -> None:
    """Display how many loads of the inner loop bring the fragments of one tensor instruction.

    Parameters
    ----------
    *archs : str
        The oldest and the newest that the kernel is compiled for, if none is named.
    """
    rows = []
    for arch in archs or (version.kernel.min_arch, "sm_90a"):
        for one in version.rows((), above):
            loop = one.page.compiled(arch, one.variant.name).inner_loop
            found = mix.per_thousand_fma(i.opcode for i in loop)
            wide, narrow = (found.get(f"matrix load, {bits} bit", 0) for bits in (128, 64))
            other = sum(n for kind, n in found.items() if kind.startswith("shared load"))
            tensor = next(i.opcode for i in loop if i.base == "HMMA")
            rows.append((f"{one.name}, {arch}", f"`{tensor}`",
                         *(f"{n / 1000:.3f}" for n in (narrow, wide, other))))
    table(
        ("", "tensor instruction", "LDSM, 2 matrices, per tensor instruction", "LDSM, 4 matrices",
         "other shared loads"), rows,
        f"modelled: SASS of the inner loops, NVRTC {version.compiled('sm_90a').toolkit}",
    )
