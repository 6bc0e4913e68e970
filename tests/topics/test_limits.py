"""What limits a kernel, against launches whose answer is known: over all records, and the roofs."""

import pytest

from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS
from lib.records import store as records
from lib.records.schema import KernelRecord, MachineRecord, mhz
from lib.topics.limits.accounts import model as accounts
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.limits.roofline import model as roofline
from lib.topics.version import RECORDED_ON

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
        product = None if variant.dtype == "float32" else accounts.instruction(
            metrics, row.flops, variant.dtype)
        times = busiest.of_record(metrics, SHEET, ROOFS, product=product, flops=row.flops,
                                  clock_mhz=mhz(row.clock))
        assert max(times.values()) < row.seconds, (variant.name, row.shape, times)
        shares = ROOFS.shares(roofline.points("x", row.flops, row.seconds, {
            "L1/shared": roofline.l1_bytes(metrics),
            "DRAM": metrics["dram_read_bytes"] + metrics["dram_write_bytes"]}),
            product if product in ROOFS.products else "FFMA" if product is None else "tensor")
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
