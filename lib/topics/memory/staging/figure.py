"""What does a staged tile leave of the traffic? The tile and its warps; what each level feeds."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import number, percent, plural, quantity
from lib.topics.limits.roofline.model import Roofs
from lib.topics.memory.staging.model import Staging

_LARGEST, _SIDE, _STRIP, _GAP, _BAR = 256, 150.0, 13.0, 8.0, 330.0  # elements; px
_WHERE = {
    "L1/shared": "L1 and shared memory", "L2": "the L2", "DRAM": "DRAM, each element once",
}


def draw(staging: Staging, roofs: Roofs, *, gpu: str, peak: str = "tensor", n: int = 4096
         ) -> Scene:
    """Draw one block and warp tile on one GPU.

    Parameters
    ----------
    staging : Staging
    roofs : Roofs
        Bandwidths and peaks of the GPU; a level whose bandwidth is not known gets no bar.
    gpu : str
        Its name.
    peak : str
        Key of ``roofs.peaks``: what is to be fed.
    n : int
        M = N = K.
    """
    fed = staging.fed(roofs, n, peak)
    lowest = min(fed, key=lambda level: fed[level])
    levels = []
    for level, where in _WHERE.items():
        intensity = staging.intensity(level, n)
        levels.append(words(f"{number(intensity)} FLOP for a byte of {where}", bold=True))
        if level not in fed:
            need = quantity(roofs.peaks[peak] / intensity, "B/s")
            levels.append(words(f"its bandwidth is not given: the peak would need {need}"))
            continue
        tight = level == lowest and fed[level] < 1
        bar = Drawing(_BAR, 16).boxes([(0, 0, fed[level] * _BAR, 15)],
                                      "warning" if tight else "load")
        levels += [bar.frames([(0, 0, _BAR, 15)]).html(),
                   words(f"feeds {percent(fed[level])} of the tensor peak; all of it takes "
                         f"{number(roofs.ridge(level, peak))}")]
    rows, columns = staging.block or staging.warp
    what = f"a block's tile, {rows} × {columns}" if staging.block else "no tile: a warp alone"
    warps = (f"{plural(staging.warps, 'warp')} of {staging.warp[0]} × {staging.warp[1]}, "
             f"{plural(staging.sums, 'sum')} a lane")
    name = f"warps of {staging.warp[0]}×{staging.warp[1]}"
    name = f"{rows}×{columns}, {name}" if staging.block else f"No tile, {name}"
    finding = (f"{name}: no level holds back the tensor cores of {gpu}" if fed[lowest] >= 1 else
               f"{name}: {lowest} feeds {percent(fed[lowest])} of {gpu}'s tensor peak")
    return Scene(finding, row(
        column(words(what, bold=True), words(warps), _tile(staging).html(), width=230),
        column(*levels, width=_BAR)), roofs.evidence)


def _tile(staging: Staging) -> Drawing:
    """The block's tile of C, cut into warps, with the strips of A and B that it reads."""
    scale = _SIDE / _LARGEST
    height, width = (size * scale for size in staging.block or staging.warp)
    down, across = (size * scale for size in staging.warp)
    left, top = 16 + _STRIP + _GAP, 16 + _STRIP + _GAP
    drawing = Drawing(left + _SIDE + 16, top + _SIDE)
    drawing.boxes([(16, top, _STRIP, height), (left, 16, width, _STRIP)], "load")
    drawing.boxes([(left, top, width, height)], "compute", pale=True)
    drawing.boxes([(left, top, across, down)], "compute")
    drawing.grid((left, top, width, height), round(height / down), round(width / across),
                 faint=False)
    return drawing.text(0, top + height / 2 + 4, "A", bold=True).text(
        left + width / 2, 11, "B", "middle", bold=True).text(
        left + width + 5, top + height, "C", bold=True)


def impossible(block: tuple[int, int], warp: tuple[int, int]) -> Scene:
    """Say that warps don't divide a block: the frame of an explorer."""
    return Scene(f"Warps of {warp[0]}×{warp[1]} don't divide a tile of {block[0]}×{block[1]}",
                 words("Take a larger block or smaller warps."), "modelled: the block's tile")
