"""Explorers: a picture without scripts, and tables that a script draws from."""

import json
import re

import pytest

from lib.show import explorer as live
from lib.show import operand as figure
from lib.show.explorer import Control, Live
from lib.show.operand import Tile


@pytest.fixture
def made(tmp_path):
    script = tmp_path / "explorer.js"
    script.write_text("root.append(data.text);")
    still = figure.draw(Tile(), 0, 0)
    return Live([Control("Size", [("one", 1), ("two", [2])], default=1)],
                {"text": "</script><b>"}, script, "A \"thing\"", still, "modelled: <none>")


def test_its_tables_end_no_script_and_its_label_no_attribute(made):
    page = made.page()
    [text] = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert json.loads(text) == {"text": "</script><b>", "options": [[1, [2]]]}
    assert 'aria-label="A &quot;thing&quot;"' in page and "modelled: &lt;none&gt;" in page
    assert page.count("<script") == page.count("</script>") == 2
    assert '<input type="radio"' in page and page.count(" checked") == 1


def test_without_scripts_there_is_a_figure_and_no_control(made):
    page = made.page()
    assert '<div class="live-body" hidden>' in page
    still = page.partition('class="live-still"')[2].partition('class="live-body"')[0]
    assert still.count("<figure") == 1 and "<noscript>" in still


def test_it_is_the_same_with_a_kernel_and_without(made, monkeypatch):
    shown = []
    monkeypatch.setattr(live, "display", lambda *things: shown.extend(things))
    made._ipython_display_()
    assert [one.data for one in shown] == [made.page()]


def test_the_tools_are_no_module_and_call_nothing_from_outside():
    for name in ("live.js", "live.css"):
        text = (live._HERE / name).read_text()
        assert "</" not in text and not re.search(r"https?:|import |fetch\(|@import", text)
