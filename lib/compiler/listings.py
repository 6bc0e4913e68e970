"""The machine code of many kernels, listed by one run of nvdisasm.

nvdisasm takes half a second to start and little for a kernel. It reads one ELF file, and a cubin of
this book holds one kernel. So the code of several cubins is put into one file, with the line tables
that tie it to the PTX and to the CUDA source, and the listing is taken apart again.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lib.compiler.nvrtc import disassemble

# ELF, 64 bits: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html and what follows.
_HEADER_BYTES = 64
# name, type, flags, address, offset, size, link, info, alignment, bytes of an entry
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_RELOCATION = struct.Struct("<QQq")  # offset, symbol and type, addend
_SHORT_RELOCATION = struct.Struct("<QQ")  # the same with the addend, 0 here, at the offset
_SYMBOLS, _STRINGS, _RELOCATIONS = 2, 3, 4
_NO_BITS = 8
_FUNCTION, _SECTION_SYMBOL = 2, 3

_LINE_TABLES = (".debug_line", ".nv_debug_line_sass")
_LABEL = re.compile(r"\.L_x_(\d+)")
_TARGET = re.compile(r"`\(\.L_x_(\d+)\)")


@dataclass
class _Part:
    """A section of an ELF file."""

    name: str
    kind: int = 1
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry_bytes: int = 0
    content: bytes = b""


@dataclass
class _File:
    """An ELF file that is being put together; its first sections are always the same."""

    sections: list[_Part] = field(default_factory=lambda: [
        _Part("", 0, align=0), _Part(".shstrtab", _STRINGS), _Part(".strtab", _STRINGS),
        _Part(".symtab", _SYMBOLS, link=2, align=8, entry_bytes=_SYMBOL.size),
    ])

    def add(self, section: _Part) -> int:
        """Add a section; its index."""
        self.sections.append(section)
        return len(self.sections) - 1

    def content(self, header: bytes) -> bytes:
        """The file's bytes; machine and flags are those of another file's `header`."""
        names, places = bytearray(), []
        for section in self.sections:
            places.append(len(names))
            names += section.name.encode() + b"\0"
        self.sections[1].content = bytes(names)
        made, table = bytearray(header), bytearray()
        for section, name in zip(self.sections, places, strict=True):
            made += bytes(-len(made) % max(section.align, 1))
            table += _SECTION.pack(
                name, section.kind, section.flags, 0, len(made) if section.kind else 0,
                len(section.content), section.link, section.info, section.align,
                section.entry_bytes)
            made += section.content
        made += bytes(-len(made) % 8)
        struct.pack_into("<QQ", made, 0x20, 0, len(made))  # no segments; where the table begins
        struct.pack_into("<HHHH", made, 0x38, 0, _SECTION.size, len(self.sections), 1)
        return bytes(made + table)


def together(cubins: Sequence[bytes]) -> list[bytes]:
    """List the machine code of each cubin, as `disassemble` does for one.

    `cubins`: all for one architecture. Returns of each its kernel's part of the listing: what
    `lib.compiler.sass.parse` reads.
    """
    read = [_sections(cubin) for cubin in cubins]
    joined = [number for number, sections in enumerate(read) if _can_be_joined(sections)]
    found = [b"" if number in joined else disassemble(cubin)
             for number, cubin in enumerate(cubins)]
    if joined:
        file = _Joined()
        for number in joined:
            file.add(read[number])
        listing = disassemble(file.content(cubins[joined[0]][:_HEADER_BYTES])).decode()
        for place, number in enumerate(joined):
            name = _code(read[number])[1].name.removeprefix(".text.")
            found[number] = _alone(listing, _name(place), name).encode()
    return found


def _sections(elf: bytes) -> list[_Part]:
    """The sections of an ELF file."""
    (begin,) = struct.unpack_from("<Q", elf, 0x28)
    count, names_at = struct.unpack_from("<HH", elf, 0x3C)
    rows = [_SECTION.unpack_from(elf, begin + number * _SECTION.size) for number in range(count)]
    names = rows[names_at][4]

    def text(offset: int) -> str:
        return elf[names + offset:elf.index(b"\0", names + offset)].decode()

    return [
        _Part(text(name), kind, flags, link, info, align, entry_bytes,
              b"" if kind == _NO_BITS else elf[offset:offset + size])
        for name, kind, flags, _, offset, size, link, info, align, entry_bytes in rows
    ]


def _code(sections: Sequence[_Part]) -> tuple[int, _Part]:
    """The one section of code, and its index."""
    [found] = [(number, section) for number, section in enumerate(sections)
               if section.name.startswith(".text.")]
    return found


def _can_be_joined(sections: Sequence[_Part]) -> bool:
    """Whether a cubin has one kernel, whose code names nothing that a loader would put in."""
    codes = [section for section in sections if section.name.startswith(".text.")]
    return len(codes) == 1 and not any(
        section.content for section in sections if section.name.startswith((".rel.text",
                                                                            ".rela.text")))


def _name(place: int) -> str:
    """What the kernel at a place is called in the joined file: no two are called the same."""
    return f"kernel_{place}_"


@dataclass(frozen=True)
class _Mention:
    """Where a table of lines names a kernel's code."""

    offset: int  # in the joined table
    kernel: int
    kind: int
    addend: int
    by_section: bool  # by the symbol of its section, not by its own


