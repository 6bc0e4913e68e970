"""Tables of the chapters on wmma: from the machine code, and from records."""

from itertools import groupby

import pytest

from lib import chapter
from lib.chapter import Chapter
from lib.gpus import GPUS
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.problem import Problem
from lib.records import store as records
from lib.records.schema import MachineRecord
from lib.topics.code.instruction_order.model import work_between
from lib.topics.code.instruction_order.page import order_table
from lib.topics.code.wmma_expansion.page import becomes, products
from lib.topics.limits.bottleneck.page import unit_times
from lib.topics.limits.issue_slots.page import stalls
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.limits.roofline.page import roofs_table
from lib.topics.results.counters.page import agreement, machine_counts
from lib.topics.results.speed.page import traffic
from lib.topics.time.in_flight.page import under_way
from tests import built
from tests.pages import cells

RECORD = built.parsed({
    **built.head("10_wmma"), "date": "2026-11-21", "chunks": built.chunks(),
    "variants": {
        name: {
            **built.code(), "hash": "0" * 16, "launch": "0" * 16,
            "bench": [{**built.plain(built.row(2048)), "tflops": speed, "ratio": speed / 500}],
            "counters": [{"M": 2048, "N": 2048, "K": 2048, "metrics": {
                "l1_load_bytes": 4.29e9, "l2_bytes": 1.5e9, "dram_read_bytes": 0.02e9,
                "shared_wavefronts": 2048**3 / 512, "issue_active_percent": 31.4,
                "warps_active_percent": 48.6, "stall_long_scoreboard": 12.3,
                "stall_short_scoreboard": 0.4, "stall_mio_throttle": 0.0,
                "stall_lg_throttle": 1.0, "stall_barrier": 0.0, "stall_math_pipe_throttle": 0.1,
            }}],
        }
        for name, speed in (("one_fragment", 40.0), ("four_fragments", 70.0))
    },
})


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(records, "load", lambda *_: RECORD)


def test_a_product_s_cost_is_that_of_the_machine_code_and_the_data_sheet(shown):
    products(Chapter("10_wmma").version)
    assert "| T4 (sm_75) | 4 `HMMA.1688.F32` | 2,048 | 32 | 8.0× |" in shown[0]
    assert "| A100 (sm_80) | 2 `HMMA.16816.F32` | 4,096 | 16 | 16.0× |" in shown[0]
    assert "| H100 (sm_90a) | 2 `HMMA.16816.F32` | 4,096 | 8 | 16.0× |" in shown[0]
    assert "modelled: " in shown[0]


def test_expansions_stand_in_the_order_of_the_work(shown):
    becomes(Chapter("10_wmma").version, "sm_75")
    steps = [row.split("|")[1].strip() for row in shown[0].splitlines()[2:] if "wmma" in row]
    assert steps[0] == "`wmma.load` of A (global memory)" and "`wmma.mma`" in steps
    assert "| 4 `LDG.E` + 4 `MOVM.16.MT88` |" in shown[0]


def test_traffic_and_stalls_are_those_of_the_record(shown, recorded):
    page = Chapter("10_wmma")
    traffic(page.version, 2048, "four_fragments", above=("10_wmma/one_fragment",))
    stalls(page.version, 2048, "one_fragment")
    assert "| 10 one_fragment | 40.0 | 8.0% | 4.29 | 1.50 | 0.02 | 0.062 | 31% |" in shown[0]
    assert "| 10 four_fragments | 70.0 | 14.0% |" in shown[0]
    assert "| 10 one_fragment | 12.30 | 0.40 | 0.00 | 1.00 | 0.00 | 49% | 31% |" in shown[1]
    assert all("recorded: H100 80GB HBM3, 2026-11-22, board" in text for text in shown)


def test_the_roofs_of_every_recorded_machine_can_be_shown(shown):
    roofs_table()
    record = records.load(MachineRecord, chapter.RECORDED_ON)
    assert all((roof.method in shown[0]) is (name != "l2")  # which kernels pass: no roof
               for name, roof in record.roofs.named().items())


@pytest.mark.parametrize("stem", ["10_wmma", "11_wmma_shared", "12_wmma_pipeline"])
def test_the_machine_s_products_and_matrix_loads_are_those_that_ncu_counted(stem, shown):
    page = Chapter(stem)
    for variant in page.kernel.variants:
        done = page.run(Problem(256, 256, 256), variant.name, backend="emulator", arch="sm_90a")
        counted = page.version.metrics(256, variant.name)
        for key, value in machine_counts(page.version, done.launch.trace, variant.name).items():
            assert value == counted[key], (variant.name, key)
    agreement(page.version)
    rows = [row.strip("| ").split(" | ") for row in shown[0].splitlines() if row.startswith("|")]
    assert len(rows) == 2 + 8
    assert all(row[1::2] == row[2::2] for row in rows[2:])


