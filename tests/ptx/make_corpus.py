"""Make tests/ptx/corpus: the PTX that other releases of NVRTC write for this book's kernels.

Run: python -m tests.ptx.make_corpus

Wheels of each release are downloaded by pip into a folder of their own and thrown away afterwards.
"""

import ctypes
import json
import lzma
import multiprocessing
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from lib.compiler.arch import BLACKWELL
from lib.compiler.toolkit import toolkit_includes
from lib.dispatch.plan import plan
from lib.kernels.catalogue import CATALOGUE
from lib.paths import CUDA

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
MAX_BYTES = 1_000_000  # of the whole corpus
# One release of NVRTC a line, with the wheels of its headers; those of 12.x lack <crt/mma.h>, for
# which the installed toolkit's stands in.
RELEASES = {
    "12.1": ("nvidia-cuda-nvrtc-cu12==12.1.*", "nvidia-cuda-runtime-cu12==12.1.*"),
    "12.4": ("nvidia-cuda-nvrtc-cu12==12.4.*", "nvidia-cuda-runtime-cu12==12.4.*"),
    "12.6": ("nvidia-cuda-nvrtc-cu12==12.6.*", "nvidia-cuda-runtime-cu12==12.6.*"),
    "13.0": ("nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*"),
    "13.5": ("nvidia-cuda-nvrtc==13.5.*", "nvidia-cuda-runtime==13.5.*", "nvidia-cuda-crt==13.5.*"),
}
PROBLEM = (150, 140, 44)  # M, N, K of the book's kernels: ragged in every tile


@dataclass(frozen=True)
class Source:
    """What is compiled.

    Attributes
    ----------
    name : str
        Of the file in the corpus.
    path : Path
        CUDA file.
    arch : str
        ``"compute_75"`` and so on.
    expression : str
        Name expression of one instantiation; empty where kernels are ``extern "C"``.
    launch : dict
        Grid, block and shared bytes of a kernel of the catalogue on `PROBLEM`, its types.
    """

    name: str
    path: Path
    arch: str
    expression: str = ""
    launch: dict | None = None


def sources() -> list[Source]:
    """List what is compiled: one variant a version of the book, and the emulator's own kernels."""
    found = []
    for kernel in CATALOGUE.values():
        if kernel.min_arch == BLACKWELL:  # which most of these releases do not know
            continue
        variant = kernel.variants[0]
        problem = variant.problem(*PROBLEM, 0.5, -2.0)
        found = plan(kernel, variant, problem, exact=True)
        variant, launch = found.variant, found.launch
        found.append(
            Source(
                kernel.stem, kernel.source, kernel.min_arch.replace("sm_", "compute_"),
                kernel.expression(variant),
                {"grid": launch.grid, "block": launch.block, "shared_mem": launch.shared_bytes,
                 "dtype": problem.dtype, "out": problem.out, "b_layout": problem.b_layout},
            )
        )
    for name, arch in (
        ("kernels", "75"), ("tensor", "75"), ("tensor", "80"), ("hopper", "90a"), ("blocks", "90a"),
    ):
        found.append(Source(f"{name}_{arch}", HERE / f"{name}.cu", f"compute_{arch}"))
    return found


def main() -> None:
    """Compile everything with every release."""
    CORPUS.mkdir(exist_ok=True)
    for old in CORPUS.iterdir():
        old.unlink()
    manifest, spawn = [], multiprocessing.get_context("spawn")
    for release, wheels in RELEASES.items():
        with tempfile.TemporaryDirectory() as folder:
            unpack(wheels, Path(folder))
            # One process a release, for one process can hold one NVRTC only.
            with spawn.Pool(1) as pool:
                manifest += pool.apply(compile_all, (release, Path(folder)))
        print(f"{release}: {len(manifest)} texts so far")
    text = json.dumps({"problem": PROBLEM, "texts": manifest}, indent=1) + "\n"
    (CORPUS / "corpus.json").write_text(text)
    total = sum(path.stat().st_size for path in CORPUS.iterdir())
    print(f"{total} bytes in {len(manifest)} texts")
    if total > MAX_BYTES:
        sys.exit(f"the corpus must stay below {MAX_BYTES} bytes: take fewer releases or kernels")


def unpack(wheels: tuple[str, ...], folder: Path) -> None:
    """Download wheels and unpack them into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--disable-pip-version-check", "--dest", folder, *wheels], check=True
    )
    for wheel in folder.glob("*.whl"):
        with ZipFile(wheel) as archive:
            archive.extractall(folder)


def compile_all(release: str, folder: Path) -> list[dict]:
    """Compile all sources by the NVRTC in a folder; returns the manifest's entries."""
    for builtins in folder.rglob("libnvrtc-builtins.so*"):
        if "alt" not in builtins.name:
            ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    (path,) = (p for p in folder.rglob("libnvrtc.so.1[23]") if "alt" not in p.name)
    nvrtc = ctypes.CDLL(str(path))
    includes = [f"-I{p}" for p in folder.glob("nvidia/*/include")] + list(toolkit_includes())
    entries = []
    for source in sources():
        text, name = compile_one(nvrtc, source, includes)
        file = f"{release}_{source.name}.ptx.xz"
        (CORPUS / file).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        entries.append(
            {"file": file, "release": release, "source": source.path.name, "arch": source.arch,
             "kernel": name, "launch": source.launch}
        )
    return entries


def compile_one(nvrtc: ctypes.CDLL, source: Source, includes: list[str]) -> tuple[str, str]:
    """Return the PTX of a source and the mangled name of its expression."""

    def call(function: str, *args) -> None:
        code = getattr(nvrtc, function)(*args)
        if code and function != "nvrtcCompileProgram":
            raise RuntimeError(f"{function}: {code}")
        if code:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"{source.path.name}: {log.value.decode()}")

    text = source.path.read_text(encoding="utf-8")
    if not source.expression:
        text = text.replace("__global__", 'extern "C" __global__')
    program = ctypes.c_void_p()
    call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), source.path.name.encode(), 0,
         None, None)
    expression = source.expression.encode()
    if expression:
        call("nvrtcAddNameExpression", program, expression)
    options = [f"-arch={source.arch}", "--std=c++17", f"-I{CUDA / 'include'}", *includes]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    call("nvrtcCompileProgram", program, len(options), given)
    name = ctypes.c_char_p()
    if expression:
        call("nvrtcGetLoweredName", program, expression, ctypes.byref(name))
    size = ctypes.c_size_t()
    call("nvrtcGetPTXSize", program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call("nvrtcGetPTX", program, ptx)
    lowered = (name.value or b"").decode()
    call("nvrtcDestroyProgram", ctypes.byref(program))
    return ptx.value.decode(), lowered


if __name__ == "__main__":
    main()
