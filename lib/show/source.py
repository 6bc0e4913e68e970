"""The code of a version: its difference to the one before, its machine code, its variants."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from IPython.display import display

from lib.compiler.fingerprint import without_marks
from lib.kernels import source
from lib.paths import CUDA
from lib.ptx.files import text_of
from lib.show.display import note
from lib.show.version import Version

# The class of a line of a difference, by its mark.
_MARKS = {" ": "kept", "+": "added", "-": "removed", "~": "moved", "…": "out"}
# What an excerpt may leave out: it says nothing of what is computed.
UNROLL = "#pragma unroll\n"
# Inside the output: a page and Colab show it alike.
_STYLE = (
    "<style>.changes{white-space:pre-wrap;font-size:.8125rem;line-height:1.45;margin:1rem 0;"
    "padding:.5rem 0;border:1px solid rgba(128,128,128,.4)}"
    ".changes span{display:block;padding:0 .75rem 0 2.25rem;text-indent:-1.5rem}"
    ".changes .added{background:rgba(31,162,116,.2)}"
    ".changes .removed{background:rgba(214,69,27,.16)}"
    ".changes .moved{background:rgba(58,139,224,.16)}"
    ".changes .out{font-style:italic}</style>"
)


def code(version: Version) -> None:
    """Display the difference to the version before, or a new kernel; the whole file folded."""
    if version.before is None or source.is_new(version.kernel):
        note(f"```cpp\n{source.body(version.kernel)}```")
    else:
        before = version.before.kernel.stem
        show_changes(source.difference(version.kernel), f"from {before} to {version.kernel.stem}")
    note(_folded(version))


def show_changes(lines: Sequence[source.Line], what: str) -> None:
    """Display a difference: added, removed and moved lines, wrapped to the column."""
    rows = "".join(
        f'<span class="{_MARKS[line.mark]}">{line.mark} {html.escape(line.text)}</span>'
        for line in lines)
    key = "+ added, - removed, ~ moved or indented anew"
    display({
        "text/html": f'{_STYLE}<pre class="changes" tabindex="0" role="region" '
                     f'aria-label="Difference {what}">{rows}</pre><small>{key}</small>',
        "text/plain": "\n".join(f"{line.mark} {line.text}".rstrip() for line in lines)}, raw=True)


def excerpt(version: Version, first: str, last: str, variant: str | None = None,
            closed: bool = False, arguments: Mapping[str, str] | None = None) -> None:
    """Display the lines of the kernel from one that holds `first` to one that holds `last`.

    Parameters
    ----------
    first, last : str
        Parts of those two lines.
    variant : str, optional
        Whose file; the version's own if left out.
    closed : bool
        Whether to go on until every brace opened in these lines is closed.
    arguments : mapping of str to str, optional
        Text of these lines, and what an instantiation makes of it. The caption says so.

    Raises
    ------
    ValueError
        If the kernel has no such lines, or the lines no such text.
    """
    _excerpt(version.kernel.file(version.kernel.variant(variant)), first, last, closed, arguments)


def of_header(header: str, first: str, last: str, closed: bool = False,
              arguments: Mapping[str, str] | None = None) -> None:
    """Display lines of a header that kernels share, as `excerpt` does those of a kernel.

    Parameters
    ----------
    header : str
        Of ``cuda/include``, such as ``"multicast.cuh"``.
    first, last, closed, arguments
        As of `excerpt`.
    """
    _excerpt(CUDA / "include" / header, first, last, closed, arguments)


def _excerpt(file: Path, first: str, last: str, closed: bool,
             arguments: Mapping[str, str] | None) -> None:
    listing = source.excerpt(without_marks(text_of(file)), first, last, closed)
    arguments = arguments or {}
    for old, new in arguments.items():
        listing = source.edited(listing, old, new)
    changed = ["without `#pragma unroll`"] if UNROLL in arguments else []
    if set(arguments) - {UNROLL}:
        changed.insert(0, "with this version's constants")
    said = ", " + " and ".join(changed) if changed else ""
    note(f"```cpp\n{listing}```\n\n*cuda/{file.relative_to(CUDA)}{said}*")


def _folded(version: Version) -> str:
    file = f"cuda/{version.kernel.source.name}"
    return (
        f"<details><summary>The whole of <code>{file}</code>, without the timeline's marks"
        f"</summary>\n\n```cpp\n{source.listing(version.kernel)}```\n\n</details>"
    )


def inner_loop(version: Version, arch: str = "sm_90a") -> None:
    """Display the inner loop's machine code, folded."""
    rows = [f"{i.address:04x}  {i.text}" for i in version.compiled(arch).inner_loop]
    listing = "\n".join(rows)
    note(f"<details><summary>The inner loop's {len(rows)} machine instructions for {arch}"
         f"</summary>\n\n```text\n{listing}\n```\n\n</details>")
