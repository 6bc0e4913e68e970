"""Arithmetic of numbers and of loops' counters in a kernel's text, carried out line by line.

Of a product, quotient or remainder by numbers, and of what is below a bound that the text gives:
a loop's counter, a lane, a warp. What always comes to the same number is that number; a loop of
one turn is its body.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A name times, over or modulo numbers; what else binds as tightly is not beside it.
_CHAIN = re.compile(r"(?<![*/%] )(?<![\w.)~!*&-])([A-Za-z_][\w.]*)((?: [*/%] \d+)+)"
                    r"(?![\w.]| [*/%])")
_LOOP = re.compile(r"for \((?:int|unsigned) (\w+) = 0; \1 < (\d+); (?:\+\+\1|\1 \+= \d+)\)")
_PARAMETER = re.compile(r"\b(?:int|unsigned) (\w+)(?=[,)])")
_DECLARED = re.compile(r"^ *(?:const )?(?:int|unsigned) (?=\w+ = )")
_TIDIED = (  # of sums and products what a number of 0 or 1 leaves
    (re.compile(r"(?<![\w>])\((\d+)\)(?! \?)"), r"\1"),
    (re.compile(r"(?<=\))(?<!\w\))\((\d+)\)"), r"\1"),
    (re.compile(r"(?<![\w.])(?:\(size_t\))?0 \* \w+(?![\w.(\[])"), "0"),
    (re.compile(r" [+-] 0\b(?![.\w]| [*/%])"), ""),
    (re.compile(r"(?<![*/%-] )(?<![\w.])0 \+ "), ""),
    (re.compile(r"(?<=== )\((\d+ \* sizeof\(\w+\))\)"), r"\1"),
)


class _Name(NamedTuple):
    """What is known of a variable in the lines that are indented by at least so much."""

    indent: int
    name: str
    below: int | None
    value: str = ""


def folded(text: str, threads: int) -> str:
    """A kernel's text with its arithmetic carried out, for a block of so many threads in a row."""
    before = ""
    while text != before:
        before, text = text, _unrolled(_by_lines(text, threads))
    return text


def _by_lines(text: str, threads: int) -> str:
    known = [_Name(0, "threadIdx.x", threads)]
    rows = []

    def short(found: re.Match[str]) -> str:
        return _chain(found, known)

    for row in text.splitlines():
        if not row.partition("//")[0].strip():
            rows.append(row)
            continue
        indent = len(row) - len(row.lstrip())
        known = [one for one in known if one.indent <= indent]
        known += [_Name(indent + 1, one[1], None) for one in _PARAMETER.finditer(row)]
        known += [_Name(indent + 1, one[1], int(one[2])) for one in _LOOP.finditer(row)]
        code, comment, said = row.partition("//")
        code = _tidied(_CHAIN.sub(short, _filled(code, known)))
        if declared := _DECLARED.match(code):
            code, names = _declaration(code, declared.end(), indent, known)
            known += names
        if code.strip():
            rows.append(code.rstrip() + (f"  {comment}{said}" if comment else ""))
    return "\n".join(rows) + "\n"


def _of(name: str, known: list[_Name]) -> _Name | None:
    return next((one for one in reversed(known) if one.name == name), None)


