"""What may never be (the house's rules), read off the imports of every module of `lib`.

A rule takes modules as a mapping from name to source text, so that each is tried twice: on the
library as it is, and with a violation planted in it, which must be found.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from book import record_pages
from lib import gpus
from lib.chapter import Chapter
from lib.gpus import GPUS
from lib.kernels import catalogue
from lib.kernels.catalogue import CATALOGUE
from lib.paths import ROOT
from lib.ptx.core import machine

Sources = Mapping[str, str]

# Who may import whom: a package, or a module at lib's root, imports only those before it.
ORDER = ("ptx", "compiler", "paths", "gpus", "bfloat16", "problem", "estimate", "kernels",
         "dispatch", "records", "run", "show", "panel", "measure", "claims",
         "chapter", "cli", "torch")
# What draws, and what makes widgets.
DRAWS = ("matplotlib", "ipywidgets", "IPython")
# The most modules at lib's root.
MAX_AT_ROOT = 7
# The most names of `Chapter`, and modules from a call on a page to its figure.
MAX_VERBS = 30


@cache
def library() -> dict[str, str]:
    """Every module of lib, and the code of every chapter: its name and its text."""
    found = {}
    for path in sorted((ROOT / "lib").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        code = (cell for cell in json.loads(path.read_text())["cells"]
                if cell["cell_type"] == "code"
                and "colab-setup" not in cell["metadata"].get("tags", ()))
        found[f"chapters.{path.stem}"] = "\n".join("".join(cell["source"]) for cell in code)
    return found


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """All of a module's tree, itself the first; nobody changes it."""
    return tuple(ast.walk(ast.parse(text)))


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go():
    yield
    nodes.cache_clear()


@cache
def written(text: str) -> tuple[tuple[int, str, str | None], ...]:
    """The imports of a module's text, anywhere in it: level, module and the name taken from it.

    Those for type checkers alone count like the others.
    """
    found: list[tuple[int, str, str | None]] = []
    for node in nodes(text):
        if isinstance(node, ast.Import):
            found += [(0, alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module or "", alias.name) for alias in node.names]
    return tuple(found)


def imports(name: str, sources: Sources) -> set[str]:
    """What a module imports: modules of lib by their full name, others as written."""
    is_package = any(other.startswith(f"{name}.") for other in sources)
    here = name.split(".") if is_package else name.split(".")[:-1]
    found = set()
    for level, module, taken in written(sources[name]):
        if level:
            module = ".".join([*here[: len(here) - level + 1], *filter(None, [module])])
        full = f"{module}.{taken}"
        found.add(full if taken and full in sources else module)
    return found - {name}


def graph(sources: Sources) -> dict[str, set[str]]:
    """For each module the modules of lib that it imports."""
    return {name: imports(name, sources) & set(sources) for name in sources}


def room(name: str) -> str:
    """The package or root module of a module: ``lib.show.banks`` → ``show``."""
    return name.split(".")[1] if name.startswith("lib.") else ""


