"""The cards' pictures from 01 to 09: what they count is what the emulator and the records say."""

import pytest

from lib.ptx.core.machine import WARP
from lib.show import cycles, lanes, reuse
from lib.show.issue_slots import shares
from lib.show.pipelines import Span
from lib.show.timeline import tiles_of
from lib.show.version import Version

ALONG, DOWN = ([step * i for i in range(WARP)] for step in (4, 4 * 4096))


def test_lanes_touch_what_the_emulator_counts():
    for addresses, sectors, lines in ((ALONG, 4, 1), (DOWN, 32, 32), ([0] * WARP, 1, 1)):
        found = lanes.touched(addresses)
        assert (len(found.sectors), len(found.lines)) == (sectors, lines)
    scene = lanes.sectors()
    assert scene.title == "A load of 32 floats: 1 wavefront, or 32"
    assert "32 sectors of 32 bytes, 32 lines: 32 wavefronts" in scene.text


def test_banks_serve_a_word_each_per_wavefront():
    before, after = lanes.columns_of_b()
    assert [sum(len(load.rows()) for load in loads) for loads in (before, after)] == [8, 4]
    assert lanes.banks(before, after).title.endswith(": 8 wavefronts, then 4")
    assert [served for _, served in before[0].rows()][:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    column = lanes.Access("down a column", [32 * lane for lane in range(WARP)])
    assert len(column.rows()) == 32


def test_reuse_is_counted_per_tile():
    assert reuse.floats(8, 8) == (16, 64) and reuse.floats(8, 1) == (9, 8)
    assert "1.125 floats per FMA instead of 2" in reuse.strip().title
    assert reuse.outer().text.count("a7b7") == 1
    assert lanes.rectangle().title == (
        "2.25 floats from shared memory per FMA of a warp, then 1.25")
    assert sorted(map(lanes.in_squares, range(WARP))) == [(y, x) for y in range(8)
                                                          for x in range(4)]
    assert (lanes.STRIP.tile, lanes.TALL.tile) == ((16, 128), (128, 32))
    assert "12 loads, 64 FMAs" in lanes.wide_loads(12, 4).text
    assert "used 32 times" in reuse.walking().title


def test_cycles_are_those_of_the_spans():
    spans = [Span("compute", 0, 1400), Span("wait", 1400, 3000), Span("wait", 3000, 3100)]
    assert cycles.waited(spans) == 1700
    scene = cycles.under(("a", spans), ("b", spans[:1]), 2, "recorded: x")
    assert scene.title == "The warp waits 0 cycles per tile for global memory, not 850"


def test_a_recorded_warp_waits_less_where_loads_are_ahead():
    version = Version("07_double_buffer")
    late, ahead = (tiles_of(version, name, 6) for name in ("neither", "both"))
    assert [sum(span.kind == "wait" for span in spans) for spans in (late, ahead)] == [6, 6]
    assert cycles.waited(late) > 4 * cycles.waited(ahead)
    assert late[0].start == 0 and all(a.end == b.start for a, b in zip(late, late[1:],
                                                                       strict=False))


@pytest.mark.parametrize("stem", ["08_warp_tile", "09_fp32_limit"])
def test_a_hundred_slots_are_all_of_them(stem):
    found = shares(Version(stem))
    assert sum(found.values()) == pytest.approx(1)
    assert sum(cycles.cells(found).values()) == 100
    assert abs(cycles.cells(found)["FMA"] - 100 * found["FMA"]) < 1
