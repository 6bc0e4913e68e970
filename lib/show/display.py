"""How anything reaches a page: a figure, Markdown, a table with its kind of evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, cast

from lib.records.store import NotRecorded
from lib.show.markdown import markdown
from lib.show.scene import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")

# Who collects figures in place of a page that shows them.
_collecting: ContextVar[list[Figure | Scene] | None] = ContextVar("collecting", default=None)


@contextmanager
def collected() -> Iterator[list[Figure | Scene]]:
    """Collect what `show` is given within, in its wide layout; the page shows nothing of it."""
    figures: list[Figure | Scene] = []
    token = _collecting.set(figures)
    try:
        yield figures
    finally:
        _collecting.reset(token)


def show(figure: Figure | Scene, narrow: Figure | None = None) -> None:
    """Display a scene, or a finished figure as inline SVG, in the page's own ink.

    Parameters
    ----------
    figure : Figure or Scene
    narrow : Figure, optional
        The same in a layout for phones (`lib.show.chart.NARROW`), which takes its place there.
    """
    from IPython import get_ipython
    from IPython.display import HTML, display

    figures = _collecting.get()
    if figures is not None:
        figures.append(figure)
        return
    if isinstance(figure, Scene):
        # A page has the style sheet; where a kernel answers, each scene brings it along.
        sys.audit("gemm.figures drawn", 1)
        live = hasattr(get_ipython(), "kernel")
        display({"text/html": figure._repr_html_() if live else figure.html(),
                 "text/plain": repr(figure)}, raw=True)
        return
    from lib.show import html  # with Matplotlib, which a page of scenes does without

    display(HTML(html.svg(figure, narrow)))


def both(draw: Callable[P, Figure], *args: P.args, **options: P.kwargs) -> None:
    """Display a chart and its layout for phones: what `draw` makes of these arguments."""
    narrow = cast("Callable[..., Figure]", draw)
    show(draw(*args, **options), narrow(*args, **options, narrow=True))


def note(text: str) -> None:
    """Display Markdown: how numbers reach a page."""
    from IPython.display import Markdown, display

    display(Markdown(text))


def folded(summary: str, *parts: str) -> None:
    """Display Markdown under a line that unfolds it."""
    text = "\n\n".join(parts)
    note(f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>")


def table(head: Sequence[str], rows: Sequence[Sequence[object]], evidence: str) -> None:
    """Display a table with its kind of evidence under it."""
    note(f"{markdown(head, rows)}\n\n*{evidence}*")


@contextmanager
def once_recorded() -> Iterator[None]:
    """Display what a record is needed for, or, where there is none yet, which command makes it."""
    try:
        yield
    except NotRecorded as missing:
        note(f"*Not recorded yet: {missing}, on a machine with a GPU.*")
