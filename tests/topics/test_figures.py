"""Each kind of figure says, in title and alt text, what its numbers say."""

import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import PathPatch
from matplotlib.text import Text

from lib.gpus import GPUS
from lib.plotting import dots
from lib.show.scene import WIDTH
from lib.topics.code.instruction_mix import figure as mix
from lib.topics.code.mapping.model import Region, Work
from lib.topics.code.running_picture import figure as running_picture
from lib.topics.code.running_picture import model as running_picture_model
from lib.topics.code.step import figure as step
from lib.topics.code.step import page as step_page
from lib.topics.limits.bottleneck import figure as busiest
from lib.topics.limits.roofline import figure as roofline
from lib.topics.limits.roofline.model import Point, Roofs, l1_bytes
from lib.topics.limits.roofline.model import points as points_of
from lib.topics.memory.staging import figure as staging
from lib.topics.memory.staging.model import Staging
from lib.topics.memory.tma_box import figure as tma_box
from lib.topics.memory.tma_box import model as box_model
from lib.topics.memory.tma_swizzle import figure as tma_swizzle
from lib.topics.results.ablation import figure as ablation
from lib.topics.results.ladder import figure as ladder
from lib.topics.time.timeline import figure as timeline
from lib.topics.time.timeline.page import of_marks
from lib.topics.version import Version
from tests import built
from tests.topics.conftest import record


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
    fig = ladder.draw([ladder.Bar("01", "naive", "FP32", None, None)], evidence="recorded: none")
    assert fig.finding == "Nothing is recorded yet"


def test_ladder_leaves_out_groups_of_which_nothing_is_recorded():
    bars = [ladder.Bar("01", "a", "FP32", 0.2, 10.0), ladder.Bar("26", "b", "FP8", None, None)]
    texts = shown(ladder.draw(bars, evidence="recorded: H100"))
    assert "01" in texts and "26" not in texts


@pytest.mark.parametrize("ratio, exact", [(0.9996, "99.9%"), (1.0, "100.0%"), (1.0534, "105.3%")])
def test_what_is_slower_is_never_called_as_fast(ratio, exact):
    assert ladder.exact(ratio) == exact
    fig = ladder.draw([ladder.Bar("01", "a", "FP32", ratio, 10.0)], evidence="recorded: H100")
    assert exact.rstrip("%") in shown(fig)  # the tallest says what the headline says
    two = [ladder.Bar("01", "a", "FP32", ratio, 10.0), ladder.Bar("02", "b", "FP32", 1.2, 12.0)]
    shares = shown(ladder.draw(two, evidence="recorded: H100"))
    assert ("100" in shares) == (ratio == 1.0) and ("99" in shares) == (ratio < 1)


