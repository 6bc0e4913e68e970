"""Explorers: a frame for every position of the controls, with a kernel or without one, small."""

import gzip
import json
import re
from html.parser import HTMLParser

import ipywidgets as widgets
import pytest

from lib import gpus
from lib.plotting import frames
from lib.show import coalescing
from lib.show.coalescing import strided
from lib.topics.code.tiling.explorer import thread_tiles
from lib.topics.code.warp_tile.explorer import warp_tiles
from lib.topics.compute.fragments.explorer import fragments
from lib.topics.limits.bottleneck.explorer import saturated
from lib.topics.memory.layouts.explorer import layouts as layouts_layouts
from lib.topics.memory.layouts.explorer import strides as coalescing_strides
from lib.topics.memory.ldmatrix.explorer import matrix_loads
from lib.topics.memory.rasterization.explorer import rasters
from lib.topics.memory.staging.explorer import staged_tiles
from lib.topics.memory.tma_swizzle.explorer import tma_swizzles
from lib.topics.memory.vectors.explorer import vectors
from lib.topics.time.overlap.explorer import overlaps
from lib.topics.time.pipeline.explorer import buffers as pipeline_buffers
from lib.topics.time.ring.explorer import rings
from lib.topics.time.waves.explorer import waves


@pytest.fixture(scope="module")
def strides():
    return coalescing_strides()


@pytest.fixture(scope="module")
def tiles():
    return warp_tiles()


def small(explorer):
    """Whether an explorer's frames weigh little on their way to a reader."""
    return len(gzip.compress(explorer.page().encode(), 6)) < 80_000


def titles(frame):
    return re.findall(r">([^<>]+)<", frame)


def test_a_frame_for_each_combination(strides, tiles):
    assert [len(control.options) for control in strides.controls] == [8, 2]
    assert len(strides.frames) == 16
    assert [len(control.options) for control in tiles.controls] == [5, 2]
    assert len(set(tiles.frames)) == 10
    assert tiles.frames.index(tiles.at(3, 1)) == 7  # the last control changes fastest


def test_frames_are_those_of_their_options(strides, tiles):
    assert "32 lanes, 4 sectors: every byte is used" in titles(strides.at(1, 0))
    assert "32 lanes, 5 sectors: 80% of the bytes are used" in titles(strides.at(1, 1))
    assert "32 lanes, 1 sector: all read the same 4 bytes" in titles(strides.at(0, 0))
    assert "32 lanes, 32 sectors: 12.5% of the bytes are used" in titles(strides.at(7, 0))
    assert "150%: the limit" in titles(tiles.at(0, 1))


def test_thread_tiles_have_a_control_for_each_side_that_can_be_chosen():
    squares = thread_tiles()
    assert len(squares.frames) == 25 and len(squares.controls) == 2
    assert any(text.startswith("8 × 4: 12 floats") for text in titles(squares.at(3, 2)))
    first = squares.at(*squares.default)
    assert "one k: 16 floats, 64 multiply-adds" in first
    strips = thread_tiles(columns=(1,))
    assert len(strips.frames) == 5 and len(strips.controls) == 1
    assert any(text.startswith("8 × 1: 9 floats") for text in titles(strips.at(3)))
    for made in (squares, strips):
        assert small(made)


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


def test_controls_of_two_explorers_of_a_page_are_apart(tiles):
    once, again = (Tags(tiles.page()) for _ in range(2))
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


def test_widgets_have_labels(strides, tiles):
    for explorer in (strides, tiles):
        for control in explorer.widget.children[:-1]:
            assert control.description
            assert isinstance(control, (widgets.SelectionSlider, widgets.ToggleButtons))


def test_frames_are_small(strides, tiles):
    assert small(strides) and small(tiles)


def test_positions_that_are_not_there_are_refused(strides):
    with pytest.raises(ValueError):
        strides.at(1)
    with pytest.raises(IndexError):
        strides.at(9, 0)


def test_ids_differ_between_frames(strides, tiles):
    ids = [n for e in (strides, tiles) for f in e.frames for n in re.findall(r' id="([^"]+)"', f)]
    assert len(ids) == len(set(ids))


def test_any_number_of_controls():
    def frame(stride):
        panel = coalescing.panel("x", strided(stride))
        return coalescing.draw([coalescing.Group("", [panel])], evidence="modelled: sectors")

    made = frames.Explorer(
        [frames.Control("Stride", [("one", 1), ("two", 2)], default=1)], frame, "One control"
    )
    assert made.default == (1,) and len(made.frames) == 2
    assert "8 sectors" in made.at(*made.default)


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


def test_warp_tiles_show_their_wavefronts():
    made = warp_tiles()
    assert len(set(made.frames)) == 10
    first = titles(made.at(2, 0))
    assert "64 × 32, in pairs: 0.125 wavefronts for each multiply-add of a warp" in first
    assert "8 wavefronts for 64 multiply-adds" in first
    assert "150%: the limit" in titles(made.at(0, 1))


