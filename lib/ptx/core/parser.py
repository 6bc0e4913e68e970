"""Parse a whole PTX module: tokens, statements, directives, entries."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from .errors import ParseError, UnsupportedInstruction
from .syntax import (
    SIZES,
    Address,
    Entry,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Program,
    Reference,
    Register,
    Selected,
    Symbol,
    Variable,
    Vector,
)

# -- PTX text cut into tokens, the numbers among them, and a cursor over them. --------------------


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

    def listed(self, last: str, where: str) -> Iterator[None]:
        """Go through a list up to the mark that ends it; who iterates takes each item."""
        while not self.accept(last):
            yield
            if not self.accept(",") and self.peek().text != last:
                self.fail(f"unexpected {self.peek().text!r} {where}")

    def skip_to(self, text: str) -> None:
        """Take all up to a mark, and the mark."""
        while self.peek().kind != "end" and not self.accept(text):
            self.next()

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



# -- The statements of a kernel: declarations, labels, instructions with their operands. ----------
#
# Names are resolved here, because inline assembly opens scopes ``{ ... }`` that declare the same
# labels and registers again.


class _Scope:
    """What a pair of braces declares."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, Register] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, int] = {}
        self.variables: dict[str, str] = {}
        self.tables: dict[str, list[str]] = {}  # of .branchtargets
        self.operands: dict[str, object] = {}  # those read, by their text, until the next name

    def chain(self) -> Iterator[_Scope]:
        """Yield this scope and those around it, from the inside."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Body:
    """The statements between an entry's braces."""

    def __init__(self, parser: Parser, entry: Entry, function: str = "") -> None:
        self.parser = parser
        self.entry = entry
        self.function = function  # its name, empty for a kernel
        self.scope = _Scope(None)
        self.cuda: tuple[str, int] | None = None
        self.callers: tuple[tuple[str, int], ...] = ()
        # The callers of each place, by file, line and column, that code was inlined from.
        self.inlined: dict[tuple[int, ...], tuple[tuple[str, int], ...]] = {}
        self.pending: list[tuple[Instruction, _Scope, Token]] = []

    def declare(self, name: str, kind: str, variable: Variable | None) -> Variable | Register:
        """Declare a parameter or result of a function; returns what the call copies."""
        self.scope.operands.clear()
        if variable is None:
            made = self.scope.names[name] = self.new_register(name, kind)
            return made
        self.scope.variables[name] = name
        self.entry.variables[name] = variable
        return variable

    def read(self) -> None:
        """Read to the closing brace, then resolve what names stand for."""
        parser, depth = self.parser, 1
        while depth:
            token = parser.next()
            if token.kind == "end":
                parser.fail("the text ends inside a kernel", token)
            if token.kind == "statement":
                self.statement(token)
            elif token.kind == "location":
                self.location(token, token.text.replace(",", " ").split()[1:])
            elif token.text == "{":
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
                if parser.accept(".branchtargets"):
                    self.scope.tables[token.text] = [
                        parser.word("a label") for _ in parser.listed(";", "among labels")]
                elif parser.peek().text in (".callprototype", ".calltargets"):
                    parser.skip_to(";")  # the functions say themselves what they take
                else:
                    self.scope.labels[token.text] = len(self.entry.instructions)
            else:
                self.instruction(token)
        for instruction, scope, token in self.pending:
            self.resolve(instruction, scope, token)

    def location(self, token: Token, rest: list[str]) -> None:
        """Read ``.loc file line column[, function_name label, inlined_at file line column]``.

        What is inlined into what is inlined itself has the location of the middle one in front
        of its own (PTX ISA, "Debugging Directives: .loc").
        """
        parser = self.parser
        end = rest.index("inlined_at") if "inlined_at" in rest else len(rest)
        own = tuple(integer(text) for text in rest[:3] if text.isdecimal())
        call = tuple(integer(text) for text in rest[end + 1 :] if text.isdecimal())
        if len(own) < 2 or (end < len(rest) and len(call) != 3):
            parser.fail(".loc without file and line", token)

        def line(place: tuple[int, ...]) -> tuple[str, int]:
            return parser.files.get(place[0], f"file {place[0]}"), place[1]

        # Behind code of no line, NVVM leaves out what it said of this place before.
        callers = (line(call), *self.inlined.get(call, ())) if call else self.inlined.get(own, ())
        self.inlined[own] = callers
        # Line 0 means that the code belongs to no line: keep what stood before.
        if own[1]:
            self.cuda, self.callers = line(own), callers

    def directive(self, token: Token) -> None:
        """Read one directive of a body."""
        parser = self.parser
        if token.text != ".loc":
            self.scope.operands.clear()  # a name may stand for something else from here on
        match token.text:
            case ".loc":
                self.location(token, [each.text for each in parser.skip_line(token.line)])
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

    def registers(self) -> None:
        """Read a declaration of registers, single ones or a range."""
        parser = self.parser
        kind = parser.word("a register's type")[1:]
        if kind in ("v2", "v4"):
            parser.fail("vector registers are not supported; use scalar registers and braces")
        if kind not in SIZES:
            parser.fail(f"unknown register type .{kind}")
        for _ in parser.listed(";", "among registers"):
            name = parser.word("a register's name")
            if parser.accept("<"):
                self.scope.ranges[name] = (kind, parser.integer())
                parser.expect(">")
            else:
                self.scope.names[name] = self.new_register(name, kind)

    def new_register(self, name: str, kind: str) -> Register:
        """Give a register the next slot of the entry."""
        register = Register(len(self.entry.registers), name, kind)
        self.entry.registers.append(register)
        return register

    def instruction(self, token: Token) -> None:
        """Read one instruction, its guard and its operands."""
        parser, guard = self.parser, None
        if token.text == "@":
            negated = parser.accept("!")
            name = parser.next()
            guard = self.guard(name.text, negated, name)
            token = parser.next()
        if token.kind != "word":
            parser.fail(f"expected an instruction, found {token.text!r}", token)
        operands = [self.operand() for _ in parser.listed(";", "among the operands")]
        self.append(token.text, operands, guard, token)

    def guard(self, name: str, negated: bool, token: Token) -> tuple[Register, bool]:
        """Return the predicate of an instruction, and whether it must not hold."""
        register = self.lookup(name)
        if not isinstance(register, Register) or register.type != "pred":
            self.parser.fail(f"{name!r} is no predicate", token)
        return register, negated

    def statement(self, token: Token) -> None:
        """Read one instruction that is a token by itself: operands that were read are known."""
        guard, known, operands = None, self.scope.operands, []
        if token.guard is not None:
            name = token.guard[1:].rstrip()
            guard = self.guard(name.removeprefix("!"), name[0] == "!", token)
        for text in OPERANDS.findall(token.operands):
            if text not in known:
                known[text] = self.operand_in(text, token.line)
            operands.append(known[text])
        self.append(token.opcode, operands, guard, token)

    def operand_in(self, text: str, line: int) -> Operand:
        """Read the operand that a text is."""
        if text[0] not in "[{!-0123456789" and "|" not in text:
            return self.lookup(text)
        parser = self.parser
        outside = parser.tokens, parser.at
        try:
            parser.tokens, parser.at = tokenise(text, line), 0
            return self.operand()
        finally:
            parser.tokens, parser.at = outside

    def append(
        self, opcode: str, operands: list, guard: tuple[Register, bool] | None, token: Token
    ) -> None:
        """Add an instruction; where a branch goes is found when all labels are known."""
        made = Instruction(
            token.line, opcode, tuple(operands), guard, self.cuda, callers=self.callers,
            function=self.function,
        )
        self.entry.instructions.append(made)
        if opcode.startswith("br"):
            self.pending.append((made, self.scope, token))

    def operand(self) -> Operand:
        """Read an operand, or two with a bar between them."""
        first = self.simple()
        if self.parser.accept("|"):
            return Pair(first, self.simple())
        return first

    def simple(self) -> Operand:
        """Read an address, a list, a name, a negated predicate or a number."""
        parser = self.parser
        token = parser.peek()
        if parser.accept("["):
            return self.address()
        for first, last, name in (("{", "}", "braces"), ("(", ")", "parentheses")):
            if parser.accept(first):  # in parentheses the lists of a call
                return Vector(tuple([self.simple() for _ in parser.listed(last, f"in {name}")]))
        if parser.accept("!"):
            return Not(self.plain(parser.word("a predicate"), token))
        if token.kind == "word":
            parser.next()
            if parser.peek().text in ("+", "-"):
                return Address(self.plain(token.text, token), parser.offset())
            return self.lookup(token.text)
        return parser.constant()

    def address(self) -> Address:
        """Read what stands in brackets, whose first one was taken."""
        parser = self.parser
        token = parser.peek()
        given = self.simple()
        offset = 0
        if isinstance(given, Address):
            base, offset = given.base, given.offset
        elif isinstance(given, Register | Symbol | Immediate):
            base = given
        else:
            parser.fail("an address needs a register, a variable or a number", token)
        offset += parser.offset()
        coordinates = []
        while parser.accept(","):
            coordinates.append(self.simple())
        parser.expect("]")
        return Address(base, offset, tuple(coordinates))

    def plain(self, name: str, token: Token) -> Register | Symbol:
        """Find a name that must not be a part of a register."""
        found = self.lookup(name)
        if isinstance(found, Selected):
            self.parser.fail(f"{name!r} is a part of a register", token)
        return found

    def lookup(self, name: str) -> Register | Selected | Symbol:
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
        stem, _, selector = name.rpartition(".")
        if stem and selector[:1] in ("b", "h") and selector[1:].isdigit():
            register = self.lookup(stem)
            if isinstance(register, Register):
                return Selected(register, selector)
        return Symbol(name)

    def resolve(self, instruction: Instruction, scope: _Scope, token: Token) -> None:
        """Turn the label of a branch into the index of an instruction."""
        if instruction.parts[0] not in ("bra", "brx"):
            return
        names = [o.name for o in instruction.operands if isinstance(o, Symbol)]
        if len(names) == 1 and instruction.parts[0] == "brx":
            names = next((s.tables[names[0]] for s in scope.chain() if names[0] in s.tables), [])
        found = [
            s.labels[name] for name in names
            for s in itertools.islice((s for s in scope.chain() if name in s.labels), 1)
        ]
        unknown = len(found) < len(names) or not found
        if unknown or (len(found) > 1 and instruction.parts[0] == "bra"):
            self.parser.fail(f"branch to an unknown label in '{instruction.opcode}'", token)
        if instruction.parts[0] == "bra":
            instruction.target = found[0]
        else:
            instruction.targets = tuple(found)