def test_ladder_marks_public_kernels_and_the_default_and_ranks_only_ours():
    bars = [ladder.Bar("01", "a", "FP32", 0.5, 25.0),
            ladder.Bar("", "theirs", "FP32", 0.7, 35.0, peer=True)]
    fig = ladder.draw(bars, evidence="recorded: H100", rival="the best of cuBLAS",
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


def test_map(scenes):
    assert scenes["map, naive"].title == "One k: a warp reads 33 different elements for 64 FLOP"
    scene = scenes["map, tile"]
    assert scene.title == (
        "One tile of 32 k: a block reads 2,048 different elements for 65,536 FLOP")
    assert "a block reads 32 × 32 of A and 32 × 32 of B" in scene.text


def test_a_phone_s_figures_say_what_the_wide_ones_say(drawn):
    assert "02 shared tile, 9.04 TFLOP/s" in shown(drawn["roofline, narrow"])
    assert "wide" in shown(drawn["ablation, narrow"])


def test_roofline_names_the_nearest_roof(drawn):
    # 9.04 TFLOP/s at 0.661 FLOP/B under 33 TB/s: 21.8 TFLOP/s attainable.
    fig = drawn["roofline"]
    assert fig.finding == (
        "02 shared tile is under every roof: 41% of the L1/shared roof, 13.9% of the FFMA roof")
    assert "DRAM 3.02 TB/s" in shown(fig) and "FFMA 65.2 TFLOP/s" in shown(fig)
    assert "0.661 FLOP/B at L1/shared" in fig.alt


def test_roofline_above_the_ridge_names_the_arithmetic_roof():
    roofs = Roofs.from_gpu(GPUS["H100"])
    points = [Point("x", "DRAM", 500.0, roofs.ffma / 2)]
    fig = roofline.draw(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.finding == (
        "x is under every roof: 50% of the FFMA roof, 2% of the DRAM roof")


def test_a_version_at_a_roof_is_said_to_be_there():
    roofs = Roofs.from_gpu(GPUS["H100"])
    points = [Point("w", "DRAM", 10.0, 5e12), Point("x", "DRAM", 500.0, 0.95 * roofs.ffma)]
    fig = roofline.draw(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.finding == "x reaches 95% of the FFMA roof"
    # A reader who hears the text hears this chapter's version before the older ones.
    assert fig.alt.index("x (this chapter)") < fig.alt.index("w: ")


def test_bytes_of_the_l1_are_no_more_than_its_data_stage_served():
    counted = {"global_load_sectors": 1000, "global_store_sectors": 0, "shared_wavefronts": 500}
    assert l1_bytes(counted) == 96_000
    assert l1_bytes({**counted, "l1_wavefronts": 600}) == 76_800
    assert l1_bytes({**counted, "l1_wavefronts": 900}) == 96_000


def test_busiest(drawn):
    fig = drawn["busiest"]
    assert fig.finding == "L1 lines: busy for at least 76% of the time"
    assert "recorded 2.71 ms" in shown(fig)
    assert "15 µs (compulsory bytes)" in shown(fig)
    assert "The longest is L1 lines. The kernel took 2.71 ms (recorded)." in fig.alt
    measured = busiest.draw({"DRAM": 1e-3}, seconds=2e-3, seconds_evidence="measured",
                            evidence="modelled: H100 data sheet")
    assert "measured 2 ms" in shown(measured)


def test_sweep(drawn):
    fig = drawn["sweep"]
    assert {"+45%", "+3%", "+12%", "-20%"} <= set(shown(fig))
    assert ("32×32×8, 16 warps: late 20 TFLOP/s, early 21.5 (+7%), both 22 (+2%)."
            in fig.alt)


def test_mix(drawn):
    fig = drawn["mix"]
    assert fig.finding == (
        "02 shared tile: 1,062 other instructions for every 1,000 FMA, where 01 naive needed 3,010"
    )
    assert "2,000 global load, 32 bit" in fig.alt


def test_occupancy(drawn):
    fig = drawn["occupancy"]
    assert "registers and warps on T4; registers on A100; registers on H100" in fig.finding
    assert "room for 25 blocks" in shown(fig)
    assert "H100: 1 block of 32 warps fit an SM, 50% of its warps, limited by registers" in fig.alt


def test_thread_tile(scenes):
    scene = scenes["thread tile, 8 × 8"]
    assert scene.title == "8 × 8: 16 floats feed 64 multiply-adds, 8 FLOP per float"
    assert "T4 100% of its peak fed; 16 of 32 warps, limited by registers" in scene.text
    spilling = scenes["thread tile, spilling"]
    assert "318 registers per thread: they spill" in spilling.text
    assert spilling.text.count("100% of its peak fed; its registers spill") == 3


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
    fig = timeline.draw([version], evidence="measured: H100")
    assert fig.finding == "Warps are in the inner loop for 60% of the time and spend 30% waiting"
    assert "load 10%, wait 30%, inner loop 60%" in fig.alt
    assert any(text.startswith("1 µs: the whole kernel, 1 block") for text in shown(fig))
    ticks = [t for t in shown(fig) if t.replace(",", "").replace(".", "").isdigit()]
    assert "1,000" in ticks and "1" in ticks  # 1,000 cycles are 1 µs at 1 GHz


@pytest.mark.parametrize("cycles", [1000, 4200, 4900, 6000, 9999, 14000])
def test_a_timeline_of_any_window_fits_a_phone(cycles):
    one = of_marks("02 shared tile", built.marks(record()), 1.98e9)
    fig = timeline.draw([one], evidence="recorded: H100", window=(0, cycles), narrow=True)
    numbers = [t.get_position()[0] for t in fig.findobj(Text)
               if re.fullmatch(r"[\d,]+", t.get_text()) and t.get_va() == "top"]
    assert 2 <= len(numbers) <= 7
    assert np.diff(sorted(numbers)).min() > 20  # pt from one number to the next


def test_timeline_says_where_steps_are_not_marked(drawn):
    marks = [[0, 0], [2, 100], [5, 200], [0, 800], [2, 900], [5, 1000]]
    made = timeline.Version("x", ["load", "wait", "compute", "barrier", "store", "end"],
                            [("block 0", [marks])], 1e9)
    fig = timeline.draw([made], evidence="measured: H100")
    assert "gaps: steps not marked" in shown(fig)
    assert "load 50%, inner loop 50%" in fig.alt
    assert not any("not marked" in text for text in shown(drawn["timeline"]))


def overprinted(fig):
    """Pairs of level texts that overlap."""
    renderer = fig.canvas.get_renderer()
    texts = [(text.get_text(), text.get_window_extent(renderer)) for text in fig.findobj(Text)
             if text.get_text() and text.get_visible() and not text.get_rotation()]
    return [(one, other) for number, (one, box) in enumerate(texts)
            for other, second in texts[number + 1:]
            if min(box.x1, second.x1) - max(box.x0, second.x0) > 1
            and min(box.y1, second.y1) - max(box.y0, second.y0) > 3]


@pytest.mark.parametrize("narrow", [False, True])
def test_names_of_levels_keep_off_the_names_of_roofs(narrow):
    roofs = Roofs.from_gpu(GPUS["H100"])
    for top, peaks in ((roofs.ffma, ("FFMA",)), (roofs.tensor, ("tensor",))):
        for share in (0.4, 0.8, 0.97):
            points = [Point("21 x", level, intensity * top / 1e14, share * top)
                      for level, intensity in (("L1/shared", 8), ("DRAM", 90))]
            fig = roofline.draw(roofs, points, current="21 x", evidence="recorded: H100",
                                peaks=peaks, narrow=narrow)
            assert {"L1/shared", "DRAM"} <= set(shown(fig)) and not overprinted(fig)


def test_two_close_roofs_are_named_with_one_unit():
    roofs = replace(Roofs.from_gpu(GPUS["H100"]), products={"wgmma": 904e12})
    fig = roofline.draw(roofs, [Point("x", "DRAM", 500.0, 7e14)], current="x",
                        evidence="recorded: H100", peaks=("wgmma", "tensor"), narrow=True)
    assert any(text.startswith("tensor ") and text.endswith(", under it wgmma 904 TFLOP/s")
               and text.count("FLOP/s") == 1 for text in shown(fig))


def test_a_name_begins_behind_the_dots_of_versions_as_fast():
    roofs = Roofs.from_gpu(GPUS["H100"])
    points = [Point("05", "DRAM", 20.0, 30.1e12), Point("04", "DRAM", 25.0, 29.9e12)]
    fig = roofline.draw(roofs, points, current="04", evidence="recorded: H100")
    renderer, ax = fig.canvas.get_renderer(), fig.axes[0]
    name = next(text for text in fig.findobj(Text) if text.get_text().startswith("05, "))
    dot = ax.transData.transform((25.0, 29.9e12))[0]
    assert name.get_window_extent(renderer).x0 > dot


def test_what_marks_cost_and_the_evidence_never_overprint_each_other():
    one = of_marks("x", built.marks(record()), 1e9)
    for evidence in ("recorded: H100", "recorded: H100 80GB HBM3, 2026-11-24, the timeline at abc; "
                     "recorded: H100 80GB HBM3, 2026-11-23, 4,096³"):
        fig = timeline.draw([one], evidence=evidence, window=(0, 5000))
        renderer = fig.canvas.get_renderer()
        cost, below = (next(t for t in fig.findobj(Text) if t.get_text().startswith(said))
                       .get_window_extent(renderer) for said in ("a mark costs", "recorded: H100"))
        assert not cost.overlaps(below)


def test_a_warp_that_waits_for_its_turn_is_counted_as_waiting():
    events = ["load", "wait", "compute", "barrier", "store", "end"]
    first, second = [[1, 0], [2, 100], [5, 500]], [[1, 500], [2, 600], [5, 1000]]
    made = timeline.Version("x", events, [("block 0", [first, second, [[0, 0], [5, 900]]])], 1e9,
                            roles=(("consumer", 2), ("producer", 1)))
    fig = timeline.draw([made], evidence="measured: H100")
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


def test_pipeline(scenes):
    assert scenes["pipeline, one buffer"].title == (
        "1 buffer: 8 tiles in 5,600 cycles, the arithmetic busy for 57%")
    text = scenes["pipeline, three buffers"].text
    assert "prologue steady state epilogue buffer 0" in text and "buffer 2" in text
    assert "12,000 cycles with one buffer" in text


def test_swizzle(scenes):
    scene = scenes["swizzle"]
    assert scene.title == "A column takes 32 wavefronts unpadded, 1 padded, 1 swizzled"
    assert "unpadded 32 wavefronts in 1 of 32 banks" in scene.text
    assert "swizzled 1 wavefront in 32 of 32 banks" in scene.text


def test_fragments(scenes):
    scene = scenes["fragments, A"]
    assert scene.title == "mma.m16n8k16: lane 5 holds 8 elements of A: 2 rows, 4 columns"
    assert "r0 (1, 2) (1, 3) r1" in scene.text and scene.body.count(">r3<") == 1
    assert "… r8 to r31: further columns" in scenes["fragments, wgmma"].text
    assert scenes["fragments, none"].title == "wgmma.m64n64k16: no lane holds B"
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


def test_windows(scenes):
    scene = scenes["windows"]
    assert scene.title == "mirrored: 16 rows; swapped: 2 rows, 28 addresses off 16 bytes"
    assert "lanes 16 to 31, all at row 8" in scene.text
    assert ">lane 0<" in scene.body and ">lane 31<" in scene.body


def test_staging():
    scene = staging.draw(Staging((64, 64), (32, 32)), Roofs.from_gpu(GPUS["T4"]), gpu="T4")
    assert scene.title == "64×64, warps of 32×32: L1/shared feeds 40% of T4's tensor peak"
    assert "4 warps of 32 × 32, 32 sums a lane" in scene.body
    assert "its bandwidth is not given: the peak would need 2.03 TB/s" in scene.body
    alone = staging.draw(Staging(None, (16, 16)), Roofs.from_gpu(GPUS["H100"]), gpu="H100")
    assert alone.title.startswith("No tile, warps of 16×16: L1/shared feeds")
    assert staging.impossible((32, 64), (64, 64)).title == (
        "Warps of 64×64 don't divide a tile of 32×64")


def test_overlap(scenes):
    scene = scenes["overlap, at once"]
    assert scene.title == "Stored at once, 2 blocks: the SM multiplies 53% of the time"
    assert "block 0 block 1 all stores all products 0 4,000 cycles" in scene.text
    assert "block 3, consumers block 3, producers" in scenes["overlap, roles"].text


def test_vectors(scenes):
    scene = scenes["vectors"]
    assert scene.title == ("32×64×16, 128 bits a lane: 6 of 16 load instructions have work, and "
                           "these bring all 3,072 bytes")
    assert "8 load instructions, 2 with work" in scene.text
    assert "0.5 load instructions and 3 sectors for a product of 16×8×8" in scene.text


def test_swizzles_of_tma(scenes):
    scene = scenes["swizzle of TMA"]
    assert "SBO: 64 bits 45–32 1,024 B / 16: from 8 rows" in scene.text
    assert "LBO: 512 bits 29–16 8,192 B / 16: from a slab" in scene.text
    # Row 7 of the chunk lies in line 7, in its place 6: chunk 1 XOR 7.
    x, y = tma_swizzle.Grid(16, 8, tma_swizzle._CELL, corner="bank", left=36).box(7, 6)[:2]
    assert f"M{x:g} {y:g}h" in scene.body.split("as it lies")[1]
    assert scenes["swizzle of TMA, off"].title.endswith("meet 4 of 32 banks, 8 wavefronts")


def test_no_piece_of_a_scene_is_wider_than_a_phone_s_column(scenes):
    widths = {(name, float(width)) for name, scene in scenes.items()
              for width in re.findall(r'width(?:=":?|:|=")([0-9.]+)', scene.html())}
    assert widths and not {(name, width) for name, width in widths if width > WIDTH}


def test_rings(scenes):
    assert scenes["ring"].title.startswith("4 stages: after the first tile, consumers never wait")
    assert "stage 1 1 1: 0 5 5: 1 9 9: 0" in scenes["ring"].text
    assert "2 stages: consumers wait for tiles for" in scenes["ring, starved"].title


def test_timeline_tells_roles_apart(drawn):
    fig = drawn["timeline, roles"]
    assert fig.finding.startswith("Consumers are in the inner loop for ")
    assert {"consumers", "producer", "stages\nin flight"} <= set(shown(fig))
    assert any(text.startswith("block 3; the first 9") for text in shown(fig))


def test_boxes():
    even = tma_box.draw(box_model.box(128, 128, 8192), evidence="modelled: sectors")
    assert even.title == "One request, 512 sectors: every byte is used"
    assert "… 121 rows like these" in even.body and "worse" not in even.body
    askew = tma_box.draw(box_model.box(7, 128, 4128, 16), evidence="modelled: sectors")
    assert askew.title == "One request, 35 sectors: 80% of the bytes are used"
    assert "worse" in askew.body


def test_the_boxes_of_a_step_are_placed_in_the_matrices_and_in_the_stage():
    scene = tma_box.placed(box_model.placed((128, 256), 64, (128, 64), (64, 64), 2),
                       evidence="modelled: boxes")
    assert scene.title == "A stage is 5 boxes, 1 of A and 4 of B, each named by {column, row}"
    assert all(text in scene.body for text in (
        "at {128, 128}", "at {512, 128}, {576, 128}, …", "+ 0 B", "+ 16,384 B", "+ 40,960 B",
        "its stage, 49,152 B"))
    with pytest.raises(ValueError, match="don't fill tiles of 128×64 and 64×256"):
        box_model.placed((128, 256), 64, (128, 64), (64, 96), 2)


def test_busiest_of_another_machine(drawn):
    fig = drawn["busiest, with a remark"]
    assert fig.finding == "Tensor pipe needs the most time: 2.1 ms at least"
    assert "the L2 must deliver 1" in shown(fig)


def test_roofline_of_tensor_cores_names_the_instruction(drawn):
    fig = drawn["roofline, tensor"]
    assert fig.finding == (
        "14 ldmatrix is under every roof: 60% of the mma.m16n8k8 roof, 13.2% of the DRAM roof")
    assert "mma.m16n8k8 459 TFLOP/s" in shown(fig)


def test_an_ablation_names_its_largest_step_and_each_gain(drawn):
    fig = drawn["ablation"]
    assert fig.finding == "From 200 to 300 TFLOP/s; the largest step is one barrier, +25%"
    assert "+5.0%, predicted +2.0%" in shown(fig) and "-5.0%" in shown(fig)
    assert "larger tile: 239 TFLOP/s, -5.0%." in fig.alt
    assert "one barrier: 300 TFLOP/s, +25.3% (predicted +29.5%)." in fig.alt
    assert "mma.m16n8k8, 459" in shown(fig)


def test_an_ablation_says_how_far_a_gain_may_be_off():
    steps = [ablation.Step("two buffers", 46.0, spread=0.005), ablation.Step("turned", 47.0)]
    fig = ablation.draw(ablation.Step("one", 50.0, spread=0.002), steps, evidence="recorded: H100")
    assert "-8.0% ± 0.7" in shown(fig) and "+2.2%" in shown(fig)
    assert "two buffers: 46 TFLOP/s, -8.0% ± 0.7." in fig.alt
    assert any("±: spread between series" in text for text in shown(fig))


def test_an_ablation_without_steps_says_so():
    fig = ablation.draw(ablation.Step("14 ldmatrix", 200.0), [], evidence="recorded: H100")
    assert fig.finding == "14 ldmatrix: 200 TFLOP/s, and no step from there"


def test_a_mix_on_tensor_cores_is_counted_against_them():
    this = ("14 ldmatrix", {"tensor": 1000.0, "integer": 600.0})
    fig = mix.draw(this, ("09 limit", {"FMA": 1000.0, "shared load": 90.0}),
                   evidence="modelled: SASS of the inner loop, sm_90a")
    assert fig.finding == (
        "14 ldmatrix: 600 other instructions for every 1,000 tensor instructions, where 09 limit "
        "needed 90 for 1,000 FMA"
    )
    assert "14 ldmatrix, for every 1,000 tensor instructions: 600 integer." in fig.alt
    assert "09 limit, for every 1,000 FMA: 90 shared load." in fig.alt


def test_an_ablation_of_small_steps_says_where_its_scale_begins(drawn):
    fig = drawn["ablation, small steps"]
    assert "scale from 40 TFLOP/s" in shown(fig)
    assert "-1.5%, predicted +1.9%" in shown(fig) and "outlines reported: our log" in shown(fig)
    full = drawn["ablation"]
    assert not any(text.startswith("scale from") for text in shown(full))
    assert "filled: measured; outlined: predicted" in shown(full)


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


def test_a_step_says_what_it_was_worth(drawn):
    fig = drawn["step"]
    assert fig.finding == (
        "02 shared tile is 45% faster than 01 naive: 16.6% of the best of cuBLAS")
    assert "8.46 of 50.9 TFLOP/s ± 0.1%, 32 M cycles, 7.8 J" in shown(fig)


@pytest.mark.parametrize("tflops, cycles, finding", [
    (103.0, 1.0e6, "b takes as many cycles as a"),
    (107.0, 0.87e6, "b takes 13% fewer cycles than a"),
    (96.0, 1.2e6, "b takes 20% more cycles than a"),
    (107.0, 1e6 / 1.07, "b is 7% faster than a"),
])
def test_a_step_between_different_clocks_is_told_in_cycles(tflops, cycles, finding):
    rows = [step.Reached("a", 100.0, cycles=1e6), step.Reached("b", tflops, cycles=cycles),
            step.Reached("cuBLAS", 200.0, rival=True)]
    assert step.draw(rows, evidence="recorded: H100").finding.startswith(f"{finding}: ")


@pytest.mark.parametrize("tflops, said", [(199.0, "99.5%"), (189.4, "94.7%"), (200.0, "100%"),
                                          (210.4, "105.2%"), (121.0, "60%")])
def test_a_share_near_the_rival_has_a_decimal(tflops, said):
    rows = [step.Reached("a", tflops), step.Reached("cuBLAS", 200.0, rival=True)]
    fig = step.draw(rows, evidence="recorded: H100")
    assert fig.finding.endswith(f", {said} of cuBLAS") and {said, "100%"} <= set(shown(fig))


def test_a_step_beside_an_unsteady_rival_says_so():
    rows = [step.Reached("a", 100.0), step.Reached("b", 120.0),
            step.Reached("cuBLAS", 200.0, spread=0.03, rival=True)]
    assert step.draw(rows, evidence="recorded").finding.endswith("60% of cuBLAS (± 3%)")
    steady = [*rows[:2], step.Reached("cuBLAS", 200.0, spread=0.003, rival=True)]
    assert step.draw(steady, evidence="recorded").finding.endswith("60% of cuBLAS")


def test_a_step_s_bars_are_shares_of_the_rival_each_in_its_own_run():
    """The version before was timed in a run in which the rival was faster."""
    rows = [step.Reached("1 a", 100.0, of=250.0), step.Reached("2 b", 120.0, of=200.0),
            step.Reached("the best of cuBLAS", 200.0, rival=True)]
    for narrow in (False, True):
        fig = step.draw(rows, evidence="recorded", narrow=narrow)
        bars = [patch.get_path().get_extents().width for patch in fig.findobj(PathPatch)]
        assert [width / bars[-1] for width in bars] == pytest.approx([0.4, 0.6, 1.0])
        assert {"share of the best of cuBLAS, each in its own run", "40%", "100 of 250 TFLOP/s",
                "60%", "120 of 200 TFLOP/s", "100%", "200 TFLOP/s", "cuBLAS in 2's run",
                } <= set(shown(fig))
    assert "a: 100 TFLOP/s, 40% of the best of cuBLAS in its own run (250). 2 b: 120 " in fig.alt
    assert fig.alt.endswith("the best of cuBLAS: 200 TFLOP/s, in 2's run.")


def test_a_step_between_two_variants_names_the_run_of_its_rival_by_the_variant():
    rows = [step.Reached("23 whole", 100.0, of=250.0), step.Reached("23 cut", 120.0, of=200.0),
            step.Reached("cuBLAS", 200.0, rival=True)]
    assert "cuBLAS in cut's run" in shown(step.draw(rows, evidence="recorded"))


def test_a_step_without_a_version_before_has_one_run():
    rows = [step.Reached("a", 1000.0, of=1250.0), step.Reached("cuBLAS", 1250.0, rival=True)]
    fig = step.draw(rows, evidence="recorded")
    assert {"share of cuBLAS in the same run", "1,000 TFLOP/s", "1,250 TFLOP/s", "cuBLAS",
            } <= set(shown(fig))
    assert fig.alt == ("a: 1,000 TFLOP/s, 80% of cuBLAS in the same run. "
                       "cuBLAS: 1,250 TFLOP/s.")


@pytest.mark.parametrize("days, said", [
    (["2026-11-24", "2026-11-24"], "2026-11-24"),
    (["2026-11-24", "2026-11-27"], "2026-11-24 (14), 27 (15)"),
    (["2026-12-01", "2026-11-27"], "2026-11-27 (15), 12-01 (14)"),
])
def test_a_step_s_evidence_has_the_day_of_each_run(days, said):
    assert step_page.dated(days, ["14", "15"]) == said


def test_the_day_of_a_step_is_when_it_was_timed_not_when_its_record_was_written():
    page = Version("12_wmma_pipeline")
    row = page.recorded(4096)
    day = page.record.chunks[row.chunk].started[8:10]
    assert f"{day} (12)" in step_page.recorded(page)[1]


def test_a_running_picture_has_the_bytes_of_each_level(scenes):
    scene = scenes["running picture"]
    assert scene.title.startswith("A block computes 128×128 elements of C, a thread 16×128")
    assert "L2 → SM: 0.062 B per FMA by the tile" in scene.text  # 4·(1/128 + 1/128)
    assert "thread, 16×128, changed" in scene.text
    assert "for k0 in range(0, K, 8):" in scene.text


def test_a_running_picture_draws_whose_sums_a_lane_holds_not_what_it_stores():
    """Through shared memory lane 0 stores a column; of the sums it holds pairs (PTX ISA, mma)."""
    warp, column = [Region(32, 0, 32, 32)], [Region(32, 0, 32, 1)]
    work = Work(64, 64, 64, Region(0, 0, 64, 64), warp, column, Region(0, 0, 64, 16),
                Region(0, 0, 16, 64), "one tile of 16 k", "block")
    counted = {"dram_read_bytes": 0.0, "l2_bytes": 0.0, "shared_wavefronts": 64**3 / 128}
    levels = running_picture_model.levels("12_wmma_pipeline", work, 16, 64, counted, 2)
    thread = levels[-1]
    assert (thread.rows, thread.columns) == (4, 8)
    assert sum(part.rows * part.columns for part in levels[2].parts) == 32
    assert levels[2].recorded is None and levels[2].wavefronts == 0.25


@pytest.mark.parametrize("stores, said", [(0, "per 32 FMAs"), (500, "per 32 FMAs, with stores")])
def test_a_running_picture_says_whether_its_wavefronts_are_of_stores_too(stores, said):
    warp = [Region(32, 0, 32, 32)]
    work = Work(64, 64, 64, Region(0, 0, 64, 64), warp, warp, Region(0, 0, 64, 16),
                Region(0, 0, 16, 64), "one tile of 16 k", "block")
    counted = {"dram_read_bytes": 0.0, "l2_bytes": 0.0, "shared_wavefronts": 64**3 / 128,
               "shared_store_instructions": stores}
    levels = running_picture_model.levels("12_wmma_pipeline", work, 16, 64, counted, 2)
    extents = [(64, 64), (64, 64), (32, 32), (4, 8)]
    scene = running_picture.draw(levels, extents, evidence="recorded")
    assert scene.body.count(f"<p>0.25 wavefronts {said}</p>") == 1


def test_a_running_picture_counts_what_is_shared_once():
    """Two blocks of a cluster load half of B each; a warpgroup's 64 rows are those of WGMMA."""
    warp = [Region(0, 0, 16, 256)]
    work = Work(256, 256, 64, Region(0, 0, 128, 256), warp, [Region(0, 0, 1, 2)],
                Region(0, 0, 128, 64), Region(0, 0, 64, 256), "one tile of 64 k", "block")
    alone, shared = (running_picture_model.levels("21_clusters", work, 64, 4096, None, 2, cluster)
                     for cluster in ((1, 1), (2, 1)))
    assert alone[1].bytes_per_fma == 2 * (1 / 128 + 1 / 256)
    assert shared[1].bytes_per_fma == 2 * (1 / 256 + 1 / 256)
    assert (alone[1].whose, shared[1].whose) == ("the tile", "the cluster")
    assert shared[2].bytes_per_fma == 2 * (1 / 64 + 1 / 256) and shared[2].whose == "64×256"
    wide = running_picture_model.levels("17_wgmma", work, 64, 4096, None, 2)
    extents = [(256, 256), (128, 256), (16, 256), (1, 2)]
    scene = running_picture.draw(wide, extents, evidence="emulated")
    assert "a WGMMA 64×256: 0.039 B into the tensor cores" in scene.title
    less = "B counted; rest: served on the way"
    assert less not in scene.text
    wide[1] = replace(wide[1], recorded=0.5 * wide[1].bytes_per_fma)
    assert less in running_picture.draw(wide, extents, evidence="emulated").text


def test_running_pictures_of_the_same_tiles_have_titles_of_their_own():
    """From 17 on most versions have the same tile: the title says what each does with it."""
    work = Work(256, 256, 64, Region(0, 0, 128, 256), [Region(0, 0, 16, 256)],
                [Region(0, 0, 1, 2)], Region(0, 0, 128, 64), Region(0, 0, 64, 256),
                "one tile of 64 k", "block")
    extents = [(256, 256), (128, 256), (16, 256), (1, 2)]
    stems = [stem for stem in running_picture_model.NESTS if stem >= "17"]
    titles = {
        stem: running_picture.draw(running_picture_model.levels(stem, work, 64, 4096, None, 2),
                                   extents, evidence="emulated").title for stem in stems}
    assert len(set(titles.values())) == len(stems) == 12
    # A pair's tile is 256×256, of which each block loads half of B: 2 · (1/256 + 1/256).
    assert titles["28_cta_pairs"].endswith("half of B each: 0.016 B per FMA, not 0.023")


def test_ratios_by_shape_name_the_mean_and_the_worst(drawn):
    fig = drawn["by_shape"]
    assert fig.finding == (
        "2 shapes: 0.93 of cuBLAS on the geometric mean, 0.83 at worst (4096×33×4096)"
    )
    assert "0.835  tall" in shown(fig)
    assert "512×512×512: 1.04 of cuBLAS with medium, 0.54 with large." in fig.alt


def test_waves_show_the_idle_time_and_who_shares_a_tile(scenes):
    scene = scenes["waves"]
    assert scene.title == "H100, n = 4,096: work for 97% of the time; in equal shares, 100%"
    assert "248 tiles cut, 256 partial sums" in scene.text
    # Block 1 ends tile 1, which block 0 began, and begins tile 3, which block 2 ends.
    assert scene.body.split("the cut tiles")[1].count(">3</text>") == 3
    small = scenes["waves, one"]
    assert "no work" in small.text and "3 blocks per SM" in small.text
    assert "time of 1 tile" in small.text


def test_the_nearest_roof_crosses_no_name_of_a_level():
    flop = 2.0 * 4096**3
    roofs = Roofs(2.9e12, 33e12, 66e12, 989e12, "recorded: H100")
    levels = {"L1/shared": 35e9, "DRAM": 1.5e9}
    fig = roofline.draw(
        roofs, [*points_of("08", flop, 2.95e-3, levels), *points_of("09", flop, 2.53e-3, levels)],
        current="09", evidence="recorded: H100",
    )
    fig.canvas.draw()
    ax = fig.axes[0]
    roof = ax.transData.transform((1.0, 66e12))[1]
    boxes = [t.get_window_extent() for t in ax.texts if t.get_text() in levels]
    assert len(boxes) == 2 and all(box.y0 >= roof - 1 for box in boxes)
    names = [t.get_window_extent() for t in ax.texts if t.get_text().endswith("TFLOP/s")
             and t.get_text()[:2] in ("08", "09")]
    assert len(names) == 2 and not names[0].overlaps(names[1])
    assert all(box.y1 <= roof + 1 for box in names)


@pytest.mark.parametrize("speeds", [
    (736, 720, 653, 624, 567, 422, 293, 209, 175, 97, 78, 28),  # 21 to 10, as its page has them
    (60, 5.5, 5.6, 5.7, 5.8, 5.9, 6.0),  # a crowd near the axis
    (9, 9, 9, 9),
])
def test_names_at_the_roofline_never_overlap(speeds):
    roofs = Roofs(2.9e12, 33e12, 66e12, 989e12, "recorded: H100")
    points = [Point(f"v{i:02}", "DRAM", 700.0, speed * 1e12) for i, speed in enumerate(speeds)]
    fig = roofline.draw(roofs, points, current="v00", evidence="recorded: H100",
                        peaks=("tensor",) if max(speeds) > 66 else ("FFMA",))
    fig.canvas.draw()
    ax = fig.axes[0]
    names = [t.get_window_extent() for t in ax.texts if t.get_text().startswith("v")]
    assert len(names) == len(speeds)
    for i, box in enumerate(names):
        assert not any(box.overlaps(other) for other in names[i + 1 :])
        assert box.y0 >= ax.get_window_extent().y0 - 2


def test_a_raster_shows_what_a_wave_reads_and_what_crosses_the_l2(scenes):
    scene = scenes["raster"]
    assert scene.title == "n = 4,096, 128×256: 4 waves, 97% busy; the first reads 35.7 MB"
    assert "132 tiles at the same time" in scene.text and "1.07 GB, 128 FLOP a byte" in scene.text
    assert "the last one 116 tiles" in scene.text


def test_timeline_of_blocks_that_all_begin_at_once_has_no_overview():
    record = {
        "events": ["load", "wait", "compute", "barrier", "store", "end"],
        "mark_cycles": 0.0, "seconds_with": 0.0, "seconds_without": 0.0, "warps": 1,
        "total_blocks": 1024,
        "blocks": [{"block": 0, "warps": [[[0, 1000], [1, 1100], [2, 4400], [5, 9000]]]}],
        "overview": [[i % 132, i, 90_000 + i] for i in range(512)],
    }
    version = of_marks("x", built.marks(record), clock_hz=1e9)
    fig = timeline.draw([version], evidence="measured: H100", window=(0, 5000))
    assert "The first 512 of 1,024 blocks all begin within 511 ns." in shown(fig)
    assert "blocks\nrunning" not in shown(fig)


@pytest.mark.parametrize("stem", running_picture_model.NESTS)
def test_the_lines_of_a_loop_nest_fit_a_phone(stem):
    limit = 31  # letters of the narrow picture's column
    for lines in running_picture_model.NESTS[stem].loop.values():
        text = textwrap.dedent("\n".join(lines)).format(
            m=128, n=128, step=16, each=128, columns=256, warp="16×16")
        lines = [re.sub(r" +# (by )?", " # ", line) for line in text.splitlines()]
        assert all(len(line) <= limit for line in lines), text
