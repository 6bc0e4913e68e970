"""The executed chapters, kept under `_build/executed` until something that they depend on changes.

Each lies beside a file that says what its outputs depend on: its code, the environment, and each
module and file of the repository that was used when it was executed. So a change to the code of a
figure executes again the chapters that draw it, and a change to words executes none.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from book import checks, execution, record_pages
from lib.ptx.files import bytes_of, text_of, write_whole

# A file that is put here may be read by any chapter: a record of a kernel, a header. (A version's
# own source is read by those that name it.)
NAMES = ("cuda/*/**/*.cu", "cuda/**/*.cuh", "results/**/*.json")
# Entries of versions that were begun: the catalogue loads all, a chapter depends on its own.
OWN = "lib/kernels/own/"
PACKAGES = ("cupy", "numpy", "matplotlib", "ipython", "ipywidgets", "ml-dtypes", "nvidia-")
GONE = "no such file"


class ExecutionFailed(RuntimeError):
    """A cell of a chapter failed. The message says which, and how."""


def gpus() -> bytes:
    """The GPUs that chapters would measure on, as the driver lists them; nothing without one."""
    if not shutil.which("nvidia-smi"):
        return b""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False)
    return listed.stdout + os.environ.get("CUDA_VISIBLE_DEVICES", "all").encode()


def folder(root: Path) -> Path:
    """Where the executed chapters lie."""
    return root / "_build" / "executed"


def place(root: Path, name: str) -> Path:
    """The executed notebook of a document, such as ``chapters/01_naive``."""
    return folder(root) / f"{name}.ipynb"


def chapters(root: Path) -> list[str]:
    """The documents of the book that are notebooks, and the versions' record pages."""
    listed = [name for name in checks.listed(root) if (root / f"{name}.ipynb").is_file()]
    return [*listed, *record_pages.names(root)]


def bring_up_to_date(root: Path, names: Iterable[str] | None = None) -> list[str]:
    """Execute the chapters whose code, or what that depends on, has changed since the last time.

    As many run at once as CPUs are here; one at a time on a machine with a GPU, which they time.

    Parameters
    ----------
    root : Path
        The repository.
    names : iterable of str, optional
        All notebooks of the book if not given; what is kept of removed ones is removed then.

    Returns
    -------
    list of str
        The chapters that were executed.

    Raises
    ------
    ExecutionFailed
        Where a cell fails. The other chapters are executed and kept, if none of those with new
        cells of their own fails: they come first.
    """
    if names is None:
        names = chapters(root)
        _forget_others(root, names)
    on_gpu = gpus()
    surroundings = environment(root, on_gpu)
    stale = [name for name in names if not _is_fresh(root, name, surroundings)]
    # The longest first, so that none is left alone on one CPU at the end; but before all others
    # those whose own cells are new, so that a mistake in them is told at once.
    stale.sort(key=lambda name: -_seconds(root, name))
    edited = [name for name in stale if not _has_known_code(root, name)]
    for some in (edited, [name for name in stale if name not in edited]):
        if some:
            _execute(root, some, surroundings, on_gpu)
    return stale


def _execute(root: Path, stale: list[str], surroundings: str, on_gpu: bytes) -> None:
    """Execute some chapters and keep them.

    Raises
    ------
    ExecutionFailed
        Where a cell fails, when all of them are done.
    """
    settings = yaml.safe_load(text_of(root / "_config.yml"))["execute"]
    env = {**os.environ, **({} if on_gpu else {"CUDA_VISIBLE_DEVICES": ""})}
    names = {root / f"{name}.ipynb": name for name in stale}
    began = time.time_ns()
    failed = []
    workers = 1 if on_gpu else execution.cpus()
    for path, done in execution.execute(
        names, timeout=settings["timeout"], workers=workers, root=root, env=env,
        kernels=[Path(name).name for name in stale],
    ):
        if done.error:
            failed.append(f"{names[path]}: {done.error}")
        else:
            _keep(root, names[path], done, surroundings, began)
    if failed:
        raise ExecutionFailed("\n\n".join(failed))


def _keep(root: Path, name: str, done: execution.Executed, surroundings: str, began: int) -> None:
    """Keep an executed chapter with what it depends on."""
    stored, note = place(root, name), _note(root, name)
    stored.parent.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)
    write_whole(stored, nbformat.writes(done.notebook).encode())
    write_whole(note, json.dumps({
        "code": code_digest(done.notebook), "environment": surroundings,
        "files": {file: _digest_since(root / file, began) for file in _expand(root, done.used)
                  if not file.startswith(OWN) or Path(file).stem == Path(name).name},
        "work": done.work, "seconds": round(done.seconds, 2),
    }, indent=1).encode())


