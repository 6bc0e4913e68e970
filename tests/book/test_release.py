"""The repository's address and revision, and their copies."""

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import paper, release
from lib.__main__ import main


def test_copies_are_those_of_the_source():
    assert release.stamp(write=False) == [], "run `python -m lib stamp`"


def stamped(*cells):
    text = nbformat.writes(new_notebook(cells=list(cells)))
    return nbformat.reads(release.stamp_notebook(text), 4).cells


def test_set_up_is_put_after_the_title():
    cells = stamped(new_markdown_cell("# T"), new_code_cell("a"))
    assert [cell.source for cell in cells] == ["# T", release.setup_cell(), "a"]
    assert cells[1].metadata.tags == release.SETUP_TAGS


def test_set_up_is_renewed_where_it_stands():
    old = new_code_cell("old", metadata={"tags": ["colab-setup"]}, id="kept")
    text = [new_markdown_cell("# T"), new_markdown_cell("text")]
    cells = stamped(*text, old, new_code_cell("a"))
    assert [cell.source for cell in cells] == ["# T", "text", release.setup_cell(), "a"]
    assert cells[2].id == "kept"


def test_set_up_comes_before_every_other_code():
    old = new_code_cell("old", metadata={"tags": ["colab-setup"]})
    cells = stamped(new_markdown_cell("# T"), new_code_cell("a"), old)
    assert [cell.source for cell in cells] == ["# T", release.setup_cell(), "a"]


def test_two_set_up_cells_are_refused():
    old = [new_code_cell("old", metadata={"tags": ["colab-setup"]}) for _ in range(2)]
    with pytest.raises(release.StampError, match="2 cells"):
        stamped(*old)


@pytest.mark.parametrize("name", release.places())
def test_a_file_without_a_place_is_refused(name):
    with pytest.raises(release.StampError, match="no single place"):
        release.stamp_file(name, "nothing here\n")


def copied(tmp_path, monkeypatch, revision):
    """A repository that is published elsewhere, at a revision, as version 9.8.7; stamped."""
    for name in ("README.md", "_config.yml", "CITATION.cff"):
        (tmp_path / name).write_text((release.ROOT / name).read_text())
    (tmp_path / "chapters").mkdir()
    notebook = new_notebook(cells=[new_markdown_cell("# T")])
    (tmp_path / "chapters" / "a.ipynb").write_text(nbformat.writes(notebook))
    monkeypatch.setattr(paper, "PAPERS", ())  # they have tests of their own
    monkeypatch.setattr(release, "REPOSITORY", "https://github.com/someone/else")
    monkeypatch.setattr(release, "REVISION", revision)
    monkeypatch.setattr(release, "VERSION", "9.8.7")
    assert len(release.stamp(tmp_path, write=False)) == 4
    assert len(release.stamp(tmp_path, write=True)) == 4
    assert release.stamp(tmp_path, write=False) == []
    return tmp_path


@pytest.mark.parametrize("revision", ["trunk", "v9.8.7"])
def test_badge_rocket_and_first_cell_name_one_revision(tmp_path, monkeypatch, revision):
    root = copied(tmp_path, monkeypatch, revision)
    settings = yaml.safe_load((root / "_config.yml").read_text())
    assert settings["repository"] == {"url": "https://github.com/someone/else", "branch": revision}
    readme = (root / "README.md").read_text()
    assert f"someone/else/blob/{revision}/chapters/01_naive.ipynb" in readme
    cell = nbformat.read(root / "chapters" / "a.ipynb", 4).cells[1].source
    assert f"-b {revision} https://github.com/someone/else" in cell


@pytest.mark.parametrize("revision", ["trunk", "v9.8.7"])
def test_another_address_and_version_reach_their_copies(tmp_path, monkeypatch, revision):
    root = copied(tmp_path, monkeypatch, revision)
    assert "version: 9.8.7\n" in (root / "CITATION.cff").read_text()
    assert "repository-code: https://github.com/someone/else\n" in (
        root / "CITATION.cff").read_text()
    readme = (root / "README.md").read_text()
    assert "someone.github.io/else" in readme
    assert ("the release is v9.8.7" in readme) == (revision == "v9.8.7")


def test_a_release_is_refused_while_readers_are_sent_to_a_branch(monkeypatch, capsys):
    monkeypatch.setattr(release, "REVISION", "main")
    assert main(["stamp", "--check", "--release"]) == 1
    assert 'set REVISION = "v' in capsys.readouterr().err
    monkeypatch.setattr(release, "REVISION", f"v{release.VERSION}")
    main(["stamp", "--check", "--release"])
    assert "set REVISION" not in capsys.readouterr().err
