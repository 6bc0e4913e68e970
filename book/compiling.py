"""The compiler beside the pages that `make serve` serves: CUDA in, PTX out, and no file is shown.

`Door` decides who may ask; `python -m book.compiling` compiles one source, a request on stdin, in a
process of its own that has little time and memory and writes no file. A source may include headers
of the toolkit and of `cuda/include`, by names that stand there; everything else that could read a
file is refused before a compiler sees it (`refusal`).
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


class Door:
    """Who may ask the compiler: a page of this server, opened on this machine, one at a time."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self._busy = threading.Lock()

    def open_to(self, headers: Mapping[str, str], client: str) -> bool:
        """Whether a request comes from this machine, to this machine, and from no other page."""
        host = urlsplit(f"//{headers.get('Host', '')}")
        origin = headers.get("Origin")
        return (client in ("127.0.0.1", "::1", "::ffff:127.0.0.1") and host.hostname in LOOPBACK
                and (origin is None or urlsplit(origin).netloc == host.netloc)
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
        if not any(_below(folder, name) for folder in folders):
            return (f"The header {name[:80]} is none of the toolkit's or of cuda/include: put its "
                    "text into the source.")
    return ""


def _below(folder: Path, name: str) -> bool:
    """Whether a name is a file of a folder, and lies there."""
    if name.startswith("/") or ".." in name.split("/"):
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
    from lib.compiler.link import without_folders
    from lib.compiler.nvrtc import CompileError, compile_nvrtc
    from lib.compiler.toolkit import toolkit_includes
    from lib.panel import form
    from lib.ptx.core.parser import parse

    source, kernel, arch = (asked.get(key) for key in ("source", "kernel", "arch"))
    if not isinstance(source, str) or not isinstance(kernel, str) or not isinstance(arch, str):
        return {"error": "A request has a source, an architecture and a kernel, each a text."}
    if not _NAME.fullmatch(kernel) or not (number := _ARCH.fullmatch(arch)):
        return {"error": "A kernel's name is such as gemm<128, 8>, an architecture such as sm_80."}
    options = [*toolkit_includes(), f"-I{ROOT / 'cuda' / 'include'}"]
    folders = [Path(option[2:]) for option in options]
    if said := refusal(source, folders):
        return {"error": said}
    try:
        made = compile_nvrtc(
            source, [kernel] if "<" in kernel else [],
            [f"-arch=compute_{number[1]}", "-lineinfo", "--std=c++17", *options], "kernel.cu")
    except CompileError as error:
        return {"error": _plain(str(error), folders)}
    ptx = without_folders(made.ptx.decode())
    if len(ptx) > MAX_PTX:
        return {"error": f"The PTX is longer than {MAX_PTX:,} characters."}
    kernels = form.kernels(parse(ptx), source)
    if not kernels:
        return {"error": "There is no kernel: a template is compiled where it is named with its "
                         "arguments."}
    return {"ptx": ptx, "kernels": kernels, "log": _plain(made.log, folders)}


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
