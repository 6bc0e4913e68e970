"""One style sheet for all pages, of all that the tools name, without what no page uses.

It blocks the first paint of every page. A rule stays if all classes and identifiers that its
selector names are on a page or in a script, as PurgeCSS has it; what stands in ``:not()``,
``:is()``, ``:where()``, ``:has()`` or brackets doesn't count. A variable and an animation stay if
something names them. The book's own sheets stay whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tinycss2
from sphinx.application import Sphinx

from book import policy
from lib.ptx.files import text_of

SHEET = Path("_static") / "styles" / "page.css"
OWN = {"scene.css", "book.css", "panel.css"}
_LINK = re.compile(r'<link\b(?=[^>]*rel="stylesheet")[^>]*?'
                   r'href="([^"?]*)_static/([^"?]*)[^"]*"[^>]*>\s*')
_IMPORT = re.compile(r'@import "([^"]+)";')
_ADDRESS = re.compile(r"url\((['\"]?)(?!data:|#|\w+:)([^)'\"]+)\1\)")
_VARIABLE = re.compile(r"(?<=[{;\s])(--[\w-]+)\s*:[^;{}]*(?:;|(?=\}))")
_ANIMATION = re.compile(r"@keyframes ([\w-]+)\s*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_NAMED = re.compile(r"\b(?:class|id)=\"([^\"]*)\"")
_WORD = re.compile(r"[\w-]+")
_ASIDE = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)|\[[^]]*\]")
_NAMES = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")


def used(sheet: str, names: set[str]) -> str:
    """The rules of a sheet that may match where these classes and identifiers occur."""
    rules = tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True)
    return _written(rules, names)


def _written(rules: list[Any], names: set[str]) -> str:
    found = []
    for rule in rules:
        if rule.type == "qualified-rule":
            matching = [selector for selector in _selectors(rule.prelude)
                    if names.issuperset(_NAMES.findall(_ASIDE.sub("", selector)))]
            if matching:
                found.append(f"{','.join(matching)}{{{tinycss2.serialize(rule.content)}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            inside = _written(tinycss2.parse_rule_list(
                rule.content, skip_comments=True, skip_whitespace=True), names)
            if inside:
                before = tinycss2.serialize(rule.prelude)
                found.append(f"@{rule.at_keyword}{before}{{{inside}}}")
        elif not (rule.type == "at-rule" and rule.lower_at_keyword == "font-face"):
            found.append(rule.serialize())  # icons are drawings: no font is loaded
    return "".join(found)


def _selectors(prelude: list[Any]) -> list[str]:
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tinycss2.serialize(part).strip() for part in parts]


def names(site: Path) -> set[str]:
    """Classes and identifiers of a built book's pages, and every word of its scripts."""
    found: set[str] = set()
    for page in site.rglob("*.html"):
        for named in set(_NAMED.findall(text_of(page))):
            found.update(named.split())
    for script in site.rglob("*.js"):
        found.update(_WORD.findall(text_of(script)))
    return found


def whole(sheet: Path, site: Path) -> str:
    """A sheet with those that it imports, its addresses as `SHEET` says them."""
    def address(found: re.Match[str]) -> str:
        file = os.path.relpath(sheet.parent / found[2], (site / SHEET).parent)
        return f'url("{Path(file).as_posix()}")'

    text = re.sub(r"/\*.*?\*/", "", text_of(sheet), flags=re.S)
    text = text.removeprefix('@charset "UTF-8";')
    return _IMPORT.sub(lambda found: whole((sheet.parent / found[1]).resolve(), site),
                       _ADDRESS.sub(address, text))


def without_unnamed(sheet: str, elsewhere: str) -> str:
    """A sheet without variables and animations that neither it nor a text elsewhere names."""
    animated = set(_WORD.findall(_ANIMATION.sub("", sheet)))
    sheet = _ANIMATION.sub(_if_named(animated), sheet)
    others, before = set(re.findall(r"--[\w-]+", elsewhere)), ""
    while before != sheet:
        before, named = sheet, {*others, *re.findall(r"var\(\s*(--[\w-]+)", sheet)}
        sheet = _VARIABLE.sub(_if_named(named), sheet)
    return sheet


def _if_named(names: set[str]) -> Callable[[re.Match[str]], str]:
    return lambda found: found[0] if found[1] in names else ""


def bundle(app: Sphinx) -> None:
    """Write the sheet, and let every page load it in the place of all others."""
    site = Path(app.outdir)
    pages = {file: text_of(file) for file in policy.pages(site)}
    # Each page names the same ones; of an earlier build there may be pages that have the one.
    named = max((_LINK.findall(text) for text in pages.values()), key=len)
    if len(named) < 2:
        return
    known = names(site)
    text = ""
    for _, name in named:
        rules = whole(site / "_static" / name, site)
        text += rules if Path(name).name in OWN else used(rules, known)
    scripts = "".join(map(text_of, site.rglob("*.js")))
    text = " ".join(without_unnamed(text, scripts + "".join(pages.values())).split())
    (site / SHEET).write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    for file, page in pages.items():
        if loaded := _LINK.search(page):
            link = f'<link rel="stylesheet" href="{loaded[1]}{SHEET.as_posix()}?v={digest}" />\n'
            begin, rest = page[:loaded.start()], page[loaded.start():]
            file.write_text(begin + link + _LINK.sub("", rest), encoding="utf-8")
