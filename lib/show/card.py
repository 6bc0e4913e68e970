"""A kernel's text as one instantiation reads: constants in their places, dead branches gone."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from IPython.display import display
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from lib.compiler.fingerprint import without_marks
from lib.kernels.catalogue import find
from lib.kernels.folding import folded
from lib.kernels.source import body_of, edited, excerpt
from lib.kernels.spec import Kernel, Variant, parted
from lib.paths import CUDA
from lib.ptx.files import text_of
from lib.run.export import flattened
from lib.show.version import Version

# Lines that a card shows at most: a screen.
MAX_LINES = 30
_LEFT_OUT = "// …"
# What says nothing of what is computed; how far a loop is unrolled does.
_SILENT = re.compile(r"\s*(?:#pragma unroll(?:\(.*\)| [A-Z]+)?|static_assert\(.*\);)(?: *//.*)?$")
_CONSTEXPR = re.compile(r"^ *constexpr (?:int|unsigned|bool) ((?:[^;/]|/(?!/))*);.*\n", re.M)
_ARITHMETIC = re.compile(r"[\d\s()+*/%<>=!&|-]+")
# What binds as it stands: products, differences, and all that parentheses of their own hold.
_OPERATIONS = (re.compile(r"(?<![\w>])\((\d+ [*/+%-] \d+)\)"),
               re.compile(r"(?<![*/%] )\b(\d+ [*/%] \d+)\b(?![.\w])"),
               re.compile(r"(?<![*/%+-] )\b(\d+ - \d+)\b(?![.\w]| [*/%])"))
_COMPARISON = re.compile(r"(?<![*/%+-] )\b(\d+ (?:==|!=|<|>|<=|>=) \d+)\b(?! [*/+%-])")
# A part of a choice, its parentheses closed.
_PART = r"(?:[^][()<>?:;,]|\([^()]*\)|\[[^][]*\])+"


def instantiated(kernel: Kernel, variant: Variant) -> str:
    """A kernel from its template on, without the template, marks, assertions and pragmas.

    Template arguments and the constants that follow from them stand as numbers; of a choice that
    they decide, the part that is compiled.
    """
    text = body_of(without_marks(text_of(kernel.file(variant))))
    text = "\n".join(line for line in text.splitlines() if not _SILENT.match(line)) + "\n"
    text = re.sub(r"^(#pragma unroll \d+.*)\n( *)", r"\2\1\n\2", text, flags=re.M)
    values = _arguments(text, kernel.expression(variant))
    helpers, text = re.split(r"(?:template <[^>]*>\n)?(?=__global__)", text, maxsplit=1)
    text, end, others = text.partition("\n}\n")  # kernels behind it have parameters of their own
    text = re.sub(r",\s+\w+\.\.\. \w+|, strides\.\.\.", "", text)  # a card's packs are empty
    text = _filled(text.replace("sizeof...(S)", "0") + end, values)
    for names in re.findall(r"^enum \w* ?\{([^}]*)\}", text_of(kernel.file(variant)), re.M):
        each = "|".join(name.split("=")[0].strip() for name in names.split(","))
        text = re.sub(rf"\b({each}) == ({each})\b", lambda found: str(
            found[1] == found[2]).lower(), text)
    while found := _CONSTEXPR.search(text):
        text = text[:found.start()] + text[found.end():]
        constants: dict[str, str] = {}
        for definition in re.split(r",\s*(?![^()]*\))", found[1]):
            name, _, value = definition.partition("=")
            constants[name.strip()] = _value(_filled(value.strip(), constants))
        text = _filled(text, constants)
    text = re.sub(r"is_half<(\w+)>", lambda found: str(found[1] == "half").lower(), text)
    text = text.replace("if constexpr (", "if (")
    before = ""
    while before != text:
        before, text = text, folded(_without_dead_lines(_chosen(text)), variant.block[0])
    return helpers + text + others


def _arguments(text: str, expression: str) -> dict[str, str]:
    """The template's parameters, and what an instantiation gives for them."""
    parameters = re.search(r"template <([^>]*)>\s*__global__", text)
    given = re.search(r"<(.*)>", expression)
    if parameters is None or given is None:
        return {}
    values = {}
    for parameter in parameters[1].split(","):
        name, _, default = parameter.partition("=")
        values[name.split()[-1]] = default.strip() or name.split()[-1]
    parts = re.split(r",\s*(?![^<]*>)", given[1])  # commas within an argument's own <> stay
    return values | dict(zip(values, (part.strip() for part in parts), strict=False))


