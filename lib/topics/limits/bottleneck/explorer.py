"""Which unit a GPU would saturate: kernel or step of a kernel, size of the matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from lib.gpus import Gpu
from lib.plotting import style
from lib.plotting.frames import Control, Explorer, thousands
from lib.topics.limits.bottleneck import figure as busiest_figure
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.time.waves.model import Deal

Times = Callable[[str, int], tuple[Mapping[str, float], int]]


def saturated(
    times: Times, tiles: Mapping[str, tuple[int, int, int, int]], gpu: Gpu,
    sizes: Sequence[int] = (1024, 2048, 4096, 8192), default: tuple[int, int] = (0, 2),
) -> Explorer:
    """Variant and size against the least time of each unit.

    Parameters
    ----------
    times : callable
        From a variant's name and M = N = K to the least seconds of each unit and the bytes asked of
        the L2 (`lib.topics.limits.bottleneck.emulated.unit_times`).
    tiles : mapping of str to (int, int, int, int)
        The variants to choose from: rows and columns of a block's tile of C, the step of K, and
        blocks that an SM holds.
    gpu : Gpu
        Data sheet of the GPU in question.
    """
    controls = [
        Control.of("Variant", tiles, default[0]),
        Control.of("M = N = K", sizes, default[1], thousands, slider=True),
    ]

    def frame(name: str, n: int, narrow: bool = False) -> Figure:
        found, l2_bytes = times(name, n)
        rows, columns, step, held = tiles[name]
        deal = Deal(n // rows * (n // columns), n // step, held * gpu.sms)
        unit = busiest.longest(found)
        flops = 2.0 * n**3 / found[unit]
        need = style.quantity(busiest.l2_needed(l2_bytes, found), "B/s")
        return busiest_figure.draw(
            found, evidence=f"modelled: {gpu.key} rates × emulated counters",
            notes={"DRAM": "compulsory bytes"},
            title=f"{name}, n = {n:,}: {_verb(unit)} at least {style.duration(found[unit])}, "
            f"{style.quantity(flops, 'FLOP/s')} at most",
            note=f"L2: {need} not to be longer; work for {deal.uncut:.0%} of the time",
            narrow=narrow,
        )

    return Explorer(controls, frame, f"Which unit {style.article(gpu.key)} would saturate")


def _verb(unit: str) -> str:
    return f"{unit} {'need' if unit in busiest.PLURAL else 'needs'}"
