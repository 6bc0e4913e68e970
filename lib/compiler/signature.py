"""The types of a kernel's parameters, from its mangled name or from the source, and their check.

PTX knows of a parameter only how many bytes it has: an array of doubles given to a ``float*`` would
run, and give nonsense. The mangled name has the types (Itanium C++ ABI, 5.1); what is not read here
is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler.arguments import ELEMENTS

_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long",
    "x": "long long", "y": "unsigned long long", "f": "float", "d": "double",
}


@dataclass(frozen=True)
class Type:
    """A parameter's type."""

    # Without ``const``, such as ``"float"``; of a pointer, what it points to. Empty if unknown.
    name: str
    pointer: bool = False
    label: str = ""  # the parameter's name, if the source tells it

    def __str__(self) -> str:
        return f"{self.name}{'*' if self.pointer else ''}{f' {self.label}' if self.label else ''}"


def of_kernel(name: str, parameters: str | None) -> tuple[Type, ...]:
    """Return the types of a kernel's parameters, as far as they can be told; empty if not at all.

    `name`: as the PTX has it. `parameters`: as the source has them, without the parentheses.
    """
    written = from_source(parameters) if parameters else ()
    mangled = from_mangled(name)
    if not mangled:
        return written if not name.startswith("_Z") else ()
    if len(written) == len(mangled):
        return tuple(Type(t.name, t.pointer, w.label)
                     for t, w in zip(mangled, written, strict=True))
    return mangled


def from_source(parameters: str) -> tuple[Type, ...]:
    """Read parameters as they are written."""
    found, depth, one = [], 0, ""
    for letter in parameters + ",":
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            if one.strip() and one.strip() != "void":
                found.append(_declared(one))
            one = ""
        else:
            one += letter
    return tuple(found)


def _declared(text: str) -> Type:
    text = text.partition("=")[0]
    words = re.sub(
        r"\b(?:const|volatile|struct|__restrict__|__restrict|restrict|__grid_constant__)\b", " ",
        text,
    )
    array = re.search(r"\[[^][]*\]\s*$", words)
    words = words[: array.start()] if array else words
    label = re.search(r"(?<!\w)(\w+)\s*$", words)
    head = words[: label.start()] if label else words
    stars = head.count("*") + bool(array)
    name = " ".join(head.replace("*", " ").split())
    if not name:  # a type without a name
        return Type(words.strip())
    return Type(name if stars < 2 else f"{name}*", bool(stars), label[1] if label else "")


def from_mangled(name: str) -> tuple[Type, ...]:
    """Read the parameters' types off a mangled name; empty if it has what is not read here."""
    if not name.startswith("_Z"):
        return ()
    try:
        return _Mangled(name[2:]).parameters()
    except (IndexError, ValueError, KeyError):
        return ()


def plain_name(mangled: str) -> str:
    """The name of a function in the source, from its mangled one."""
    nested = mangled.startswith("_ZN")
    rest = re.sub(r"^_ZN?", "", mangled) if mangled.startswith("_Z") else ""
    name = mangled
    while length := re.match(r"L?(\d+)", rest):
        start = length.end()
        name, rest = rest[start : start + int(length[1])], rest[start + int(length[1]) :]
        if not nested:  # what follows is a parameter's type
            break
    return name


