"""Records that somebody sends: taken as they were written, refused with a line for each reason."""

import copy
import datetime
import json
import os
import re
import subprocess

import pytest
import yaml

from lib.__main__ import main
from lib.paths import ROOT
from lib.records import foreign, sanitizer, submission
from tests import built

TODAY = datetime.date(2026, 11, 23)


def known(revision):
    return revision == "abc123"


@pytest.fixture
def made():
    """A sound record of two variants, made at a commit that is known."""
    record = copy.deepcopy(built.record())
    for one in (record, *record["chunks"].values()):
        one["revision"] = "abc123"
    return record


def test_what_was_measured_from_a_commit_of_ours_is_taken(made, tmp_path):
    assert submission.faults([built.write(made, tmp_path)], TODAY, known) == []


def test_a_draft_is_not_taken(made, tmp_path):
    for chunk in made["chunks"].values():
        chunk["revision"] = "abc123-dirty"
    (line,) = submission.faults([built.write(made, tmp_path)], TODAY, known)
    assert "is a draft, measured with cuda/ or lib/ changed" in line
    # Before there were clocks, any file that differed was told in this way.
    for variant in made["variants"].values():
        for row in variant["bench"]:
            row.pop("clock")
    assert submission.faults([built.write(made, tmp_path)], TODAY, known) == []


def test_each_reason_has_a_line_of_its_own(made, tmp_path):
    name = next(iter(made["variants"]))
    made["variants"][name]["hash"] = "0" * 16
    for chunk in made["chunks"].values():
        chunk["revision"] = "fedcba"
    made["date"] = "2027-01-01"
    file = built.write(made, tmp_path)
    found = submission.faults([file], TODAY, known)
    assert len(found) == 3 and all(line.startswith(str(file)) for line in found)
    assert "2027-01-01 is in the future" in found[0]
    assert f"{made['kernel']} {name} is not today's source" in found[1]
    assert "fedcba, which is no commit of this project" in found[2]


def test_an_edited_file_and_one_without_a_digest_are_refused(made, tmp_path):
    file = built.write(made, tmp_path)
    document = json.loads(file.read_text())
    row = next(iter(document["variants"].values()))["bench"][0]
    row["tflops"], row["seconds"] = 2 * row["tflops"], row["seconds"] / 2
    file.write_text(json.dumps(document))
    (line,) = submission.faults([file], TODAY, known)
    assert "edited" in line
    file.write_text(json.dumps({key: value for key, value in made.items() if key != "digest"}))
    assert any("digest" in line for line in submission.faults([file], TODAY, known))


def test_a_torn_file_does_not_hide_the_next(made, tmp_path):
    file = built.write(made, tmp_path)
    torn = file.with_name("torn.json")
    torn.write_text(file.read_text()[:100])
    made["date"] = "2027-01-01"
    found = submission.faults([torn, built.write(made, tmp_path)], TODAY, known)
    assert "torn" in found[0] and "2027-01-01" in found[1]


def test_git_knows_which_commits_are_ours():
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=True).stdout.strip()
    assert submission.is_in_history(head) and not submission.is_in_history("0" * 40)
    assert submission.is_in_history(head[:12])
    no_hashes = ("unknown", "HEAD", "main", "", "--help", "HEAD~1")
    assert not any(map(submission.is_in_history, no_hashes))


def test_the_command_says_what_is_wrong(made, tmp_path, capsys):
    for chunk in made["chunks"].values():
        chunk["revision"] = "0" * 12
    file = built.write(made, tmp_path)
    assert main(["results", "--sent", str(file)]) == 1
    assert "no commit of this project" in capsys.readouterr().out


def test_the_workflow_looks_at_what_a_pull_request_sends():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "records.yml").read_text())
    steps = workflow["jobs"]["look"]["steps"]
    assert steps[0]["with"]["fetch-depth"] == 0
    assert "lib results --sent" in steps[-1]["run"]


def test_the_workflow_sees_every_file_that_is_changed_and_fails_where_git_does(tmp_path):
    """Its own lines, in a repository in which a record was taken away, one added and one renamed.
    """
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "records.yml").read_text())
    step = workflow["jobs"]["look"]["steps"][-1]
    assert step["shell"] == "bash"  # GitHub runs that with -eo pipefail, and nothing else so
    repository, tools = tmp_path / "repository", tmp_path / "tools"
    tools.mkdir()
    (tools / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "python").chmod(0o755)

    def git(*words):
        return subprocess.run(
            ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", *words],
            check=True, capture_output=True, text=True).stdout.strip()

    (repository / "results" / "h100").mkdir(parents=True)
    git("init", "-q")
    for name in ("gone", "moved"):
        (repository / "results" / "h100" / f"{name}.json").write_text(name * 50)
    git("add", ".")
    git("commit", "-qm", "before")
    base = git("rev-parse", "HEAD")
    (repository / "results" / "h100" / "gone.json").unlink()
    git("mv", "results/h100/moved.json", "results/h100/to.json")
    (repository / "results" / "sanitizer.json").write_text("{}")
    git("add", "-A")
    git("commit", "-qm", "after")

    def look(base):
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=repository, capture_output=True, text=True, check=False,
            env={**os.environ, "BASE": base, "PATH": f"{tools}:{os.environ['PATH']}"})

    assert look(base).stdout.split()[4:] == [
        "results/h100/gone.json", "results/h100/moved.json", "results/h100/to.json",
        "results/sanitizer.json"]
    assert look("0" * 40).returncode != 0


def test_a_record_that_is_taken_away_is_told(tmp_path):
    (line,) = submission.faults([tmp_path / "h100" / "01_naive.json"], TODAY, known)
    assert "01_naive.json is taken away" in line


@pytest.mark.parametrize("record, figure, other", [
    (sanitizer.FILE, '"errors": 1,', '"errors": 0,'),
    (foreign.FILE, '"global_load_sectors": 7168', '"global_load_sectors": 7169'),
])
def test_records_of_which_there_is_one_are_held_to_their_digest(record, figure, other, tmp_path):
    text = record.read_text()
    file = tmp_path / "results" / record.name
    file.parent.mkdir()
    file.write_text(text)
    assert submission.faults([file], TODAY, known) == []
    for edited, said in (
        (text.replace(figure, other, 1), "was edited"),
        (text.replace('"digest"', '"digested"'), "does not fit its schema"),
        (re.sub(r'\n "digest".*', "", text), "has no digest"), (text[:200], "is torn"),
    ):
        assert edited != text
        file.write_text(edited)
        (line,) = submission.faults([file], TODAY, known)
        assert said in line and str(file) in line and "\n" not in line
