"""What crosses the L2 and DRAM in each order of tiles, predicted and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lib.plotting.columns import Column, listed
from lib.plotting.markdown import NOT_YET
from lib.problem import ITEM_BYTES
from lib.topics import columns
from lib.topics.columns import TENSOR, Launches, Retimed, counter, in_one_run, launches, speeds
from lib.topics.memory.rasterization import model
from lib.topics.version import Version

SIZE, SMALL = 4096, 2048


def traffic(version: Version, *variants: str, above: Sequence[str] = (), size: int = SIZE,
            against: str = "") -> None:
    """Display a row a variant: its cluster, its band, bytes predicted and recorded, cycles, clock.

    A record of other source or another launch than today's counts as none. Behind a variant of
    another run than that of `against` stands `against` as it was in that run, if it was.

    Parameters
    ----------
    above : sequence of str
        Other versions' to show above, as ``stem/variant``.
    size : int
        M = N = K of the bytes, and of the second speed; the first one is at 2,048.
    against : str
        A variant.
    """
    rows = launches(version, variants, above, size)
    if against:
        rows = [each for one in rows for each in _with(one, version, against)]

    def name(one: Launches) -> str:
        if isinstance(one, Retimed):
            return f"`{one.variant.name}`, in that run"
        return _called(one, version)

    complete = [one for one in rows if one.current and one.counted and one.at(SMALL).timed
                and one.timed]

    def read(column: Column[Launches], absent: str = "") -> Column[Launches]:
        return Column(column.head, lambda one: column.cell(one) if one in complete else absent)

    listed([
        Column("variant", name), ORDER, ASKED, read(columns.L2_GB.called("sent"), NOT_YET),
        *map(read, (columns.DRAM_GB.called("from DRAM"), columns.CYCLES, columns.CLOCK,
                    *speeds("TFLOP/s at", SMALL), *speeds("at", size))),
    ], rows, "asked: modelled, A and B alone; sent: recorded of one profiled launch, with C; "
             "cycles and clock are of the timed launches; "
             f"{columns.current_labels(complete)}, {size:,}³")


def profiled(version: Version, *variants: str, size: int) -> None:
    """Display a row a variant: bytes and cycles of one profiled launch, where few were timed."""
    rows = launches(version, variants, (), size)
    listed([
        Column("variant", lambda one: _called(one, version)), ORDER, ASKED,
        columns.recorded("sent", columns.L2_GB.read, ".2f", absent=NOT_YET),
        *(columns.recorded(one.head, one.read, one.form, one.unit) for one in (
            columns.DRAM_GB.called("from DRAM"), counter("M cycles", "cycles", ".3f", 1e6),
            replace(TENSOR, head="tensor cores busy", form=".1f"))),
    ], rows, "asked: modelled, A and B alone; the rest: recorded of one profiled launch, with C; "
             f"{columns.labels(rows)}, {size:,}³")


def _with(one: Launches, version: Version, against: str) -> tuple[Launches, ...]:
    """A row, and behind it what it is held against, if that was timed once more in its run."""
    if one.page.kernel is not version.kernel or one.variant.name == against:
        return (one,)
    other = Launches(version, version.kernel.variant(against), one.size)
    again = in_one_run(other, one)[0]
    return (one, again) if isinstance(again, Retimed) else (one,)


def _called(one: Launches, version: Version) -> str:
    stem, own = one.page.kernel.stem, f"`{one.variant.name}`"
    return own if stem == version.kernel.stem else f"{stem[:2]}’s {own}"


def _order(one: Launches) -> str:
    schedule = one.variant.schedule
    down, across = schedule.cluster
    hilbert = "Hilbert, " if schedule.own.get("HILBERT") else ""
    return f"{down} × {across}; {hilbert}{schedule.group}"


def _asked(one: Launches) -> float:
    return model.asked((one.size,) * 3, one.variant.tile, one.variant.schedule.cluster,
                       ITEM_BYTES[one.variant.dtype]) / 1e9


ORDER: Column[Launches] = Column("cluster; band, clusters high", _order)
ASKED: Column[Launches] = Column("GB asked of the L2", _asked, ".2f")
