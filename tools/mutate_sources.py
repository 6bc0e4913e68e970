"""How strong the tests are: 100 mutants of the sources, before and after a restructuring.

    python tools/mutate_sources.py draw  [--seed 12] [--revision HEAD]
    python tools/mutate_sources.py cover [--revision HEAD]
    python tools/mutate_sources.py run   [--revision HEAD] [--only ID ...]
    python tools/mutate_sources.py compare [--revision HEAD]

`draw` writes `tools/mutants.json`: mutants of `lib/ptx`, the models, `problem`, the records and the
kernels' guards, and as many reserves; that revision is the baseline. `cover` runs the tests of a
revision once, a module at a time, and keeps which test executes which of those lines, by a call
that it plants before each when the code is loaded (tracing every line takes three times as long).
`run` changes one line at a time in a copy of the revision (what is not committed is not in it),
runs tests until one fails, and writes each verdict into `tools/mutants.json` at once. Both, when
stopped, go on where they were. `compare` lists the survivors at the baseline and at a revision; its
exit status is 1 if one that was caught survives.

So, after a restructuring: commit it, then `cover`, `run`, `compare`. A mutant is found by function
and line wherever they are now; `renames` in the file maps a function's old qualified name to its
new one. One whose line is gone gives way to the next reserve of its stratum that is still there;
`run` at the baseline gives a verdict on that reserve too.

A mutant runs the tests that executed its line, modules with the least to do first, and in these the
fastest tests first; then, as what fixtures and caches do is put down to the first test that asks,
the other tests of the same modules. For a kernel's guard it runs the tests whose id contains the
kernel's name (those of each kernel that includes it, for a header), but none that fails as well
when the text changes and the code does not. It is

caught      if a test fails, or a module can't be collected,
survived    if each test that executed its line passes, or there is none, and
timed out   if those take more than 60 s of CPU time.

Left out are tests that need a GPU, a browser or the executed chapters, `tests/book`,
`tests/chapters`, and tests that fail without a mutant. What a test runs in another process is not
seen by `cover`.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from importlib.machinery import SourceFileLoader
from pathlib import Path

from source_mutants import STRATA, Line, Mutant, apply, draw, find, lines

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tools" / "mutants.json"
SECONDS = 60  # of CPU time a mutant
HANGS = 1200  # seconds on the wall after which a process that uses no CPU is ended
MEMORY = 12 << 30  # bytes of address space: a mutant may ask for anything
CRASHED = {"verdict": "caught", "by": "the process crashed", "tests": 0, "seconds": 0.0}
LEFT_OUT = ("tests/book", "tests/chapters")
MARKED = ("gpu", "browser", "chapters", "colab", "slow")  # tests with these are left out, too
PYTEST = [
    "-q", "--no-header", "--tb=no", "-rN", "-p", "no:cacheprovider", "-p", "no:randomly",
    "--hypothesis-seed=0", *(f"--ignore={folder}" for folder in LEFT_OUT),
    "-m", " and ".join(f"not {name}" for name in MARKED),
]


# -- a revision's copy ---------------------------------------------------------------------------


def git(*arguments: str) -> bytes:
    """Output of a git command in this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def full(revision: str) -> str:
    """Hash of a revision."""
    return git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()


def archive(revision: str) -> tarfile.TarFile:
    """Open all files of a revision."""
    return tarfile.open(fileobj=io.BytesIO(git("archive", revision)))


def sources(revision: str) -> dict[str, str]:
    """Text of each file of a revision that a mutant may be in, by its path."""
    with archive(revision) as files:
        return {
            member.name: files.extractfile(member).read().decode() for member in files
            if re.fullmatch(r"lib/.*\.py|cuda/.*\.cuh?", member.name)
        }


def home(revision: str) -> Path:
    """Where a revision's copy and its coverage are kept."""
    return Path(tempfile.gettempdir(), "mutate-sources", revision[:12])


def make_copy(revision: str) -> Path:
    """Make the copy of a revision anew, with bytecode that is checked against the source's hash."""
    tree = home(revision) / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    with archive(revision) as files:
        files.extractall(tree, filter="data")
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "lib"],
        cwd=tree, check=True,
    )
    return tree


