"""The tests nearest to what you changed, within a time: a loop while you work, never `make test`.

    python tools/quick.py [--since HEAD] [--seconds 120] [--list]

What has changed since a revision, committed or not, leads to test files by imports: first those
that import a changed module, then those that import what imports it, and so on. A kernel leads to
the tests that name it, a chapter to its own. They are run in that order until the time is up or
one fails; style and types come first.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = "tests/test_layers.py"
KERNEL_TESTS = ("tests/kernels/test_emulator.py", "tests/kernels/test_mutants.py")
CHAPTER_TESTS = ("tests/chapters/test_form.py", "tests/chapters/test_chapters.py")
WORKLOGS = "tests/chapters/test_worklogs.py"


def changed(since: str) -> list[str]:
    """Paths that differ from a revision, those that git doesn't know yet included."""
    def git(*words: str) -> list[str]:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    return sorted({*git("diff", "--name-only", "--no-renames", since),
                   *git("ls-files", "--others", "--exclude-standard")})


def imports(text: str, module: str) -> set[str]:
    """Dotted names that a module imports, anywhere in it, and each with what it takes of it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            full = ".".join([*base, *filter(None, [node.module])])
            names.update([full, *(f"{full}.{alias.name}" for alias in node.names)])
    return names


def nearest(sources: Mapping[str, str], starts: Iterable[str]) -> list[str]:
    """Test files that reach a changed file, those first that fewest imports lie between."""
    def name(path: str) -> str:
        return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    paths = {name(path): path for path in sources}
    users: dict[str, list[str]] = {path: [] for path in sources}
    for path, text in sources.items():
        for used in imports(text, name(path)) & paths.keys():
            users[paths[used]].append(path)
        if path.endswith("/conftest.py"):  # fixtures reach the folder's tests without an import
            users[path] += [other for other in sources
                            if other.startswith(path.removesuffix("conftest.py") + "test_")]
    reached = dict.fromkeys(path for path in starts if path in sources)
    front = list(reached)
    while front:
        front = [user for path in front for user in users[path] if user not in reached]
        reached |= dict.fromkeys(front)
    return [path for path in reached if re.search(r"(^|/)test_\w+\.py$", path)
            and not path.startswith("tests/colab/")]


def kernels_of(path: str, texts: Mapping[str, str]) -> set[str]:
    """Stems of the kernels that a CUDA file is part of, by what they include."""
    if path.endswith(".cu"):
        return {Path(path).stem}
    included = re.compile(rf'#include ".*\b{re.escape(Path(path).name)}"')
    return {stem for other, text in texts.items() if included.search(text)
            for stem in kernels_of(other, texts)}


class Until:
    """A plugin of pytest's that ends a run, well, when its time is up."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end, self.ran, self.left = seconds, 0.0, 0, 0

    def pytest_collection_finish(self) -> None:
        """Begin to count: what was collected was not yet a test."""
        self._end = self._end or time.monotonic() + self._seconds

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Pass over a test for which no time is left."""
        if time.monotonic() < self._end:
            self.ran += 1
            return None
        self.left += 1
        return True


def main() -> int:
    """Run what is near; 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", default="HEAD", help="a revision; main, say, for a whole branch")
    parser.add_argument("--seconds", type=float, default=120, help="of tests")
    parser.add_argument("--list", action="store_true", help="say what would run")
    asked = parser.parse_args()
    paths = changed(asked.since)
    if not paths:
        print(f"quick: nothing has changed since {asked.since}; --since names another revision")
        return 0
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
             for pattern in ("[blt]*/**/*.py", "cuda/**/*.cu*") for path in ROOT.glob(pattern)}
    stems = {stem for path in paths if path.startswith("cuda/") and path in texts
             for stem in kernels_of(path, texts)}
    chapters = {Path(path).stem for path in paths if path.endswith(".ipynb")}
    tests = nearest({path: text for path, text in texts.items() if path.endswith(".py")}, paths)
    runs = [["-x", *dict.fromkeys([ALWAYS, *tests])]]
    runs += [[*files, "-k", " or ".join(sorted(names))]
             for files, names in ((KERNEL_TESTS, stems), (CHAPTER_TESTS, chapters)) if names]
    runs += [[WORKLOGS]] if chapters else []  # of the cards of any chapter
    if asked.list:
        print(*(" ".join(["pytest", *words]) for words in runs), sep="\n")
        return 0
    failed = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT).returncode
    if any(path.startswith("lib/") for path in paths):
        failed |= subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT).returncode
    until = Until(asked.seconds)
    for words in runs:
        failed |= pytest.main(["-q", f"--rootdir={ROOT}", *words], [until]) not in (0, 5)
    if until.left:
        print(f"quick: {until.ran} tests ran, and no time was left for {until.left} more: "
              "make test runs them")
    return int(bool(failed))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
