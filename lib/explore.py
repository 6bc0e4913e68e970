"""Explorers: controls that change a figure, with a kernel behind the page or without one.

How they work is in `lib.explorers.frames`; those of the tensor-core and asynchronous chapters are
modules of `lib.explorers`, and known here by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lib.explorers.fragments import fragments
from lib.explorers.frames import Control, Explorer, explorer
from lib.explorers.matrix_loads import matrix_loads
from lib.explorers.overlap import overlaps
from lib.explorers.raster import rasters
from lib.explorers.ring import rings
from lib.explorers.saturated import saturated
from lib.explorers.staging import staged_tiles
from lib.explorers.tma_swizzle import tma_swizzles
from lib.explorers.vectors import vectors
from lib.figures import banks as banks_figure
from lib.figures import coalescing as coalescing_figure
from lib.figures import pipeline as pipeline_figure
from lib.figures import style, tile
from lib.figures import thread_tile as thread_tile_figure
from lib.figures import warp_tile as warp_tile_figure
from lib.figures import waves as waves_figure
from lib.gpus import GPUS
from lib.models import coalescing, tiling, warp_tiling
from lib.models.layouts import Layout
from lib.models.pipeline import pipeline
from lib.models.waves import Deal

__all__ = [
    "Control", "Explorer", "buffers", "explorer", "fragments", "layouts", "matrix_loads",
    "overlaps", "rasters", "rings", "saturated", "staged_tiles", "strides", "thread_tiles",
    "tile_sizes", "tma_swizzles", "vectors", "warp_tiles", "waves", "widths",
]

_STRIDES = (0, 1, 2, 4, 8, 16, 32)


def strides(row_length: int = 1024) -> Explorer:
    """Thread-to-element mapping and stride against sectors.

    Parameters
    ----------
    row_length : int
        Elements in a row of A: the stride that the swapped mapping reads it with.
    """
    mappings = {
        0: "coalesced lanes read A so",
        1: "coalesced lanes read B so",
        row_length: f"swapped lanes read A so, K = {row_length:,}",
    }
    stride = Control(
        "Elements from lane to lane",
        [(f"{step:,}", step) for step in (*_STRIDES, row_length)],
        default=1,
        slider=True,
    )
    first = Control("Lane 0 starts", [("on a sector", 0), ("one float past it", 1)])

    def frame(step: int, offset: int) -> Figure:
        index = {0: "", 1: "lane"}.get(step, f"{step} * lane")
        index = " + ".join(part for part in (index, str(offset) if offset else "") if part)
        panel = coalescing_figure.panel(
            f"x[{index or 0}]", coalescing.strided(step, first=offset),
            where=mappings.get(step, ""),
        )
        widest = 32 + 31 * 0.38  # 32 sectors and the gaps between them: one scale for all frames
        return coalescing_figure.draw(
            [coalescing_figure.Group("", [panel])],
            evidence="modelled: 32-byte sectors touched", cells=widest,
        )

    return explorer([stride, first], frame, "Stride and sectors")


def tile_sizes(
    sizes: Sequence[int] = (8, 16, 32),
    gpus: Sequence[str] = ("T4", "A100", "H100"),
    registers: int = 32,
) -> Explorer:
    """Tile size against arithmetic intensity, shared memory and occupancy.

    Parameters
    ----------
    sizes : sequence of int
        Square tiles, one thread an element: at most 32.
    gpus : sequence of str
        Keys of data sheets.
    registers : int
        Registers a thread.
    """
    size = Control("Tile size T", [(str(T), T) for T in sizes], default=len(sizes) - 1)
    gpu = Control("GPU", [(key, key) for key in gpus])

    def frame(T: int, key: str) -> Figure:
        return tile.draw(tiling.square_tile(GPUS[key], T, registers), GPUS[key])

    return explorer([size, gpu], frame, "Tile size, reuse and occupancy")


def thread_tiles(
    rows: Sequence[int] = (1, 2, 4, 8, 16),
    columns: Sequence[int] = (1, 2, 4, 8, 16),
    gpus: Sequence[str] = ("T4", "A100", "H100"),
    default: int = 8,
) -> Explorer:
    """A thread's tile of C against shared loads, registers and occupancy.

    Parameters
    ----------
    rows, columns : sequence of int
        TM and TN to choose from; a single one gets no control.
    gpus : sequence of str
        Keys of data sheets.
    default : int
        The TM and TN shown first, where they can be chosen.
    """
    controls, fixed = [], {}
    for name, sizes in (("TM", rows), ("TN", columns)):
        if len(sizes) == 1:
            fixed[name] = sizes[0]
        else:
            label = f"{'Rows' if name == 'TM' else 'Columns'} a thread, {name}"
            controls.append(Control(
                label, [(str(size), size) for size in sizes], default=sizes.index(default),
                slider=True,
            ))
    sheets = [GPUS[key] for key in gpus]
    side = 16  # 16 × 16 threads a block, as in 06_register_tile

    def frame(*chosen: int) -> Figure:
        left = iter(chosen)
        TM, TN = (fixed[name] if name in fixed else next(left) for name in ("TM", "TN"))
        made = tiling.thread_tile(TM, TN, rows=side, columns=side)
        return thread_tile_figure.draw(made, sheets, side * side, max(*rows, *columns))

    return explorer(controls, frame, "A thread's tile, its loads and its registers")


# A warp's tile of C and how many of its lanes lie down its side; each lane has groups of 4 × 4.
_WARP_TILES = ((32, 16, 8), (32, 32, 8), (64, 32, 8), (32, 64, 4), (64, 64, 8))


def warp_tiles(
    tiles: Sequence[tuple[int, int, int]] = _WARP_TILES, default: int = 2,
    gpus: Sequence[str] = ("T4", "A100", "H100"),
) -> Explorer:
    """A warp's tile of C and the order of its lanes against wavefronts and registers.

    Parameters
    ----------
    tiles : sequence of (int, int, int)
        Rows and columns of the warp's tile, and lanes along its rows.
    default : int
        The tile shown first.
    gpus : sequence of str
        Keys of data sheets.
    """
    size = Control("Elements a warp", [(f"{m}×{n}", (m, n, lanes)) for m, n, lanes in tiles],
                   default=default)
    order = Control("Lanes", [("in pairs", True), ("row by row", False)])
    sheets = [GPUS[key] for key in gpus]

    def frame(tile: tuple[int, int, int], paired: bool) -> Figure:
        return warp_tile_figure.draw(warp_tiling.WarpTile(*tile, paired), sheets)

    return explorer([size, order], frame, "A warp's tile, its lanes and their wavefronts")


def widths(floats: int = 2048) -> Explorer:
    """Width of an access against instructions, requests and sectors.

    Parameters
    ----------
    floats : int
        Size of the tile that is loaded.
    """
    width = Control("Bits a lane", [(f"{bits}", bits // 32) for bits in (32, 64, 128)], default=2)
    patterns = {
        "beside each other": lambda lane, each: lane * each,
        "in rows of 16 floats": lambda lane, each: lane * each // 16 * 1024 + lane * each % 16,
        "each in a row of its own": lambda lane, each: lane * 1024,
    }
    pattern = Control("Lanes", [(name, name) for name in patterns])
    lanes = np.arange(coalescing.WARP)

    def frame(each: int, name: str) -> Figure:
        places = patterns[name](lanes, each)
        access = coalescing.Access(4 * places, np.ones(len(lanes), dtype=bool), 4 * each)
        panel = coalescing_figure.panel(f"{32 * each} bits a lane", access, array="x", where=name)
        requests = floats // (coalescing.WARP * each)
        sectors = requests * len(panel.found.sectors)
        return coalescing_figure.draw(
            [coalescing_figure.Group("", [panel])],
            evidence="modelled: 32-byte sectors touched", cells=32 + 31 * 0.38,
            title=f"{32 * each} bits, lanes {name}: a tile of {floats:,} floats takes "
            f"{requests} requests and {sectors:,} sectors",
        )

    return explorer([width, pattern], frame, "Width of an access, requests and sectors")


def layouts(
    paddings: Sequence[int] = (0, 1, 2, 4), widths: Sequence[int] = (1, 2, 4), column: int = 8
) -> Explorer:
    """Padding, swizzle and access width against the banks that a column of a tile meets.

    Parameters
    ----------
    paddings : sequence of int
        Unused floats a row.
    widths : sequence of int
        Floats a lane.
    column : int
        The first element's column: a multiple of every width.
    """
    controls = [
        Control("Floats of padding a row", [(str(n), n) for n in paddings]),
        Control("Columns", [("in order", False), ("XORed with the row", True)]),
        Control("Bits a lane", [(str(32 * n), n) for n in widths]),
    ]

    def frame(padding: int, swizzled: bool, width: int) -> Figure:
        layout = Layout(padding, swizzled, width)
        panel = banks_figure.panel("tile[lane][c]", layout.down(column), kind="store",
                                   where="down a column")
        return banks_figure.draw(
            [panel], evidence="modelled: 32 banks of 4 bytes",
            title=None if layout.aligned() else (
                f"Rows of {layout.columns + padding} floats: no aligned {32 * width}-bit access, "
                "only narrower ones"
            ),
            rows=8,
        )

    return explorer(controls, frame, "Padding, swizzle and width")


def buffers(
    loads: Sequence[int] = (100, 300, 600, 1200), computes: Sequence[int] = (100, 300, 600),
    counts: Sequence[int] = (1, 2, 3, 4), default: tuple[int, int, int] = (1, 1, 1),
) -> Explorer:
    """Load time, compute time and number of buffers against a loop's cycles.

    Parameters
    ----------
    loads, computes : sequence of int
        Cycles of one tile.
    counts : sequence of int
        Buffers.
    default : (int, int, int)
        Positions shown first.
    """
    controls = [
        Control(label, [(f"{value:,}", value) for value in values], default=first, slider=True)
        for label, values, first in zip(
            ("Cycles to load a tile", "Cycles to compute on it", "Buffers"),
            (loads, computes, counts), default, strict=True,
        )
    ]

    def frame(load: int, compute: int, count: int) -> Figure:
        return pipeline_figure.draw(pipeline(load, compute, count))

    return explorer(controls, frame, "Buffers, and what overlaps")


def waves(
    sizes: Sequence[int] = (1024, 2048, 3072, 4096, 8192),
    tiles: Sequence[tuple[int, int, int, int]] = ((128, 256, 8, 1), (64, 128, 16, 3)),
    gpus: Sequence[str] = ("T4", "A100", "H100"), default: tuple[int, int, int] = (3, 0, 2),
) -> Explorer:
    """Size of the matrices and of the tiles against the time that SMs have no work.

    Parameters
    ----------
    sizes : sequence of int
        M = N = K.
    tiles : sequence of (int, int, int, int)
        Rows and columns of C, the step of K, and blocks that an SM holds.
    gpus : sequence of str
        Keys of data sheets.
    default : (int, int, int)
        Positions shown first.
    """
    controls = [
        Control("M = N = K", [(f"{n:,}", n) for n in sizes], default=default[0], slider=True),
        Control("Tile", [(f"{m}×{n}, {style.plural(held, 'block')} an SM", (m, n, k, held))
                         for m, n, k, held in tiles], default=default[1]),
        Control("GPU", [(key, key) for key in gpus], default=default[2]),
    ]

    def frame(n: int, tile: tuple[int, int, int, int], key: str) -> Figure:
        rows, columns, step, held = tile
        deal = Deal(-(-n // rows) * -(-n // columns), -(-n // step), held * GPUS[key].sms)
        return waves_figure.draw(deal, what=f"{key}, n = {n:,}", per_sm=held)

    return explorer(controls, frame, "Waves of tiles, and equal shares")
