"""The repository's address, its copies, and what Colab is given."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lib import colab, release


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


@pytest.mark.parametrize("renew", [
    release.stamp_readme, release.stamp_config, release.stamp_citation])
def test_a_file_without_a_place_is_refused(renew):
    with pytest.raises(release.StampError):
        renew("nothing here\n")


def test_another_address_reaches_every_copy(tmp_path, monkeypatch):
    for name in ("README.md", "_config.yml", "CITATION.cff"):
        (tmp_path / name).write_text((release.ROOT / name).read_text())
    (tmp_path / "chapters").mkdir()
    notebook = new_notebook(cells=[new_markdown_cell("# T")])
    (tmp_path / "chapters" / "a.ipynb").write_text(nbformat.writes(notebook))
    monkeypatch.setattr(release, "REPOSITORY", "https://github.com/someone/else")
    monkeypatch.setattr(release, "RELEASE", "v9.8.7")
    assert len(release.stamp(tmp_path, write=False)) == 4
    assert len(release.stamp(tmp_path, write=True)) == 4
    assert release.stamp(tmp_path, write=False) == []
    assert "  url: https://github.com/someone/else\n" in (tmp_path / "_config.yml").read_text()
    assert "version: 9.8.7\n" in (tmp_path / "CITATION.cff").read_text()
    assert "someone.github.io/else" in (tmp_path / "README.md").read_text()
    cell = nbformat.read(tmp_path / "chapters" / "a.ipynb", 4).cells[1].source
    assert '"--branch", "v9.8.7"' in cell and '"https://github.com/someone/else"' in cell


def test_set_up_off_colab_prints_nothing_and_finds_the_library(tmp_path):
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("here = True\n")
    code = release.setup_cell() + "\nimport lib\nassert lib.here"
    run = subprocess.run([sys.executable, "-c", code], cwd=chapters, capture_output=True, text=True,
                         check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_set_up_on_colab_fetches_the_release_and_prepares_it(tmp_path):
    # A stand-in for Colab: its module, and a `git` that makes what a clone would.
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    clone = tmp_path / "clone"
    git = bin_dir / "git"
    git.write_text(
        "#!/bin/sh\n"
        'for last; do :; done; echo "$@" > "$LOG"\n'
        'mkdir -p "$last/chapters" "$last/lib" && touch "$last/lib/__init__.py"\n'
        'echo "def prepare(): print(\\"prepared\\")" > "$last/lib/colab.py"\n')
    git.chmod(0o755)
    code = release.setup_cell().replace("/content/", f"{clone}/")
    run = subprocess.run(
        [sys.executable, "-c",
         f"import sys, types; sys.modules['google.colab'] = types.ModuleType('colab')\n{code}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": f"{bin_dir}:/usr/bin:/bin", "LOG": str(tmp_path / "log")})
    assert (run.returncode, run.stdout, run.stderr) == (0, "prepared\n", "")
    asked = (tmp_path / "log").read_text().split()
    assert asked[asked.index("--branch") + 1] == release.RELEASE
    assert release.REPOSITORY in asked


REQUIREMENTS = (colab.ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
BASE = {"numpy": "2.0.2", "matplotlib": "3.10.0", "ipywidgets": "7.7.1", "tqdm": "4.67"}


def test_colab_with_cupy_for_cuda_12_gets_only_the_missing_parts_of_its_release():
    there = BASE | {"cupy-cuda12x": "13.6.0", "nvidia-cuda-nvrtc-cu12": "12.5.82",
                    "nvidia-cuda-runtime-cu12": "12.5.82"}
    wanted = colab.missing(REQUIREMENTS, there)
    assert "nvidia-cuda-nvcc-cu12==12.5.*" in wanted
    assert not any(name.startswith(("cupy", "nvidia-cuda-nvrtc", "numpy", "ipywidgets"))
                   for name in wanted)
    assert not any(name.startswith(("jupyter-book", "math-core")) for name in wanted)


def test_colab_with_cupy_for_cuda_13_gets_no_second_cupy_and_no_part_of_cuda_12():
    wanted = colab.missing(REQUIREMENTS, BASE | {"cupy-cuda13x": "14.0.0"})
    assert not any("cupy" in name or "cu12" in name for name in wanted)
    assert "nvidia-cuda-nvrtc==13.*" in wanted and "nvidia-cuda-crt==13.*" in wanted


def test_colab_with_nothing_gets_everything_but_the_book_s_tools():
    wanted = colab.missing(REQUIREMENTS, {})
    assert any(name.startswith("cupy-cuda12x") for name in wanted)
    assert any(name.startswith("nvidia-cuda-nvrtc-cu12==12.9") for name in wanted)
    assert not any(name.startswith("jupyter-book") for name in wanted)


def test_a_second_run_installs_nothing():
    there = {line.split("=")[0].split(">")[0]: "1" for line in colab.missing(REQUIREMENTS, {})}
    assert colab.missing(REQUIREMENTS, there) == []


def test_without_a_gpu_colab_is_told_how_to_get_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.setattr(colab, "has_gpu", lambda: False)
    colab.prepare(tmp_path)
    said = capsys.readouterr().out
    assert "Runtime → Change runtime type → T4 GPU" in said and "emulator" in said
    monkeypatch.setattr(colab, "has_gpu", lambda: True)
    colab.prepare(tmp_path)
    assert capsys.readouterr().out == ""
