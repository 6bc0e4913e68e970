"""PTX text cut into tokens, the numbers among them, and a cursor over them."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple, NoReturn

from .errors import ParseError
from .syntax import Immediate

# An instruction in one line, as compilers write it, is one token: most of a text is such lines, and
# word by word each would be a dozen; so is a line of `.loc`. What is written otherwise is read
# word by word, and so is `@p ret;`: p is no opcode.
_NAME = r"[%$_A-Za-z][\w$%]*(?:\.\w+)*"
_SIMPLE = rf"!?{_NAME}(?:\|{_NAME})?|-?\d\w*"
_OPERAND = rf"(?:{_SIMPLE}|\[{_NAME}(?:\+-?\d+)?\]|\{{(?:{_SIMPLE})(?:,[ \t]*(?:{_SIMPLE}))*\}})"
OPERANDS = re.compile(_OPERAND)
_STATEMENT = rf"""
    (?<![@!])(?P<guard>@!?{_NAME}[ \t]+)?(?P<opcode>[a-z][\w.]*(?:::[\w.]+)*)[ \t]+
    (?P<operands>{_OPERAND}(?:,[ \t]*{_OPERAND})*)[ \t]*;
"""
# What begins with a letter, a digit or a mark never overlaps: the most frequent stand first.
_TOKEN = re.compile(
    rf"""
    [ \t\r\f\v]*
  (?:
    (?P<statement>{_STATEMENT})
  | (?P<location>\.loc[ \t][\w$, \t]*(?=\n))
  | (?P<word>\.(?:reg|shared|local|global|const|param|align)(?=\.[a-z])  # .reg.b16 x;
           | [%$_.A-Za-z][\w$.%]*(?:::[\w.]+)*)
  | (?P<comment>//[^\n]* | /\*.*?\*/)
  | (?P<mark>[][(){{}}<>,;:=@!|+\-*&~])
  | (?P<newline>\n)
  | (?P<float>0[fF][0-9a-fA-F]{{8}}(?![\w$]) | 0[dD][0-9a-fA-F]{{16}}(?![\w$]))
  | (?P<real>\d+\.\d*(?:[eE][+-]?\d+)?(?![\w$]) | \d+[eE][+-]?\d+(?![\w$]))
  | (?P<int>(?:0[xX][0-9a-fA-F]+ | 0[bB][01]+ | \d+)U?(?![\w$]))
  | (?P<string>"[^"\n]*")
  | (?P<end>\Z)
  )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """One word, number, string, mark, instruction or `.loc`, and the line that it stands in.

    An instruction's guard, with the blanks behind it, is None if it has none; its operands are
    what `OPERANDS` finds.
    """

    kind: str
    text: str
    line: int
    guard: str | None = None
    opcode: str = ""
    operands: str = ""


def tokenise(text: str, line: int = 1) -> list[Token]:
    """Cut PTX text, which begins in a line, into tokens.

    Raises ParseError at the first character that begins no token.
    """
    tokens, at = [], 0
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        at, kind = match.end(), match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind == "statement":
            parts = match.group("guard", "opcode", "operands")
            tokens.append(Token(kind, match[kind], line, *parts))
        elif kind == "comment":
            line += match[kind].count("\n")
        elif kind == "end":
            tokens.append(Token("end", "end of text", line))
            return tokens
        else:
            tokens.append(Token(kind, match[kind], line))
    at += len(text[at:]) - len(text[at:].lstrip(" \t\r\f\v"))
    raise ParseError(f"PTX line {line}: cannot read {text[at : at + 20]!r}")


class Cursor:
    """A place among the tokens of a text, and what may be taken there."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenise(text)
        self.at = 0

    def peek(self) -> Token:
        """Return the next token, and leave it there."""
        return self.tokens[self.at]

    def next(self) -> Token:
        """Take the next token; the last one, the end, stays."""
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is `text`, and say whether it was."""
        token = self.tokens[self.at]
        if token.text == text and token.kind in ("mark", "word"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Take the next token, which must be `text`."""
        token = self.next()
        if token.text != text:
            self.fail(f"expected {text!r}, found {token.text!r}", token)
        return token

    def word(self, what: str) -> str:
        """Take a word; `what` says in an error what it was to be."""
        token = self.next()
        if token.kind != "word":
            self.fail(f"expected {what}, found {token.text!r}", token)
        return token.text

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise a ParseError that names the line of a token, the next one if none is given."""
        raise ParseError(f"PTX line {(token or self.peek()).line}: {message}")

    def skip_line(self, line: int) -> list[Token]:
        """Take the rest of a directive that ends with its line."""
        taken = []
        while self.peek().kind != "end" and self.peek().line == line:
            taken.append(self.next())
        return taken

    def integer(self) -> int:
        """Take a whole number and its sign."""
        sign = -1 if self.accept("-") else 1
        self.accept("+")
        token = self.next()
        if token.kind != "int":
            self.fail(f"expected a whole number, found {token.text!r}", token)
        return sign * integer(token.text)

    def offset(self) -> int:
        """Sum what follows a name: ``+16``, ``+-8``, ``-8``."""
        total = 0
        while self.peek().text in ("+", "-"):
            sign = -1 if self.next().text == "-" else 1
            total += sign * self.integer()
        return total

    def constant(self) -> Immediate:
        """Take a number of any kind, and its signs."""
        negative = False
        while self.peek().text in ("-", "+"):
            negative ^= self.next().text == "-"
        token = self.next()
        value = immediate(token)
        if value is None:
            self.fail(f"expected a number, found {token.text!r}", token)
        return negated(value) if negative else value


# -- numbers ------------------------------------------------------------------------------------


def integer(text: str) -> int:
    """Return the value of a literal: decimal, octal, hexadecimal or binary, U behind it or not."""
    text = text.rstrip("U")
    if len(text) > 70:
        raise ParseError(f"the number {text[:20]}... does not fit 64 bits")
    if text[:2] in ("0x", "0X"):
        value = int(text, 16)
    elif text[:2] in ("0b", "0B"):
        value = int(text, 2)
    elif len(text) > 1 and text[0] == "0" and all(c in "01234567" for c in text):
        value = int(text, 8)
    else:
        value = int(text)
    if value >= 1 << 64:
        raise ParseError(f"the number {text} does not fit 64 bits")
    return value


def immediate(token: Token) -> Immediate | None:
    """Return the number that a token is, if it is one."""
    if token.kind == "int":
        return Immediate("int", integer(token.text))
    if token.kind == "float":
        return Immediate("f32" if token.text[1] in "fF" else "f64", int(token.text[2:], 16))
    if token.kind == "real":
        return Immediate("f64", int.from_bytes(struct.pack("<d", float(token.text)), "little"))
    return None


def negated(value: Immediate) -> Immediate:
    """Return a number with the other sign; of a float, its sign bit is turned."""
    if value.kind == "int":
        return Immediate("int", -value.bits)
    return Immediate(value.kind, value.bits ^ (1 << (31 if value.kind == "f32" else 63)))
