"""Controls over a stack of frames: how every explorer works, with a kernel or without one.

Every frame is drawn when the book is built and sits in a ``Stack``; a control's ``index`` is linked
to the stack's ``selected_index`` in the reader's browser, one level of stacks for each control. So
nothing is computed while the reader moves a control, and a static page needs no kernel. A reader
who blocks scripts sees the first frame as a plain image.

Google Colab keeps to ipywidgets 7, whose front end has no ``Stack``. There is always a kernel
there, so it draws a frame when a control asks for it: `LiveExplorer`.
"""

from __future__ import annotations

import html as html_text
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ipywidgets as widgets
from IPython.display import HTML, display
from matplotlib.figure import Figure

from lib.plotting import html


@dataclass(frozen=True)
class Control:
    """One thing a reader can change.

    Attributes
    ----------
    label : str
        What it is; shown beside it, and read out by a screen reader.
    options : sequence of (str, object)
        What the reader sees, and what the frame function gets.
    default : int
        Index of the option shown first.
    slider : bool
        A slider instead of a row of buttons: for options that are a scale.
    """

    label: str
    options: Sequence[tuple[str, object]]
    default: int = 0
    slider: bool = False

    def widget(self) -> widgets.Widget:
        """Return the control as a widget with an ``index``."""
        names = [(name, position) for position, (name, _) in enumerate(self.options)]
        made = (widgets.SelectionSlider if self.slider else widgets.ToggleButtons)(
            options=names,
            index=self.default,
            description=self.label,
            style={"description_width": "initial"},
            layout={"width": "100%", "max_width": "30em"},
        )
        if not self.slider:
            made.style.button_width = "auto"
        return made


@dataclass(frozen=True)
class Explorer:
    """Controls over a stack of frames, ready to be the last value of a cell.

    Attributes
    ----------
    label : str
        What the whole is called.
    controls : tuple of Widget
    stack : Stack
        Nested one level a control.
    links : tuple of Link
        From a control's index to the stacks that it chooses in.
    fallback : str
        The first frame as an ``<img>``.
    frames : tuple of str
        All frames as HTML, the last control changing fastest.
    """

    label: str
    controls: tuple[widgets.Widget, ...]
    stack: widgets.Stack
    links: tuple[widgets.Widget, ...]
    fallback: str
    frames: tuple[str, ...]

    @property
    def widget(self) -> widgets.Widget:
        """Controls and frames in one box."""
        return widgets.VBox([*self.controls, self.stack])

    def noscript(self) -> str:
        """The first frame for readers without scripts, who see no widget.

        The page's script takes the explorer's name from it, for screen readers.
        """
        label = html_text.escape(self.label)
        return (
            f'<noscript data-explorer="{label}"><p>{label}: the controls need scripts; this is '
            f"their first position.</p>{self.fallback}</noscript>"
        )

    def _ipython_display_(self) -> None:
        display(HTML(self.noscript()), self.widget)


class LiveExplorer:
    """Controls over one frame that the kernel draws: where ipywidgets has no ``Stack``.

    Attributes
    ----------
    label : str
        What the whole is called.
    controls : tuple of Widget
    shown : widgets.HTML
        The frame at the controls' positions.
    """

    def __init__(
        self, controls: Sequence[Control], frame: Callable[..., Figure], label: str
    ) -> None:
        self.label = label
        self.controls = tuple(control.widget() for control in controls)
        self.shown = widgets.HTML(layout={"width": "100%", "margin": "0"})
        self._options = tuple(control.options for control in controls)
        self._frame = frame
        self._frames: dict[tuple[int, ...], str] = {}
        for control in self.controls:
            control.observe(self._show, "index")
        self._show()

    @property
    def widget(self) -> widgets.Widget:
        """Controls and frame in one box."""
        return widgets.VBox([*self.controls, self.shown])

    def _show(self, _: object = None) -> None:
        """Show the frame at the controls' positions, drawn when it is first asked for."""
        at = tuple(control.index for control in self.controls)
        if at not in self._frames:
            values = (options[i][1] for options, i in zip(self._options, at, strict=True))
            self._frames[at] = html.svg(self._frame(*values))
        self.shown.value = self._frames[at]

    def _ipython_display_(self) -> None:
        display(self.widget)


def explorer(
    controls: Sequence[Control], frame: Callable[..., Figure], label: str
) -> Explorer | LiveExplorer:
    """Draw a frame for every combination of options, and link the controls to them.

    Where ipywidgets has no ``Stack`` the frames are drawn one by one, as they are asked for.

    Parameters
    ----------
    controls : sequence of Control
        Their options multiply: keep the product under about fifty.
    frame : callable
        Takes one value of each control, in order; returns a finished figure.
    label : str
        What the explorer is called.
    """
    if not hasattr(widgets, "Stack"):
        return LiveExplorer(controls, frame, label)
    made = tuple(control.widget() for control in controls)
    links: list[widgets.Widget] = []
    frames: list[str] = []
    fallback = ""

    def level(depth: int, values: tuple[object, ...], first: bool) -> widgets.Widget:
        nonlocal fallback
        if depth == len(controls):
            figure = frame(*values)
            frames.append(html.svg(figure))
            if first:
                fallback = html.image(figure)
            return widgets.HTML(frames[-1], layout={"width": "100%", "margin": "0"})
        control = controls[depth]
        children = [
            level(depth + 1, (*values, value), first and place == control.default)
            for place, (_, value) in enumerate(control.options)
        ]
        stack = widgets.Stack(children, selected_index=control.default, layout={"width": "100%"})
        links.append(widgets.jslink((made[depth], "index"), (stack, "selected_index")))
        return stack

    stack = level(0, (), True)
    return Explorer(label, made, stack, tuple(links), fallback, tuple(frames))
