"""Where sums are kept while K goes by, and how many bits of them."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene


def promoted(interval: int = 128, bits: int = 14, whole: int = 24, parts: int = 4) -> Scene:
    """26: short sums of the tensor cores, which are scaled and added up in FP32."""
    drawing, names = Drawing(345, 170), 66.0
    each = (345 - names) / parts
    for part in range(parts):
        left = names + part * each
        boxes = [(left, top, each - 7, 26.0) for top in (1, 58)]
        drawing.filled(boxes[0], f"{interval} of K", "load")
        drawing.filled(boxes[1], f"{bits} bits", "compute")
        middle = left + (each - 7) / 2
        drawing.arrow((middle, 29), (middle, 56)).arrow((middle, 86), (middle, 136))
        drawing.text(middle - 4, 116, "× scales", "end")
    for top, name in ((18, "bytes"), (75, "WGMMA"), (158, "FFMA")):
        drawing.text(0, top, name, bold=True)
    total = (names, 139.0, 345 - names - 7, 30.0)
    drawing.filled(total, f"sum in FP32: {whole} bits", "focus")
    return Scene(f"Tensor cores add up {interval} of K in {bits} bits; scaled, that is added to a "
                 "sum in FP32", drawing.html(), "modelled: the order of the source",
                 "of one element of C")