def reached(name: str, edges: Mapping[str, set[str]]) -> set[str]:
    """All modules of lib that are loaded with a module, and itself."""
    found, left = set(), [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += edges[one]
    return found


# The rules. Each yields the violations that it finds.

def modules_in_a_circle(sources: Sources) -> Iterator[str]:
    """A circle between modules, imports in functions and for type checkers counted."""
    try:
        TopologicalSorter(graph(sources)).prepare()
    except CycleError as circle:
        yield " ↔ ".join(circle.args[1])


def packages_out_of_order(sources: Sources) -> Iterator[str]:
    """An import against the order of packages, so that there is no circle between them either."""
    for name, others in graph(sources).items():
        for other in others:
            mine, theirs = room(name), room(other)
            if mine not in ("", "__main__", theirs) and theirs and (
                    ORDER.index(theirs) > ORDER.index(mine)):
                yield f"{name} imports {other}"


def emulator_importing(sources: Sources) -> Iterator[str]:
    """`lib.ptx` importing anything but itself, by no name that a copy hasn't, NumPy and the
    standard library.
    """
    for name in sources:
        if room(name) == "ptx":
            above = name.count(".") + any(other.startswith(f"{name}.") for other in sources)
            for level, module, _ in written(sources[name]):
                top = module.split(".")[0]
                if level >= above or not level and top not in {"numpy", *sys.stdlib_module_names}:
                    yield f"{name} imports {'.' * level}{module}"


def emulator_out_of_order(sources: Sources) -> Iterator[str]:
    """Inside the emulator: the core knows no instruction, and counting and races not each other."""
    for name, others in graph(sources).items():
        if name.count(".") > 2 and room(name) == "ptx":
            mine = name.split(".")[2]
            for other in others:
                theirs = other.split(".")[2] if other.count(".") > 2 else mine
                if theirs != mine and theirs not in BELOW[mine]:
                    yield f"{name} imports {other}"


BELOW = {"core": (), "count": ("core",), "race": ("core",), "isa": ("core", "count", "race")}


def compiler_importing(sources: Sources) -> Iterator[str]:
    """`lib.compiler` importing anything of lib but `ptx`."""
    for name in sources:
        if room(name) == "compiler":
            yield from (
                f"{name} imports {other}" for other in imports(name, sources)
                if other.split(".")[0] == "lib" and room(other) not in ("compiler", "ptx")
            )


@cache
def at_once(text: str) -> str:
    """A module's text without what functions import later, and type checkers alone."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def drawing_where_numbers_are_made(sources: Sources) -> Iterator[str]:
    """What measures, runs or answers in a browser, with all that it loads: no Matplotlib, no
    widgets. A page's own module may import them in the function that draws.
    """
    loaded_at_once = {name: at_once(text) for name, text in sources.items()}
    edges = graph(loaded_at_once)
    drawing = {name: others for name in sources if (others := {
        other for other in imports(name, loaded_at_once) if other.split(".")[0] in DRAWS})}
    for name in sources:
        if room(name) in ("measure", "records", "run", "kernels", "dispatch", "panel"):
            for loaded in reached(name, edges) & set(drawing):
                yield f"{name} loads {', '.join(drawing[loaded])}, by {loaded}"
            yield from (f"{name} imports {other}" for other in imports(name, sources)
                        if other.split(".")[0] in DRAWS)


def pytorch_imported(sources: Sources) -> Iterator[str]:
    """PyTorch, which is optional, anywhere but in the package that is imported for it."""
    for name in sources:
        if room(name) != "torch" and not name.startswith("chapters."):
            yield from (f"{name} imports {other}" for other in imports(name, sources)
                        if other == "lib.torch" or other.split(".")[0] == "torch")


def figures_that_compute(sources: Sources) -> Iterator[str]:
    """A function that draws on axes and reads a record, runs a kernel or compiles: it is given
    plain data.
    """
    for name, text in sources.items():
        if room(name) != "show":
            continue
        sources_of = {alias.asname or alias.name: node.module or ""
                      for node in nodes(text) if isinstance(node, ast.ImportFrom)
                      for alias in node.names}
        for function in nodes(text)[0].body:
            if isinstance(function, ast.FunctionDef) and any(
                    ast.unparse(one).endswith("styled") for one in function.decorator_list):
                body = ast.Module(function.body, [])
                used = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
                for one in sorted(used & set(sources_of)):
                    module = f"{sources_of[one]}.{one}"
                    if room(module) in ("records", "run", "measure", "compiler", "dispatch"):
                        yield f"{name}.{function.name} uses {module}"


def kernels_or_dispatch_reading_records(sources: Sources) -> Iterator[str]:
    """The catalogue, or what decides a launch, reading what was measured."""
    edges = graph(sources)
    for name in sources:
        if room(name) in ("kernels", "dispatch"):
            yield from (f"{name} loads {other}" for other in reached(name, edges)
                        if room(other) == "records")


def launches_decided_outside_dispatch(sources: Sources) -> Iterator[str]:
    """A module that asks a grid for its blocks, or a search for its tile, in place of a plan."""
    for name, text in sources.items():
        if room(name) == "dispatch":
            continue
        if ("lib.dispatch.plan", "nearest") in {one[1:] for one in written(text)}:
            yield f"{name} imports lib.dispatch.plan's nearest"
        for node in nodes(text):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                    node.func.attr in ("blocks", "workspace")
                    and getattr(node.func.value, "attr", "") == "grid"):
                yield f"{name}, line {node.lineno}: grid.{node.func.attr}"


def records_handed_on_as_dicts(sources: Sources) -> Iterator[str]:
    """A record leaves `lib.records` as its struct: what is read of it is checked as a name is."""
    untyped = ("dict[str, Any]", "Mapping[str, Any]")
    for name, text in sources.items():
        for node in nodes(text):
            if room(name) == "records":
                # The JSON Schema is none of a record.
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and (
                        node.returns and node.name != "documentation"):
                    if any(one in ast.unparse(node.returns) for one in untyped):
                        yield f"{name}.{node.name} returns {ast.unparse(node.returns)}"
            elif isinstance(node, ast.Attribute | ast.alias) and name != "lib.cli.common":
                said = node.attr if isinstance(node, ast.Attribute) else node.name
                if said in ("to_builtins", "asdict") and "msgspec" in text:
                    yield f"{name}: {said}"


def versions_known_to_generic_modules(sources: Sources) -> Iterator[str]:
    """A version's name in a module that serves all of them."""
    generic = {name for name in sources if room(name) in (
                   "ptx", "compiler", "dispatch", "run")
               or name in ("lib.chapter", "lib.problem", "lib.gpus", "lib.show.version",
                           "lib.kernels.spec", "lib.kernels.grid")}
    for name in generic:
        for node in nodes(sources[name]):
            if isinstance(node, ast.Constant) and node.value in CATALOGUE:
                yield f"{name} knows {node.value}"


def files_that_are_waited_for(sources: Sources) -> Iterator[str]:
    """A file that is read otherwise than by `lib.ptx.files`, which refuses pipes and devices."""
    for name, text in sources.items():
        if room(name) in ("ptx", "compiler", "kernels", "records", "run", "panel"):
            for node in nodes(text):
                if isinstance(node, ast.Attribute) and node.attr in ("read_text", "read_bytes"):
                    yield f"{name}, line {node.lineno}: {node.attr}"


def peaks_in_two_places(sources: Sources) -> Iterator[str]:
    """A peak or a bandwidth of a data sheet that is written down again."""
    peaks = {value for gpu in GPUS.values() for value in
             (gpu.tensor_fp16_flops, gpu.dram_bytes_per_s, gpu.clock_hz)}
    for name, text in sources.items():
        if name != "lib.gpus" and room(name) != "claims":  # those quote what others assert
            for node in nodes(text):
                if isinstance(node, ast.Constant) and type(node.value) is float and (
                        node.value in peaks):
                    yield f"{name} has {node.value}"


def replacements_that_may_match_nothing(sources: Sources) -> Iterator[str]:
    """An experiment on a kernel's text by `str.replace`, which is silent where nothing matches.

    `lib.kernels.source.edited` raises there.
    """
    for name, text in sources.items():
        if name.startswith("chapters.") or room(name) in ("claims", "measure", "records"):
            for node in nodes(text):
                if isinstance(node, ast.Attribute) and node.attr == "replace" and (
                        isinstance(node.value, ast.Name) and node.value.id in KERNEL_TEXTS):
                    yield f"{name}, line {node.lineno}: {node.value.id}.replace"


# What an experiment calls the text that it changes.
KERNEL_TEXTS = ("text", "source", "code", "bare", "guarded", "inside", "kernel_text")


# Words that only this project used for what the field has names for: progress, estimate, session,
# bundle, submission, cache, cluster, limit (MAX_…). PTX itself has `cvt.pack`, and packs by `mov`.
PRIVATE_WORDS = frozenset("beside desk kept moved most pack patience rung sent told".split())
PTX_WORDS = {"lib.ptx.isa.cvt": {"pack"}, "lib.ptx.isa.mov": {"pack"}}


@cache
def names(text: str) -> frozenset[str]:
    """What a module's text gives a name to: classes, functions, parameters, variables, attributes.

    Names of tests are sentences, and not counted.
    """
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.alias) and node.asname:
            found.add(node.asname)
    return frozenset(name for name in found if not name.startswith("test_"))


