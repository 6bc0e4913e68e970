"""The papers in `paper/`: their numbers, authors and figures come from the repository.

A number in a paper's text is followed by a comment that names it, ``27<!--versions-->``, which no
reader of the paper sees. `python -m lib stamp` renews the numbers, and the authors from
CITATION.cff; `python -m book.paper` (`make paper`) draws the figures, too. A figure's file carries
its text in place of a picture, made from the same numbers, so that a test sees an old one.
"""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from book import pdf
from lib.ptx.files import bytes_of

if TYPE_CHECKING:
    from lib.show.chart import Drawing
    from lib.show.scene import Scene

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ("paper/jose/paper.md", "paper/joss/paper.md")
NUMBER = re.compile(r"([\w.,]+)<!--([a-z_0-9]+)-->")
_AUTHORS = re.compile(r"(?ms)^authors:\n.*?(?=^date:)")
# Where nothing is recorded yet.
_LACKING = "–"


class PaperError(ValueError):
    """A paper names a number that there isn't, or has no place for its authors."""


@functools.cache
def numbers() -> Mapping[str, Callable[[], object]]:
    """Each number by its name; it is computed when a paper has it."""
    from lib.claims.ledger import CLAIMS
    from lib.compiler.arch import BLACKWELL
    from lib.kernels.catalogue import in_book
    from lib.ptx import isa  # noqa: F401 - enters every family
    from lib.ptx.core.decode import OPCODES
    from lib.ptx.count.trace import Trace
    from lib.records import foreign, reach, sanitizer, scoreboard, sentryward
    from lib.show import foreign as others
    from lib.show import zoo
    from lib.show.numbers import Numbers
    from lib.show.version import RECORDED_ON

    def reached(group: str, part: Callable[[reach.Reach], str]) -> Callable[[], str]:
        return lambda: part(reach.reach(group))

    def off(share: float, noise: float) -> str:
        """How far a share may be off, in points."""
        return reach.percent(share * noise)

    def tally(checker: str, count: Callable[[zoo.Tally], int]) -> Callable[[], int]:
        """A count of what a checker says of the zoo, by the records and the files' comments."""
        def number() -> int:
            records = sanitizer.read(), sentryward.read()
            return count(zoo.tallies([
                {"says": one.says != zoo.MISSED, "cured_clean": True, **zoo.others(one, *records)}
                for one in zoo.specimens()])[checker])

        return number

    def defective() -> int:
        """How many of others' kernels have a finding, by the record."""
        record = others.recorded()
        findings = [one for one in others.kernels()
                    if record[one.key].hazards or record[one.key].ended != foreign.ENDED]
        if any(not one.defect for one in findings):
            raise ValueError("a finding in others' kernels without a verified defect")
        return len(findings)

    return {
        "versions": lambda: len(in_book()),
        # For an architecture that nobody here has run.
        "emulated": lambda: sum(one.min_arch == BLACKWELL for one in in_book().values()),
        "exercises": lambda: _count("*.ipynb", r'"\*\*\d\. '),
        "meetings": lambda: _count("course.md", r"\n## \d "),
        "asked": lambda: _count("course.md", r", exercise \d: "),
        "aims": lambda: _count("objectives.md", r"(?<=\.ipynb\) \| )|;(?=.* \|.* \|\n)"),
        "objectives": lambda: _count("objectives.md", r"\n\d\. "),
        "fp32_share": reached("FP32", lambda one: f"{100 * one.share:.1f}"),
        "fp32_noise": reached("FP32", lambda one: off(one.share, one.noise)),
        "fp32_sustained": reached("FP32", lambda one: f"{100 * one.sustained[0]:.1f}"),
        "fp32_sustained_noise": reached("FP32", lambda one: off(*one.sustained)),
        "fp16_tflops": reached("FP16", lambda one: f"{one.row.tflops:.1f}"),
        "fp16_rival": reached("FP16", lambda one: f"{one.rival:.1f}"),
        "fp16_noise": reached("FP16", lambda one: off(one.share, one.noise)),
        "first_tflops": lambda: f"{Numbers('01_naive').row('01_naive').tflops:.1f}",
        "size": lambda: f"{scoreboard.LADDER_SIZE:,}", "gpu": lambda: RECORDED_ON,
        "claims": lambda: len(CLAIMS), "patterns": Numbers("index").patterns,
        "told": tally("this emulator", lambda one: one.detected),
        "missed": tally("this emulator", lambda one: one.missed),
        "sanitizer_told": tally("compute-sanitizer", lambda one: one.detected),
        "sanitizer_run": tally(
            "compute-sanitizer", lambda one: one.detected + one.both + one.missed),
        "sentryward_told": tally("SentryWard", lambda one: one.detected),
        "sentryward_refused": tally("SentryWard", lambda one: one.refused),
        "silent": lambda: len(others.kernels()) - defective(), "defective": defective,
        "mistakes": lambda: len(zoo.specimens()), "foreign": lambda: len(others.kernels()),
        "repositories": lambda: len({one.repository for one in others.kernels()}),
        "mnemonics": lambda: len(OPCODES), "counters": lambda: len(Trace().counters()),
    }


def _count(pages: str, pattern: str) -> int:
    """How often a pattern stands in some of the chapters."""
    return sum(len(re.findall(pattern, bytes_of(page).decode()))
               for page in (ROOT / "chapters").glob(pages))


