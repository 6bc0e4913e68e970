"""What the issue slots of an inner loop are spent on, drawn from its SASS."""

from __future__ import annotations

from collections.abc import Mapping

from lib.plotting.display import show
from lib.topics.instruction_mix import figure as mix_figure
from lib.topics.instruction_mix import model as mix
from lib.topics.version import Version, rung


def draw(version: Version, arch: str = "sm_90a") -> None:
    """Draw what the inner loop's issue slots are spent on, against the version before."""
    def of(version: Version) -> tuple[str, Mapping[str, float]]:
        loop = version.compiled(arch).inner_loop
        return rung(version.kernel), mix.per_thousand_fma(i.opcode for i in loop)

    evidence = f"modelled: SASS of the inner loop, {arch}, NVRTC {version.compiled(arch).toolkit}"
    show(mix_figure.draw(of(version), version.before and of(version.before), evidence=evidence))


def products_mix(version: Version, arch: str = "sm_90a") -> None:
    """Draw what the inner loop issues for a thousand products of 16×8×16 of a warp, against
    the version before: their tensor instructions are of other sizes."""
    def of(version: Version) -> tuple[str, Mapping[str, float]]:
        loop = version.compiled(arch).inner_loop
        return rung(version.kernel), mix.per_thousand_products(i.opcode for i in loop)

    show(mix_figure.draw(
        of(version), version.before and of(version.before), unit="products of 16×8×16",
        evidence=f"modelled: SASS of the inner loop, {arch}, NVRTC "
        f"{version.compiled(arch).toolkit}",
    ))
