"""What a page can do without goes, and what a reader sees stays."""

from bs4 import BeautifulSoup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from book import lean
from book.writers import with_lines

CODE = """template <int N>  // of columns
__global__ void add(const float* A) { return A[N - 1] + 2.5f; }
"""


def test_code_keeps_its_text_and_colours_in_half_of_the_elements():
    page = with_lines(highlight(CODE, CudaLexer(), HtmlFormatter()))
    before, after = (BeautifulSoup(text, "html.parser") for text in (page, lean.uncoloured(page)))
    assert after.get_text() == before.get_text()
    coloured = [span.get_text() for span in after.select("pre span:not(.code-line)")]
    assert {"template", "// of columns", "__global__", "2.5f"} <= set(coloured)
    assert not after.select(",".join(f"pre .{name}" for name in lean.PLAIN))
    assert len(after.find_all()) < 0.5 * len(before.find_all())
    # A line that may wrap is an element, which knows how far it is indented.
    assert [line.get_text() for line in after.select(".code-line")] == [CODE.splitlines()[1]]


def test_neighbours_of_one_colour_are_one_element():
    page = '<pre><span class="k">const</span> <span class="k">int</span>\n<span class="k">a</span>'
    assert lean.uncoloured(f"{page}</pre>") == (
        '<pre><span class="k">const int</span>\n<span class="k">a</span></pre>')


def test_negative_numbers_have_a_minus_sign_and_code_keeps_its_hyphen():
    page = ('<td data-x="-1">-5.4 %</td><p>(-2), 3-4, 2026-11-28, x-1, 1e-6</p>'
            "<pre>a -1</pre><p><code>-O3 -1</code></p><script>var a = -1;</script>")
    assert lean.typeset(page) == page.replace(">-5.4 %", ">−5.4%").replace("(-2)", "(−2)")


def test_numbers_and_sums_are_set_as_text_and_names_as_code():
    def code(*words):
        return '<code class="docutils literal notranslate">{}</code>'.format(
            " ".join(f'<span class="pre">{word}</span>' for word in words))

    for words, kind in ((("64×64",), ["sum"]), (("16", "·", "128", "=", "48"), ["sum"]),
                        (("a", "%", "4"), ["docutils", "literal", "notranslate"])):
        made = BeautifulSoup(lean.unmarked(code(*words)), "html.parser").code
        assert made["class"] == kind and made.get_text().split() == [*words]


def test_no_line_ends_between_a_sign_and_its_number():
    page = "<p>÷ 1.5: × <b>2</b>, M × N, <b>3</b> % of 9 % 4, <code>9 % 4</code></p>"
    assert lean.typeset(page) == page.replace("÷ ", "÷\xa0").replace("× <", "×\xa0<").replace(
        "</b> %", "</b>%")


def test_a_card_s_file_lies_beside_the_pages(tmp_path):
    page = ('<p>a</p><details class="whole-kernel"><summary>To copy: a file that compiles alone'
            '</summary><div class="highlight-cpp notranslate"><div class="highlight"><pre>'
            "a &lt; b;\n</pre></div></div><small>With its launch and a test: <code>python -m lib "
            "export 01_naive/coalesced</code></small></details><p>b</p>")
    made = BeautifulSoup(lean.taken_apart(page, tmp_path / "kernels", "../_static/kernels/"),
                         "html.parser")
    assert (tmp_path / "kernels" / "01_naive_coalesced.cu").read_text("utf-8") == "a < b;\n"
    assert made.a["href"] == "../_static/kernels/01_naive_coalesced.cu"
    assert "python -m lib export" in made.get_text() and not made.find("details")


def test_every_card_of_the_book_has_its_file(site):
    pages = list((site / "chapters").glob("[0-9][0-9]_*.html"))
    named = [BeautifulSoup(page.read_text("utf-8"), "html.parser").select_one("a[href$='.cu']")
             for page in pages if "<article" in page.read_text("utf-8")]
    files = {link["href"].rsplit("/", 1)[1] for link in named if link}
    assert len(files) > 20
    for name in files:
        assert "__global__" in (site / lean.KERNELS / name).read_text("utf-8")
