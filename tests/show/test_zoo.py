"""The race zoo: each mistake is told where it stands, and each cure is clean."""

from __future__ import annotations

import json
import re

import pytest
from msgspec import structs

from lib.__main__ import main
from lib.measure import sanitizer, sentryward
from lib.records import sanitizer as records
from lib.records import sentryward as proofs
from lib.show import columns
from lib.show import zoo as model

SPECIMENS = {one.name: one for one in model.specimens()}


@pytest.mark.parametrize("name", SPECIMENS)
def test_the_mistake_is_told_in_the_kernel_s_own_lines(name):
    specimen = SPECIMENS[name]
    verdict = model.found(specimen)
    assert specimen.expects(verdict.kind)
    if specimen.says == model.MISSED:
        return
    text = specimen.path.read_text().splitlines()
    assert verdict.lines and all(0 < line <= len(text) for line in verdict.lines)
    assert not any(text[line - 1].startswith("//") for line in verdict.lines)


@pytest.mark.parametrize("name", SPECIMENS)
def test_the_cure_is_clean_in_every_order(name):
    assert model.cured_clean(SPECIMENS[name])


def test_there_are_many_and_each_is_told_in_sentences():
    assert len(SPECIMENS) >= 80
    for one in SPECIMENS.values():
        assert one.mistake.endswith(".") and one.cure.endswith(".")
        assert "CURED" in one.path.read_text()
        assert all(re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+", link)
                   for link in one.seen)
    assert sum(bool(one.seen) for one in SPECIMENS.values()) >= 50


def test_a_comment_that_lacks_a_part_is_refused(tmp_path):
    path = tmp_path / "half.cu"
    path.write_text("// Mistake: none.\n__global__ void half() {}\n")
    with pytest.raises(ValueError, match="half.cu: its first comment lacks"):
        model._read(path)


