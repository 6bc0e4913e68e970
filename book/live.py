"""The panels "Run it here": what their pages and the folder that they load from hold.

A chapter of a kernel has a panel behind the first cell that draws accesses to memory, or in place
of a line `<!-- run it here -->` of its Markdown, where it has one. A question's folded answer,
`<details data-predict="…">`, says which number of a run is asked for (`question`). The folder
`_static/live` has the runtime's copies, the emulator and what the worker needs of `lib` in one
archive, and a chapter's kernels in a file each.
"""

from __future__ import annotations

import hashlib
import html
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

import nbformat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from book import checks, runtime_files
from book.runtime_files import entry, gzipped
from lib.kernels.catalogue import CATALOGUE, find
from lib.live import panel
from lib.live.desk import Desk
from lib.live.family import loads
from lib.live.pack import family
from lib.paths import CUDA, ROOT

PANEL = Path(__file__).with_name("panel")
LINE = "<!-- run it here -->"
MARK = '<div class="live-here"></div>'
# The cells that a panel may stand behind: the first that draws what a panel draws again; where none
# does, the one that checks results, which every chapter of a kernel has.
BEHIND = (re.compile(r"\.(?:coalescing|banks)\("), re.compile(r"\.check\("))
QUESTION = re.compile(r'<details\b[^>]*\bdata-predict="([^"]*)"[^>]*>')


# -- the folder ---------------------------------------------------------------------------------

def modules() -> list[Path]:
    """The files of `lib` that the worker loads, asked of a Python that loads them."""
    program = ("import sys; sys.path.insert(0, sys.argv[1]); import lib.live.desk; "
               "print(*(m.__file__ for n, m in sorted(sys.modules.items()) "
               "if n.split('.')[0] == 'lib'), sep='\\n')")
    found = subprocess.run([sys.executable, "-c", program, str(ROOT)], capture_output=True,
                           text=True, check=True, cwd=ROOT)
    return [Path(line) for line in found.stdout.split("\n") if line]


def archive(files: list[Path]) -> bytes:
    """The worker's modules and the CUDA files in a zip, the same bytes each time."""
    sources = [*CUDA.glob("*.cu"), *(CUDA / "include").glob("*")]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted({*files, *sources}):
            member = zipfile.ZipInfo(path.relative_to(ROOT).as_posix())
            member.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(member, path.read_bytes())
    return made.getvalue()


def digest(stem: str, files: list[Path]) -> str:
    """What a chapter's family and recorded run depend on."""
    made = hashlib.sha256()
    compiler = sorted((ROOT / "lib" / "compiler").glob("*.py"))
    live = sorted((ROOT / "lib" / "live").glob("*.py"))
    sources = [CUDA / f"{stem}.cu", *sorted((CUDA / "include").glob("*"))]
    for path in (*files, *compiler, *live, *sources):
        made.update(path.read_bytes())
    return made.hexdigest()


def make(stem: str, folder: Path, key: str) -> None:
    """Compile a chapter's family and record its run, unless both are there."""
    place = folder / f"{stem}.json"
    if place.exists() and json.loads(place.read_text(encoding="utf-8"))["key"] == key:
        return
    text = family(find(stem)).dumps()
    answer = panel.recorded(loads(text))
    folder.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"key": key, "family": text, "answer": answer}), encoding="utf-8")


def make_all(stems: list[str], folder: Path, files: list[Path]) -> None:
    """`make` for some chapters, two at a time."""
    with ProcessPoolExecutor(2) as pool:
        keys = [digest(stem, files) for stem in stems]
        list(pool.map(make, stems, [folder] * len(stems), keys))


def made(stem: str, folder: Path) -> dict[str, Any]:
    """What `make` has written: ``family``, its JSON text, and ``answer``."""
    return json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))


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
    for name in ("panel.js", "panel.css", "worker.js"):
        shutil.copy(PANEL / name, target)
    # What serves pages without a connection must lie above them.
    shutil.copy(PANEL / "offline.js", target.parents[1])
    packed = archive(files)
    for name, data in (("lib.zip", packed), *(
            (f"{stem}.json", made(stem, folder)["family"].encode()) for stem in stems)):
        stored = data if name == "lib.zip" else gzipped(data)
        file = name if name == "lib.zip" else f"{name}.gzip"
        (target / file).write_bytes(stored)
        listed[name] = entry(file, stored, len(data))
    (target / "manifest.json").write_text(json.dumps(listed), encoding="utf-8")


