"""The theme's sheet, of which pages get what they use."""

from book import styles

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
    assert '@mediaprint{' in matching and '@font-face' in matching


def test_names_are_those_of_pages_and_the_words_of_scripts(tmp_path):
    (tmp_path / "a.html").write_text('<p class="one two" id="three">four</p>', encoding="utf-8")
    (tmp_path / "b.js").write_text("box.classList.add('five');", encoding="utf-8")
    assert {"one", "two", "three", "five"} <= styles.names(tmp_path)
    assert "four" not in styles.names(tmp_path)


def test_the_built_sheet_is_small_and_has_what_pages_need(site):
    sheet = (site / styles.THEME).read_text(encoding="utf-8")
    assert 50_000 < len(sheet) < 130_000
    for rule in (".bd-article", ".bd-sidebar-primary", "#pst-search-dialog", ".admonition"):
        assert rule in sheet
