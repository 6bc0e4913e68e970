"""What a notebook does on Colab before its first figure: fetch the library, install what lacks.

`tests/colab` plays the whole of it, with Colab's own packages.
"""

import os
import re
import shutil
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from book import colab, release
from tests.colab.runtime import redirected


def test_set_up_off_colab_prints_nothing_and_finds_the_library(tmp_path):
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("here = True\n")
    (tmp_path / "book").symlink_to(release.ROOT / "book")
    shutil.copy(release.ROOT / "chapters" / "colab.py", chapters)
    cell = release.setup_cell() + "\nimport lib\nassert lib.here"
    assert run_cells(chapters, cell) == (0, [])


def run_cells(folder: Path, *cells: str, **env: str) -> tuple[int, list[str]]:
    """Run cells in IPython, from a folder; return its status and the lines that it writes."""
    code = ("import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
            "shell = InteractiveShell.instance(colors='NoColor')\n"
            "sys.exit(not all(shell.run_cell(cell).success for cell in sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", code, *cells], cwd=folder, check=False, text=True,
                          env=os.environ | {"IPYTHONDIR": str(folder.parent)} | env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


FOLDER = release.REPOSITORY.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Played:
    """Colab's folder, and a repository in place of the published one."""

    content: Path
    origin: Path

    @property
    def checkout(self) -> Path:
        return self.content / FOLDER

    def publish(self, word: str) -> None:
        """Commit a revision whose library says `word` when it prepares Colab."""
        (self.origin / "book" / "colab.py").write_text(
            colab_source() + "\n\ndef prepare_packages(root):\n    import lib\n"
            f"    print('{word} in', os.path.basename(os.getcwd()))\n")
        git(self.origin, "add", "--all")
        git(self.origin, "commit", "-q", "-m", word)

    def first_cell(self, times: int = 1, before: str = "", **env: str) -> tuple[int, list[str]]:
        """Run the first cell in a new kernel; return its status and what it writes."""
        colab = "import sys, types; sys.modules['google.colab'] = types.ModuleType('colab')\n"
        cell = release.setup_cell().replace("/content/", f"{self.content}/")
        return run_cells(self.content, colab + before, *[cell] * times,
                         **redirected(self.origin) | env)


def colab_source() -> str:
    """The module that prepares Colab, as it is."""
    return (release.ROOT / "book" / "colab.py").read_text(encoding="utf-8")


def git(folder: Path, *words: object) -> None:
    as_somebody = ("-c", "user.name=played", "-c", "user.email=played@example.org")
    subprocess.run(["git", "-C", folder, *as_somebody, *words], check=True, capture_output=True)


@pytest.fixture
def played(tmp_path) -> Played:
    """A Colab where nothing was fetched yet."""
    made = Played(tmp_path / "content", tmp_path / "origin")
    made.content.mkdir()
    for name in ("book", "lib", "chapters"):
        (made.origin / name).mkdir(parents=True)
        (made.origin / name / "__init__.py").touch()
    shutil.copy(release.ROOT / "chapters" / "colab.py", made.origin / "chapters")
    git(made.origin, "init", "-q", "-b", release.REVISION)
    made.publish("first")
    return made


def test_set_up_on_colab_fetches_the_library_and_moves_to_the_chapters(played):
    assert played.first_cell(times=2) == (0, ["first in chapters"] * 2)
    assert [path.name for path in played.content.iterdir()] == [FOLDER]


def test_a_checkout_that_is_current_is_kept_with_the_reader_s_changes(played):
    played.first_cell()
    (played.checkout / "mine.txt").touch()
    (played.checkout / "lib" / "__init__.py").write_text("mine = True\n")
    assert played.first_cell() == (0, ["first in chapters"])
    assert (played.checkout / "mine.txt").is_file()
    assert (played.checkout / "lib" / "__init__.py").read_text() == "mine = True\n"


def test_a_stale_checkout_is_renewed_and_kept_beside_the_new_one(played):
    played.first_cell()
    (played.checkout / "mine.txt").touch()
    played.publish("second")
    status, [said, last] = played.first_cell()
    assert (status, last) == (0, "second in chapters")
    [before] = played.content.glob(f"{FOLDER}-until-*")
    assert (before / "mine.txt").is_file() and str(before) in said


def test_what_a_kernel_has_imported_is_not_exchanged_under_it(played):
    played.first_cell()
    played.publish("second")
    # The stale checkout is renewed by a new kernel; this one has imported `lib` from it.
    imported = f"sys.path.insert(0, {str(played.checkout)!r})\nimport lib"
    assert played.first_cell(before=imported) == (0, ["first in chapters"])


@pytest.mark.parametrize("tag", ["light", "annotated"])
def test_a_release_is_fetched_by_its_tag_and_once(played, monkeypatch, tag):
    monkeypatch.setattr(release, "REVISION", "v9.8.7")
    git(played.origin, "tag", *(["-a", "-m", "release"] if tag == "annotated" else []), "v9.8.7")
    played.publish("after the release")
    for _ in range(2):
        assert played.first_cell() == (0, ["first in chapters"])


def test_a_branch_of_a_longer_name_is_not_taken_for_the_revision(played):
    git(played.origin, "branch", f"also/{release.REVISION}")
    played.publish("second")
    for _ in range(2):
        assert played.first_cell() == (0, ["second in chapters"])


def test_a_fetch_that_fails_says_git_s_reason_and_leaves_nothing(played, tmp_path):
    away = played.origin.rename(tmp_path / "away")
    status, said = played.first_cell()
    assert status == 1 and "does not appear to be a git repository" in said[0]
    assert list(played.content.iterdir()) == []
    away.rename(played.origin)
    assert played.first_cell() == (0, ["first in chapters"])


def test_without_the_network_a_checkout_that_is_there_will_do(played, tmp_path):
    played.first_cell()
    played.origin.rename(tmp_path / "away")
    status, [said, last] = played.first_cell()
    assert (status, last) == (0, "first in chapters")
    assert "going on with what is here" in said


def break_off(played: Played, how: str) -> None:
    """Leave what a fetch leaves that was ended in its midst."""
    if how == "empty":
        played.checkout.mkdir()
    elif how == "no commit":
        git(played.content, "init", "-q", played.checkout)
    else:
        git(played.content, "clone", "-q", "--no-checkout", played.origin, played.checkout)
        if how == "half":
            git(played.checkout, "checkout", "HEAD", "book", "chapters")


@pytest.mark.parametrize("how", ["empty", "no commit", "no files", "half"])
def test_a_fetch_that_was_broken_off_is_repaired(played, how):
    break_off(played, how)
    status, said = played.first_cell()
    assert (status, said[-1]) == (0, "first in chapters")
    assert played.first_cell() == (0, ["first in chapters"])


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
    assert not any(name.startswith(("jupyter-book", "math-core", "sphinx")) for name in wanted)


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


def test_a_failing_pip_is_one_line(tmp_path, monkeypatch, on_colab):
    (tmp_path / "requirements.txt").write_text("no-such-package-anywhere==1\n")
    monkeypatch.setattr(colab, "renew", lambda root: False)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 1))
    with pytest.raises(SystemExit, match="pip could not install them. Run this cell again."):
        colab.prepare(tmp_path)


@pytest.fixture
def on_colab(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))


def test_without_a_gpu_colab_is_told_how_to_get_one(tmp_path, monkeypatch, capsys, on_colab):
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.setattr(colab, "renew", lambda root: False)
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
