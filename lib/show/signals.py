"""Who signals whom through a ring, and who holds the registers."""

from __future__ import annotations

from lib.show.scene import Drawing, Scene, column, row, words


def ring(stage_bytes: int, stages: int) -> Scene:
    """18: the two mbarriers of each stage, and everyone who arrives or waits at them."""
    drawing = Drawing(345, 232)
    asks, empty = (0.0, 20.0, 96.0, 44.0), (0.0, 100.0, 96.0, 38.0)
    tma, full = (236.0, 20.0, 104.0, 44.0), (236.0, 100.0, 104.0, 38.0)
    groups = (236.0, 176.0, 104.0, 44.0)
    stage = (122.0, 92.0, 88.0, 54.0)
    for box, text in ((asks, "thread 0"), (tma, "TMA"), (groups, "2 warpgroups")):
        drawing.frames([box])
        drawing.label(box, text, bold=True)
    for box, text in ((full, "full[s]"), (empty, "empty[s]")):
        drawing.boxes([box], "barrier")
        drawing.label(box, text, over="barrier", bold=True)
    drawing.boxes([stage], "load", pale=True)
    drawing.frames([stage])
    drawing.label(stage, f"stage s\n{stage_bytes // 1024} KiB")
    drawing.arrow((98, 42), (233, 42)).text(166, 36, "1 request", "middle")
    drawing.arrow((288, 66), (288, 97), "load").text(283, 86, "2 bytes land", "end")
    drawing.arrow((288, 140), (288, 173), "compute").text(283, 162, "3 go", "end")
    drawing.lines([((233, 198), (48, 198))], "compute")
    drawing.arrow((48, 198), (48, 141), "compute").text(140, 214, "4 multiplied: free", "middle")
    drawing.arrow((48, 97), (48, 67)).text(54, 86, "5 refill")
    return Scene("Bytes open full, products open empty: no thread waits for the whole block",
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


def roles(equal: int = 168, producer: int = 40, consumer: int = 232) -> Scene:
    """19: one warpgroup loads, two multiply, and registers go where sums are."""
    pieces = []
    for name, counts in registers(equal, producer, consumer).items():
        drawing = Drawing(168, 138)
        for place, count in enumerate(counts):
            high = count / 2
            box = (place * 57.0, 118 - high, 51.0, high)
            colour = "load" if place == 0 else "compute"
            drawing.boxes([box], colour)
            drawing.label(box, count, over=colour)
            drawing.text(box[0] + 25, 133, "loads" if place == 0 else "multiply", "middle")
        pieces.append(column(words(name, bold=True), drawing.html()))
    return Scene(f"The producer gives its registers to those that multiply: {equal} each become "
                 f"{producer} and {consumer}", row(*pieces), "modelled: from the source",
                 "registers per thread of three warpgroups")
