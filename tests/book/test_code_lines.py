"""Each line of code is an element that knows its indentation, and the text stays as it was."""

import re

from bs4 import BeautifulSoup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer

from book.writers import with_lines

CODE = """for (int k = 0; k < K; ++k) {
    /* two
       lines */
    sum += a < b ? "x" : "y";

}
"""


def test_lines_are_elements_and_nothing_else_changes():
    page = highlight(CODE, CppLexer(), HtmlFormatter())
    made = with_lines(page)
    soup = BeautifulSoup(made, "html.parser")
    assert soup.get_text() == BeautifulSoup(page, "html.parser").get_text()
    lines = soup.select("pre > .code-line")
    assert [line.get_text() for line in lines] == CODE.splitlines()
    assert [line.get("style") for line in lines] == [
        None, "--at:4", "--at:7", "--at:4", None, None]
    # Whole elements: no tag is opened in one line and closed in the next.
    for line in re.split(r'<span class="code-line"', made)[1:]:
        assert line.count("<span") + 1 == line.count("</span>")
