"""Other people's .cu files as they are: device code, taken out of a file that has a host part.

NVRTC compiles device code alone. A file for nvcc also has ``main``, launches with ``<<<>>>``,
headers of the C++ library. So a file is cut into its declarations: functions of the host are left
out, and so is, of what could be either (types, constants, macros' expansions), whatever NVRTC finds
an error in. Code that says ``__device__`` or ``__global__`` always stays, and lines stay where they
were, in the file and in the headers beside it, so that messages and line information name them.
Headers in folders of ``-I`` are first taken as they are, which many are made for; where NVRTC can't
take one, they are cut like those beside the file.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path, PurePath

from lib.compiler import host_headers
from lib.compiler.cache import cached
from lib.compiler.host_headers import PRELUDE, brought, headers
from lib.compiler.nvrtc import CompileError, Output, compile_nvrtc
from lib.compiler.toolkit import toolkit_identity, toolkit_includes
from lib.ptx.files import bytes_of, text_of

ROUNDS = 30  # of leaving out and compiling again; each leaves out all that NVRTC complains of
_ON_DEVICE = ("__global__", "__device__", "__constant__", "__shared__", "__managed__")
_ATTRIBUTES = ("__launch_bounds__", "__cluster_dims__", "__attribute__", "__maxnreg__",
               "__block_size__", "__align__", "alignas")
_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#(?:\\\n|//[^\n]*|/\*.*?(?:\*/|\Z)|[^\n\\]|\\)*)
    | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<text>R"(?P<mark>[^(\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
               |"(?:\\.|[^"\\\n])*+(?:"|$|\Z|\\)|'(?:\\.|[^'\\\n])++(?:'|$|\Z|\\))
    | (?P<word>[A-Za-z_]\w*|\d(?:'?[\w.])*)
    | (?P<sign>[^\s])""",
    re.S | re.M | re.X,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"\n]+)"|<(?P<other>[^>\n]+)>)')
_THRUST = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<thrust/")
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.S)
_ERROR = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error", re.M)
# What NVRTC says of a header of the toolkit's that is for the host alone.
_HOSTS_ALONE = re.compile(
    r"^(?P<file>[^\n(]+)\(\d+\): error: A function explicitly marked as a __host__ function", re.M
)
# What the emulator lacks, by what NVRTC says of it.
_LAUNCH = ("a kernel that launches kernels (dynamic parallelism) is not emulated: launch each of "
           "them by itself")
_UNSUPPORTED = {
    "device-side kernel launch": _LAUNCH,
    "requires separate compilation mode": _LAUNCH,
    "texture is not a template": "CUDA 12 has no texture references any more, and they are not "
                                 "emulated: pass a cudaTextureObject_t, which ptx.Texture makes",
    "surface is not a template": "CUDA 12 has no surface references any more, and they are not "
                                 "emulated: pass a cudaSurfaceObject_t, which ptx.Surface makes",
}
_WHEELS = {"curand_kernel.h": "nvidia-curand-cu12"}  # what brings a header for the device
# Where headers lie, beside a file or a few folders up.
_FOLDERS = ("", "include", "inc", "includes", "src", "common", "utils")
_INSTANTIATED = re.compile(r"at line (?P<line>\d+)(?: of (?P<file>\S+))?")


@dataclass(frozen=True)
class Token:
    """A token: its kind, its text, its first line, where it begins and ends."""

    kind: str
    text: str
    line: int
    start: int
    end: int


@dataclass(eq=False)
class Item:
    """A declaration that stays or goes as a whole."""

    # first, last: its lines, from 1.
    first: int
    last: int
    head: str  # its words up to its body
    device: bool  # whether it says that it is the device's: it never goes
    # start, end: its place in the text, in characters.
    start: int
    end: int
    scope: str = ""  # the namespaces around it, such as ``"ns::detail"``
    gone: bool = False  # whether it is left out
    # Whether it is a class, which goes for an error in its head alone: `last` is the head's.
    container: bool = False


