"""Explorers: a frame for every position of the controls, linked without a kernel, small."""

import re

import ipywidgets as widgets
import pytest

from lib import gpus
from lib.plotting import frames
from lib.plotting.frames import explorer as frames_explorer
from lib.topics.bottleneck.explorer import saturated
from lib.topics.coalescing import figure as coalescing
from lib.topics.coalescing.explorer import strides as coalescing_strides
from lib.topics.coalescing.model import strided
from lib.topics.fragments.explorer import fragments
from lib.topics.layouts.explorer import layouts as layouts_layouts
from lib.topics.ldmatrix.explorer import matrix_loads
from lib.topics.overlap.explorer import overlaps
from lib.topics.pipeline.explorer import buffers as pipeline_buffers
from lib.topics.rasterization.explorer import rasters
from lib.topics.ring.explorer import rings
from lib.topics.staging.explorer import staged_tiles
from lib.topics.tiling.explorer import thread_tiles
from lib.topics.tma_swizzle.explorer import tma_swizzles
from lib.topics.vectors.explorer import vectors
from lib.topics.warp_tile.explorer import warp_tiles
from lib.topics.waves.explorer import waves


@pytest.fixture(scope="module")
def strides():
    return coalescing_strides()


@pytest.fixture(scope="module")
def tiles():
    return warp_tiles()


def at(explorer, *positions):
    """The frame that stands at some positions of the controls."""
    widget = explorer.stack
    for position in positions:
        widget = widget.children[position]
    return widget.value


def titles(frame):
    return re.findall(r"<text[^>]*>([^<]+)</text>", frame)


def test_a_frame_for_each_combination(strides, tiles):
    assert [len(s.children) for s in (strides.stack, strides.stack.children[0])] == [8, 2]
    assert len(strides.frames) == 16
    assert [len(s.children) for s in (tiles.stack, tiles.stack.children[0])] == [5, 2]
    assert len(set(tiles.frames)) == 10


def test_frames_are_those_of_their_options(strides, tiles):
    assert "32 lanes, 4 sectors: every byte is used" in titles(at(strides, 1, 0))
    assert "32 lanes, 5 sectors: 80% of the bytes are used" in titles(at(strides, 1, 1))
    assert "32 lanes, 1 sector: all read the same 4 bytes" in titles(at(strides, 0, 0))
    assert "32 lanes, 32 sectors: 12.5% of the bytes are used" in titles(at(strides, 7, 0))
    assert "150%: the limit" in titles(at(tiles, 0, 1))


def test_thread_tiles_have_a_control_for_each_side_that_can_be_chosen():
    squares = thread_tiles()
    assert len(squares.frames) == 25 and len(squares.controls) == 2
    assert any(text.startswith("8 × 4: 12 floats") for text in titles(at(squares, 3, 2)))
    assert "8 × 8 elements of C reads 16 floats for 64 multiply-adds" in squares.fallback
    strips = thread_tiles(columns=(1,))
    assert len(strips.frames) == 5 and len(strips.controls) == 1
    assert any(text.startswith("8 × 1: 9 floats") for text in titles(at(strips, 3)))
    for made in (squares, strips):
        assert sum(len(frame) for frame in made.frames) + len(made.fallback) < 600_000


def test_each_control_is_linked_to_every_stack_of_its_level(strides, tiles):
    for explorer, inner in ((strides, 8), (tiles, 5)):
        pairs = [(link.source, link.target) for link in explorer.links]
        first, second = explorer.controls
        assert pairs.count(((first, "index"), (explorer.stack, "selected_index"))) == 1
        for stack in explorer.stack.children:
            assert ((second, "index"), (stack, "selected_index")) in pairs
        assert len(pairs) == 1 + inner
        assert {type(link).__name__ for link in explorer.links} == {"Link"}  # no kernel behind


def test_controls_and_stacks_start_together(strides, tiles):
    for explorer in (strides, tiles):
        first, second = explorer.controls
        assert explorer.stack.selected_index == first.index
        assert {stack.selected_index for stack in explorer.stack.children} == {second.index}
    assert strides.controls[0].index == 1  # the coalesced frame


