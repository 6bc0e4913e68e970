"""The lines of a card: those that change, marked; under them the kernel as a file of its own."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from IPython.display import display
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from lib.kernels.spec import Kernel, Variant
from lib.paths import CUDA
from lib.topics.code.card.model import instantiated, lines, standing_alone
from lib.topics.version import Version

# Inside the output: a page and Colab show it alike.
_STYLE = (
    "<style>.card-code .changed{background:rgba(31,162,116,.22);display:inline-block;width:100%;"
    "box-shadow:-.35rem 0 0 rgb(31,162,116)}.card-code pre{padding-left:1rem}"
    "details.whole-kernel{margin:.5rem 0 1rem}</style>"
)


def change(
    version: Version, *pieces: tuple[str, str], variant: str | None = None,
    before: str | None = None, edits: Mapping[str, str] | None = None, whole: bool = True,
) -> None:
    """Display the lines that change, marked where the version before hasn't got them.

    Parameters
    ----------
    version : Version
    *pieces : (str, str)
        Parts of the first and the last line of each piece, braces closed. They are looked for in
        the kernel as its instantiation reads: see `instantiated`.
    variant : str, optional
        The version's fastest if left out.
    before : str, optional
        ``"stem/variant"`` to mark against; the fastest of the version before if left out.
    edits : mapping of str to str, optional
        Text of these lines, and what is shorter to read.
    whole : bool
        Whether the whole kernel is folded under them.

    Raises
    ------
    ValueError
        If there are no such lines or no such text, or more lines than a card has room for.
    """
    kernel = version.kernel
    chosen = kernel.variant(variant) if variant else kernel.fastest
    rows, marked = lines(kernel, chosen, pieces, _before(version, before), edits or {})
    file = kernel.file(chosen).relative_to(CUDA)
    said = f"<i>cuda/{file}, constants filled in"
    if marked:
        said += "; marked: what the version before hasn't got"
    display({
        "text/html": f'{_STYLE}<div class="card-code">{_highlighted(rows, marked)}</div>'
                     f"<small>{said}.</i></small>{_whole(kernel, chosen) if whole else ''}",
        "text/plain": "\n".join(f"{'+' if number in marked else ' '} {row}".rstrip()
                                for number, row in enumerate(rows, 1))}, raw=True)


def _before(version: Version, named: str | None) -> tuple[Kernel, Variant] | None:
    if named is not None:
        stem, _, name = named.partition("/")
        kernel = version.of(stem).kernel
        return kernel, kernel.variant(name) if name else kernel.fastest
    return (version.before.kernel, version.before.kernel.fastest) if version.before else None


def _highlighted(rows: Sequence[str], marked: Sequence[int]) -> str:
    """Code in the page's colours, an element around each line, as the page's other blocks have."""
    form = HtmlFormatter(cssclass="highlight", nowrap=True)
    coloured = highlight("\n".join(rows), CudaLexer(stripnl=False), form).splitlines()
    inside = "".join(
        f'<span class="code-line{" changed" if number in marked else ""}"'
        f' style="--at:{len(row) - len(row.lstrip())}">{line}</span>\n'
        for number, (row, line) in enumerate(zip(rows, coloured, strict=True), 1))
    return ('<div class="highlight-cpp notranslate"><div class="highlight"><pre>'
            f"<span></span>{inside}</pre></div></div>")


def _whole(kernel: Kernel, variant: Variant) -> str:
    """The kernel as it reads, folded; in it, folded again and to copy, the file."""
    file = standing_alone(kernel, variant)
    name = html.escape(f"{kernel.stem}/{variant.name}")
    return (
        '<details class="whole-kernel"><summary>The whole kernel</summary>'
        f"{_highlighted(instantiated(kernel, variant).splitlines(), ())}"
        '<details class="whole-kernel"><summary>To copy: a file that compiles alone</summary>'
        '<div class="highlight-cpp notranslate"><div class="highlight"><pre>'
        f"{html.escape(file)}</pre></div></div>"
        f"<small>With its launch and a test: <code>python -m lib export {name}</code></small>"
        "</details></details>")
