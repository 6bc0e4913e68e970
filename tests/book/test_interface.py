"""The public interface of warplens: what is promised is there, and a break is told as one."""

import copy
import re

import pytest

from book import interface
from lib.paths import ROOT

PAGES = """
warplens's public interface differs from docs/warplens-interface.json:
  {}
If a user's code would break, look for a way that keeps it: a default, an alias, a new name beside
the old one. If it must be, or if it only adds something, take it over with
    python -m book.interface --accept
which raises what the next release must be at least, and say it in CHANGELOG.md."""


def test_the_interface_is_the_one_that_is_described():
    changes = interface.compare(interface.read()["interface"], interface.describe())
    found = [f"breaks: {one}" for one in changes.breaks] + [f"adds: {one}" for one in changes.adds]
    assert not found, PAGES.format("\n  ".join(found))


def test_the_readme_says_where_the_interface_is_named():
    text = (ROOT / "lib/ptx/README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Versions\n")[2].partition("\n## ")[0]
    assert "book/interface.py" in section and str(interface.FILE) in section


def test_what_the_readme_s_code_uses_is_public():
    text = (ROOT / "lib/ptx/README.md").read_text(encoding="utf-8")
    names = interface.describe()["names"]
    used = set(re.findall(r"\bptx\.([A-Z]\w+)", text))
    imported = re.findall(r"^from (warplens\S*) import (\w+)", text, re.M)
    assert used and imported
    assert {f"warplens.{name}" for name in used} <= set(names)
    assert {".".join(pair) for pair in imported} <= set(names)


@pytest.fixture(scope="module")
def described():
    return interface.describe()


def changed(described, path, value):
    """The description with one entry put in another way, or taken out (None)."""
    new = copy.deepcopy(described)
    *way, last = path
    place = new
    for name in way:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return interface.compare(described, new)


CALL = ("names", "warplens.Function", "members", "__call__", "takes")
PLACED = {"passed": "positional_or_keyword", "place": 1}


@pytest.mark.parametrize("path, value, said", [
    (("names", "warplens.Trace"), None, "warplens.Trace is gone"),
    (("names", "warplens.Launch", "members", "hazards"), None, "warplens.Launch.hazards is gone"),
    (("names", "warplens.tensor_map", "kind"), "class", "is a class, not a function"),
    ((*CALL, "races"), None, "takes no races"),
    ((*CALL, "grid"), PLACED, "grid is passed otherwise"),
    ((*CALL, "more"), {"passed": "keyword_only", "place": 40}, "needs more"),
    (("names", "warplens.Deadlock", "caught_as", "Error"), None, "caught as Error is gone"),
    (("command", "--races"), None, "warplens --races is gone"),
    (("command", "--arch", "default"), "'sm_90a'", "warplens --arch"),
    (("fixture", "emulate", "budgets"), None, "takes no budgets"),
    (("exit", "1"), "bad input", "exit status 1 means 'bad input'"),
])
def test_a_break_is_told(described, path, value, said):
    changes = changed(described, path, value)
    assert changes.part == "major" and any(said in one for one in changes.breaks), changes


@pytest.mark.parametrize("path, value", [
    (("names", "warplens.More"), {"kind": "class", "members": {}}),
    (("names", "warplens.Launch", "members", "more"), {"kind": "field"}),
    ((*CALL, "more"), {"passed": "keyword_only", "place": 40, "default": "None"}),
    (("command", "--more"), {"default": "None", "nargs": "None", "choices": "None"}),
])
def test_what_is_new_breaks_nothing(described, path, value):
    changes = changed(described, path, value)
    assert changes.part == "minor" and not changes.breaks and len(changes.adds) == 1


def test_another_default_breaks_what_relied_on_it(described):
    changes = changed(described, (*CALL, "schedule", "default"), "'highest'")
    assert changes.part == "major" and "schedule is 'highest' where it was" in changes.breaks[0]


@pytest.mark.parametrize("before, part, least", [
    ("0.1.0", "patch", (0, 1, 1)), ("0.1.0", "minor", (0, 2, 0)), ("0.1.0", "major", (0, 2, 0)),
    ("1.2.3", "patch", (1, 2, 4)), ("1.2.3", "minor", (1, 3, 0)), ("1.2.3", "major", (2, 0, 0)),
])
def test_the_least_version_that_may_follow(before, part, least):
    assert interface.least_version(before, part) == least


def test_accepting_remembers_the_largest_part(tmp_path, described, capsys):
    (tmp_path / "docs").mkdir()
    old = copy.deepcopy(described)
    old["names"]["warplens.Gone"] = {"kind": "class", "members": {}}
    released = {"released": "1.0.0", "next": "patch", "interface": old}
    interface.write(released, tmp_path)
    assert interface.accept(tmp_path).part == "major"
    assert interface.read(tmp_path)["next"] == "major"
    assert interface.accept(tmp_path).part == "patch"  # nothing differs any more
    assert interface.read(tmp_path) == {**released, "next": "major", "interface": described}