def test_controls_have_labels(strides, tiles):
    for explorer in (strides, tiles):
        for control in explorer.controls:
            assert control.description
            assert isinstance(control, (widgets.SelectionSlider, widgets.ToggleButtons))


def test_state_is_small(strides, tiles):
    for explorer in (strides, tiles):
        size = sum(len(frame) for frame in explorer.frames) + len(explorer.fallback)
        assert size < 600_000


def test_readers_without_scripts_get_the_first_frame(strides):
    text = strides.noscript()
    assert text.startswith("<noscript") and text.endswith("</noscript>")
    assert text.count("<img ") == 1
    assert 'src="data:image/png;base64,' in text
    alt = re.search(r'alt="([^"]+)"', text)[1]
    assert "4 sectors in 1 line, 128 of 128 bytes useful" in alt


def test_shown_once(strides, monkeypatch):
    shown = []
    monkeypatch.setattr(frames, "display", lambda *objects: shown.extend(objects))
    strides._ipython_display_()
    assert [type(o).__name__ for o in shown] == ["HTML", "VBox"]
    assert shown[1].children == (*strides.controls, strides.stack)


def test_ids_differ_between_frames(strides, tiles):
    ids = [n for e in (strides, tiles) for f in e.frames for n in re.findall(r' id="([^"]+)"', f)]
    assert len(ids) == len(set(ids))


def test_any_number_of_controls():
    def frame(stride):
        panel = coalescing.panel("x", strided(stride))
        return coalescing.draw([coalescing.Group("", [panel])], evidence="modelled: sectors")

    made = frames_explorer(
        [frames.Control("Stride", [("one", 1), ("two", 2)], default=1)], frame, "One control"
    )
    assert made.stack.selected_index == 1 and len(made.frames) == 2
    assert "8 sectors" in made.fallback


def test_without_a_stack_the_kernel_draws_what_a_control_asks_for(monkeypatch):
    # As on Google Colab, which has ipywidgets 7.
    monkeypatch.delattr(widgets, "Stack")
    drawn, shown = [], []

    def frame(stride, first):
        drawn.append((stride, first))
        panel = coalescing.panel(f"x[{stride}]", strided(stride, first=first))
        return coalescing.draw([coalescing.Group("", [panel])], evidence="modelled: sectors")

    made = frames.explorer(
        [frames.Control("Stride", [("one", 1), ("two", 2)], default=1),
         frames.Control("First", [("0", 0), ("1", 1)])], frame, "Two controls",
    )
    monkeypatch.setattr(frames, "display", lambda *objects: shown.extend(objects))
    made._ipython_display_()
    (box,) = shown
    *controls, picture = box.children
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
    first = titles(at(made, 2, 0))
    assert "64 × 32, in pairs: 0.125 wavefronts for each multiply-add of a warp" in first
    assert "8 wavefronts for 64 multiply-adds" in first
    assert "150%: the limit" in titles(at(made, 0, 1))


def test_layouts_and_buffers():
    layouts = layouts_layouts()
    assert "tile[lane][c]: 32 wavefronts where 1 would do" in titles(at(layouts, 0, 0, 0))
    cured = "No bank conflict: every access takes its ideal number of wavefronts"
    assert cured in titles(at(layouts, 1, 0, 0)) and cured in titles(at(layouts, 0, 1, 2))
    assert any("no aligned 128-bit access" in text for text in titles(at(layouts, 1, 0, 2)))
    buffers = pipeline_buffers()
    assert any(text.startswith("2 buffers: 8 tiles in 2,700 cycles")
               for text in titles(at(buffers, 1, 1, 1)))
    for made, count in ((layouts, 24), (buffers, 48)):
        assert len(made.frames) == count
        assert sum(len(frame) for frame in made.frames) + len(made.fallback) < 600_000


