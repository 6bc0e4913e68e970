"""What a chapter shows of its kernel with a line less."""

from __future__ import annotations

from lib.plotting.display import table
from lib.topics.emulator.mistakes import model
from lib.topics.version import Version


def left_out(version: Version) -> None:
    """Display each mistake of a version, what the emulator reports, and whether C is right."""
    stem = version.kernel.stem
    planted = model.PLANTED[stem]
    rows = [(one.shown, found.says or "nothing", found.result)
            for one in planted.mistakes for found in [model.verdict(stem, one)]]
    whole = model.verdict(stem, None)
    table(("left out or changed", "the emulator reports", "C"), rows,
          f"emulated: {planted.variant}, {'×'.join(map(str, planted.shape))}, one run each, what "
          f"is asynchronous as late as may be; unchanged: {whole.says or 'no hazard'}, C "
          f"{whole.result}")
