"""README's picture, which is the card of links too, is of today's first page."""

from book.release import ROOT
from book.site import CARD
from tests.book import picture


def test_the_picture_says_what_the_page_says_today(site):
    shown = picture.heads()
    assert len(shown) > 10
    gone = picture.missing(shown, picture.said(site / picture.PAGE))
    assert gone == [], "run `make picture`"


def test_readme_and_cards_show_it(site):
    assert "](book/static/page.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert CARD == f"_static/{picture.FILE.name}"
    assert (site / CARD).read_bytes() == picture.FILE.read_bytes()
