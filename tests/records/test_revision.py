"""Which commit a record is of: of all that was measured, or it is a draft."""

import subprocess

import pytest

from lib.measure import record
from lib.paths import ROOT
from lib.records import revision
from lib.records import store as records


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                   check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with a kernel, a record and a commit."""
    for name in ("cuda/a.cu", "lib/a.py", "results/h200/a.json"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text("a")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "a")
    monkeypatch.setattr(revision, "ROOT", tmp_path)
    monkeypatch.delenv("REVISION", raising=False)
    return tmp_path


def test_a_record_that_was_just_written_makes_no_tree_dirty(tree):
    (tree / "results/h200/a.json").write_text("b")
    revision.refuse_dirty()
    assert len(revision.revision()) == 12


@pytest.mark.parametrize("name", ["cuda/a.cu", "lib/a.py", "cuda/steps/new.cu"])
def test_a_tree_whose_kernels_or_measuring_differ_is_refused(tree, name):
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("b")
    assert revision.revision().endswith(revision.DIRTY)
    with pytest.raises(ValueError, match=rf"differ from it \({name}\): commit first, or .*--draft"):
        revision.refuse_dirty()


def test_where_git_knows_no_commit_one_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(revision, "ROOT", tmp_path)
    monkeypatch.delenv("REVISION", raising=False)
    with pytest.raises(ValueError, match="set REVISION to it"):
        revision.refuse_dirty()
    monkeypatch.setenv("REVISION", "0123456789ab")
    revision.refuse_dirty()
    assert revision.revision() == "0123456789ab"
    monkeypatch.setenv("REVISION", "0123456789ab-dirty")
    with pytest.raises(ValueError, match="differ from it: commit first"):
        revision.refuse_dirty()


def test_drafts_lie_where_no_page_looks():
    assert not record.DRAFTS.is_relative_to(records.RESULTS)
    file = record.DRAFTS / "h200" / "a.json"
    ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", file], check=False)
    assert ignored.returncode == 0


def test_a_dirty_tree_is_measured_as_a_draft_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(revision, "revision", lambda: "abc-dirty")
    monkeypatch.setattr(revision, "changed", lambda: ["lib/a.py"])
    with pytest.raises(ValueError, match="--draft"):
        record.record(["01_naive"], root=tmp_path)
    with pytest.raises(ValueError, match="--draft"):
        record.record_quick(root=tmp_path)
    assert record._root(tmp_path, draft=True) == record.DRAFTS
    assert not list(tmp_path.iterdir())
