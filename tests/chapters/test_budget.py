"""How much work the chapters are: kernels compiled, blocks emulated, figures drawn.

Work is counted when a chapter is executed, and bounded in `budget.json`: it doesn't depend on the
machine, as seconds do. A bound may be raised by who can say what the reader gets for it.
"""

import json
from pathlib import Path

import pytest

from book import executed, record_pages
from lib.paths import ROOT

pytestmark = pytest.mark.chapters
BUDGET = json.loads(Path(__file__).with_name("budget.json").read_text())
CHAPTERS = [name for name in executed.chapters(ROOT) if not name.startswith(record_pages.FOLDER)]


def over(name, work, budget):
    """What of a chapter's work is more than its budget, a line each."""
    bounds = budget.get(name, {})
    return [
        f"{name}: {count:,} {kind}, where tests/chapters/budget.json allows {bounds.get(kind, 0):,}"
        for kind, count in work.items() if count > bounds.get(kind, 0)
    ]


@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.skipif(bool(executed.gpus()), reason="the budget is that of a machine without a GPU")
def test_a_chapter_keeps_to_its_budget(name, up_to_date):
    assert over(name, executed.work(up_to_date, name), BUDGET) == []


def test_the_budget_is_of_the_book_s_chapters():
    assert sorted(BUDGET) == sorted(CHAPTERS)
