"""One run of a compiler: CUDA C++ to PTX and cubin, PTX to cubin, cubin to a listing.

CuPy's own `RawModule` can't be used to compile without a GPU: it asks for a driver even when the
architecture is given, and it never chooses sm_90a. Its binding of NVRTC does not.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lib.compiler.toolkit import find_tool, load_nvrtc
from lib.ptx.files import bytes_of

MAX_SHOWN = 200  # characters of a line of the source that an error shows
# The analysis of data flow names the targets of a branch stack, which no architecture of ours has,
# and takes a fifth of the time.
DISASSEMBLY = ("--print-code", "--print-line-info-ptx", "--print-line-info", "--no-dataflow")


class CompileError(Exception):
    """NVRTC refused the source. The message is NVRTC's, with the source line it speaks of."""


class Output(NamedTuple):
    """What one run of NVRTC gives."""

    ptx: bytes
    cubin: bytes  # assembled from that PTX; empty if the architecture was a virtual one
    names: list[str]  # the mangled name of each expression
    log: str


def compile_nvrtc(
    text: str, expressions: Sequence[str], options: Sequence[str], filename: str = "source.cu",
    headers: Mapping[str, str] | None = None,
    line_at: Callable[[str, int], str | None] | None = None,
) -> Output:
    """Run NVRTC by itself.

    `text`: CUDA C++. `expressions`: C++ name expressions, such as ``"naive<32, true>"``; none for
    ``extern "C"`` kernels. `options`: with one ``-arch``: a virtual one (``compute_75``) gives PTX,
    a real one a cubin too. `filename`: what messages call the source. `headers`: text of headers
    that are found by these names, before any folder is searched. `line_at`: gives the text of a
    line of a file, where ``#line`` says that `text` is made of several; None if it does not know
    the file. Raises CompileError with NVRTC's message and the source line it names.
    """
    load_nvrtc()
    # Imported here because loading CuPy takes longer than most commands that never compile.
    from cupy.cuda import nvrtc

    # NVRTC writes names into its PTX between double quotes, and escapes none that they have.
    with _unquoted(options) as options:
        return _compile(
            nvrtc, text, expressions, options, _utf8(filename).replace('"', "'"),
            dict(headers or {}),
            line_at or (lambda file, line: _line_of(text, filename, file, line)),
        )


@contextmanager
def _unquoted(options: Sequence[str]) -> Iterator[list[str]]:
    """The options in UTF-8, with a link in place of each folder whose path can't be written so."""
    with ExitStack() as stack:
        plain = []
        for option in options:
            text = _utf8(option)
            if option.startswith("-I") and ('"' in text or "\ufffd" in text):
                link = Path(stack.enter_context(tempfile.TemporaryDirectory()), "include")
                link.symlink_to(Path(option.removeprefix("-I")).resolve())
                text = f"-I{link}"
            plain.append(text)
        yield plain


def _utf8(name: str) -> str:
    """A name as NVRTC takes it, whatever the locale has made of its bytes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _compile(
    nvrtc: Any, text: str, expressions: Sequence[str], options: Sequence[str], filename: str,
    headers: Mapping[str, str], line_at: Callable[[str, int], str | None],
) -> Output:
    """Run NVRTC on names that it can write."""
    program = nvrtc.createProgram(
        text, filename, [header.encode() for header in headers.values()],
        [name.encode() for name in headers],
    )
    try:
        for expression in expressions:
            nvrtc.addNameExpression(program, expression)
        try:
            nvrtc.compileProgram(program, list(options))
        except nvrtc.NVRTCError as error:
            log = _errors(nvrtc.getProgramLog(program)) or str(error)
            raise CompileError(_with_source_line(log, line_at)) from None
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


def assemble(ptx: str, arch: str) -> tuple[bytes, str]:
    """Assemble PTX text to a cubin with ptxas, its lines kept.

    Returns `log`, what ptxas says of the resources of each entry. Raises CompileError with ptxas's
    message.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        run = subprocess.run(
            [find_tool("ptxas"), "-v", "-lineinfo", f"-arch={arch}", str(source), "-o",
             str(target)],
            capture_output=True, text=True, check=False,
        )
        if run.returncode:
            raise CompileError(_errors(run.stderr))
        return bytes_of(target), run.stderr


def disassemble(cubin: bytes) -> bytes:
    """List a cubin's machine code with nvdisasm: PTX lines and CUDA lines between instructions."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run(
            [find_tool("nvdisasm"), *DISASSEMBLY, file.name], capture_output=True, check=True
        ).stdout


def _errors(log: str) -> str:
    """What a compiler's log says without ptxas's report of resources."""
    rows = (line for line in log.strip("\0\n").splitlines()
            if not re.match(r"ptxas (?:info|\.) ", line))
    return "\n".join(rows)


def _with_source_line(log: str, line_at: Callable[[str, int], str | None]) -> str:
    """Put the source line that an NVRTC error names behind its message."""
    place = re.search(r"^([^\n(]+)\((\d+)\): (?:catastrophic )?error", log, re.M)
    if place is None:
        return log.strip()
    line = line_at(place[1], int(place[2]))
    if line is None:
        return log.strip()
    shown = line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"
    return f"{log.strip()}\n{Path(place[1]).name}:{place[2]}: {shown}"


def _line_of(text: str, filename: str, file: str, number: int) -> str | None:
    """A line of the one text that is compiled."""
    if file != _utf8(filename).replace('"', "'"):
        return None
    lines = text.splitlines()
    return lines[number - 1].strip() if number <= len(lines) else ""
