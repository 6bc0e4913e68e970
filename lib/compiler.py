"""CUDA C++ → PTX, cubin, resource use and SASS, through CuPy's NVRTC. No GPU is needed.

NVRTC makes both the PTX that the emulator runs and the cubin that a GPU loads, from one source and
one set of options. CuPy's own `RawModule` can't be used for this: it asks for a driver even when
the architecture is given, and it never chooses sm_90a.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from lib import sass, ties
from lib.fingerprint import INCLUDE, file_identity
from lib.gpus import ARCHITECTURES, check_arch
from lib.kept import kept
from lib.versions import Kernel, Variant

DISASSEMBLY = ("--print-code", "--print-line-info-ptx", "--print-line-info")


class CompileError(Exception):
    """NVRTC refused the source. The message is NVRTC's, with the source line it speaks of."""


class ToolMissing(Exception):
    """A program of the CUDA toolkit is not installed. The message says how to install it."""


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
    cubin : bytes
    resources : Resources
    toolkit : str
        NVRTC's release, such as ``"12.9"``.
    """

    name: str
    arch: str
    ptx_arch: str
    ptx: str
    cubin: bytes
    resources: Resources
    toolkit: str

    @cached_property
    def sass(self) -> list[sass.Instruction]:
        """The machine code, each instruction tied to its PTX line and its CUDA line."""
        sys.audit("gemm.kernels disassembled", 1)
        listing = kept(
            ["listing", *DISASSEMBLY, file_identity(find_tool("nvdisasm")), self.cubin],
            lambda: disassemble(self.cubin),
        )
        return sass.parse(listing.decode(), self.name)

    @cached_property
    def inner_loop(self) -> list[sass.Instruction]:
        """The loop that does the arithmetic (see `lib.sass.inner_loop`)."""
        return sass.inner_loop(self.sass)

    @cached_property
    def merge(self) -> dict[int, tuple[int, int] | None]:
        """Which accesses of the PTX ptxas merged (see `lib.ties.merged_accesses`)."""
        return ties.merged_accesses(self.ptx, self.sass, self.name)


def compile_kernel(
    kernel: Kernel,
    variant: Variant | None = None,
    arch: str | None = None,
    timeline: bool = False,
    ptx_arch: str | None = None,
) -> Compiled:
    """Compile one instantiation of a catalogue entry.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant, optional
        The kernel's first one if not given.
    arch : str, optional
        ``"sm_75"``, ``"sm_80"`` or ``"sm_90a"``; the oldest that the kernel runs on if not given.
    timeline : bool
        Compile the marks in.
    ptx_arch : str, optional
        Compile PTX for this older architecture and assemble that for `arch`: what the older one's
        code becomes on a later machine.

    Raises
    ------
    ValueError
        If the architecture is unknown, or older than the kernel's oldest.
    CompileError
        With NVRTC's message and our source line.
    """
    variant = variant or kernel.variants[0]
    target, known = check_arch(arch or kernel.min_arch), tuple(ARCHITECTURES)
    source_arch = check_arch(ptx_arch or target)
    if known.index(source_arch) < known.index(kernel.min_arch):
        raise ValueError(f"{kernel.stem} runs on {kernel.min_arch} and later, not on {source_arch}")
    options = ("-DTIMELINE",) if timeline else ()
    return compile_file(
        kernel.source, kernel.expression(variant), target, options,
        ptx_arch and check_arch(ptx_arch), variant.shared_bytes,
    )


def compile_file(
    source: Path,
    expression: str,
    arch: str,
    options: tuple[str, ...] = (),
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
) -> Compiled:
    """Compile one name expression of a CUDA file; kept until the file or a header changes."""
    return _compile_file(
        source, expression, arch, options, ptx_arch, dynamic_bytes,
        tuple(map(file_identity, (source, *_headers()))),
    )


@lru_cache(maxsize=128)
def _compile_file(
    source: Path, expression: str, arch: str, options: tuple[str, ...], ptx_arch: str | None,
    dynamic_bytes: int, identity: tuple[str, ...],
) -> Compiled:
    text = source.read_text()
    return compile_source(
        text, expression, arch, options, str(source), ptx_arch, dynamic_bytes
    )


def compile_source(
    text: str,
    expression: str,
    arch: str,
    options: Sequence[str] = (),
    filename: str = "source.cu",
    ptx_arch: str | None = None,
    dynamic_bytes: int = 0,
) -> Compiled:
    """Compile one name expression of CUDA C++ text to PTX and to a cubin, or take it from `kept`.

    With a `ptx_arch` other than `arch` the cubin is made from the PTX, by ptxas. A launch asks for
    `dynamic_bytes` of shared memory; ptxas can't know of them.

    Raises
    ------
    CompileError
        With NVRTC's or ptxas's message; NVRTC's with the source line it names.
    """
    sys.audit("gemm.kernels compiled", 1)
    common = ["--std=c++17", "-lineinfo", f"-I{INCLUDE}", *toolkit_includes(), *options]
    own = ptx_arch in (None, arch)
    if own:
        chosen = [f"-arch={arch}", "--ptxas-options=-v", *common]
        if nvrtc_version() >= (12, 9):
            # A cubin out of NVRTC's cache comes without ptxas's report.
            chosen.append("-no-cache")
    else:
        chosen = [f"-arch={ptx_arch.replace('sm_', 'compute_')}", *common]
    headers = [part for path in _headers() for part in (str(path), path.read_bytes())]
    parts = [
        "compiled", Path(__file__).read_bytes(), text, expression, filename, arch, *chosen,
        *headers, toolkit_identity(),
    ]

    def make() -> bytes:
        made = compile_nvrtc(text, [expression], chosen, filename)
        cubin, log = (made.cubin, made.log) if own else assemble(made.ptx.decode(), arch)
        document = {"name": made.names[0], "ptx": made.ptx.decode(), "log": log,
                    "cubin": base64.b64encode(cubin).decode()}
        return json.dumps(document).encode()

    made = json.loads(kept(parts, make))
    return Compiled(
        made["name"], arch, ptx_arch or arch, made["ptx"], base64.b64decode(made["cubin"]),
        _resources(made["log"], made["name"], dynamic_bytes),
        ".".join(map(str, nvrtc_version())),
    )


def disassemble(cubin: bytes) -> bytes:
    """List a cubin's machine code with nvdisasm: PTX lines and CUDA lines between instructions."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run(
            [find_tool("nvdisasm"), *DISASSEMBLY, file.name], capture_output=True, check=True
        ).stdout


