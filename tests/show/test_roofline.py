"""Roofline, busiest unit, tile sizes and instruction mix against arithmetic by hand."""

from dataclasses import replace

import pytest
from matplotlib.text import Text

from lib import chapter
from lib.gpus import GPUS
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.records import store as records
from lib.records.schema import MachineRecord
from lib.show import bottleneck as busiest
from lib.show import instruction_mix as mix
from lib.show import roofline
from lib.show.roofline import Point, Roofs, l1_bytes, roofs_table
from lib.show.version import Version, tensor_flops
from tests.show.conftest import roofs_of, sheet_roofs, words_of
from tests.tables import cases

H100 = GPUS["H100"]

# 01_naive, coalesced, M = N = K = 256: for each FFMA of a warp, a broadcast of A (1 sector) and a
# row of B (4); one store of C (4) for each warp. 256³ / 32 = 524,288 warp FFMAs.
WARP_FFMAS = 256**3 // 32
UNITS = ("issue slots", "FMA pipe", "shared memory", "L1 lines", "L1 bytes", "DRAM")
NAIVE = {
    "global_load_requests": 2 * WARP_FFMAS,
    "global_load_sectors": 5 * WARP_FFMAS,
    "global_store_requests": 256 * 256 // 32,
    "global_store_sectors": 4 * 256 * 256 // 32,
    "shared_load_instructions": 0,
    "shared_store_instructions": 0,
    "shared_wavefronts": 0,
    "shared_wavefronts_ideal": 0,
    "ffma_thread_instructions": 256**3,
}


def test_the_rate_is_the_data_sheet_s_at_its_clock():
    # Hopper's is given at 1,830 MHz, below the highest clock; the others' at the highest.
    for key, clock in (("T4", 1590e6), ("A100", 1410e6), ("H100", 1830e6), ("H200", 1830e6)):
        gpu = GPUS[key]
        assert gpu.tensor_fp16_per_cycle * gpu.sms * clock == pytest.approx(
            gpu.tensor_fp16_flops, rel=2e-3)


def test_roofs_of_a_record_leave_out_what_was_not_measured(machine_of):
    roofs = Roofs.from_record(machine_of(
        copy=3.0e12, l2=6e12, shared=30e12, ffma=65e12, mma_k8=4e14, wgmma=8e14), H100)
    # What a loop reads of the L2 is passed by kernels: no roof.
    assert roofs.bandwidths == {"L1/shared": 30e12, "DRAM": 3.0e12}
    assert roofs.peaks == {
        "FFMA": 65e12, "tensor": H100.tensor_fp16_flops, "mma.m16n8k8": 4e14,
        "wgmma": 8e14}


def test_points():
    found = roofline.points(
        "01", 2.0 * 256**3, 1e-3, {"DRAM": 786432, "L1/shared": roofline.l1_bytes(NAIVE)}
    )
    assert [point.level for point in found] == ["L1/shared", "DRAM"]
    # 64 FLOP a warp FFMA over 5 sectors of 32 B: 0.4 FLOP/B, less the stores.
    assert found[0].intensity == pytest.approx(0.4, rel=0.01)
    assert found[1].intensity == pytest.approx(42.67, abs=0.01)
    assert found[0].flops_per_s == 2 * 256**3 / 1e-3


def test_busiest_unit_of_the_naive_kernel_is_the_tag_stage():
    times = busiest.least_times(
        NAIVE, H100, warp_instructions=4 * WARP_FFMAS, dram_bytes=786432, clock_hz=1e9
    )
    assert tuple(times) == UNITS
    clocks = 132 * 1e9
    assert times["issue slots"] == pytest.approx(WARP_FFMAS / clocks)
    assert times["FMA pipe"] == pytest.approx(256**3 / 128 / clocks)
    assert times["L1 lines"] == pytest.approx((2 * WARP_FFMAS + 2048) / clocks)
    assert times["L1 bytes"] == pytest.approx((5 * WARP_FFMAS + 8192) / 4 / clocks)
    assert times["DRAM"] == 786432 / 3350e9
    assert times["shared memory"] == 0
    assert busiest.longest(times) == "L1 lines"


