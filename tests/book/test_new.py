"""A version that is begun works at once; a name that can't be is refused."""

import json
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from book import new
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.paths import ROOT

LAST = max(int(stem[:2]) for stem in CATALOGUE)
NAME = f"{LAST + 1}_mine"


@pytest.fixture
def scratch(tmp_path):
    """A checkout without history, results, built pages and the text of chapters."""
    for folder in ("lib", "cuda", "book"):
        shutil.copytree(ROOT / folder, tmp_path / folder,
                        ignore=shutil.ignore_patterns("__pycache__", "runtime", "static"))
    for folder in ("chapters", "tests/chapters"):
        (tmp_path / folder).mkdir(parents=True)
    for chapter in (ROOT / "chapters").glob("*.ipynb"):
        (tmp_path / "chapters" / chapter.name).touch()
    for file in ("_toc.yml", "tests/chapters/budget.json"):
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def write(files):
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")


def test_a_version_has_five_parts_and_multiplies(scratch):
    files = new.parts(NAME, scratch)
    assert {path.relative_to(scratch).as_posix() for path in files} == {
        f"cuda/{NAME}.cu", f"chapters/{NAME}.ipynb", "lib/kernels/catalogue.py", "_toc.yml",
        "tests/chapters/budget.json",
    }
    write(files)
    done = subprocess.run(
        [sys.executable, "-m", "lib", "check", NAME, "--shape", "40x50x70", "--alpha", "0.5",
         "--beta", "-2", "--races", "--backend", "emulator"],
        cwd=scratch, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert NAME in done.stdout


def test_it_stands_behind_the_last_version_everywhere(scratch):
    write(new.parts(NAME, scratch))
    contents = (scratch / "_toc.yml").read_text()
    order = re.findall(r"file: chapters/(\d\d_\w+)", contents)
    assert order == [*in_book(), NAME]
    budget = json.loads((scratch / "tests" / "chapters" / "budget.json").read_text())
    assert budget[f"chapters/{NAME}"] == new.BUDGET
    chapter = nbformat.read(scratch / "chapters" / f"{NAME}.ipynb", 4)
    assert sum("nbval-check-output" in cell.metadata.get("tags", ()) for cell in chapter.cells) == 2
    called = "\n".join(cell.source for cell in chapter.cells)
    for call in ("page.check()", "page.speed()", "page.timeline()", "page.roofline()"):
        assert call in called


@pytest.mark.parametrize("name, why", [
    ("mine", "no name of a version"), ("22-mine", "no name of a version"),
    (f"{LAST + 1}_", "no name of a version"), (f"{LAST + 1}_Mine", "no name of a version"),
    (f"{LAST + 1}_class", "'class' can't name a kernel: "),
    (f"{LAST + 1}_double", "'double' can't name a kernel: "),
    (f"{LAST + 1}_main", "'main' can't name a kernel: "),
    ("01_mine", "01 is taken: cuda/01_naive.cu"), ("00_mine", f"the last version is {LAST}"),
])
def test_a_name_that_can_t_be_is_refused(name, why, scratch):
    with pytest.raises(new.NewError, match=why):
        new.parts(name, scratch)


def test_the_command_writes_nothing_for_a_bad_name(capsys, monkeypatch):
    monkeypatch.setattr(new, "whole", lambda *_: pytest.fail("something was written"))
    assert new.run(type("Arguments", (), {"name": "mine"})) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "such as 29_mine" in said


def test_a_file_of_another_form_is_named(scratch):
    (scratch / "_toc.yml").write_text("root: index\n")
    with pytest.raises(new.NewError, match="_toc.yml has no place for a version"):
        new.parts(NAME, scratch)
