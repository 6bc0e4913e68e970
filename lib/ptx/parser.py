"""PTX text to a tree of plain dataclasses: entries, variables, registers, instructions.

The parser knows the grammar and nothing of what an opcode means. Names are resolved here, because
inline assembly opens scopes ``{ ... }`` that declare the same labels and registers again.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from .errors import ParseError
from .syntax import (
    SIZES,
    Address,
    Entry,
    Immediate,
    Instruction,
    Not,
    Pair,
    Program,
    Register,
    Symbol,
    Variable,
    Vector,
)

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+ | //[^\n]* | /\*.*?\*/)
  | (?P<newline>\n)
  | (?P<string>"[^"\n]*")
  | (?P<float>0[fF][0-9a-fA-F]{8}(?![\w$]) | 0[dD][0-9a-fA-F]{16}(?![\w$]))
  | (?P<real>\d+\.\d*(?:[eE][+-]?\d+)?(?![\w$]) | \d+[eE][+-]?\d+(?![\w$]))
  | (?P<int>(?:0[xX][0-9a-fA-F]+ | 0[bB][01]+ | \d+)U?(?![\w$]))
  | (?P<word>\.(?:reg|shared|local|global|const|param|align)(?=\.[a-z]) # CUDA writes .reg.b16 x;
           | [%$_.A-Za-z][\w$.%]*(?:::[\w.]+)*)
  | (?P<mark>[][(){}<>,;:=@!|+\-*&~])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """One word, number, string or mark, and the line that it stands in."""

    kind: str
    text: str
    line: int


class _Scope:
    """What a pair of braces declares."""

    def __init__(self, parent: _Scope | None):
        self.parent = parent
        self.names: dict[str, Register] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, int] = {}
        self.variables: dict[str, str] = {}

    def chain(self):
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def tokenise(text: str) -> list[Token]:
    """Cut PTX text into tokens.

    Raises
    ------
    ParseError
        At the first character that begins no token.
    """
    tokens, line, at = [], 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError(f"PTX line {line}: cannot read {text[at : at + 20]!r}")
        kind, word = match.lastgroup, match.group()
        if kind not in ("space", "newline"):
            tokens.append(Token(kind, word, line))
        line += word.count("\n")
        at = match.end()
    tokens.append(Token("end", "end of text", line))
    return tokens


def parse(text: str) -> Program:
    """Parse PTX text.

    Parameters
    ----------
    text : str
        A whole module as NVRTC returns it.

    Returns
    -------
    Program
        Entries and module-level variables, every name resolved.

    Raises
    ------
    ParseError
        With the line, if the text is no PTX.
    """
    return _Parser(text.rstrip("\0")).program()


class _Parser:
    """Recursive descent over the tokens; one method for each rule of the grammar."""

    def __init__(self, text: str):
        self.files = {
            int(number): name
            for number, name in re.findall(r'^\s*\.file\s+(\d{1,9})\s+"([^"\n]*)"', text, re.M)
        }
        self.tokens = tokenise(text)
        self.at = 0
        self.result = Program()

    # -- tokens ---------------------------------------------------------------------------------

    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text == text and self.peek().kind in ("mark", "word"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        token = self.next()
        if token.text != text:
            self.fail(f"expected {text!r}, found {token.text!r}", token)
        return token

    def word(self, what: str) -> str:
        token = self.next()
        if token.kind != "word":
            self.fail(f"expected {what}, found {token.text!r}", token)
        return token.text

    def fail(self, message: str, token: Token | None = None):
        raise ParseError(f"PTX line {(token or self.peek()).line}: {message}")

    def skip_line(self, line: int) -> list[Token]:
        """Take the rest of a directive that ends with its line."""
        taken = []
        while self.peek().kind != "end" and self.peek().line == line:
            taken.append(self.next())
        return taken

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        self.accept("+")
        token = self.next()
        if token.kind != "int":
            self.fail(f"expected a whole number, found {token.text!r}", token)
        return sign * _integer(token.text)

    # -- module ---------------------------------------------------------------------------------

    def program(self) -> Program:
        while self.peek().kind != "end":
            token = self.next()
            match token.text:
                case ".version":
                    self.result.version = " ".join(t.text for t in self.skip_line(token.line))
                case ".target":
                    self.result.target = " ".join(t.text for t in self.skip_line(token.line))
                case ".address_size" | ".file" | ".loc":
                    self.skip_line(token.line)
                case ".extern" | ".visible" | ".weak" | ".common" | ";":
                    if token.text == ".extern" and self.peek().text in (".shared", ".global"):
                        self.variable(self.next().text[1:], self.result.variables, external=True)
                case ".entry":
                    self.entry()
                case ".func":
                    self.function()
                case ".section":
                    self.skip_braces()
                case ".pragma" | ".alias":
                    while self.peek().kind != "end" and not self.accept(";"):
                        self.next()
                case ".shared" | ".global" | ".const" | ".tex":
                    self.variable(token.text[1:], self.result.variables)
                case _:
                    self.fail(f"unexpected {token.text!r} outside of a kernel", token)
        return self.result

    def skip_braces(self):
        while self.peek().text != "{":
            if self.next().kind == "end":
                self.fail("the text ends before '{'")
        depth = 0
        while True:
            token = self.next()
            depth += (token.text == "{") - (token.text == "}")
            if token.kind == "end":
                self.fail("the text ends before '}'", token)
            if depth == 0:
                return

    def function(self):
        """Device functions are declared (printf, assertions) or inlined; calls are not run."""
        while True:
            token = self.next()
            if token.kind == "end":
                self.fail("the text ends in a function", token)
            if token.kind == "word" and not token.text.startswith("."):
                self.result.functions.add(token.text)
            if token.text == ";":
                return
            if self.peek().text == "{":
                return self.skip_braces()

    def variable(self, space: str, into: dict[str, Variable], external: bool = False):
        """Declare ``.shared .align 4 .b8 name[4096];`` and its kin."""
        align, kind, width = 0, None, 1
        while self.peek().text.startswith("."):
            token = self.next()
            if token.text == ".align":
                align = self.integer()
                if align <= 0 or align & (align - 1) or align > 4096:
                    self.fail(f"alignment {align} is no power of two up to 4096", token)
            elif token.text in (".v2", ".v4"):
                width = int(token.text[2])
            elif token.text[1:] in SIZES:
                kind = token.text[1:]
            elif token.text == ".ptr":
                while self.peek().text in (".global", ".const", ".shared", ".local"):
                    self.next()
            elif token.text not in (".attribute", ".managed"):
                self.fail(f"unexpected {token.text!r} in a declaration", token)
        if kind is None:
            self.fail("a declaration without a type")
        while True:
            name, count = self.word("a variable's name"), width
            while self.accept("["):
                if self.accept("]"):
                    count = 0
                    continue
                count *= self.integer()
                self.expect("]")
            if not 0 <= count <= 1 << 31:
                self.fail(f"variable {name} has {count} elements")
            initial = self.initialiser() if self.accept("=") else []
            if len(initial) > count:
                self.fail(f"variable {name} has more values than elements")
            size = SIZES[kind]
            into[name] = Variable(
                name, space, kind, size, max(align, size), count, initial, external or count == 0
            )
            if space == "param" or not self.accept(","):
                break
        if space != "param":
            self.expect(";")

    def initialiser(self) -> list:
        if not self.accept("{"):
            return [self.constant()]
        values = []
        while not self.accept("}"):
            if self.accept("{"):
                while not self.accept("}"):
                    values.append(self.constant())
                    self.accept(",")
            else:
                values.append(self.constant())
            if not self.accept(",") and self.peek().text != "}":
                self.fail(f"unexpected {self.peek().text!r} in an initialiser")
        return values

    def constant(self) -> Immediate:
        negative = False
        while self.peek().text in ("-", "+"):
            negative ^= self.next().text == "-"
        token = self.next()
        value = _immediate(token)
        if value is None:
            self.fail(f"expected a number, found {token.text!r}", token)
        if negative:
            value = _negated(value)
        return value

    # -- entries --------------------------------------------------------------------------------

    def entry(self):
        line = self.peek().line
        entry = Entry(self.word("an entry's name"), line)
        if entry.name in self.result.entries:
            self.fail(f"entry {entry.name} stands twice")
        if self.accept("("):
            while not self.accept(")"):
                self.expect(".param")
                declared: dict[str, Variable] = {}
                self.variable("param", declared)
                entry.parameters += declared.values()
                if not self.accept(",") and self.peek().text != ")":
                    self.fail(f"unexpected {self.peek().text!r} among the parameters")
        while self.peek().text.startswith("."):
            directive = self.next()
            numbers = []
            while self.peek().kind == "int" or self.peek().text == ",":
                token = self.next()
                if token.kind == "int":
                    numbers.append(_integer(token.text))
            if self.peek().kind == "string":  # .pragma "..."; between the header and the body
                self.next()
                self.accept(";")
            entry.limits[directive.text[1:]] = tuple(numbers)
        self.expect("{")
        _Body(self, entry).read()
        self.result.entries[entry.name] = entry


class _Body:
    """The statements between an entry's braces."""

    def __init__(self, parser: _Parser, entry: Entry):
        self.parser = parser
        self.entry = entry
        self.scope = _Scope(None)
        self.cuda: tuple[str, int] | None = None
        self.pending: list[tuple[Instruction, _Scope, Token]] = []
        self.slots: dict[tuple[int, str], Register] = {}

    def read(self):
        parser, depth = self.parser, 1
        while depth:
            token = parser.next()
            if token.kind == "end":
                parser.fail("the text ends inside a kernel", token)
            if token.text == "{":
                self.scope = _Scope(self.scope)
                depth += 1
            elif token.text == "}":
                self.scope = self.scope.parent or self.scope
                depth -= 1
            elif token.text == ";":
                continue
            elif token.kind == "word" and token.text.startswith("."):
                self.directive(token)
            elif token.kind == "word" and parser.accept(":"):
                if token.text in self.scope.labels:
                    parser.fail(f"label {token.text} stands twice", token)
                self.scope.labels[token.text] = len(self.entry.instructions)
            else:
                self.instruction(token)
        for instruction, scope, token in self.pending:
            self.resolve(instruction, scope, token)

    def directive(self, token: Token):
        parser = self.parser
        match token.text:
            case ".loc":
                rest = parser.skip_line(token.line)
                numbers = [_integer(t.text) for t in rest[:2] if t.kind == "int"]
                if len(numbers) != 2:
                    parser.fail(".loc without file and line", token)
                # Line 0 means that the code belongs to no line: keep what stood before.
                if numbers[1]:
                    self.cuda = (parser.files.get(numbers[0], f"file {numbers[0]}"), numbers[1])
            case ".reg":
                self.registers()
            case ".shared" | ".local" | ".const" | ".global" | ".param":
                declared: dict[str, Variable] = {}
                parser.variable(token.text[1:] if token.text != ".param" else "call", declared)
                for name, variable in declared.items():
                    unique = name
                    while unique in self.entry.variables:
                        unique += "'"
                    self.scope.variables[name] = unique
                    variable.name = unique
                    self.entry.variables[unique] = variable
            case ".extern":
                parser.expect(".shared")
                parser.variable("shared", self.entry.variables, external=True)
            case ".pragma":
                while parser.peek().kind == "string" or parser.peek().text == ",":
                    parser.next()
                parser.expect(";")
            case ".file":
                parser.skip_line(token.line)
            case _:
                parser.fail(f"unexpected directive {token.text!r}", token)

    def registers(self):
        parser = self.parser
        kind = parser.word("a register's type")[1:]
        if kind in ("v2", "v4"):
            parser.fail("vector registers are not supported; use scalar registers and braces")
        if kind not in SIZES:
            parser.fail(f"unknown register type .{kind}")
        while True:
            name = parser.word("a register's name")
            if parser.accept("<"):
                self.scope.ranges[name] = (kind, parser.integer())
                parser.expect(">")
            else:
                self.scope.names[name] = self.new_register(name, kind)
            if not parser.accept(","):
                break
        parser.expect(";")

    def new_register(self, name: str, kind: str) -> Register:
        register = Register(len(self.entry.registers), name, kind)
        self.entry.registers.append(register)
        return register

    def instruction(self, token: Token):
        parser, guard = self.parser, None
        if token.text == "@":
            negated = parser.accept("!")
            name = parser.next()
            register = self.lookup(name.text)
            if not isinstance(register, Register) or register.type != "pred":
                parser.fail(f"{name.text!r} is no predicate", name)
            guard = (register, negated)
            token = parser.next()
        if token.kind != "word":
            parser.fail(f"expected an instruction, found {token.text!r}", token)
        operands = []
        while not parser.accept(";"):
            operands.append(self.operand())
            if not parser.accept(",") and parser.peek().text != ";":
                parser.fail(f"unexpected {parser.peek().text!r} among the operands")
        made = Instruction(token.line, token.text, tuple(operands), guard, self.cuda)
        self.entry.instructions.append(made)
        self.pending.append((made, self.scope, token))

    def operand(self):
        first = self.simple()
        if self.parser.accept("|"):
            return Pair(first, self.simple())
        return first

    def simple(self):
        parser = self.parser
        token = parser.peek()
        if parser.accept("["):
            return self.address()
        if parser.accept("{"):
            items = []
            while not parser.accept("}"):
                items.append(self.simple())
                if not parser.accept(",") and parser.peek().text != "}":
                    parser.fail(f"unexpected {parser.peek().text!r} in braces")
            return Vector(tuple(items))
        if parser.accept("("):  # the lists of a call
            items = []
            while not parser.accept(")"):
                items.append(self.simple())
                if not parser.accept(",") and parser.peek().text != ")":
                    parser.fail(f"unexpected {parser.peek().text!r} in parentheses")
            return Vector(tuple(items))
        if parser.accept("!"):
            return Not(self.lookup(parser.word("a predicate")))
        if token.kind == "word":
            parser.next()
            found = self.lookup(token.text)
            if parser.peek().text in ("+", "-"):
                return Address(found, self.offset())
            return found
        return parser.constant()

    def address(self) -> Address:
        parser = self.parser
        token = parser.peek()
        base = self.simple()
        offset = 0
        if isinstance(base, Address):
            base, offset = base.base, base.offset
        elif not isinstance(base, Register | Symbol | Immediate):
            parser.fail("an address needs a register, a variable or a number", token)
        offset += self.offset()
        coordinates = []
        while parser.accept(","):
            coordinates.append(self.simple())
        parser.expect("]")
        return Address(base, offset, tuple(coordinates))

    def offset(self) -> int:
        """Sum what follows a base: ``+16``, ``+-8``, ``-8``."""
        total = 0
        while self.parser.peek().text in ("+", "-"):
            sign = -1 if self.parser.next().text == "-" else 1
            total += sign * self.parser.integer()
        return total

    def lookup(self, name: str) -> Register | Symbol:
        """Find the innermost register of this name; a range ``%r<28>`` makes them as needed."""
        for scope in self.scope.chain():
            if name in scope.names:
                return scope.names[name]
            stem = name.rstrip("0123456789")
            if stem != name and stem in scope.ranges:
                kind, count = scope.ranges[stem]
                digits = name[len(stem) :]
                if len(digits) < 10 and int(digits) < count:
                    scope.names[name] = self.new_register(name, kind)
                    return scope.names[name]
            if name in scope.variables:
                return Symbol(scope.variables[name])
        return Symbol(name)

    def resolve(self, instruction: Instruction, scope: _Scope, token: Token):
        """Turn the label of a branch into the index of an instruction."""
        if instruction.parts[0] != "bra":
            return
        names = [o.name for o in instruction.operands if isinstance(o, Symbol)]
        for candidate in scope.chain():
            if len(names) == 1 and names[0] in candidate.labels:
                instruction.target = candidate.labels[names[0]]
                return
        self.parser.fail(f"branch to an unknown label in '{instruction.opcode}'", token)


# -- numbers ------------------------------------------------------------------------------------


def _integer(text: str) -> int:
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


def _immediate(token: Token) -> Immediate | None:
    if token.kind == "int":
        return Immediate("int", _integer(token.text))
    if token.kind == "float":
        return Immediate("f32" if token.text[1] in "fF" else "f64", int(token.text[2:], 16))
    if token.kind == "real":
        return Immediate("f64", int.from_bytes(struct.pack("<d", float(token.text)), "little"))
    return None


def _negated(value: Immediate) -> Immediate:
    if value.kind == "int":
        return Immediate("int", -value.bits)
    return Immediate(value.kind, value.bits ^ (1 << (31 if value.kind == "f32" else 63)))
