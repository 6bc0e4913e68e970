"""Explorers: a frame for every position of the controls, with a kernel or without one, small."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

from lib.show import coalescing
from lib.show import explorer as frames
from lib.show import explorer as live
from lib.show import operand as figure
from lib.show.coalescing import strided
from lib.show.double_buffer import buffers as pipeline_buffers
from lib.show.explorer import Control, Live
from lib.show.method import strides as coalescing_strides
from lib.show.operand import Tile


@pytest.fixture(scope="module")
def strides():
    return coalescing_strides()


@pytest.fixture(scope="module")
def loops():
    return pipeline_buffers()


def titles(frame):
    return re.findall(r">([^<>]+)<", frame)


def test_a_frame_for_each_combination(strides, loops):
    assert [len(control.options) for control in strides.controls] == [8, 2]
    assert len(strides.frames) == 16
    assert math.prod(len(control.options) for control in loops.controls) == len(loops.frames)
    assert strides.frames.index(strides.at(3, 1)) == 7  # the last control changes fastest


def test_frames_are_those_of_their_options(strides, loops):
    assert "32 lanes, 4 sectors: every byte is used" in titles(strides.at(1, 0))
    assert "32 lanes, 5 sectors: 80% of the bytes are used" in titles(strides.at(1, 1))
    assert "32 lanes, 1 sector: all read the same 4 bytes" in titles(strides.at(0, 0))
    assert "32 lanes, 32 sectors: 12.5% of the bytes are used" in titles(strides.at(7, 0))


class Tags(HTMLParser):
    """What a page holds: tags with their attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags[-1][0] == "script":
            self.scripts.append(data)

    def all(self, tag, **wanted):
        return [have for name, have in self.tags
                if name == tag and all(have.get(key) == value for key, value in wanted.items())]


def test_a_page_holds_the_first_frame_and_the_others_as_text(strides):
    page = Tags(strides.page())
    (text,) = page.scripts
    assert "</" not in text  # which could end the script
    others = json.loads(text)
    first = strides.frames.index(strides.at(*strides.default))
    assert others[first] is None and first == 2
    assert [*others[:first], *others[first + 1:]] == [
        frame for place, frame in enumerate(strides.frames) if place != first]
    (figure,) = page.all("figure")
    assert "4 sectors: every byte is used" in strides.page().split("<script")[0]


def test_a_page_s_controls_stand_at_the_frame_that_is_shown(strides):
    page = Tags(strides.page())
    assert page.all("div", **{"class": "explorer"})[0]["aria-label"] == "Stride and sectors"
    assert [box["data-options"] for tag in ("label", "fieldset")
            for box in page.all(tag, **{"class": "explorer-control"})] == ["8", "2"]
    (slider,) = page.all("input", type="range")
    assert slider["aria-label"] == strides.controls[0].label
    names = json.loads(slider["data-names"])
    assert len(names) == 8 and slider["max"] == "7" and slider["value"] == "1"
    assert slider["aria-valuetext"] == names[1]
    buttons = page.all("input", type="radio")
    assert len({button["name"] for button in buttons}) == 1 and len(buttons) == 2
    assert [button["value"] for button in buttons if "checked" in button] == ["0"]


def test_controls_of_two_explorers_of_a_page_are_apart(strides):
    once, again = (Tags(strides.page()) for _ in range(2))
    names = [{button["name"] for button in page.all("input", type="radio")}
             for page in (once, again)]
    assert names[0] and not names[0] & names[1]


def test_where_no_kernel_answers_the_page_is_shown_and_where_one_does_widgets(
    strides, monkeypatch
):
    shown = []
    monkeypatch.setattr(frames, "display", lambda *objects: shown.extend(objects))
    for shell in (None, object(), type("Shell", (), {"kernel": object()})()):
        monkeypatch.setattr(frames, "get_ipython", lambda shell=shell: shell)
        strides._ipython_display_()
    assert [type(one).__name__ for one in shown] == ["HTML", "HTML", "VBox"]
    assert shown[0].data.startswith('<div class="explorer"')


def test_positions_that_are_not_there_are_refused(strides):
    with pytest.raises(ValueError):
        strides.at(1)
    with pytest.raises(IndexError):
        strides.at(9, 0)


def test_ids_differ_between_frames(strides, loops):
    ids = [n for e in (strides, loops) for f in e.frames for n in re.findall(r' id="([^"]+)"', f)]
    assert len(ids) == len(set(ids))


def test_a_kernel_draws_what_a_control_asks_for():
    drawn = []

    def frame(stride, first):
        drawn.append((stride, first))
        panel = coalescing.panel(f"x[{stride}]", strided(stride, first=first))
        return coalescing.draw([coalescing.Group("", [panel])], evidence="modelled: sectors")

    made = frames.Explorer(
        [frames.Control("Stride", [("one", 1), ("two", 2)], default=1),
         frames.Control("First", [("0", 0), ("1", 1)])], frame, "Two controls",
    )
    *controls, picture = made.widget.children
    assert [control.description for control in controls] == ["Stride", "First"]
    assert drawn == [(2, 0)] and "8 sectors" in picture.value
    controls[0].index = 0
    assert "4 sectors" in picture.value
    controls[1].index = 1
    assert "5 sectors" in picture.value
    controls[0].index = 1
    controls[1].index = 0
    assert "8 sectors" in picture.value and drawn == [(2, 0), (1, 0), (1, 1), (2, 1)]


def test_buffers():
    buffers = pipeline_buffers()
    assert any(text.startswith("2 buffers: 8 tiles in 2,700 cycles")
               for text in titles(buffers.at(1, 1, 1)))
    assert len(buffers.frames) == 36


# -- live ------------------------------------------------------------------------------------------


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
