"""Every regular expression that meets a user's text takes time in proportion to it.

All of them are found in the source: those that modules keep, and those that stand in a call. Each
is run as it is used, on texts of 10,000 characters that repeat what makes expressions go back:
blanks, comments, brackets, quotes, parts of numbers and names, behind what the expression begins
with.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lib
from lib import ptx
from lib.compiler import arguments, raw_module
from lib.compiler.cu_file import kernels_of
from lib.compiler.signature import of_kernel

ROOT = Path(lib.__path__[0])
PACKAGES = ("compiler", "ptx", "cli")
METHODS = ("match", "search", "fullmatch", "finditer", "findall", "sub", "split")
SIZE = 10_000
SECONDS = 0.15  # of this process; linear ones take a millisecond at most
UNITS = (" ", "\n", " \n", "// \n", "/", "/*", "/* */ ", "\\\n", "a", "0", "a ", "a:", "a,",
    "0_", "a.", "-", "# ", '"', '\\"', "'", 'R"', "(", "[", "{", "<", "; ", "%", "@a ", "[%a+1",
    "std ", "ld.shared ", "a<")
HEADS = ("", "a", "@a ", "/*0000*/ ", '#include "', "#define a", 'R"a(', "[%a", "ld.shared.b32 ",
    "x=a[1]:", "a(1): ", "%", '.file 1 "', "Compiling entry function 'x'")


def modules() -> list[Path]:
    return sorted(path for each in PACKAGES for path in (ROOT / each).rglob("*.py"))


def expressions() -> dict[tuple[str, int, str], tuple[re.Pattern, set[str]]]:
    """Each expression by its file, its line and its text, with the methods by which it is used."""
    every: dict = {}
    trees = {path: ast.parse(path.read_text()) for path in modules()}
    called = {(of, way) for tree in trees.values() for of, way, _ in calls(tree)}
    for path, tree in trees.items():
        name = ".".join(("lib", *path.relative_to(ROOT).with_suffix("").parts))
        module = importlib.import_module(name.removesuffix(".__init__"))
        for variable, value in vars(module).items():
            if isinstance(value, re.Pattern):
                ways = {way for of, way in called if of == variable} or {"search"}
                every[path.name, 0, value.pattern] = value, ways
        for of, way, node in calls(tree):
            text = written(node.args[0], vars(module)) if of == "re" else None
            if text is not None:
                said = ast.unparse(node)
                flags = re.M * ("re.M" in said) | re.S * (
                    "re.S" in said or "DOTALL" in said) | re.X * ("re.X" in said)
                every[path.name, node.lineno, text] = re.compile(text, flags), {way}
    return every


def calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    """The calls of a method of an expression's, or of the module's: of what, which, and where."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name(of), way)) if way in METHODS:
                yield of, way, node


def written(node: ast.expr, names: dict) -> str | None:
    """The text of an expression; what only a run knows is an x. None for a compiled one."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = []
        for part in node.values:
            value = part.value if isinstance(part, ast.Constant) else None
            if value is None:
                try:
                    value = str(eval(ast.unparse(part.value), dict(names)))
                except NameError:
                    value = "x"
            parts.append(value)
        return "".join(parts)
    return None


@contextmanager
def limited(seconds: float):
    def stop(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run(pattern: re.Pattern, way: str, text: str) -> None:
    result = pattern.sub("", text) if way == "sub" else getattr(pattern, way)(text)
    if way == "finditer":
        for _ in result:
            pass


ALL = expressions()


def test_they_are_found():
    assert len(ALL) > 60
    files = {file for file, _, _ in ALL}
    assert {"cu_file.py", "raw_module.py", "parser.py", "arguments.py"} <= files


@pytest.mark.parametrize("file,line,text", ALL, ids=[f"{f}:{n}:{t[:20]!r}" for f, n, t in ALL])
def test_time_is_linear(file, line, text):
    pattern, ways = ALL[file, line, text]
    slow = []
    for way in sorted(ways):
        for head in HEADS:
            for unit in UNITS:
                try:
                    with limited(SECONDS):
                        run(pattern, way, head + unit * (SIZE // len(unit)))
                except TimeoutError:
                    slow.append((way, head, unit))
                    break
            if slow:
                break
    assert not slow


@pytest.mark.parametrize("unit", UNITS)
def test_what_reads_a_text_is_linear(unit):
    """The functions around them, on a kernel behind, and before, so many of each."""
    many = unit * (2 * SIZE // len(unit))
    kernel = "__global__ void k(float* x) { x[0] = 1; }\n"
    for text in (f"// {many}\n{kernel}", f"{kernel}\n{many}", f'#define A "{many}"\n{kernel}',
                 many):
        for read in (kernels_of, raw_module._is_ptx, of_whole_module, of_words, of_parameters):
            with limited(10 * SECONDS):
                read(text)


def of_whole_module(text: str) -> None:
    with pytest.raises(ptx.Error):
        ptx.Module(text).get_function("k")


def of_words(text: str) -> None:
    try:
        arguments.parse([text])
    except ValueError:
        pass


def of_parameters(text: str) -> None:
    of_kernel("k", text)


def test_a_slow_one_is_seen():
    with pytest.raises(TimeoutError), limited(SECONDS):
        run(re.compile(r"(?:\s|//[^\n]*)*x"), "match", "// \n" * 40)
