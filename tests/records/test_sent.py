"""Records that somebody sends: taken as they were written, refused with a line for each reason."""

import copy
import datetime
import json
import subprocess

import pytest
import yaml

from lib.__main__ import main
from lib.paths import ROOT
from lib.records import sent, store
from tests.built import newer_record

TODAY = datetime.date(2026, 11, 23)


def known(revision):
    return revision == "abc123"


@pytest.fixture
def made():
    """A sound record of two variants, made at a commit that is known."""
    record = copy.deepcopy(newer_record())
    for chunk in record["chunks"].values():
        chunk["revision"] = "abc123-dirty"
    return record


def test_what_was_measured_from_a_commit_of_ours_is_taken(made, tmp_path):
    assert sent.faults([store.write(made, tmp_path)], TODAY, known) == []


def test_each_reason_has_a_line_of_its_own(made, tmp_path):
    name = next(iter(made["variants"]))
    made["variants"][name]["hash"] = "0" * 16
    for chunk in made["chunks"].values():
        chunk["revision"] = "fedcba"
    made["date"] = "2027-01-01"
    file = store.write(made, tmp_path)
    found = sent.faults([file], TODAY, known)
    assert len(found) == 3 and all(line.startswith(str(file)) for line in found)
    assert "2027-01-01 is in the future" in found[0]
    assert f"{made['kernel']} {name} is not today's source" in found[1]
    assert "fedcba, which is no commit of this project" in found[2]


def test_an_edited_file_and_one_without_a_digest_are_refused(made, tmp_path):
    file = store.write(made, tmp_path)
    document = json.loads(file.read_text())
    row = next(iter(document["variants"].values()))["bench"][0]
    row["tflops"], row["seconds"] = 2 * row["tflops"], row["seconds"] / 2
    file.write_text(json.dumps(document))
    (line,) = sent.faults([file], TODAY, known)
    assert "edited" in line
    unsealed = {key: value for key, value in made.items() if key != "digest"}
    file.write_text(store.dumps(unsealed))
    assert any("digest" in line for line in sent.faults([file], TODAY, known))


def test_a_torn_file_does_not_hide_the_next(made, tmp_path):
    file = store.write(made, tmp_path)
    torn = file.with_name("torn.json")
    torn.write_text(file.read_text()[:100])
    made["date"] = "2027-01-01"
    found = sent.faults([torn, store.write(made, tmp_path)], TODAY, known)
    assert "torn" in found[0] and "2027-01-01" in found[1]


def test_git_knows_which_commits_are_ours():
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=True).stdout.strip()
    assert sent.is_in_history(head) and not sent.is_in_history("0" * 40)
    assert not sent.is_in_history("unknown")


def test_the_command_says_what_is_wrong(made, tmp_path, capsys):
    for chunk in made["chunks"].values():
        chunk["revision"] = "0" * 12
    file = store.write(made, tmp_path)
    assert main(["results", "--sent", str(file)]) == 1
    assert "no commit of this project" in capsys.readouterr().out


def test_the_workflow_looks_at_what_a_pull_request_sends():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "records.yml").read_text())
    steps = workflow["jobs"]["look"]["steps"]
    assert steps[0]["with"]["fetch-depth"] == 0
    assert "lib results --sent" in steps[-1]["run"]
