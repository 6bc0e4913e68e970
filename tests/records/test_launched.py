"""Rows of a rule's record: current where the rule takes what was measured, as it was measured."""

import dataclasses
import shutil

import pytest
from msgspec import structs

from lib.dispatch import cost
from lib.kernels import spec
from lib.kernels.catalogue import RULES
from lib.measure import record, tasks
from lib.paths import CUDA
from lib.records import launched, scoreboard, store
from lib.records.reader import NotYet, Recorded
from lib.records.schema import KernelRecord
from lib.show import shapes as shapes_page
from lib.show.version import Version

RULE = RULES["hopper"]
TUNED = RULE.variants[0]
CUBE = (4096, 4096, 4096)


@pytest.fixture(autouse=True)
def anew():
    """Choices are kept for the process."""
    launched._choice.cache_clear()
    yield
    launched._choice.cache_clear()


@pytest.fixture
def stored(monkeypatch):
    """Some of what is recorded of the rule, as if it were measured today, of today's choices."""
    record = store.load(KernelRecord, "H100", "hopper")
    one = record.variants[TUNED.name]
    rows = []
    shapes = {CUBE, (2048,) * 3, one.timeline.shape}
    few = next(row for row in one.bench if row.instantiation.startswith("few_tiles<"))
    for row in [few, *(row for row in one.bench if row.shape in shapes)]:
        expression, chosen = launched.chosen(RULE, TUNED, row.shape)
        rows.append(structs.replace(row, instantiation=expression, chosen=chosen))
    found = structs.replace(one, bench=rows)
    record = structs.replace(record, variants={TUNED.name: found})
    monkeypatch.setattr(store, "load", lambda kind, key, stem="", root=None: record)
    return found


def of_shape(stored, shape):
    return next(row for row in stored.bench if row.shape == shape)


def prefer(monkeypatch, name, shape):
    """Make the rule take a candidate on one shape."""
    ranked = cost.ranked

    def other(kernel, variant, problem, costs=cost.H100):
        found = ranked(kernel, variant, problem, costs)
        if (problem.M, problem.N, problem.K) == shape:
            found.sort(key=lambda one: one.name != name)
        return found

    monkeypatch.setattr(cost, "ranked", other)
    launched._choice.cache_clear()


def second(shape):
    """What the rule would take next on a shape."""
    return cost.ranked(RULE, TUNED, TUNED.problem(*shape))[1].name


def test_rows_of_today_are_current(stored):
    assert store.current(RULE, TUNED.name, stored) is stored
    assert not store.changed(RULE, TUNED.name, stored)


def test_another_set_of_candidates_that_keeps_a_choice_leaves_its_row_current(stored):
    found = structs.replace(stored, launch="0" * 16)
    assert store.current(RULE, TUNED.name, found) is found


def test_another_choice_makes_its_row_stale_and_no_other(stored, monkeypatch):
    counted = [one for one in stored.counters if one.shape == CUBE]
    assert counted
    prefer(monkeypatch, second(CUBE), CUBE)
    found = store.current(RULE, TUNED.name, stored)
    assert [row.shape for row in found.bench] == [
        row.shape for row in stored.bench if row.shape != CUBE]
    assert list(found.counters) == [one for one in stored.counters if one.shape != CUBE]
    assert found.timeline == stored.timeline
    changed = [row.shape for row in stored.bench if store.row_changed(found, row)]
    assert changed == [CUBE] and store.changed(RULE, TUNED.name, stored)


def test_a_timeline_goes_with_the_row_of_its_shape(stored, monkeypatch):
    shape = stored.timeline.shape
    prefer(monkeypatch, second(shape), shape)
    assert store.current(RULE, TUNED.name, stored).timeline is None


def test_another_source_makes_the_rows_stale_that_it_is_of(stored, monkeypatch, tmp_path):
    """Also of a candidate that is not the first, whose source the variant's own hash has not."""
    copy = tmp_path / "cuda"
    shutil.copytree(CUDA, copy)
    source = copy / "22_few_tiles.cu"
    source.write_text(source.read_text() + "\n__device__ int more;\n")
    monkeypatch.setattr(spec, "CUDA", copy)
    found = store.current(RULE, TUNED.name, stored)
    of_22 = {row.shape for row in stored.bench if row.instantiation.startswith("few_tiles<")}
    assert of_22 and {row.shape for row in stored.bench} - {
        row.shape for row in found.bench} == of_22
    assert RULE.hash(TUNED) == stored.hash


def test_another_launch_of_the_same_code_makes_a_row_stale(stored):
    candidate = RULE.variant(TUNED.candidates[0])
    other = dataclasses.replace(candidate, shared_bytes=candidate.shared_bytes + 16)
    assert RULE.hash(other) == RULE.hash(candidate)
    assert launched.candidate_hash(RULE, other) != launched.candidate_hash(RULE, candidate)


def test_rows_that_do_not_say_what_they_are_of_are_judged_together(stored):
    unsaid = structs.replace(
        stored, bench=[structs.replace(row, chosen=None) for row in stored.bench])
    now = structs.replace(unsaid, launch=launched.launch_hash(RULE, TUNED))
    assert store.current(RULE, TUNED.name, now) is now
    assert store.current(RULE, TUNED.name, structs.replace(now, launch="0" * 16)) is None


def test_a_page_has_what_is_current_and_says_of_the_rest_that_it_is_not_recorded(
        stored, monkeypatch):
    prefer(monkeypatch, second(CUBE), CUBE)
    assert Recorded("hopper", "H100", fresh=True).bench(2048)
    assert Recorded("hopper", "H100").bench(CUBE[0]) is of_shape(stored, CUBE)
    for missing in ("bench", "counters"):
        with pytest.raises(NotYet if missing == "bench" else store.NotRecorded):
            getattr(Recorded("hopper", "H100", fresh=True), missing)(CUBE[0])


def test_a_page_says_where_the_rule_chooses_another_today(stored, monkeypatch):
    said = shapes_page._with_other_choices(Version("hopper"))
    assert "chooses another" not in said
    prefer(monkeypatch, second(CUBE), CUBE)
    assert shapes_page._with_other_choices(Version("hopper")) == (
        f"{said}; `tuned`: on 1 of {len(stored.bench)} shapes the rule chooses another "
        "instantiation today")


def test_before_a_release_it_is_said_of_how_many_shapes_rows_are_stale(stored, monkeypatch):
    record = store.load(KernelRecord, "H100", "hopper")
    assert list(scoreboard._stale([record])) == []
    prefer(monkeypatch, second(CUBE), CUBE)
    assert list(scoreboard._stale([record])) == [
        f"hopper/tuned on H100 is stale on 1 of {len(stored.bench)} shapes: "
        "python -m lib record hopper"]


def test_only_the_shapes_of_another_choice_are_measured_again(stored, monkeypatch):
    def missing():
        return [task.shape for task in record.missing(
            ["hopper"], lambda kernel, variant: variant.name == TUNED.name, "H100")
            if task.kind == tasks.BENCH]

    before = missing()
    prefer(monkeypatch, second(CUBE), CUBE)
    assert CUBE not in before and {*missing()} - {*before} == {CUBE}