def merged(root: Path, name: str, text: str) -> NotebookNode:
    """The notebook `text` with the outputs of its executed cells.

    Parameters
    ----------
    root : Path
        The repository.
    name : str
        The document.
    text : str
        The chapter as it is committed; its prose may be newer than the execution.

    Raises
    ------
    ExecutionFailed
        If the code is not that which was executed.
    """
    notebook = nbformat.reads(text, as_version=4)
    stored = place(root, name)
    executed = nbformat.reads(text_of(stored), as_version=4) if stored.is_file() else None
    if executed is None or code_digest(executed) != code_digest(notebook):
        raise ExecutionFailed(f"{name} is not executed as it is; run `make book`")
    notebook.metadata.language_info = executed.metadata.language_info
    outputs = iter(_code(executed))
    for cell in _code(notebook):
        done = next(outputs)
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    return notebook


def work(root: Path, name: str) -> dict[str, int]:
    """How much work a chapter was when it was executed: a number for each kind."""
    return _known(root, name)["work"]


def used(root: Path, name: str) -> list[str]:
    """The files of the repository that a chapter's outputs depend on."""
    return list(_known(root, name)["files"])


def code_digest(notebook: NotebookNode) -> str:
    """Digest of a notebook's code cells."""
    return _digest(json.dumps([cell.source for cell in _code(notebook)]).encode())


def environment(root: Path, on_gpu: bytes = b"") -> str:
    """Digest of what all chapters depend on: Python, packages, GPUs, which files there are."""
    packages = sorted({
        f"{distribution.metadata['Name']}=={distribution.version}"
        for distribution in importlib.metadata.distributions()
        if (distribution.metadata["Name"] or "").lower().startswith(PACKAGES)
    })
    names = sorted(str(path.relative_to(root)) for pattern in NAMES for path in root.glob(pattern))
    own = [text_of(Path(module))
           for module in (execution.__file__, Path(__file__).with_name("cells.py"))]
    parts = [platform.python_version(), packages, names, own, on_gpu.decode(errors="replace")]
    return _digest(json.dumps(parts).encode())


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _note(root: Path, name: str) -> Path:
    """The file that says what an executed chapter depends on."""
    return place(root, name).with_suffix(".json")


def _known(root: Path, name: str) -> dict[str, Any]:
    return json.loads(text_of(_note(root, name)))


def _is_fresh(root: Path, name: str, surroundings: str) -> bool:
    try:
        known = _known(root, name)
        notebook = nbformat.reads(text_of(root / f"{name}.ipynb"), as_version=4)
    except FileNotFoundError:
        return False
    return (
        place(root, name).is_file() and known["environment"] == surroundings
        and known["code"] == code_digest(notebook)
        and all(_digest_of(root / file) == digest for file, digest in known["files"].items())
    )


def _has_known_code(root: Path, name: str) -> bool:
    """Whether the chapter's cells are those that were executed the last time."""
    try:
        known = _known(root, name)
    except FileNotFoundError:
        return False
    notebook = nbformat.reads(text_of(root / f"{name}.ipynb"), as_version=4)
    return known["code"] == code_digest(notebook)


def _seconds(root: Path, name: str) -> float:
    """What a chapter took the last time; where that isn't known, a guess by its size."""
    try:
        return _known(root, name)["seconds"]
    except FileNotFoundError:
        return (root / f"{name}.ipynb").stat().st_size / 2000


def _expand(root: Path, files: list[str]) -> list[str]:
    """The files that a chapter used; all that it may have used if it started another Python."""
    if "*" not in files:
        return files
    every = [str(path.relative_to(root)) for pattern in ("lib/**/*.py", "cuda/*.cu", *NAMES)
             for path in root.glob(pattern)]
    return sorted({*every, *files} - {"*"})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _digest_of(path: Path) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return GONE
    return _digest_at(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest_at(path: Path, size: int, mtime_ns: int) -> str:
    """The digest of a file, read once as long as it stays: chapters share most of them."""
    return _digest(bytes_of(path))


def _digest_since(path: Path, began_ns: int) -> str:
    """`_digest_of`, or a word that fits no file where the file may have changed meanwhile."""
    if path.is_file() and path.stat().st_mtime_ns >= began_ns:
        return "changed while the chapter ran"
    return _digest_of(path)


def _forget_others(root: Path, names: Iterable[str]) -> None:
    """Remove what is kept of chapters that are no longer in the book."""
    wanted = {place(root, name) for name in names} | {_note(root, name) for name in names}
    for file in folder(root).rglob("*"):
        if file.is_file() and file not in wanted:
            file.unlink()
