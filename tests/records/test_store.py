"""Records: written whole or not at all, read with care, stale when the source moved on."""

import copy
import json

import pytest

from lib.kernels.catalogue import CATALOGUE
from lib.records import scoreboard
from lib.records import store as records

NAIVE = CATALOGUE["01_naive"]


def made(stem="01_naive", size=1024):
    """A record as `lib.measure.record` makes them, small."""
    row = {"M": size, "N": size, "K": size, "dtype": "float32", "seconds": 1e-3, "spread": 0.01,
           "tflops": 2.0, "cublas_seconds": 5e-4, "cublas_tflops": 4.0, "ratio": 0.5}
    variants = {
        v.name: {"hash": NAIVE.hash(v), "arch": "sm_90a", "bench": [row]} for v in NAIVE.variants
    }
    return {
        "schema": records.SCHEMA, "kernel": stem,
        "gpu": {"key": "H100", "name": "NVIDIA H100", "driver": "1", "sms": 132,
                "memory_bytes": 1},
        "software": {}, "date": "2026-01-01", "revision": "abc", "variants": variants,
    }


def calibrated(source_hash):
    """A record of the calibration set, without its patterns."""
    record = made(records.CALIBRATION)
    del record["variants"]
    return {**record, "hash": source_hash, "metrics": [], "patterns": {}}


def test_what_is_written_is_read(tmp_path):
    file = records.write(made(), tmp_path)
    assert file == tmp_path / "h100" / "01_naive.json"
    assert records.load("H100", "01_naive", tmp_path) == made()
    assert list(file.parent.iterdir()) == [file]


def test_an_interrupted_write_leaves_the_old_record(tmp_path, monkeypatch):
    records.write(made(), tmp_path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(records.os, "replace", fail)
    changed = made()
    changed["date"] = "2027-01-01"
    with pytest.raises(OSError):
        records.write(changed, tmp_path)
    assert records.load("H100", "01_naive", tmp_path)["date"] == "2026-01-01"
    assert len(list((tmp_path / "h100").iterdir())) == 1


def test_nothing_recorded_is_none(tmp_path):
    assert records.load("H100", "01_naive", tmp_path) is None
    assert records.rows(tmp_path) == []


@pytest.mark.parametrize(
    "spoil, word",
    [
        (lambda text: text[: len(text) // 2], "torn"),
        (lambda text: "[]", "schema"),
        (lambda text: text.replace('"schema": 1', '"schema": 99'), "schema 99"),
        (lambda text: text.replace('"driver"', '"motor"'), "gpu.driver"),
        (lambda text: text.replace('"variants"', '"variations"'), "variants"),
        (lambda text: text.replace('"bench"', '"benches"'), r"variants\.coalesced\.bench"),
    ],
)
def test_a_spoilt_file_is_named_and_says_what_to_do(tmp_path, spoil, word):
    file = records.write(made(), tmp_path)
    file.write_text(spoil(file.read_text()))
    with pytest.raises(records.RecordError, match=word) as error:
        records.rows(tmp_path)
    assert "01_naive.json" in str(error.value) and "python -m lib record" in str(error.value)


def test_a_record_is_stale_when_the_hash_differs(tmp_path):
    record = made()
    record["variants"]["swapped"]["hash"] = "0" * 16
    records.write(record, tmp_path)
    stale = {row.variant: row.stale for row in records.rows(tmp_path)}
    assert stale == {"coalesced": False, "swapped": True}


def test_the_file_is_readable_in_a_diff(tmp_path):
    record = made()
    record["overview"] = [[1, 2, 3]] * 40
    text = records.write(record, tmp_path).read_text()
    assert json.loads(text) == record
    assert max(map(len, text.splitlines())) < 1000 and text.count("\n") > 10


def test_rows_have_the_documented_keys(tmp_path):
    records.write(made(), tmp_path)
    row = records.rows(tmp_path)[0]
    assert (row.kernel, row.gpu, row.M, row.ratio) == ("01_naive", "H100", 1024, 0.5)


def test_readme_s_table_is_made_from_the_records(tmp_path):
    record = copy.deepcopy(made())
    row = record["variants"]["coalesced"]["bench"][0]
    row.update(M=4096, N=4096, K=4096)
    record["variants"]["coalesced"]["bench"].append({**row, "M": 4096, "N": 33, "ratio": 0.9})
    records.write(record, tmp_path)
    text = f"above\n{scoreboard.BEGIN}\nold\n{scoreboard.END}\nbelow\n"
    new = scoreboard.readme_text(text, records.rows(tmp_path))
    assert "straight from global memory | H100 | 2.0 | 50.0% | – |" in new and "90" not in new
    assert "old" not in new and new.startswith("above") and new.endswith("below\n")
    records.write({**record, "gpu": {**record["gpu"], "key": "H200"}}, tmp_path)
    both = scoreboard.readme_text(text, records.rows(tmp_path))
    assert all(f"global memory | {gpu} | 2.0 | 50.0% | – |" in both for gpu in ("H100", "H200"))
    with pytest.raises(ValueError, match="put the markers back"):
        scoreboard.readme_text("nothing here", [])


def test_faults_name_stale_and_missing_records(tmp_path, monkeypatch):
    record = copy.deepcopy(made())
    record["variants"]["swapped"]["hash"] = "0" * 16
    records.write(record, tmp_path / "results")
    records.write(calibrated("0" * 16), tmp_path / "results")
    readme = tmp_path / "README.md"
    readme.write_text(f"{scoreboard.BEGIN}{scoreboard.END}")
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    found = "\n".join(scoreboard.faults(readme))
    assert "01_naive swapped on H100 is stale" in found
    assert "coalesced" not in found
    assert "02_shared_tile has no record" in found
    assert "calibration on H100 is stale: python -m lib record calibration" in found
    assert "README.md's table is old" in found


def test_faults_name_a_search_of_other_code(tmp_path, monkeypatch):
    search = copy.deepcopy(records.load("H100", records.SEARCH))
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    records.write(search)
    assert not any("search" in fault for fault in scoreboard.faults())
    hashes = search["searches"]["15_turing_limit/limit"]["hashes"]
    hashes["small"] = "0" * 16
    records.write(search)
    assert "the search of 15_turing_limit/limit on H100 is stale: python -m lib record search" in (
        scoreboard.faults())


def test_a_calibration_record_is_no_kernel_s(tmp_path):
    records.write(calibrated("0" * 16), tmp_path)
    assert records.load("H100", records.CALIBRATION, tmp_path)["patterns"] == {}
    assert records.rows(tmp_path) == []
    assert [r["kernel"] for r in records.every(tmp_path)] == [records.CALIBRATION]


def test_committed_records_are_sound():
    """Every record of the repository reads, and its kernels' numbers hang together."""
    for row in records.rows():
        assert row.tflops == pytest.approx(2 * row.M * row.N * row.K / row.seconds / 1e12)
        assert row.ratio == pytest.approx(row.tflops / row.cublas_tflops)


def test_older_ptx_on_a_gpu_has_rows_of_its_own(tmp_path):
    record = made()
    code = record["variants"]["coalesced"]
    code["ptx"] = {"sm_75": {"arch": "sm_90a", "bench": code["bench"]}}
    records.write(record, tmp_path)
    assert {row.ptx_arch for row in records.rows(tmp_path)} == {"sm_90a"}
    older = [row for row in records.all_rows(tmp_path) if row.ptx_arch != row.arch]
    assert [(row.variant, row.ptx_arch, row.arch) for row in older] == [
        ("coalesced", "sm_75", "sm_90a")
    ]