# -- PTX text to a tree of plain dataclasses: entries, variables, registers, instructions. --------
#
# The parser knows the grammar and nothing of what an opcode means. Here is what stands outside of
# the kernels; `Body` reads what stands inside of them.


def parse(text: str) -> Program:
    """Parse PTX text.

    `text`: a whole module as NVRTC returns it. Returns entries and module-level variables, every
    name resolved. Raises ParseError with the line, if the text is no PTX.
    """
    return Parser(text.rstrip("\0")).program()


MAX_ALIGN = 1 << 16  # bytes: of a variable
_FILE = re.compile(r'^([ \t]*\.file[ \t]+(\d{1,9})[ \t]+)"([^"\n]*)"', re.M)
# How compilers write the bytes of a name in UTF-8 that are no ASCII.
_ESCAPED = re.compile(r"(?:\\[0-7]{3})+")


def _unescaped(found: re.Match[str]) -> str:
    codes = (int(code, 8) & 255 for code in found[0].split("\\")[1:])
    return bytes(codes).decode("utf-8", "replace")


def files(text: str) -> dict[int, str]:
    """The names that ``.file`` gives numbers to."""
    return {int(number): _ESCAPED.sub(_unescaped, name) for _, number, name in _FILE.findall(text)}


def with_files(text: str, rename: Callable[[str], str]) -> str:
    """PTX whose files have other names."""
    return _FILE.sub(
        lambda file: f'{file[1]}"{rename(_ESCAPED.sub(_unescaped, file[3]))}"', text)


