"""One command makes a release: tried on a copy of the repository, as a person would."""

import datetime
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from book import interface, release, releasing
from lib.paths import ROOT

LOG = "# Changes\n\nWords.\n\n## Unreleased\n\n- One thing.\n\n## 0.9.0, 2026-01-02\n\n- Another.\n"


def test_what_was_unreleased_gets_the_release_s_heading():
    text = releasing.dated(LOG, "1.0.0", "2026-02-03")
    assert releasing.HEADING.findall(text) == [("1.0.0", "2026-02-03"), ("0.9.0", "2026-01-02")]
    assert releasing.notes(text, "1.0.0") == "- One thing.\n"
    assert releasing.notes(text, "0.9.0") == "- Another.\n"
    assert text.index("## Unreleased") < text.index("## 1.0.0") < text.index("- One thing.")


@pytest.mark.parametrize("text, said", [
    (LOG.replace("## Unreleased\n", ""), "no line"),
    (LOG.replace("- One thing.\n", ""), "nothing under"),
])
def test_a_release_without_changes_is_refused(text, said):
    with pytest.raises(releasing.ReleaseError, match=said):
        releasing.dated(text, "1.0.0", "2026-02-03")


def test_the_changelog_has_headings_by_release_and_short_lines():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert headings[0] == "Unreleased"
    releases = releasing.HEADING.findall(text)
    assert headings[1:] == [f"{version}, {date}" for version, date in releases]
    numbers = [tuple(map(int, version.split("."))) for version, _ in releases]
    assert numbers == sorted(numbers, reverse=True)
    assert max(map(len, text.splitlines())) <= 120


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The files that git has, as they are now, and none of the commands' own."""
    place = tmp_path_factory.mktemp("copy")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.strip("\0").split("\0")
    for name in names:
        if (ROOT / name).is_file() and not name.startswith(("tests/", "cuda/zoo")):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    shutil.copytree(ROOT / "cuda/zoo", place / "cuda/zoo")
    return place


def ran(place, *words):
    return subprocess.run([sys.executable, "-m", "lib", *words], cwd=place, check=False,
                          capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(place)})


def test_one_command_makes_the_release(copy):
    before = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    done = ran(copy, "release", "1.0.0")
    assert done.returncode == 0, done.stdout + done.stderr
    today = datetime.date.today().isoformat()
    text = (copy / "book/release.py").read_text(encoding="utf-8")
    assert 'VERSION = "1.0.0"\n' in text and 'REVISION = "v1.0.0"\n' in text
    log = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    assert log.replace(f"\n## 1.0.0, {today}\n", "", 1) == before
    citation = yaml.safe_load((copy / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == ("1.0.0", today)
    described = interface.read(copy)
    assert (described["released"], described["next"]) == ("1.0.0", "patch")
    cell = (copy / "chapters/01_naive.ipynb").read_text(encoding="utf-8")
    assert f"-b v1.0.0 {release.REPOSITORY}" in cell
    # What release-check asks of copies holds, and a second time there is nothing to release.
    assert ran(copy, "stamp", "--check", "--release").returncode == 0
    assert ran(copy, "release", "--notes").stdout.strip() in before
    for version in ("1.0.0", "1.0.1"):
        again = ran(copy, "release", version)
        assert again.returncode == 2
        assert ("too low" if version == "1.0.0" else "nothing under") in again.stderr


@pytest.mark.parametrize("version, said", [
    ("1.0", "no version of three numbers"), ("v1.0.0", "no version"), ("01.0.0", "no version"),
    ("0.0.9", "too low"),
])
def test_a_version_that_may_not_follow_is_refused(version, said):
    with pytest.raises(releasing.ReleaseError, match=said):
        releasing.prepare(version, today=datetime.date(2026, 1, 1))


def test_an_interface_that_nobody_accepted_is_refused(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    old = interface.read()
    old["interface"]["warplens.Gone"] = "class"
    interface.write(old, tmp_path)
    with pytest.raises(releasing.ReleaseError, match="warplens.Gone is gone"):
        releasing.prepare("9.0.0", tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "docs"]


def test_problems_name_what_a_release_lacks(monkeypatch):
    monkeypatch.setattr(release, "VERSION", "9.9.9")
    said = "\n".join(releasing.problems())
    assert "no heading of 9.9.9" in said and "is of the release" in said


def test_every_check_runs_whatever_fails(monkeypatch, capfd):
    words = [sys.executable, "-c"]
    monkeypatch.setattr(releasing, "CHECKS", (
        ("the first", [*words, "raise SystemExit(1)"]), ("the second", [*words, "print('ran')"])))
    monkeypatch.setattr(releasing, "problems", lambda: [])
    assert releasing.check() == 1
    out, err = capfd.readouterr()
    assert "ran" in out and "1 of 3 checks failed: the first" in err


def test_the_checks_are_there():
    commands = [words for _, words in releasing.CHECKS]
    assert commands[-1][2:] == ["lib", "results", "--check"]
    for words in commands:
        assert all((ROOT / word).is_file() for word in words if word.endswith(".py"))
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"(?m)^release-check: .*\n\t\$\(PY\) -m lib release --check$", make)


def test_help_lists_what_there_is_without_the_tests_libraries():
    """As behind `make book`, which installs no pytest."""
    done = [subprocess.run([sys.executable, "-c", "import sys; sys.modules['pytest'] = None; from "
                            f"lib.__main__ import main; main([{word!r}])"], cwd=ROOT, text=True,
                           capture_output=True) for word in ("--help", "release")]
    assert done[0].returncode == 0 and "emulate" in done[0].stdout
    assert done[1].returncode == 2 and "release needs pytest" in done[1].stderr
