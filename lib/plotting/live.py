"""Explorers that draw from tables, for more positions than there can be frames.

What is shown is worked out from tables that Python made, by a script that comes with them: in the
same way on a built page, in Jupyter and on Colab, without a kernel and without a server. A reader
who blocks scripts sees a figure of the first position.
"""

from __future__ import annotations

import html as html_text
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.display import HTML, display

from lib.plotting.frames import Control
from lib.ptx.files import text_of
from lib.show.scene import Scene

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
            f'<div class="live" role="group" aria-label="{html_text.escape(self.label)}">'
            f"<style>{style}</style>"
            f'<div class="live-still">{self._still.html()}'
            "<noscript><p>The controls of this figure need scripts; this is their first position."
            "</p></noscript></div>"
            f'<div class="live-body" hidden><div class="live-controls">{controls}</div></div>'
            f'<p class="live-evidence">{html_text.escape(self._evidence)}</p>'
            f'<script type="application/json">{text}</script>'
            f"<script>{tools}(function (root, data, tools) {{{script}}});</script></div>"
        )

    def _ipython_display_(self) -> None:
        display(HTML(self.page()))