class Parser(Cursor):
    """Recursive descent over the tokens; one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.files = files(text)
        super().__init__(text)
        self.result = Program()

    # -- module ---------------------------------------------------------------------------------

    def program(self) -> Program:
        """Read a whole module."""
        while self.peek().kind != "end":
            token = self.next()
            if token.kind == "location":
                continue
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
                    if not self.skip_braces():
                        self.fail("the text ends inside of a section")
                case ".pragma" | ".alias":
                    self.skip_to(";")
                case ".shared" | ".global" | ".const" | ".tex":
                    self.variable(token.text[1:], self.result.variables)
                case _:
                    self.fail(f"unexpected {token.text!r} outside of a kernel", token)
        if self.result.broken.keys() >= self.result.entries.keys() > set():
            raise next(iter(self.result.broken.values()))
        return self.result

    def skip_braces(self) -> bool:
        """Skip to the next opening brace, and over what it holds; tell whether that ends."""
        depth = 0
        while (token := self.next()).kind != "end":
            depth += (token.text == "{") - (token.text == "}")
            if token.text == "}" and depth <= 0:
                return True
        return False

    def function(self) -> None:
        """Read one device function, or its declaration."""
        function = Entry("", self.peek().line)
        body = Body(self, function)
        results = self.formals(body) if self.accept("(") else []
        function.name = body.function = self.word("a function's name")
        function.results = results
        function.formals = self.formals(body) if self.accept("(") else []
        while self.peek().text.startswith("."):  # .noreturn, .pragma, .attribute(...)
            self.next()
            if self.accept("("):
                self.skip_to(")")
        if self.accept(";"):
            self.result.functions.setdefault(function.name, None)
            return
        if self.result.functions.get(function.name) is not None:
            self.fail(f"function {function.name} stands twice")
        self.result.functions[function.name] = function
        self.body(body)

    def formals(self, body: Body) -> list:
        """Read the parameters or results of a function, up to the closing parenthesis."""
        found = []
        for _ in self.listed(")", "among the parameters"):
            if self.accept(".reg"):
                kind = self.word("a register's type")[1:]
                if kind not in SIZES:
                    self.fail(f"unknown register type .{kind}")
                found.append(body.declare(self.word("a register's name"), kind, None))
            else:
                self.expect(".param")
                declared: dict[str, Variable] = {}
                self.variable("param", declared)
                for name, variable in declared.items():
                    variable.space = "call"
                    found.append(body.declare(name, variable.type, variable))
        return found

    def body(self, body: Body) -> None:
        """Read the statements of a kernel or function.

        What cannot be read concerns only launches that reach it, so it is remembered.
        """
        start = self.at
        self.expect("{")
        try:
            body.read()
        except ParseError as error:
            self.result.broken[body.entry.name] = error
            self.at = start
            if not self.skip_braces():
                raise
        body.entry.end = self.tokens[self.at - 1].line

    def variable(self, space: str, into: dict[str, Variable], external: bool = False) -> None:
        """Declare ``.shared .align 4 .b8 name[4096];`` and its kin."""
        align, kind, width = 0, None, 1
        while self.peek().text.startswith("."):
            token = self.next()
            if token.text == ".align":
                align = self.integer()
                if align <= 0 or align & (align - 1) or align > MAX_ALIGN:
                    self.fail(f"alignment {align} is no power of two up to {MAX_ALIGN:,}", token)
            elif token.text in (".v2", ".v4"):
                width = int(token.text[2])
            elif token.text[1:] in SIZES:
                kind = token.text[1:]
            elif token.text == ".ptr":
                while self.peek().text in (".global", ".const", ".shared", ".local"):
                    self.next()
            elif token.text == ".attribute":  # (.managed): where it lies makes no difference here
                self.skip_to(")")
                if self.peek().kind == "end":
                    self.fail("the text ends inside of an attribute", token)
            elif token.text in (".texref", ".samplerref", ".surfref"):
                raise UnsupportedInstruction(
                    f"PTX line {token.line}: {token.text} {self.peek().text}: texture, sampler and "
                    "surface references are not emulated; pass a texture object "
                    "(cudaTextureObject_t) as an argument"
                )
            else:
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
        """Read the values of a variable, in braces or alone."""
        if not self.accept("{"):
            return [self.value()]
        values = []
        for _ in self.listed("}", "in an initialiser"):
            if self.accept("{"):
                values += [self.value() for _ in self.listed("}", "in an initialiser")]
            else:
                values.append(self.value())
        return values

    def value(self) -> Immediate | Reference:
        """Read a number, or the address of a variable or function: name, generic(name), name+4."""
        if self.peek().kind != "word":
            return self.constant()
        name, offset = self.word("a name"), 0
        if name == "generic" and self.accept("("):
            name = self.word("a name")
            offset = self.offset()
            self.expect(")")
        return Reference(name, offset + self.offset())

    # -- entries --------------------------------------------------------------------------------

    def entry(self) -> None:
        """Read one kernel: its parameters, its directives, its body."""
        line = self.peek().line
        entry = Entry(self.word("an entry's name"), line)
        if entry.name in self.result.entries:
            self.fail(f"entry {entry.name} stands twice")
        if self.accept("("):
            for _ in self.listed(")", "among the parameters"):
                self.expect(".param")
                declared: dict[str, Variable] = {}
                self.variable("param", declared)
                entry.parameters += declared.values()
        while self.peek().text.startswith("."):
            directive = self.next()
            numbers = []
            while self.peek().kind == "int" or self.peek().text == ",":
                token = self.next()
                if token.kind == "int":
                    numbers.append(integer(token.text))
            if self.peek().kind == "string":  # .pragma "..."; between the header and the body
                self.next()
                self.accept(";")
            entry.limits[directive.text[1:]] = tuple(numbers)
        self.result.entries[entry.name] = entry
        self.body(Body(self, entry))
