"""An instruction of a chapter's kernel, part by part."""

from __future__ import annotations

import html
from collections.abc import Sequence

from lib.compiler.compiled import Compiled
from lib.plotting.display import note, table
from lib.topics.code.instruction import model
from lib.topics.version import Version

NEWEST = "sm_90a"


def apart(version: Version, opcode: str, arch: str = "", variant: str | None = None,
          only: Sequence[str] = ()) -> None:
    """Display one PTX instruction of this build, each part explained, and its machine instruction.

    Parameters
    ----------
    opcode : str
        Parts of the mnemonic, such as ``"mma.sync"``, ``"ldmatrix.trans"`` or
        ``"cp.async.bulk.tensor.multicast"`` (see `lib.topics.code.instruction.model.apart`).
    arch : str
        What it is compiled for: sm_90a, unless the kernel needs a newer one.
    only : sequence of str
        Parts to explain, where an earlier page has the others; all if none is named.

    Raises
    ------
    ValueError
        If the kernel has no such instruction, the instruction no such part, or one of its parts
        has no meaning on file.
    """
    arch = arch or _arch(version, variant)
    apart_of(version.compiled(arch, variant), opcode, only)


def apart_of(compiled: Compiled, opcode: str, only: Sequence[str] = ()) -> None:
    """Display one PTX instruction of compiled code, as `apart` does."""
    found = model.apart(compiled.ptx, compiled.sass, opcode)
    missing = set(only) - {part.token for part in found.parts}
    if missing:
        raise ValueError(f"{opcode} has no part {', '.join(sorted(missing))}")
    rows: list[tuple[str, str]] = [(_code(part.token), part.meaning) for part in found.parts
                                   if not only or part.token in only]
    machine = [f"{count} × {_code(text)}" if count > 1 else _code(text)
               for text, count in zip(found.sass, found.counts, strict=True)]
    rows.append(("SASS: " + (", ".join(machine) or "none"), found.sass_meaning))
    opcode, _, operands = found.ptx.partition(" ")
    note("```text\n" + opcode + (f"\n    {operands}" if operands else "") + "\n```")
    table(("part", "what it means"), rows,
          f"PTX and SASS of this source for {compiled.arch}; registers are named by what they hold")


def _arch(version: Version, variant: str | None) -> str:
    oldest = version.kernel.variant(variant).min_arch or version.kernel.min_arch
    return max(NEWEST, oldest, key=lambda arch: int(arch.strip("sm_af")))


def _code(token: str) -> str:
    """Code that a narrow screen may break behind a double colon, a point or a comma."""
    text = html.escape(token, quote=False).replace("|", "&#124;")
    text = text.replace("::", "::<wbr>").replace(".", ".<wbr>").replace(", ", ",</code> <code>")
    return f"<code>{text.lstrip()}</code>"
