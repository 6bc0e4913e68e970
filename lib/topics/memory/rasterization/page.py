"""What crosses the L2 and DRAM in each order of tiles, predicted and recorded."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.columns import Column, listed
from lib.plotting.markdown import NOT_YET
from lib.problem import ITEM_BYTES
from lib.topics import columns
from lib.topics.columns import Launches, launches, speeds
from lib.topics.memory.rasterization import model
from lib.topics.version import Version

SIZE, SMALL = 4096, 2048


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
    rows = launches(version, variants, above, size)

    def name(one: Launches) -> str:
        stem, own = one.page.kernel.stem, f"`{one.variant.name}`"
        return own if stem == version.kernel.stem else f"{stem[:2]}’s {own}"

    def order(one: Launches) -> str:
        schedule = one.variant.schedule
        down, across = schedule.cluster
        hilbert = "Hilbert, " if schedule.own.get("HILBERT") else ""
        return f"{down} × {across}; {hilbert}{schedule.group}"

    def asked(one: Launches) -> float:
        return model.asked((size,) * 3, one.variant.tile, one.variant.schedule.cluster,
                           ITEM_BYTES[one.variant.dtype]) / 1e9

    complete = [one for one in rows if one.current and one.counted and one.at(SMALL).timed
                and one.timed]

    def read(column: Column[Launches], absent: str = "") -> Column[Launches]:
        return Column(column.head, lambda one: column.cell(one) if one in complete else absent)

    listed([
        Column("variant", name), Column("cluster; band, clusters high", order),
        Column("GB asked of the L2", asked, ".2f"), read(columns.L2_GB.called("sent"), NOT_YET),
        *map(read, (columns.DRAM_GB.called("from DRAM"), columns.CYCLES, columns.CLOCK,
                    *speeds("TFLOP/s at", SMALL), *speeds("at", size))),
    ], rows, "asked: modelled, A and B alone; sent: recorded of one profiled launch, with C; "
             "cycles and clock are of the timed launches; "
             f"{columns.current_labels(complete)}, {size:,}³")
