"""CUDA C++ → PTX, cubin, resource use and SASS, through CuPy's NVRTC. No GPU is needed.

NVRTC makes both the PTX that the emulator runs and the cubin that a GPU loads, from one source and
one set of options. The cubin takes as long again as the PTX: who wants only the PTX may say so.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from lib.compiler import arithmetic, merging, nvrtc, sass
from lib.compiler.cache import cached, is_cached
from lib.compiler.fingerprint import file_identity, include_folder
from lib.compiler.nvrtc import DISASSEMBLY, CompileError, assemble, compile_nvrtc, disassemble
from lib.compiler.sass import Instruction
from lib.compiler.toolkit import (
    find_tool,
    nvrtc_version,
    toolkit_identity,
    toolkit_includes,
)
from lib.ptx.files import bytes_of, text_of


@dataclass(frozen=True)
class Resources:
    """What one thread block asks of an SM, as ptxas reports it."""

    registers: int  # 32-bit registers a thread
    # Shared memory a block, B: the static, and the dynamic that the catalogue asks for.
    shared_bytes: int
    # spill_store_bytes, spill_load_bytes, stack_bytes: local memory traffic and stack frame a
    # thread, B.
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int


@dataclass(frozen=True)
class Recipe:
    """Something that is made once and kept."""

    parts: tuple[str | bytes, ...]  # all that it depends on
    make: Callable[[], bytes] = field(compare=False)

    def document(self) -> dict[str, str]:
        """See `_document`."""
        return json.loads(cached(self.parts, self.make))


@dataclass(frozen=True)
class Compiled:
    """One instantiation for one architecture; PTX and machine code are made when asked for."""

    arch: str  # such as ``"sm_75"``: what the machine code is for
    ptx_arch: str  # what the PTX is legal on: `arch`, or an older one
    dynamic_bytes: int  # shared memory that a launch asks for, B
    toolkit: str  # NVRTC's release, such as ``"12.9"``
    _ptx_alone: Recipe = field(repr=False)
    _both: Recipe | None = field(repr=False)  # None where an older architecture's PTX is assembled

    @cached_property
    def _translated(self) -> dict[str, str]:
        # What has the machine code has the PTX, too: nothing is compiled twice.
        if self._both and ("_assembled" in vars(self) or is_cached(self._both.parts)):
            return self._assembled
        return self._ptx_alone.document()

    @cached_property
    def _assembled(self) -> dict[str, str]:
        if self._both:
            return self._both.document()
        found = self._translated
        parts: list[str | bytes] = [
            "assembled", bytes_of(nvrtc.__file__), found["ptx"], self.arch,
            file_identity(find_tool("ptxas")),
        ]
        return json.loads(cached(
            parts, lambda: _document(b"", found["name"], *assemble(found["ptx"], self.arch))
        ))

    @property
    def name(self) -> str:
        """Mangled name of the entry function."""
        return self._translated["name"]

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return self._translated["ptx"]

    @cached_property
    def cubin(self) -> bytes:
        """The machine code."""
        return base64.b64decode(self._assembled["cubin"])

    @cached_property
    def resources(self) -> Resources:
        """What a block asks of an SM, from ptxas's report."""
        return _resources(self._assembled["log"], self.name, self.dynamic_bytes)

    def translated(self) -> Compiled:
        """Itself, with its PTX made if it wasn't yet."""
        self._translated  # noqa: B018 - made when it is asked for
        return self

    def assembled(self) -> Compiled:
        """Itself, with its machine code made if it wasn't yet."""
        self._assembled  # noqa: B018 - made when it is asked for
        return self

    @cached_property
    def sass(self) -> list[Instruction]:
        """The machine code, each instruction tied to its PTX line and its CUDA line."""
        sys.audit("gemm.kernels disassembled", 1)
        parts: list[str | bytes] = [
            "listing", *DISASSEMBLY, file_identity(find_tool("nvdisasm")), self.cubin]
        listing = cached(parts, lambda: disassemble(self.cubin))
        return sass.parse(listing.decode(), self.name)

    @cached_property
    def inner_loop(self) -> list[Instruction]:
        """The loop that does the arithmetic (see `lib.compiler.sass.inner_loop`)."""
        return sass.inner_loop(self.sass)

    @cached_property
    def merge(self) -> dict[int, merging.Merged | None]:
        """Which accesses of the PTX ptxas merged (see `lib.compiler.merging.merged_accesses`)."""
        return merging.merged_accesses(self.ptx, self.sass, self.name)

    @cached_property
    def ffma(self) -> dict[int, int]:
        """FFMA of lines that are no fma (see `lib.compiler.arithmetic.ffma_of_others`)."""
        return arithmetic.ffma_of_others(self.ptx, self.sass, self.name)


