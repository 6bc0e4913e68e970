"""What crosses DRAM when more than a product is wanted of C."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, words

_SUM, _ROUNDED = 4, 2  # bytes of a sum, and of an element of the layer's C


def crossings(rows: int, columns: int) -> tuple[tuple[int, int, int], int]:
    """Bytes of C: written, read and written by two kernels, and written by one."""
    elements = rows * columns
    return (_SUM * elements, _SUM * elements, _ROUNDED * elements), _ROUNDED * elements


def second_pass(rows: int = 4096, columns: int = 16384) -> Scene:
    """25: an epilogue as a kernel of its own, and on sums that are still in registers."""
    apart, fused = crossings(rows, columns)
    two, one = Drawing(345, 132), Drawing(345, 132)
    arrows = ((60.0, "out"), (148.0, "in"), (272.0, "out"))
    _kernel(two, 2, "product", "sums")
    _kernel(two, 132, "second kernel", "bias, GELU", 211)
    _kernel(one, 2, "one kernel", "sums, then bias, GELU", 341)
    for drawing in (two, one):
        drawing.filled((2, 104, 341, 26), "DRAM", "load", pale=True, framed=True)
    for (x, way), size in zip(arrows, apart, strict=True):
        _crossing(two, x, way, size)
    _crossing(one, *arrows[-1], fused)
    return Scene(f"{sum(apart) / 1e6:,.0f} MB of C cross DRAM for a second kernel, "
                 f"{fused / 1e6:,.0f} where the epilogue is done on the sums",
                 column(words("apart: C goes out, comes back, and goes out again", bold=True),
                        two.html(), words("fused: C goes out once", bold=True), one.html()),
                 "modelled: bytes of C", f"C of {rows:,}×{columns:,}: sums FP32, C BF16")


def _kernel(drawing: Drawing, left: float, name: str, does: str, wide: float = 118) -> None:
    drawing.text(left, 12, name, bold=True)
    drawing.filled((left, 18, wide, 30), does, "compute")


def _crossing(drawing: Drawing, x: float, way: str, size: int) -> None:
    ends = ((x, 51), (x, 101))
    drawing.arrow(*(ends if way == "out" else ends[::-1]), "store" if way == "out" else "load")
    drawing.text(x + 8, 80, f"{size / 1e6:,.0f} MB")
