"""A scene: words that are text, drawings that are shapes, one style sheet for all."""

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from book import notebooks
from lib.show import colours, display, scene
from lib.show.scene import Drawing, Grid, Scene


@pytest.fixture
def tile():
    drawing = Drawing(120, 60).boxes([(0, 0, 40, 20), (40, 0, 40.04, 20)], "load", pale=True)
    drawing.grid((0, 0, 80, 20), 1, 2).arrow((0, 40), (80, 40), "compute")
    drawing.label((0, 0, 40, 20), "A < B", over="load", bold=True)
    return Scene("Two tiles & a walk", scene.row(
        scene.column(scene.words("k = 0", code=True), drawing.html(), width=130),
        scene.words("a wider load costs more", worse=True)), "modelled: tiles", "not to scale")


def test_what_is_written_is_its_own_alternative_in_reading_order(tile):
    assert tile.text == ("Two tiles & a walk k = 0 A < B a wider load costs more not to scale "
                         "modelled: tiles")
    assert repr(tile) == "<Scene: Two tiles & a walk>"


def test_evidence_is_one_of_five_kinds():
    with pytest.raises(ValueError, match="measured, recorded, emulated"):
        Scene("A finding", "", "guessed: by eye")


def test_shapes_of_one_kind_are_one_path_in_a_class_of_the_sheet(tile):
    body = tile.html()
    assert 'class="load pale" d="M0 0h40v20h-40zM40 0h40v20h-40z"' in body
    assert 'fill="#' + colours.on(colours.PHASE["load"])[1:] in body
    used = {name for text in re.findall(r'class="([^"]+)"', body) for name in text.split()}
    rules = set(re.findall(r"\.([a-z-]+)", scene.sheet()))
    assert used - rules == set()
    assert {f"of-{name}" for name in scene.COLOURS} <= rules


def test_a_drawing_without_words_is_decoration(tile):
    assert 'role="group"' in tile.html()
    assert 'aria-hidden="true"' in Drawing(9, 9).boxes([(0, 0, 9, 9)], "store").html()


def test_an_arrow_ends_in_a_head_behind_its_tip():
    path = re.search(r' d="([^"]+)"', Drawing(90, 9).arrow((0, 4), (80, 4)).html())
    assert path and path[1] == "M0 4L80 4M80 4L75 6.5M80 4L75 1.5"


def test_spans_lie_in_their_lane_by_shares_of_the_time_and_end_with_it():
    body = scene.lanes([("warp 0", [(0, 30, "load", 7), (30, 120, "compute pale", "a < b"),
                                    (120, 130, "store", "")])], 60, unit="60 cycles")
    spans = re.findall(r'<i class="([^"]+)" style="left:([^;]+);width:([^"]+)"><b>([^<]*)', body)
    assert spans == [("load", "0%", "50%", "7"), ("compute pale", "50%", "50%", "a &lt; b")]
    assert "<span>warp 0</span>" in body and "<span>60 cycles</span>" in body
    assert all(f" .{name} {{" in scene.sheet() for name in ("load", "compute", "store"))


def test_a_grid_s_cells_lie_where_its_names_say():
    grid = Grid(2, 3, (10, 20), across={2: "c"}, down={1: "r"}, left=30)
    assert grid.box(1, 2) == (50, 37, 10, 20) and grid.box(0, 0, 2, 3) == (30, 17, 30, 40)
    body = grid.ruled().html()
    assert '<text x="55" y="12" text-anchor="middle">c</text>' in body
    assert '<text x="25" y="51.3" text-anchor="end">r</text>' in body
    assert (grid.width, grid.height) == (61, 58)


def test_a_page_is_given_the_figure_and_a_notebook_the_style_sheet_too(tile):
    shell = InteractiveShell.instance()
    with capture_output() as page:
        display.show(tile)
    shell.kernel = object()
    try:
        with capture_output() as live:
            display.show(tile)
    finally:
        del shell.kernel
        InteractiveShell.clear_instance()
    [page], [live] = page.outputs, live.outputs
    assert page.data == {"text/html": tile.html(), "text/plain": repr(tile)}
    assert live.data["text/html"] == f"<style>{scene.sheet()}</style>{tile.html()}"
    assert notebooks.DRAWING.search(page.data["text/html"])  # no committed notebook has it


def test_who_collects_figures_gets_the_scene(tile):
    with display.collected() as figures:
        display.show(tile)
    assert figures == [tile]


def test_a_small_picture_is_larger_on_a_wide_page():
    small, lanes = scene.Drawing(300, 10).html(), scene.lanes([("a", [(0, 1, "load", "")])], 2)
    for body, larger in ((small, True), (scene.row(small, small), False), (lanes, False),
                         (scene.row(scene.column(small, small, width=280), small), False),
                         (scene.column(small, scene.key(("load", "loads", False))), True)):
        made = scene.Scene("A finding", body, "modelled: by hand").html()
        assert ('class="figure-scroll scene larger"' in made) == larger


@pytest.mark.parametrize("name, title, words", [
    ("registers", "lane 5 holds 8 of A; 4 of B; 4 of C and D, 32 bits", "filled: those of lane 5"),
    ("ldmatrix, plain", "ldmatrix.x4, plain tile: 32 wavefronts, where 4 would do",
     "names row 5 of matrix 0"),
    ("ldmatrix, swizzled", "", "r3 gets (25, 2) (25, 3)"),
    ("busiest", "L1 lines: busy for at least 76% of the time", "DRAM 15 µs recorded 2.71 ms"),
    ("busiest", "", "shared memory none L1 lines 2.05 ms"),
    ("occupancy", "registers and warps on T4; registers on A100; registers on H100",
     "H100: 1 block an SM, 32 warps (50% of its slots) registers: room for 1 shared memory: room "
     "for 25"),
    # The tensor pipe's share is under 2% in each bar: it joins the others.
    ("slots", "09 large: 84% of the issue slots hold an FMA, 11% stay empty; the largest stall is "
     "dispatch", "FMA load, store other long scoreboard short scoreboard barrier wait dispatch"),
    ("slots", "", "09 large 84 1 3 10 1 1"),
])
def test_a_scene_says_what_its_numbers_say(scenes, name, title, words):
    assert title in scenes[name].title and words in scenes[name].text


def test_no_piece_of_a_scene_is_wider_than_a_phone_s_column(scenes):
    widths = {(name, float(width)) for name, scene in scenes.items()
              for width in re.findall(r'width(?:=":?|:|=")([0-9.]+)', scene.html())}
    assert widths and not {(name, width) for name, width in widths if width > 349}


def test_words_on_a_full_colour_are_black_or_white_and_on_a_pale_one_ink():
    full, pale = (Drawing(9, 9).filled((0, 0, 9, 9), "a", "load", pale=pale).html()
                  for pale in (False, True))
    assert 'fill="#' in full and 'fill="#' not in pale
