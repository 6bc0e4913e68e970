"""A version that is begun works at once; a name that can't be is refused."""

import json
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from book import executed, new
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.paths import ROOT
from tests.tables import cases

LAST = max(int(stem[:2]) for stem in CATALOGUE)
NAME = f"{LAST + 1}_mine"


@pytest.fixture
def scratch(tmp_path):
    """A checkout without history, results, built pages and the text of chapters.

    Its modules' bytecode comes along, which is taken where their times are the same.
    """
    for folder in ("lib", "cuda", "book"):
        shutil.copytree(ROOT / folder, tmp_path / folder,
                        ignore=shutil.ignore_patterns("runtime", "static"))
    for folder in ("chapters", "tests/chapters"):
        (tmp_path / folder).mkdir(parents=True)
    for chapter in (ROOT / "chapters").glob("*.ipynb"):
        (tmp_path / "chapters" / chapter.name).touch()
    for file in ("_toc.yml", "chapters/glossary.md", "tests/chapters/budget.json"):
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def write(files):
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_a_version_has_five_parts_and_multiplies(scratch):
    files = new.parts(NAME, scratch)
    assert {path.relative_to(scratch).as_posix() for path in files} == {
        f"cuda/{NAME}.cu", f"chapters/{NAME}.ipynb", f"lib/kernels/own/{NAME}.py", "_toc.yml",
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
    assert sorted(order) == [*in_book(), NAME] and order[-1] == NAME
    budget = json.loads((scratch / "tests" / "chapters" / "budget.json").read_text())
    assert budget[f"chapters/{NAME}"] == new.BUDGET
    chapter = nbformat.read(scratch / "chapters" / f"{NAME}.ipynb", 4)
    assert sum("nbval-check-output" in cell.metadata.get("tags", ()) for cell in chapter.cells) == 2
    tagged = ["card" in cell.metadata.get("tags", ()) for cell in chapter.cells
              if "colab-setup" not in cell.metadata.get("tags", ())]
    assert tagged[:4] == [True] * 4 and not any(tagged[4:]), "the card comes first"
    called = "\n".join(cell.source for cell in chapter.cells)
    for call in ("change(page.version", "page.check()",
                 "page.speed()", "page.timeline()", "page.roofline()"):
        assert call in called


@cases("""
name        | why
mine        | no name of a version
22-mine     | no name of a version
NEXT_       | no name of a version
NEXT_Mine   | no name of a version
NEXT_class  | 'class' can't name a kernel:
NEXT_double | 'double' can't name a kernel:
NEXT_main   | 'main' can't name a kernel:
01_mine     | 01 is taken: cuda/01_naive.cu
00_mine     | the last version is LAST
""")
def test_a_name_that_can_t_be_is_refused(name, why, scratch):
    with pytest.raises(new.NewError, match=why.replace("LAST", str(LAST))):
        new.parts(name.replace("NEXT", str(LAST + 1)), scratch)


def test_the_command_writes_nothing_for_a_bad_name(capsys, monkeypatch):
    monkeypatch.setattr(new, "write_whole", lambda *_: pytest.fail("something was written"))
    assert new.run(type("Arguments", (), {"name": "mine"})) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "such as 29_mine" in said


def test_a_file_of_another_form_is_named(scratch):
    (scratch / "_toc.yml").write_text("root: index\n")
    with pytest.raises(new.NewError, match="_toc.yml has no place for a version"):
        new.parts(NAME, scratch)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """This checkout's files as they are, in a repository of their own."""
    root = tmp_path_factory.mktemp("a clone")
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, check=True).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file() and not name.startswith("book/runtime/"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.excludesFile=")
    for words in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], cwd=root, check=True)
    for cache in (place for name in ("lib", "book", "tests")
                  for place in (ROOT / name).rglob("__pycache__")):
        shutil.copytree(cache, root / cache.relative_to(ROOT))
    return root


def played(clone, *words):
    done = subprocess.run([sys.executable, *words], cwd=clone, capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_missing_barrier_is_found_as_contributing_says(clone):
    source = clone / "cuda" / "02_shared_tile.cu"
    whole = source.read_text()
    first, barrier, rest = whole.rpartition("__syncthreads();")
    source.write_text(first + rest)
    words = ("-m", "lib", "check", "02_shared_tile", "--shape", "64", "--backend", "emulator")
    status, said = played(clone, *words, "--races")
    assert barrier and status == 1 and re.search(r"races: \d+ found", said), said
    status, said = played(clone, *words)
    assert status == 0 and "values: right" in said, said
    source.write_text(whole)


def test_a_version_that_is_begun_changes_nothing_of_the_others(clone):
    before = executed.environment(clone)
    status, said = played(clone, "-m", "lib", "new", NAME)
    assert status == 0, said
    changed = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=clone, text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    assert {tuple(line.split()) for line in changed.splitlines()} == {
        ("M", "_toc.yml"), ("M", "tests/chapters/budget.json"), ("??", f"chapters/{NAME}.ipynb"),
        ("??", f"cuda/{NAME}.cu"), ("??", f"lib/kernels/own/{NAME}.py"),
    }
    # No chapter depends on the first two, and none on the names of versions: one is executed.
    assert executed.environment(clone) == before
    status, said = played(clone, "-m", "lib", "notebooks", "--execute", f"chapters/{NAME}.ipynb")
    assert status == 0, said  # make chapter
    # What `make quick` runs of it, and what holds the house together.
    status, said = played(
        clone, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/kernels/test_emulator.py",
        "tests/kernels/test_mutants.py", "tests/chapters/test_chapters.py",
        "tests/chapters/test_form.py", "-k", NAME)
    assert status == 0 and int(re.search(r"(\d+) passed", said)[1]) > 10, said
    status, said = played(
        clone, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/kernels/test_catalogue.py",
        "tests/chapters/test_chapters.py", "tests/chapters/test_budget.py",
        "-k", "catalogue or contents or stand or source or budget_is")
    assert status == 0, said


@pytest.mark.parametrize("file, right, wrong, said", [
    ("cuda/{}.cu", "template <int TILE>", "template <int TILE, bool WIDE>",
     "asks for mine<16>, and {}.cu has template <int TILE, bool WIDE> mine: "),
    ("lib/kernels/own/{}.py", 'function="mine"', 'function="mime"',
     "asks for mime<16>, and {}.cu has template <int TILE> mine: "),
    ("lib/kernels/own/{}.py", "change=", "chagne=",
     "lib/kernels/own/{}.py is no entry of a version: got an unexpected keyword argument 'chagne'"),
])
def test_an_entry_that_does_not_fit_is_told_in_a_line(scratch, file, right, wrong, said):
    write(new.parts(NAME, scratch))
    place = scratch / file.format(NAME)
    text = place.read_text()
    assert right in text
    place.write_text(text.replace(right, wrong))
    done = subprocess.run(
        [sys.executable, "-m", "lib", "check", NAME, "--shape", "32", "--backend", "emulator"],
        cwd=scratch, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said.format(NAME) in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
