"""The panels' tasks: each is answered by the reader's run, and by the kernel that is run."""

import json
import re

import pytest

from book.panel.controls import grain, recorded, write
from lib.panel.tasks import NO_BARRIER, TASKS, settings, subject

EVERY = [(stem, number) for stem, tasks in TASKS.items() for number in range(len(tasks))]


def ask(session, **request):
    return json.loads(session.ask(json.dumps(request)))


@pytest.mark.parametrize("stem", TASKS)
def test_a_chapter_has_two_or_three_that_begin_with_a_question(stem):
    tasks = TASKS[stem]
    assert len(tasks) in (2, 3) and len({task.question for task in tasks}) == len(tasks)
    for task in tasks:
        assert task.question.endswith("?")
        # The answer is counted: no question says it, and none names a variant of the project's.
        assert not any(name in task.question for name in task.variants if "_" in name)


@pytest.mark.parametrize("stem", TASKS)
def test_each_task_is_answered_by_the_run_and_by_the_kernel_that_is_run(made, stem):
    """As the page says it, whose build asks each of them."""
    answers = [run["said"] for run in made(stem)["answer"]["tasks"]]
    assert len(answers) == len(TASKS[stem])
    assert not [said for said in answers if " before, " not in said or "no difference" in said]


# Every eighth; the others are slow.
@pytest.mark.parametrize(("stem", "number"), [
    pytest.param(stem, number, marks=() if (stem, number) in EVERY[::8] else pytest.mark.slow)
    for stem, number in EVERY
])
def test_the_kernel_as_it_was_is_another_answer_to_a_task(sessions, made, stem, number):
    session = sessions(stem)
    before = session.settings(TASKS[stem][number].before)
    same = ask(session, do="task", task=number, **before)
    old = same["numbers"][0]
    assert same["numbers"] == [old, old] and "no difference" in same["said"]
    assert "live-differs" not in same["html"]
    changed = ask(session, do="task", task=number, **session.settings(TASKS[stem][number].after))
    assert changed["numbers"][0] == old != changed["numbers"][1]
    assert "live-differs" in changed["html"]
    assert changed["said"] == made(stem)["answer"]["tasks"][number]["said"]


def test_a_task_counts_the_reader_s_own_ptx(sessions):
    session = sessions("02_shared_tile")
    text = ask(session, do="ptx")["ptx"]
    twice = re.sub(r"(?m)^(\s*ld\.global\S*\s.*;)$", r"\1 \1", text)
    assert twice != text
    usual = ask(session, do="task", task=0)["numbers"]
    edited = ask(session, do="task", task=0, ptx=twice)["numbers"]
    assert edited[0] == usual[0] and edited[1] > usual[1]


def test_before_and_after_stand_side_by_side(sessions):
    answer = ask(sessions("03_strip"), do="task", task=0, variant="strips_first")
    assert re.findall("<h4>(\\w+)</h4>", answer["html"]) == ["Before", "After"]
    assert answer["accesses"] == [] and answer["html"].count("<figure ") == 2


def test_a_run_that_can_not_answer_says_why(sessions):
    text = ask(sessions("02_shared_tile"), do="ptx")["ptx"]
    answer = ask(sessions("02_shared_tile"), do="task", task=0, ptx=text.replace("ret;", "rte;"))
    assert answer["verdict"] == "refused" and "doesn't answer the task: it was" in answer["said"]


def test_the_first_picture_is_the_chapter_s_subject(sessions):
    assert subject("06_vectorized") == ("shared", "load", "Bs") and subject("index") is None
    answer = ask(sessions("06_vectorized"), races=False)
    assert answer["accesses"][answer["first"]]["label"].startswith("shared load Bs")


def test_a_mistake_that_is_not_seeded_is_named():
    with pytest.raises(ValueError, match="no seeded mistake is about 'bar.sync'"):
        settings(NO_BARRIER, [])


def test_a_page_says_its_limits_and_shows_its_tasks_without_scripts(sessions):
    page = sessions("08_warp_tile").bundle
    assert grain(page, "warp_64x32") == 1 and grain(page, "warp_64x64") == 4
    answer = recorded(page)
    html = write(page, answer, "", 9.0)
    assert "sides: multiples of 4)" in html and "Sides up to 256" in html
    for task, run in zip(TASKS["08_warp_tile"], answer["tasks"], strict=True):
        assert task.question.replace("'", "&#x27;") in html and run["said"] in html