@functools.cache
def number(name: str) -> str:
    """A number as the papers print it.

    Raises
    ------
    PaperError
        If there is none of that name.
    """
    from lib.records.store import NotRecorded

    if name not in numbers():
        raise PaperError(f"no number is named {name!r}; there are {', '.join(sorted(numbers()))}")
    try:
        return str(numbers()[name]())
    except NotRecorded:
        return _LACKING


def filled(text: str, value: Callable[[str], str] = number) -> str:
    """`text` with its numbers renewed."""
    return NUMBER.sub(lambda found: f"{value(found[2])}<!--{found[2]}-->", text)


def people(citation: Mapping[str, Any]) -> str:
    """The lines of a paper's head that name its authors, from CITATION.cff."""
    places = list(dict.fromkeys(one.get("affiliation", "Independent")
                                for one in citation["authors"]))
    authors = []
    for one in citation["authors"]:
        author = {"name": one.get("name") or f"{one['given-names']} {one['family-names']}"}
        if "orcid" in one:
            author["orcid"] = one["orcid"].rpartition("/")[2]
        author["affiliation"] = str(places.index(one.get("affiliation", "Independent")) + 1)
        authors.append(author)
    head = {"authors": authors, "affiliations": [
        {"name": place, "index": index} for index, place in enumerate(places, 1)]}
    return yaml.safe_dump(head, sort_keys=False, allow_unicode=True)


def stamp(citation: Callable[[], Mapping[str, Any]], name: str) -> Callable[[str], str]:
    """What renews a paper's authors, date and numbers."""
    def renewed(text: str) -> str:
        if not _AUTHORS.search(text):
            raise PaperError(f"{name} has no 'authors:' before its 'date:'")
        if day := citation().get("date-released"):
            text = re.sub(r"(?m)^date: .*$", f"date: {day:%-d %B %Y}", text, count=1)
        return filled(_AUTHORS.sub(lambda _: people(citation()), text, count=1))

    return renewed


def _ladder() -> None:
    from lib.show import ladder as page

    page.draw()


def _accesses() -> None:
    from lib.chapter import Chapter

    Chapter("01_naive").coalescing()


# Where a figure lies, and the page's own function that draws it.
FIGURES: Mapping[str, Callable[[], None]] = {
    "paper/jose/ladder.png": _ladder,
    "paper/jose/accesses.png": _accesses,
}


def drawn(name: str) -> Drawing | Scene:
    """A figure as the book's page draws it, in its wide layout."""
    from lib.show.display import collected

    with collected() as figures:
        FIGURES[name]()
    (figure,) = figures
    return figure


def text_of(figure: Drawing | Scene) -> str:
    """What stands in a figure's place for who can't see it."""
    if not hasattr(figure, "savefig"):
        return figure.text
    return f"{figure.alt} ({figure.evidence})"


def save(figure: Drawing | Scene, path: Path) -> None:
    """Write a figure with its text. Nothing else in the file depends on the day or the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not hasattr(figure, "savefig"):
        photograph(figure, path)
        return
    figure.savefig(path, dpi=120, facecolor="white",
                   metadata={"Software": None, "Description": text_of(figure)})


def photograph(scene: Scene, path: Path) -> None:
    """Write a scene as a browser draws it on white paper, cut to what is drawn.

    Raises
    ------
    PaperError
        If there is no browser.
    """
    from PIL import Image, ImageChops
    from PIL.PngImagePlugin import PngInfo

    browser = pdf.browser()
    if browser is None:
        raise PaperError(
            f"{path.name} is photographed by a browser, one of: {', '.join(pdf.BROWSERS)}")
    with tempfile.TemporaryDirectory() as folder:
        page, pixels = Path(folder) / "page.html", Path(folder) / "page.png"
        page.write_text('<meta charset="utf-8"><body style="margin:8px;width:700px;'
                        f'font-family:DejaVu Sans,sans-serif">{scene._repr_html_()}',
                        encoding="utf-8")
        subprocess.run([browser, "--headless", "--no-sandbox", "--hide-scrollbars",
                        "--force-device-scale-factor=2", "--window-size=716,2400",
                        f"--screenshot={pixels}", page.as_uri()], check=True, capture_output=True)
        image = Image.open(io.BytesIO(bytes_of(pixels))).convert("RGB")
        drawn = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
        about = PngInfo()
        about.add_itxt("Description", text_of(scene))
        bottom = drawn[3] + 16 if drawn else image.height
        few = image.crop((0, 0, image.width, bottom)).quantize(256, dither=Image.Dither.NONE)
        few.save(path, pnginfo=about)


def text_in(path: Path) -> str:
    """The text that a figure's file carries.

    Raises
    ------
    PaperError
        If it carries none.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(bytes_of(path))) as image:
            return image.text["Description"]
    except (KeyError, UnidentifiedImageError):
        raise PaperError(f"{path.name} carries no text: run `make paper`") from None


def main() -> int:
    """Draw the figures, fill the numbers."""
    from book import release

    for name in FIGURES:
        save(drawn(name), ROOT / name)
        print(f"{name}: drawn")
    for path in release.stamp(write=True):
        print(f"{path.relative_to(ROOT)}: stamped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
