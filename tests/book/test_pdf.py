"""The two worklogs as PDF, and a book that is built where nothing prints."""

import re
import unicodedata

import pytest
from bs4 import BeautifulSoup

from book import pdf
from book.worklogs import WORKLOGS

MAX_SHEETS = 16


def squeezed(text: str) -> str:
    """A text as PDF and page have it alike: lines break elsewhere there, and letters are joined."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


@pytest.mark.browser
@pytest.mark.parametrize("name", WORKLOGS)
def test_a_worklog_is_whole_on_20_sheets_at_most(site, name):
    pypdf = pytest.importorskip("pypdf")
    sheets = [sheet.extract_text() for sheet in
              pypdf.PdfReader(site / "chapters" / f"{name}.pdf").pages]
    assert 5 <= len(sheets) <= MAX_SHEETS
    for number, sheet in enumerate(sheets, 1):
        assert sheet.startswith(f"{number} / {len(sheets)}\n")
    # A card fits its sheet: hardly any runs over by its last lines.
    assert sum(len(sheet) < 600 for sheet in sheets) <= 1
    printed = squeezed("".join(sheets))
    text = (site / "chapters" / f"{name}.html").read_text(encoding="utf-8")
    article = BeautifulSoup(text, "html.parser").find("article")
    for unseen in article.select(
            "details.hide, details.whole-kernel, .headerlink, .tag_draws > .cell_input"):
        unseen.decompose()
    cards = article.select("section section:has(> .cell.tag_card)")
    assert len(cards) >= 9
    for card in cards:
        title = squeezed(card.find("h2").get_text())
        assert title in printed
        # It begins a sheet, and its picture, lines and proof are there.
        assert any(
            squeezed(sheet.partition("\n")[2]).startswith(title) for sheet in sheets), title
        lines = [line for code in card.select("pre") for line in code.get_text().splitlines()]
        assert len(lines) >= 5, title
        cut = [line for line in lines if squeezed(line) not in printed]
        assert cut == []
        assert [text.get_text() for text in card.select("p, td, figure svg.figure-wide text")
                if squeezed(text.get_text()) not in printed
                and not text.select("math")] == []


def test_a_first_page_links_to_each_pdf_once():
    page = ('<nav><a href="chapters/fp32.html">side</a></nav><article><p>'
            '<a class="x" href="chapters/fp32.html"><span>FP32</span></a> and '
            '<a href="chapters/fp32.html">again</a></p></article>')
    linked = pdf._linked(page, ["fp32"])
    assert linked == page.replace(
        "</span></a>", '</span></a> (<a href="chapters/fp32.pdf">PDF</a>)')
    assert pdf._linked(linked, ["fp32"]) == linked


def test_where_nothing_prints_the_book_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "fp32.html").write_text("<p>text", encoding="utf-8")
    monkeypatch.setattr(pdf, "browser", lambda: None)
    pdf.make(tmp_path)
    assert "not printed" in capsys.readouterr().err
    assert list(tmp_path.rglob("*.pdf")) == []


def test_a_browser_that_makes_nothing_is_a_fault(tmp_path, monkeypatch):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "fp32.html").write_text("<p>text", encoding="utf-8")
    monkeypatch.setattr(pdf, "browser", lambda: "/bin/true")
    with pytest.raises(pdf.NotPrinted, match=r"made no fp32\.pdf"):
        pdf.make(tmp_path)