def _headers() -> list[Path]:
    return sorted(path for path in INCLUDE.rglob("*") if path.is_file())


@lru_cache(maxsize=1)
def toolkit_identity() -> str:
    """A text that changes with the installed NVRTC and with the headers that it can include."""
    library = load_nvrtc()
    files = [Path(folder, name) for option in toolkit_includes()
             for folder, _, names in os.walk(option.removeprefix("-I")) for name in names]
    return "\n".join([str(nvrtc_version()), *map(file_identity, (library, *sorted(files)))])


def find_tool(name: str) -> str:
    """Return the path of a program of the CUDA toolkit, from a wheel or from an installed toolkit.

    Raises
    ------
    ToolMissing
    """
    from cuda.pathfinder import find_nvidia_binary_utility

    path = find_nvidia_binary_utility(name) or shutil.which(name)
    if path is None:
        raise ToolMissing(f"{name} is missing: run pip install -r requirements.txt")
    return path


def assemble(ptx: str, arch: str) -> tuple[bytes, str]:
    """Assemble PTX text to a cubin with ptxas, its lines kept.

    Returns
    -------
    cubin : bytes
    log : str
        What ptxas says of the resources of each entry.

    Raises
    ------
    CompileError
        With ptxas's message.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        run = subprocess.run(
            [find_tool("ptxas"), "-v", "-lineinfo", f"-arch={arch}", str(source), "-o",
             str(target)],
            capture_output=True, text=True, check=False,
        )
        if run.returncode:
            raise CompileError(_errors(run.stderr))
        return target.read_bytes(), run.stderr


def nvrtc_version() -> tuple[int, int]:
    """NVRTC's release, such as (12, 9)."""
    load_nvrtc()
    from cupy.cuda import nvrtc

    return nvrtc.getVersion()


