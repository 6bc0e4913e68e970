"""What the chapters say of single steps holds in the records that they show.

Each finding is an expression in the pages' own words (`lib.show.numbers`), and so an error where a
record or a variant is gone.
"""

import pytest

from lib.chapter import Chapter
from lib.show.numbers import evaluate
from lib.show.version import Version
from tests.tables import cases

SIZE = 4096
FINDINGS = {
    "02_shared_tile": [
        # Wavefronts of the L1's data stage are those of shared memory and one a global request.
        *(f"abs(l1_wavefronts({name}) / (per_fma('shared_wavefronts',{name}) + "
          f"per_fma('global_load_requests',{name})) - 1) < 0.01"
          for name in ("'01_naive'", "'tile32'", "'only_a'", "'only_b'", "'ordered'")),
        "abs(w() - 52 / 32) < 2e-3 and abs(l1_wavefronts('tile32') - w()) < 0.02",
        "w() < w('01_naive') < w('05_bank_conflicts/tile_padded')",
        "metric('l1_data_percent','only_a') < 60 and l1_wavefronts('only_b') > l1_wavefronts("
        "'01_naive')",
        "faster('','05_bank_conflicts/tile_padded') > 1.1",
        "faster('05_bank_conflicts/tile_padded','01_naive') > 1.1",
        "0.02 < gain('only_a','01_naive') < 0.07 and -0.03 < gain('only_b','01_naive') < 0",
        "0.4 < gain('tile32','01_naive') < 0.5 and -0.11 < gain('tile16','tile32') < -0.07",
        # DRAM is not the limit: read a seventh of the bytes, or alike, and the gain is the same.
        "metric('dram_read_bytes','ordered') < metric('dram_read_bytes','tile32') / 7",
        "0 < gain('ordered','tile32') < 0.03 and ratio('instructions','ordered','tile32') > 1.1",
        "abs(ratio('dram_read_bytes','','01_naive',8192) - 1) < 0.01",
        "faster('','01_naive',8192) > faster('','01_naive') > 1.4",
    ],
    "03_strip": [
        "abs(ratio('instructions','columns_first','strips_first') - 1) < 1e-3",
        "12.3 < ratio('shared_wavefronts','strips_first','columns_first') < 12.5",
        "8 < faster('columns_first','strips_first') < 12.4",
    ],
    "04_register_tile": ["gain('tile8','block64') > 0.1"],
    "05_bank_conflicts": [
        "w('tile_transposed') > w('tile_transposed_padded') == w('tile_swizzled')",
        *(f"0 < gain('spread','together',{size}) < 0.15 < 0.3 < gain('tile_transposed_padded',"
          f"'tile_transposed',{size})" for size in (2048, SIZE)),
        *(f"gain('spread_padded','spread',{size}) < 0 < gain('padded','together',{size})"
          for size in (2048, SIZE)),
    ],
    "06_vectorized": [
        "abs(gain('unrolled','transposed')) < 0.03 and abs(gain('global_128','shared_128')) < 0.03",
        "gain('shared_128','unrolled') > 0.1 and gain('float4','global_128') > 0.08",
        # The compiler merges neighbours in shared memory only.
        "code('LDG.E.128','transposed') == code('LDS.128','transposed') == 0",
        "code('LDG.E.128','float4') > 0 and code('LDS.128','float4') > 0",
        "abs(w('unrolled') - w('shared_128') - (8 - 4) / 64) < 2e-3",
        *(f"0.25 / l1_wavefronts('{name}') > 0.75 and abs(l1_wavefronts('{name}') / w('{name}') "
          f"- 1) < 0.03" for name in ("unrolled", "shared_128", "global_128", "float4")),
        "stall('mio_throttle','float4') < 0.1 < stall('long_scoreboard','float4')",
        "stall('long_scoreboard','float4') < 0.6 * stall('long_scoreboard','global_128')",
        "ratio('l1_load_bytes','float4','global_128') == 1",
    ],
    "07_double_buffer": [
        "gain('staged','neither') > 0.1 and gain('both','staged') < -0.02",
        "gain('both','two_buffers') > 0.03",
        "0 < gain('tile_staged','tile_one_buffer') < gain('staged','neither')",
        "stall('long_scoreboard','staged') < stall('long_scoreboard','both') < stall("
        "'long_scoreboard','neither')",
        "work_between('neither') == work_between('two_buffers') == 0",
        "work_between('tile_two_buffers') == 0 and work_between('tile_both') > 16",
        "0 < work_between('both') < work_between('staged') < 512 / 4",
    ],
    "08_warp_tile": [
        "gain('one_buffer','waiting_paired') > 0.15 and gain('warp_64x32','one_buffer') < -0.05",
        "abs(gain('waiting_paired','waiting_flat')) < 0.01 and gain('warp_64x64','warp_64x32') > "
        "0.05",
        "0 < gain('warp_64x32','unpaired') < 0.01",
        "gain('warp_64x64_k16','one_buffer') <= 0",
        "3 * stall('long_scoreboard','one_buffer') < stall('long_scoreboard','waiting_paired')",
        "ratio('instructions','warp_64x32','one_buffer') > 1.02",
        *(f"metric('l1_data_percent','{name}') > 85 and row('{name}').tflops < "
          "row('06_vectorized').tflops"
          for name in ("seed", "seed16", "seed32")),
    ],
    "09_fp32_limit": [
        "gain('spread','turning') > 0.09 and 0.02 < gain('large','spread') < 0.03",
        "abs(gain('turning','wide')) < 0.01 and gain('wide','broad') < -0.02",
        "abs(gain('broad','square')) < 0.01",
        *(f"gain('large','{name}') > {least}" for name, least in (
            ("square_warps", 0.02), ("straight", 0.005), ("at_once", 0.08))),
        "slot('empty','spread') < 0.55 * slot('empty','turning')",
        "slot('idle','large') < 0.4 * slot('idle','spread')",
        *(f"stall('{reason}','spread') < 0.6 * stall('{reason}','turning')"
          for reason in ("short_scoreboard", "barrier", "long_scoreboard")),
        # Predictions were wrong one by one and right together.
        *(f"abs(gain('{after}','{before}') - predicted('{after}')) > 0.02" for before, after in (
            ("square", "wide"), ("wide", "turning"), ("turning", "spread"))),
        "abs(predicted('wide','turning','spread','large') - gain('large','square')) < 0.015",
    ],
    "12_wmma_pipeline": [
        "warps('at_once') < warps('staged') < warps('epilogue') == warps('roles')",
        "abs(gain('staged','epilogue')) < 0.02 and gain('staged','epilogue',2048) < -0.1",
        "gain('staged','at_once') > 0.2 and gain('roles','epilogue') < 0",
        *(f"0.05 < gain('products_first{room}','stores_first{room}',{size}) < 0.3"
          for room in ("", "_alone") for size in (2048, SIZE)),
        "work_between('staged') == work_between('at_once') == 0",
    ],
    "16_cp_async": [
        *(f"0.4 < gain('k8_stages_3','k8_stages_2',{size}) < gain('stages_3','stages_2',{size})"
          for size in (2048, SIZE)),
        *(f"0.2 < gain('stages_2','k8_stages_2',{size}) < gain('stages_3','k8_stages_3',{size}) < "
          f"gain('tile_256x128','k8',{size})" for size in (2048, SIZE)),
        *(f"gain('tile_256x128','through_l1',{size}) > 0.1" for size in (2048, SIZE)),
        "ratio('l1_wavefronts','through_l1','tile_256x128') > 1.4",
    ],
    "17_wgmma": [f"gain('n64','n128',{size}) < 0 < 0.02 < gain('n128','n64',{size}) and "
                 f"abs(gain('n256','n128',{size})) < 0.02 and gain('serial','n256',{size}) < -0.01"
                 for size in (2048, SIZE)],
    # 128 bytes a wavefront, of A's 64×16 and B's 16×256 halves; counted for each of four warps.
    **{stem: [f"metric('shared_wavefronts','{name}') == metric('gmma_instructions','{name}') / 4 * "
              "2 * 16 * (64 + 256) / 128"]
       for stem, name in (("18_tma", "wide"), ("20_persistent", "persistent"))},
    "19_warp_specialization": [
        "abs(ratio('cycles','','18_tma') - 1) < 0.02 and gain('one_tile','two_tiles',2048) > 0.3",
        *(f"gain('ping_pong','cooperative',{size}) < -0.02" for size in (2048, SIZE)),
    ],
}