@dataclass
class Source:
    """One file, cut into items."""

    path: Path
    text: str
    # Those of a class, and behind them the class. What lies between items (braces of namespaces)
    # always stays, but for that of a class which has gone with all of its items.
    items: list[Item] = field(default_factory=list)
    once: bool = False  # whether ``#pragma once`` stands in it

    def gone(self) -> list[Item]:
        """What is left out, in its order, and nothing twice."""
        found: list[Item] = []
        for item in sorted(self.items, key=lambda item: (item.start, -item.end)):
            if item.gone and not (found and item.start < found[-1].end):
                found.append(item)
        return found

    def remaining(self) -> str:
        """The text without the items that are gone; directives in them stay, and all lines."""
        parts, at = [], 0
        for item in self.gone():
            parts.append(self.text[at : item.start])
            parts.append(_blank(self.text[item.start : item.end]))
            at = item.end
        return "".join([*parts, self.text[at:]])


@dataclass(frozen=True)
class Declared:
    """A kernel as the source has it."""

    parameters: str  # without the parentheses
    # The template's parameters, such as ``"typename T, int TILE"``; empty if it is none.
    template: str = ""
    scope: str = ""  # as `Item` has it


class CudaFile:
    """A .cu file and the headers beside it that it includes.

    `options`: NVRTC's. `text`: what it holds, where there is no such file. Raises OSError if it
    can't be read.
    """

    def __init__(
        self, path: str | Path, options: Sequence[str] = (), text: str | None = None,
    ) -> None:
        self.path = Path(path).resolve() if text is None else Path(path)
        self.options, self._text = tuple(options), text
        self._given = [Path(option[2:]).resolve() for option in options if option[:2] == "-I"]
        self._toolkit = [Path(option[2:]).resolve() for option in toolkit_includes()]
        self._cut: list[Path] = []  # folders whose headers are cut, those beside a file apart
        self._emptied: dict[str, str] = {}  # headers of the toolkit's that are for the host alone
        self._read()

    def _read(self) -> None:
        """Read the file and the headers that are cut with it."""
        self._sources: dict[Path, Source] = {}
        self._macros: set[str] = set()
        self._load(self.path)
        for source in self._sources.values():
            source.items = list(_items(source.text, self._macros))

    @property
    def declared(self) -> dict[str, Declared]:
        """Each kernel by its name, as it is written."""
        return _kernels(item for source in self._sources.values() for item in source.items)

    def qualified(self, expression: str) -> str:
        """A name expression with the kernel's namespaces before it, if it names none itself."""
        name, bracket, arguments = expression.partition("<")
        found = self.declared.get(name.strip())
        scope = f"{found.scope}::" if found and found.scope else ""
        return f"{scope}{name.strip()}{bracket}{arguments}"

    @property
    def texts(self) -> dict[str, str]:
        """The text of each file, by the name that line information gives it."""
        return {_named(path): source.text for path, source in self._sources.items()}

    def libraries(self) -> list[str]:
        """The headers of the host's libraries that are nowhere and were left out."""
        return [f"{path.name}:{number}: {name} is not there, and was left out as a header of the "
                "host's" for name, (path, number, dropped) in self._missing().items() if dropped]

    def text(self) -> str:
        """The device's code as one text; ``#line`` says where each part of it stands."""
        wanted = "".join(f"#include <{name}>\n" for name in brought(self._of_std()))
        return PRELUDE + wanted + "".join(self._rendered(self.path, (), set()))

    def compile(self, expressions: Sequence[str], arch: str) -> Output:
        """Compile to PTX, leaving out what turns out to be the host's.

        `expressions`: see `lib.compiler.nvrtc.compile_nvrtc`. `arch`: such as ``"compute_80"``.
        Raises CompileError if NVRTC finds an error in the device's code.
        """
        options = [f"-arch={arch}", "-lineinfo", "-default-device", *self.options,
                   *toolkit_includes()]
        if not any("std=" in option for option in self.options):
            options.append("--std=c++17")
        if any(option[:2] == "-I" for option in self.options):
            return self._compile(expressions, options)  # of headers that may change
        parts: list[str | bytes] = [
            "file", *(bytes_of(used) for used in (__file__, host_headers.__file__)),
            *(part for path, source in self._sources.items()
              for part in (_named(path), source.text)),
            *expressions, *options, toolkit_identity(),
        ]
        found = json.loads(cached(parts, lambda: self._document(expressions, options)))
        return Output(found["ptx"].encode(), b"", found["names"], found["log"])

    def _document(self, expressions: Sequence[str], options: Sequence[str]) -> bytes:
        """What is kept of a compilation."""
        made = self._compile(expressions, options)
        return json.dumps({"ptx": made.ptx.decode(), "names": made.names, "log": made.log}).encode()

    def _compile(self, expressions: Sequence[str], options: Sequence[str]) -> Output:
        std = self._names(r"\bstd\s*::|using\s+namespace\s+std\b")
        words = ""
        for _ in range(ROUNDS):
            try:
                return compile_nvrtc(
                    self.text(), expressions, options, _named(self.path),
                    headers(std, self._names(r"\bcub\s*::")) | self._emptied, self._line_at,
                )
            except CompileError as error:
                words += str(error)
                guilty = self._guilty(str(error))
                for item in guilty:
                    item.gone = True
                if guilty or self._empty(str(error)) or self._cut_more(str(error)):
                    continue
                if std or '"std"' not in str(error):
                    raise CompileError(self.elsewhere() or f"{error}{self._advice(words)}") \
                        from None
                std = True  # a header of the toolkit's wants it
        raise CompileError(f"{self.path.name}: errors remain after leaving out {ROUNDS} times")

    def _empty(self, log: str) -> bool:
        """Leave out headers of the toolkit's that are for the host alone, if errors are of such."""
        found = {
            str(path.relative_to(folder)): ""
            for path in (Path(place["file"]).resolve() for place in _HOSTS_ALONE.finditer(log))
            for folder in self._toolkit if path.is_relative_to(folder)
        }
        more = found.keys() - self._emptied.keys()
        self._emptied |= found
        return bool(more)

    def _cut_more(self, log: str) -> bool:
        """Cut the headers in folders of ``-I``, if errors are of them and they aren't cut yet."""
        folders = [folder for folder in self._given if folder not in self._toolkit]
        places = (Path(place["file"]).resolve() for place in _ERROR.finditer(log))
        if self._cut or not any(path.is_relative_to(folder)
                                for path in places for folder in folders):
            return False
        self._cut = folders
        self._read()
        return True

    def elsewhere(self) -> str:
        """The one line for headers that lie in a folder which was not given; or nothing.

        What NVRTC says then follows from their lack, or is said again once they are there.
        """
        folders: dict[Path, list[str]] = {}
        for name, (path, number, _) in self._missing().items():
            if (folder := _nearby(path, name)) is not None:
                folders.setdefault(folder, []).append(f"{path.name}:{number} {name}")
        if not folders:
            return ""
        flags = " ".join(f"-I {shlex.quote(_called(folder))}" for folder in folders)
        where = "; ".join(f"{', '.join(names)} in {_called(folder)}"
                          for folder, names in folders.items())
        return f"{self.path.name} includes headers that lie elsewhere: pass {flags} ({where})"

    def _advice(self, logs: str) -> str:
        """What to do about errors that are left: lines behind NVRTC's message, or nothing."""
        words = list(dict.fromkeys(said for sign, said in _UNSUPPORTED.items() if sign in logs))
        missing = self._missing()
        if said := [f"{name} ({path.name}:{number}"
                    + (f"; pip install {_WHEELS[name]})" if name in _WHEELS else ")")
                    for name, (path, number, dropped) in missing.items() if dropped]:
            words.append(f"not found, and left out: {', '.join(said)}. If the device's code "
                        "needs one of them, pass its folder with -I")
        for name, (path, number, dropped) in missing.items():
            if not dropped:
                near = self._nearest(name, 0.6, path.parent, *self._given)
                words.append(f"{path.name}:{number}: {name} is nowhere"
                             + (f": did you mean {near}?" if near else ".")
                             + " A header in another folder takes -I FOLDER")
        return "".join(f"\n{line}" for line in words)

    def _missing(self) -> dict[str, tuple[Path, int, bool]]:
        """The headers that are nowhere: by name, the file, the line, and whether it is dropped."""
        found: dict[str, tuple[Path, int, bool]] = {}
        for source in self._sources.values():
            for number, row in enumerate(source.text.split("\n"), 1):
                lacking = self._lacking(row) if self._neighbour(source.path, row) is None else None
                if lacking:
                    found.setdefault(lacking[0], (source.path, number, lacking[1]))
        return found

    def _of_std(self) -> set[str]:
        """The names of ``std`` in what may be the device's code."""
        return {name for _, text in self._staying()
                for name in re.findall(r"\bstd\s*::\s*(\w+)", text)}

    def _staying(self) -> Iterator[tuple[Item, str]]:
        """What may be the device's code, classes apart from their parts left out."""
        for source in self._sources.values():
            for item in source.items:
                if not item.gone and not item.container:
                    yield item, source.text[item.start : item.end]

    def _load(self, path: Path) -> None:
        if path in self._sources:
            return
        given = self._text if path == self.path else None
        text = text_of(path, errors="replace") if given is None else given
        text = text.removeprefix("\ufeff")
        source = self._sources[path] = Source(path, text)
        for token in _tokens(text):
            if token.kind != "directive":
                continue
            source.once |= bool(_ONCE.match(token.text))
            if define := _DEFINE.match(token.text):
                if any(word in define[2] for word in (*_ON_DEVICE, *self._macros)):
                    self._macros.add(define[1])
            if (neighbour := self._neighbour(path, token.text)) is not None:
                self._load(neighbour)

    def _neighbour(self, path: Path, row: str) -> Path | None:
        """The file that a line includes from beside its own, or from folders that are cut."""
        include = _INCLUDE.match(row)
        if include is None:
            return None
        folders = [path.parent, *self._cut] if include["own"] else self._cut
        name = include["own"] or include["other"]
        found = (folder / name for folder in folders)
        return next((file.resolve() for file in found if _is_there(file)), None)

    def _rendered(self, path: Path, above: tuple[Path, ...], seen: set[Path]) -> Iterator[str]:
        """A file's text, with the files that it includes in the place of the directives."""
        source = self._sources[path]
        if path in above or source.once and path in seen:
            return
        thrust = self._names(r"\bthrust\s*::")  # whose headers are the host's, a few types apart
        seen.add(path)
        yield f'#line 1 "{_named(path)}"\n'
        for number, row in enumerate(source.remaining().split("\n"), 1):
            neighbour = self._neighbour(path, row)
            if neighbour is not None:
                yield from self._rendered(neighbour, (*above, path), seen)
                yield f'#line {number + 1} "{_named(path)}"\n'
            elif _ONCE.match(row) or not thrust and _THRUST.match(row):
                yield "\n"
            elif (lacking := self._lacking(row)) and lacking[1]:
                yield "\n"
            else:
                yield row + "\n"

    def _lacking(self, row: str) -> tuple[str, bool] | None:
        """The header that a line includes, if it is nowhere, and whether it is dropped: the host's.

        A name in quotes is a file of whoever wrote the line, and one like a header of CUDA's is
        mistyped: to leave them out would change the program. NVRTC says that they aren't there, if
        they are asked for.
        """
        include = _INCLUDE.match(row)
        if include is None:
            return None
        name = include["own"] or include["other"]
        if name in headers() or any(
                _is_there(folder / name) for folder in (*self._given, *self._toolkit)):
            return None
        host = host_headers.of_the_host(name)
        return name, host or not (include["own"] or self._nearest(name, 0.9))

    def _nearest(self, name: str, ratio: float, *folders: Path) -> str:
        """The header in these folders and the toolkit's that is called most like it, or nothing."""
        inside = PurePath(name).parent
        known = [(inside / file.name).as_posix() for folder in (*folders, *self._toolkit)
                 if (folder / inside).is_dir() for file in (folder / inside).iterdir()
                 if file.is_file()]
        return next(iter(difflib.get_close_matches(name, known, 1, ratio)), "")

    def _names(self, pattern: str) -> bool:
        """Whether code of the device's has such a name, as far as its text tells."""
        return any(re.search(pattern, text) for item, text in self._staying()
                   if item.device or "constexpr" in item.head)

    def _source(self, file: str) -> Source | None:
        """The source that NVRTC calls so."""
        return next((source for path, source in self._sources.items()
                     if Path(_named(path)) == Path(file)), None)

    def _line_at(self, file: str, line: int) -> str | None:
        source = self._source(file)
        lines = source.text.splitlines() if source else []
        return lines[line - 1].strip() if 0 < line <= len(lines) else None

    def _guilty(self, log: str) -> list[Item]:
        """The items with errors that may go."""
        places = list(_ERROR.finditer(log))
        found = []
        for place, after in zip_longest(places, places[1:]):
            words = log[place.end() : after.start() if after else None]
            lines = [(place["file"], int(place["line"]))]
            lines += [(up["file"] or place["file"], int(up["line"]))
                      for up in _INSTANTIATED.finditer(words)]
            item = next(filter(None, (self._doubtful(*one) for one in lines)), None)
            if item is not None and item not in found:
                found.append(item)
        return found

    def _doubtful(self, file: str, line: int) -> Item | None:
        source = self._source(file)
        for item in source.items if source else ():
            if item.first <= line <= item.last and not item.device and not item.gone:
                return item
        return None