def private_words(sources: Sources) -> Iterator[str]:
    """Files, and names in them, that carry a word of the project's own."""
    for module, text in sources.items():
        allowed = PTX_WORDS.get(module, frozenset())
        for name in (module.rpartition(".")[2].removeprefix("test_"), *names(text)):
            words = {word.lower() for word in re.findall("[A-Z]?[a-z0-9]+|[A-Z0-9]+", name)}
            words |= {word.removesuffix("s") for word in words}
            if found := words & PRIVATE_WORDS - allowed:
                yield f"{module}: {name} carries {', '.join(sorted(found))}"


RULES: dict[Callable[[Sources], Iterator[str]], dict[str, str]] = {
    modules_in_a_circle: {
        "lib.kernels.grid": "def f():\n    from lib.dispatch import fit\n",
        "lib.panel.render": "from typing import TYPE_CHECKING\n"
                            "if TYPE_CHECKING:\n    from lib.panel.session import Session\n",
    },
    packages_out_of_order: {
        "lib.run.runner": "from lib.panel import session",
    },
    emulator_importing: {
        "lib.ptx.core.errors": "import cupy", "lib.ptx.core.lanes": "from lib.ptx import files",
        "lib.ptx.files": "from ..problem import Problem",
    },
    emulator_out_of_order: {"lib.ptx.core.memory": "from lib.ptx.isa import mma"},
    compiler_importing: {"lib.compiler.sass": "from lib import problem"},
    drawing_where_numbers_are_made: {
        "lib.panel.render": "from lib.show import roofline",
        "lib.measure.bench": "def f():\n    import matplotlib.pyplot",
    },
    pytorch_imported: {
        "lib.run.libraries": "def f():\n    import torch", "lib.run.gemm": "import lib.torch",
    },
    figures_that_compute: {
        "lib.show.dots": "from lib.records import store\n@style.styled\ndef f():\n"
                         "    store.load()",
    },
    kernels_or_dispatch_reading_records: {
        "lib.dispatch.plan": "def f():\n    from lib.records import searches",
    },
    versions_known_to_generic_modules: {"lib.run.runner": "SLOW = '01_naive'"},
    launches_decided_outside_dispatch: {
        "lib.run.prepared": "def f(plan, problem):\n"
                            "    return plan.variant.grid.blocks(problem, (1, 1), 1, 1)",
        "lib.show.version": "from lib.dispatch.plan import nearest",
    },
    records_handed_on_as_dicts: {
        "lib.records.store": "def raw(file: Path) -> list[dict[str, Any]]:\n    return []",
        "lib.show.speed": "from msgspec import to_builtins",
        "lib.claims.evidence": "import msgspec\ndef f(row):\n    msgspec.structs.asdict(row)",
    },
    replacements_that_may_match_nothing: {
        "lib.claims.evidence": "def f(text):\n    return text.replace('__syncthreads();', '')",
        "chapters.09_fp32_limit": "late = text.replace('__threadfence();', '')",
    },
    private_words: {
        "lib.cli.running": "from lib.compiler.streams import progress as told",
        "lib.kernels.grid": "def launched(beside: int) -> None: ...",
        "lib.ptx.core.lanes": "MOST_LANES = 4",
        "lib.records.told": "",
    },
    files_that_are_waited_for: {
        "lib.compiler.cache": "def f(file):\n    return file.read_bytes()"},
    peaks_in_two_places: {"lib.measure.bench": f"PEAK = {GPUS['H100'].tensor_fp16_flops}"},
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_library_keeps_the_rule(rule):
    assert not list(rule(library()))


@pytest.mark.parametrize("rule, name, violation", [
    pytest.param(rule, name, violation, id=f"{rule.__name__}-{name}")
    for rule, planted in RULES.items() for name, violation in planted.items()
])
def test_a_planted_violation_is_found(rule, name, violation):
    sources = library()
    changed = {**sources, name: f"{sources.get(name, '')}\n{violation}\n"}
    assert any(name in found for found in rule(changed))


def test_the_book_and_the_tests_have_no_private_words():
    sources = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text("utf-8")
               for folder in ("book", "tests", "tools") for path in (ROOT / folder).rglob("*.py")}
    assert "tests.test_layers" in sources and not list(private_words(sources))


