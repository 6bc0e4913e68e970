"""Every chapter's cells on a played Colab, in seconds: what they do without `lib`.

``python dry_run.py CHAPTERS CONTENT`` runs the cells of the notebooks in the folder CHAPTERS one
after the other, from the folder CONTENT in place of Colab's ``/content``, where their first cell
fetches the library. What they import from `lib` is a stand-in that takes every call, so nothing is
compiled, emulated or drawn; files that the cells open are opened, and folders that they hand on
must be there. Writes a JSON object: of each chapter, what it could not find.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell

OWN = ("lib", "book", "colab")


class Anything:
    """Takes every call, has every attribute and item, and is no number."""

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given: Any, **named: Any) -> Anything:
        for value in (*given, *named.values()):
            for one in value if isinstance(value, list | tuple) else [value]:
                _must_exist(one)
        return self

    def __getitem__(self, key: Any) -> Anything:
        return self

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Anything]:
        return iter(())

    def __bool__(self) -> bool:
        return False  # such as: is a GPU here?


def _must_exist(value: Any) -> None:
    """Raise FileNotFoundError for a path, or a folder of headers, that isn't there."""
    if isinstance(value, str) and value.startswith("-I"):
        value = Path(value.removeprefix("-I"))
    if isinstance(value, Path):
        value.stat()


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports an `Anything` for `lib` and whatever is in it."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        inside = name.partition(".")[0] == "lib"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if inside else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = Anything().__getattr__  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def dry_run(path: Path, content: Path) -> list[str]:
    """Run a chapter's cells; return what they could not find, a line each.

    A cell is run statement by statement: what a stand-in can't carry, arithmetic with a counter,
    ends its statement and not the chapter.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
        del sys.modules[name]
    os.chdir(content)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__",
                                 "get_ipython": InteractiveShell.instance}
    missing = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"]).replace("/content/", f"{content}/")
        source = TransformerManager().transform_cell(source)
        for statement in ast.parse(source).body:
            code = compile(ast.Module([statement], []), str(path), "exec")
            try:
                exec(code, namespace)
            except OSError as error:
                missing.append(f"{ast.unparse(statement).splitlines()[0]}: {error}")
            except (Exception, SystemExit) as error:
                if "colab-setup" in cell["metadata"].get("tags", []):
                    missing.append(f"the first cell: {error!r}")
    return missing


def main(chapters: Path, content: Path) -> None:
    """Run all notebooks of a folder."""
    for name in ("google", "google.colab"):
        sys.modules[name] = types.ModuleType(name)
    sys.meta_path.insert(0, StandIn())
    sys.path[0] = ""  # as in a kernel: the notebook's own folder
    with contextlib.redirect_stdout(io.StringIO()):
        found = {path.stem: dry_run(path, content) for path in sorted(chapters.glob("*.ipynb"))}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