def test_lines_are_counted_where_requests_and_sectors_would_allow_fewer(shown):
    page, n = Chapter("10_wmma"), 4096
    # Each load of a fragment touches eight rows, each store of one too: eight lines a request.
    lines = 8 * (8 * (n // 16) ** 3 + 4 * (n // 16) ** 2)
    t4 = GPUS["T4"]
    counted, fewest = (
        unit_times(page.version, "T4", "one_fragment", n, lines=flag)[0] for flag in (True, False)
    )
    assert counted["L1 lines"] == pytest.approx(lines / t4.sms / t4.clock_hz, rel=1e-6)
    assert counted["L1 lines"] == pytest.approx(4 * fewest["L1 lines"], rel=0.01)
    assert counted["L1 bytes"] == fewest["L1 bytes"]
    page.busiest(n, lines=True)
    row, clock = page.version.recorded(n), page.version.recorded(n).clock.mhz * 1e6
    busy = lines / GPUS["H100"].sms / clock / row.seconds
    assert busy > 0.75 and f"L1 lines: busy for at least {busy:.0%} of the time" in shown[0]
    page.busiest(n)
    assert f"at least {busy:.0%} of the time" not in shown[1]


def test_products_stand_where_the_order_of_an_fp32_loop_has_multiply_adds(shown):
    order_table(Chapter("12_wmma_pipeline").version, "products_first", "at_once", arch="sm_75")
    head, _, held, seed = (row for row in shown[0].splitlines() if row.startswith("|"))
    assert "| products |" in head and head.endswith("products from load to store |")
    assert int(held.split("|")[-2]) > 0 == int(seed.split("|")[-2])
    order_table(Chapter("07_double_buffer").version, arch="sm_75")
    assert "FMA from load to store" in shown[1]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_12_holds_either_order_in_the_machine_code(arch):
    version, classes = Chapter("12_wmma_pipeline").version, {"LDG", "LDSM", "HMMA", "STS"}
    stores, products = (
        [i.base for i in version.compiled(arch, name).inner_loop if i.base in classes]
        for name in ("stores_first", "products_first"))
    # Runs of accesses alone: products touch no memory, and some may sink among the stores.
    runs = [[base for base, _ in groupby(x for x in loop if x != "HMMA")]
            for loop in (stores, products)]
    assert runs == [["LDG", "STS", "LDSM"], ["LDG", "LDSM", "STS"]] and stores[-1] == "HMMA"
    assert work_between(stores) == 0 < products.count("HMMA") // 2 <= work_between(products)
    assert all(version.compiled(arch, name).resources.spill_store_bytes == 0
               for name in ("stores_first", "products_first"))


def test_12_s_held_orders_differ_in_no_more_than_their_order_on_the_book_s_gpu():
    version, gpu = Chapter("12_wmma_pipeline").version, GPUS["H100"]
    blocks = {}
    for room in ("", "_alone"):
        for name in ("stores_first", "products_first"):
            variant = version.kernel.variant(name + room)
            used = version.compiled(gpu.arch, variant.name).resources
            blocks[variant.name] = occupancy(
                gpu, used.registers, used.shared_bytes, variant.threads).blocks
    assert list(blocks.values()) == [5, 5, 1, 1]
    products = [i.base for i in version.compiled(gpu.arch, "products_first").inner_loop]
    assert work_between(products) == products.count("HMMA"), "the page says: all"


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


def test_bytes_under_way_are_those_of_as_many_blocks_as_fit(shown):
    page = Chapter("13_wmma_vectorized")
    under_way(page.version, "vectors_32x64", "two_warps", gpu="T4")
    rows = {row[0]: row[1:] for row in cells(shown[0])}
    two_tiles = f"{(32 + 64) * 16 * 2:,}"
    assert rows["vectors_32x64"][2] == rows["two_warps"][2] == two_tiles
    for name, (threads, blocks, _, total) in rows.items():
        assert int(threads) == page.kernel.variant(name).threads
        assert total == f"**{int(blocks) * 3072:,}**"
    assert int(rows["two_warps"][1]) > int(rows["vectors_32x64"][1])


def test_a_ring_has_all_stages_but_one_under_way(shown):
    under_way(Chapter("16_cp_async").version, "stages_2", "tile_256x128")
    rows = {row[0]: row[3] for row in cells(shown[0])}
    tile = (256 + 128) * 32 * 2
    assert rows == {"stages_2": f"{tile:,}", "tile_256x128": f"{3 * tile:,}"}
