"""What docstrings and comments name exists: parameters and attributes, functions and modules.

NumPy's sections stand where a person imports, and document all of a signature or are left out; one
sentence does elsewhere, with what annotations can't say. So numpydoc's own validation, which wants
sections everywhere, doesn't fit. What pages, figures and explorers of `lib.show` take alike is
described once, in that package.
"""

import ast
import importlib
import inspect
import io
import re
import textwrap
import tokenize
from functools import cache
from pathlib import Path

from book import interface

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(ROOT.glob("lib/**/*.py"))
PROSE = [path for pattern in ("*.md", "docs/**/*.md", "lib/**/*.md", "book/**/*.py",
                              "chapters/*.ipynb")
         for path in sorted(ROOT.glob(pattern))
         if path.name != "CHANGELOG.md"]  # which says what names were before
_TITLE = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.M)
_FULL = re.compile(r"(?<![\w./-])(?:lib|book|tests)(?:\.[A-Za-z_]\w*)+(?![\w-]*[/.]\w)")
_QUOTED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?`(?!`)")
# What draws or displays: figures, pages and explorers.
DRAWN = re.compile(r"lib/show/\w+\.py$")
# Packages whose insides have no sections; what a person imports of them, and `Costs`, whose
# attributes a page prints.
PLAIN = ("claims", "cli", "compiler", "dispatch", "kernels", "measure", "ptx", "records", "run")
FRONT = {"Costs", "emulate", "gemm",
         *(name for names in interface.PUBLIC.values() for name in names)}
OUTSIDE = ("cupy", "matplotlib", "numpy", "torch")  # libraries, not looked up
_ENDINGS = (".py", ".md", ".toml", ".json", ".js", ".css", ".zip", ".cu", ".h")


def section(doc: str, title: str) -> list[str] | None:
    """The names that a section of a NumPy docstring describes; None without that section."""
    cut = _TITLE.split(inspect.cleandoc(doc))
    if title not in cut[1::2]:
        return None
    heads = re.findall(r"^(\S.*)$", cut[cut.index(title) + 1], re.M)
    return [name.strip().lstrip("*") for head in heads for name in head.split(" : ")[0].split(",")]


def parameters(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """What a function, or the making of a class, takes."""
    if isinstance(node, ast.ClassDef):
        made = [one for one in node.body
                if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        if not made:
            return [one.target.id for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        node = made[0]
    found = node.args
    every = [*found.posonlyargs, *found.args, found.vararg, *found.kwonlyargs, found.kwarg]
    return [one.arg for one in every if one and one.arg not in ("self", "cls")]


def attributes(node: ast.ClassDef) -> set[str]:
    """What a class and its instances have."""
    found = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    for one in ast.walk(node):
        for target in getattr(one, "targets", None) or [getattr(one, "target", None)]:
            for part in ast.walk(target) if target else ():
                found.add(getattr(part, "attr", getattr(part, "id", "")))
    return found


@cache
def described_once() -> frozenset[str]:
    """The parameters that `lib.show` describes for all that draw or display."""
    return frozenset(section(importlib.import_module("lib.show").__doc__, "Parameters"))


def mistakes(tree: ast.AST, known: frozenset[str] = frozenset()) -> list[str]:
    """Parameters that a section lacks or makes up, and attributes that it makes up.

    Those that are `known` may be left out.
    """
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or not ast.get_docstring(node):
            continue
        described = section(ast.get_docstring(node), "Parameters")
        if described is not None:
            takes = [name for name in parameters(node) if not name.startswith("_")]
            found += [f"{node.name}: no parameter {name}"
                      for name in described if name not in takes]
            found += [f"{node.name}: {name} is missing"
                      for name in takes if name not in {*described, *known}]
        if isinstance(node, ast.ClassDef):
            has = attributes(node)
            found += [f"{node.name}: no attribute {name}"
                      for name in section(ast.get_docstring(node), "Attributes") or ()
                      if name not in has]
    return found


def words(source: str) -> str:
    """The docstrings and comments of a module."""
    found = [node.value.value for node in ast.walk(ast.parse(source))
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
             and isinstance(node.value.value, str)]
    found += [token.string for token in tokenize.generate_tokens(io.StringIO(source).readline)
              if token.type == tokenize.COMMENT]
    return "\n".join(found)


@cache
def exists(name: str) -> bool:
    """Whether a dotted name is a package, a module, or what stands in one."""
    path, rest = ROOT, name.split(".")
    while rest and (path / rest[0]).is_dir():
        path /= rest.pop(0)
    if rest and (path / f"{rest[0]}.py").is_file():
        path /= rest.pop(0)
    elif not (path / "__init__.py").is_file():
        return False
    if not rest:
        return True
    try:
        found = importlib.import_module(".".join(path.relative_to(ROOT).parts))
    except ModuleNotFoundError as missing:
        if missing.name != "torch":  # which is optional
            raise
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = file.read_text(encoding="utf-8")
        return rest[0] in {getattr(node, "name", None) for node in ast.parse(text).body}
    for part in rest:
        if inspect.isclass(found) and part in attributes(
                ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]):
            return True
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def resolves(name: str, module: str) -> bool:
    """Whether a name that a module's docstring quotes exists: in it, beside it or above it, or as
    what stands in a class or a module of that name, wherever that is."""
    if name.startswith(tuple(f"{library}." for library in OUTSIDE)):
        return True
    parts = module.split(".")
    scopes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    first, _, rest = name.partition(".")
    inside = (f"{home}.{first}.{rest}" for home in homes().get(first, ()))
    return exists(name) or any(map(exists, (*(f"{scope}.{name}" for scope in scopes), *inside)))


@cache
def homes() -> dict[str, list[str]]:
    """The modules that each class of `lib` is defined in, and the packages of each module."""
    found: dict[str, list[str]] = {}
    for path in FILES:
        module = module_of(path)
        found.setdefault(path.stem, []).append(module.rpartition(".")[0])
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    return found


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_sections_describe_what_there_is():
    wrong = [f"{path.relative_to(ROOT)}: {mistake}" for path in FILES
             for mistake in mistakes(ast.parse(path.read_text(encoding="utf-8")), (
                 described_once() if DRAWN.search(path.as_posix()) else frozenset()))]
    assert not wrong, "\n".join(wrong)


def sectioned(tree: ast.Module) -> list[str]:
    """What has sections, and isn't of the front nor inside of what is."""
    inside = {id(node) for top in tree.body if getattr(top, "name", "") in FRONT
              for node in ast.walk(top)}
    return [node.name for node in ast.walk(tree) if id(node) not in inside
            and isinstance(node, ast.FunctionDef | ast.ClassDef)
            and any(section(ast.get_docstring(node) or "", title) is not None
                    for title in ("Parameters", "Attributes", "Returns", "Yields", "Raises"))]


def test_sections_stand_where_a_person_imports():
    wrong = [f"{path.relative_to(ROOT)}: {name}" for package in PLAIN
             for path in FILES if path.is_relative_to(ROOT / "lib" / package)
             for name in sectioned(ast.parse(path.read_text(encoding="utf-8")))]
    assert not wrong, "\n".join(wrong)


def test_full_names_exist():
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in (*FILES, *PROSE)
             for name in _FULL.findall(path.read_text(encoding="utf-8"))
             if not name.endswith(_ENDINGS) and not exists(name)]
    assert not wrong, "\n".join(wrong)


def test_quoted_names_exist():
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in FILES
             for name in _QUOTED.findall(words(path.read_text(encoding="utf-8")))
             if not name.endswith(_ENDINGS) and not resolves(name, module_of(path))]
    assert not wrong, "\n".join(wrong)
