"""What a page says of itself elsewhere."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from book.site import description


def page(*paragraphs, table=""):
    """A page whose first paragraph stands in a table."""
    document = new_document("page")
    row = nodes.table("", nodes.tgroup("", nodes.tbody("", nodes.row("", nodes.entry(
        "", nodes.paragraph(text=table))))))
    document += [nodes.section("", nodes.title(text="A heading"), row,
                               *(nodes.paragraph(text=text) for text in paragraphs))]
    return document


LONG = "It takes 2.5 sectors a request. " * 20


@pytest.mark.parametrize("text, said", [
    ("One sentence of\nwords.", "One sentence of words."),
    (LONG, " ".join(["It takes 2.5 sectors a request."] * 6)),
    ("First. " + "Word word " * 50, "First."),
    ("word " * 100, "word " * 38 + "word…"),
])
def test_whole_sentences_of_the_first_paragraph_outside_of_tables(text, said):
    found = description(page(text, "Another.", table="What changed"))
    assert found == said and len(found) <= 200


def test_the_tags_of_a_value_are_not_said():
    document = page("It takes ")
    document[0][2] += [nodes.raw("", '<data value="a(\'b\'):.1f">', format="html"),
                       nodes.Text("2.5"), nodes.raw("", "</data>", format="html"),
                       nodes.Text(" sectors.")]
    assert description(document) == "It takes 2.5 sectors."


def test_a_page_without_text_has_none():
    assert description(page(table="What changed")) == ""