@pytest.mark.parametrize("make, count, same, text", [
    (fragments, 36, 4,
     "mma.m16n8k16: lane 5 holds 8 elements of A, in 2 rows and 4 columns"),
    (matrix_loads, 36, 0, "ldmatrix.x4, plain tile: 32 wavefronts, where 4 would do"),
    (tma_swizzles, 24, 0,
     "128-byte swizzle: 8 rows of a chunk meet 32 of 32 banks, 1 wavefront"),
    (rings, 48, 0, "4 stages: after the first tile, consumers never wait for one"),
    (rasters, 32, 0,
     "n = 8,192, 128×256: 16 waves, 97% busy; the first reads 71.3 MB"),
])
def test_explorers_of_the_later_chapters(make, count, same, text):
    made = make()
    # Whichever the lane, wgmma's A and B are held by none.
    assert len(made.frames) == count and len(set(made.frames)) == count - same
    assert text in titles(at(made, *(control.index for control in made.controls)))
    assert sum(len(frame) for frame in made.frames) + len(made.fallback) < 600_000


def test_waves_show_what_equal_shares_are_worth():
    made = waves()
    assert len(set(made.frames)) == len(made.frames) == 30
    first = titles(at(made, 3, 0, 2))
    assert "H100, n = 4,096: work for 97% of the time; in equal shares, 100%" in first
    assert "H100, n = 1,024: work for 24% of the time; in equal shares, 97%" in titles(
        at(made, 0, 0, 2)
    )
    assert sum(len(frame) for frame in made.frames) + len(made.fallback) < 600_000


def test_vectors_have_a_frame_for_each_tile_and_width():
    made = vectors()
    assert len(made.frames) == 16 and len(set(made.frames)) == 16
    assert any("12 of 32 lanes" in text for text in titles(at(made, 0, 3)))
    assert any("every lane of every load" in text for text in titles(at(made, 2, 3)))
    assert "8 load instructions of warps have work" in made.fallback


def test_saturated_names_the_longest_unit_and_what_it_allows():
    def times(name, n):
        tags = n**3 / 20e12 if name == "slow" else 0.0
        return {"tensor pipe": 2.0 * n**3 / 65e12, "L1 tags": tags}, 10**9

    tiles = {"fast": (128, 256, 32, 1), "slow": (128, 128, 32, 2)}
    made = saturated(times, tiles, gpus.GPUS["T4"], sizes=(1024, 2048), default=(0, 1))
    assert len(made.frames) == 4
    assert any("tensor pipe needs" in t and "65 TFLOP/s at most" in t
               for t in titles(at(made, 0, 0)))
    assert any("L1 tags need" in t and "40 TFLOP/s at most" in t for t in titles(at(made, 1, 0)))
    # 32 tiles for 40 SMs; 64 tiles for 80 places.
    assert all(any("work for 80% of the time" in t for t in titles(at(made, i, 0))) for i in (0, 1))


def test_staged_tiles_have_a_frame_for_each_tile_that_can_be():
    tiles = staged_tiles()
    assert len(tiles.frames) == 40
    first = titles(at(tiles, 2, 1, 0))
    assert any("64×64, warps of 32×32: L1/shared feeds 40%" in t for t in first)
    assert any("don't divide a tile of 32×64" in t for t in titles(at(tiles, 1, 3, 0)))
    assert any(t.startswith("No tile, warps of 16×16") for t in titles(at(tiles, 0, 0, 1)))
    assert sum(len(frame) for frame in tiles.frames) + len(tiles.fallback) < 600_000


def test_overlaps_gain_from_other_blocks_whatever_the_order():
    orders = overlaps()
    assert len(orders.frames) == 36

    def busy(*positions):
        text = next(t for t in titles(at(orders, *positions)) if "the SM multiplies" in t)
        return float(re.search(r"([\d.]+)% of", text)[1])

    assert busy(0, 0, 1) == pytest.approx(busy(1, 0, 1), abs=1)  # one buffer, stored at once
    assert busy(2, 0, 1) > 1.2 * busy(1, 0, 1)
    assert busy(1, 2, 0) == pytest.approx(busy(3, 2, 0), abs=3)
    assert sum(len(frame) for frame in orders.frames) + len(orders.fallback) < 600_000
