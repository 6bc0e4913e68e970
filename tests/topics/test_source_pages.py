"""What a page shows of the code: differences, excerpts, one instantiation, machine code."""

import re

import pytest

from lib.topics.source import page
from lib.topics.version import Version


@pytest.fixture
def html(monkeypatch):
    """What is displayed as HTML."""
    found = []
    monkeypatch.setattr(page, "display", lambda what: found.append(what.data))
    return found


def test_a_difference_says_of_each_line_what_became_of_it(html, shown):
    page.code(Version("02_shared_tile"))
    rows = re.findall(r'<span class="(\w+)">(.) ', html[0])
    assert {("added", "+"), ("removed", "-"), ("kept", " ")} <= set(rows)
    assert 'aria-label="Difference from 01_naive to 02_shared_tile"' in html[0]
    assert "&lt;int TILE&gt;" in html[0] and "white-space:pre-wrap" in html[0]
    assert "<details>" in shown[0] and "The whole of" in shown[0]


def test_a_kernel_written_anew_is_shown_whole(html, shown):
    page.code(Version("01_naive"))
    assert not html and shown[0].startswith("```cpp\ntemplate <int TILE, bool COALESCED>")


def test_an_instantiation_reads_without_its_template_arguments(shown):
    page.plain(Version("01_naive"), {"template <int TILE, bool COALESCED>\n": "", "TILE": "32"})
    assert "template" not in shown[0] and "__launch_bounds__(32 * 32)" in shown[0]
    with pytest.raises(ValueError, match="the source has no 'BK'"):
        page.plain(Version("01_naive"), {"BK": "8"})


def test_an_excerpt_names_its_file_and_has_no_marks(shown):
    page.excerpt(Version("02_shared_tile"), "As[ty][tx] = a;", "sum += As[ty][k]")
    assert "MARK" not in shown[0] and "*cuda/02_shared_tile.cu*" in shown[0]
    page.excerpt(Version("02_shared_tile"), "template <", "{", variant="only_a")
    assert "*cuda/steps/02_shared_tile_one.cu*" in shown[1]


def test_machine_code_is_of_the_inner_loop(shown):
    page.machine_code(Version("01_naive"), "LDG", "FFMA")
    assert re.search(r"LDG\.E R\d+, desc.*\nFFMA R\d+", shown[0]) and "sm_90a" in shown[0]
    with pytest.raises(ValueError, match="inner loop of 01_naive has no HMMA for sm_90a"):
        page.machine_code(Version("01_naive"), "HMMA")
