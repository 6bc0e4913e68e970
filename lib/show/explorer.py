"""Controls of a page, a script that draws for them, and the tables that it draws from."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.display import HTML, display

from lib.ptx.files import text_of
from lib.show.scene import Scene


@dataclass(frozen=True)
class Control:
    """One thing a reader can change, by a row of buttons.

    Attributes
    ----------
    label : str
        What it is; shown beside it, and read out by a screen reader.
    options : sequence of (str, object)
        What the reader sees, and what the script gets.
    default : int
        Index of the option shown first.
    """

    label: str
    options: Sequence[tuple[str, object]]
    default: int = 0

    @classmethod
    def of(cls, label: str, values: Iterable[Any], default: int = 0) -> Control:
        """Return a control whose options are values, named as they are written."""
        return cls(label, [(str(value), value) for value in values], default)

    def page(self, group: str) -> str:
        """Return the control as HTML; no other control of the page has the group's name."""
        buttons = "".join(
            f'<label><input type="radio" name="{group}" value="{place}" autocomplete="off"'
            f'{" checked" if place == self.default else ""}><span>{html.escape(name)}</span>'
            "</label>"
            for place, (name, _) in enumerate(self.options)
        )
        return (f'<fieldset class="explorer-control"><legend>{html.escape(self.label)}</legend>'
                f"{buttons}</fieldset>")


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
