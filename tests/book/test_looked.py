"""A page that has changed is looked at until all tests pass on it; three stand for the others."""

import pytest

from tests.book import looked

FIRST, OTHER, CHANGED = looked.SAMPLE[0], "chapters/method.html", "chapters/glossary.html"
PAGES = [FIRST, OTHER, CHANGED]
NOW = {FIRST: "a", OTHER: "b", CHANGED: "c"}


@pytest.fixture
def two_tests(monkeypatch):
    monkeypatch.setattr(looked, "TESTS", {"test_print": PAGES, "test_axe": [FIRST, CHANGED]})


def test_three_pages_and_the_changed_are_chosen():
    assert looked.chosen(PAGES, NOW, {}) == [FIRST]
    assert looked.chosen(PAGES, NOW, NOW) == [FIRST]
    assert looked.chosen(PAGES, NOW, {**NOW, CHANGED: "old"}) == [FIRST, CHANGED]
    assert looked.chosen(PAGES, NOW, {FIRST: "a", OTHER: "b"}) == [FIRST, CHANGED]
    assert looked.chosen(PAGES, {}, NOW) == [FIRST], "nothing is built yet"


def test_a_page_is_seen_when_every_test_has_passed_on_it(two_tests):
    stored, both = {**NOW, CHANGED: "old"}, {"test_print", "test_axe"}
    assert looked.after(NOW, stored, {CHANGED: both}, set()) == NOW
    assert looked.after(NOW, stored, {CHANGED: both}, {CHANGED}) == stored
    assert looked.after(NOW, stored, {CHANGED: {"test_axe"}}, set()) == stored
    assert looked.after(NOW, stored, {OTHER: {"test_print"}}, set())[CHANGED] == "old"


def test_a_first_run_takes_the_pages_it_leaves_out_as_seen(two_tests):
    both = {"test_print", "test_axe"}
    assert looked.after(NOW, {}, {FIRST: both}, set()) == NOW
    assert looked.after(NOW, {}, {FIRST: both}, {CHANGED}) == {FIRST: "a", OTHER: "b"}
    assert looked.after(NOW, {}, {FIRST: {"test_axe"}}, set()) == {}


def test_what_a_reader_sees_decides(tmp_path):
    (tmp_path / "_static").mkdir()
    sheet, page = tmp_path / "_static" / "a.css", tmp_path / FIRST
    sheet.write_text("a {}")
    page.write_text("<nav>1</nav><article>text</article>")
    before = looked.digests(tmp_path)
    assert before.keys() == {FIRST}
    page.write_text("<nav>2</nav><article>text</article>")
    assert looked.digests(tmp_path) == before
    for file, text in ((page, "<article>words</article>"), (sheet, "b {}")):
        file.write_text(text)
        assert (after := looked.digests(tmp_path)) != before
        before = after


def test_the_sample_is_of_the_book():
    assert set(looked.SAMPLE) <= set(looked.PAGES)
    assert len(looked.TESTS) == 0 or min(map(len, looked.TESTS.values())) >= len(looked.SAMPLE)
