"""What a warp's cycles and an SM's issue slots go to, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lib.show.pipelines import Span, bars
from lib.show.scene import Drawing, Scene, column, key, row, words
from lib.show.words import percent


def waited(spans: Sequence[Span]) -> float:
    """Cycles of some spans in which the warp waits for global memory."""
    return sum(span.end - span.start for span in spans if span.kind == "wait")


def under(before: tuple[str, Sequence[Span]], after: tuple[str, Sequence[Span]], tiles: int,
          evidence: str) -> Scene:
    """07: one warp over some tiles, loads waited for and loads under the FMAs."""
    end = max(span.end for _, spans in (before, after) for span in spans)
    first, last = (waited(spans) / tiles for _, spans in (before, after))
    return Scene(f"The warp waits {last:.0f} cycles per tile for global memory, not {first:,.0f}",
                 column(bars([before, after], end, high=30),
                        key(("load", "asks for the next tile", False),
                            ("wait", "waits for it", False),
                            ("compute", "FMAs, and stores between", False),
                            ("barrier", "barrier", False))),
                 evidence,
                 f"one warp, {tiles} tiles, {end:,.0f} cycles; a second block shares the SM")


PARTS = (("compute", "FMA"), ("load", "other instructions"), ("wait", "empty"),
         ("barrier", "SM without work"))


def cells(shares: Mapping[str, float], count: int = 100) -> dict[str, int]:
    """Shares as whole cells of `count`, those with the largest remainders rounded up."""
    exact = {name: share * count for name, share in shares.items()}
    made = {name: int(value) for name, value in exact.items()}
    for name in sorted(exact, key=lambda one: made[one] - exact[one])[:count - sum(made.values())]:
        made[name] += 1
    return made


def _slots(name: str, shares: Mapping[str, float]) -> str:
    drawing, at = Drawing(162, 162), 0
    counted = cells(shares)
    for colour, part in PARTS:
        drawing.boxes([((i % 10) * 16, i // 10 * 16, 14, 14)
                       for i in range(at, at + counted[part])], colour)
        at += counted[part]
    return column(words(name, bold=True), drawing.html(),
                  words(f"{percent(shares['FMA'])} FMA, {percent(shares['empty'])} empty"))


def slots(before: tuple[str, Mapping[str, float]], after: tuple[str, Mapping[str, float]],
          evidence: str) -> Scene:
    """09: a hundred issue slots and what they hold; shares by the names of `PARTS`."""
    (_, old), (_, new) = before, after
    return Scene(f"Of 100 issue slots {100 * old['empty']:.0f} were empty, "
                 f"{100 * new['empty']:.0f} are",
                 row(_slots(*before), _slots(*after),
                     column(key(*((colour, part, False) for colour, part in PARTS[:2])),
                            key(*((colour, part, False) for colour, part in PARTS[2:])))),
                 evidence, "a box is one of 100 issue slots")
