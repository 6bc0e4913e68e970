"""Who signals whom through a ring, and who holds the registers."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, row, words


def ring(stage_bytes: int, stages: int) -> Scene:
    """18: the two mbarriers of each stage, and everyone who arrives or waits at them."""
    drawing = Drawing(345, 232)
    asks, freed = (0.0, 20.0, 100.0, 44.0), (0.0, 100.0, 100.0, 40.0)
    tma, filled = (217.0, 20.0, 128.0, 44.0), (217.0, 100.0, 128.0, 40.0)
    groups = (217.0, 176.0, 128.0, 44.0)
    stage = (115.0, 92.0, 88.0, 56.0)
    for box, text in ((asks, "thread 0"), (tma, "TMA"), (groups, "2 warpgroups")):
        drawing.frames([box])
        drawing.label(box, text, bold=True)
    for box, text in ((filled, "filled[s]\n1 arrival, bytes"), (freed, "freed[s]\n2 arrivals")):
        drawing.filled(box, text, "barrier")
    drawing.filled(stage, f"stage s\n{stage_bytes // 1024} KiB", "load", pale=True, framed=True)
    drawing.arrow((102, 42), (214, 42)).text(158, 36, "1 announce, ask", "middle")
    drawing.arrow((281, 66), (281, 97), "load").text(276, 86, "2 bytes land", "end")
    drawing.arrow((281, 142), (281, 173), "compute").text(276, 164, "3 opens: go", "end")
    drawing.lines([((214, 198), (50, 198))], "compute")
    drawing.arrow((50, 198), (50, 143), "compute").text(132, 214, "4 multiplied: arrive", "middle")
    drawing.arrow((50, 97), (50, 67)).text(56, 86, "5 opens")
    return Scene("Bytes open filled, products open freed: no thread waits for the whole block",
                 drawing.html(), "modelled: the order of the source",
                 f"one of {stages} stages; each has its own two mbarriers")


def registers(equal: int, producer: int, consumer: int) -> dict[str, tuple[int, int, int]]:
    """Registers per thread of three warpgroups before and after setmaxnreg, of one budget.

    Raises
    ------
    ValueError
        If more are taken than there are.
    """
    if producer + 2 * consumer > 3 * equal:
        raise ValueError(f"{producer} + 2 · {consumer} registers are more than 3 · {equal}")
    return {"as launched": (equal, equal, equal),
            "after setmaxnreg": (producer, consumer, consumer)}


def roles(equal: int, producer: int, consumer: int) -> Scene:
    """19: one warpgroup loads, two multiply, and registers go where sums are."""
    pieces = []
    for name, counts in registers(equal, producer, consumer).items():
        drawing = Drawing(168, 138)
        for place, count in enumerate(counts):
            high = count / 2
            box = (place * 57.0, 118 - high, 51.0, high)
            drawing.filled(box, count, "compute" if place else "load")
            drawing.text(box[0] + 25, 133, "loads" if place == 0 else "multiply", "middle")
        pieces.append(column(words(name, bold=True), drawing.html()))
    return Scene(f"The producer gives its registers to those that multiply: {equal} each become "
                 f"{producer} and {consumer}", row(*pieces), "modelled: from the source",
                 "registers per thread of three warpgroups")
