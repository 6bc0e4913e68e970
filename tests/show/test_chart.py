"""What every figure owes its reader: legible in light, dark and small; described; sourced."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text

from lib.show import chart as style
from lib.show import colours, html
from tests.tables import cases

LIGHT, DARK = "#ffffff", "#14181e"


def luminance(colour):
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PALETTE = {
    **style.PHASE, "integer": colours.ISSUED["integer"], "control": colours.ISSUED["control"],
    **{f"stall {name}": colour for name, colour in colours.STALL.items()
       if colour not in style.PHASE.values()},
    "other": style.OTHER, "other stalls": colours.OTHER_STALL,
    "focus": style.FOCUS, "good": colours.GOOD, "warning": colours.WARNING,
}


@pytest.mark.parametrize("name", PALETTE)
def test_colours_stand_out_on_white_and_on_near_black(name):
    assert contrast(PALETTE[name], LIGHT) >= 3
    assert contrast(PALETTE[name], DARK) >= 3
    assert contrast(PALETTE[name], style.on(PALETTE[name])) >= 4.5


def test_one_meaning_a_colour():
    assert len(set(PALETTE.values())) == len(PALETTE)


def lab_of_dichromat(colour, kind):
    """CIE Lab of a colour as a colour-blind reader sees it (Viénot, Brettel, Mollon 1999)."""
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    if kind == "protan":
        yellow, blue = 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b
    else:
        yellow, blue = 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b
    x = (0.7700 * yellow + 0.1805 * blue) / 0.9505
    y = 0.9278 * yellow + 0.0722 * blue
    z = (0.1385 * yellow + 0.9505 * blue) / 1.0890
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_phases_differ_for_the_colour_blind(kind):
    for one, other in itertools.combinations(style.PHASE.values(), 2):
        difference = math.dist(lab_of_dichromat(one, kind), lab_of_dichromat(other, kind))
        assert difference > 15, (one, other)


def texts(fig):
    return [t for t in fig.findobj(Text) if t.get_visible() and t.get_text().strip()]


def test_no_text_under_nine_points(fig):
    assert min(text.get_fontsize() for text in texts(fig)) >= 9


def test_texts_lie_inside_the_figure_and_apart(fig):
    renderer = fig.canvas.get_renderer()
    width, height = fig.get_size_inches() * fig.dpi
    boxes = []
    for text in texts(fig):
        box = text.get_window_extent(renderer)
        where = text.get_text()
        assert box.x0 >= 0 and box.x1 <= width, f"{where!r} leaves the figure"
        assert box.y0 >= -1 and box.y1 <= height + 1, f"{where!r} leaves the figure"
        if text.get_rotation() % 90 == 0:  # the box of a slanted text is mostly empty
            boxes.append((where, box.padded(-0.6)))
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        assert not a.overlaps(b), f"{one!r} and {other!r} overlap"


def test_only_the_palette_is_used(fig):
    known = {*PALETTE.values(), style.INK, "#ffffff", "#000000"}
    for artist in fig.findobj(lambda a: isinstance(a, (PathPatch, Rectangle))):
        if artist in (fig.patch, *(ax.patch for ax in fig.axes)):
            continue
        for colour in (artist.get_facecolor(), artist.get_edgecolor()):
            assert colour[3] == 0 or to_hex(colour) in known
    for text in texts(fig):
        assert to_hex(text.get_color()) in known


def test_evidence_and_description(fig):
    shown = [" ".join(text.get_text().split()) for text in texts(fig)]
    assert fig.evidence in shown
    assert fig.evidence.split(":")[0] in style.EVIDENCE
    assert len(fig.alt) > 60 and "\n" not in fig.alt
    assert len(fig.finding) > 20


def test_svg_follows_the_page(fig):
    text = html.svg(fig)
    root = ET.fromstring(text.replace("&nbsp;", " "))
    drawing = root[0]
    assert root.tag == "figure" and "overflow-x:auto" in root.get("style")
    assert drawing.get("role") == "img"
    label = drawing.get("aria-label")
    rest = "".join(e.text for e in drawing if e.tag.endswith("desc"))
    assert len(label) <= html.MAX_LABEL and f"{label} {rest}".split() == fig.alt.split()
    assert drawing.get("width") is None and drawing.get("height") is None
    wide, tall = fig.get_size_inches() * 72
    assert [float(v) for v in drawing.get("viewBox").split()] == pytest.approx([0, 0, wide, tall])
    # At its least width one unit of the drawing is a point: 96 pixels are 72 points.
    least = int(re.search(r"min-width:(\d+)px", drawing.get("style"))[1])
    assert least == pytest.approx(wide * 96 / 72, abs=1)
    assert "currentColor" in text
    assert style.INK not in text
    assert "<style" not in text and "<metadata" not in text
    assert "<text" in text  # text stays text: found by a search, read by a screen reader
    assert len(text) < 100_000


def test_bars_of_one_height_are_drawn_as_thick_lines_where_they_were():
    fig = style.figure("Bars", 2.0)
    axes = fig.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 100), ylim=(0, 4))
    axes.axis("off")
    style.rectangles(axes, [(10, 1, 20, 0.5), (50, 1, 5.5, 0.5)], facecolor="#1fa274")
    style.outline(axes, [(0, 0), *style.steps(0, 25, [1, 1, 2, 3]), (100, 0)], closed=True,
                   linewidth=0, facecolor="#3a8be0")
    style.finish(fig, alt="Bars, and steps.", evidence="modelled: nothing")
    text = html.svg(fig)
    wide, tall = fig.get_size_inches() * 72
    lines, = re.findall(r'd="([^"]*)" style="fill: none; stroke: #1fa274; stroke-width: ([\d.]+)',
                        text)
    ends = [[float(number) for number in line]
            for line in re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", lines[0])]
    middle = tall * (1 - 1.25 / 4)
    for found, expected in zip(sorted(ends), [(10, 30), (50, 55.5)], strict=True):
        left, right = (wide * share / 100 for share in expected)
        assert found == pytest.approx([left, middle, right], abs=0.11)
    assert float(lines[1]) == pytest.approx(tall * 0.5 / 4, abs=0.11)
    # A level line over two steps is one line, and it goes up where it did.
    steps, = re.findall(r'd="([^"]*)" style="fill: #3a8be0', text)
    up = [float(number) for number in re.findall(r"V([\d.]+)", steps)]
    assert steps.count("H") == 3 and min(up) == pytest.approx(tall / 4, abs=0.11)


def test_black_text_stays_black_and_ink_follows_the_page():
    fig = style.figure("Words", 1.0)
    axes = fig.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.text(0.5, 0.2, "on a bar", color="#000000")  # Matplotlib writes no fill for it
    axes.text(0.5, 0.8, "on the page", color=style.INK)
    style.finish(fig, alt="Words.", evidence="modelled: nothing")
    drawing = ET.fromstring(html.svg(fig))[0]
    fills = {text.text: text.get("style") or "" for text in drawing.iter() if text.text}
    assert "fill: #000" in fills["on a bar"]  # said, or it takes the page's ink in the dark
    assert "fill: currentColor" in fills["on the page"]


def test_ids_are_unique_and_whole(drawn):
    pages = [html.svg(fig) for fig in drawn.values()]
    pages += [html.svg(next(iter(drawn.values())))]  # the same figure shown twice
    ids = [name for page in pages for name in re.findall(r' id="([^"]+)"', page)]
    assert len(ids) == len(set(ids))
    for page in pages:
        mine = set(re.findall(r' id="([^"]+)"', page))
        used = set(re.findall(r'url\(#([^)]+)\)', page)) | set(re.findall(r'href="#([^"]+)"', page))
        assert used <= mine


@pytest.mark.parametrize("width", [style.WIDTH, style.NARROW])
def test_a_foot_has_room_for_its_words_and_no_more(width):
    """A note beside or above the evidence, neither over the other nor over the drawing."""
    long = "recorded: H100 80GB HBM3, 2026-11-24 to 28, 6 boards, ncu, 4,096³"
    heights = []
    for note in ("", "% of slots", "% of issue slots; hatched: modelled, by warps stalled"):
        fig = style.figure("finding", 1.0, width)
        ax = style.axes(fig, 0, 0, width, 1.0, bare=True)
        style.finish(fig, alt="alt", evidence=long, note=note)
        boxes = [text.get_window_extent().padded(-0.6) for text in fig.texts if text.get_text()]
        boxes.append(ax.get_window_extent())
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
        assert boxes[-1].height == pytest.approx(fig.dpi)
        heights.append(fig.get_figheight())
    assert heights == sorted(heights) and 0.05 < heights[2] - heights[0] < 0.4


def test_a_figure_without_description_is_not_shown():
    bare = style.figure("A finding", 1)
    with pytest.raises(ValueError, match="alt text"):
        html.svg(bare)
    with pytest.raises(ValueError, match="alt text"):
        style.finish(bare, alt=" ", evidence="measured: here")
    with pytest.raises(ValueError, match="measured, recorded"):
        style.finish(bare, alt="x", evidence="guessed: somewhere")


def test_settings_of_the_reader_are_left_alone(drawn):
    import matplotlib

    assert matplotlib.rcParams["svg.fonttype"] == matplotlib.rcParamsDefault["svg.fonttype"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(2.71e-3, "2.71 ms"), (1.5e-5, "15 µs"), (3e-9, "3 ns"), (2.0, "2 s"), (0.0, "0 ns")],
)
def test_durations(value, expected):
    assert style.duration(value) == expected


@cases("""
value expected
1.0   100%
0.125 12.5%
0.05  5%
0.714 71%
0.0   0%
""")
def test_percent(value, expected):
    assert style.percent(value) == expected


def test_quantities():
    assert style.quantity(2.039e12, "B/s") == "2.04 TB/s"
    assert style.quantity(1234567.0, "B") == "1.23 MB"
    assert style.number(131072) == "131,072"


def test_numbers_in_a_figure_s_text_are_not_rounded():
    fig = style.figure("0.125 wavefronts", 1.0)
    style.finish(fig, alt="alt", evidence="modelled: nothing")
    assert ">0.125 wavefronts<" in html.svg(fig)

# The finding, texts on the sheet, and parts of them or of the alternative text.
SAID = {
    # 9.04 TFLOP/s at 0.661 FLOP/B under 33 TB/s: 21.8 TFLOP/s attainable.
    "roofline": ("02 shared tile: 41% of the L1/shared roof, 13.9% of FFMA's",
                 {"●", "◆", "DRAM 3.02 TB/s", "FFMA 65.2 TFLOP/s"}, ["0.661 FLOP/B at L1/shared"]),
    "roofline, tensor": ("14 ldmatrix: 60% of the mma.m16n8k8 roof, 13.2% of DRAM's",
                         {"mma.m16n8k8 459 TFLOP/s"}, []),
    "timeline": ("Warps are in the inner loop for ",
                 {"block 17", "block 18", "the first 8 of 32 warps"},
                 ["the first 512 of 4,096 blocks", "a mark costs 37 cycles",
                  "16 warps of 2 blocks over cycles 0 to 5,000"]),
    "timeline, roles": ("Consumers are in the inner loop for ",
                        {"consumers", "producer", "stages\nin flight"},
                        ["block 3; the first 9"]),
}


@pytest.mark.parametrize("name", SAID)
def test_a_figure_says_what_its_numbers_say(drawn, name):
    finding, words, parts = SAID[name]
    found = {text.get_text() for text in texts(drawn[name])}
    assert finding in drawn[name].finding and words <= found
    assert all(part in " ".join([drawn[name].alt, *found]) for part in parts)
