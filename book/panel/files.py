"""What panels load: copies of the runtime, the emulator in an archive, a file for each chapter.

It imports `lib`, and so is loaded only where a book has chapters of kernels (`book.panel.pages`).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from book import runtime_files
from book.children import end_with_parent
from book.panel import controls, examples, own_page
from book.panel.bundler import bundle
from book.panel.exercises import linked  # noqa: F401 - `pages` loads `lib` through here
from book.runtime_files import entry, gzipped
from lib.kernels.catalogue import find
from lib.panel.bundle import loads
from lib.panel.session import Session
from lib.paths import CUDA, ROOT
from lib.ptx.files import bytes_of, text_of, write_whole

HERE = Path(__file__).parent
HOME = "/home/pyodide"  # where the worker unpacks the archive


def modules() -> list[Path]:
    """The files of `lib` that the worker loads, asked of a Python that loads them."""
    program = ("import sys; sys.path.insert(0, sys.argv[1]); "
               "import lib.panel.trial, lib.panel.session; "
               "print(*(m.__file__ for n, m in sorted(sys.modules.items()) "
               "if n.split('.')[0] == 'lib'), sep='\\n')")
    found = subprocess.run([sys.executable, "-c", program, str(ROOT)], capture_output=True,
                           text=True, check=True, cwd=ROOT)
    return [Path(line) for line in found.stdout.split("\n") if line]


def archive(files: list[Path], compiled: bool | None = None) -> bytes:
    """The worker's modules and the CUDA files in a zip, the same bytes each time.

    Parameters
    ----------
    files : list of Path
        What `modules` returned.
    compiled : bool, optional
        Whether modules are bytecode, which starts faster: by default where this Python is of the
        release that runs in the browser.
    """
    if compiled is None:
        compiled = runtime_files.same_python()
    sources = [*CUDA.glob("*.cu"), *CUDA.glob("steps/*.cu"), *(CUDA / "include").glob("*")]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted({*files, *sources}):
            name, data = path.relative_to(ROOT).as_posix(), bytes_of(path)
            if compiled and path.suffix == ".py":
                data = runtime_files.bytecode(data, f"{HOME}/{name}", 2)
                name += "c"
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(member, data)
    return made.getvalue()


def digest(stem: str, files: list[Path]) -> str:
    """What a chapter's bundle and recorded run depend on."""
    made = hashlib.sha256()
    compiler = sorted((ROOT / "lib" / "compiler").glob("*.py"))
    panel = [*sorted((ROOT / "lib" / "panel").glob("*.py")),
             *(HERE / name for name in ("bundler.py", "controls.py", "mistakes.py"))]
    sources = [CUDA / f"{stem}.cu", *sorted(CUDA.glob(f"steps/{stem}*.cu")),
               *sorted((CUDA / "include").glob("*"))]
    for path in (*files, *compiler, *panel, *sources):
        made.update(bytes_of(path))
    return made.hexdigest()


def make(stem: str, folder: Path, key: str) -> None:
    """Compile a chapter's bundle and record its run, unless both are there."""
    place = folder / f"{stem}.json"
    if place.exists() and json.loads(text_of(place))["key"] == key:
        return
    text = bundle(find(stem)).dumps()
    answer = controls.recorded(loads(text))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(place, json.dumps({"key": key, "bundle": text, "answer": answer}).encode())


def make_all(stems: list[str], folder: Path, files: list[Path]) -> None:
    """`make` for some chapters, two at a time."""
    with ProcessPoolExecutor(2, initializer=end_with_parent) as pool:
        keys = [digest(stem, files) for stem in stems]
        list(pool.map(make, stems, [folder] * len(stems), keys))


def made(stem: str, folder: Path) -> dict[str, Any]:
    """What `make` has written: ``bundle``, its JSON text, and ``answer``."""
    return json.loads(text_of(folder / f"{stem}.json"))


def write_folder(target: Path, stems: list[str], folder: Path, files: list[Path]) -> None:
    """Fill the folder that panels load from.

    Parameters
    ----------
    target : Path
        Such as ``_build/html/_static/live``.
    stems : list of str
        Chapters with a panel.
    folder : Path
        Where `make` has written.
    files : list of Path
        What `modules` returned.
    """
    target.mkdir(parents=True, exist_ok=True)
    listed = runtime_files.manifest()
    for found in listed.values():
        shutil.copy(runtime_files.FOLDER / str(found["file"]), target)
    for path in runtime_files.FOLDER.glob("LICENSE*"):
        shutil.copy(path, target)
    for name in ("panel.js", "engine.js", "own.js", "panel.css"):
        text = text_of(HERE / name)
        (target / name).write_text(slim(text), encoding="utf-8")
    shutil.copy(HERE / "worker.js", target)
    # What serves pages without a connection must lie above them.
    shutil.copy(HERE / "offline.js", target.parents[1])
    packed = archive(files)
    for name, data in (("lib.zip", packed), *(
            (f"{stem}.json", made(stem, folder)["bundle"].encode()) for stem in stems)):
        stored = data if name == "lib.zip" else gzipped(data)
        file = name if name == "lib.zip" else f"{name}.gzip"
        (target / file).write_bytes(stored)
        listed[name] = entry(file, stored, len(data))
    (target / "manifest.json").write_text(json.dumps(listed), encoding="utf-8")


def slim(text: str) -> str:
    """A script or a style sheet without comments on lines of their own, types and indentation."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    lines = (line.strip() for line in text.split("\n"))
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))


def mistakes() -> list[str]:
    """The kernels with a mistake each, by name."""
    return [one.name for one in examples.specimens()]


def own_written(stems: list[str], folder: Path, target: Path, base: str) -> str:
    """The panel of a reader's own kernel as HTML; its examples are written to `target`."""
    every = examples.write(target / "own", {stem: made(stem, folder)["bundle"] for stem in stems})
    return own_page.write(every, base, megabytes(target, ""))


def megabytes(target: Path, stem: str) -> float:
    """What a click in a chapter loads, MB."""
    listed = json.loads(text_of(target / "manifest.json"))
    mine = [found["bytes"] for name, found in listed.items()
            if name == f"{stem}.json" or not name.endswith(".json") or "lock" in name]
    return sum(mine) / 1e6


def written(stem: str, folder: Path, target: Path, base: str) -> tuple[str, Session]:
    """A chapter's panel as HTML, and a session that answers for its kernels.

    Parameters
    ----------
    stem : str
    folder, target : Path
        Where `make` and `write_folder` have written.
    base : str
        The address of `target` from the page.
    """
    found = made(stem, folder)
    kernels = loads(found["bundle"])
    return controls.write(kernels, found["answer"], base, megabytes(target, stem)), Session(kernels)
