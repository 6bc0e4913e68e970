"""The cells of a notebook, run in IPython's own shell within this process.

What a kernel would send to a page is kept as the notebook's outputs.
"""

from __future__ import annotations

import base64
import io
import platform
import re
import signal
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode
from nbformat.v4 import new_output
from traitlets import Type
from traitlets.config import Config

# What a kernel of IPython says of itself; the pages' highlighting is chosen by it.
LANGUAGE = {
    "name": "python", "version": platform.python_version(), "mimetype": "text/x-python",
    "codemirror_mode": {"name": "ipython", "version": 3}, "pygments_lexer": "ipython3",
    "nbconvert_exporter": "python", "file_extension": ".py",
}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CellTimeout(Exception):
    """A cell took longer than it may."""


class _Publisher(DisplayPublisher):
    """Keeps what is displayed."""

    def publish(self, data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, *,
                update: bool = False, **others: Any) -> None:
        if update:
            raise NotImplementedError("a page shows what is displayed first: nothing updates it")
        self.shell.outputs.add(new_output("display_data", data=_text(data),
                                          metadata=metadata or {}))

    def clear_output(self, wait: bool = False) -> None:
        raise NotImplementedError("a page shows all that a cell writes: nothing clears it")


class _Hook(DisplayHook):
    """Keeps the value of a cell's last line."""

    def start_displayhook(self) -> None:
        """Nothing is printed before the value."""

    def write_output_prompt(self) -> None:
        """No prompt is printed."""

    def write_format_data(self, format_dict: Mapping[str, Any],
                          md_dict: Mapping[str, Any] | None = None) -> None:
        self.shell.outputs.add(new_output(
            "execute_result", data=_text(format_dict), metadata=md_dict or {},
            execution_count=self.shell.outputs.count,
        ))

    def finish_displayhook(self) -> None:
        """Nothing is printed after it."""


class _Shell(InteractiveShell):
    """IPython's shell, with outputs kept in place of printed."""

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)
    outputs: Outputs

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.outputs.add(new_output("error", ename=etype.__name__, evalue=str(evalue),
                                    traceback=stb))


class Outputs:
    """The outputs of the cell that runs."""

    def __init__(self) -> None:
        self.cell: list[NotebookNode] = []
        self.count = 0

    def begin(self) -> list[NotebookNode]:
        """Begin a cell: its list of outputs, which is filled while it runs."""
        self.cell = []
        self.count += 1
        return self.cell

    def add(self, output: NotebookNode) -> None:
        """Add an output; a stream goes on where the last one was of it."""
        last = self.cell[-1] if self.cell else None
        if last and last.output_type == output.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            self.cell.append(output)


class _Stream(io.TextIOBase):
    """Standard output or standard error of a cell."""

    encoding = "utf-8"

    def __init__(self, name: str, outputs: Outputs) -> None:
        self._name, self._outputs = name, outputs

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._outputs.add(new_output("stream", name=self._name, text=text))
        return len(text)


def run(notebook: NotebookNode, timeout: float) -> str:
    """Run the code cells of a notebook until one fails; put the outputs into it.

    A process can run one notebook only: modules are of the process.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    timeout : float
        Seconds that a cell may take.

    Returns
    -------
    str
        Empty, or which cell failed and how.
    """
    config = Config()
    config.HistoryManager.enabled = False
    shell = _Shell.instance(config=config)
    shell.outputs = outputs = Outputs()
    signal.signal(signal.SIGALRM, _too_long)
    failed = ""
    with redirect_stdout(_Stream("stdout", outputs)), redirect_stderr(_Stream("stderr", outputs)):
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for cell in code:
            cell.outputs, cell.execution_count = [], None
        for cell in code:
            if not cell.source.strip():
                continue
            cell.outputs = outputs.begin()
            cell.execution_count = outputs.count
            signal.setitimer(signal.ITIMER_REAL, timeout)
            try:
                well = shell.run_cell(cell.source, store_history=True).success
            except CellTimeout:  # while the shell itself was at work
                well = False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if not well:
                failed = _described(cell, timeout)
                break
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = LANGUAGE
    return failed


def _too_long(*_: object) -> None:
    raise CellTimeout


def _described(cell: NotebookNode, timeout: float) -> str:
    """What is said of a cell that failed."""
    error = next((output for output in cell.outputs if output.output_type == "error"), None)
    what = f"cell {cell.get('id', cell.execution_count)}:\n{cell.source}\n"
    if error is None or error.ename == CellTimeout.__name__:
        return f"{what}\nA cell may take {timeout:g} s; this one took longer."
    return what + "\n" + _COLOURS.sub("", "\n".join(error.traceback))


def _text(data: Mapping[str, Any]) -> dict[str, Any]:
    """A bundle of MIME types whose binary parts are base64, as in a notebook."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for kind, value in data.items()
    }