def test_the_command_tells_and_fails_where_a_mistake_goes_unseen(capsys, monkeypatch):
    assert main(["zoo", "missing_barrier", "no_tail_guard"]) == 0
    out = capsys.readouterr().out
    assert "missing_barrier" in out and "OutOfBounds" in out and "2 kernels" in out
    assert main(["zoo", "missing_barrier", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["format"] == model.FORMAT
    (row,) = said["kernels"]
    described = set(re.findall(r"`(\w+)`", (model.FOLDER / "README.md").read_text()))
    assert set(row) <= described and (row["kind"], row["says"]) == ("race", "race")
    assert row["args"] == ["int32[64]:arange", "int32[64]"] and row["shared"] == 0
    assert main(["zoo", "nobody"]) == 2 and "nobody" in capsys.readouterr().err
    monkeypatch.setattr(model, "found", lambda _: model.Verdict(""))
    assert main(["zoo", "missing_barrier"]) == 1


# -- what compute-sanitizer says ------------------------------------------------------------------

RACE = """========= COMPUTE-SANITIZER
zoo: launched
========= Error: Race reported between Write access at 0xb0 in missing_barrier.cu:10:f
=========     and Read access at 0xf0 in missing_barrier.cu:14:f [256 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WARNING = RACE.replace("Error: Race", "Warning: Race").replace(
    "(1 error, 0 warnings)", "(0 errors, 1 warning)")
CLEAN = "========= COMPUTE-SANITIZER\nzoo: launched\n========= ERROR SUMMARY: 0 errors\n"
FAULT = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at f+0x90 in no_tail_guard.cu:11
========= ERROR SUMMARY: 28 errors
"""


def test_what_the_tools_print_is_read():
    race, warning, clean, fault = map(sanitizer.verdict, (RACE, WARNING, CLEAN, FAULT))
    assert race == records.Verdict(
        said="errors", errors=1, warnings=0,
        first="Error: Race reported between Write access at 0xb0 in missing_barrier.cu:10:f")
    assert (warning.said, warning.errors, warning.warnings) == ("errors", 0, 1)
    assert (clean.said, clean.first) == ("clean", "")
    assert fault.errors == 28 and fault.first.startswith("Invalid __global__ read")
    assert sanitizer.verdict("no GPU here").said == "failed"
    assert sanitizer.verdict(CLEAN.replace("zoo: launched\n", "")).said == "failed"
    assert sanitizer.verdict("", hung=True).said == "hangs"


FAKE = """#!/bin/sh
case "$*" in
  *--version*) echo "Version 2025.1.0";;
  *racecheck*mistake.ptx*) cat {folder}/race;;
  *synccheck*mistake.ptx*) exec sleep 30;;
  *) cat {folder}/clean;;
esac
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A compute-sanitizer that finds a race and hangs; the record's path."""
    (tmp_path / "race").write_text(RACE)
    (tmp_path / "clean").write_text(CLEAN)
    program = tmp_path / "compute-sanitizer"
    program.write_text(FAKE.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: str(program))
    return tmp_path / "sanitizer.json"


def test_verdicts_are_recorded_and_the_next_call_goes_on(fake):
    said = []
    names = ["missing_barrier", "no_tail_guard"]
    settings = {"names": names, "path": fake, "seconds": 1.0}
    assert sanitizer.record(**settings, minutes=-1, tell=said.append) == 2 and not said
    assert sanitizer.record(**settings, tell=said.append) == 0
    assert said == [f"{name}: racecheck, synccheck hangs; cured: nothing" for name in names]
    assert sanitizer.record(**settings, tell=said.append) == 0 and len(said) == 2
    record = records.read(fake)
    assert record.sanitizer == "2025.1.0" and record.date
    (row,) = model.rows(names[:1], record)
    assert row["sanitizer"] == "racecheck, synccheck hangs"
    assert row["sanitizer_of_cure"] == "nothing"
    other = structs.replace(record.kernels[names[0]], hash="0" * 16)
    record = structs.replace(record, kernels={**record.kernels, names[0]: other})
    assert model.rows(names[:1], record)[0]["sanitizer"] is None
    assert sanitizer.record(**settings | {"path": fake}, tell=said.append) == 0


def test_the_page_owns_up_to_reports_on_cures(fake, monkeypatch):
    names, said = ["missing_barrier", "no_tail_guard"], []
    assert sanitizer.record(names, path=fake, seconds=1.0, tell=str) == 0
    record = records.read(fake)
    monkeypatch.setattr(model.sanitizer, "read", lambda: record)
    monkeypatch.setattr(columns, "table", lambda head, rows, evidence: said.append(str(rows)))
    monkeypatch.setattr(model, "note", said.append)
    model.mistakes(*names)
    assert len(said) == 1 and "racecheck, synccheck hangs" in said.pop()
    one = record.kernels["no_tail_guard"]
    other = structs.replace(record, kernels={
        **record.kernels, "no_tail_guard": structs.replace(one, cured=one.mistake)})
    monkeypatch.setattr(model.sanitizer, "read", lambda: other)
    model.mistakes(*names)
    assert "the cure of `no_tail_guard`, too (racecheck, synccheck hangs)" in said[1]


# A pair that allocates has no lanes and columns yet.
TENSOR = [one.name for one in model.specimens() if one.name != "pair_allocation_races"
          and one.says in ("tensor memory", "tensor memory in flight", "missing tcgen05.fence")]


@pytest.mark.parametrize("name", TENSOR)
def test_a_hazard_of_tensor_memory_is_told_with_lanes_columns_and_a_cure(name):
    """By the line of the kernel; the cure is an instruction, or what is added to an address."""
    reported = model.found(SPECIMENS[name])
    assert reported.lines
    assert re.search(r"lanes \d+-\d+", reported.message)
    assert re.search(r"columns \d+-\d+", reported.message)
    assert re.search(r"insert tcgen05\.|: (tcgen05\.\w+|add) ", reported.message)


def test_recorded_verdicts_are_of_the_present_source_and_for_the_rest_the_page_says_not_run():
    record = records.read()
    assert "H100" in record.gpu or "H200" in record.gpu
    stale = [one.name for one in model.specimens() if one.name in record.kernels
             and not records.current(record, one.name, model.digest(one))]
    assert not stale and len(record.kernels) >= 41
    new = next(one.name for one in model.specimens() if one.name not in record.kernels)
    assert model.rows([new], record)[0]["sanitizer"] is None


def test_a_kernel_for_another_gpu_is_left_out(fake, monkeypatch):
    one = next(one for one in model.specimens() if one.arch == "sm_100a")
    assert model.runs_on(one, (10, 0)) and not model.runs_on(one, (9, 0))
    assert model.runs_on(SPECIMENS["missing_barrier"], (10, 0))
    said = []
    monkeypatch.setattr(sanitizer, "capability", lambda: (9, 0))
    assert sanitizer.record([one.name], path=fake, seconds=1.0, tell=said.append) == 0
    assert said == [f"{one.name}: no GPU of this architecture, sm_100a"]


def test_an_unknown_kernel_is_named(fake):
    with pytest.raises(ValueError, match="nobody"):
        sanitizer.record(["nobody"], path=fake)


def test_a_warning_is_told_as_one():
    tools = {"racecheck": sanitizer.verdict(WARNING), "memcheck": sanitizer.verdict(CLEAN)}
    assert records.summary(tools) == "racecheck (warning)"


def test_a_checker_tells_a_mistake_if_it_reports_that_and_not_the_cure():
    def row(**of):
        clean = {"says": "", "cured_clean": True, "sanitizer": None, "sanitizer_of_cure": None,
                 "sentryward": None, "sentryward_of_cure": None}
        return clean | of

    table = [
        row(says="race", sanitizer="racecheck", sanitizer_of_cure="nothing",
            sentryward="potential_race", sentryward_of_cure="race_free"),
        row(sanitizer="nothing", sanitizer_of_cure="nothing", sentryward="race_free",
            sentryward_of_cure="race_free"),
        row(says="race", cured_clean=False, sanitizer="memcheck", sanitizer_of_cure="memcheck",
            sentryward="unsupported", sentryward_of_cure="race_free"), row(says="race")]
    emulator, tools, proofs = model.tallies(table).values()
    assert emulator == model.Tally(detected=2, both=1, missed=1)
    assert tools == model.Tally(detected=1, both=1, missed=1, not_run=1)
    assert proofs == model.Tally(detected=1, missed=1, refused=1, not_run=1)


def test_a_launch_is_described_to_sentryward_with_its_pointers_and_numbers():
    specimen = SPECIMENS["cluster_without_barrier"]
    said = sentryward.described(specimen, model.compiled(specimen, False))
    assert said["launch"]["cluster_dim"] == [2, 1, 1] and len(said["declarations"]) == 2
    specimen = SPECIMENS["no_tail_guard"]
    (number,) = sentryward.described(specimen, model.compiled(specimen, False))["arguments"]
    assert (number["type"], number["value"]) == ("u32", 100)


def test_sentrywards_results_are_of_the_present_sources():
    record = proofs.read()
    assert {one.name for one in model.specimens()} == {
        name for name in record.kernels if proofs.current(
            record, name, model.digest(SPECIMENS[name]))}


@pytest.mark.gpu
def test_a_missing_barrier_under_the_real_tool(tmp_path):
    path = tmp_path / "sanitizer.json"
    assert sanitizer.record(["missing_barrier"], path=path) == 0
    verdicts = records.read(path).kernels["missing_barrier"]
    assert verdicts.mistake["racecheck"].said == "errors"
    assert records.summary(verdicts.cured) == "nothing"
