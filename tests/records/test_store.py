"""Records: written whole or not at all, read with care, stale when the source moved on."""

import copy
import dataclasses
import datetime
import json
import os
import pickle
import re
import subprocess
import sys
from itertools import cycle

import pytest
from msgspec import structs

from lib.__main__ import main
from lib.gpus import GPUS
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.paths import ROOT
from lib.records import sanitizer, schema, scoreboard, seal
from lib.records import store as records
from lib.records.launched import launch_hash
from lib.records.schema import KernelRecord, Search, SearchRecord
from lib.show import foreign
from tests import built
from tests.built import calibrated, machine, row, timeline
from tests.built import record as made
from tests.full import no_room
from tests.tables import cases, settings

NAIVE = CATALOGUE["01_naive"]


def test_what_is_written_is_read(tmp_path):
    file = built.write(made(), tmp_path)
    assert file == tmp_path / "h100" / "01_naive.json"
    found = records.load(KernelRecord, "H100", "01_naive", tmp_path)
    assert found == built.sealed(made())
    assert {**built.document_of(found), "digest": None} == {**made(), "digest": None}
    assert list(file.parent.iterdir()) == [file]


def test_a_full_disk_leaves_the_old_record(tmp_path):
    built.write(made(), tmp_path)

    changed = made()
    changed["date"] = "2026-11-23"
    with no_room(), pytest.raises(OSError):
        built.write(changed, tmp_path)
    assert records.load(KernelRecord, "H100", "01_naive", tmp_path).date == made()["date"]
    assert len(list((tmp_path / "h100").iterdir())) == 1


