"""What a notebook does on Colab before its first figure: fetch the library, install what lacks.

`tests/colab` plays the whole of it, with Colab's own packages.
"""

import re
import subprocess
import sys
import types

import pytest
from packaging.requirements import Requirement

from book import colab, release


def test_set_up_off_colab_prints_nothing_and_finds_the_library(tmp_path):
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("here = True\n")
    (tmp_path / "book").symlink_to(release.ROOT / "book")
    code = release.setup_cell() + "\nimport lib\nassert lib.here"
    run = subprocess.run([sys.executable, "-c", code], cwd=chapters, capture_output=True, text=True,
                         check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_set_up_on_colab_fetches_the_revision_once_and_prepares_it(tmp_path):
    # A stand-in for Colab: its module, and a `git` that makes what a clone would.
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    clone = tmp_path / "clone"
    clone.mkdir()
    git = bin_dir / "git"
    git.write_text(
        "#!/bin/sh\n"
        'for last; do :; done; echo "$@" >> "$LOG"\n'
        'mkdir -p "$last/book" && touch "$last/book/__init__.py"\n'
        'echo "def prepare(): print(\\"prepared\\")" > "$last/book/colab.py"\n')
    git.chmod(0o755)
    code = release.setup_cell().replace("/content/", f"{clone}/")
    run = subprocess.run(
        [sys.executable, "-c",
         "import sys, types; sys.modules['google.colab'] = types.ModuleType('colab')\n"
         f"{code}\n{code}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": f"{bin_dir}:/usr/bin:/bin", "LOG": str(tmp_path / "log")})
    assert (run.returncode, run.stdout, run.stderr) == (0, "prepared\nprepared\n", "")
    asked = (tmp_path / "log").read_text().splitlines()
    assert len(asked) == 1
    assert f"--branch={release.REVISION}" in asked[0].split()
    assert release.REPOSITORY in asked[0].split()


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
    wanted = [Requirement(line) for line in colab.missing(REQUIREMENTS, {})]
    # What pip then has: the oldest that is allowed.
    there = {one.name: re.search(r"[=>]=([\d.]*\d)", str(one.specifier))[1] for one in wanted}
    assert len(there) > 5 and colab.missing(REQUIREMENTS, there) == []


def test_an_old_part_is_replaced_unless_colab_itself_runs_on_it():
    there = BASE | {"cupy-cuda12x": "13.6.0", "numpy": "1.20.0", "cuda-pathfinder": "1.3.4"}
    wanted = colab.missing(REQUIREMENTS, there)
    assert any(line.startswith("cuda-pathfinder") for line in wanted)
    assert not any(line.startswith(("numpy", "ipywidgets", "cupy")) for line in wanted)


@pytest.fixture
def on_colab(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))


def test_without_a_gpu_colab_is_told_how_to_get_one(tmp_path, monkeypatch, capsys, on_colab):
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.setattr(colab, "has_gpu", lambda: False)
    colab.prepare(tmp_path)
    said = capsys.readouterr().out
    assert "Runtime → Change runtime type → T4 GPU" in said and "emulator" in said
    monkeypatch.setattr(colab, "has_gpu", lambda: True)
    colab.prepare(tmp_path)
    assert capsys.readouterr().out == ""


def test_elsewhere_nothing_is_installed_or_said(tmp_path, capsys):
    # There is no requirements.txt: it isn't even looked for.
    colab.prepare(tmp_path)
    assert capsys.readouterr().out == ""