def _filled(code: str, known: list[_Name]) -> str:
    """A line with the numbers of those names that are one."""
    def value(found: re.Match[str]) -> str:
        one = _of(found[0], known)
        return one.value if one and one.value else found[0]

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*(?![\w(])", value, code)


def _tidied(code: str) -> str:
    for pattern, rest in _TIDIED:
        code = pattern.sub(rest, code)
    return code


def _declaration(code: str, begin: int, indent: int, known: list[_Name]
                 ) -> tuple[str, list[_Name]]:
    """A declaration without the names that are numbers, and what is known of its names."""
    head, rest = code[:begin], code[begin:]
    body, semicolon, tail = rest.partition(";")
    if not semicolon or not head.strip().startswith("const") or re.search(r"[({\[?]", body):
        return code, [_Name(indent, one, None) for one in re.findall(r"(\w+) = ", rest)]
    names, remaining = [], []
    for part in body.split(", "):
        name, _, value = part.partition(" = ")
        value = value.strip()
        if value.isdigit():
            names.append(_Name(indent, name, int(value) + 1, value))
            continue
        if value.isidentifier() and (same := _of(value, known)):
            names.append(_Name(indent, name, same.below, value))
            continue
        remaining.append(part)
        names.append(_Name(indent, name, _below(value, known)))
    return (f"{head}{', '.join(remaining)};{tail}" if remaining else tail), names


def _steps(operations: str) -> list[tuple[str, int]]:
    return [(sign, int(number)) for sign, number in re.findall(r"([*/%]) (\d+)", operations)]


def _below(value: str, known: list[_Name]) -> int | None:
    """What an expression is always below: a name whose bound is known, or a chain of it."""
    found = re.fullmatch(r"([A-Za-z_][\w.]*)((?: [*/%] \d+)*)", value)
    one = _of(found[1], known) if found else None
    if found is None or one is None:
        return None
    below = one.below
    for sign, number in _steps(found[2]):
        below = _after(below, sign, number)
    return below


def _after(below: int | None, sign: str, number: int) -> int | None:
    if sign == "%":
        return min(below or number, number)
    if below is None:
        return None
    return (below - 1) * number + 1 if sign == "*" else (below - 1) // number + 1


def _chain(found: re.Match[str], known: list[_Name]) -> str:
    """A name's products, quotients and remainders by numbers, those that do nothing left out."""
    one = _of(found[1], known)
    bounded = one is not None and one.below is not None
    below = one.below if one else None
    remaining: list[tuple[str, int]] = []
    for sign, number in _steps(found[2]):
        if below == 1 or (sign == "%" and number == 1):
            return "0"
        last = remaining[-1] if remaining else ("", 0)
        if number == 1:
            continue
        if bounded and below is not None and sign != "*" and below <= number:
            if sign == "/":
                return "0"
            continue
        if sign == "/" and last[0] == "*" and last[1] % number == 0:
            remaining[-1:] = [("*", last[1] // number)] if last[1] > number else []
        elif sign == "/" and last[0] == "*" and number % last[1] == 0:
            remaining[-1:] = [("/", number // last[1])]
        elif sign == "%" and last[0] == "*" and last[1] % number == 0:
            return "0"
        else:
            remaining.append((sign, number))
        below = _after(below, sign, number)
    return found[1] + "".join(f" {sign} {number}" for sign, number in remaining)


def _without_single_uses(body: list[str]) -> list[str]:
    """Lines without the constants that a single argument below is, that argument written out."""
    for at, row in enumerate(body):
        if given := re.fullmatch(r" *const \w+ (\w+) = (.*);", row):
            argument = rf"(?<=, )\b{given[1]}\b(?=[,)])"
            below = "\n".join(body[at + 1:])
            if len(re.findall(rf"\b{given[1]}\b", below)) == len(re.findall(argument, below)) == 1:
                written = re.sub(argument, given[2].replace("\\", r"\\"), below)
                return _without_single_uses([*body[:at], *written.splitlines()])
    return body


def _unrolled(text: str) -> str:
    """The text without loops of one turn, whose bodies declare nothing that is there already."""
    rows = text.splitlines()
    for begin, row in enumerate(rows):
        loop = re.match(r"( *)for \((?:int|unsigned) (\w+) = 0; \2 < 1; \+\+\2\) ?(.*)$", row)
        if not loop:
            continue
        edge, name, rest = loop[1], loop[2], loop[3]
        if rest == "{":
            end = rows.index(edge + "}", begin)
            body, behind = [line.removeprefix("    ") for line in rows[begin + 1:end]], end + 1
        else:
            behind = begin + 1
            while behind < len(rows) and (len(rows[behind]) - len(rows[behind].lstrip())
                                          > len(edge)):
                behind += 1
            body = [edge + rest] if rest else []
            body += [line if rest else line.removeprefix("    ")
                     for line in rows[begin + 1:behind]]
        body = _without_single_uses(body)
        declares = re.findall(rf"^{edge}(?:const )?\w+ (\w+)(?: = |\[|;)", "\n".join(body), re.M)
        others = "\n".join(rows[:begin] + rows[behind:])
        if any(re.search(rf"\b{one}\b", others) for one in declares):
            continue
        body = [re.sub(rf"(?<![\w.]){name}\b", "0", line) for line in body]
        return "\n".join([*rows[:begin], *body, *rows[behind:]]) + "\n"
    return text
