"""The code of a version: its difference to the one before, its machine code, its variants."""

from __future__ import annotations

import re

from lib.kernels import source
from lib.plotting.display import note, table
from lib.topics.version import Version


def code(version: Version) -> None:
    """Display the difference to the version before, or a new kernel; the whole file folded."""
    language = "cpp" if source.is_new(version.kernel) else "diff"
    file = f"cuda/{version.kernel.source.name}"
    note(
        f"```{language}\n{source.difference(version.kernel)}```\n\n"
        f"<details><summary>The whole of <code>{file}</code>, without the timeline's marks"
        f"</summary>\n\n```cpp\n{source.listing(version.kernel)}```\n\n</details>"
    )


def inner_loop(version: Version, arch: str = "sm_90a") -> None:
    """Display the inner loop's machine code, folded."""
    rows = [f"{i.address:04x}  {i.text}" for i in version.compiled(arch).inner_loop]
    listing = "\n".join(rows)
    note(f"<details><summary>The inner loop's {len(rows)} machine instructions for {arch}"
         f"</summary>\n\n```text\n{listing}\n```\n\n</details>")


def instruction(version: Version, opcode: str, arch: str = "sm_90a") -> None:
    """Display the first PTX instruction of the first variant that begins so, lists shortened.

    Raises
    ------
    ValueError
        If it has none.
    """
    statements = re.findall(rf"^\s*({re.escape(opcode)}[^;]*;)", version.compiled(arch).ptx, re.M)
    if not statements:
        raise ValueError(f"{version.kernel.stem} has no instruction {opcode} for {arch}")
    short = re.sub(r"\{([^,{}]+),(?:[^{},]*,){4,}([^,{}]+)\}", r"{\1, …,\2}", statements[0])
    note(f"```text\n{' '.join(short.split())}\n```\n\nPTX that NVRTC makes of this source for "
         f"{arch}.")


def variants(version: Version, *names: str) -> None:
    """Display what the variants are, and their tiles."""
    chosen = [version.kernel.variant(name) for name in names] or version.kernel.variants
    table(
        ("variant", "what it is", "tile", "threads"),
        [(v.name, v.meaning, f"{v.tile[0]}×{v.tile[1]}×{v.step}", v.threads) for v in chosen],
        "modelled: the catalogue",
    )