def restore_build(revision: str) -> None:
    """Put back what `cover` left in `_build`: no mutant may leave anything to the next one."""
    built, stored = home(revision) / "tree" / "_build", home(revision) / "build"
    shutil.rmtree(built, ignore_errors=True)
    if stored.exists():
        # Files there are replaced, never written to: links are as good as copies.
        shutil.copytree(stored, built, copy_function=os.link)


# -- one process with pytest, in the copy --------------------------------------------------------


def in_copy(tree: Path, request: dict) -> dict | None:
    """Run `child` in a copy; None if it ends without an answer."""
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        temporary = [f"--basetemp={folder}/pytest"]
        file.write_text(json.dumps(request | {"answer": str(answer), "options": temporary}))
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1",
                                    "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        said, limit = (None, None) if "probed" in request else (subprocess.DEVNULL, HANGS)
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "child", str(file)],
            cwd=tree, env=environment, start_new_session=True, stdout=said, stderr=said,
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return {"verdict": "timed out", "by": "hangs", "tests": 0, "seconds": 0.0}
        finally:
            # The session is the child's own: it, and what its tests started.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return json.loads(answer.read_text()) if answer.exists() else None


def child(request: dict) -> None:
    """Run pytest in the working directory: all tests for their coverage, or those of a mutant."""
    import hypothesis
    import pytest

    sys.path[0] = os.getcwd()  # `lib` and `tests` are the copy's
    hypothesis.settings.register_profile("mutants", deadline=None, database=None)
    hypothesis.settings.load_profile("mutants")
    options = PYTEST + request["options"]
    if "probed" in request:
        plugin = Executed(request)
        pytest.main([*request["files"], *options], plugins=[plugin, Markers()])
        plugin.end()
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        plugin = UntilOneFails(request)
        files = dict.fromkeys(test.partition("::")[0] for test in request["tests"])
        pytest.main([*files, *options, "-x"], plugins=[plugin, Markers()])
        plugin.end(*(("survived",) if plugin.passed else ("caught", "no test was collected")))


class Markers:
    """Pytest's hook for revisions that lack a marker: `-m` may name it all the same."""

    def pytest_configure(self, config):
        for name in MARKED:
            config.addinivalue_line("markers", name)


class Executed:
    """Pytest's hooks for `cover`: the time of each test, and which statements it executes."""

    def __init__(self, request: dict):
        self.answer = Path(request["answer"])
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.now = ""
        setattr(builtins, PROBE, self.executes)
        plant_on_import({Path(path).resolve(): set(at) for path, at in request["probed"].items()})

    def executes(self, statement: str):
        self.tests[statement].add(self.now)

    def pytest_runtest_logstart(self, nodeid: str):
        self.now = nodeid
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str):
        self.seconds[nodeid] += time.process_time()
        self.now = ""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    def end(self):
        """Answer each test's seconds, which failed, and who executed each statement."""
        executed = {statement: sorted(tests) for statement, tests in self.tests.items()}
        found = {"seconds": self.seconds, "failed": sorted(self.failed), "executed": executed}
        self.answer.write_text(json.dumps(found))


PROBE = "__executes__"


