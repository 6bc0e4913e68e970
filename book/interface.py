"""What a user of warplens may rely on: its public names, and whether a change breaks them.

`PUBLIC` is the only place that says what is public. `docs/warplens-interface.json` describes it as
of the last release, and holds which part of the version the next release must raise at least. A
test compares; `python -m book.interface --accept` takes a change over, and raises that part:

- *major*: a name, parameter, attribute, option or exit status is gone or means another thing;
- *minor*: there is one more;
- *patch*: neither.

Before 1.0 a break asks for a minor version, as semantic versions have it.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lib import ptx
from lib.compiler import command, pytest_plugin
from lib.ptx.files import text_of, write_whole

ROOT = Path(__file__).resolve().parent.parent
FILE = Path("docs") / "warplens-interface.json"
# Modules by their names in the package, and what of each is public; beside these the command and
# the fixture of the extra `compiler`.
PUBLIC: Mapping[str, tuple[str, ...]] = {
    "warplens": tuple(ptx.__all__),
    "warplens.compiler.raw_module": ("RawModule", "Kernel"),
    "warplens.compiler.nvrtc": ("CompileError",),
    "warplens.compiler.toolkit": ("ToolMissing",),
}
# The classes that a user makes objects of; of the others the emulator does, and they are read.
MADE = ("Module", "Progress", "RawModule", "Recorder", "Surface", "Texture")
PARTS = ("patch", "minor", "major")
EXITS = {"0": "clean", "1": "a hazard, an error or a budget overrun", "2": "bad input"}

Description = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Changes:
    """What differs from a description, in sentences: what breaks a user's code, and what adds."""

    breaks: tuple[str, ...]
    adds: tuple[str, ...]

    @property
    def part(self) -> str:
        """The part of a version that they ask for."""
        return "major" if self.breaks else "minor" if self.adds else "patch"


def here(name: str) -> str:
    """The module of this repository that is a package's: `lib.ptx` for `warplens`."""
    return name.replace("warplens.compiler", "lib.compiler").replace("warplens", "lib.ptx")


def describe() -> Description:
    """The public interface as it is now."""
    names = {f"{module}.{name}": _of(getattr(importlib.import_module(here(module)), name))
             for module, public in PUBLIC.items() for name in public}
    return {"names": names, "command": _options(), "exit": EXITS,
            "fixture": {"emulate": _signature(_loaded(), method=False)}}


def compare(old: Description, new: Description) -> Changes:
    """What a user of `old` meets in `new`."""
    breaks: list[str] = []
    adds: list[str] = []
    for part, noun in (("names", ""), ("command", "warplens "), ("fixture", "fixture "),
                       ("exit", "exit status ")):
        _compare_members(noun, old[part], new[part], breaks, adds)
    return Changes(tuple(breaks), tuple(adds))


def read(root: Path = ROOT) -> Description:
    """The description as of the last release."""
    found: Description = json.loads(text_of(root / FILE))
    return found


def accept(root: Path = ROOT) -> Changes:
    """Take today's interface over; the next release must raise what the changes ask for."""
    old, new = read(root), describe()
    changes = compare(old["interface"], new)
    at_least = max(old["next"], changes.part, key=PARTS.index)
    write({"released": old["released"], "next": at_least, "interface": new}, root)
    return changes


def write(description: Description, root: Path = ROOT) -> None:
    """Write the description."""
    write_whole(root / FILE, (_lines(description) + "\n").encode())


def least_version(before: str, part: str) -> tuple[int, int, int]:
    """The least version that may follow `before`, if that part must rise."""
    major, minor, patch = (int(number) for number in before.split("."))
    if part == "major" and major:
        return major + 1, 0, 0
    if part == "patch":
        return major, minor, patch + 1
    return major, minor + 1, 0


def _lines(value: Any, depth: int = 0) -> str:
    """JSON of which a line holds what fits: a difference shows the name that it is of."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if not isinstance(value, dict) or not value or len(flat) + depth < 100:
        return flat
    parts = (f'{" " * (depth + 1)}{json.dumps(name)}: {_lines(value[name], depth + 1)}'
             for name in sorted(value))
    return "{\n" + ",\n".join(parts) + "\n" + " " * depth + "}"


def _of(value: Any) -> Description:
    """A name's kind and what of it a user calls or reads."""
    if not inspect.isclass(value):
        return {"kind": "function", "takes": _signature(value, method=False)}
    if issubclass(value, enum.Enum):
        return {"kind": "enum", "members": {one.name: {} for one in value}}
    bases = [base.__name__ for base in value.__mro__[1:]
             if issubclass(base, BaseException) and base is not BaseException]
    found: Description = {"kind": "class", "members": dict(sorted(_members(value)))}
    if bases:
        found["caught_as"] = {name: {} for name in bases if name != "object"}
    if value.__name__ in MADE:
        found["takes"] = _signature(value, method=False)
    return found