@pytest.mark.parametrize("stem, finding", [
    (stem, finding) for stem, findings in FINDINGS.items() for finding in findings])
def test_a_finding_holds(stem, finding):
    assert evaluate(finding, stem) == "True"


@pytest.mark.parametrize("stem, variant", [
    ("03_strip", "columns_first"), ("05_bank_conflicts", "tile_padded")])
def test_no_access_conflicts(stem, variant):
    counters = Version(stem).traced(variant).trace.counters()
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"] > 0


def differs(one, other):
    """Names of the constants in which two variants of a template differ."""
    first, second = one.constants, other.constants
    assert (one.file, one.function, set(first)) == (other.file, other.function, set(second))
    return {name for name in first if first[name] != second[name]}


@cases("""
stem          | before           | after            | what
08_warp_tile  | waiting_flat     | waiting_unpaired | ORDER
08_warp_tile  | waiting_unpaired | waiting_paired   | ORDER
08_warp_tile  | one_buffer       | warp_64x32       | BUFFERS
08_warp_tile  | unpaired         | warp_64x32       | PAIRED
08_warp_tile  | warp_64x32       | warp_64x64       | WN
08_warp_tile  | warp_64x64       | warp_64x64_k16   | BK
08_warp_tile  | seed             | seed16           | BK
08_warp_tile  | seed16           | seed32           | BK
09_fp32_limit | copies           | unguarded        | GUARDED
09_fp32_limit | unguarded        | ahead            | AHEAD
09_fp32_limit | ahead            | grouped          | GROUP
09_fp32_limit | square           | broad            | BN BLOCKS
09_fp32_limit | broad            | wide             | WM WN
09_fp32_limit | wide             | turning          | TURNING
09_fp32_limit | turning          | spread           | SPREAD
09_fp32_limit | spread           | large            |
""")
def test_steps_that_are_said_to_change_one_thing_do(stem, before, after, what):
    kernel = Chapter(stem).kernel
    first, second = kernel.variant(before), kernel.variant(after)
    assert differs(first, second) == set(what.split())
    assert (first.grid != second.grid) == (not what)  # what no constant changes is the launch


@pytest.mark.parametrize("stem", ["02_shared_tile", "06_vectorized", "09_fp32_limit"])
def test_a_version_and_its_steps_were_measured_in_one_chunk(stem):
    page = Chapter(stem)
    there = list(page.version.record.variants)  # others are not recorded yet
    assert {variant.name for variant in page.kernel.variants} <= set(there)
    # The ladder's pass has the fastest beside what it is compared with, on one board.
    assert len({page.version.recorded(SIZE, name).chunk for name in there
                if name != page.kernel.best}) == 1


def test_21_names_the_kernel_that_gemm_launches_at_its_size():
    launched = Version("hopper").recorded(SIZE, "tuned").instantiation
    assert launched == Version("22_few_tiles").recorded(SIZE, "swapped_256").instantiation
