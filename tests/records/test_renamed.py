"""Records of unchanged code under another name, and of changed code, which stay where they are."""

import pytest
from msgspec import structs

from lib.__main__ import main
from lib.records import renamed, store
from lib.records.schema import KernelRecord, Pair

STEM, OLD = "03_strip", "05_strip"
STORED = store.load(KernelRecord, "H100", STEM)


def written(root, **changes):
    """Write 03's record as that of another stem."""
    return store.write(structs.replace(STORED, **{"kernel": OLD, **changes}), root)


def test_a_record_moves_with_all_that_it_holds(tmp_path):
    old = written(tmp_path)
    assert renamed.rename(OLD, STEM, tmp_path) == [store.path("H100", STEM, tmp_path)]
    assert not old.exists() and store.load(KernelRecord, "H100", STEM, tmp_path) == STORED


def test_variants_are_known_by_their_code(tmp_path):
    names = {"columns_first": "one", "strips_first": "columns_first"}
    variants = {names[name]: STORED.variants[name] for name in names}
    first = variants["one"]
    row = first.bench[0]
    pair = Pair(variant="columns_first", seconds=row.seconds, spread=row.spread,
                tflops=row.tflops, cublas_seconds=row.cublas_seconds, ratio=row.ratio)
    rows = [structs.replace(row, pair=pair), *first.bench[1:]]
    variants["one"] = structs.replace(first, bench=rows)
    written(tmp_path, variants=variants)
    renamed.rename(OLD, STEM, tmp_path)
    found = store.load(KernelRecord, "H100", STEM, tmp_path)
    assert list(found.variants)[:2] == ["columns_first", "strips_first"]
    assert found.variants["columns_first"].bench[0].pair.variant == "strips_first"
    assert found.variants["strips_first"] == STORED.variants["strips_first"]


def test_other_code_is_refused_and_nothing_moves(tmp_path):
    first = STORED.variants["columns_first"]
    old = written(tmp_path, variants={
        **STORED.variants, "columns_first": structs.replace(first, hash="0123456789abcdef")})
    with pytest.raises(ValueError, match="05_strip/columns_first .* python -m lib record 03_strip"):
        renamed.rename(OLD, STEM, tmp_path)
    assert list(tmp_path.glob("*/*.json")) == [old]


def test_another_launch_is_refused(tmp_path):
    first = STORED.variants["columns_first"]
    written(tmp_path, variants={
        **STORED.variants, "columns_first": structs.replace(first, launch="0123456789abcdef")})
    with pytest.raises(ValueError, match="05_strip/columns_first"):
        renamed.rename(OLD, STEM, tmp_path)


def test_what_is_not_there_or_already_there_is_told(tmp_path):
    with pytest.raises(ValueError, match="no GPU has a record of 05_strip"):
        renamed.rename(OLD, STEM, tmp_path)
    written(tmp_path)
    store.write(STORED, tmp_path)
    with pytest.raises(ValueError, match="is there already"):
        renamed.rename(OLD, STEM, tmp_path)


def test_an_edited_record_is_refused(tmp_path):
    file = written(tmp_path)
    file.write_text(file.read_text().replace('"registers": 49', '"registers": 48'))
    with pytest.raises(store.RecordError, match="was edited"):
        renamed.rename(OLD, STEM, tmp_path)


def test_the_command_takes_two_names_alone(capsys):
    assert main(["record", "--migrate", "05_nothing", STEM]) == 2
    assert "no GPU has a record of 05_nothing" in capsys.readouterr().err
    assert main(["record", STEM, "--migrate", OLD, STEM]) == 2
    assert "nothing else" in capsys.readouterr().err
