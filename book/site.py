"""What the site says of itself: its address, release and last changes, for people and machines.

The sitemap, the cards that are shown where a page is linked to, a page for addresses that lead
nowhere, and under each page the release and when the page last changed.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from book import checks, release
from lib.ptx.files import text_of

DESCRIPTION = (
    "C = α·A·B + β·C in CUDA, from a naive kernel past the best of cuBLAS in FP32 and level with "
    "it in FP16, at 4,096 on an H100: one kernel version a chapter, every number with its source."
)
CARD = "_static/page.png"  # the first page's: `make picture` photographs it anew
NOT_FOUND = """\
<h1>This page is not in the book</h1>
<p>The address may be of an older edition, whose chapters had other names. The
<a href="{prefix}index.html">first page</a> lists the chapters of today; the search finds their
words.</p>
<script>{script}</script>
"""


def address() -> str:
    """Where the pages are published, with a slash at its end."""
    owner, name = urlsplit(release.REPOSITORY).path.strip("/").split("/")
    return f"https://{owner}.github.io/{name}/"


def configure(app: Sphinx, config: Config) -> None:
    """Give the extensions the address, which stands in `book/release.py` alone."""
    config.html_baseurl = config.ogp_site_url = address()
    config.ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image" />']
    config.ogp_site_name = config.html_title
    # Drawn of a page's title and description, with the first page's picture in the corner.
    config.ogp_social_cards = {"line_color": "#4053d3",
                               "image_mini": str(Path(__file__).parent / "static" / "page.png")}
    prefix = urlsplit(address()).path
    config.notfound_urls_prefix = prefix
    config.notfound_context = {"title": "Page not found", "body": not_found(prefix)}


def not_found(prefix: str) -> str:
    """The body of the page for lost readers.

    Parameters
    ----------
    prefix : str
        The path that the book is published at, with a slash at each end.
    """
    script = text_of(Path(__file__).with_name("lost.js"))
    return NOT_FOUND.format(prefix=prefix, script=script.replace("PUBLISHED", prefix))


def changes(root: Path) -> dict[str, str]:
    """When each chapter was last changed.

    Parameters
    ----------
    root : Path
        The repository.

    Returns
    -------
    dict of str to str
        Documents, such as ``chapters/01_naive``, and days as ``2026-11-22``: those of the last
        commit that touched their file. Empty where there is no git, or no repository.
    """
    if not shutil.which("git"):
        return {}
    log = subprocess.run(
        ["git", "log", "--format=%x00%cs", "--name-only", "--relative", "--", "chapters"],
        cwd=root, capture_output=True, text=True, encoding="utf-8", check=False)
    found: dict[str, str] = {}
    for commit in log.stdout.split("\0")[1:]:
        day, *names = commit.split()
        for name in names:
            found.setdefault(str(Path(name).with_suffix("")), day)
    return found


def description(doctree: nodes.document, max_letters: int = 200) -> str:
    """What a page says of itself where somebody links to it: the first sentences of its text.

    Parameters
    ----------
    doctree : nodes.document
    max_letters : int
        Characters at most, the mark of what is left out among them.

    Returns
    -------
    str
        Whole sentences of the first paragraph that stands in no table, or words of the first of
        them. Empty where there is no such paragraph.
    """
    first = next((paragraph for paragraph in doctree.findall(nodes.paragraph)
                  if not isinstance(paragraph.parent, nodes.entry)), None)
    if first is None:
        return ""
    # Without the tags of values that stand in it.
    text = " ".join("".join(text.astext() for text in first.findall(nodes.Text)
                            if not isinstance(text.parent, nodes.raw)).split())
    if len(text) <= max_letters:
        return text
    ends = [end.end() for end in re.finditer(r"[.?!](?= [A-ZΑ-Ω0-9])", text[:max_letters])]
    return text[:ends[-1]] if ends else text[:max_letters - 1].rsplit(" ", 1)[0] + "…"


def describe_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Give the page's card its description, before the extension makes one of its own."""
    text = description(doctree) if doctree else ""
    if pagename == app.config.root_doc:
        context["meta"] = {**(context.get("meta") or {}), "og:image": f"{address()}{CARD}",
                           "og:image:alt": "The book's first page"}
    if text:
        context["meta"] = {**(context.get("meta") or {}), "og:description": text}
        context["metatags"] = (f'{context.get("metatags", "")}\n<meta name="description" '
                               f'content="{html.escape(text)}" />')


def date_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Tell the page's foot of the release and of the page's last change."""
    context["last_updated"] = app.env.gemm_changes.get(pagename, "")
    context["revision"] = release.REVISION
    context["book_version"] = release.VERSION
    if pagename == app.config.notfound_pagename:
        context["meta_description"] = DESCRIPTION


def remember_changes(app: Sphinx) -> None:
    """Ask git once."""
    app.env.gemm_changes = changes(Path(app.srcdir))


def write_sitemap(app: Sphinx) -> None:
    """List the pages for search engines."""
    listed = ET.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for name in checks.listed(Path(app.srcdir)):
        entry = ET.SubElement(listed, "url")
        ET.SubElement(entry, "loc").text = address() + app.builder.get_target_uri(name)
        if day := app.env.gemm_changes.get(name):
            ET.SubElement(entry, "lastmod").text = day
    ET.indent(listed)
    ET.ElementTree(listed).write(Path(app.outdir) / "sitemap.xml", encoding="utf-8",
                                 xml_declaration=True)


def setup(app: Sphinx) -> None:
    """Say it on each page, and beside the pages."""
    app.connect("config-inited", configure, priority=100)
    app.connect("builder-inited", remember_changes)
    app.connect("html-page-context", describe_page, priority=100)
    app.connect("html-page-context", date_page)