def _members(value: type) -> Iterator[tuple[str, Description]]:
    """The public methods, properties and fields of a class, with its own bases'."""
    for base in reversed(value.__mro__):
        if not base.__module__.startswith("lib."):
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            # What its methods put into the object.
            if (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name) and node.value.id == "self"
                    and not node.attr.startswith("_")):
                yield node.attr, {"kind": "field"}
        for name in base.__dict__.get("__annotations__", {}):
            if not name.startswith("_"):
                yield name, {"kind": "field"}
        for name, member in base.__dict__.items():
            if name.startswith("_") and name != "__call__":
                continue
            plain = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(plain):
                free = isinstance(member, staticmethod)
                yield name, {"kind": "method", "takes": _signature(plain, method=not free)}
            else:
                yield name, {"kind": "field"}


def _signature(value: Any, *, method: bool) -> Description:
    """Parameters in their order: how each is passed, and its default, if it has one."""
    try:
        parameters = list(inspect.signature(value).parameters.values())[1 if method else 0:]
    except ValueError:  # a class of another library's
        return {}
    return {
        one.name: {"passed": one.kind.name.lower(), "place": place,
                   **({} if one.default is one.empty else {"default": _plain(one.default)})}
        for place, one in enumerate(parameters)}


def _plain(value: Any) -> str:
    """A default as text that is the same in every process."""
    named = isinstance(value, type) or callable(value)
    return getattr(value, "__qualname__", "…") if named else repr(value)


def _options() -> Description:
    """The command's options, with what each takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    command.add_arguments(parser)
    return {
        "/".join(action.option_strings) or action.dest: {
            "default": repr(action.default), "nargs": repr(action.nargs),
            "choices": repr(action.choices)}
        for action in parser._actions if action.dest != "help"}


def _loaded() -> Any:
    """The function that the fixture gives a test."""
    class Request:
        path = ROOT / "test_it.py"

    return inspect.unwrap(pytest_plugin.emulate)(Request())


def _compare_members(of: str, old: Description, new: Description, breaks: list[str],
                     adds: list[str]) -> None:
    """Compare two sets of names that are described."""
    for name in old.keys() - new.keys():
        breaks.append(f"{of}{name} is gone")
    for name in new.keys() - old.keys():
        adds.append(f"{of}{name} is new")
    for name in sorted(old.keys() & new.keys()):
        before, now = old[name], new[name]
        if before == now:
            continue
        where = f"{of}{name}"
        if not isinstance(before, dict) or not isinstance(now, dict):
            breaks.append(f"{where} means {now!r}, not {before!r}")
        elif of == "fixture ":
            _compare_parameters(f"{where}()", before, now, breaks, adds)
        elif before.get("kind") != now.get("kind"):
            breaks.append(f"{where} is a {now.get('kind')}, not a {before.get('kind')}")
        elif "kind" not in before:
            breaks.append(f"{where} takes {now}, not {before}")
        else:
            _compare_members(f"{where}.", before.get("members", {}), now.get("members", {}), breaks,
                             adds)
            _compare_members(f"{where} caught as ", before.get("caught_as", {}),
                             now.get("caught_as", {}), breaks, adds)
            _compare_parameters(f"{where}()", before.get("takes", {}), now.get("takes", {}), breaks,
                                adds)


def _compare_parameters(where: str, old: Description, new: Description, breaks: list[str],
                        adds: list[str]) -> None:
    """Compare what two functions take: a call of the old one must mean the same of the new one."""
    for name in old.keys() - new.keys():
        breaks.append(f"{where} takes no {name}")
    for name in new.keys() - old.keys():
        free = "default" in new[name] or new[name]["passed"].startswith("var_")
        (adds if free else breaks).append(
            f"{where} takes {name}" if free else f"{where} needs {name}")
    for name in sorted(old.keys() & new.keys()):
        before, now = old[name], new[name]
        by_place = before["passed"] != "keyword_only"
        if by_place and (before["place"] != now["place"] or before["passed"] != now["passed"]):
            breaks.append(f"{where}: {name} is passed otherwise")
        if "default" in before and before["default"] != now.get("default"):
            breaks.append(f"{where}: {name} is {now.get('default', 'needed')} where it was "
                          f"{before['default']}")


def main(argv: list[str] | None = None) -> int:
    """Compare, or take today's interface over."""
    parser = argparse.ArgumentParser(prog="python -m book.interface", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true",
                        help=f"write today's interface into {FILE}")
    options = parser.parse_args(argv)
    changes = accept() if options.accept else compare(read()["interface"], describe())
    for line in changes.breaks:
        print(f"breaks: {line}")
    for line in changes.adds:
        print(f"adds: {line}")
    print(f"the next release raises at least: {max(read()['next'], changes.part, key=PARTS.index)}")
    return 0 if options.accept or not (changes.breaks or changes.adds) else 1


if __name__ == "__main__":
    sys.exit(main())
