"""Records of the schema before: brought over without what was not true, and with all else."""

import copy
import json

import pytest

from lib.__main__ import main
from lib.records import migrate, schema
from lib.records import store as records
from tests import built

NVML = {"sm_clock_mhz": 1755.0, "power_w": None}


def before(document):
    """A record as schema 2 had it: NVML's readings, no clock of the launches, nothing sustained."""
    old = copy.deepcopy(document) | {"schema": migrate.BEFORE}
    for variant in old["variants"].values():
        for row in variant["bench"]:
            strip(row)
            row.pop("sustained")
            row |= NVML
            for part in (row["alone"], row["cublas_alone"], *row["other_inputs"]):
                part |= NVML
            row["turns"][0]["sm_clock_mhz"] = None
            row["energy"] |= {"sm_clock_mhz": 1335.0, "cublas_sm_clock_mhz": 1330.0}
    return old | {"digest": records.digest(old)}


def strip(value):
    """Take all clocks out of a part of a record."""
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            strip(one)
    if isinstance(value, dict):
        for key in ("clock", "cublas_clock"):
            value.pop(key, None)


def put(document, root):
    file = records.path("H100", document["kernel"], root)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))
    return file


def test_all_but_nvml_s_readings_is_kept_and_sealed(tmp_path):
    old = before(built.record())
    file = put(old, tmp_path)
    with pytest.raises(records.RecordError, match="schema 2, this code reads 3"):
        records.read(file)
    assert migrate.migrate(tmp_path) == [file]
    text = file.read_text()
    made = records.read(file)
    assert "mhz" not in text and "power_w" not in text
    row = made.variants["coalesced"].bench[0]
    assert row.clock is row.alone.clock is row.turns[0].clock is row.sustained is None
    assert row.joules == (0.6, 0.3) and row.temperature_c == 55.0 and row.throttle == []
    new = json.loads(text)
    for document in (old, new):
        del document["digest"], document["schema"]
    for variant in old["variants"].values():  # what else it had is there, number for number
        for row in variant["bench"]:
            for part in (row, row["alone"], row["cublas_alone"], *row["other_inputs"],
                         *row["turns"], row["energy"]):
                for key in ("sm_clock_mhz", "power_w", "cublas_sm_clock_mhz"):
                    part.pop(key, None)
    assert new == old
    # Once is enough.
    assert migrate.migrate(tmp_path) == [] and file.read_text() == text


def test_an_edited_record_is_not_sealed_anew(tmp_path):
    old = before(built.record())
    old["variants"]["coalesced"]["bench"][0]["temperature_c"] = 30.0
    file = put(old, tmp_path)
    text = file.read_text()
    with pytest.raises(records.RecordError, match="01_naive.json can't be migrated: it was edited"):
        migrate.migrate(tmp_path)
    assert file.read_text() == text


def test_what_is_no_record_of_the_schema_before_is_told():
    with pytest.raises(records.RecordError, match="schema 1, and only 2 is brought to 3"):
        migrate.migrated({"schema": 1})
    assert schema.SCHEMA == migrate.BEFORE + 1


def test_the_command_names_what_it_wrote(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(migrate, "RESULTS", tmp_path)
    file = put(before(built.record()), tmp_path)
    assert main(["results", "--migrate"]) == 0
    assert capsys.readouterr().out.strip() == str(file)
    assert main(["results", "--migrate"]) == 0
    assert "every record is of today's schema" in capsys.readouterr().out
    assert main(["results", "01_naive", "--migrate"]) == 2
