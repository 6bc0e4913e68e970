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
from collections.abc import Iterable, Iterator, Mapping
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
DEFAULT = " by default "
EXITS = {"0": "clean", "1": "a hazard, an error or a budget overrun", "2": "bad input"}

Description = dict[str, str]


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
    """The public interface as it is now: each name that a user may write, and what it is."""
    found = {f"exit status {status}": meaning for status, meaning in EXITS.items()}
    for module, public in PUBLIC.items():
        for name in public:
            value = getattr(importlib.import_module(here(module)), name)
            found.update(_of(f"{module}.{name}", value))
    return {**found, **_options(), **_signature("fixture emulate", _loaded())}


def compare(old: Description, new: Description) -> Changes:
    """What a user of `old` meets in `new`."""
    gone, more = (_whole(one.keys() - other.keys()) for one, other in ((old, new), (new, old)))
    breaks, adds = [f"{name} is gone" for name in gone], []
    for name in more:
        # A parameter that has no default: a call that was right lacks it.
        needed = name.endswith(")") and DEFAULT not in new[name] and (
            not new[name].startswith("var_"))
        (breaks if needed else adds).append(f"{name} is {'needed' if needed else 'new'}")
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name]:
            freer = new[name].startswith(old[name] + DEFAULT)
            (adds if freer else breaks).append(f"{name} is {new[name]}, not {old[name]}")
    return Changes(tuple(breaks), tuple(adds))


def _whole(names: Iterable[str]) -> list[str]:
    """Names without those of their parts."""
    found: list[str] = []
    for name in sorted(names):
        if not found or not name.startswith((f"{found[-1]}.", f"{found[-1]}(", f"{found[-1]} ")):
            found.append(name)
    return found


def read(root: Path = ROOT) -> dict[str, Any]:
    """The description as of the last release, and which part the next must raise."""
    found: dict[str, Any] = json.loads(text_of(root / FILE))
    return found


def accept(root: Path = ROOT) -> Changes:
    """Take today's interface over; the next release must raise what the changes ask for."""
    old, new = read(root), describe()
    changes = compare(old["interface"], new)
    at_least = max(old["next"], changes.part, key=PARTS.index)
    write({"released": old["released"], "next": at_least, "interface": new}, root)
    return changes


def write(description: dict[str, Any], root: Path = ROOT) -> None:
    """Write the description."""
    text = json.dumps(description, ensure_ascii=False, sort_keys=True, indent=1)
    write_whole(root / FILE, f"{text}\n".encode())


def least_version(before: str, part: str) -> tuple[int, int, int]:
    """The least version that may follow `before`, if that part must rise."""
    major, minor, patch = (int(number) for number in before.split("."))
    if part == "major" and major:
        return major + 1, 0, 0
    if part == "patch":
        return major, minor, patch + 1
    return major, minor + 1, 0


def _of(name: str, value: Any) -> Description:
    """What a name is, and what of it a user calls, reads or catches it as."""
    if not inspect.isclass(value):
        return {name: "function", **_signature(name, value)}
    if issubclass(value, enum.Enum):
        return {name: "enum", **{f"{name}.{one.name}": "member" for one in value}}
    found = {name: "class"}
    for member, what in _members(value):
        if what is None:
            found[f"{name}.{member}"] = "field"
        else:
            found |= {f"{name}.{member}": "method", **_signature(f"{name}.{member}", *what)}
    found |= {f"{name} caught as {base.__name__}": "yes" for base in value.__mro__[1:]
              if issubclass(base, BaseException) and base is not BaseException}
    return found | (_signature(name, value) if value.__name__ in MADE else {})


def _members(value: type) -> Iterator[tuple[str, tuple[Any, bool] | None]]:
    """The public methods, with whether they are of an object, and fields (None) of a class."""
    for base in reversed(value.__mro__):
        if not base.__module__.startswith("lib."):
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            # What its methods put into the object.
            if (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name) and node.value.id == "self"
                    and not node.attr.startswith("_")):
                yield node.attr, None
        for name, member in {**dict.fromkeys(base.__dict__.get("__annotations__", {})),
                             **base.__dict__}.items():
            if not name.startswith("_") or name == "__call__":
                plain = inspect.unwrap(getattr(member, "__func__", member))
                yield name, (plain, not isinstance(member, staticmethod)) if (
                    inspect.isfunction(plain)) else None


def _signature(name: str, value: Any, method: bool = False) -> Description:
    """Parameters in their order: how each is passed, and its default, if it has one."""
    try:
        parameters = list(inspect.signature(value).parameters.values())[method:]
    except ValueError:  # a class of another library's
        return {}
    found = {}
    for place, one in enumerate(parameters):
        passed = one.kind.name.lower()
        if one.kind is not one.KEYWORD_ONLY:
            passed += f" {place}"
        default = "" if one.default is one.empty else f"{DEFAULT}{_plain(one.default)}"
        found[f"{name}({one.name})"] = passed + default
    return found


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
        f"warplens {'/'.join(action.option_strings) or action.dest}":
            f"default {action.default!r}, nargs {action.nargs!r}, choices {action.choices!r}"
        for action in parser._actions if action.dest != "help"}


def _loaded() -> Any:
    """The function that the fixture gives a test."""
    class Request:
        path = ROOT / "test_it.py"

    return inspect.unwrap(pytest_plugin.emulate)(Request())


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
