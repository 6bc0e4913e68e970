"""What crosses the L2 and DRAM in each order of tiles, predicted and recorded."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.display import table
from lib.problem import ITEM_BYTES
from lib.records import store as records
from lib.records.schema import mhz
from lib.topics.memory.rasterization import model
from lib.topics.version import Row, Version

SIZE, SMALL = 4096, 2048
NOT_YET = "not recorded yet"


def traffic(version: Version, *variants: str, above: Sequence[str] = (), size: int = SIZE
            ) -> None:
    """Display a row a variant: its cluster, its band, bytes predicted and recorded, cycles, clock.

    A record of other source or another launch than today's counts as none.

    Parameters
    ----------
    above : sequence of str
        Other versions' to show above, as ``stem/variant``.
    size : int
        M = N = K of the bytes, and of the second speed; the first one is at 2,048.
    """
    rows, labels = [], dict[str, None]()
    for one in version.rows(variants, above):
        schedule = one.variant.schedule
        down, across = schedule.cluster
        predicted = model.asked((size,) * 3, one.variant.tile, schedule.cluster,
                                ITEM_BYTES[one.variant.dtype])
        order = "Hilbert, " if schedule.own.get("HILBERT") else ""
        stem = one.page.kernel.stem
        name = f"`{one.variant.name}`"
        if stem != version.kernel.stem:
            name = f"{stem[:2]}’s {name}"
        rows.append((name, f"{down} × {across}; {order}{schedule.group}",
                     f"{predicted / 1e9:.2f}", *_recorded(one, size, labels)))
    table(("variant", "cluster; band, clusters high", "GB asked of the L2", "sent", "from DRAM",
           "cycles", "SM clock, MHz", f"TFLOP/s at {SMALL:,}", f"at {size:,}"), rows,
          f"asked: modelled, A and B alone; sent: recorded of one profiled launch, with C; cycles "
          f"and clock are of the timed launches; {'; '.join(labels) or NOT_YET}, {size:,}³")


def _recorded(one: Row, size: int, labels: dict[str, None]) -> tuple[str, ...]:
    try:
        one.page.reader.check_current(one.variant.name)
        found = one.page.metrics(size, one.variant.name)
        row = one.page.recorded(size, one.variant.name)
        small = one.page.recorded(SMALL, one.variant.name)
    except records.NotRecorded:
        return (NOT_YET, "", "", "", "", "")
    labels[records.label(one.page.record)] = None
    clock = mhz(row.clock)
    return (f"{found['l2_bytes'] / 1e9:.2f}", f"{found['dram_read_bytes'] / 1e9:.2f}",
            f"{row.clock.cycles:,.0f}" if row.clock else "not read",
            f"{clock:,.0f}" if clock else "not read", f"{small.tflops:.4g}", f"{row.tflops:.4g}")
