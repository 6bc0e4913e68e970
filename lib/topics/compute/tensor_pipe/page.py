"""Where the distance to the peak of the tensor cores went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lib import gpus
from lib.plotting.columns import Column, listed
from lib.records import store as records
from lib.topics.columns import CLOCK, NAME, TFLOPS, Launches, launches
from lib.topics.compute.tensor_pipe import model as pipe_account
from lib.topics.memory.rasterization.model import Raster
from lib.topics.version import RECORDED_ON, Version


def account(version: Version, *variants: str, above: Sequence[str] = (), size: int = 4096) -> None:
    """Display where the distance to the tensor cores' peak went, factor by factor."""
    def both(one: Launches) -> tuple[pipe_account.Account, pipe_account.Account]:
        return accounted(one.page, one.variant.name, size)

    def part(head: str, name: str) -> Column[Launches]:
        return Column(head, lambda one: getattr(both(one)[0], name), ".3f")

    def of_cycles(of: int, one: Launches) -> float:
        side = both(one)[of]
        return side.share / side.clock

    listed([
        NAME.called(f"in turns, at {size:,}"), replace(TFLOPS, form=".0f"), CLOCK.called("MHz"),
        part("clock", "clock"), part("last wave", "waves"), part("the rest", "rest"),
        part("of the peak", "share"),
        Column("of the cycles' peak", lambda one: f"**{of_cycles(0, one):.3f}**"),
        Column("cuBLAS, of the same", partial(of_cycles, 1), ".3f"),
    ], launches(version, variants, above, size),
        f"{records.label(version.record)}; peak modelled: 4,096 FLOP a cycle and SM, "
        f"{gpus.GPUS[RECORDED_ON].clock_hz / 1e6:,.0f} MHz")


def accounted(
    version: Version, variant: str | None = None, size: int = 4096
) -> tuple[pipe_account.Account, pipe_account.Account]:
    """Take the recorded speeds of a variant and of cuBLAS, in turns with it, apart.

    Each at the clock of its own launches. Nothing is known of cuBLAS's waves: all is in its rest.

    Raises
    ------
    NotRecorded
        If the record is older than these clocks.
    """
    chosen, row = version.kernel.variant(variant), version.recorded(size, variant)
    launched = version.reader.launched(row.instantiation, row.shape) or chosen
    sheet, sms = gpus.GPUS[RECORDED_ON], version.record.gpu.sms
    order = Raster(size, size, size, launched.tile, chosen.schedule.group,
                   launched.grid.cluster, sms)
    if row.clock is None or row.cublas_clock is None:
        raise records.NotRecorded(f"the clock of {version.kernel.stem} {chosen.name}: python -m "
                                  f"lib record {version.kernel.stem}")
    ours, rival = (
        pipe_account.account(RECORDED_ON, sms, sheet.clock_hz, 1e12 * speed, 1e6 * clock.mhz, waves)
        for speed, clock, waves in ((row.tflops, row.clock, order.full),
                                    (row.cublas_tflops, row.cublas_clock, 1.0))
    )
    return ours, rival
