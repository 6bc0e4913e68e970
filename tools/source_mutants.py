"""What `mutate_sources` changes: one line of a function, kept by name so that it may move.

A mutant names a function and the text of one of its lines, never a file and a line number. `edits`
lists what can be changed in a source, `draw` picks some of it by a seed, `find` looks a mutant up
in sources that were rearranged since, `apply` changes the line.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from types import CodeType

# Stratum: how many mutants it has, and the files that they are drawn from (`*` matches `/` too).
STRATA = {
    "ptx": (50, ("lib/ptx/*",)),
    "models": (22, ("lib/models/*", "lib/topics/*/model.py")),
    "problem": (8, ("lib/problem.py",)),
    "records": (8, ("lib/measure/records.py", "lib/records/*")),
    "kernels": (12, ("cuda/[0-9]*.cu", "cuda/include/*.cuh")),
}
A_FUNCTION = 2  # mutants at most, so that no long function takes the place of several

SWAPS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"), ast.Pow: ("**", "*"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}
# Nothing in these is changed: messages, claims about types, what only a reader sees.
LEFT_ALONE = (ast.Assert, ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
OF_TYPES = {"isinstance", "issubclass", "print"}
SHOWN = {"__repr__", "__str__", "describe", "label"}
TYPES = ("annotation", "returns", "decorator_list", "type_params", "args")
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# A guard compares with a bound of the matrices or with what is left of a tile, on an `if` or `?`.
BOUND = re.compile(
    r"(?:<|<=|>|>=) (?:M|N|K|rows|cols|left)\b|\b(?:inside|left|valid) (?:<|<=|>|>=) "
)
CHOICE = re.compile(r"\bif (?:constexpr )?\(|\? |\bbool inside\b")
CUDA_EDITS = (
    (r"(?<= )<(?= )", "<=", "< to <="), (r"(?<= )<=(?= )", "<", "<= to <"),
    (r"(?<= )>(?= )", ">=", "> to >="), (r"(?<= )>=(?= )", ">", ">= to >"),
    (r"&&", "||", "&& to ||"), (r"\|\|", "&&", "|| to &&"),
    (r"(?<=: )0\.0f\b", "1.0f", "zero-fill to one-fill"),
    (r"\bif \((?!.*\breturn\b)", "if (true || ", "condition forced true"),
)


@dataclass(frozen=True)
class Line:
    """A line of code of a function.

    Attributes
    ----------
    path : str
        File, from the root of the tree.
    number : int
        From 1.
    function : str
        Qualified name within the file, such as ``"Groups.add"``.
    text : str
        Without indentation and without a comment at its end.
    first, last : int
        Lines of the statement that it belongs to (of its head, if other statements are inside).
    """

    path: str
    number: int
    function: str
    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Mutant:
    """One changed line.

    Attributes
    ----------
    id : str
        Stratum and place in the order of drawing, such as ``"ptx-07"``.
    module : str
        Stem of the file when drawn: tells two functions of one name apart.
    function, line : str
        See `Line`.
    occurrence : int
        Which of the same lines of that function, from 0.
    only : bool
        Whether no other function had this line when drawn.
    change : str
        In words.
    replacement : str
        What stands in the line's place.
    """

    id: str
    module: str
    function: str
    line: str
    occurrence: int
    only: bool
    change: str
    replacement: str


def bare(path: str, line: str) -> str:
    """A line without indentation and without a comment at its end."""
    return re.sub(r"\s+// .*$" if ".cu" in path else r"\s+# .*$", "", line).strip()


def lines(path: str, text: str) -> list[Line]:
    """List the lines of code inside the functions of a Python or CUDA source."""
    return _cuda_lines(path, text) if ".cu" in path else _python_lines(path, text)


def _python_lines(path: str, text: str) -> list[Line]:
    rows = text.splitlines()
    found: dict[int, Line] = {}

    def visit(body: Iterable[ast.AST], names: tuple[str, ...], inside: bool):
        for node in body:
            if isinstance(node, DEFINITIONS):
                function = not isinstance(node, ast.ClassDef)
                for number in range(node.lineno, node.end_lineno + 1):
                    found.pop(number, None)
                visit(node.body, (*names, node.name), function)
                continue
            nested = [part for name in ("body", "orelse", "finalbody", "handlers", "cases")
                      for part in getattr(node, name, ()) if isinstance(part, ast.AST)]
            if inside and isinstance(node, ast.stmt):
                head = min((part.lineno - 1 for part in nested if hasattr(part, "lineno")),
                           default=node.end_lineno)
                for number in range(node.lineno, node.end_lineno + 1):
                    row = bare(path, rows[number - 1])
                    found[number] = Line(path, number, ".".join(names), row, node.lineno,
                                         max(head, node.lineno))
            visit(nested, names, inside)

    visit(ast.parse(text).body, (), False)
    return [found[number] for number in sorted(found)]


def _cuda_lines(path: str, text: str) -> list[Line]:
    bounds = r"__launch_bounds__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    starts = []
    for match in re.finditer(r"__(?:global|device)__", text):
        head = re.sub(bounds, "", re.split(r"[{;]", text[match.start():], maxsplit=1)[0])
        name = re.search(r"(\w+)\s*\(", head)
        if name:
            starts.append((text.count("\n", 0, match.start()) + 1, name[1]))
    found, inside = [], ""
    names = dict(starts)
    for number, row in enumerate(text.splitlines(), 1):
        inside = names.get(number, inside)
        if inside and bare(path, row) and not row.lstrip().startswith(("//", "#", "__global__")):
            found.append(Line(path, number, inside, bare(path, row), number, number))
    return found


def edits(path: str, text: str) -> dict[int, list[tuple[str, str]]]:
    """List what can be changed on each line: the changed bare line and the change in words.

    Left out are comments, docstrings, messages, type hints, claims about types, and whatever
    leaves the same bytecode.
    """
    found = defaultdict(list)
    rows = text.splitlines()
    if ".cu" in path:
        for line in _cuda_lines(path, text):
            guard = BOUND.search(line.text) and CHOICE.search(line.text)
            for pattern, new, change in CUDA_EDITS if guard and "for (" not in line.text else ():
                for match in re.finditer(pattern, line.text):
                    changed = line.text[: match.start()] + new + line.text[match.end():]
                    found[line.number].append((changed, change))
        return found
    for node in _changeable(ast.parse(text)):
        for number, start, end, new, change in _python_edits(node, rows):
            row = rows[number - 1].encode()
            changed = bare(path, (row[:start] + new.encode() + row[end:]).decode())
            if changed != bare(path, rows[number - 1]):
                found[number].append((changed, change))
    return found


def _of_types(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in OF_TYPES


def _changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through what computes, not through what is shown or what is said of types."""
    for name, value in ast.iter_fields(node):
        if name in TYPES and isinstance(node, (*DEFINITIONS, ast.AnnAssign, ast.Lambda)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if (
                not isinstance(child, ast.AST) or _of_types(child)
                or isinstance(child, DEFINITIONS) and child.name in SHOWN
            ):
                continue
            yield child
            if not isinstance(child, LEFT_ALONE):
                yield from _changeable(child)


def _python_edits(node: ast.AST, rows: list[str]) -> Iterator[tuple[int, int, int, str, str]]:
    """List line, first and last column in bytes, new text, and the change in words."""

    def swap(left: ast.AST, op: ast.AST, right: ast.AST):
        if type(op) not in SWAPS or left.end_lineno != right.lineno:
            return
        old, new = (sign + "=" * isinstance(node, ast.AugAssign) for sign in SWAPS[type(op)])
        between = rows[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
        if between.count(old) == 1:
            start = left.end_col_offset + between.index(old)
            yield right.lineno, start, start + len(old), new, f"{old} to {new}"

    def whole(part: ast.AST, new: str, change: str):
        if part.lineno == part.end_lineno:
            yield part.lineno, part.col_offset, part.end_col_offset, new, change

    match node:
        case ast.Compare():
            terms = [node.left, *node.comparators]
            for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
                yield from swap(left, op, right)
        case ast.BoolOp():
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from swap(left, node.op, right)
        case ast.BinOp():
            texts = (part for part in (node.left, node.right)
                     if isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
                     or isinstance(getattr(part, "value", None), str))
            if not any(texts):
                yield from swap(node.left, node.op, node.right)
        case ast.AugAssign():
            yield from swap(node.target, node.op, node.value)
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            end = node.col_offset + (4 if isinstance(node.op, ast.Not) else 1)
            yield node.lineno, node.col_offset, end, "", "negation removed"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield from whole(node, str(value + 1), f"{value} to {value + 1}")
            if value > 1:
                yield from whole(node, str(value - 1), f"{value} to {value - 1}")
        case ast.Return(value=ast.Tuple(elts=parts)):
            for part in parts:
                yield from whole(part, "None", "part of what is returned removed")
    match node:
        case (
            ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue()
            | ast.Break() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield from whole(node, "pass", "statement removed")
    tests = {"If": ("True", "False"), "IfExp": ("True", "False"), "While": ("False",)}
    for forced in tests.get(type(node).__name__, ()):
        named = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))
        if not named and not _of_types(node.test):
            yield from whole(node.test, forced, f"condition forced {forced}")
    for test in getattr(node, "ifs", ()):
        yield from whole(test, "True", "condition forced True")


def _same_code(before: str, after: str) -> bool:
    """Whether two Python sources have the same bytecode (True too if the second has none)."""

    def shape(code: CodeType):
        return code.co_code, code.co_names, code.co_varnames, [
            shape(part) if isinstance(part, CodeType) else (type(part), part)
            for part in code.co_consts
        ]

    try:
        return shape(compile(before, "", "exec")) == shape(compile(after, "", "exec"))
    except SyntaxError:
        return True


def apply(text: str, number: int, replacement: str) -> str:
    """Put something in a line's place, at its indentation."""
    rows = text.splitlines(keepends=True)
    row = rows[number - 1]
    rows[number - 1] = row[: len(row) - len(row.lstrip())] + replacement + "\n"
    return "".join(rows)


def draw(sources: Mapping[str, str], seed: int, reserves: int = 1) -> list[Mutant]:
    """Draw each stratum's mutants, and `reserves` times as many to replace those that get lost.

    A line is drawn first, evenly among the lines that can be changed, then one of its changes.

    Parameters
    ----------
    sources : mapping of str to str
        Text of each file, by its path from the root of the tree.
    """
    table = [line for path in sorted(sources) for line in lines(path, sources[path])]
    drawn = []
    for stratum, (quota, patterns) in STRATA.items():
        chance = random.Random(f"{seed} {stratum}")
        at = {(path, number): choices for path in sorted(sources)
              if any(fnmatchcase(path, pattern) for pattern in patterns)
              for number, choices in edits(path, sources[path]).items()}
        rows = [line for line in table if (line.path, line.number) in at]
        chance.shuffle(rows)
        taken: dict[tuple[str, str], int] = defaultdict(int)
        wanted = quota * (1 + reserves)
        for line in rows:
            if not wanted:
                break
            replacement, change = chance.choice(at[line.path, line.number])
            text = sources[line.path]
            if taken[line.path, line.function] == A_FUNCTION or ".cu" not in line.path and (
                _same_code(text, apply(text, line.number, replacement))
            ):
                continue
            same = [other for other in table if other.text == line.text]
            here = [other.number for other in same
                    if (other.path, other.function) == (line.path, line.function)]
            mutant = Mutant(
                f"{stratum}-{quota * (1 + reserves) - wanted + 1:02}", PurePath(line.path).stem,
                line.function, line.text, here.index(line.number), len(same) == 1, change,
                replacement,
            )
            if find(mutant, table, {}) != line:  # names more than one place already
                continue
            drawn.append(mutant)
            taken[line.path, line.function] += 1
            wanted -= 1
    return drawn


def find(mutant: Mutant, table: Iterable[Line], renames: Mapping[str, str]) -> Line | None:
    """Find a mutant's line in sources that may have been rearranged.

    The function may have moved to another file; it may have a new name that `renames` tells; it
    may have become a method, or a method of another class; or its line is the only one of its
    kind, as it was when drawn.

    Returns
    -------
    Line or None
        None if the line is gone, or if several places could be meant.
    """
    same = [line for line in table if line.text == mutant.line]
    name = renames.get(mutant.function, mutant.function)
    last = name.rpartition(".")[2]
    for candidates in (
        [line for line in same if line.function == name],
        [line for line in same if line.function.rpartition(".")[2] == last],
        same if mutant.only and len(same) == 1 else [],
    ):
        places = defaultdict(list)
        for line in candidates:
            places[line.path, line.function].append(line)
        held = [found[mutant.occurrence] for found in places.values()
                if len(found) > mutant.occurrence]
        near = [line for line in held if PurePath(line.path).stem == mutant.module]
        for choice in (held, near):
            if len(choice) == 1:
                return choice[0]
    return None
