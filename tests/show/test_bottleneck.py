"""What limits a kernel, against launches whose answer is known: over all records, and the roofs."""

import math
from functools import partial

import pytest

from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS, find
from lib.records import store as records
from lib.records.schema import KernelRecord, MachineRecord, mhz
from lib.run.runner import run
from lib.show import accounts, epilogue, overlap, roofline
from lib.show import bottleneck as busiest
from lib.show.numbers import Numbers
from lib.show.version import RECORDED_ON

SHEET = GPUS[RECORDED_ON]
MACHINE = records.load(MachineRecord, RECORDED_ON)
ROOFS = roofline.Roofs.from_record(MACHINE, SHEET)


def launches(stem):
    """Variant, row and counters of each launch that was both timed and counted."""
    for name, found in records.load(KernelRecord, RECORDED_ON, stem).variants.items():
        rows = {row.shape: row for row in found.bench}
        for counted in found.counters:
            if counted.shape in rows:
                yield KERNELS[stem].variant(name), rows[counted.shape], counted.metrics


@pytest.mark.parametrize("stem", [one.kernel for one in records.versions()
                                  if one.gpu.key == RECORDED_ON])
def test_no_lower_bound_is_over_the_time_it_bounds(stem):
    """Nor is a kernel over a roof: what is passed is no roof."""
    for variant, row, metrics in launches(stem):
        product = roofline.instruction(metrics, row.flops, variant.dtype)
        times = busiest.of_record(metrics, SHEET, ROOFS, dtype=variant.dtype, flops=row.flops,
                                  clock_mhz=mhz(row.clock))
        assert max(times.values()) < row.seconds, (variant.name, row.shape, times)
        shares = ROOFS.shares(roofline.points("x", row.flops, row.seconds, {
            "L1/shared": roofline.l1_bytes(metrics),
            "DRAM": metrics["dram_read_bytes"] + metrics["dram_write_bytes"]}),
            product if product in ROOFS.peaks else "FFMA" if product is None else "tensor")
        if product != roofline.FP8:
            assert max(shares.values()) < 1, (variant.name, row.shape, shares)


@pytest.mark.parametrize("key, peak", [
    ("ffma", 2 * SHEET.fp32_lanes_per_sm), ("shared", 128),
    *((key, accounts.RATES[name]) for key, name in roofline.PRODUCTS.items())])
def test_loops_of_nothing_else_reach_what_a_cycle_of_their_unit_is_worth(key, peak):
    """FLOP or bytes per cycle and SM, at the clock that the loop had: 96 to 100 % of the rate."""
    roof = MACHINE.roofs.named()[key]
    per_cycle = roof.value / (roof.clock.sms * roof.clock.mhz * 1e6)
    assert 0.96 < per_cycle / peak <= 1


def sustained():
    """What ran alone for seconds on the book's GPU."""
    for stored in records.versions():
        if stored.gpu.key == RECORDED_ON:
            for variant in stored.variants.values():
                for row in filter(lambda row: row.sustained, variant.bench):
                    yield from (row.sustained.own, row.sustained.cublas)


def test_joules_of_what_the_power_cap_slows_are_the_cap_s():
    """A clock far below the sheet's is the cap at work: joules per second are the board's watts."""
    slowed = [side for side in sustained() if 1e6 * mhz(side.clock) < 0.85 * SHEET.clock_hz]
    assert len(slowed) > 20
    for side in slowed:
        assert side.joules / side.seconds == pytest.approx(SHEET.board_watts, rel=0.02)


@pytest.mark.parametrize("name", ["stores_first_alone", "products_first_alone"])
@pytest.mark.parametrize("size", [2048, 4096])
def test_a_step_of_a_block_alone_holds_its_products_and_its_wait(name, size):
    version, variant = Numbers("12_wmma_pipeline")._of(name)
    step = overlap.step_of(version, name, size)
    product = roofline.instruction(version.metrics(size, name), 2.0 * size**3, variant.dtype)
    rows, columns = variant.tile
    products = 2 * rows * columns * variant.step / accounts.RATES[product]
    assert 0 < products + step.wait < step.cycles


def test_a_tile_s_products_are_a_part_of_what_a_launch_of_its_tiles_takes():
    for row in epilogue.contests_record().parts:
        for side in filter(lambda side: side.clock, row.sides):
            down, across = epilogue.tile_of(side.variant)
            rounds = math.ceil(math.ceil(row.M / down) * math.ceil(row.N / across) / SHEET.sms)
            least = rounds * epilogue.loop_cycles((down, across), row.K)
            assert 0.6 < least / side.clock.cycles < 1, (side.variant, row.shape)


def test_whose_seconds_are_drawn_is_said():
    scene = busiest.picture({"DRAM": 1e-3}, 2e-3, seconds_evidence="measured",
                            evidence="modelled: H100 data sheet")
    assert "measured 2 ms" in scene.text


def test_counters_of_a_large_problem():
    """One emulated block at two depths gives those of four blocks at a third, exactly."""
    kernel = find("14_ldmatrix")
    variant = kernel.variants[0]
    M, N = variant.tile

    def counters(rows, columns, K):
        problem = variant.problem(rows, columns, K)
        done = run(kernel, problem, variant=variant, backend="emulator", exact=True)
        return done.launch.trace.counters()

    found = busiest.scaled(counters(M, N, 64), counters(M, N, 128), (64, 128), K=256, blocks=4)
    assert found == counters(2 * M, 2 * N, 256)
    with pytest.raises(ValueError, match="tell nothing"):
        busiest.scaled({}, {}, (64, 64), K=1, blocks=1)
    with pytest.raises(ValueError, match="no whole number"):
        busiest.scaled({"x": 1}, {"x": 2}, (64, 128), K=96, blocks=1)


def test_what_a_t4_would_saturate():
    """Padding and single buffers ask more of a T4's shared memory than of its tensor cores."""
    times = partial(busiest.emulated_times, "15_turing_limit", gpu=GPUS["T4"])
    start, limit = (times(name, size=1024) for name in ("padded", "tile_128x256"))
    assert start["tensor pipe"] == limit["tensor pipe"]
    assert busiest.longest(start) == "shared memory"
    assert busiest.longest(limit) == "tensor pipe"
    with pytest.raises(ValueError, match="no multiple"):
        times("padded", size=1000)