class _Mangled:
    """A reader of the names that kernels have."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.known: list[str] = []  # what S_, S0_, … mean
        self.templates: list[str] = []  # what T_, T0_, … mean

    def parameters(self) -> tuple[Type, ...]:
        self._name(entry=True)
        if self.templates:
            self._type()  # a template's name has the type that it returns
        found = []
        while self.at < len(self.text):
            found.append(self._type())
        return tuple(Type(name.removesuffix("*"), name.endswith("*"))
                     for name in found if name != "void")

    def _peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self.at += len(text) if found else 0
        return found

    def _identifier(self) -> str:
        length = re.compile(r"L?(\d+)").match(self.text, self.at)
        if length is None:
            raise ValueError(self.text[self.at :])
        self.at = length.end() + int(length[1])
        return self.text[length.end() : self.at]

    def _name(self, entry: bool = False) -> str:
        """A name, plain or nested, with its template's arguments."""
        if self._take("N"):
            name = ""
            while not self._take("E"):
                if self._peek("I"):
                    arguments = self._arguments()
                    name += f"<{', '.join(arguments)}>"
                    if entry:
                        self.templates = arguments
                elif self._peek("S"):
                    name = self._numbered(self.known)
                    continue
                else:
                    name = f"{name}::{self._identifier()}" if name else self._identifier()
                    if entry:
                        self.templates = []
                if not self._peek("E"):
                    self.known.append(name)
            if not entry:
                self.known.append(name)
            return name
        name = "std" if self._take("St") else ""
        name = f"{name}::{self._identifier()}" if name else self._identifier()
        if not entry or self._peek("I"):
            self.known.append(name)
        if self._peek("I"):
            arguments = self._arguments()
            name += f"<{', '.join(arguments)}>"
            if entry:
                self.templates = arguments
            else:
                self.known.append(name)
        return name

    def _arguments(self) -> list[str]:
        self.at += 1
        found: list[str] = []
        while not self._take("E"):
            if self._take("L"):
                end = self.text.index("E", self.at)
                found.append(self.text[self.at + 1 : end])
                self.at = end + 1
            elif self._take("J"):
                self.at -= 1
                found += self._arguments()
            else:
                found.append(self._type())
        return found

    def _numbered(self, among: Sequence[str]) -> str:
        """What ``S_``, ``S0_``, … or ``T_``, ``T0_``, … means."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at + 1 : end], end + 1
        return among[int(digits, 36) + 1 if digits else 0]

    def _type(self) -> str:
        letter = self.text[self.at]
        if letter == "S" and not self._peek("St"):
            return self._numbered(self.known)
        if letter in "NS" or letter.isdigit():
            return self._name()
        if letter == "T":
            found = self._numbered(self.templates)
        else:
            self.at += 1
            if letter not in "KVrPRO":
                return _BUILTIN[letter]
            found = self._type() + "*" * (letter in "PRO")  # `const T` is told as T
        self.known.append(found)
        return found


def check_arguments(kernel: str, signature: Sequence[Type], args: Sequence[Any]) -> None:
    """Raise a LaunchError in one line if an argument is not of its parameter's type.

    Raises ptx.LaunchError.
    """
    if not signature:
        return
    name = plain_name(kernel)
    if len(signature) != len(args):
        raise ptx.LaunchError(
            f"kernel '{name}' takes {len(signature)} arguments "
            f"({', '.join(map(str, signature))}), not {len(args)}"
        )
    for i, (wanted, given) in enumerate(zip(signature, args, strict=True)):
        if said := _wrong(wanted, given):
            raise ptx.LaunchError(f"kernel '{name}', argument {i} ({wanted}): {said}")


def _wrong(wanted: Type, given: Any) -> str:
    """What is wrong with an argument, and what to pass; empty if nothing is."""
    element = ELEMENTS.get(wanted.name)
    if wanted.pointer:
        if isinstance(given, np.ndarray) and given.ndim and element:
            return _wrong_array(np.dtype(element), given)
        if isinstance(given, int | float | np.number) and not isinstance(given, bool):
            return f"needs an array, not the number {given}"
        return ""
    if element is None:
        return ""
    if isinstance(given, np.ndarray) and given.ndim:
        return f"needs a number, not an array of {given.dtype}"
    floating = isinstance(given, float | np.floating)
    if element[0] in "iu" and floating and not isinstance(given, np.float16):
        return f"needs an integer, not {given!r}: pass numpy.{np.dtype(element).name}(…)"
    return ""


def _wrong_array(wanted: np.dtype, given: np.ndarray) -> str:
    found = given.dtype
    if found.kind == "V" and found.names is None and found.itemsize == wanted.itemsize:
        return ""  # bfloat16 and raw bytes
    integers = wanted.kind in "iub" and found.kind in "iub"
    if found.itemsize == wanted.itemsize and (
            found.kind == wanted.kind or integers or found.kind == "u"):
        return ""
    if found.names is not None or wanted.itemsize == 1:  # structures, raw bytes
        return ""
    return (f"was given an array of {found.name}: pass a {wanted.name} array "
            f"(.astype(numpy.{wanted.name}))")