def megabytes(target: Path, stem: str) -> float:
    """What a click in a chapter loads, MB."""
    listed = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    mine = [found["bytes"] for name, found in listed.items()
            if name == f"{stem}.json" or not name.endswith(".json") or "lock" in name]
    return sum(mine) / 1e6


# -- the pages ----------------------------------------------------------------------------------

def with_place(text: str) -> str:
    """A chapter's notebook with a mark where its panel stands."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and LINE in cell.source:
            cell.source = cell.source.replace(LINE, MARK)
            return nbformat.writes(notebook)
    for kind in BEHIND:
        for at, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and kind.search(cell.source):
                notebook.cells.insert(at + 1, nbformat.v4.new_markdown_cell(MARK, id="run-it-here"))
                return nbformat.writes(notebook)
    raise ValueError("no cell draws accesses or checks results, and no line says where the panel "
                     f"stands: write {LINE} on a line of its own")


def question(asked: str, desk: Desk) -> str:
    """The form of a question, beside the answer that the run gives.

    Parameters
    ----------
    asked : str
        ``VARIANT COUNTER``, a counter of the recorded run; or
        ``VARIANT SPACE KIND ARRAY COUNT``: what one access of the watched warp takes, such as
        ``coalesced global load A sectors``.
    desk : Desk

    Raises
    ------
    ValueError
        If the run has no such counter or access.
    """
    truth, what = desk.predict(asked)
    told = html.escape(f"the run has {truth:,} {what}")
    return (f'<form class="live-question" data-truth="{truth}" data-run="{told}" hidden>'
            f'<label>Your prediction, {html.escape(what)}: <input name="guess" '
            'inputmode="decimal" size="8" autocomplete="off"></label> '
            '<button type="submit">Compare</button> '
            '<output aria-live="polite"></output></form>')


class Panels:
    """The panels of a book that is being built."""

    def __init__(self, app: Sphinx) -> None:
        self.folder = Path(app.outdir).parent / "live"
        self.target = Path(app.outdir) / "_static" / "live"
        self.files = modules()
        listed = checks.listed(Path(app.srcdir))
        self.stems = [stem for stem in CATALOGUE if f"chapters/{stem}" in listed]

    def stem(self, name: str) -> str | None:
        """The kernel that a page is about."""
        stem = name.removeprefix("chapters/")
        return stem if stem in self.stems else None


def begin(app: Sphinx) -> None:
    """Compile and record what has changed."""
    app.live_panels = None
    if app.builder.name == "html":
        app.live_panels = panels = Panels(app)
        make_all(panels.stems, panels.folder, panels.files)
        write_folder(panels.target, panels.stems, panels.folder, panels.files)


def outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """The pages that were read before their panel was made."""
    panels = app.live_panels
    return [] if panels is None else [
        f"chapters/{stem}" for stem in panels.stems
        if (panels.folder / f"{stem}.json").stat().st_mtime_ns // 1000
        > env.all_docs.get(f"chapters/{stem}", 0)
    ]


def mark(app: Sphinx, name: str, content: list[str]) -> None:
    """Say in a chapter's text where its panel stands."""
    if app.live_panels is not None and app.live_panels.stem(name):
        content[0] = with_place(content[0])


def fill(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Put panel and questions into a page, and let it load their script."""
    panels = app.live_panels
    stem = panels and panels.stem(pagename)
    if not stem or "body" not in context:
        return
    found = made(stem, panels.folder)
    kernels = loads(found["family"])
    base = "../" * pagename.count("/") + "_static/live/"
    panel_text = panel.write(kernels, found["answer"], base, megabytes(panels.target, stem))
    body = context["body"].replace(MARK, panel_text, 1)
    desk = Desk(kernels)
    context["body"] = QUESTION.sub(
        lambda match: question(html.unescape(match[1]), desk) + match[0], body)
    app.add_js_file("live/panel.js", loading_method="defer")
    app.add_css_file("live/panel.css", priority=910)


def setup(app: Sphinx) -> None:
    """Make, place and fill the panels."""
    app.connect("builder-inited", begin)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", mark, priority=600)  # behind the outputs
    app.connect("html-page-context", fill, priority=400)
