"""What the register banks allow the inner loops."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.display import once_recorded, table
from lib.topics.compute.register_banks.model import reading
from lib.topics.version import Version


@once_recorded()
def operands(
    version: Version, *variants: str, above: Sequence[str] = (), arch: str = "sm_90a"
) -> None:
    """Display what the register banks allow the inner loops: cycles for 128 FFMA of a warp."""
    rows = []
    for one in version.rows(variants, above):
        found = reading(one.page.compiled(arch, one.variant.name).inner_loop)
        rows.append((one.name, one.variant.meaning,
                     f"{found.others:.1f}", f"{found.lost:.1f}", f"{found.per_128:.1f}"))
    table(
        ("for 128 FFMA", "", "other instructions", "cycles lost to banks", "cycles at least"),
        rows, f"modelled from SASS of the inner loops, {arch}, NVRTC "
        f"{version.compiled(arch).toolkit}: two banks, an operand cache, one warp",
    )
