"""Each kind of figure says, in title and alt text, what its numbers say."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from lib.gpus import GPUS
from lib.show import bottleneck as busiest
from lib.show import dots, ladder, roofline, timeline
from lib.show.roofline import Point, Roofs
from lib.show.timeline import of_marks
from tests import built
from tests.show.conftest import record, sheet_roofs


def shown(fig):
    return [text.get_text() for text in fig.findobj(Text)]


def test_ladder(drawn):
    fig = drawn["ladder"]
    assert fig.finding == "103.0% of cuBLAS in FP32, 99.9% in FP16"
    assert "10 WMMA: not recorded." in fig.alt
    assert "not recorded yet" in shown(fig)
    assert {"71*", "*: stale", "103.0", "FP32: 52.9 TFLOP/s", "naive"} <= set(shown(fig))
    assert "06 vectorised: 71% of cuBLAS in FP32, 36.3 TFLOP/s (stale)." in fig.alt


def test_ladder_without_records_says_so():
    fig = ladder.picture([ladder.Bar("01", "naive", "FP32", None, None)], evidence="recorded: none")
    assert fig.finding == "Nothing is recorded yet"


def test_ladder_leaves_out_groups_of_which_nothing_is_recorded():
    bars = [ladder.Bar("01", "a", "FP32", 0.2, 10.0), ladder.Bar("26", "b", "FP8", None, None)]
    texts = shown(ladder.picture(bars, evidence="recorded: H100"))
    assert "01" in texts and "26" not in texts


@pytest.mark.parametrize("ratio, exact", [(0.9996, "99.9%"), (1.0, "100.0%"), (1.0534, "105.3%")])
def test_what_is_slower_is_never_called_as_fast(ratio, exact):
    assert ladder.exact(ratio) == exact
    fig = ladder.picture([ladder.Bar("01", "a", "FP32", ratio, 10.0)], evidence="recorded: H100")
    assert exact.rstrip("%") in shown(fig)  # the tallest says what the headline says
    two = [ladder.Bar("01", "a", "FP32", ratio, 10.0), ladder.Bar("02", "b", "FP32", 1.2, 12.0)]
    shares = shown(ladder.picture(two, evidence="recorded: H100"))
    assert ("100" in shares) == (ratio == 1.0) and ("99" in shares) == (ratio < 1)


def test_ladder_marks_public_kernels_and_the_default_and_ranks_only_ours():
    bars = [ladder.Bar("01", "a", "FP32", 0.5, 25.0),
            ladder.Bar("", "theirs", "FP32", 0.7, 35.0, peer=True)]
    fig = ladder.picture(bars, evidence="recorded: H100", rival="the best of cuBLAS",
                      defaults={"FP32": 0.9})
    assert fig.finding == "50.0% of the best of cuBLAS in FP32"
    assert "theirs (public): 70% of the best of cuBLAS" in fig.alt
    assert "cuBLAS's default, FP32: 90% of the best of cuBLAS." in fig.alt
    assert "dotted: default; hollow: public" in shown(fig)


def test_dots(drawn):
    fig = drawn["dots"]
    assert {"ours", "default", "public", "100%", "09 tuned: 54.4 TFLOP/s",
            "100%: the best"} <= set(shown(fig))
    assert "FP16, 4,096: ours 99.6, default 94.0, public 70.0." in fig.alt
    # Its line lies between the dots that are less and the one that is more.
    (ax,) = fig.axes
    places = [line.get_xdata()[0] for line in ax.lines][:5]
    (even,) = [text.get_position()[0] for text in ax.texts if text.get_text() == "100%"]
    assert sorted(place > even for place in places) == [False] * 4 + [True]
    assert "09 tuned: 54.4 TFLOP/s" not in shown(drawn["dots, narrow"])


def test_dots_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no row has a dot"):
        dots.draw([dots.Row("a", [])], {"ours": dots.FULL}, title="a", evidence="recorded: H100",
                  same="the best")


@pytest.mark.parametrize("values, ends", [
    ((0.7, 1.06), (0.7, 1.1)), ((1.0, 1.0), (1.0, 1.01)), ((0.5, 12.0), (0.0, 15.0))])
def test_an_axis_of_ratios_holds_all_and_few_ticks(values, ends):
    low, high, each = dots._scale([*values, 1.0], 240.0)
    assert (low, high) == pytest.approx(ends)
    assert low < min(values) + 1e-9 and max(values) < high + 1e-9
    assert (high - low) / each < 240 / 44 + 1e-9


def test_roofline_names_the_nearest_roof(drawn):
    # 9.04 TFLOP/s at 0.661 FLOP/B under 33 TB/s: 21.8 TFLOP/s attainable.
    fig = drawn["roofline"]
    assert fig.finding == (
        "02 shared tile: 41% of the L1/shared roof, 13.9% of FFMA's")
    assert {"●", "◆", "DRAM 3.02 TB/s"} <= set(shown(fig)) and "FFMA 65.2 TFLOP/s" in shown(fig)
    assert "0.661 FLOP/B at L1/shared" in fig.alt


def test_roofline_above_the_ridge_names_the_arithmetic_roof():
    roofs = sheet_roofs(GPUS["H100"])
    points = [Point("x", "DRAM", 500.0, roofs.ffma / 2)]
    fig = roofline.picture(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.finding == "x: 50% of the FFMA roof, 2% of DRAM's"


def test_this_chapter_s_version_is_heard_before_the_others():
    roofs = sheet_roofs(GPUS["H100"])
    points = [Point("w", "DRAM", 10.0, 5e12), Point("x", "DRAM", 500.0, 0.95 * roofs.ffma)]
    fig = roofline.picture(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.alt.index("x (this chapter)") < fig.alt.index("w: ")


def test_busiest(drawn):
    fig = drawn["busiest"]
    assert fig.finding == "L1 lines: busy for at least 76% of the time"
    assert "recorded 2.71 ms" in shown(fig)
    assert "15 µs (compulsory bytes)" in shown(fig)
    assert "The longest is L1 lines. The kernel took 2.71 ms (recorded)." in fig.alt
    measured = busiest.picture({"DRAM": 1e-3}, 2e-3, seconds_evidence="measured",
                            evidence="modelled: H100 data sheet")
    assert "measured 2 ms" in shown(measured)


def test_occupancy(drawn):
    fig = drawn["occupancy"]
    assert "registers and warps on T4; registers on A100; registers on H100" in fig.finding
    assert "room for 25 blocks" in shown(fig)
    assert "H100: 1 block of 32 warps fit an SM, 50% of its warps, limited by registers" in fig.alt


def test_timeline(drawn):
    fig = drawn["timeline"]
    assert fig.finding.startswith("Warps are in the inner loop for ")
    assert "block 17" in shown(fig) and "block 18" in shown(fig)
    assert "the first 8 of 32 warps" in shown(fig)
    assert any("the first 512 of 4,096 blocks" in text for text in shown(fig))
    assert any("a mark costs 37 cycles" in text for text in shown(fig))
    assert "16 warps of 2 blocks over cycles 0 to 5,000" in fig.alt


def test_timeline_shares_and_time_scale():
    record = {
        "events": ["load", "wait", "compute", "barrier", "store", "end"],
        "mark_cycles": 0.0, "seconds_with": 0.0, "seconds_without": 0.0, "warps": 1,
        "total_blocks": 1,
        "blocks": [{"block": 0, "warps": [[[0, 1000], [1, 1100], [2, 1400], [5, 2000]]]}],
        "overview": [[0, 0, 1000]],
    }
    version = of_marks("x", built.marks(record), clock_hz=1e9)
    fig = timeline.picture([version], evidence="measured: H100")
    assert fig.finding == "Warps are in the inner loop for 60% of the time and spend 30% waiting"
    assert "load 10%, wait 30%, inner loop 60%" in fig.alt
    assert any(text.startswith("1 µs: the whole kernel, 1 block") for text in shown(fig))
    ticks = [t for t in shown(fig) if t.replace(",", "").replace(".", "").isdigit()]
    assert "1,000" in ticks and "1" in ticks  # 1,000 cycles are 1 µs at 1 GHz


@pytest.mark.parametrize("cycles", [1000, 4200, 4900, 6000, 9999, 14000])
def test_a_timeline_of_any_window_fits_a_phone(cycles):
    one = of_marks("02 shared tile", built.marks(record()), 1.98e9)
    fig = timeline.picture([one], evidence="recorded: H100", window=(0, cycles), narrow=True)
    numbers = [t.get_position()[0] for t in fig.findobj(Text)
               if re.fullmatch(r"[\d,]+", t.get_text()) and t.get_va() == "top"]
    assert 2 <= len(numbers) <= 7
    assert np.diff(sorted(numbers)).min() > 20  # pt from one number to the next


def test_timeline_says_where_steps_are_not_marked(drawn):
    marks = [[0, 0], [2, 100], [5, 200], [0, 800], [2, 900], [5, 1000]]
    made = timeline.Shown("x", ["load", "wait", "compute", "barrier", "store", "end"],
                            [("block 0", [marks])], 1e9)
    fig = timeline.picture([made], evidence="measured: H100")
    assert "gaps: steps not marked" in shown(fig)
    assert "load 50%, inner loop 50%" in fig.alt
    assert not any("not marked" in text for text in shown(drawn["timeline"]))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("group", ["FP32", "FP16"])
def test_the_names_of_a_roofline_s_roofs_stand_inside_it_and_apart(narrow, group):
    roofs = sheet_roofs(GPUS["H100"])
    top, peak = (roofs.ffma, "FFMA") if group == "FP32" else (roofs.tensor, "tensor")
    for share in (0.1, 0.4, 0.8, 0.97):
        dots = [Point("21 x", level, intensity * top / 1e14, share * top)
                for level, intensity in (("L1/shared", 8), ("DRAM", 900))]
        fig = roofline.picture(roofs, dots, current="21 x", evidence="recorded: H100",
                               peaks=(peak,), narrow=narrow)
        renderer, ax = fig.canvas.get_renderer(), fig.axes[0]
        frame = ax.get_window_extent(renderer)
        names = {text.get_text().split(" ")[0]: text.get_window_extent(renderer)
                 for text in ax.texts if text.get_text().endswith("/s")}
        slanted = [names["L1/shared"], names["DRAM"]]
        assert not any(box.overlaps(names[peak]) for box in slanted)
        assert all(frame.x0 <= box.x0 and frame.y0 <= box.y0 and box.y1 <= frame.y1
                   for box in slanted)
        # No dot lies off the axes.
        assert all(frame.contains(*ax.transData.transform((dot.intensity, dot.flops_per_s)))
                   for dot in dots)


def test_two_close_roofs_are_named_with_one_unit():
    roofs = replace(sheet_roofs(GPUS["H100"]), products={"wgmma": 904e12})
    fig = roofline.picture(roofs, [Point("x", "DRAM", 500.0, 7e14)], current="x",
                        evidence="recorded: H100", peaks=("wgmma", "tensor"), narrow=True)
    assert any(text.startswith("tensor ") and text.endswith(", under it wgmma 904 TFLOP/s")
               and text.count("FLOP/s") == 1 for text in shown(fig))


def test_a_name_begins_behind_the_dots_of_versions_as_fast():
    roofs = sheet_roofs(GPUS["H100"])
    points = [Point("05", "DRAM", 20.0, 30.1e12), Point("04", "DRAM", 25.0, 29.9e12)]
    fig = roofline.picture(roofs, points, current="04", evidence="recorded: H100")
    renderer, ax = fig.canvas.get_renderer(), fig.axes[0]
    name = next(text for text in fig.findobj(Text) if text.get_text().startswith("05, "))
    dot = ax.transData.transform((25.0, 29.9e12))[0]
    assert name.get_window_extent(renderer).x0 > dot


def test_what_marks_cost_and_the_evidence_never_overprint_each_other():
    one = of_marks("x", built.marks(record()), 1e9)
    for evidence in ("recorded: H100", "recorded: H100 80GB HBM3, 2026-11-24, the timeline at abc; "
                     "recorded: H100 80GB HBM3, 2026-11-23, 4,096³",
                     "recorded: H100 80GB HBM3, 2026-11-27 to 28, 3 boards (15 tile_128x256); "
                     "2026-11-24, 4 boards at 0b1e0dc (16 tile_256x128), 2,048³"):
        fig = timeline.picture([one], evidence=evidence, window=(0, 5000))
        renderer = fig.canvas.get_renderer()
        cost, below = (next(t for t in fig.findobj(Text) if t.get_text().startswith(said))
                       .get_window_extent(renderer) for said in ("a mark costs", "recorded: H100"))
        assert not cost.overlaps(below) and below.x0 >= 0


def test_a_warp_that_waits_for_its_turn_is_counted_as_waiting():
    events = ["load", "wait", "compute", "barrier", "store", "end"]
    first, second = [[1, 0], [2, 100], [5, 500]], [[1, 500], [2, 600], [5, 1000]]
    made = timeline.Shown("x", events, [("block 0", [first, second, [[0, 0], [5, 900]]])], 1e9,
                            roles=(("consumer", 2), ("producer", 1)))
    fig = timeline.picture([made], evidence="measured: H100")
    # 800 of the 1,500 cycles from the block's first mark to each consumer's last one.
    assert "wait 47%, inner loop 53%" in fig.alt


def test_timeline_of_a_record_without_blocks_is_an_error():
    with pytest.raises(ValueError, match="no block"):
        of_marks("x", built.marks({**record(), "blocks": []}), 1e9)


def test_two_timelines_share_a_scale(drawn):
    assert drawn["timeline, before and after"].finding.count("%") == 2
    np.testing.assert_array_less(
        drawn["timeline"].get_figheight(), drawn["timeline, before and after"].get_figheight()
    )


def test_fragments(scenes):
    product = scenes["fragments, product"]
    assert product.title == "mma.m16n8k8: lane 5 holds 4 elements of A, 2 of B, 4 of C"
    assert "row g + 8·m, column 2·t + h" in product.text


def test_ldmatrix(scenes):
    assert scenes["ldmatrix, plain"].title == (
        "ldmatrix.x4, plain tile: 32 wavefronts, where 4 would do"
    )
    text = scenes["ldmatrix, transposed"].text
    assert "names row 3 of matrix 3" in text and "gets (6, 6) (7, 6)" in text
    assert "names no row" in scenes["ldmatrix, two"].text


def test_no_piece_of_a_scene_is_wider_than_a_phone_s_column(scenes):
    widths = {(name, float(width)) for name, scene in scenes.items()
              for width in re.findall(r'width(?:=":?|:|=")([0-9.]+)', scene.html())}
    assert widths and not {(name, width) for name, width in widths if width > 349}


def test_timeline_tells_roles_apart(drawn):
    fig = drawn["timeline, roles"]
    assert fig.finding.startswith("Consumers are in the inner loop for ")
    assert {"consumers", "producer", "stages\nin flight"} <= set(shown(fig))
    assert any(text.startswith("block 3; the first 9") for text in shown(fig))


def test_busiest_of_another_machine(drawn):
    fig = drawn["busiest, with a remark"]
    assert fig.finding == "Tensor pipe: busy for at least 70% of the time"
    assert "the L2 must deliver 1" in shown(fig)


def test_roofline_of_tensor_cores_names_the_instruction(drawn):
    fig = drawn["roofline, tensor"]
    assert fig.finding == (
        "14 ldmatrix: 60% of the mma.m16n8k8 roof, 13.2% of DRAM's")
    assert "mma.m16n8k8 459 TFLOP/s" in shown(fig)


def test_slots_say_what_became_of_them(drawn):
    fig = drawn["slots"]
    assert fig.finding == (
        "09 large: 84% of the issue slots hold an FMA, 11% stay empty; the largest stall is "
        "dispatch")
    assert {"60", "20", "long scoreboard"} <= set(shown(fig))
    assert "cuBLAS: 77% FMA, 1% tensor, 1% load, store" in fig.alt
    assert "12% empty by short scoreboard" in fig.alt
    # The tensor pipe's share is under 2% in each bar: it joins the others.
    assert "tensor" not in shown(fig)


@pytest.mark.parametrize("speeds", [
    (737, 726), (640, 737, 736), (5.9, 5.8), (9, 9, 9),
])
def test_names_at_the_roofline_never_overlap(speeds):
    roofs = Roofs(2.9e12, 33e12, 66e12, 989e12, "recorded: H100")
    points = [Point(f"v{i:02}", "DRAM", 700.0, speed * 1e12) for i, speed in enumerate(speeds)]
    fig = roofline.picture(roofs, points, current="v00", evidence="recorded: H100",
                        peaks=("tensor",) if max(speeds) > 66 else ("FFMA",))
    fig.canvas.draw()
    ax = fig.axes[0]
    names = [t.get_window_extent() for t in ax.texts if t.get_text().startswith("v")]
    assert len(names) == len(speeds)
    for i, box in enumerate(names):
        assert not any(box.overlaps(other) for other in names[i + 1 :])
        assert box.y0 >= ax.get_window_extent().y0 - 2


def test_timeline_of_blocks_that_all_begin_at_once_has_no_overview():
    record = {
        "events": ["load", "wait", "compute", "barrier", "store", "end"],
        "mark_cycles": 0.0, "seconds_with": 0.0, "seconds_without": 0.0, "warps": 1,
        "total_blocks": 1024,
        "blocks": [{"block": 0, "warps": [[[0, 1000], [1, 1100], [2, 4400], [5, 9000]]]}],
        "overview": [[i % 132, i, 90_000 + i] for i in range(512)],
    }
    version = of_marks("x", built.marks(record), clock_hz=1e9)
    fig = timeline.picture([version], evidence="measured: H100", window=(0, 5000))
    assert "The first 512 of 1,024 blocks all begin within 511 ns." in shown(fig)
    assert "blocks\nrunning" not in shown(fig)
