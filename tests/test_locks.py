"""The locks: every package at one version, by its hashes; what an installation does of it."""

import re
import subprocess
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lib.paths import ROOT
from tools import install

PYTHONS = ("3.11.9", "3.12.7", "3.13.1")


def locked() -> dict[str, list[tuple[Requirement, list[str]]]]:
    """What both locks have, by name: the pin, with its marker, and its hashes."""
    found: dict[str, list[tuple[Requirement, list[str]]]] = {}
    for stem in ("requirements", "requirements-dev"):
        text = (ROOT / f"{stem}.lock").read_text("utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            if line and not line.startswith(("#", "-r ")):
                name, *hashes = re.split(r"\s+--hash=", line.strip())
                pin = Requirement(name)
                found.setdefault(canonicalize_name(pin.name), []).append((pin, hashes))
    return found


def test_every_package_has_one_version_and_its_hashes():
    for entries in locked().values():
        for pin, hashes in entries:
            assert [one.operator for one in pin.specifier] == ["=="], pin
            assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), pin
        for python in PYTHONS:
            here = {"python_full_version": python, "python_version": python[:4]}
            taken = [pin for pin, _ in entries if pin.marker is None or pin.marker.evaluate(here)]
            assert len(taken) <= 1, taken


@pytest.mark.parametrize("stem", ["requirements", "requirements-dev"])
def test_the_locks_are_of_the_bounds(stem):
    lines = [line.partition("#")[0].strip()
             for line in (ROOT / f"{stem}.txt").read_text("utf-8").splitlines()]
    asked = [Requirement(line) for line in lines if line and not line.startswith("-r")]
    pins = locked()
    for wanted in asked:
        for pin, _ in pins[canonicalize_name(wanted.name)]:
            [version] = [one.version for one in pin.specifier]
            assert wanted.specifier.contains(version, prereleases=True), f"make lock: {wanted}"


@pytest.mark.parametrize(("said", "calls", "status"), [
    ("", 1, 0), ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE", 1, 1),
    ("ERROR: Could not connect\n", 1, 1),
    ("ERROR: Could not find it\nERROR: No matching distribution found for numpy==9\n", 2, 0),
    ("ERROR: No matching distribution found for x\nERROR: THEY DO NOT MATCH THE HASHES", 1,
     1),
])
def test_a_file_of_another_hash_is_never_installed(said, calls, status, monkeypatch, capsys):
    made = []

    def run(words, **_):
        made.append(words)
        bad = "--require-hashes" in words and said
        return SimpleNamespace(returncode=int(bool(bad)), stderr=said)

    monkeypatch.setattr(subprocess, "run", run)
    assert install.main(["requirements"]) == status and len(made) == calls
    assert made[0][-3:] == ["--require-hashes", "-r", str(ROOT / "requirements.lock")]
    stderr = capsys.readouterr().err
    if calls == 2:
        assert stderr.count("\n") == 1 and "No matching distribution found for numpy==9" in stderr
        assert "bounds of requirements.txt" in stderr and made[1][-1].endswith("requirements.txt")
    else:
        assert stderr == said


def test_make_installs_by_the_locks_and_something_looks_after_them():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for stem in ("requirements", "requirements-dev"):
        assert f"$(PY) tools/install.py {stem}\n" in makefile
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"pip", "github-actions"}
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert "cyclonedx-py requirements" in release and release.count("made/book.cdx.json") == 2
