"""Controls over frames: how every explorer works, with a kernel or without one.

Where a kernel answers, in Jupyter and on Colab, an explorer is widgets, and a frame is drawn when a
control asks for it. A built page has no kernel: there all frames are drawn when the book is built
and lie in the page as text, of which the page's script shows the one that the controls stand at. A
reader who blocks scripts sees the first.
"""

from __future__ import annotations

import html
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import HTML, display

from lib.ptx.files import text_of
from lib.show.scene import Scene, sheet

_numbers = itertools.count(1)


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

    @classmethod
    def of(cls, label: str, values: Iterable[Any], default: int = 0,
           form: Callable[[Any], str] = str, slider: bool = False) -> Control:
        """Return a control whose options are values, named as `form` writes them."""
        return cls(label, [(form(value), value) for value in values], default, slider)

    @property
    def names(self) -> list[str]:
        """What the reader sees of the options."""
        return [name for name, _ in self.options]

    def widget(self) -> widgets.Widget:
        """Return the control as a widget with an ``index``."""
        made = (widgets.SelectionSlider if self.slider else widgets.ToggleButtons)(
            options=[(name, position) for position, name in enumerate(self.names)],
            index=self.default,
            description=self.label,
            style={"description_width": "initial"},
            layout={"width": "100%", "max_width": "30em"},
        )
        if not self.slider:
            made.style.button_width = "auto"
        return made

    def page(self, group: str) -> str:
        """Return the control as HTML.

        Parameters
        ----------
        group : str
            A name that no other control of the page has.
        """
        label = html.escape(self.label)
        if self.slider:
            names = html.escape(json.dumps(self.names, ensure_ascii=False))
            now = html.escape(self.names[self.default])
            return (
                f'<label class="explorer-control" data-options="{len(self.options)}">'
                f"<span>{label}</span> <output>{now}</output>"
                f'<input type="range" min="0" max="{len(self.options) - 1}" '
                f'value="{self.default}" aria-label="{label}" aria-valuetext="{now}" '
                f'autocomplete="off" data-names="{names}"></label>'
            )
        buttons = "".join(
            f'<label><input type="radio" name="{group}" value="{place}" autocomplete="off"'
            f'{" checked" if place == self.default else ""}><span>{html.escape(name)}</span>'
            "</label>"
            for place, name in enumerate(self.names)
        )
        return (
            f'<fieldset class="explorer-control" data-options="{len(self.options)}">'
            f"<legend>{label}</legend>{buttons}</fieldset>"
        )


def thousands(number: int) -> str:
    """How an option writes a number."""
    return f"{number:,}"


