"""Lines left out of a version: each is in the source, none is missed, and what is said of it."""

import pytest

from lib.kernels.catalogue import find
from lib.show import mistakes as model
from lib.show.mistakes import PLANTED, verdict
from lib.show.version import Version
from tests.pages import cells

EVERY = [(stem, one) for stem, planted in PLANTED.items() for one in planted.mistakes]


@pytest.mark.parametrize("stem", PLANTED)
def test_a_version_as_it_is_has_no_hazard_and_the_right_result(stem):
    assert verdict(stem, None) == model.Verdict("", "right")


@pytest.mark.parametrize(("stem", "mistake"), EVERY, ids=[one.shown for _, one in EVERY])
def test_each_mistake_stands_once_in_the_source_and_is_reported(stem, mistake):
    assert find(stem).source.read_text().count(mistake.old) == 1
    assert verdict(stem, mistake).says


def test_fences_leave_the_result_right_and_commits_hang():
    results = {one.shown: verdict("27_tcgen05", one) for one in PLANTED["27_tcgen05"].mistakes}
    fences = [found for shown, found in results.items() if shown.startswith("`fence_")]
    assert len(fences) == 2
    for found in fences:
        assert found.result == "right" and found.says.startswith("missing tcgen05.fence: ")
    assert fences[1].says.endswith("`tcgen05.ld`, then `tcgen05.mma`")
    commit = next(found for shown, found in results.items() if "commit" in shown)
    assert commit.result == "none: it hangs"
    bit = next(found for shown, found in results.items() if "bit 46" in shown)
    assert bit.result == "none: it stops" and bit.says.endswith("in its bits 46 to 48")
    assert "wrong" in {found.result for found in results.values()}


def test_the_table_has_a_row_for_each_and_says_what_the_whole_kernel_gives(shown):
    model.left_out(Version("27_tcgen05"))
    rows = cells(shown[0])
    assert len(rows) == len(PLANTED["27_tcgen05"].mistakes)
    assert "unchanged: no hazard, C right" in shown[0]
