"""How does a load of four floats along k become one along the rows? By four stores in between."""

from __future__ import annotations

from collections.abc import Sequence

from lib.plotting.display import show
from lib.show.scene import Grid, Scene, column, row, words

_CELL, _CELLS = (15.0, 15.0), 8  # px, of the tile that is drawn


def draw(width: int = 4, at_row: int = 2, k: int = 0, *,
         evidence: str = "modelled: the indices of 06") -> Scene:
    """Draw a vector of A on its way: loaded from a row, stored down a column, read as a row."""
    loaded = [(at_row, k + i) for i in range(width)]
    return Scene(
        f"A vector of {width} is stored in {width} pieces, so that {width} rows can be loaded at "
        "once", row(
            _step("A, in global memory", ("row", "k"), loaded, True,
                  f"1 load of {width}: a row of A lies along k"),
            _step("As, in shared memory", ("k", "row"), [(place, at) for at, place in loaded], True,
                  f"{width} stores of 1: As[k + i][row] = a[i]"),
            _step("As, for one k", ("k", "row"),
                  [(k, at_row // width * width + i) for i in range(width)], False,
                  f"1 load of {width}: neighbouring rows")), evidence)


def shown() -> None:
    """Display it."""
    show(draw())


def _step(name: str, sides: tuple[str, str], filled: Sequence[tuple[int, int]], named: bool,
          text: str) -> str:
    down, across = sides
    grid = Grid(_CELLS, _CELLS, _CELL, across={1: f"{across} →"}, down={0: f"{down} ↓"}, left=42)
    grid.boxes([grid.box(0, 0, _CELLS, _CELLS)], "load", pale=True)
    grid.boxes([grid.box(*place) for place in filled], "load").ruled()
    for number, place in enumerate(filled if named else ()):
        grid.label(grid.box(*place), number, over="load")
    return column(words(name, bold=True), grid.html(), words(text), width=210)
