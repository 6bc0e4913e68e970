"""The theme's icons, drawn when the book is built."""

import re

import pytest

from book import checks, icons

PAGE = (
    '<button><i class="theme-switch fa-solid fa-sun fa-lg" data-mode="light" aria-hidden="true">'
    '</i></button><a><span class="fa-brands fa-github"></span></a><i class="mine"></i>'
)


def test_an_icon_is_drawn_where_it_stands():
    page = icons.draw(PAGE)
    sun, github = re.findall(r"<svg[^>]*>", page)
    assert 'class="svg-inline--fa theme-switch fa-solid fa-sun fa-lg"' in sun
    assert 'data-mode="light"' in sun and sun.count("aria-hidden") == 1
    assert 'viewBox="0 0 496 512"' in github and 'aria-hidden="true"' in github
    assert len(re.findall(r'<path fill="currentColor" d="M[^"]{50,}"/></svg>', page)) == 2
    assert '<i class="mine"></i>' in page


def test_styles_of_one_name_are_apart():
    solid, regular = (icons.draw(f'<i class="{style} fa-file"></i>') for style in ("fas", "far"))
    assert solid != regular


def test_an_icon_that_the_theme_lacks_is_named():
    with pytest.raises(icons.UnknownIcon, match="fa-nothing-like-it"):
        icons.draw('<i class="fa-solid fa-nothing-like-it"></i>')


@pytest.mark.parametrize("path", [*checks.page_paths(), "search.html", "404.html"])
def test_no_page_loads_the_script_or_leaves_an_icon_undrawn(site, path):
    page = (site / path).read_text(encoding="utf-8")
    assert "svg-inline--fa" in page and "fontawesome" not in page
    assert re.findall(r'<(?:i|span)[^>]*class="[^"]*\bfa[srb]?\b', page) == []
