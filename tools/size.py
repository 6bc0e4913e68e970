"""How large the house is: files, lines and tokens of each package, held against a budget.

    python tools/size.py [--budget]

Tokens are Python's own, without comments and docstrings, so that neither long lines nor short
names help. What a package may have stands in `tests/budget.json`; a little more is let pass, since
several people work at once. `--budget` writes today's figure for each package that is off its own
by more than that.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tests" / "budget.json"
TOLERANCE, SMALL = 0.02, 300  # of a package's budget, or so many tokens if that is more
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER", "FSTRING_START"}


class Size(NamedTuple):
    """What one package or several have."""

    files: int = 0
    lines: int = 0
    tokens: int = 0


def total(sizes: Iterable[Size]) -> Size:
    """The size of several together."""
    return Size(*map(sum, zip(*sizes, strict=True)))


def size_of(text: str) -> Size:
    """The size of one file."""
    docstrings = {node.body[0].lineno for node in ast.walk(ast.parse(text)) if isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None}
    count = inside = 0  # an f-string is one token, as Python 3.11 has it
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        inside -= name == "FSTRING_END"
        docstring = name == "STRING" and token.start[0] in docstrings
        count += not (name in LAYOUT or docstring or inside)
        inside += name == "FSTRING_START"
    return Size(1, text.count("\n"), count)


def packages(root: Path = ROOT) -> dict[str, Size]:
    """The size of each package; files at the top of `lib` and `tests` are one of their own."""
    sizes: dict[str, list[Size]] = defaultdict(list)
    for top, depth in (("lib", 2), ("tests", 2), ("book", 1), ("tools", 1)):
        for file in (root / top).rglob("*.py"):
            folder = file.parent.relative_to(root).parts[:depth]
            sizes["/".join(folder)].append(size_of(file.read_text(encoding="utf-8")))
    return {name: total(files) for name, files in sorted(sizes.items())}


def over(sizes: Mapping[str, Size], budget: Mapping[str, int]) -> list[str]:
    """The packages that have outgrown their budget, a line each."""
    return [f"{name}: {size.tokens:,} tokens, {size.tokens - budget.get(name, 0):,} over its budget"
            f" of {budget.get(name, 0):,}"
            for name, size in sizes.items()
            if size.tokens > budget.get(name, 0) + tolerance(budget.get(name, 0))]


def tolerance(tokens: int) -> float:
    """How far a package may be from its budget."""
    return max(SMALL, TOLERANCE * tokens)


def renewed(sizes: Mapping[str, Size], budget: Mapping[str, int]) -> dict[str, int]:
    """A budget with today's figure for each package that is off by more than the tolerance."""
    return {name: budget[name] if name in budget and
            abs(size.tokens - budget[name]) <= tolerance(budget[name]) else size.tokens
            for name, size in sizes.items()}


def table(sizes: Mapping[str, Size], budget: Mapping[str, int]) -> Iterator[str]:
    """A line a package and a line a room, with what its budget leaves."""
    yield f"{'':18}{'files':>7}{'lines':>9}{'tokens':>10}{'budget':>10}{'left':>9}"
    for room in dict.fromkeys(name.partition("/")[0] for name in sizes):
        inside = {name: size for name, size in sizes.items() if name.partition("/")[0] == room}
        rows = {room: (total(inside.values()), sum(budget.get(name, 0) for name in inside))}
        if len(inside) > 1:
            rows |= {f"  {name}": (size, budget.get(name, 0)) for name, size in inside.items()}
        for name, (size, limit) in rows.items():
            yield (f"{name:18}{size.files:7,}{size.lines:9,}{size.tokens:10,}{limit:10,}"
                   f"{limit - size.tokens:+9,}")


def main() -> None:
    """Print the table; with `--budget` write the budget, too."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", action="store_true", help="write today's figures")
    asked = parser.parse_args()
    stored, sizes = json.loads(BUDGET.read_text(encoding="utf-8")), packages()
    if asked.budget:
        stored["tokens"] = renewed(sizes, stored["tokens"])
        BUDGET.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(*table(sizes, stored["tokens"]), *over(sizes, stored["tokens"]), sep="\n")


if __name__ == "__main__":
    main()
