"""What loading ahead gains, row by row of the recorded sweep (`lib.records.sweeps`)."""

from __future__ import annotations

from lib.records import store as records
from lib.records import sweeps
from lib.records.schema import Sweep, SweepsRecord, Swept
from lib.topics.version import RECORDED_ON


def recorded() -> bool:
    """Whether there is a recorded sweep."""
    record = records.load(SweepsRecord, RECORDED_ON)
    return record is not None and sweeps.DOUBLE_BUFFER in record.sweeps


def tflops(sweep: Sweep, row: Swept, form: str) -> float:
    """Speed of a form in one row of a recorded sweep, TFLOP/s."""
    M, N, K = sweep.shape
    return 2 * M * N * K / row.seconds[form] / 1e12


def gains(form: str, over: str, tile: str = "") -> list[float]:
    """Speed of a form over that of another, less 1, row by row of the recorded sweep.

    Parameters
    ----------
    form, over : str
        Of `lib.records.sweeps.FORMS`.
    tile : str
        ``"128×128×8"``: only the rows of that tile, by rising occupancy.

    Raises
    ------
    records.NotRecorded
        If there is no sweep.
    """
    return [row.seconds[over] / row.seconds[form] - 1 for row in sweep().rows
            if tile in ("", sweeps.tile_of(row))]


def tiles() -> list[str]:
    """The tiles of the recorded sweep, in its order.

    Raises
    ------
    records.NotRecorded
        If there is no sweep.
    """
    return list(dict.fromkeys(map(sweeps.tile_of, sweep().rows)))


def sweep() -> Sweep:
    """The recorded sweep.

    Raises
    ------
    records.NotRecorded
        If there is none.
    """
    record = records.load(SweepsRecord, RECORDED_ON)
    if record is None or sweeps.DOUBLE_BUFFER not in record.sweeps:
        raise records.NotRecorded("no sweep is recorded: python -m lib record sweeps")
    return record.sweeps[sweeps.DOUBLE_BUFFER]
