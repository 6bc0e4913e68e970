"""What the book teaches and a course of six meetings: read from `chapters/course.yml`, as pages.

The pages `chapters/objectives.md` and `chapters/course.md` are written by `python -m lib stamp`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lib.ptx.files import text_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("chapters") / "course.yml"
_EXERCISE = re.compile(r"^\*\*(\d)\. ([^*]+?)\.?\*\*", re.M)
_WRITTEN = "<!-- Written by `python -m lib stamp` from course.yml: edit that. -->"


@dataclass(frozen=True)
class Exercise:
    """An exercise of a chapter, and what a teacher looks for in answers."""

    chapter: str
    number: int
    look_for: str


@dataclass(frozen=True)
class Meeting:
    """One meeting: what is read before it, its plan in minutes, its exercises."""

    title: str
    read: tuple[str, ...]
    plan: tuple[tuple[int, str], ...]
    exercises: tuple[Exercise, ...]

    @property
    def minutes(self) -> int:
        """How long it takes."""
        return sum(minutes for minutes, _ in self.plan)


@dataclass(frozen=True)
class Course:
    """All of it."""

    audience: tuple[tuple[str, str], ...]
    before: tuple[str, ...]
    objectives: tuple[str, ...]
    chapters: Mapping[str, tuple[str, tuple[str, ...]]]
    meetings: tuple[Meeting, ...]


@functools.cache
def load(root: Path = ROOT) -> Course:
    """Read the course.

    Raises
    ------
    KeyError, TypeError
        If a part is missing or of another form.
    """
    found: dict[str, Any] = yaml.safe_load(text_of(root / SOURCE))
    return Course(
        audience=tuple((one["who"], one["gets"]) for one in found["audience"]),
        before=tuple(found["before"]),
        objectives=tuple(found["objectives"]),
        chapters={stem: (one["for"], tuple(one["aims"]))
                  for stem, one in found["chapters"].items()},
        meetings=tuple(
            Meeting(one["title"], tuple(one["read"]),
                    tuple((minutes, what) for minutes, what in one["plan"]),
                    tuple(Exercise(**exercise) for exercise in one["exercises"]))
            for one in found["meetings"]),
    )


@functools.cache
def title(stem: str, root: Path = ROOT) -> str:
    """A chapter's heading."""
    chapter = text_of(root / "chapters" / f"{stem}.ipynb")
    first = nbformat.reads(chapter, as_version=4).cells[0].source
    return first.partition("\n")[0].removeprefix("# ")


@functools.cache
def exercises(stem: str, root: Path = ROOT) -> Mapping[int, str]:
    """A chapter's exercises: what each asks for, by number."""
    cells = nbformat.reads(text_of(root / "chapters" / f"{stem}.ipynb"), as_version=4).cells
    return {int(number): what for cell in cells if cell.cell_type == "markdown"
            for number, what in _EXERCISE.findall(cell.source)}


def objectives_page(course: Course, root: Path = ROOT) -> str:
    """The page of audience and learning objectives."""
    rows = "\n".join(f"| [{title(stem, root)}]({stem}.ipynb) | {_listed(aims)} | {reader} |"
                     for stem, (reader, aims) in course.chapters.items())
    return f"""{_WRITTEN}

# Who it is for, and what it teaches

Nothing of what stands here is a condition: each chapter says on its own page what it builds on.

{_points(f"**{_capital(who)}** get {gets}." for who, gets in course.audience)}

You need:

{_points(f"{_capital(one)}." for one in course.before)}

## What you can do after the book

{_numbered(f"{_capital(one)}." for one in course.objectives)}

## Each chapter adds one idea

Behind a chapter you can do what its row says. The exercises at a chapter's end test it, and their
solutions run on any machine. [The plan of a course](course.md) goes through them in six meetings.

| Chapter | You can | For |
|---|---|---|
{rows}
"""


def course_page(course: Course, root: Path = ROOT) -> str:
    """The page of the course."""
    parts = "\n\n".join(_meeting(number, one, root)
                        for number, one in enumerate(course.meetings, 1))
    counted = sum(len(one.exercises) for one in course.meetings)
    return f"""{_WRITTEN}

# A course of six meetings

Each meeting takes about {_about(course)} minutes, behind an hour or two of reading. Nobody needs a
GPU: every exercise runs in the emulator, on a laptop or on Colab, and so do all of its solutions.
[Who it is for, and what it teaches](objectives.md) has the aims of each chapter.

The {counted} exercises below are those of the chapters; each has a folded solution on its page.
The emulator reports mistakes even where the result is right, so a kernel that runs is half an
answer. The other half is the cause in the field's words, and a prediction written down before the
count.

{parts}

## How to mark an answer

Give a third for a prediction with its arithmetic, a third for a kernel that `page.verify` or the
emulator finds right and clean, and a third for one sentence that names the cause. A wrong
prediction that is explained afterwards is worth as much as a right one.
"""


PAGES: Mapping[str, Callable[[Course, Path], str]] = {
    "chapters/objectives.md": objectives_page,
    "chapters/course.md": course_page,
}


def stamp(root: Path, page: str) -> Callable[[str], str]:
    """What renews a page, whatever it holds."""
    return lambda _: PAGES[page](load(root), root)


def _meeting(number: int, meeting: Meeting, root: Path) -> str:
    reading = ", ".join(f"[{title(stem, root)}]({stem}.ipynb)" for stem in meeting.read)
    plan = _points(f"{minutes} minutes: {what}." for minutes, what in meeting.plan)
    asked = "\n".join(_asked(one, root) for one in meeting.exercises)
    return f"""## {number} · {meeting.title}

Read before: {reading}.

{plan}

| Exercise | What to look for in an answer |
|---|---|
{asked}"""


def _asked(exercise: Exercise, root: Path) -> str:
    chapter = exercise.chapter
    what = exercises(chapter, root)[exercise.number]
    return (f"| [{chapter[:2]}, exercise {exercise.number}: {what[0].lower()}{what[1:]}]"
            f"({chapter}.ipynb#exercises) | {exercise.look_for} |")


def _about(course: Course) -> int:
    """The longest meeting's minutes."""
    return max(meeting.minutes for meeting in course.meetings)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(aims: Sequence[str]) -> str:
    return "; ".join(aims)


def _points(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _numbered(lines: Any) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
