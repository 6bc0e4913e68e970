"""The one sheet of all pages, which has what they use."""

import pytest

from book import checks, styles

SHEET = """
/* a word */ @charset "UTF-8";
:root { --colour: red }
.here, .gone > p, a.here:not(.gone) { color: var(--colour) }
#gone { margin: 0 }
@media (min-width: 720px) { .gone { margin: 1px } }
@media print { .here[data-x=".gone"] p::before { content: ".gone #gone"; } .gone { margin: 2px } }
@font-face { font-family: X; src: url(x.woff2) }
"""


def test_rules_stay_whose_names_occur():
    matching = "".join(styles.used(SHEET, {"here"}).split())
    assert ":root{--colour:red}" in matching
    assert ".here,a.here:not(.gone){color:var(--colour)}" in matching
    assert "margin" not in matching and "720px" not in matching
    assert '@mediaprint{' in matching and '@font-face' not in matching


def test_names_are_those_of_pages_and_the_words_of_scripts(tmp_path):
    (tmp_path / "a.html").write_text('<p class="one two" id="three">four</p>', encoding="utf-8")
    (tmp_path / "b.js").write_text("box.classList.add('five');", encoding="utf-8")
    assert {"one", "two", "three", "five"} <= styles.names(tmp_path)
    assert "four" not in styles.names(tmp_path)


def test_variables_and_animations_stay_that_something_names():
    sheet = (":root{--a:1px;--b: ;--c:var(--d);--d:2px}.x{margin:var(--a);animation:turn 1s}"
             "@keyframes turn{0%{top:0}}@keyframes lost{0%{top:0}1%{top:1px}}")
    left = styles.without_unnamed(sheet, "")
    assert left == (":root{--a:1px;}.x{margin:var(--a);animation:turn 1s}"
                    "@keyframes turn{0%{top:0}}")
    assert "--b: ;" in styles.without_unnamed(sheet, "style='left: var(--b)'")


def test_a_sheet_brings_what_it_imports_and_its_addresses_hold(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (static / "basic.css").write_text("ul{background:url(file.png)}", encoding="utf-8")
    (static / "styles" / "theme.css").write_text(
        '/* a word */ @import "../basic.css";a{mask:url("data:x,y")}', encoding="utf-8")
    text = styles.whole(static / "styles" / "theme.css", tmp_path)
    assert text.split() == ['ul{background:url("../file.png")}a{mask:url("data:x,y")}']


@pytest.mark.parametrize("path", [*checks.page_paths(), "search.html", "404.html"])
def test_a_page_loads_one_sheet(site, path):
    soup = checks.Page(site, path).soup
    (sheet,) = soup.find_all("link", rel="stylesheet")
    assert f"{styles.SHEET.as_posix()}?v=" in sheet["href"]


def test_the_built_sheet_is_small_and_has_what_pages_need(site):
    sheet = (site / styles.SHEET).read_text(encoding="utf-8")
    assert 50_000 < len(sheet) < 130_000
    for rule in (".bd-article", ".bd-sidebar-primary", "#pst-search-dialog", ".admonition",
                 ".code-line", ".scene", ".live", 'html[data-theme="dark"] .highlight .k'):
        assert rule in sheet
    assert "@import" not in sheet
