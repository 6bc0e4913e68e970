"""Where does a warp wait? One SM, its path to memory, and each stall where it arises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import gpus
from lib.gpus import Gpu
from lib.plotting import shapes, style

_SM, _HEIGHT = 352.0, 366.0  # pt: how far the SM reaches; stalls stand at its right
_NARROW_SM, _NARROW_HEIGHT = 106.0, 404.0  # where one sub-partition stands for all
_UPPER = 180.0  # pt: of the sub-partitions, over the paths to memory


@dataclass(frozen=True)
class _Stall:
    """A stall's name, what the warp waits for, and how high it stands or reaches, pt."""

    name: str
    what: str
    y: float
    between: tuple[float, float] | None = None


@style.styled
def draw(gpu: Gpu, *, evidence: str | None = None, narrow: bool = False) -> Figure:
    """Draw one SM of a GPU.

    Parameters
    ----------
    gpu : Gpu
        Gives the numbers.
    """
    right, height = (_NARROW_SM, _NARROW_HEIGHT) if narrow else (_SM, _HEIGHT)
    fig, ax = style.canvas(_finding(gpu), height, narrow)
    _sub_partitions(ax, gpu, height, right)
    levels = _levels(gpu, narrow)
    _memory(ax, levels, height, right)
    ax.text(right + 12, height, "why a warp isn’t issued", va="top", weight="bold")
    for stall in _stalls(height, levels):
        _arrow(ax, stall, right)
    return style.finish(fig, alt=_alt(gpu),
                        evidence=evidence or f"modelled: data sheet of {gpu.name}")


def _sub_partitions(ax: Axes, gpu: Gpu, height: float, right: float) -> None:
    gap, top = 6.0, height - 20
    shown = 1 if right == _NARROW_SM else gpus.ISSUE_SLOTS
    width = (right - 8 - gap * shown) / shown if shown == 1 else 80.0
    lanes = gpu.fp32_lanes_per_sm // gpus.ISSUE_SLOTS
    registers = gpu.registers_per_sm // gpus.ISSUE_SLOTS // 1024
    warps = gpu.warps_per_sm // gpus.ISSUE_SLOTS
    ax.text(0, height, f"SM: 1 of {gpu.sms}", size=style.LARGE, weight="bold", va="top")
    name = "sub-partition" if shown > 1 else f"sub-partition, × {gpus.ISSUE_SLOTS}"
    for i in range(shown):
        x = 4 + i * (width + gap)
        _box(ax, x, top - 152, width, 148, "", style.INK)
        ax.text(x + 5, top - 8, name, va="top")
        for y, tall, text, colour in (
            (top - 52, 30, f"{warps} warps", None),
            (top - 80, 26, "1 issue slot", style.FOCUS),
            (top - 108, 26, f"{registers}K registers", None),
            (top - 148, 38, f"{lanes} FP32 lanes\ntensor core", style.PHASE["compute"]),
        ):
            _box(ax, x + 4, y, width - 8, tall, text, colour or style.INK,
                 filled=colour is not None)


def _levels(gpu: Gpu, narrow: bool) -> list[tuple[float, float, str]]:
    """Queues, L1, L2 and DRAM: how far each lies under the sub-partitions, how high, its words."""
    rate = gpus.data_bytes_per_clock(gpu)
    shared = f"{gpu.shared_bytes_per_sm // 1024} KiB shared"
    l2 = f"L2, {gpu.l2_bytes // 2**20} MiB"
    dram = f"DRAM\n{style.quantity(gpu.dram_bytes_per_s, 'B/s')}"
    if narrow:
        return [
            (54, 52, "queues of loads\nand stores (LG:\nglobal, MIO:\nshared)"),
            (122, 64, f"L1 and shared\nmemory, up to\n{shared}:\n32 banks, {rate}\n"
             "bytes per cycle"),
            (176, 42, f"{l2}, for\nall SMs: sectors\nof 32 bytes"), (214, 30, dram),
        ]
    return [
        (26, 24, "queues of loads and stores (LG: global, MIO: shared)"),
        (66, 36, f"L1 and shared memory, up to {shared}\n32 banks, {rate} bytes per cycle"),
        (116, 36, f"{l2}, for all SMs\nsectors of 32 bytes"), (166, 36, dram),
    ]


def _memory(ax: Axes, levels: Sequence[tuple[float, float, str]], height: float, right: float
            ) -> None:
    top = height - _UPPER
    for number, (under, tall, text) in enumerate(levels):
        _box(ax, 4, top - under, right - 12, tall, text, style.PHASE["load"] if number else
             style.INK, filled=number > 0)
    l1, _, _ = levels[1]
    shapes.frames(ax, [(0, top - l1 - 6, right - 4, _UPPER + l1 - 10)], 1.2)


def _box(ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str,
         filled: bool = False) -> None:
    if filled:
        shapes.rectangles(ax, [(x, y, width, height)], facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, [(x, y, width, height)], facecolor="none", edgecolor=colour,
                      linewidth=0.8)
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", linespacing=1.2)


def _stalls(height: float, levels: Sequence[tuple[float, float, str]]) -> list[_Stall]:
    top = height - _UPPER
    queues, l1, _, dram = (top - under + tall / 2 for under, tall, _ in levels)
    near, far = top - levels[1][0] + 4, top - levels[3][0]
    return [
        _Stall("barrier", "for the block’s other warps", height - 36),
        _Stall("not selected", "ready, another was issued", height - 66),
        _Stall("dispatch", "held back by the dispatcher", height - 96),
        _Stall("wait", "a fixed number of cycles", height - 126),
        _Stall("math pipe throttle", "the lanes are busy", height - 156),
        _Stall("LG, MIO throttle", "the queue is full", queues),
        _Stall("short scoreboard", "a value from shared memory", l1),
        _Stall("long scoreboard", "a value from global memory", (near + dram) / 2, (near, far)),
    ]


def _arrow(ax: Axes, stall: _Stall, right: float) -> None:
    lines = [((right - 8, stall.y), (right + 10, stall.y))]
    if stall.between:  # a value comes from any of these levels
        low, high = stall.between
        lines = [((right + 4, low), (right + 4, high)), ((right + 4, stall.y),
                                                         (right + 10, stall.y))]
        lines += [((right - 2, y), (right + 4, y)) for y in stall.between]
    shapes.strokes(ax, lines, linewidth=0.7)
    ax.text(right + 12, stall.y + 6, stall.name, size=style.NORMAL, weight="bold", va="center")
    ax.text(right + 12, stall.y - 7, stall.what, va="center")


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
        + " ".join(f"{stall.name.capitalize()}: {stall.what}."
                   for stall in _stalls(_HEIGHT, _levels(gpu, narrow=False)))
    )