class Explorer:
    """Controls over frames, ready to be the last value of a cell.

    Parameters
    ----------
    controls : sequence of Control
        Their options multiply: keep the product under about fifty.
    frame : callable
        Takes one value of each control, in order, and returns a scene.
    label : str
        What the explorer is called.
    """

    def __init__(
        self, controls: Sequence[Control], frame: Callable[..., Scene], label: str
    ) -> None:
        self.label = label
        self.controls = tuple(controls)
        self._frame = frame
        self._drawn: dict[tuple[int, ...], str] = {}

    @property
    def default(self) -> tuple[int, ...]:
        """The positions of the controls that are shown first."""
        return tuple(control.default for control in self.controls)

    def at(self, *positions: int) -> str:
        """Return the frame at some positions of the controls as HTML, drawn when first asked for.

        Raises
        ------
        ValueError
            If there are more or fewer positions than controls.
        IndexError
            If a control has no such position.
        """
        if positions not in self._drawn:
            values = [control.options[place][1]
                      for control, place in zip(self.controls, positions, strict=True)]
            self._drawn[positions] = self._frame(*values).html()
        return self._drawn[positions]

    @property
    def frames(self) -> tuple[str, ...]:
        """All frames as HTML, the last control changing fastest."""
        places = (range(len(control.options)) for control in self.controls)
        return tuple(self.at(*positions) for positions in itertools.product(*places))

    def page(self) -> str:
        """Return controls and frames as HTML for a page without a kernel.

        The frame that is shown first stands in the page; the others are text in a script, which
        costs a reader nothing until a control is moved.
        """
        number = next(_numbers)
        controls = "".join(control.page(f"explorer-{number}-{place}")
                           for place, control in enumerate(self.controls))
        first = self._index(self.default)
        others = [None if place == first else frame for place, frame in enumerate(self.frames)]
        # In a script "</" would end it.
        text = json.dumps(others, ensure_ascii=False).replace("</", "<\\/")
        return (
            f'<div class="explorer" role="group" aria-label="{html.escape(self.label)}">'
            f'<div class="explorer-controls" hidden>{controls}</div>'
            "<noscript><p>The controls of this figure need scripts; this is their first position."
            "</p></noscript>"
            f'<div class="explorer-frame" aria-live="polite">{self.at(*self.default)}</div>'
            f'<script type="application/json">{text}</script></div>'
        )

    def _index(self, positions: Sequence[int]) -> int:
        """Where the frame at some positions stands among `frames`."""
        sizes = [len(control.options) for control in self.controls]
        return sum(place * math.prod(sizes[depth + 1:]) for depth, place in enumerate(positions))

    @property
    def widget(self) -> widgets.Widget:
        """Controls and a frame in one box, moved by the kernel."""
        made = tuple(control.widget() for control in self.controls)
        shown = widgets.HTML(layout={"width": "100%", "margin": "0"})

        def show(_: object = None) -> None:
            frame = self.at(*(control.index for control in made))
            shown.value = f"<style>{sheet()}</style>{frame}"

        for control in made:
            control.observe(show, "index")
        show()
        return widgets.VBox([*made, shown])

    def _ipython_display_(self) -> None:
        # What runs cells for the book's pages is IPython's shell without a kernel around it.
        display(self.widget if hasattr(get_ipython(), "kernel") else HTML(self.page()))


_HERE = Path(__file__).parent


class Live:
    """Controls, a script that draws for them, and the tables that it draws from.

    Parameters
    ----------
    controls : sequence of Control
        The script finds them in this order, and the values of their options under ``options``.
    data : mapping
        What JSON can hold; the script gets it as ``data``.
    script : Path
        The body of a function of ``root``, ``data`` and ``tools`` (`live.js`).
    label : str
        What the explorer is called.
    still : Scene
        Of the first position.
    evidence : str
        What kind of evidence is shown, and by which rule.
    """

    def __init__(
        self, controls: Sequence[Control], data: Mapping[str, Any], script: Path, label: str,
        still: Scene, evidence: str,
    ) -> None:
        self.controls, self.data, self.label = tuple(controls), data, label
        self._script, self._still, self._evidence = script, still, evidence

    def page(self) -> str:
        """Return all of it as HTML that needs nothing else."""
        group = f"live-{self._script.parent.name}"
        controls = "".join(control.page(f"{group}-{place}")
                           for place, control in enumerate(self.controls))
        options = [[value for _, value in control.options] for control in self.controls]
        # In a script "</" would end it.
        text = json.dumps({**self.data, "options": options}, ensure_ascii=False,
                          separators=(",", ":")).replace("</", "<\\/")
        style, tools, script = (text_of(path) for path in (
            _HERE / "live.css", _HERE / "live.js", self._script))
        return (
            f'<div class="live" role="group" aria-label="{html.escape(self.label)}">'
            f"<style>{style}</style>"
            f'<div class="live-still">{self._still.html()}'
            "<noscript><p>The controls of this figure need scripts; this is their first position."
            "</p></noscript></div>"
            f'<div class="live-body" hidden><div class="live-controls">{controls}</div></div>'
            f'<p class="live-evidence">{html.escape(self._evidence)}</p>'
            f'<script type="application/json">{text}</script>'
            f"<script>{tools}(function (root, data, tools) {{{script}}});</script></div>"
        )

    def _ipython_display_(self) -> None:
        display(HTML(self.page()))
