"""What a page can do without: half of its elements and letters, none of which a reader sees.

Highlighted code has elements only around what has a colour of its own and around lines that may
wrap, and a card's kernel that is there to be taken away lies beside the pages. And what reads as a
minus sign is one, and stands with its number, as × and % do.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

# Classes of Pygments' that are written in the colour of all code: names, operators, blanks.
PLAIN = ("n", "nn", "nx", "o", "p", "pm", "w")
SHORT = 40  # characters of a line that wraps on no phone
KERNELS = Path("_static") / "kernels"
_CODE = re.compile(r"<pre>.*?</pre>", re.S)
_UNCOLOURED = re.compile(rf'<span(?: class="(?:{"|".join(PLAIN)})")?>([^<]*)</span>')
_TWICE = re.compile(r'(<span class="(\w+)">[^<]*)</span>( *)<span class="\2">')
_LINE = re.compile(r'^((?:<pre>)?)<span class="code-line"[^>]*>(.*)</span>$', re.M)
_SUM = re.compile(r'<code class="docutils literal notranslate">'
                  r'((?:<span class="pre">[\d,.×·/()+−=^%²³-]+</span> ?)+)</code>')
_PRODUCT = re.compile(r' (<span class="pre">[·/]</span>) ')
_COPY = re.compile(
    r'<details class="whole-kernel"><summary>To copy: a file that compiles alone</summary>'
    r'<div class="highlight-cpp notranslate"><div class="highlight"><pre>([^<]*)</pre></div></div>'
    r"(<small>[^<]*<code>python -m lib export (\w+)/(\w+)</code></small>)</details>")
# Text between tags, and what no text is: elements whose words are code or data.
_ELSEWHERE = re.compile(r"(<(script|style|pre|code|textarea|form|math)\b.*?</\2>|<[^>]*>)", re.S)
_HYPHEN = re.compile(r"(?<![\w.)\]−-])-(?=\d)")
# Beside a number, which may have an element of its own; `a % 4` is a remainder.
_PERCENT = re.compile(r"(?:(?<=\d)|^) (?=%(?! [\d(]))")
_FACTOR = re.compile(r"(?<=[×÷]) (?=\d|$)")


def uncoloured(page: str) -> str:
    """A page whose code has elements around what has a colour, and around what may wrap."""
    return _CODE.sub(
        lambda code: _LINE.sub(_short, _merged(_UNCOLOURED.sub(r"\1", code[0]))), page)


def _short(line: re.Match[str]) -> str:
    text = html.unescape(re.sub(r"<[^>]*>", "", line[2]))
    return line[1] + line[2] if len(text) <= SHORT else line[0]


def _merged(code: str) -> str:
    while (shorter := _TWICE.sub(r"\1\3", code)) != code:
        code = shorter
    return code


def unmarked(page: str) -> str:
    """A page that sets numbers and sums, which notebooks have as code, like the text around."""
    return _SUM.sub(lambda code: '<code class="sum">{}</code>'.format(
        _PRODUCT.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", code[1])), page)


def typeset(page: str) -> str:
    """A page whose numbers have true signs, which no line's end parts from them; code apart."""
    parts = _ELSEWHERE.split(page)
    # Of each three the first is text; behind it what is none, and the name of its element.
    parts[::3] = [_FACTOR.sub("\N{NO-BREAK SPACE}", _PERCENT.sub("", _HYPHEN.sub("−", text)))
                  for text in parts[::3]]
    return "".join(text + (between or "") for text, between in zip(
        parts[::3], [*parts[1::3], ""], strict=True))


def taken_apart(page: str, folder: Path, prefix: str) -> str:
    """A page that leads to the files which its cards offer, once these are written.

    Parameters
    ----------
    page : str
        HTML.
    folder : Path
        Where files lie.
    prefix : str
        That folder's address, as the page names it.
    """
    def leave(copy: re.Match[str]) -> str:
        name = f"{copy[3]}_{copy[4]}.cu"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(html.unescape(copy[1]), encoding="utf-8")
        return (f'<p><a href="{prefix}{name}" download>Download it as a file that compiles '
                f"alone</a>. {copy[2]}</p>")

    return _COPY.sub(leave, page)
