"""The statements of a kernel: declarations, labels, instructions with their operands.

Names are resolved here, because inline assembly opens scopes ``{ ... }`` that declare the same
labels and registers again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .lexer import OPERANDS, Cursor, Token, integer, tokenise
from .syntax import (
    SIZES,
    Address,
    Entry,
    Immediate,
    Instruction,
    Not,
    Pair,
    Register,
    Selected,
    Symbol,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from .syntax import Operand


class ModuleParser(Cursor):
    """A module's parser, as far as the bodies of its kernels ask it."""

    files: dict[int, str]

    def variable(self, space: str, into: dict[str, Variable], external: bool = False) -> None:
        """Read the declaration of variables."""
        raise NotImplementedError


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

    def __init__(self, parser: ModuleParser, entry: Entry, function: str = "") -> None:
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
                    self.scope.tables[token.text] = self.branch_targets()
                elif parser.peek().text in (".callprototype", ".calltargets"):
                    while parser.peek().kind != "end" and not parser.accept(";"):
                        parser.next()  # the functions say themselves what they take
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

    def branch_targets(self) -> list[str]:
        """Read the labels that a brx.idx chooses from."""
        labels = [self.parser.word("a label")]
        while self.parser.accept(","):
            labels.append(self.parser.word("a label"))
        self.parser.expect(";")
        return labels

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
        operands = []
        while not parser.accept(";"):
            operands.append(self.operand())
            if not parser.accept(",") and parser.peek().text != ";":
                parser.fail(f"unexpected {parser.peek().text!r} among the operands")
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
        if text[0] == "[":
            name, _, offset = text[1:-1].partition("+")
            base = self.lookup(name)
            if isinstance(base, Register | Symbol):
                sign = -1 if offset[:1] == "-" else 1
                return Address(base, sign * integer(offset.lstrip("-") or "0"))
        elif "|" not in text:
            if text[0] == "{":
                items = text[1:-1].split(",")
                return Vector(tuple(self.operand_in(item.strip(), line) for item in items))
            if text[0] not in "!-0123456789":
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