def test_turing_moves_half_a_wavefront_a_clock():
    counters = dict.fromkeys(NAIVE, 0) | {"shared_wavefronts": 40_000}
    times = busiest.least_times(
        counters, GPUS["T4"], warp_instructions=0, dram_bytes=0, clock_hz=1e9
    )
    assert times["shared memory"] == pytest.approx(40_000 * 2 / 40e9)


def test_tensor_cores_are_a_unit_where_they_work():
    instructions = {
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32": (1000, 32_000),
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32": (10, 320),
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16": (20, 640), "fma.rn.f32": (5, 160),
    }
    flops = tensor_flops(instructions)
    assert flops == 1000 * 2048 + 10 * 8192
    nothing = dict.fromkeys(NAIVE, 0)
    more = {"warp_instructions": 1, "dram_bytes": 1, "tensor_flops": 65e12}
    times = busiest.least_times(nothing, GPUS["T4"], **more)
    assert tuple(times) == ("issue slots", "FMA pipe", "tensor pipe", *UNITS[2:])
    assert times["tensor pipe"] == 1 and busiest.longest(times) == "tensor pipe"
    slower = busiest.least_times(nothing, GPUS["T4"], clock_hz=795e6, **more)
    assert slower["tensor pipe"] == 2
    measured = busiest.least_times(nothing, GPUS["T4"], tensor_flops_per_s=130e12, **more)
    assert measured["tensor pipe"] == 0.5


@cases("""
opcode                  | expected
FFMA                    | FMA
HMMA.16816.F32          | tensor
LDS.128                 | shared load, 128 bit
LDS                     | shared load, 32 bit
LDG.E.128.CONSTANT      | global load, 128 bit
LDG.E.U16               | global load, 16 bit
LDSM.16.MT88.4          | matrix load, 128 bit
LDGSTS.E.BYPASS.128     | async copy, 128 bit
STG.E                   | global store, 32 bit
IMAD.WIDE               | integer
UIADD3                  | integer
BAR.SYNC.DEFER_BLOCKING | control
ISETP.GE.AND            | integer
MOVM.16.MT88            | transpose
MUFU.RCP                | other
""")
def test_classes(opcode, expected):
    assert mix.classify(opcode) == expected


def test_mix_is_a_thousand_fma():
    body = ["FFMA"] * 32 + ["LDS"] * 32 + ["LDS.128"] * 8 + ["BRA", "IADD3", "IADD3"]
    found = mix.per_thousand_fma(body)
    assert found["FMA"] == 1000
    assert list(found)[:3] == ["FMA", "shared load, 32 bit", "shared load, 128 bit"]
    assert found["shared load, 128 bit"] == 250
    assert found["control"] == pytest.approx(31.25)
    assert mix.per_thousand_fma(["HMMA.16816.F32", "LDSM.16.M88.4"])["tensor"] == 1000
    with pytest.raises(ValueError, match="no FMA"):
        mix.per_thousand_fma(["BRA"])


def test_loop_instructions():
    per_thousand = {"FMA": 1000.0, "shared load, 32 bit": 2000.0, "control": 125.0}
    # 3.125 warp instructions for each of 524,288 warp FFMAs.
    assert busiest.loop_instructions(per_thousand, NAIVE) == 1_638_400


def test_bytes_through_l1_are_those_that_the_data_path_is_busy_for():
    """A sector is 32 bytes and a wavefront 128, whether a lane uses them or not."""
    none = {"global_load_sectors": 0, "global_store_sectors": 0, "shared_wavefronts": 0}
    assert l1_bytes(none) == 0
    assert l1_bytes({**none, "shared_wavefronts": 3}) == 3 * 32 * 4  # all lanes read a float each
    assert l1_bytes({**none, "global_load_sectors": 4}) == 32 * 4  # the same from global memory
    assert l1_bytes({**none, "global_store_sectors": 5}) == 5 * 32
    # No more than its data stage served.
    assert l1_bytes({**none, "shared_wavefronts": 3, "l1_wavefronts": 2}) == 2 * 128
    assert l1_bytes({**none, "shared_wavefronts": 3, "l1_wavefronts": 9}) == 3 * 128