# Sizes of the machine, and where each is written.
SIZES = {"WARP", "WARPGROUP", "BANKS", "WAVEFRONT", "SECTOR", "LINE"}
MACHINE = "lib.ptx.core.machine"


def test_sizes_of_the_machine_are_written_once():
    assigned = {
        (name, target.id) for name, code in library().items() for node in ast.parse(code).body
        if isinstance(node, ast.Assign) for given in node.targets
        for target in (given.elts if isinstance(given, ast.Tuple) else [given])
        if isinstance(target, ast.Name) and target.id in SIZES
    }
    assert assigned == {(MACHINE, name) for name in SIZES}
    # Their second names, where the emulator is not loaded.
    assert (gpus.LANES, gpus.LINE_BYTES) == (machine.WARP, machine.LINE)


def test_few_modules_stand_at_the_root():
    at_root = {path.name for path in (ROOT / "lib").glob("*.py")} - {"__init__.py", "__main__.py"}
    assert len(at_root) <= MAX_AT_ROOT, at_root


def test_a_chapter_is_composed_of_few_verbs_that_many_chapters_use():
    names = {name for name in vars(Chapter) if not name.startswith("_")} | {"version"}
    assert Chapter.__bases__ == (object,) and len(names) <= MAX_VERBS
    chapters = [code for name, code in library().items() if name.startswith("chapters.")]
    chapters += ["\n".join(cell.source for cell in record_pages.notebook(stem).cells)
                 for stem in catalogue.in_book()]
    used = {name: sum(bool(re.search(rf"\.{name}\b", code)) for code in chapters)
            for name in names}
    assert not {name: times for name, times in used.items() if times < 3}
