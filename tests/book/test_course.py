"""Aims and course: of every chapter, and of exercises that there are."""

import re

import nbformat
import pytest

from lib.kernels.catalogue import in_book
from lib.paths import ROOT

AIMS, COURSE = ((ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8")
                for name in ("objectives", "course"))
ROWS = re.findall(r"(?m)^\| \[(.*)\]\((.*)\.ipynb\) \| (.*) \| (.*) \|$", AIMS)
ROW = r"\[(\d\d), exercise (\d): (.*)\]\((\w+)\.ipynb#exercises\) \| (.*) \|"
MEETINGS = [re.findall(ROW, part) for part in COURSE.split("\n## ")[1:-1]]
ASKED = [one for meeting in MEETINGS for one in meeting]
# What nobody can observe in a reader.
VAGUE = ("understand", "know", "learn", "appreciate", "be familiar", "be aware")


def cells_of(stem):
    return nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", 4).cells


def test_every_chapter_has_aims_and_readers_in_the_versions_order():
    stems = [stem for _, stem, *_ in ROWS]
    assert stems == ["method", *sorted(in_book())]
    for title, stem, aims, reader in ROWS:
        assert cells_of(stem)[0].source.startswith(f"# {title}\n") and reader
        assert 2 <= len(aims.split("; ")) <= 3
        assert not any(aim.startswith(VAGUE) or not aim[0].islower() for aim in aims.split("; "))


def test_there_are_six_meetings_with_exercises_of_what_was_read():
    assert len(MEETINGS) == 6 and f"The {len(ASKED)} exercises below" in COURSE
    parts = COURSE.split("\n## ")[1:-1]
    for part, asked in zip(parts, MEETINGS, strict=True):
        read = part.partition("\n- ")[0]
        assert len(asked) >= 2 and all(f"({stem}.ipynb)" in read for *_, stem, _ in asked)
        assert 90 <= sum(map(int, re.findall(r"(?m)^- (\d+) minutes:", part))) <= 120


@pytest.mark.parametrize("exercise", ASKED, ids=lambda one: f"{one[0]}-{one[1]}")
def test_an_exercise_is_there_has_a_solution_and_something_to_look_for(exercise):
    version, number, what, stem, look_for = exercise
    cells = cells_of(stem)
    start, = (i for i, cell in enumerate(cells) if f"**{number}. " in cell.source)
    assert stem.startswith(version) and f"**{number}. {what[0].upper()}{what[1:]}" in (
        cells[start].source)
    behind = [cell for cell in cells[start + 1:start + 4]]
    end = next((i for i, cell in enumerate(behind) if cell.cell_type == "markdown"), len(behind))
    assert any("hide-cell" in cell.metadata.get("tags", ()) for cell in behind[:end])
    assert len(look_for.split()) >= 15
    assert not re.search(r"\d\.\d|\d ?%", look_for), "figures stand on the chapter's page"