def test_layouts_and_buffers():
    layouts = layouts_layouts()
    assert "tile[lane][c]: 32 wavefronts where 1 would do" in titles(layouts.at(0, 0, 0))
    cured = "No bank conflict: every access takes its ideal number of wavefronts"
    assert cured in titles(layouts.at(1, 0, 0)) and cured in titles(layouts.at(0, 1, 2))
    assert any("no aligned 128-bit access" in text for text in titles(layouts.at(1, 0, 2)))
    buffers = pipeline_buffers()
    assert any(text.startswith("2 buffers: 8 tiles in 2,700 cycles")
               for text in titles(buffers.at(1, 1, 1)))
    for made, count in ((layouts, 24), (buffers, 48)):
        assert len(made.frames) == count
        assert small(made)


@pytest.mark.parametrize("make, count, same, text", [
    (fragments, 36, 2,
     "mma.m16n8k16: lane 5 holds 8 elements of A: 2 rows, 4 columns"),
    (matrix_loads, 36, 0, "ldmatrix.x4, plain tile: 32 wavefronts, where 4 would do"),
    (tma_swizzles, 24, 0,
     "128-byte swizzle: 8 rows of a chunk meet 32 of 32 banks, 1 wavefront"),
    (rings, 48, 0, "4 stages: after the first tile, consumers never wait for one"),
    (rasters, 32, 2,  # where one wave has all tiles, their order shows nothing
     "n = 8,192, 128×256: 16 waves, 97% busy; the first reads 71.3 MB"),
])
def test_explorers_of_the_later_chapters(make, count, same, text):
    made = make()
    # Whichever the lane, wgmma's B is held by none.
    assert len(made.frames) == count and len(set(made.frames)) == count - same
    assert text in titles(made.at(*made.default))
    assert small(made)


def test_waves_show_what_equal_shares_are_worth():
    made = waves()
    assert len(set(made.frames)) == len(made.frames) == 30
    first = titles(made.at(3, 0, 2))
    assert "H100, n = 4,096: work for 97% of the time; in equal shares, 100%" in first
    small_one = titles(made.at(0, 0, 2))
    assert "H100, n = 1,024: work for 24% of the time; in equal shares, 97%" in small_one
    assert small(made)


def test_vectors_have_a_frame_for_each_tile_and_width():
    made = vectors()
    assert len(made.frames) == 16 and len(set(made.frames)) == 16
    assert any("6 of 16 load instructions have work" in text for text in titles(made.at(0, 3)))
    assert any("every lane of every load" in text for text in titles(made.at(2, 3)))
    assert "8 load instructions, 2 with work" in made.at(*made.default)


def test_saturated_names_the_longest_unit_and_what_it_allows():
    def times(name, n):
        tags = n**3 / 20e12 if name == "slow" else 0.0
        return {"tensor pipe": 2.0 * n**3 / 65e12, "L1 lines": tags}, 10**9

    tiles = {"fast": (128, 256, 32, 1), "slow": (128, 128, 32, 2)}
    made = saturated(times, tiles, gpus.GPUS["T4"], sizes=(1024, 2048), default=(0, 1))
    assert len(made.frames) == 4
    assert any("tensor pipe needs" in t and "65 TFLOP/s at most" in t
               for t in titles(made.at(0, 0)))
    assert any("L1 lines need" in t and "40 TFLOP/s at most" in t for t in titles(made.at(1, 0)))
    # 32 tiles for 40 SMs; 64 tiles for 80 places.
    assert all(any("work for 80% of the time" in t for t in titles(made.at(i, 0))) for i in (0, 1))


def test_staged_tiles_have_a_frame_for_each_tile_that_can_be():
    tiles = staged_tiles()
    assert len(tiles.frames) == 40
    first = titles(tiles.at(2, 1, 0))
    assert any("64×64, warps of 32×32: L1/shared feeds 40%" in t for t in first)
    assert any("don't divide a tile of 32×64" in t for t in titles(tiles.at(1, 3, 0)))
    assert any(t.startswith("No tile, warps of 16×16") for t in titles(tiles.at(0, 0, 1)))
    assert small(tiles)


def test_overlaps_gain_from_other_blocks_whatever_the_order():
    orders = overlaps()
    assert len(orders.frames) == 36

    def busy(*positions):
        text = next(t for t in titles(orders.at(*positions)) if "the SM multiplies" in t)
        return float(re.search(r"([\d.]+)% of", text)[1])

    assert busy(0, 0, 1) == pytest.approx(busy(1, 0, 1), abs=1)  # one buffer, stored at once
    assert busy(2, 0, 1) > 1.2 * busy(1, 0, 1)
    assert busy(1, 2, 0) == pytest.approx(busy(3, 2, 0), abs=3)
    assert small(orders)