def _is_there(file: Path) -> bool:
    """Whether a file is there; a pipe or a device, which NVRTC would wait for, is refused."""
    if file.exists() and not (file.is_file() or file.is_dir()):
        bytes_of(file)
    return file.is_file()


def _named(path: Path) -> str:
    """A file's name as NVRTC and ``#line`` take it: UTF-8, without quotes and line ends."""
    return re.sub(r'["\x00-\x1f]', "'", os.fsencode(path).decode("utf-8", "replace"))


def _nearby(path: Path, name: str) -> Path | None:
    """The folder of a header that is a few folders from a file, such as ``../include``."""
    return next((folder / inside for folder in list(path.parents)[:3] for inside in _FOLDERS
                 if (folder / inside / name).is_file()), None)


def _called(folder: Path) -> str:
    """A folder as who types the command would name it: from where they are, if it is below."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def kernels_of(text: str) -> dict[str, Declared]:
    """Return each kernel in CUDA C++ text by its name."""
    return _kernels(_items(text, set()))


def _kernels(items: Iterable[Item]) -> dict[str, Declared]:
    found: dict[str, Declared] = {}
    for item in items:
        words = item.head.split(" ")
        explicit = words[0] == "template" and words[1:2] != ["<"]  # an instantiation
        if "__global__" in words and not explicit and (signature := _signature(item.head)):
            name, parameters = signature
            template = " ".join(words[: len(words) - len(_without_template(words))])
            found.setdefault(name, Declared(parameters, _inside(template), item.scope))
    return found


def _inside(template: str) -> str:
    """The parameters of a ``template <…>`` as a person writes them."""
    plain = template.removeprefix("template").strip()
    return re.sub(r"(?<!\s)\s+([,:>])", r"\1", plain[1:-1].strip()) if plain.startswith("<") else ""


@lru_cache(maxsize=8)  # a file is read twice, and a header with each file that includes it
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(_tokens_of(text))


def _tokens_of(text: str) -> Iterator[Token]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup != "comment":
            yield Token(match.lastgroup or "", match.group(), line, match.start(), match.end())


def _items(text: str, macros: set[str]) -> Iterator[Item]:
    """Cut a file; bodies of namespaces and classes are cut further."""
    tokens = _tokens(text)
    at = 0
    closers: list[str] = []  # what a `}` ends: a namespace or a class, which has a `;` behind it
    names: list[str] = []  # what the namespaces among them are called
    begins: list[tuple[int, int]] = []  # where their heads begin and end
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "directive":
            at += 1
        elif token.text == "}":
            at += 1
            names[-1:] = []
            if closers and closers.pop() == "class":
                while at < len(tokens) and tokens[at].text != ";":
                    at += 1
                at += 1
                yield _class(tokens, *begins.pop(), min(at, len(tokens)), macros)
            elif begins:
                begins.pop()
        elif token.text in ("public", "private", "protected") and closers[-1:] == ["class"]:
            at += 2
        else:
            end, opened = _end_of_item(tokens, at)
            head = [t for t in tokens[at : end] if t.kind != "directive"]
            if opened:
                closers.append(opened)
                begins.append((at, end))
                names.append(_namespace([t.text for t in head]))
            elif head and head[0].text != ";":
                body = next((i for i, t in enumerate(head) if t.text == "{"), len(head))
                item = _item(head, body, macros, "class" in closers[-1:])
                item.scope = "::".join(filter(None, names))
                yield item
            at = end


def _end_of_item(tokens: Sequence[Token], start: int) -> tuple[int, str]:
    """Where an item ends, and whether it is a container, which ends at its opening brace."""
    depth, at, function = 0, start, False
    before: list[int] = []  # the depth at each #if: its other branches begin at the same
    words: list[str] = []
    while at < len(tokens):
        token = tokens[at]
        text = token.text if token.kind != "text" or token.text == '"C"' else ""
        if token.kind == "directive":
            directive = re.match(r"\s*#\s*(\w*)", text)
            word = directive[1] if directive else ""
            if word.startswith("if"):
                before.append(depth)
            elif word in ("else", "elif"):
                depth = before[-1] if before else 0
            elif word == "endif" and before:
                before.pop()
        elif text in ("(", "["):
            depth += 1
        elif text in (")", "]"):
            depth -= 1
        elif text == "{":
            if depth == 0:
                if "namespace" in words or words[:1] == ["extern"] and words[1:] == ['"C"']:
                    return at + 1, "namespace"
                plain = _without_template(words)
                if plain[:1] in (["struct"], ["class"], ["union"]) and (
                        "=" not in plain and plain[-1] != ")"):
                    return at + 1, "class"
                function = "(" in plain and "=" not in _before_parenthesis(plain)
            depth += 1
        elif text == "}":
            depth -= 1
            if depth < 0:
                return at, ""
            if depth == 0 and function:
                return at + 1, ""
        elif text == ";" and depth == 0:
            return at + 1, ""
        if token.kind != "directive":
            words.append(text)
        at += 1
    return at, ""


def _namespace(words: Sequence[str]) -> str:
    """What a namespace is called, from its head; empty if it has no name, or is none."""
    if "namespace" not in words:
        return ""
    name = "".join(words[list(words).index("namespace") + 1 :])
    found = re.match(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", name)
    return found[0] if found else ""


def _without_template(words: Sequence[str]) -> list[str]:
    """The words of a head behind its ``template <…>``."""
    words = list(words)
    while words[:1] == ["template"]:
        depth, at = 0, 1
        while at < len(words):
            depth += (words[at] == "<") - (words[at] == ">")
            at += 1
            if depth == 0:
                break
        words = words[at:]
    return words


def _before_parenthesis(words: Sequence[str]) -> list[str]:
    words = list(words)
    if "operator" in words:
        return words[: words.index("operator")]
    return words[: words.index("(")] if "(" in words else words


def _class(
    tokens: Sequence[Token], begin: int, head: int, end: int, macros: set[str]
) -> Item:
    """A class as a whole."""
    words = [t.text for t in tokens[begin:head] if t.kind != "directive"]
    device = any(t.text in _ON_DEVICE or t.text in macros for t in tokens[begin:end])
    return Item(tokens[begin].line, tokens[head - 1].line, " ".join(words), device,
                tokens[begin].start, tokens[end - 1].end, container=True)


def _item(tokens: Sequence[Token], body: int, macros: set[str], in_class: bool) -> Item:
    words = [t.text for t in tokens[:body]]
    plain = _without_template(words)
    device = any(w in _ON_DEVICE or w in macros for w in words)
    item = Item(
        tokens[0].line, tokens[-1].line + tokens[-1].text.count("\n"), " ".join(words), device,
        tokens[0].start, tokens[-1].end,
    )
    function = body < len(tokens) and "(" in plain and "=" not in _before_parenthesis(plain)
    perhaps = in_class or "constexpr" in words or any(
        re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", w) for w in _before_parenthesis(plain)[:-1]
    )
    item.gone = function and not device and not perhaps
    return item


def _blank(text: str) -> str:
    """As many lines, of which only the directives are left; what a body includes is its own."""
    rows, at, depth = [], 0, 0
    for token in _tokens_of(text):
        if token.kind == "sign":
            depth += (token.text == "{") - (token.text == "}")
        if token.kind == "directive" and not (depth and _INCLUDE.match(token.text)):
            rows.append(re.sub(r"[^\n]", "", text[at : token.start]))
            rows.append(text[token.start : token.end])
            at = token.end
    return "".join([*rows, re.sub(r"[^\n]", "", text[at:])])


def _signature(head: str) -> tuple[str, str] | None:
    """A kernel's name and its parameters, from its head."""
    words = _without_template(head.split(" "))
    depth = 0
    for at, word in enumerate(words):
        if word == "(" and depth == 0 and at and words[at - 1] not in _ATTRIBUTES:
            if re.fullmatch(r"[A-Za-z_]\w*", words[at - 1]):
                inside = " ".join(words[at + 1 :])
                return words[at - 1], inside.rpartition(")")[0].strip()
        depth += (word == "(") - (word == ")")
    return None
