"""CUDA C++ → PTX, cubin, resource use and SASS, through CuPy's NVRTC. No GPU is needed.

NVRTC makes both the PTX that the emulator runs and the cubin that a GPU loads, from one source and
one set of options. The cubin takes as long again as the PTX: who wants only the PTX may say so.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from lib.compiler import listings, merging, nvrtc, sass
from lib.compiler.cache import is_kept, kept
from lib.compiler.fingerprint import file_identity, include_folder
from lib.compiler.nvrtc import DISASSEMBLY, CompileError, assemble, compile_nvrtc, disassemble
from lib.compiler.toolkit import (
    find_tool,
    nvrtc_version,
    toolkit_identity,
    toolkit_includes,
)


@dataclass(frozen=True)
class Resources:
    """What one thread block asks of an SM, as ptxas reports it.

    Attributes
    ----------
    registers : int
        32-bit registers a thread.
    shared_bytes : int
        Shared memory a block, B: the static, and the dynamic that the catalogue asks for.
    spill_store_bytes, spill_load_bytes, stack_bytes : int
        Local memory traffic and stack frame a thread, B.
    """

    registers: int
    shared_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int


@dataclass(frozen=True)
class Compiled:
    """One instantiation for one architecture.

    Attributes
    ----------
    name : str
        Mangled name of the entry function.
    arch : str
        Such as ``"sm_75"``: what the machine code is for.
    ptx_arch : str
        What the PTX is legal on: `arch`, or an older one.
    ptx : str
    dynamic_bytes : int
        Shared memory that a launch asks for, B.
    toolkit : str
        NVRTC's release, such as ``"12.9"``.
    """

    name: str
    arch: str
    ptx_arch: str
    ptx: str
    dynamic_bytes: int
    toolkit: str
    _make: Callable[[], tuple[bytes, str]] = field(repr=False, compare=False)

    @cached_property
    def _machine(self) -> tuple[bytes, str]:
        return self._make()

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        return self._machine[0]

    @cached_property
    def resources(self) -> Resources:
        """What a block asks of an SM, from ptxas's report."""
        return _resources(self._machine[1], self.name, self.dynamic_bytes)

    def assembled(self) -> Compiled:
        """Itself, with its machine code made if it wasn't yet."""
        if not self.cubin:
            raise CompileError(f"no machine code came of {self.name} for {self.arch}")
        return self

    @cached_property
    def sass(self) -> list[sass.Instruction]:
        """The machine code, each instruction tied to its PTX line and its CUDA line."""
        sys.audit("gemm.kernels disassembled", 1)
        listing = kept(_listed(self.cubin), lambda: disassemble(self.cubin))
        return sass.parse(listing.decode(), self.name)

    @cached_property
    def inner_loop(self) -> list[sass.Instruction]:
        """The loop that does the arithmetic (see `lib.compiler.sass.inner_loop`)."""
        return sass.inner_loop(self.sass)

    @cached_property
    def merge(self) -> dict[int, tuple[int, int] | None]:
        """Which accesses of the PTX ptxas merged (see `lib.compiler.merging.merged_accesses`)."""
        return merging.merged_accesses(self.ptx, self.sass, self.name)


def disassemble_together(found: Sequence[Compiled]) -> None:
    """Keep the listings of kernels for one architecture: one run of nvdisasm makes all of them."""
    cubins = [cubin for cubin in dict.fromkeys(one.cubin for one in found)
              if not is_kept(_listed(cubin))]
    for cubin, listing in zip(cubins, listings.together(cubins), strict=True):
        kept(_listed(cubin), lambda made=listing: made)


def _listed(cubin: bytes) -> list[str | bytes]:
    """What the listing of a cubin depends on."""
    return ["listing", *DISASSEMBLY, file_identity(find_tool("nvdisasm")), cubin]


def compile_file(
    source: Path,
    expression: str,
    arch: str,
    options: tuple[str, ...] = (),
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
    ptx_only: bool = False,
) -> Compiled:
    """Compile one name expression of a CUDA file; kept until the file or a header changes."""
    return _compile_file(
        source, expression, arch, options, ptx_arch, dynamic_bytes, ptx_only,
        tuple(map(file_identity, (source, *_headers(include_folder(source))))),
    )


@lru_cache(maxsize=128)
def _compile_file(
    source: Path, expression: str, arch: str, options: tuple[str, ...], ptx_arch: str | None,
    dynamic_bytes: int, ptx_only: bool, identity: tuple[str, ...],
) -> Compiled:
    text = source.read_text()
    return compile_source(
        text, expression, arch, options, str(source), ptx_arch, dynamic_bytes,
        include_folder(source), ptx_only,
    )


def compile_source(
    text: str,
    expression: str,
    arch: str,
    options: Sequence[str] = (),
    filename: str = "source.cu",
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
    include: Path | None = None,
    ptx_only: bool = False,
) -> Compiled:
    """Compile one name expression of CUDA C++ text to PTX and to a cubin, or take it from `kept`.

    With a `ptx_arch` other than `arch` the cubin is made from the PTX, by ptxas. A launch asks for
    `dynamic_bytes` of shared memory; ptxas can't know of them. Headers are looked for in `include`,
    and the result is made again when one of those changes. With `ptx_only` the cubin waits until
    something asks for it.

    Raises
    ------
    CompileError
        With NVRTC's or ptxas's message; NVRTC's with the source line it names.
    """
    sys.audit("gemm.kernels compiled", 1)
    own_headers = [f"-I{include}"] if include else []
    common = ["--std=c++17", "-lineinfo", *own_headers, *toolkit_includes(), *options]
    headers = [part for path in _headers(include) for part in (str(path), path.read_bytes())]
    parts = [
        "compiled", Path(__file__).read_bytes(), Path(nvrtc.__file__).read_bytes(), text,
        expression, filename, *common, *headers, toolkit_identity(),
    ]
    source_arch = ptx_arch or arch
    own = source_arch == arch
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

    with_machine_code = [*parts, *chosen]
    if own and (not ptx_only or is_kept(with_machine_code)):
        first = json.loads(kept(with_machine_code, both))
    else:
        first = json.loads(kept([*parts, source_arch], ptx_alone))

    def machine() -> tuple[bytes, str]:
        if own:
            made = first if "cubin" in first else json.loads(kept(with_machine_code, both))
        else:
            made = json.loads(kept(
                ["assembled", Path(nvrtc.__file__).read_bytes(), first["ptx"], arch,
                 file_identity(find_tool("ptxas"))],
                lambda: _document(b"", first["name"], *assemble(first["ptx"], arch)),
            ))
        return base64.b64decode(made["cubin"]), made["log"]

    compiled = Compiled(
        first["name"], arch, source_arch, first["ptx"], dynamic_bytes,
        ".".join(map(str, nvrtc_version())), machine,
    )
    return compiled if ptx_only else compiled.assembled()


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