def _filled(text: str, values: dict[str, str]) -> str:
    """Put values in the places of names."""
    if not values:
        return text
    names = "|".join(map(re.escape, values))
    return re.sub(rf"(?<!\.)\b({names})\b", lambda found: values[found[1]], text)


def _value(expression: str) -> str:
    """What a constant expression comes to; the expression itself where it is no arithmetic."""
    expression = _chosen(expression)
    if not _ARITHMETIC.fullmatch(expression):
        return f"({expression})" if " " in expression else expression
    return str(eval(re.sub(r"(?<!/)/(?!/)", "//", expression)))  # digits and operators alone


def _chosen(text: str) -> str:
    """Sums of numbers, comparisons of them and choices by them, carried out."""
    for operation in _OPERATIONS:
        text = operation.sub(lambda found: str(eval(found[1].replace("/", "//"))), text)
    text = _COMPARISON.sub(lambda found: str(eval(found[1])).lower(), text)
    text = re.sub(r" [*/] 1\b(?![.\w])| \+ 0\b(?![.\w])|(?<=[=(] )1 \* |\btrue && ", "", text)
    text = re.sub(r"\(false && [^()]*\)", "(false)", text)
    text = re.sub(r"= true \|\| [^;()]*;", "= true;", text)
    text = re.sub(r"!(true|false)\b", lambda found: str(found[1] == "false").lower(), text)
    text = re.sub(rf"(?<!\w)\(true \? ({_PART}) : ({_PART})\)", r"\1", text)
    text = re.sub(rf"(?<!\w)\(false \? ({_PART}) : ({_PART})\)", r"\2", text)
    text = re.sub(rf"\btrue \? ({_PART}) : ({_PART})", r"\1", text)
    return re.sub(rf"\bfalse \? ({_PART}) : ({_PART})", r"\2", text)


def _without_dead_lines(text: str) -> str:
    """Statements under a condition that is decided: bare, or gone."""
    rows = text.splitlines()
    for begin, row in enumerate(rows):
        if decided := re.match(r"( *)if \((true|false)\)( \{)?", row):
            branch = _one_branch if decided[3] else _one_statement
            return "\n".join(branch(rows, begin, decided[1], decided[2] == "true")) + "\n"
    return text


def _one_statement(rows: list[str], begin: int, edge: str, first: bool) -> list[str]:
    """The rows with one of a decided condition's two statements, which have no braces."""
    def end(row: int) -> int:
        while not re.search(r"[;}]\s*(//.*)?$", rows[row]):
            row += 1
        return row + 1

    def bare(start: int, stop: int, condition: str) -> list[str]:
        rest = re.sub(rf"^ *{condition} ?", "", rows[start])
        below = rows[start + 1:stop]
        return [edge + rest, *below] if rest else [row.removeprefix("    ") for row in below]

    behind = end(begin)
    branch = bare(begin, behind, r"if \(\w+\)") if first else []
    if not first and behind < len(rows) and rows[behind].startswith(edge + "else"):
        begin_else, behind = behind, end(behind)
        branch = bare(begin_else, behind, "else")
    while first and behind < len(rows) and rows[behind].startswith(edge + "else"):
        behind = end(behind)
    return [*rows[:begin], *branch, *rows[behind:]]


