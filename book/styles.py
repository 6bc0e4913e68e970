"""The theme's style sheet without what no page uses: it blocks the first paint of every page.

A rule stays if all classes and identifiers that its selector names are on a page or in a script,
as PurgeCSS has it; what stands in ``:not()``, ``:is()``, ``:where()``, ``:has()`` or brackets
doesn't count.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tinycss2
from sphinx.application import Sphinx

from lib.ptx.files import text_of

THEME = Path("_static") / "styles" / "pydata-sphinx-theme.css"
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
        else:
            found.append(rule.serialize())
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


def prune(app: Sphinx, error: Exception | None) -> None:
    """Leave out of the built book's sheet what no page uses."""
    if error is not None or app.builder.name != "html":
        return
    import pydata_sphinx_theme

    site = Path(app.outdir)
    whole = (Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
             / "styles" / THEME.name)  # a build of some pages writes none of its own again
    text = used(text_of(whole), names(site))
    text = text.replace("/*# sourceMappingURL=pydata-sphinx-theme.css.map*/", "")
    (site / THEME).write_text(text, encoding="utf-8")
    (site / f"{THEME}.map").unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    """Prune when all pages have been written."""
    app.connect("build-finished", prune, priority=900)