@cases(r"""
old              | new                 | word
"schema": 4      | "schema": 99        | schema 99
"schema": 4      | "schema": 3         | schema 3, this code reads 4
"schema": 4      | "schema": true      | schema True
"driver":        | "motor":            | `driver` at \$\.gpu|`motor`
"variants":      | "variations":       | `variants`|`variations`
"bench":         | "benches":          | variants\.coalesced|benches
"seconds": 0.001 | "seconds": NaN      | torn
"seconds": 0.001 | "seconds": "fast"   | got `str` at \$\.variants\.coalesced\.bench\[0\]\.seconds
"seconds": 0.001 | "seconds": -0.001   | > 0
HBM3             | <b>HBM3             | regex .* at \$\.gpu\.name
                 | None                | torn
                 |                     | torn
                 | []                  | schema None
                 | null                | schema None
""")
def test_a_spoilt_file_is_named_and_says_what_to_do(tmp_path, old, new, word):
    """A text in the place of another, or of the whole; half of the whole."""
    file = built.write(made(), tmp_path)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new) if old else text[:len(text) // 2] if new is None
                    else new)
    with pytest.raises(records.RecordError, match=word) as error:
        records.rows(tmp_path)
    assert "01_naive.json" in str(error.value) and "python -m lib record" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_nested_past_all_bounds_is_refused(tmp_path):
    built.write(made(), tmp_path).write_text("[" * 200_000)
    with pytest.raises(records.RecordError, match="torn|schema None"):
        records.rows(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_a_record_s_place_is_refused_and_not_waited_for(make, tmp_path):
    (tmp_path / "h100").mkdir()
    make(tmp_path / "h100" / "01_naive.json")
    make(tmp_path / "sanitizer.json")
    for read in (lambda: records.rows(tmp_path),
                 lambda: records.load(KernelRecord, "H100", "01_naive", tmp_path)):
        with pytest.raises(records.RecordError, match="it is no regular file.*only the file"):
            read()
    with pytest.raises(records.RecordError, match="sanitizer.json.*no regular file"):
        sanitizer.read(tmp_path / "sanitizer.json")


def test_numbers_past_every_float_are_refused(tmp_path):
    file = built.write(made(), tmp_path)
    document = json.loads(file.read_text())
    for one in next(iter(document["variants"].values()))["bench"]:
        one["M"] = 10**400
    file.write_bytes(seal.of_document(document))
    with pytest.raises(records.RecordError, match=f"{file} (holds numbers|does not fit)"):
        records.rows(tmp_path)


def test_a_torn_record_of_others_kernels_is_named(tmp_path):
    (tmp_path / "foreign.json").write_text('{"a": ')
    with pytest.raises(records.RecordError, match="foreign.json (is torn|does not fit)"):
        foreign.recorded(tmp_path / "foreign.json")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk_names_the_file_that_was_written(capsys):
    assert main(["export", "01_naive", "--shape", "64", "--out", "/dev/full"]) == 2
    assert capsys.readouterr().err == "error: /dev/full: No space left on device\n"


def test_a_record_in_another_s_place_is_refused(tmp_path):
    file = built.write(made(), tmp_path)
    for place in (file.with_name("02_shared_tile.json"), tmp_path / "t4" / file.name):
        place.parent.mkdir(exist_ok=True)
        file.rename(place)
        with pytest.raises(records.RecordError, match="is of 01_naive on H100, and belongs in "):
            records.rows(tmp_path)
        place.rename(file)


def test_a_figure_edited_by_hand_is_noticed(tmp_path):
    """Though it hangs together: speed, time and ratio are all changed."""
    file = built.write(made(), tmp_path)
    digest = records.read(file).digest
    other = seal.sealed(built.parsed(made(rows=[row(seconds=9e-4)]))).decode()
    file.write_text(re.sub('(?<="digest": ")[0-9a-f]+', digest, other))
    with pytest.raises(records.RecordError, match="edited since it was written"):
        records.rows(tmp_path)


@pytest.mark.parametrize("find, put, line", [
    # A figure that JSON's readers drop, since the key comes again.
    ('"registers": 32', '"registers": 99, "registers": 32', '"registers": 99, "registers": 32'),
    ('"seconds": 0.001,', '"seconds": 1e-3,', '"seconds": 1e-3,'),
    ('"K": 1024,', '"K": 1024,  ', '"K": 1024,'), ("}\n", "}\n\n", ""),
    ('"chunk": ', '"pair": null, "chunk": ', '"pair": null, "chunk": '),
])
def test_a_file_that_says_more_than_is_read_of_it_is_refused_with_the_line(
        tmp_path, find, put, line):
    file = built.write(made(rows=[built.plain(row())]), tmp_path)
    text = file.read_text()
    at = text.rindex(find)
    file.write_text(text[:at] + put + text[at + len(find):])
    number = text[:at].count("\n") + (3 if find == "}\n" else 1)
    with pytest.raises(records.RecordError) as refused:
        records.read(file)
    assert f"its line {number} is '{line.strip()[:10]}" in str(refused.value)
    file.write_text(text)
    assert records.read(file)


def doubled(record):
    """Twice the speed, and all that follows from it."""
    for variant in record["variants"].values():
        for one in variant["bench"]:
            one |= {"seconds": one["seconds"] / 40, "tflops": one["tflops"] * 40,
                    "ratio": one["ratio"] * 40}


def older(record):
    """With a row of older code whose ratio can't be."""
    variant = record["variants"]["coalesced"]
    variant["ptx"] = {"sm_75": {**built.older_code(variant), "bench": [row() | {"ratio": 2.0}]}}


@cases("""
spoil              | word
doubled            | above the H100's peak of 66.9
row tflops=3.0     | FLOP in 0.001 s are
row cublas_tflops=3.0 | cublas_tflops
row ratio=0.6      | ratio is 0.6
gpu name=NVIDIA H200 | gpu.key is H100 and gpu.name NVIDIA H200
gpu sms=264        | sms is 264
older              | coalesced as sm_75, 1024×1024×1024: ratio is 2
""")
def test_what_can_t_be_is_neither_written_nor_read(tmp_path, spoil, word):
    record = copy.deepcopy(made())
    into, _, changes = spoil.partition(" ")
    if changes:
        {"gpu": record["gpu"], "row": record["variants"]["coalesced"]["bench"][0]}[into].update(
            settings(changes))
    else:
        {"doubled": doubled, "older": older}[spoil](record)
    with pytest.raises(records.RecordError, match=word):
        built.write(record, tmp_path)
    assert not (tmp_path / "h100").exists()
    built.put(record, tmp_path)
    with pytest.raises(records.RecordError, match=word):
        records.rows(tmp_path)


def test_what_fits_no_schema_is_not_written(tmp_path):
    record = built.parsed(made())
    unfit = structs.replace(record, gpu=structs.replace(record.gpu, name="<b>H100"))
    with pytest.raises(records.RecordError, match=r"01_naive does not fit .*regex .*not written"):
        records.write(unfit, tmp_path)
    assert not (tmp_path / "h100").exists()


def places(value, at=()):
    """Where each key of a document is, one of each list's items standing for all."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, item in items:
        yield (*at, key)
        if isinstance(item, dict | list):
            yield from places(item, (*at, key))


def spoilt_in_turn(sound):
    """The record with each key gone, null, and now and then with a value of another type.

    msgspec reads all keys alike: where it tells one wrong type, it tells each.
    """
    others, turns = cycle(("a text", 7, [], {}, True)), cycle((True, False, False))
    for *into, last in places(sound):
        for value in ("gone", None, *([next(others)] if next(turns) else [])):
            changed = pickle.loads(pickle.dumps(sound))  # a quicker copy than copy's
            inside = changed
            for key in into:
                inside = inside[key]
            if value == "gone":
                del inside[last]
            elif type(value) is type(inside[last]) or (value, type(inside[last])) == (7, float):
                continue
            else:
                inside[last] = value
            yield ".".join(map(str, (*into, last))), value, changed


def of_one_variant():
    """A version's record, quicker to spoil."""
    record = made()
    del record["variants"]["swapped"]
    return record


@pytest.mark.parametrize("made_of", [of_one_variant, calibrated, machine])
def test_no_key_may_go_or_change_its_type(made_of, capsys, results):
    """Each gives one line and status 2; sealed again, so does each but what a record may lack."""
    sound = built.document_of(built.parsed(made_of()))
    file = records.path("H100", sound["kernel"])
    file.parent.mkdir(parents=True)
    allowed, null = set(), set()
    for place, value, spoilt in spoilt_in_turn(sound):
        if place != "digest" and value == "gone":
            file.write_text(json.dumps(spoilt))
            with pytest.raises(records.RecordError) as refused:
                records.rows()
            assert "\n" not in str(refused.value) and file.name in str(refused.value)
            if "." not in place:  # it says in one way what is raised
                assert main(["results"]) == 2
                said = capsys.readouterr().err
                assert said.startswith("error: ") and said.count("\n") == 1 and file.name in said
        file.write_bytes(seal.of_document(spoilt))
        try:
            records.read(file)
        except records.RecordError as error:
            assert "\n" not in str(error)
        else:
            allowed.add(place)
            null |= {place} if value is None else set()
            list(scoreboard.lines(records.rows()))
    # Nothing but what could not be read is null.
    assert not any(place.endswith((".timeline", ".alone", ".sustained", ".clock",
                                   ".ptx")) for place in null)
    required = {"schema", "kernel", "gpu.key", "gpu.sms", "software.cublas", "date", "revision"}
    assert "digest" in allowed and not allowed & required
    assert not any(place.endswith((".seconds", ".ratio", ".hash", ".M")) for place in allowed)


def test_records_are_utf_8_whatever_the_locale(tmp_path):
    """A sound file must not be called torn where the locale is C."""
    record = made()
    record["method"]["bench"] = "rotated over 3× the L2"
    file = built.write(record, tmp_path)
    code = ("import sys; from pathlib import Path; from lib.records import store;"
            "file = Path(sys.argv[1]); made = store.read(file); file.unlink();"
            "store.write(made, file.parent.parent)")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": ""}
    subprocess.run([sys.executable, "-c", code, file], check=True, cwd=ROOT, env=plain)
    assert "3× the L2" in file.read_text(encoding="utf-8")
    assert records.read(file) == built.sealed(record)


def test_neither_the_library_nor_the_emulator_loads_what_validates():
    code = "import sys, lib, lib.ptx, lib.compiler.raw_module; sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_schema_is_documented():
    documented = schema.documentation()["$defs"]
    assert {"KernelRecord", "Row", "Rival", "SearchRecord"} <= set(documented)
    assert "best" in documented["Rival"]["required"]
    assert all(part.get("description") for part in documented.values())


@pytest.mark.parametrize("fields", [
    {"hash": "0" * 16}, {"timeline": timeline("0" * 16)}, {"launch": "0" * 16}])
def test_a_record_of_other_code_marks_or_launch_is_stale(fields, tmp_path):
    """A timeline depends on the marks in the source, a time doesn't."""
    record = made()
    record["variants"]["coalesced"] |= fields
    built.write(record, tmp_path)
    assert {row.variant: row.stale for row in records.rows(tmp_path)} == {
        "coalesced": True, "swapped": False}
    assert NAIVE.hash(NAIVE.variants[0], marks=True) != NAIVE.hash(NAIVE.variants[0])


def test_what_is_said_of_a_variant_is_no_part_of_its_launch():
    variant = NAIVE.variants[0]
    for change in ({"block": (16, 16)}, {"shared_bytes": 64},
                   {"schedule": dataclasses.replace(variant.schedule, tile=(64, 16))}):
        other = dataclasses.replace(variant, **change)
        assert launch_hash(NAIVE, other) != launch_hash(NAIVE, variant)
    renamed = dataclasses.replace(variant, meaning="else")
    assert launch_hash(NAIVE, renamed) == launch_hash(NAIVE, variant)


def test_the_file_is_readable_in_a_diff(tmp_path):
    record = made()
    record["variants"]["coalesced"]["counters"] = [
        {"M": size, "N": 8, "K": 8, "metrics": {f"metric_{i}": i for i in range(40)}}
        for size in range(1, 10)]
    text = built.write(record, tmp_path).read_text()
    assert {**json.loads(text), "digest": None} == {**record, "digest": None}
    assert max(map(len, text.splitlines())) < 1000 and text.count("\n") > 10


@pytest.mark.parametrize("dates, said", [
    (["2026-11-22"], "2026-11-22"),
    (["2026-11-23", "2026-11-21", "2026-11-22"], "2026-11-21 to 23"),
    (["2026-11-30", "2026-12-01"], "2026-11-30 to 12-01"),
    ({"2027-01-02", "2026-12-30"}, "2026-12-30 to 2027-01-02"),
])
def test_days_are_told_as_a_span(dates, said):
    assert records.span(dates) == said


def test_faults_name_stale_and_missing_records(tmp_path, monkeypatch):
    record = copy.deepcopy(made())
    record["variants"]["swapped"]["hash"] = "0" * 16
    built.write(record, tmp_path / "results")
    built.write(calibrated("0" * 16), tmp_path / "results")
    readme = tmp_path / "README.md"
    readme.write_text(f"{scoreboard.ANSWER_BEGIN}{scoreboard.ANSWER_END}"
                      f"{scoreboard.BEGIN}{scoreboard.END}")
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    found = "\n".join(scoreboard.faults(readme))
    assert "01_naive/swapped on H100 is stale" in found
    assert "coalesced" not in found
    assert "02_shared_tile has no record" in found
    assert "16_cp_async has no record" in found
    assert "27_tcgen05" not in found  # no GPU with a record runs it
    assert "calibration on H100 is stale: python -m lib record calibration" in found
    assert "README.md's table is old" in found


def test_what_only_a_gpu_without_records_runs_is_not_missing(monkeypatch, results):
    assert "27_tcgen05 has no record: python -m lib record 27_tcgen05" in scoreboard.faults()
    gpu = {**machine()["gpu"], "key": "A100", "name": GPUS["A100"].name, "sms": GPUS["A100"].sms}
    monkeypatch.setattr(records, "every", lambda *_: [built.parsed({**machine(), "gpu": gpu})])
    found = "\n".join(scoreboard.faults())
    assert "16_cp_async has no record" in found and "17_wgmma" not in found


def test_faults_name_what_can_t_be_trusted(results):
    ahead = datetime.date.today() + datetime.timedelta(days=40)
    file = built.write({**made(), "date": ahead.isoformat()})
    built.write(made("02_shared_tile"))
    built.write({**machine(), "date": "2026-11-20", "revision": "abc-dirty"})
    found = "\n".join(scoreboard.faults())
    assert f"01_naive on H100 can't be right: its date {ahead} is in the future" in found
    assert "machine on H100 can't be right: its date 2026-11-20 is before" in found
    assert ("machine on H100 names a commit that isn't all of what was measured: python -m lib "
            "record machine") in found
    assert "01_naive on H100 names a commit" not in found
    assert "cuBLAS has no record on H100: python -m lib record cublas" in found
    file.write_text(file.read_text().replace('"spread": 0.01', '"spread": 0.001'))
    assert main(["results", "--check"]) == 2
    file.write_text(json.dumps(made()))
    with pytest.raises(records.RecordError, match="has no digest"):
        records.read(file)


def test_faults_name_a_search_of_other_code(tmp_path, monkeypatch):
    search = records.load(SearchRecord, "H100")
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    records.write(search)
    assert not any("the search of" in fault for fault in scoreboard.faults())
    document = built.document_of(search)
    document["searches"]["15_turing_limit/tile_128x256"]["hashes"]["tile_64x128"] = "0" * 16
    built.write(document)
    stale = "the search of 15_turing_limit/tile_128x256 on H100 is stale"
    assert f"{stale}: python -m lib record search" in scoreboard.faults()


def test_a_search_is_of_its_own_variant_s_candidates():
    kernel = KERNELS["hopper"]
    searched = [variant for variant in kernel.variants if variant.candidates]
    assert len(searched) > 1
    for variant in searched:
        name = f"{kernel.stem}/{variant.name}"
        hashes = {each: kernel.hash(kernel.variant(each)) for each in variant.candidates}
        assert not records.searched_other_code(name, Search(hashes=dict(hashes), rows=[]))
        hashes.popitem()
        assert records.searched_other_code(name, Search(hashes=hashes, rows=[]))


def test_records_of_kernels_that_are_gone_come_last(tmp_path):
    for stem in ("00_gone", "02_shared_tile", "01_naive"):
        built.write({**made(), "kernel": stem}, tmp_path)
    assert [r.kernel for r in records.every(tmp_path)] == [
        "01_naive", "02_shared_tile", "00_gone",
    ]


def test_committed_records_are_sound():
    """Every record of the repository reads, its numbers hang together and its digest holds."""
    for one in records.rows():
        assert one.tflops == pytest.approx(2 * one.M * one.N * one.K / one.seconds / 1e12)
        assert one.ratio == pytest.approx(one.tflops / one.cublas_tflops)
    for record in records.every():
        file = records.path(record.gpu.key, record.kernel)
        assert seal.sealed(record) == file.read_bytes(), file


def test_older_ptx_on_a_gpu_has_rows_of_its_own(tmp_path):
    record = made()
    code = record["variants"]["coalesced"]
    code["ptx"] = {"sm_75": built.older_code(code)}
    built.write(record, tmp_path)
    older = [row for row in records.rows(tmp_path) if row.ptx_arch != row.arch]
    assert [(row.variant, row.ptx_arch, row.arch) for row in older] == [
        ("coalesced", "sm_75", "sm_90a")
    ]
