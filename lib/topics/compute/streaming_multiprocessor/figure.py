"""Where does a warp wait? One SM, its path to memory, and each stall where it arises."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import gpus
from lib.gpus import Gpu
from lib.plotting import shapes, style

_WIDE = 506.0
_SM = 352.0  # of which the SM takes so much; stalls stand at the right
_HEIGHT = 366.0


@dataclass(frozen=True)
class _Stall:
    """A stall's name, what the warp waits for, and how high it stands or reaches, pt."""

    name: str
    what: str
    y: float
    between: tuple[float, float] | None = None


@style.styled
def draw(gpu: Gpu, *, evidence: str | None = None) -> Figure:
    """Draw one SM of a GPU.

    Parameters
    ----------
    gpu : Gpu
        Gives the numbers.
    evidence : str, optional
    """
    fig = style.figure(_finding(gpu), _HEIGHT / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, _HEIGHT / 72, bare=True)
    _sub_partitions(ax, gpu)
    _memory(ax, gpu)
    ax.text(_SM + 12, _HEIGHT, "why a warp isn’t issued", size=style.SMALL, va="top",
            weight="bold")
    for stall in _stalls():
        _arrow(ax, stall)
    return style.finish(fig, alt=_alt(gpu),
                        evidence=evidence or f"modelled: data sheet of {gpu.name}")


def _sub_partitions(ax: Axes, gpu: Gpu) -> None:
    width, gap, top = 80.0, 6.0, _HEIGHT - 20
    lanes = gpu.fp32_lanes_per_sm // gpus.ISSUE_SLOTS
    registers = gpu.registers_per_sm // gpus.ISSUE_SLOTS // 1024
    warps = gpu.warps_per_sm // gpus.ISSUE_SLOTS
    ax.text(0, _HEIGHT, f"SM: 1 of {gpu.sms}", size=style.LARGE, weight="bold", va="top")
    for i in range(gpus.ISSUE_SLOTS):
        x = 4 + i * (width + gap)
        _box(ax, x, top - 152, width, 148, "", style.INK)
        ax.text(x + 5, top - 8, "sub-partition", size=style.SMALL, va="top")
        for y, height, text, colour in (
            (top - 52, 30, f"{warps} warps", None),
            (top - 80, 26, "1 issue slot", style.FOCUS),
            (top - 108, 26, f"{registers}K registers", None),
            (top - 148, 38, f"{lanes} FP32 lanes\ntensor core", style.PHASE["compute"]),
        ):
            _box(ax, x + 4, y, width - 8, height, text, colour or style.INK,
                 filled=colour is not None)


def _memory(ax: Axes, gpu: Gpu) -> None:
    rate = gpus.data_bytes_per_clock(gpu)
    top = _HEIGHT - 180
    blue = style.PHASE["load"]
    for y, height, text, filled in (
        (top - 26, 24, "queues of loads and stores (LG: global, MIO: shared)", False),
        (top - 66, 36, f"L1 and shared memory, up to {gpu.shared_bytes_per_sm // 1024} KiB shared\n"
         f"32 banks, {rate} bytes per cycle", True),
        (top - 116, 36, f"L2, {gpu.l2_bytes // 2**20} MiB, for all SMs\nsectors of 32 bytes", True),
        (top - 166, 36, f"DRAM\n{style.quantity(gpu.dram_bytes_per_s, 'B/s')}", True),
    ):
        _box(ax, 4, y, _SM - 12, height, text, blue if filled else style.INK, filled=filled)
    shapes.rectangles(ax, [(0, top - 72, _SM - 4, _HEIGHT - top + 56)], facecolor="none",
                      edgecolor=style.INK, linewidth=1.2)


def _box(ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str,
         filled: bool = False) -> None:
    if filled:
        shapes.rectangles(ax, [(x, y, width, height)], facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, [(x, y, width, height)], facecolor="none", edgecolor=colour,
                      linewidth=0.8)
    ax.text(x + width / 2, y + height / 2, text, size=style.SMALL, ha="center", va="center",
            linespacing=1.2)


def _stalls() -> list[_Stall]:
    top = _HEIGHT - 180
    return [
        _Stall("barrier", "for the block’s other warps", _HEIGHT - 36),
        _Stall("not selected", "ready, another was issued", _HEIGHT - 66),
        _Stall("dispatch", "held back by the dispatcher", _HEIGHT - 96),
        _Stall("wait", "a fixed number of cycles", _HEIGHT - 126),
        _Stall("math pipe throttle", "the lanes are busy", _HEIGHT - 156),
        _Stall("LG, MIO throttle", "the queue is full", top - 14),
        _Stall("short scoreboard", "a value from shared memory", top - 48),
        _Stall("long scoreboard", "a value from global memory", top - 106, (top - 62, top - 166)),
    ]


def _arrow(ax: Axes, stall: _Stall) -> None:
    lines = [((_SM - 8, stall.y), (_SM + 10, stall.y))]
    if stall.between:  # a value comes from any of these levels
        low, high = stall.between
        lines = [((_SM + 4, low), (_SM + 4, high)), ((_SM + 4, stall.y), (_SM + 10, stall.y))]
        lines += [((_SM - 2, y), (_SM + 4, y)) for y in stall.between]
    shapes.strokes(ax, lines, edgecolor=style.INK, linewidth=0.7)
    ax.text(_SM + 12, stall.y + 6, stall.name, size=style.NORMAL, weight="bold", va="center")
    ax.text(_SM + 12, stall.y - 7, stall.what, size=style.SMALL, va="center")


def _finding(gpu: Gpu) -> str:
    return (f"An SM of {style.article(gpu.key)} issues up to {gpus.ISSUE_SLOTS} warp instructions "
            "a cycle; a warp that waits has a reason with a name")


def _alt(gpu: Gpu) -> str:
    lanes = gpu.fp32_lanes_per_sm // gpus.ISSUE_SLOTS
    return (
        f"One of {gpu.sms} SMs: four sub-partitions, each with {gpu.warps_per_sm // 4} warps, one "
        f"issue slot, {gpu.registers_per_sm // 4 // 1024}K registers, {lanes} FP32 lanes and a "
        f"tensor core; under them queues, L1 and shared memory, the L2 of "
        f"{gpu.l2_bytes // 2**20} MiB and DRAM at {style.quantity(gpu.dram_bytes_per_s, 'B/s')}. "
        + " ".join(f"{stall.name.capitalize()}: {stall.what}." for stall in _stalls())
    )
