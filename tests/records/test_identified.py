"""Rows of a rule's record are given what they ran: where the record proves it, and there alone."""

import shutil

import pytest
from msgspec import structs

from lib.kernels.catalogue import RULES
from lib.paths import CUDA
from lib.records import launched, store
from lib.records.identified import identify
from lib.records.schema import KernelRecord

RULE = RULES["hopper"]
TUNED = RULE.variants[0]


@pytest.fixture
def recorded(tmp_path):
    """A folder of records with one of the rule as records once were, of all but a candidate."""
    record = store.load(KernelRecord, "H100", "hopper")
    one = record.variants[TUNED.name]
    expressions = {row.instantiation for row in one.bench}
    names = [name for name in TUNED.candidates
             if RULE.expression(RULE.variant(name)) in expressions]
    assert 1 < len(names) < len(TUNED.candidates)
    rows = [structs.replace(row, chosen=None) for row in one.bench]
    then = structs.replace(one, bench=rows, launch=launched.launch_hash_of(
        TUNED, *map(RULE.variant, names)))
    store.write(structs.replace(record, variants={TUNED.name: then}), tmp_path)
    return names


def read(folder):
    return store.load(KernelRecord, "H100", "hopper", folder).variants[TUNED.name]


def test_rows_have_the_fingerprint_of_the_candidate_that_they_are_of(recorded, tmp_path):
    before = read(tmp_path)
    (done,) = identify("hopper", {TUNED.name: recorded}, CUDA, tmp_path).values()
    made = read(tmp_path)
    said = [row for row in made.bench if row.chosen]
    assert done == {TUNED.name: len(said)} and said
    for row in said:
        assert row.chosen in {launched.candidate_hash(RULE, RULE.variant(name))
                              for name in recorded}
    assert structs.replace(made, bench=before.bench) == before
    assert [structs.replace(row, chosen=None) for row in made.bench] == before.bench


def test_a_row_of_other_source_stays_as_it_is(recorded, tmp_path):
    before = tmp_path / "cuda"
    shutil.copytree(CUDA, before)
    source = before / "22_few_tiles.cu"
    source.write_text(source.read_text() + "\n__device__ int more;\n")
    identify("hopper", {TUNED.name: recorded}, before, tmp_path)
    said = {row.instantiation.partition("<")[0] for row in read(tmp_path).bench if row.chosen}
    assert said and "few_tiles" not in said


def test_candidates_that_the_record_was_not_of_prove_nothing(recorded, tmp_path):
    before = read(tmp_path)
    for names in (recorded[::-1], recorded[1:]):
        with pytest.raises(ValueError, match="not recorded with these candidates"):
            identify("hopper", {TUNED.name: names}, CUDA, tmp_path)
    with pytest.raises(ValueError, match="no GPU has a record"):
        identify("hopper", {}, CUDA, tmp_path / "none")
    assert read(tmp_path) == before
