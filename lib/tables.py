"""Tables that the method page prints: modelled from data sheets and from addresses by formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lib.gpus import GPUS
from lib.models import banks, coalescing
from lib.models.occupancy import occupancy

# A number as the pages write it: signed, bold, "under 1e-6".
_WORDS = 28  # characters of a cell that is a sentence, though it may begin with a number
_NUMBER = re.compile(r"\*{0,2}(?:under )?[-+−]?\d[\d.,]*(?![\w×])")


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; columns behind the first are aligned to the right where they hold numbers.

    A column holds numbers if one of its cells begins with a digit or a sign and none is a sentence.
    """
    rows = [list(row) for row in rows]
    columns = [[str(row[i]) for row in rows] for i in range(1, len(head))]
    ends = [":" if not rows or any(map(_NUMBER.match, column))
            and max(map(len, column)) <= _WORDS else "" for column in columns]
    lines = [f"| {' | '.join(head)} |", f"|---|{''.join(f'---{end}|' for end in ends)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def ridge_points() -> str:
    """Peaks, bandwidth and ridge points of every GPU with a data sheet here."""
    return markdown(
        ("GPU", "FP32 peak, TFLOP/s", "tensor FP16 peak, TFLOP/s", "DRAM, GB/s",
         "FP32 ridge, FLOP/byte", "tensor ridge, FLOP/byte"),
        (
            (gpu.key, f"{gpu.fp32_flops / 1e12:.1f}", f"{gpu.tensor_fp16_flops / 1e12:,.0f}",
             f"{gpu.dram_bytes_per_s / 1e9:,.0f}", f"{gpu.fp32_ridge:.1f}",
             f"{gpu.tensor_ridge:.0f}")
            for gpu in GPUS.values()
        ),
    )


def sectors(strides: Iterable[int], bytes_per_lane: int = 4) -> str:
    """What one load of a warp costs, for several distances between neighbouring lanes.

    Parameters
    ----------
    strides : iterable of int
        Elements from one lane's address to the next lane's.
    bytes_per_lane : int
        Size of an element, B.
    """
    rows = []
    for stride in strides:
        found = coalescing.describe(coalescing.strided(stride, bytes_per_lane=bytes_per_lane))
        rows.append((stride, len(found.sectors), found.moved_bytes, found.useful_bytes,
                     f"{100 * found.efficiency:.3g}%"))
    return markdown(("stride, elements", "sectors", "bytes moved", "bytes used", "useful"), rows)


def wavefronts(strides: Iterable[int], bytes_per_lane: int = 4) -> str:
    """What one shared-memory load of a warp costs, for several distances between lanes."""
    rows = []
    for stride in strides:
        served = banks.describe(coalescing.strided(stride, bytes_per_lane=bytes_per_lane))
        touched = {bank for row in served.rows for _, bank, _ in row}
        rows.append((stride, len(touched), served.wavefronts, served.ideal))
    return markdown(("stride, elements", "banks used", "wavefronts", "ideal"), rows)


def residents(registers: Iterable[int], *, threads: int, shared_bytes: int = 0) -> str:
    """Warps resident on one SM of a T4, an A100 and an H100, for several register counts."""
    keys = ("T4", "A100", "H100")
    rows = []
    for count in registers:
        fits = [occupancy(GPUS[key], count, shared_bytes, threads) for key in keys]
        rows.append((count, *(f"{fit.warps} ({100 * fit.fraction:.3g}%), {fit.limited_by}"
                              for fit in fits)))
    return markdown(("registers a thread", *keys), rows)