# -- tables, and what ncu counted ------------------------------------------------------------------


def test_the_roofs_of_every_recorded_machine_can_be_shown(shown):
    roofs_table()
    record = records.load(MachineRecord, chapter.RECORDED_ON)
    assert all((roof.method in shown[0]) is (name != "l2")  # which kernels pass: no roof
               for name, roof in record.roofs.named().items())


def test_a_compiler_s_fence_changes_no_instruction_of_12():
    kernel = CATALOGUE["12_wmma_pipeline"]
    variant = kernel.variant("products_first")
    text = kernel.file(variant).read_text(encoding="utf-8")
    assert text.count("        __syncwarp();") == 2

    def opcodes(fence):
        source = text.replace("        __syncwarp();", f"        {fence};")
        found = compile_kernel(kernel, variant, "sm_90a", source=source).inner_loop
        return [i.opcode for i in found]

    without = opcodes("")
    assert opcodes('asm volatile("" ::: "memory")') == without != opcodes("__syncwarp()")


def test_roofline_above_the_ridge_names_the_arithmetic_roof():
    roofs = sheet_roofs(H100)
    points = [Point("x", "DRAM", 500.0, roofs.peaks["FFMA"] / 2)]
    fig = roofline.picture(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.finding == "x: 50% of the FFMA roof, 2% of DRAM's"


def test_this_chapter_s_version_is_heard_before_the_others():
    roofs = sheet_roofs(H100)
    points = [Point("w", "DRAM", 10.0, 5e12), Point("x", "DRAM", 500.0, 0.95 * roofs.peaks["FFMA"])]
    fig = roofline.picture(roofs, points, current="x", evidence="modelled: data sheet")
    assert fig.alt.index("x (this chapter)") < fig.alt.index("w: ")


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("group", ["FP32", "FP16"])
def test_the_names_of_a_roofline_s_roofs_stand_inside_it_and_apart(narrow, group):
    roofs = sheet_roofs(H100)
    peak = "FFMA" if group == "FP32" else "tensor"
    top = roofs.peaks[peak]
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
    roofs = sheet_roofs(H100)
    roofs = replace(roofs, peaks={**roofs.peaks, "wgmma": 904e12})
    fig = roofline.picture(roofs, [Point("x", "DRAM", 500.0, 7e14)], current="x",
                        evidence="recorded: H100", peaks=("wgmma", "tensor"), narrow=True)
    assert any(text.startswith("tensor ") and text.endswith(", under it wgmma 904 TFLOP/s")
               and text.count("FLOP/s") == 1 for text in words_of(fig))


def test_a_name_begins_behind_the_dots_of_versions_as_fast():
    roofs = sheet_roofs(H100)
    points = [Point("05", "DRAM", 20.0, 30.1e12), Point("04", "DRAM", 25.0, 29.9e12)]
    fig = roofline.picture(roofs, points, current="04", evidence="recorded: H100")
    renderer, ax = fig.canvas.get_renderer(), fig.axes[0]
    name = next(text for text in fig.findobj(Text) if text.get_text().startswith("05, "))
    dot = ax.transData.transform((25.0, 29.9e12))[0]
    assert name.get_window_extent(renderer).x0 > dot


@pytest.mark.parametrize("speeds", [
    (737, 726), (640, 737, 736), (5.9, 5.8), (9, 9, 9),
])
def test_names_at_the_roofline_never_overlap(speeds):
    roofs = roofs_of(2.9e12, 33e12, 66e12, 989e12)
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


@cases("""
version            | name            | product
09_fp32_limit      | tuned           | None
13_wmma_vectorized | vectors_128x128 | mma.m16n8k16
14_ldmatrix        | k8              | mma.m16n8k8
14_ldmatrix        | k16             | mma.m16n8k16
17_wgmma           | wide            | wgmma
26_fp8             | two_parts       | wgmma, FP8
""")
def test_which_instruction_multiplies(version, name, product):
    page = Version(version)
    found = roofline.instruction(
        page.metrics(4096, name), 2.0 * 4096**3, page.kernel.variant(name).dtype)
    assert found == product
