"""The compiler beside the pages that `make serve` serves: CUDA in, PTX out, and no file is shown.

`Door` decides who may ask; `python -m book.compiling` compiles one source, a request on stdin, in a
process of its own that has little time and memory and writes no file. A source may include headers
of the toolkit and of `OWN`, by names that stand there; everything else that could read a file is
refused before a compiler sees it (`refusal`). What of a source is the host's is left out.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from book.children import end_with_parent

ROOT = Path(__file__).resolve().parent.parent
OWN = (ROOT / "cuda" / "include", ROOT / "cuda" / "zoo")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MAX_SOURCE = 200_000  # characters
MAX_REQUEST = 1_000_000  # bytes of a request's body
MAX_PTX = 4_000_000  # characters
MAX_LOG = 4_000
SECONDS = 30
MEMORY = 4 << 30  # bytes that the compiler may map
_NAME = re.compile(r"[\w:<>, *&-]{0,300}")
_ARCH = re.compile(r"sm_(\d{2,3}[af]?)")
_WORDS = re.compile(r"\b(?:include|include_next|embed|import|__has_include|__has_include_next|"
                    r"__has_embed|incbin)\b")
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*(?:<([\w./+-]+)>|\"([\w./+-]+)\")[ \t]*(?://.*)?")
_PLAIN = ("true", "false", "float", "double", "half", "int", "unsigned", "char")
_LAUNCHED = re.compile(r"\b((\w+)\s*<[\w:, *&]+>)\s*<<<")


class Door:
    """Who may ask the compiler: a page of this server, opened on this machine, one at a time."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self._busy = threading.Lock()

    def open_to(self, headers: Mapping[str, str], client: str) -> bool:
        """Whether a request comes from this machine, to this machine, and from no other page."""
        host = headers.get("Host", "")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:  # such as "[::1"
            return False
        return (client in ("127.0.0.1", "::1", "::ffff:127.0.0.1") and name in LOOPBACK
                and headers.get("Origin", f"http://{host}") == f"http://{host}"
                and headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none"))

    def about(self) -> dict[str, Any]:
        """What a page must know to ask."""
        return {"token": self.token, "archs": ["sm_75", "sm_80", "sm_90a", "sm_100a"]}

    def compile(self, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer a request with a status of HTTP, and PTX or what is wrong."""
        if not secrets.compare_digest(headers.get("X-Token", "").encode(), self.token.encode()):
            return 403, {"error": "This page is not of this server: reload it."}
        if headers.get("Content-Type", "").partition(";")[0] != "application/json":
            return 415, {"error": "A request is JSON."}
        if not self._busy.acquire(blocking=False):
            return 429, {"error": "The compiler is at work on another source: try again."}
        try:
            return 200, compiled(body)
        finally:
            self._busy.release()


def compiled(body: bytes) -> dict[str, Any]:
    """Compile in a process of its own, which is ended when its time is up."""
    with subprocess.Popen(
        [sys.executable, "-m", "book.compiling"], cwd=ROOT, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:
        try:
            out, _ = process.communicate(body, SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"error": f"The compiler took longer than {SECONDS} seconds and was stopped."}
    try:
        return json.loads(out)
    except ValueError:
        return {"error": "The compiler took more than its time or memory and was stopped."}


def refusal(source: str, folders: list[Path]) -> str:
    """Why a source isn't compiled: it could read a file that it may not. Empty if it can't.

    The preprocessor joins lines and replaces trigraphs before it reads directives, and so does
    this. A word that reads files may then stand in an ``#include`` of a header that is there, on a
    line of its own, or in a comment that ends with its line; anywhere else the source is refused,
    even where it would be harmless.
    """
    if len(source) > MAX_SOURCE:
        return f"The source is longer than {MAX_SOURCE:,} characters."
    if re.search(r"\\[uUN]|\0|\?\?", source) or "\r" in source.replace("\r\n", ""):
        return "The source has an escape, a trigraph or a control character that isn't taken here."
    text = re.sub(r"\\[ \t\f\v]*\r?\n", "", source)
    for line in re.split(r"\r?\n", text):
        if not _WORDS.search(line):
            continue
        if re.fullmatch(r"\s*//[^#%]*", line) and "*/" not in line:
            continue
        written = _INCLUDE.fullmatch(line)
        if written is None:
            return f"Not taken here: {line.strip()[:80]}"
        name = written[1] or written[2]
        if not any(_below(folder, name) for folder in folders) and not (
                _of_the_host(name) and line in source.split("\n")):
            return (f"The header {name[:80]} is none of the toolkit's or of cuda/include: put its "
                    "text into the source.")
    return ""


def _of_the_host(name: str) -> bool:
    """Whether the compiler never looks for a header: it gets a stand-in, or the line is left out.

    Lines are left out as they are written, so none may be joined of two.
    """
    from lib.compiler import host_headers

    return ".." not in name.split("/") and (
        name in host_headers.headers() or host_headers.of_the_host(name))


def _below(folder: Path, name: str) -> bool:
    """Whether a name is a header of a folder, and lies there."""
    if name.startswith("/") or ".." in name.split("/") or (
            folder in OWN and not name.endswith(".cuh")):
        return False
    file = (folder / name).resolve()
    return file.is_file() and file.is_relative_to(folder.resolve())


def _limit() -> None:
    """Bound this process: its time, its memory, and no file written."""
    import resource

    for what, bound in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY),
                       (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (bound, bound))


def _compile(asked: Any) -> dict[str, Any]:
    from lib.compiler.cu_file import CudaFile
    from lib.compiler.link import without_folders
    from lib.compiler.nvrtc import CompileError
    from lib.compiler.toolkit import toolkit_includes
    from lib.panel import form
    from lib.ptx.core.parser import parse

    source, kernel, arch = (asked.get(key) for key in ("source", "kernel", "arch"))
    if not isinstance(source, str) or not isinstance(kernel, str) or not isinstance(arch, str):
        return {"error": "A request has a source, an architecture and a kernel, each a text."}
    if not _NAME.fullmatch(kernel) or not (number := _ARCH.fullmatch(arch)):
        return {"error": "A kernel's name is such as gemm<128, 8>, an architecture such as sm_80."}
    own = [f"-I{folder}" for folder in OWN]
    folders = [Path(option[2:]) for option in (*toolkit_includes(), *own)]
    source = source.replace("\r\n", "\n")
    if said := refusal(source, folders):
        return {"error": said}
    os.chdir(OWN[0])  # where a compiler looks for what is in no folder
    file = CudaFile("kernel.cu", own, source)
    names = [kernel] if "<" in kernel else list(dict.fromkeys(
        name for name, plain in _LAUNCHED.findall(source) if plain in file.declared))
    try:
        made, names = _made(file, names, f"compute_{number[1]}", bool(kernel))
    except CompileError as error:
        return {"error": _plain(str(error), folders)}
    ptx = without_folders(made.ptx.decode())
    if len(ptx) > MAX_PTX:
        return {"error": f"The PTX is longer than {MAX_PTX:,} characters."}
    kernels = form.kernels(parse(ptx), source)
    if not kernels:
        written = ", ".join(f"{name}<{one.template}>" if one.template else name
                            for name, one in file.declared.items())
        return {"error": f"The source has {written}: name it with arguments, under Template."
                if written else "There is no kernel: no function is __global__."}
    return {"ptx": ptx, "kernels": kernels, "template": names[0] if names else "",
            "log": _plain(made.log, folders)}


def _made(file: Any, names: list[str], arch: str, asked: bool) -> tuple[Any, list[str]]:
    """Compile; what only the file's own launches name may be of a host's template, and goes."""
    from lib.compiler.nvrtc import CompileError

    tried = [names] if asked else [names, list(filter(_plain_arguments, names)), []]
    for at, some in enumerate(tried):
        try:
            return file.compile([file.qualified(name) for name in some], arch), some
        except CompileError:
            if not any(tried[at:]):
                raise
    raise AssertionError


def _plain_arguments(name: str) -> bool:
    """Whether a template's arguments need no name of the source's."""
    words = name.partition("<")[2].rstrip("> ").split(",")
    return all(word.strip().isdecimal() or word.strip() in _PLAIN for word in words)


def _plain(text: str, folders: list[Path]) -> str:
    """A compiler's words without this machine's folders."""
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    return text.strip("\0\n ")[:MAX_LOG]


def main() -> int:
    """Compile the source of the request on stdin."""
    _limit()
    try:
        asked = json.loads(sys.stdin.buffer.read(MAX_REQUEST))
        answer = _compile(asked if isinstance(asked, dict) else {})
    except ValueError:
        answer = {"error": "The request is no JSON, or too long."}
    except Exception as error:  # memory that is used up, a toolkit that is not installed
        said = str(error) if type(error).__name__ == "ToolMissing" else type(error).__name__
        answer = {"error": f"The compiler failed: {said}."}
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