def _one_branch(rows: list[str], begin: int, edge: str, first: bool) -> list[str]:
    """The rows with one branch of the decided condition that begins at `begin`."""
    end = next(i for i in range(begin + 1, len(rows)) if rows[i].startswith(edge + "}"))
    branch, after = (rows[begin + 1:end] if first else []), end + 1
    if rows[end] == edge + "} else {":
        after = rows.index(edge + "}", end) + 1
        branch = branch if first else rows[end + 1:after - 1]
    return [*rows[:begin], *(row.removeprefix("    ") for row in branch), *rows[after:]]


def lines(
    kernel: Kernel, variant: Variant, pieces: Sequence[tuple[str, str]],
    before: tuple[Kernel, Variant] | None, edits: Mapping[str, str],
) -> tuple[list[str], list[int]]:
    """The lines that `change` displays, and which of them are marked, counted from 1."""
    text = instantiated(kernel, variant)
    shown = f"{_LEFT_OUT}\n".join(excerpt(text, first, last, closed=True)
                                 for first, last in pieces)
    for old, new in edits.items():
        shown = edited(shown, old, new)
    rows = shown.rstrip().splitlines()
    if len(rows) > MAX_LINES:
        raise ValueError(f"{kernel.stem}: {len(rows)} lines; a card has room for {MAX_LINES}")
    if before is None:
        return rows, []
    there = {_bare(row) for row in instantiated(*before).splitlines()}
    return rows, [i for i, row in enumerate(rows, 1)
                  if len(_bare(row)) > 1 and row != _LEFT_OUT and _bare(row) not in there]


def _bare(row: str) -> str:
    """A line without its comment and indentation."""
    return " ".join(re.sub(r"//.*", "", row).split())


def standing_alone(kernel: Kernel, variant: Variant) -> str:
    """The kernel as a file that compiles by itself, this instantiation of it named.

    Raises
    ------
    ValueError
        If its parameters aren't found.
    """
    name, expression = variant.function or kernel.function, kernel.expression(variant)
    given = re.search(rf"\b{name}\(([^{{}}]*)\)\s*\{{", instantiated(kernel, variant))
    if given is None:
        raise ValueError(f"{kernel.stem}: no parameters of {name}")
    parameters = " ".join(given[1].split())
    return (f"{flattened(kernel, variant).rstrip()}\n\n"
            f"template __global__ void {expression}({parameters});\n")


# Inside the output: a page and Colab show it alike.
_STYLE = (
    # A mark stands in the margin, so that code is indented alike with and without one.
    "<style>.card-code pre{padding-left:1.2rem}"
    ".card-code .changed::before{content:'';display:inline-block;width:.3rem}"
    ".card-code .changed{background:rgba(31,162,116,.22);border-left:.3rem solid rgb(31,162,116);"
    "box-sizing:border-box;display:inline-block;margin-left:-.6rem;width:calc(100% + .6rem)}"
    "details.whole-kernel{margin:.5rem 0 1rem}</style>"
)


def change(
    version: Version, *pieces: tuple[str, str], variant: str | None = None,
    before: str | None = None, edits: Mapping[str, str] | None = None, whole: bool = True,
) -> None:
    """Display the lines that change, marked where they are not in the version before.

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
    chosen = kernel.variant(variant)
    rows, marked = lines(kernel, chosen, pieces, _before(version, before), edits or {})
    file = kernel.file(chosen).relative_to(CUDA)
    said = f"<i>cuda/{file}, constants filled in"
    if "#pragma unroll\n" in text_of(kernel.file(chosen)):
        said += ", without #pragma unroll"
    if marked:
        said += "; marked: not in the version before"
    display({
        "text/html": f'{_STYLE}<div class="card-code">{_highlighted(rows, marked)}</div>'
                     f"<small>{said}.</i></small>{_whole(kernel, chosen) if whole else ''}",
        "text/plain": "\n".join(f"{'+' if number in marked else ' '} {row}".rstrip()
                                for number, row in enumerate(rows, 1))}, raw=True)


def _before(version: Version, named: str | None) -> tuple[Kernel, Variant] | None:
    if named is None:
        return (version.before.kernel, version.before.kernel.fastest) if version.before else None
    stem, name = parted(named)
    return find(stem), find(stem).variant(name)


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
