"""The public interface of warplens: what is promised is there, and a break is told as one."""

import re

import pytest

from book import interface
from lib.paths import ROOT
from tests.tables import cases

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
    names = interface.describe()
    used = set(re.findall(r"\bptx\.([A-Z]\w+)", text))
    imported = re.findall(r"^from (warplens\S*) import (\w+)", text, re.M)
    assert used and imported
    assert {f"warplens.{name}" for name in used} <= set(names)
    assert {".".join(pair) for pair in imported} <= set(names)


@pytest.fixture(scope="module")
def described():
    return interface.describe()


def changed(described, name, value):
    """The description with one entry put in another way, or taken out with its parts (None)."""
    new = {**described, name: value} if value else {
        other: what for other, what in described.items() if not other.startswith(name)}
    return interface.compare(described, new)


CALL = "warplens.Function.__call__"


@cases("""
name | value | said
warplens.Trace | None | warplens.Trace is gone
warplens.Launch.hazards | None | warplens.Launch.hazards is gone
warplens.tensor_map | class | is class, not function
CALL(races) | None | (races) is gone
CALL(grid) | positional_or_keyword 1 | (grid) is positional_or_keyword 1, not
CALL(more) | keyword_only | (more) is needed
warplens.Deadlock caught as Error | None | caught as Error is gone
warplens --races | None | warplens --races is gone
warplens --arch | default 'sm_90a', nargs None | warplens --arch is default
fixture emulate(budgets) | None | (budgets) is gone
exit status 1 | bad input | exit status 1 is bad input
CALL(schedule) | keyword_only by default 'highest' | not keyword_only by default 'low
""")
def test_a_break_is_told(described, name, value, said):
    name = name.replace("CALL", CALL)
    assert value or name in described
    changes = changed(described, name, value)
    assert changes.part == "major" and len(changes.breaks) == 1 and not changes.adds
    assert said in changes.breaks[0]


@pytest.mark.parametrize("name, value", [
    ("warplens.More", "class"), ("warplens.Launch.more", "field"),
    (f"{CALL}(more)", "keyword_only by default None"), (f"{CALL}(more)", "var_keyword 40"),
    (f"{CALL}(grid)", "positional_or_keyword 0 by default 1"),
    ("warplens --more", "default None, nargs None, choices None"),
])
def test_what_is_new_breaks_nothing(described, name, value):
    changes = changed(described, name, value)
    assert changes.part == "minor" and not changes.breaks and len(changes.adds) == 1


@cases("""
before | part  | least
0.1.0  | patch | (0, 1, 1)
0.1.0  | minor | (0, 2, 0)
0.1.0  | major | (0, 2, 0)
1.2.3  | patch | (1, 2, 4)
1.2.3  | minor | (1, 3, 0)
1.2.3  | major | (2, 0, 0)
""")
def test_the_least_version_that_may_follow(before, part, least):
    assert interface.least_version(before, part) == least


def test_accepting_remembers_the_largest_part(tmp_path, described, capsys):
    (tmp_path / "docs").mkdir()
    old = {**described, "warplens.Gone": "class", "warplens.Gone.field": "field"}
    released = {"released": "1.0.0", "next": "patch", "interface": old}
    interface.write(released, tmp_path)
    assert interface.accept(tmp_path).part == "major"
    assert interface.read(tmp_path)["next"] == "major"
    assert interface.accept(tmp_path).part == "patch"  # nothing differs any more
    assert interface.read(tmp_path) == {**released, "next": "major", "interface": described}
