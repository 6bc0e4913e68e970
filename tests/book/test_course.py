"""Aims and course: of every chapter, of exercises that there are, and the pages that show them."""

import re

import nbformat
import pytest
import yaml

from book import checks, course
from lib.kernels.catalogue import in_book
from lib.paths import ROOT

COURSE = course.load()
VERSIONS = [name.removeprefix("chapters/") for name in checks.listed()
            if re.match(r"chapters/\d\d_", name)]
ASKED = [one for meeting in COURSE.meetings for one in meeting.exercises]
# What nobody can observe in a reader.
VAGUE = ("understand", "know", "learn", "appreciate", "be familiar", "be aware")


def test_every_chapter_has_aims_and_readers_in_the_versions_order():
    assert [stem for stem in COURSE.chapters if stem != "method"] == sorted(VERSIONS)
    assert set(VERSIONS) == set(in_book())


@pytest.mark.parametrize("stem", COURSE.chapters)
def test_an_aim_says_what_a_reader_can_do(stem):
    reader, aims = COURSE.chapters[stem]
    assert reader and 2 <= len(aims) <= 3
    for aim in (*aims, *COURSE.objectives):
        assert aim[0].islower() and not aim.endswith(".")
        assert not any(re.match(rf"{word}\b", aim) for word in VAGUE), aim


def test_there_are_six_meetings_with_exercises_of_what_was_read():
    assert len(COURSE.meetings) == 6
    read = [stem for meeting in COURSE.meetings for stem in meeting.read]
    assert len(set(read)) == len(read) and set(read) <= set(COURSE.chapters)
    for meeting in COURSE.meetings:
        assert len(meeting.exercises) >= 2
        assert {one.chapter for one in meeting.exercises} <= set(meeting.read)
        assert 90 <= meeting.minutes <= 120


@pytest.mark.parametrize("exercise", ASKED, ids=lambda one: f"{one.chapter}-{one.number}")
def test_an_exercise_is_there_has_a_solution_and_something_to_look_for(exercise):
    assert exercise.number in course.exercises(exercise.chapter)
    cells = nbformat.read(ROOT / "chapters" / f"{exercise.chapter}.ipynb", 4).cells
    start = next(i for i, cell in enumerate(cells) if f"**{exercise.number}. " in cell.source)
    behind = [cell for cell in cells[start + 1:start + 4]]
    end = next((i for i, cell in enumerate(behind) if cell.cell_type == "markdown"), len(behind))
    assert any("hide-cell" in cell.metadata.get("tags", ()) for cell in behind[:end])
    assert len(exercise.look_for.split()) >= 15
    assert not re.search(r"\d\.\d|\d ?%", exercise.look_for), "figures stand on the chapter's page"


@pytest.mark.parametrize("page", course.PAGES)
def test_the_pages_are_what_the_data_say(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == course.PAGES[page](COURSE, ROOT), "run `python -m lib stamp`"
    assert page.removesuffix(".md") in checks.listed()


def test_another_aim_reaches_its_page(tmp_path):
    data = yaml.safe_load((ROOT / course.SOURCE).read_text(encoding="utf-8"))
    data["chapters"]["01_naive"]["aims"][0] = "count the teeth of a horse"
    (tmp_path / "chapters").mkdir()
    (tmp_path / course.SOURCE).write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    for stem in COURSE.chapters:
        (tmp_path / f"chapters/{stem}.ipynb").symlink_to(ROOT / f"chapters/{stem}.ipynb")
    text = course.stamp(tmp_path, "chapters/objectives.md")("")
    assert "count the teeth of a horse" in text


def test_links_of_the_built_pages_lead_to_the_exercises(site):
    built = checks.Page(site, "chapters/course.html")
    assert checks.links(built) == []
    targets = {link["href"] for link in built.soup.select("article table a")}
    assert targets == {f"{one.chapter}.html#exercises" for one in ASKED}
    rows = checks.Page(site, "chapters/objectives.html").soup.select("article table tbody tr")
    assert len(rows) == len(COURSE.chapters)