def plant_on_import(statements: dict[Path, set[int]]) -> None:
    """Let modules report their statements when they run; the files stay as they are.

    Parameters
    ----------
    statements : dict of Path to set of int
        Lines on which the statements begin, by file.
    """
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str):
        path = Path(loader.path).resolve()
        if path not in statements:
            return load(loader, name)
        planted = plant(path.read_text(), str(path.relative_to(Path.cwd())), statements[path])
        return compile(planted, str(path), "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code


def plant(text: str, path: str, statements: set[int]) -> ast.Module:
    """Parse a source and put a call of the probe before each statement that begins on a line."""

    def planted(body: list[ast.stmt]) -> list[ast.stmt]:
        found = []
        for statement in body:
            if statement.lineno in statements:
                call = ast.parse(f"{PROBE}({f'{path}:{statement.lineno}'!r})").body[0]
                for node in ast.walk(call):
                    ast.copy_location(node, statement)
                found.append(call)
            found.append(statement)
        return found

    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(part := getattr(node, name, None), list):
                setattr(node, name, planted(part))
    return tree


class UntilOneFails:
    """Pytest's hooks for a mutant: its tests in the order asked for, within the time."""

    def __init__(self, request: dict):
        self.answer = Path(request["answer"])
        self.order = {test: place for place, test in enumerate(request["tests"])}
        self.covering, self.passed = request["covering"], 0
        self.now = "collection"
        signal.signal(signal.SIGPROF, lambda number, frame: self.too_long())
        self.start_clock()

    def start_clock(self):
        self.started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def pytest_collection_modifyitems(self, config, items):
        wanted = [item for item in items if item.nodeid in self.order]
        wanted.sort(key=lambda item: self.order[item.nodeid])
        left_out = [item for item in items if item.nodeid not in self.order]
        config.hook.pytest_deselected(items=left_out)
        items[:] = wanted

    def pytest_collectreport(self, report):
        if report.failed:
            self.end("caught", f"collection of {report.nodeid}")

    def pytest_runtestloop(self):
        self.start_clock()

    def pytest_runtest_logstart(self, nodeid: str):
        self.now = nodeid

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.end("caught", report.nodeid)

    def pytest_runtest_logfinish(self):
        self.passed += 1

    def too_long(self):
        self.end("survived" if self.passed >= self.covering else "timed out", self.now)

    def end(self, verdict: str, by: str = ""):
        """Answer, once, and end the process: nothing after this can change the verdict."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = round(time.process_time() - self.started, 1)
        found = {"verdict": verdict, "by": by, "tests": self.passed, "seconds": seconds}
        self.answer.write_text(json.dumps(found))
        os._exit(0)


# -- which tests a mutant runs -------------------------------------------------------------------


class Covered:
    """Which tests of a revision execute what, and how long they take."""

    def __init__(self, revision: str, texts: dict[str, str]):
        file = home(revision) / "tests.json"
        if not file.exists():
            sys.exit(f"no coverage of {revision[:12]}: run the command cover --revision {revision}")
        found = json.loads(file.read_text())
        self.seconds = {test: seconds for test, seconds in found["seconds"].items()
                        if test not in found["failed"]}
        self.texts = texts
        self.probed, self.executed = found["probed"], found["executed"]

    def tests(self, line: Line) -> tuple[list[str], list[str]]:
        """Tests that execute a line, and the others of their modules, in the order to run."""
        if ".cu" in line.path:
            names = [re.compile(rf"\b{stem}\b") for stem in self.kernels(line.path)]
            named = (test for test in self.seconds if any(name.search(test) for name in names))
            return self.ordered(named), []
        if line.first not in self.probed.get(line.path, ()):
            sys.exit(f"{line.path}:{line.first} was not looked at: run the command cover again")
        tests = self.executed.get(f"{line.path}:{line.first}", ())
        covering = self.seconds.keys() & tests
        if not covering and "" in tests:  # run on import: whoever uses the module
            covering = self.seconds.keys() & {
                test for statement, tests in self.executed.items()
                if statement.startswith(f"{line.path}:") for test in tests
            }
        modules = {test.partition("::")[0] for test in covering}
        others = (test for test in self.seconds if test.partition("::")[0] in modules - {""})
        return self.ordered(covering), self.ordered(set(others) - covering)

    def kernels(self, path: str) -> list[str]:
        """Stems of the kernels that a CUDA file is part of."""
        name = Path(path).name
        if not name.endswith(".cuh"):
            return [Path(path).stem]
        users = [other for other, text in self.texts.items()
                 if other.startswith("cuda/") and re.search(rf'#include ".*\b{name}"', text)]
        return sorted({stem for user in users for stem in self.kernels(user)})

    def ordered(self, tests) -> list[str]:
        """Sort tests: modules with the least to do first, in these the fastest first."""
        modules = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            modules[test.partition("::")[0]].append(test)
        total = sorted(modules, key=lambda module: (sum(map(self.seconds.get, modules[module])),
                                                    module))
        return [test for module in total for test in modules[module]]


# -- the commands --------------------------------------------------------------------------------


def load() -> dict:
    """Read the data file."""
    if not DATA.exists():
        sys.exit(f"{DATA} is missing: run the command draw")
    return json.loads(DATA.read_text())


def layout(value, indent: str = "") -> str:
    """JSON that a diff can be read in: one line for each mutant and verdict."""
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in inside):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {layout(item, deeper)}" for key, item in value.items()]
    else:
        rows = [layout(item, deeper) for item in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{closed}"


def save(data: dict) -> None:
    """Write the data file whole or not at all."""
    temporary = DATA.with_suffix(".new")
    temporary.write_text(layout(data) + "\n")
    os.replace(temporary, DATA)


def draw_mutants(revision: str, seed: int) -> None:
    """Write the data file anew."""
    drawn = draw(sources(revision), seed)
    places: dict[str, list] = {"mutants": [], "reserves": []}
    for mutant in drawn:
        stratum, _, number = mutant.id.rpartition("-")
        group = "mutants" if int(number) <= STRATA[stratum][0] else "reserves"
        places[group].append(asdict(mutant))
    save({"seed": seed, "baseline": revision, **places, "renames": {}, "gone": {}, "verdicts": {}})
    print(f"{len(places['mutants'])} mutants, {len(places['reserves'])} reserves")


def cover(revision: str) -> None:
    """Run the tests once, and keep their coverage, their times and what they left in `_build`."""
    data, texts = load(), sources(revision)
    table = [line for path, text in sorted(texts.items()) for line in lines(path, text)]
    probed: dict[str, list[int]] = defaultdict(list)
    for row in data["mutants"] + data["reserves"]:
        line = find(Mutant(**row), table, data["renames"])
        if line and line.path.endswith(".py"):
            probed[line.path].append(line.first)
    folder, tree = home(revision), home(revision) / "tree"
    done = folder / "covered.json"
    stored = json.loads(done.read_text()) if done.exists() else {}
    if stored.get("probed") != probed:
        stored = {"probed": probed, "modules": {}}
        make_copy(revision)
    files = sorted(str(path.relative_to(tree)) for path in tree.glob("tests/**/test_*.py"))
    for file in files:
        if file in stored["modules"] or file.startswith(LEFT_OUT):
            continue
        found = in_copy(tree, {"probed": probed, "files": [file]})
        if found is None:
            sys.exit(f"{file} ended before it was through; see above")
        stored["modules"][file] = found
        done.write_text(json.dumps(stored))
        print(f"{file}: {sum(found['seconds'].values()):.0f} s of CPU time, "
              f"{len(found['failed'])} failed", flush=True)
    shutil.rmtree(folder / "build", ignore_errors=True)
    if (tree / "_build").exists():
        shutil.copytree(tree / "_build", folder / "build", copy_function=os.link)
    modules = stored["modules"].values()
    executed: dict[str, list[str]] = defaultdict(list)
    for found in modules:
        for statement, tests in found["executed"].items():
            executed[statement] += tests
    seconds = {test: took for found in modules for test, took in found["seconds"].items()}
    failed = [test for found in modules for test in found["failed"]]
    (folder / "tests.json").write_text(json.dumps(
        {"seconds": seconds, "failed": failed, "executed": executed, "probed": probed}
    ))
    print(f"{len(seconds)} tests, {sum(seconds.values()):.0f} s of CPU time")
    for test in failed:
        print(f"left out, fails without a mutant: {test}")


def choose(data: dict, revision: str, table: list[Line]) -> list[tuple[Mutant, Line]]:
    """List the mutants of a revision and their places; note which are gone, and who stands in."""
    renames, reserves = data["renames"], [Mutant(**row) for row in data["reserves"]]
    used = {name for gone in data["gone"].values() for name in gone.values() if name}
    chosen, gone = [], {}
    if revision == data["baseline"]:
        chosen = [mutant for mutant in reserves if mutant.id in used]
        reserves = []
    for mutant in (Mutant(**row) for row in data["mutants"]):
        if find(mutant, table, renames):
            chosen.append(mutant)
            continue
        stratum = mutant.id.rpartition("-")[0]
        fit = (other for other in reserves if other.id.rpartition("-")[0] == stratum
               and other not in chosen and find(other, table, renames))
        stand_in = next(fit, None)
        gone[mutant.id] = stand_in.id if stand_in else ""
        chosen += [stand_in] if stand_in else []
    data["gone"][revision] = gone
    return [(mutant, find(mutant, table, renames)) for mutant in chosen]


def run(revision: str, only: list[str]) -> None:
    """Give a verdict on each mutant that has none yet."""
    data, texts = load(), sources(revision)
    covered = Covered(revision, texts)
    table = [line for path, text in sorted(texts.items()) for line in lines(path, text)]
    chosen = choose(data, revision, table)
    verdicts = data["verdicts"].setdefault(revision, {})
    save(data)
    tree = make_copy(revision)
    for mutant, line in chosen:
        if mutant.id in verdicts or only and mutant.id not in only:
            continue
        text = texts[line.path]
        changed = apply(text, line.number, mutant.replacement)
        covering, others = covered.tests(line)
        found = try_out(revision, line.path, changed, covering, others)
        while ".cu" in line.path and found["by"] in covering and (
            # The same tokens and one empty declaration: who minds that compares the text's hash.
            try_out(revision, line.path, text + ";\n", [found["by"]], [])["verdict"] == "caught"
        ):
            covering.remove(found["by"])
            found = try_out(revision, line.path, changed, covering, [])
        (tree / line.path).write_text(text)
        verdicts[mutant.id] = found
        save(data)
        print(f"{mutant.id:12} {found['verdict']:9} {found['by']}", flush=True)
    print(summary(data, revision))


def try_out(revision: str, path: str, text: str, covering: list[str], others: list[str]) -> dict:
    """Put a text in a file's place in the copy and run tests until one fails."""
    if not covering:
        return {"verdict": "survived", "by": "no test executes it", "tests": 0, "seconds": 0.0}
    restore_build(revision)
    (home(revision) / "tree" / path).write_text(text)
    request = {"tests": covering + others, "covering": len(covering)}
    return in_copy(home(revision) / "tree", request) or CRASHED


def summary(data: dict, revision: str) -> str:
    """Count a revision's verdicts."""
    verdicts = [row["verdict"] for row in data["verdicts"].get(revision, {}).values()]
    counts = ", ".join(f"{verdicts.count(word)} {word}"
                       for word in ("caught", "survived", "timed out"))
    return f"{revision[:12]}: {counts}; {len(data['gone'].get(revision, {}))} replaced"


def compare(revision: str) -> int:
    """Print both lists of survivors; 1 if a mutant that was caught before survives."""
    data = load()
    rows = {row["id"]: row for row in data["mutants"] + data["reserves"]}
    before, after = (data["verdicts"].get(name, {}) for name in (data["baseline"], revision))
    for name, verdicts in ((data["baseline"], before), (revision, after)):
        print(summary(data, name))
        for key, row in verdicts.items():
            if row["verdict"] != "caught":
                mutant = rows[key]
                print(f"  {key:12} {row['verdict']:9} {mutant['function']}: "
                      f"{mutant['line']}  ->  {mutant['replacement']}")
    for old, new in data["gone"].get(revision, {}).items():
        print(f"gone: {old} ({rows[old]['line']}), in its place {new or 'nothing'}")
    for key in after.keys() - before.keys():
        print(f"no verdict at the baseline on {key}: run --revision {data['baseline'][:12]}")
    lost = [key for key in after if before.get(key, {}).get("verdict") == "caught"
            and after[key]["verdict"] != "caught"]
    for key in lost:
        print(f"LOST: {key} was caught by {before[key]['by']} and has now {after[key]['verdict']}")
    return int(any(after[key]["verdict"] == "survived" for key in lost))


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("draw", "cover", "run", "compare"))
    parser.add_argument("--revision", default="HEAD", help="any name that git knows")
    parser.add_argument("--seed", type=int, default=12, help="of the draw")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="these mutants")
    asked = parser.parse_args()
    revision = full(asked.revision)
    try:
        import hypothesis  # noqa: F401
    except ImportError as missing:
        sys.exit(f"{missing.name} is missing: pip install -r requirements-dev.txt")
    match asked.command:
        case "draw":
            draw_mutants(revision, asked.seed)
        case "cover":
            cover(revision)
        case "run":
            run(revision, asked.only)
        case "compare":
            return compare(revision)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(json.loads(Path(sys.argv[2]).read_text()))
    else:
        sys.exit(main())
