"""Records under today's names of variants: current where the code is, stale where it isn't."""

import shutil

import pytest
from msgspec import structs

from lib.compiler.fingerprint import fingerprint
from lib.kernels.catalogue import find
from lib.kernels.source import edited
from lib.paths import CUDA
from lib.records import store
from lib.records.respelled import rename
from lib.records.schema import KernelRecord

STEM, NAME = "14_ldmatrix", "k8"
KERNEL = find(STEM)
LINE = "constexpr int PAIR = VEC == 8 ? 2 : 1;"
BARRIER = "__syncthreads();  // everyone has read them before they are overwritten"


@pytest.fixture
def recorded(tmp_path):
    """A folder of sources of then, changed as asked, and of records under the name of then."""
    def make(old="", new=""):
        before = tmp_path / "cuda"
        shutil.copytree(CUDA, before)
        source = before / f"{STEM}.cu"
        text = source.read_text()
        source.write_text(edited(text, old, new) if old else text)
        record = store.load(KernelRecord, "H100", STEM)
        stored = record.variants[NAME]
        expression = KERNEL.expression(KERNEL.variant(NAME))
        then = structs.replace(
            stored, hash=fingerprint(source, expression),
            timeline=structs.replace(
                stored.timeline, hash=fingerprint(source, expression, marks=True)))
        store.write(structs.replace(record, variants={"then": then}), tmp_path)
        return before
    return make


@pytest.mark.parametrize("change", [
    (), ("// Runs on:", "// Ran on:"), (LINE, LINE.replace("2 : 1", "1 + 1 : 1"))])
def test_the_same_code_stays_current_under_another_name(recorded, tmp_path, change):
    before = recorded(*change)
    (done,) = rename(STEM, {"then": NAME}, before, tmp_path).values()
    assert done == {NAME: True}
    made = store.load(KernelRecord, "H100", STEM, tmp_path)
    stored = store.load(KernelRecord, "H100", STEM)
    assert made.variants[NAME] == stored.variants[NAME] and made.date == stored.date


def test_other_code_stays_stale(recorded, tmp_path):
    before = recorded(BARRIER, ";")
    (done,) = rename(STEM, {"then": NAME}, before, tmp_path).values()
    assert done == {NAME: False}


def test_code_that_is_not_that_of_the_record_proves_nothing(recorded, tmp_path):
    before = recorded(LINE, LINE.replace("2 : 1", "1 + 1 : 1"))
    (before / f"{STEM}.cu").write_text((CUDA / f"{STEM}.cu").read_text())
    (done,) = rename(STEM, {"then": NAME}, before, tmp_path).values()
    assert done == {NAME: False}


def test_a_variant_may_be_left_out_and_a_name_must_be_known(recorded, tmp_path):
    before = recorded()
    for names, why in (({"none": NAME}, "no variant none"), ({"then": "none"}, "unknown variant")):
        with pytest.raises(ValueError, match=why):
            rename(STEM, names, before, tmp_path)
    with pytest.raises(ValueError, match="no GPU has a record of 13"):
        rename("13_wmma_vectorized", {}, before, tmp_path)
    (done,) = rename(STEM, {"then": ""}, before, tmp_path).values()
    assert done == {}


def test_a_search_is_renamed_with_its_variants(tmp_path):
    kinds = store.load(KernelRecord, "H100", "15_turing_limit")
    search = next(one for one in store.every() if one.kernel == "search")
    tuned = find("15_turing_limit").variants[0]
    then = search.searches[f"15_turing_limit/{tuned.name}"]
    first, second = tuned.candidates
    old = structs.replace(
        then, hashes={"then": then.hashes[first], second: then.hashes[second]},
        rows=[structs.replace(row, seconds={"then": row.seconds[first],
                                            second: row.seconds[second]}) for row in then.rows])
    store.write(structs.replace(search, searches={"15_turing_limit/then": old}), tmp_path)
    variants = {"then" if name == first else name: one for name, one in kinds.variants.items()}
    store.write(structs.replace(kinds, variants=variants), tmp_path)
    rename("15_turing_limit", {"then": first}, CUDA, tmp_path)
    made = next(one for one in store.every(tmp_path) if one.kernel == "search")
    assert made.searches == {f"15_turing_limit/{first}": then}