@lru_cache(maxsize=1)
def load_nvrtc() -> str:
    """Load NVRTC, from a wheel or from an installed toolkit, and return its path.

    CuPy 13 asks the loader for ``libnvrtc.so`` by that name alone, and the loader does not look
    into wheels; but what is loaded already it finds.

    Raises
    ------
    ToolMissing
    """
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return load_nvidia_dynamic_lib("nvrtc").abs_path
    except DynamicLibNotFoundError as error:
        raise ToolMissing("NVRTC is missing: run pip install -r requirements.txt") from error


@lru_cache(maxsize=1)
def toolkit_includes() -> tuple[str, ...]:
    """Options that let NVRTC find CUDA's own headers (``<mma.h>``, ``<cuda_fp16.h>``, CCCL's).

    They come in several wheels, or in one folder of an installed toolkit.
    """
    from cuda.pathfinder import find_nvidia_header_directory

    found = [find_nvidia_header_directory(part) for part in ("cudart", "nvcc", "cccl")]
    if nvcc := shutil.which("nvcc"):  # a toolkit on the PATH has what no wheel brought
        found.append(str(Path(nvcc).resolve().parent.parent / "include"))
    return tuple(f"-I{folder}" for folder in dict.fromkeys(found) if folder)


class Output(NamedTuple):
    """What one run of NVRTC gives.

    Attributes
    ----------
    ptx : bytes
    cubin : bytes
        Assembled from that PTX; empty if the architecture was a virtual one.
    names : list of str
        The mangled name of each expression.
    log : str
    """

    ptx: bytes
    cubin: bytes
    names: list[str]
    log: str


def compile_nvrtc(
    text: str, expressions: Sequence[str], options: Sequence[str], filename: str = "source.cu"
) -> Output:
    """Run NVRTC by itself.

    Parameters
    ----------
    text : str
        CUDA C++.
    expressions : sequence of str
        C++ name expressions, such as ``"naive<32, true>"``; none for ``extern "C"`` kernels.
    options : sequence of str
        With one ``-arch``: a virtual one (``compute_75``) gives PTX, a real one a cubin too.
    filename : str
        What messages call the source.

    Raises
    ------
    CompileError
        With NVRTC's message and the source line it names.
    """
    load_nvrtc()
    # Imported here because loading CuPy takes longer than most commands that never compile.
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(text, filename, [], [])
    try:
        for expression in expressions:
            nvrtc.addNameExpression(program, expression)
        try:
            nvrtc.compileProgram(program, list(options))
        except nvrtc.NVRTCError as error:
            log = _errors(nvrtc.getProgramLog(program)) or str(error)
            raise CompileError(_with_source_line(log, text, filename)) from None
        lowered = [nvrtc.getLoweredName(program, expression) for expression in expressions]
        names = [name.decode() if isinstance(name, bytes) else name for name in lowered]
        ptx = nvrtc.getPTX(program)
        ptx = (ptx.encode() if isinstance(ptx, str) else ptx).rstrip(b"\0")
        cubin = b""
        if not any(option.startswith("-arch=compute_") for option in options):
            # CuPy cuts the last byte as if the cubin were a string; an ELF file needs it back.
            cubin = nvrtc.getCUBIN(program) + b"\0"
        return Output(ptx, cubin, names, nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def _errors(log: str) -> str:
    """What a compiler's log says without ptxas's report of resources."""
    told = (line for line in log.strip("\0\n").splitlines()
            if not re.match(r"ptxas (?:info|\.) ", line))
    return "\n".join(told)


def _with_source_line(log: str, text: str, filename: str) -> str:
    """Put the source line that an NVRTC error names behind its message."""
    place = re.search(rf"{re.escape(filename)}\((\d+)\): (?:catastrophic )?error", log)
    if not place:
        return log.strip()
    number = int(place[1])
    lines = text.splitlines()
    line = lines[number - 1].strip() if number <= len(lines) else ""
    return f"{log.strip()}\n{Path(filename).name}:{number}: {line}"


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
