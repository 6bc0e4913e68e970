"""The tests nearest to what you changed, within a time: a loop while you work, never `make test`.

    python tools/quick.py [--since HEAD] [--seconds 120] [--list]

What has changed since a revision, committed or not, leads to test files by imports: first those
that import a changed module, then those that import what imports it, and so on. A kernel leads to
the tests that name it, a chapter to its own. Files are taken, nearest first, while their CPU
seconds fit (what each took in the last run); what is left out is said, and the first failure ends
it. Style and types are looked at first, and the rules for imports and docstrings last, whatever
changed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What each test file took in the last run here, and in one elsewhere, of 2 s and more. (And each
# kernel's tests, which is what `tests/scheduling.py` asks.)
SECONDS = (ROOT / "tools" / "seconds.json", ROOT / "_build" / "test-seconds.json")
UNKNOWN = 2.0  # more of these are loading than testing
ALWAYS = ("tests/test_layers.py", "tests/test_docstrings.py")
KERNEL_TESTS = ("tests/kernels/test_emulator.py", "tests/kernels/test_mutants.py")
CHAPTER_TESTS = ("tests/chapters/test_form.py", "tests/chapters/test_chapters.py")


def changed(since: str) -> list[str]:
    """Paths that differ from a revision, those that git doesn't know yet included."""
    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, check=True, text=True,
                              stdout=subprocess.PIPE)
        return done.stdout.splitlines()

    return sorted({*git("diff", "--name-only", "--no-renames", since),
                   *git("ls-files", "--others", "--exclude-standard")})


def imports(text: str, module: str) -> set[str]:
    """Dotted names that a module imports, anywhere in it, and each with what it takes of it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            full = ".".join([*base, *filter(None, [node.module])])
            found.update([full, *(f"{full}.{alias.name}" for alias in node.names)])
    return found


def name_of(path: str) -> str:
    """The dotted name of a Python file."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def distances(sources: Mapping[str, str], starts: Iterable[str]) -> dict[str, int]:
    """How many imports lie between each file and a changed one; a changed one has none.

    Parameters
    ----------
    sources : mapping of str to str
        Text of every Python file, by path.
    starts : iterable of str
        Paths of those that have changed.
    """
    names = {name_of(path): path for path in sources}
    users: dict[str, set[str]] = {path: set() for path in sources}
    for path, text in sources.items():
        for one in imports(text, name_of(path)):
            if (used := names.get(one)) and used != path:
                users[used].add(path)
        # Fixtures reach the tests of their folder, and of those in it, without an import.
        folder = path.rpartition("/")[0]
        if path.endswith("/conftest.py"):
            users[path] |= {other for other in sources if other.startswith(f"{folder}/test_")}
    found = {path: 0 for path in starts if path in sources}
    front = list(found)
    while front:
        behind = []
        for path in front:
            for user in users[path] - found.keys():
                found[user] = found[path] + 1
                behind.append(user)
        front = behind
    return found


def kernels_of(path: str, texts: Mapping[str, str]) -> list[str]:
    """Stems of the kernels that a CUDA file is part of, by what they include."""
    if path.endswith(".cu"):
        return [Path(path).stem]
    name = re.escape(Path(path).name)
    users = [other for other, text in texts.items() if re.search(rf'#include ".*\b{name}"', text)]
    return sorted({stem for user in users for stem in kernels_of(user, texts)})


def nearest(found: Mapping[str, int], seconds: Mapping[str, float], max_seconds: float
            ) -> tuple[list[str], list[str]]:
    """Test files in the order of their distance while their seconds fit, and the others."""
    files = sorted((path for path in found if re.search(r"(^|/)test_\w+\.py$", path)
                    and not path.startswith("tests/colab/")),
                   key=lambda path: (found[path], seconds.get(path, UNKNOWN), path))
    taken, left_out = [], []
    for path in files:
        took = seconds.get(path, UNKNOWN)
        # What was changed itself is run, whatever it takes.
        if took <= max_seconds or found[path] == 0:
            taken.append(path)
            max_seconds -= took
        else:
            left_out.append(path)
    return taken, left_out


def run(*words: str) -> int:
    """Run a command of Python's, which is shown; its exit status."""
    print("quick:", "python", *words, flush=True)
    return subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode


def main() -> int:
    """Run what is near; 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", default="HEAD", help="a revision; main, say, for a whole branch")
    parser.add_argument("--seconds", type=float, default=120, help="CPU seconds of tests")
    parser.add_argument("--list", action="store_true", help="say what would run")
    asked = parser.parse_args()
    paths = changed(asked.since)
    if not paths:
        print(f"quick: nothing has changed since {asked.since}; --since names another revision")
        return 0
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
               for folder in ("lib", "book", "tests", "tools")
               for path in (ROOT / folder).rglob("*.py")}
    cuda = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
            for path in (ROOT / "cuda").rglob("*.cu*")}
    seconds = {file: took for stored in SECONDS if stored.exists()
               for file, took in json.loads(stored.read_text(encoding="utf-8")).items()}
    taken, left_out = nearest(distances(sources, paths), seconds, asked.seconds)
    there = [path for path in paths if (ROOT / path).is_file()]
    stems = sorted({stem for path in there if path.startswith("cuda/")
                    for stem in kernels_of(path, cuda)})
    chapters = [Path(path).stem for path in there if re.match(r"chapters/\w+\.ipynb$", path)]
    taken += [path for path in ALWAYS if path not in taken]
    commands = [["-m", "pytest", "-q", "-x", *taken]]
    if stems:
        commands.append(["-m", "pytest", "-q", *KERNEL_TESTS, "-k", " or ".join(stems)])
    if chapters:
        commands.append(["-m", "pytest", "-q", *CHAPTER_TESTS, "-k", " or ".join(chapters)])
    if left_out:
        print(f"quick: {len(left_out)} test files that reach the change are left to make test: "
              f"{' '.join(left_out[:8])}{' …' if len(left_out) > 8 else ''}")
    if asked.list:
        for command in commands:
            print("quick:", "python", *command)
        return 0
    failed = run("-m", "ruff", "check", ".")
    if any(path.startswith("lib/") for path in paths):
        failed |= run("-m", "mypy")
    for command in commands:
        failed |= run(*command) not in (0, 5)  # 5: nothing there goes by these names
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
