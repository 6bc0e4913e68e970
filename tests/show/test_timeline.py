"""Phases of warps and residency of blocks against tiny examples by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from msgspec import structs

from lib.show import chart as style
from lib.show.timeline import (
    Phase,
    Shown,
    at_work,
    draw,
    of_variant,
    parts,
    phases,
    picture,
    recorded_until,
    residency,
    share,
    without_other_lanes,
)
from lib.show.version import Version
from tests import built
from tests.show.conftest import record, words_of

EVENTS = ["load", "compute"]


def test_a_mark_begins_a_phase_that_the_next_one_ends():
    found = phases(EVENTS, [[[0, 10], [1, 30], [0, 50]], [[1, 20], [0, 40]], []])
    assert found == [
        Phase(0, "load", 10, 30),
        Phase(0, "compute", 30, 50),
        Phase(1, "compute", 20, 40),
    ]
    with pytest.raises(ValueError, match="warp 0"):
        phases(EVENTS, [[[0, 10], [1, 5]]])


def test_share_is_weighted_by_time():
    spans = [Phase(0, "load", 0, 10), Phase(1, "load", 5, 10), Phase(1, "compute", 10, 20)]
    found = share(spans, EVENTS, np.array([0, 10, 20]), warps=2)
    np.testing.assert_allclose(found, [[0.75, 0.0], [0.0, 0.5]])


def test_some_warp_is_at_work_where_the_inner_loops_of_all_cover_the_time():
    spans = [Phase(0, "compute", 0, 10), Phase(1, "compute", 5, 20), Phase(1, "wait", 20, 30),
             Phase(0, "compute", 40, 90)]
    assert at_work(spans, (0, 50)) == pytest.approx(0.6)
    assert at_work(spans, (20, 40)) == 0


def test_the_kernel_s_end_is_not_drawn_where_warps_go_on_behind_thread_0():
    version = Version("20_persistent")
    turns, together = (of_variant(version, version.kernel.variant(name))
                       for name in ("ping_pong", "cooperative"))
    said = [" ".join(text.get_text() for text in picture(
        [one], evidence="recorded: x", window=(19000, 29000)).findobj(Text))
        for one in (turns, together)]
    assert "the whole kernel" not in said[0] and "the whole kernel" in said[1]
    assert all("of the time" in one for one in said)


def test_a_few_blocks_that_outlast_the_others_can_be_seen():
    version = Version("20_persistent")
    one = of_variant(version, version.kernel.variant("cooperative"))
    last = max(end for _, _, end in one.marks.overview)
    one = replace(one, marks=structs.replace(
        one.marks, overview=(*one.marks.overview, (0, 0, 2 * last))))
    fig = picture([one], evidence="recorded: x", window=(19000, 29000))
    (staircase,) = [patch for patch in fig.findobj(PathPatch)
                    if patch.get_alpha() == 0.5 and to_hex(patch.get_facecolor()) == style.OTHER]
    heights = staircase.get_path().vertices[:, 1]
    tail = heights[heights > heights.min()].min() - heights.min()  # of one block alone
    assert tail >= 1.5 > (heights.max() - heights.min()) / len(one.marks.overview)


def test_residency_counts_blocks_running():
    # Two blocks for the first 100 ns, one for the second, one more starts at 150 ns.
    overview = [(0, 1000, 1100), (1, 1000, 1200), (0, 1150, 1200)]
    seconds, blocks = residency(overview, bins=4)
    np.testing.assert_allclose(seconds, np.array([25, 75, 125, 175]) * 1e-9)
    np.testing.assert_allclose(blocks, [2, 2, 1, 2])
    assert blocks.mean() * 200 == pytest.approx(100 + 200 + 50)


def test_an_overview_of_the_first_blocks_is_whole_until_the_last_of_them_began():
    overview = [(0, 1000, 1100), (1, 1000, 1200), (0, 1150, 1300)]
    assert recorded_until(overview, 3) == pytest.approx(300e-9)
    assert recorded_until(overview, 4) == pytest.approx(150e-9)
    _, blocks = residency(overview, bins=3, until=150e-9)
    np.testing.assert_allclose(blocks, [2, 2, 1])


def test_parts_are_of_the_marked_time_in_the_window():
    spans = [Phase(0, "load", 0, 10), Phase(0, "end", 10, 60), Phase(0, "compute", 60, 100)]
    assert parts(spans, ["load", "wait", "compute"], (0, 100)) == {"load": 0.2, "compute": 0.8}
    assert parts(spans, ["load", "wait", "compute"], (5, 65)) == {"load": 0.5, "compute": 0.5}
    assert parts(spans, ["load", "wait", "compute"], (20, 50)) == {}


def test_marks_of_lanes_that_take_no_part_are_left_out():
    events = ["load", "wait", "compute", "barrier", "store", "end"]
    warps = [[[5, 1839], [0, 165], [1, 585], [5, 900]], [[5, 22]], [[1, 5], [5, 9]]]
    cleaned = without_other_lanes(events, warps)
    assert cleaned == [warps[0][1:], warps[1], warps[2]]
    assert [p.event for p in phases(events, cleaned)] == ["load", "wait", "wait"]


@pytest.mark.parametrize("variant, name", [
    ("float4", "06 vectorised"), ("global_128", "06 vectorised, global_128")])
def test_a_step_s_timeline_says_which_step_it_is_of(variant, name):
    version = Version("06_vectorized")
    assert of_variant(version, version.kernel.variant(variant)).name == name


def test_a_timeline_that_is_older_than_its_record_says_of_which_commit_it_is(shown):
    version = Version("20_persistent")
    record = version.record
    name = version.kernel.fastest.name
    one = record.variants[name]
    new = structs.replace(one, timeline=structs.replace(one.timeline, revision=None))
    version.reader.__dict__["record"] = structs.replace(
        record, variants=record.variants | {name: new})
    draw(version)
    assert f"{record.date} at" not in shown[0]
    older = structs.replace(one, timeline=structs.replace(one.timeline, revision="abc-dirty"))
    version.reader.__dict__["record"] = structs.replace(
        record, variants=record.variants | {name: older})
    draw(version)
    assert "at abc-dirty" in shown[1] and "at abc-dirty" not in shown[0]


def marked(warps, **others):
    """A timeline of one block with these marks."""
    return built.marks({**record(), "blocks": [{"block": 0, "warps": warps}], **others})


def test_timeline_shares_and_time_scale():
    version = Shown("x", marked([[[0, 1000], [1, 1100], [2, 1400], [5, 2000]]], total_blocks=1,
                                overview=[[0, 0, 1000]]), 1e9)
    fig = picture([version], evidence="measured: H100", window=(0, 1000))
    assert fig.finding == "Warps are in the inner loop for 60% of the time and spend 30% waiting"
    assert "load 10%, wait 30%, inner loop 60%" in fig.alt
    assert any(text.startswith("1 µs: the whole kernel, 1 block") for text in words_of(fig))
    ticks = [t for t in words_of(fig) if t.replace(",", "").replace(".", "").isdigit()]
    assert "1,000" in ticks and "1" in ticks  # 1,000 cycles are 1 µs at 1 GHz


@pytest.mark.parametrize("cycles", [1000, 4200, 4900, 6000, 9999, 14000])
def test_a_timeline_of_any_window_fits_a_phone(cycles):
    one = Shown("02 shared tile", built.marks(record()), 1.98e9)
    fig = picture([one], evidence="recorded: H100", window=(0, cycles), narrow=True)
    numbers = [t.get_position()[0] for t in fig.findobj(Text)
               if re.fullmatch(r"[\d,]+", t.get_text()) and t.get_va() == "top"]
    assert 2 <= len(numbers) <= 7
    assert np.diff(sorted(numbers)).min() > 20  # pt from one number to the next


def test_timeline_says_where_steps_are_not_marked(drawn):
    marks = [[0, 0], [2, 100], [5, 200], [0, 800], [2, 900], [5, 1000]]
    made = {**record(), "warps": 1, "blocks": [{"block": 0, "warps": [marks]}]}
    fig = picture([Shown("x", built.marks(made), 1e9)], evidence="measured: H100",
                  window=(0, 1000))
    assert "gaps: steps not marked" in words_of(fig)
    assert "load 50%, inner loop 50%" in fig.alt
    assert not any("not marked" in text for text in words_of(drawn["timeline"]))


def test_what_marks_cost_and_the_evidence_never_overprint_each_other():
    one = Shown("x", built.marks(record()), 1e9)
    for evidence in ("recorded: H100", "recorded: H100 80GB HBM3, 2026-11-24, the timeline at abc; "
                     "recorded: H100 80GB HBM3, 2026-11-23, 4,096³",
                     "recorded: H100 80GB HBM3, 2026-11-27 to 28, 3 boards (15 tile_128x256); "
                     "2026-11-24, 4 boards at 0b1e0dc (16 tile_256x128), 2,048³"):
        fig = picture([one], evidence=evidence, window=(0, 5000))
        renderer = fig.canvas.get_renderer()
        cost, below = (next(t for t in fig.findobj(Text) if t.get_text().startswith(said))
                       .get_window_extent(renderer) for said in ("a mark costs", "recorded: H100"))
        assert not cost.overlaps(below) and below.x0 >= 0


def test_a_warp_that_waits_for_its_turn_is_counted_as_waiting():
    first, second = [[1, 0], [2, 100], [5, 500]], [[1, 500], [2, 600], [5, 1000]]
    made = Shown("x", marked([first, second, [[0, 0], [5, 900]]]), 1e9,
                 (("consumer", 2), ("producer", 1)))
    fig = picture([made], evidence="measured: H100", window=(0, 1000))
    # 800 of the 1,500 cycles from the block's first mark to each consumer's last one.
    assert "wait 47%, inner loop 53%" in fig.alt


def test_timeline_of_a_record_without_blocks_is_an_error():
    with pytest.raises(ValueError, match="no block"):
        Shown("x", built.marks({**record(), "blocks": []}), 1e9)


def test_two_timelines_share_a_scale(drawn):
    assert drawn["timeline, before and after"].finding.count("%") == 2
    np.testing.assert_array_less(
        drawn["timeline"].get_figheight(), drawn["timeline, before and after"].get_figheight()
    )


def test_timeline_of_blocks_that_all_begin_at_once_has_no_overview():
    made = marked([[[0, 1000], [1, 1100], [2, 4400], [5, 9000]]], total_blocks=1024,
                  overview=[[i % 132, i, 90_000 + i] for i in range(512)])
    version = Shown("x", made, 1e9)
    fig = picture([version], evidence="measured: H100", window=(0, 5000))
    assert "blocks\nrunning" not in words_of(fig)
