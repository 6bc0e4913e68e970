"""PTX text to a tree of plain dataclasses: entries, variables, registers, instructions.

The parser knows the grammar and nothing of what an opcode means. Here is what stands outside of the
kernels; `body` reads what stands inside of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .body import Body, ModuleParser
from .errors import ParseError, UnsupportedInstruction
from .lexer import integer
from .syntax import SIZES, Entry, Immediate, Program, Reference, Variable


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


class Parser(ModuleParser):
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
                    self.skip_braces()
                case ".pragma" | ".alias":
                    while self.peek().kind != "end" and not self.accept(";"):
                        self.next()
                case ".shared" | ".global" | ".const" | ".tex":
                    self.variable(token.text[1:], self.result.variables)
                case _:
                    self.fail(f"unexpected {token.text!r} outside of a kernel", token)
        if self.result.broken.keys() >= self.result.entries.keys() > set():
            raise next(iter(self.result.broken.values()))
        return self.result

    def skip_braces(self) -> None:
        """Skip to the next opening brace, and over what it holds."""
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
                while self.peek().kind != "end" and not self.accept(")"):
                    self.next()
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
        while not self.accept(")"):
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
            if not self.accept(",") and self.peek().text != ")":
                self.fail(f"unexpected {self.peek().text!r} among the parameters")
        return found

    def body(self, body: Body) -> None:
        """Read the statements of a kernel or function.

        What cannot be read concerns only launches that reach it, so it is remembered.
        """
        self.expect("{")
        start = self.at
        try:
            body.read()
        except ParseError as error:
            self.result.broken[body.entry.name] = error
            self.at = start
            depth = 1
            while depth:
                token = self.next()
                depth += (token.text == "{") - (token.text == "}")
                if token.kind == "end":
                    raise

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
                self.expect("(")
                while not self.accept(")"):
                    if self.next().kind == "end":
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
        while not self.accept("}"):
            if self.accept("{"):
                while not self.accept("}"):
                    values.append(self.value())
                    self.accept(",")
            else:
                values.append(self.value())
            if not self.accept(",") and self.peek().text != "}":
                self.fail(f"unexpected {self.peek().text!r} in an initialiser")
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
                    numbers.append(integer(token.text))
            if self.peek().kind == "string":  # .pragma "..."; between the header and the body
                self.next()
                self.accept(";")
            entry.limits[directive.text[1:]] = tuple(numbers)
        self.result.entries[entry.name] = entry
        self.body(Body(self, entry))