def of_ptx(text: str, name: str, arch: str, dynamic_bytes: int = 0) -> Compiled:
    """A kernel of a PTX text, assembled for an architecture by ptxas when its code is asked for.

    `name`: mangled name of the entry function. `dynamic_bytes`: shared memory that a launch asks
    for, B.
    """
    document = Recipe(("PTX", text, name), lambda: _document(text.encode(), name))
    return Compiled(arch, arch, dynamic_bytes, ".".join(map(str, nvrtc_version())), document, None)


def compile_file(
    source: Path,
    expression: str,
    arch: str,
    options: tuple[str, ...] = (),
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
    ptx_only: bool = False,
) -> Compiled:
    """Compile one name expression of a CUDA file (see `compile_source`)."""
    return compile_source(text_of(source), expression, arch, options, str(source), ptx_arch,
                          dynamic_bytes, include_folder(source), ptx_only)


def compile_source(
    text: str,
    expression: str,
    arch: str,
    options: tuple[str, ...] = (),
    filename: str = "source.cu",
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
    include: Path | None = None,
    ptx_only: bool = False,
) -> Compiled:
    """Compile one name expression of CUDA C++ text to PTX and to a cubin, or take it from `cached`.

    What was compiled last is kept in the process, too.

    With a `ptx_arch` other than `arch` the cubin is made from the PTX, by ptxas. A launch asks for
    `dynamic_bytes` of shared memory; ptxas can't know of them. Headers are looked for in `include`,
    and the result is made again when one of those changes. With `ptx_only` the cubin waits until
    something asks for it.

    Raises CompileError with NVRTC's or ptxas's message; NVRTC's with the source line it names.
    """
    compiled = _to_compile(
        text, expression, arch, options, filename, ptx_arch, dynamic_bytes, include,
        toolkit_identity(), *map(file_identity, _headers(include)),
    )
    return compiled.translated() if ptx_only else compiled.assembled()


@lru_cache(maxsize=128)
def _to_compile(
    text: str, expression: str, arch: str, options: tuple[str, ...], filename: str,
    ptx_arch: str | None, dynamic_bytes: int, include: Path | None, *identity: str,
) -> Compiled:
    """An instantiation of which nothing is made yet."""
    sys.audit("gemm.kernels compiled", 1)
    own_headers = [f"-I{include}"] if include else []
    common = ["--std=c++17", "-lineinfo", *own_headers, *toolkit_includes(), *options]
    headers = [part for path in _headers(include) for part in (str(path), bytes_of(path))]
    parts = (
        "compiled", bytes_of(__file__), bytes_of(nvrtc.__file__), text,
        expression, filename, *common, *headers, identity[0],
    )
    source_arch = ptx_arch or arch
    chosen = [f"-arch={arch}", "--ptxas-options=-v", *common]
    if nvrtc_version() >= (12, 9):
        # A cubin out of NVRTC's cache comes without ptxas's report.
        chosen.append("-no-cache")

    def both() -> bytes:
        made = compile_nvrtc(text, [expression], chosen, filename)
        return _document(made.ptx, made.names[0], made.cubin, made.log)

    def ptx_alone() -> bytes:
        virtual = f"-arch={source_arch.replace('sm_', 'compute_')}"
        made = compile_nvrtc(text, [expression], [virtual, *common], filename)
        return _document(made.ptx, made.names[0])

    return Compiled(
        arch, source_arch, dynamic_bytes, ".".join(map(str, nvrtc_version())),
        Recipe((*parts, source_arch), ptx_alone),
        Recipe((*parts, *chosen), both) if source_arch == arch else None,
    )


def _document(ptx: bytes, name: str, cubin: bytes | None = None, log: str = "") -> bytes:
    """What is kept of a compilation."""
    found = {"ptx": ptx.decode(), "name": name}
    if cubin is not None:
        found |= {"cubin": base64.b64encode(cubin).decode(), "log": log}
    return json.dumps(found).encode()


def _headers(folder: Path | None) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder else []


def _resources(log: str, name: str, dynamic_bytes: int) -> Resources:
    """Read ptxas's report for one entry function."""
    report = re.search(rf"Compiling entry function '{re.escape(name)}'(.*?)(?:Compiling|\Z)",
                       log, re.DOTALL)
    if not report:
        raise CompileError(f"ptxas reported nothing for {name}: {log.strip()!r}")

    def number(pattern: str) -> int:
        found = re.search(pattern, report[1])
        return int(found[1]) if found else 0

    return Resources(
        registers=number(r"Used (\d+) registers"),
        shared_bytes=number(r"(\d+) bytes smem") + dynamic_bytes,
        spill_store_bytes=number(r"(\d+) bytes spill stores"),
        spill_load_bytes=number(r"(\d+) bytes spill loads"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
    )