class _Joined:
    """One ELF file of several kernels, and of the tables of the lines that they came from."""

    def __init__(self) -> None:
        self._file = _File()
        self._strings = bytearray(b"\0")
        self._local = [bytes(_SYMBOL.size)]
        self._global: list[bytes] = []
        self._codes: list[int] = []
        self._section_symbols: list[int] = []
        self._tables = {name: bytearray() for name in _LINE_TABLES}
        self._mentions: dict[str, list[_Mention]] = {name: [] for name in _LINE_TABLES}

    def add(self, sections: Sequence[_Part]) -> None:
        """Add a cubin's kernel."""
        number, code = _code(sections)
        symbols = [_SYMBOL.unpack(entry) for entry in _entries(sections, ".symtab", _SYMBOL)]
        place = len(self._codes)
        self._codes.append(self._file.add(_Part(
            f".text.{_name(place)}", flags=code.flags, link=3, info=code.info, align=code.align,
            content=code.content)))
        self._add_symbols(place, [symbol for symbol in symbols if symbol[3] == number],
                          b"".join(part.content for part in sections if part.name == ".strtab"))
        for table in _LINE_TABLES:
            self._add_lines(table, place, sections, symbols)

    def _add_symbols(self, place: int, symbols: Iterable[tuple[int, ...]], names: bytes) -> None:
        """Add the kernel, and what lies behind it and is called: a division, say, of ptxas's."""
        index = self._codes[place]
        self._section_symbols.append(len(self._local))
        self._local.append(_SYMBOL.pack(0, _SECTION_SYMBOL, 0, index, 0, 0))
        for name, info, other, _, value, size in symbols:
            if info & 15 != _FUNCTION:
                continue
            own = names[name:names.index(b"\0", name)] + b"@" if value else b""
            (self._local if value else self._global).append(_SYMBOL.pack(
                len(self._strings), _FUNCTION if value else info, other, index, value, size))
            self._strings += own + _name(place).encode() + b"\0"

    def _add_lines(self, table: str, place: int, sections: Sequence[_Part],
                   symbols: Sequence[tuple[int, ...]]) -> None:
        """Add a kernel's table of lines to the joined one."""
        content = self._tables[table]
        relocations = [
            *map(_RELOCATION.unpack, _entries(sections, f".rela{table}", _RELOCATION)),
            *((*_SHORT_RELOCATION.unpack(entry), 0)
              for entry in _entries(sections, f".rel{table}", _SHORT_RELOCATION)),
        ]
        for offset, what, addend in relocations:
            by_section = symbols[what >> 32][1] & 15 == _SECTION_SYMBOL
            self._mentions[table].append(
                _Mention(len(content) + offset, place, what & 0xFFFFFFFF, addend, by_section))
        content += b"".join(part.content for part in sections if part.name == table)

    def content(self, header: bytes) -> bytes:
        """The file's bytes; machine and flags are those of a cubin's `header`."""
        sections = self._file.sections
        sections[2].content = bytes(self._strings)
        sections[3].content = b"".join([*self._local, *self._global])
        sections[3].info = len(self._local)
        for place, index in enumerate(self._codes):
            # The low bits are the function's symbol, the high ones the registers.
            high = sections[index].info >> 24 << 24
            sections[index].info = high | len(self._local) + place
        for table, content in self._tables.items():
            index = self._file.add(_Part(table, content=bytes(content)))
            self._file.add(_Part(
                f".rela{table}", _RELOCATIONS, link=3, info=index, align=8,
                entry_bytes=_RELOCATION.size,
                content=b"".join(map(self._relocation, self._mentions[table]))))
        return self._file.content(header)

    def _relocation(self, mention: _Mention) -> bytes:
        symbol = (self._section_symbols[mention.kernel] if mention.by_section
                  else len(self._local) + mention.kernel)
        return _RELOCATION.pack(mention.offset, symbol << 32 | mention.kind, mention.addend)


def _entries(sections: Sequence[_Part], name: str, of: struct.Struct) -> list[bytes]:
    """The entries of the sections of a name."""
    content = b"".join(section.content for section in sections if section.name == name)
    return [content[at:at + of.size] for at in range(0, len(content), of.size)]


def _alone(listing: str, joined: str, name: str) -> str:
    """One kernel's part of a listing, under its own name and with labels counted from 0."""
    begin = listing.index(f"\t.section\t.text.{joined},")
    end = listing.find("\t.section\t", begin + 1)
    part = listing[begin:end if end >= 0 else len(listing)]
    part = part.replace(f"@{joined}", "").replace(joined, name)
    # Where a kernel stands alone, the labels that its code jumps to are the first; here others,
    # for where each kernel begins and ends, come before them and after them.
    first = min(map(int, _TARGET.findall(part)), default=0)
    return _LABEL.sub(
        lambda label: f".L_x_{int(label[1]) - first}" if int(label[1]) >= first else "", part)
