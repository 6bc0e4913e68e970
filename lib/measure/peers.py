"""Public GEMM kernels of others, built where their sources are: what they are, and how they load.

None of their lines is in this repository. A wrapper of ours (``lib/measure/wrappers``) includes
what lies in a folder that the user names, is compiled with nvcc, and offers one interface
(``peer.h``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from lib.compiler.arch import TARGETS
from lib.paths import ROOT
from lib.problem import Problem, scales
from lib.ptx.files import bytes_of, text_of

# What ptxas says when wgmma can't overlap, because of a call between them: of an assertion, say.
SERIALIZED = "C7510"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-w", "--expt-relaxed-constexpr",
         "--expt-extended-lambda", "-shared", "-Xcompiler", "-fPIC")
WRAPPERS = Path(__file__).parent / "wrappers"
BUILT = ROOT / "_build" / "peers"
CUTLASS = "CUTLASS"


@dataclass(frozen=True)
class Peer:
    """A public kernel, and the problem that it solves."""

    name: str  # what the command line and the records call it
    # repository, revision, licence: where it is from. Of CUTLASS the revision is the release of the
    # package.
    repository: str
    revision: str
    licence: str
    wrapper: str  # our file that includes it
    problem: Problem  # its types and layout; its sizes don't count
    # The oldest architecture that has its instructions; its code is assembled from that one's.
    arch: str
    folders: tuple[str, ...] = (".",)  # below the clone, what is included from
    flags: tuple[str, ...] = ()  # for nvcc
    cutlass: bool = False  # whether CUTLASS's headers are included, too
    # Whether it adds up in FP16: then it is held against ``cublasHgemm``, not ranked with ours.
    half_sums: bool = False

    @property
    def source(self) -> str:
        """The name of the folder that holds it: `CUTLASS`, or the repository's."""
        return CUTLASS if self.name.startswith("cutlass") else self.repository.split("/")[0]


FP32 = Problem(1, 1, 1)
FP16 = Problem(1, 1, 1, dtype="float16")
FP16_OUT = Problem(1, 1, 1, dtype="float16", out="float16")
BF16_COLUMN = Problem(1, 1, 1, dtype="bfloat16", out="bfloat16", b_layout="column")
FP8_BLOCKS = replace(BF16_COLUMN, dtype=scales.DTYPE, scaling="blocks")

_HEADERS = ("include", "tools/util/include")
_CUTLASS = ("NVIDIA/cutlass", "4.2", "BSD-3-Clause")
_DEEP_GEMM = ("deepseek-ai/DeepGEMM", "54e22612409371d6364144b69086735beb54e98b", "MIT",
              "deep_gemm.cu")

PEERS = {
    peer.name: peer for peer in (
        Peer("siboehm", "siboehm/SGEMM_CUDA", "60cba6f9b20a198116c76f18de8047f44df8c8b8", "MIT",
             "siboehm.cu", FP32, "sm_75", ("src",)),
        Peer("cutlass_sm75", *_CUTLASS, "cutlass_mma.cu", FP16, "sm_75", _HEADERS, ("-DTURING",)),
        Peer("cutlass_sm80", *_CUTLASS, "cutlass_mma.cu", FP16, "sm_80", _HEADERS),
        Peer("cutlass_sm90", *_CUTLASS, "cutlass_wgmma.cu", FP16, "sm_90a", _HEADERS),
        Peer("cutlass_sm90_bf16", *_CUTLASS, "cutlass_wgmma.cu", BF16_COLUMN, "sm_90a", _HEADERS,
             ("-DBF16_COLUMN",)),
        Peer("fast.cu", "pranjalssh/fast.cu", "38eb642e0c081231d6f695978be63604bd7c689b", "MIT",
             "fast_cu.cu", BF16_COLUMN, "sm_90a", (".",), ("--use_fast_math",)),
        Peer("DeepGEMM", *_DEEP_GEMM, FP8_BLOCKS, "sm_90a", ("deep_gemm/include",), cutlass=True),
        Peer("DeepGEMM_bf16", *_DEEP_GEMM, BF16_COLUMN, "sm_90a", ("deep_gemm/include",),
             ("-DBF16_COLUMN",), cutlass=True),
        Peer("alexarmbr", "alexarmbr/matmul-playground",
             "e831e96680dedaad99d9786885278764f59cbde5", "none stated", "alexarmbr.cu", FP16_OUT,
             "sm_75", ("src",), half_sums=True),
    )
}


class PeerMissing(Exception):
    """A peer can't be built. The message says what is expected, and where."""


def find_source(peer: Peer, named: Mapping[str, Path]) -> tuple[list[Path], str]:
    """The folders that a peer is included from, and its revision.

    `named`: folders that the user named, by `Peer.source`. Raises PeerMissing if there is no
    folder, or a clone of another revision.
    """
    if peer.source == CUTLASS:
        folder, found = _cutlass(named.get(CUTLASS))
        return [folder / name for name in peer.folders], found
    given = named.get(peer.source)
    if given is None:
        raise PeerMissing(
            f"{peer.name}: clone {peer.repository} at {peer.revision[:12]} and name its folder: "
            f"--folder {peer.source}=FOLDER"
        )
    found = _revision(given)
    if found != peer.revision:
        what = f"at {found[:12]}" if found else "no clone"
        raise PeerMissing(
            f"{peer.name}: {given} is {what}, and {peer.repository} is expected at "
            f"{peer.revision[:12]}: git -C {given} checkout {peer.revision[:12]}"
        )
    headers = [_cutlass(named.get(CUTLASS))[0] / "include"] if peer.cutlass else []
    return [*(given / name for name in peer.folders), *headers], found


def _cutlass(folder: Path | None) -> tuple[Path, str]:
    """CUTLASS's folder and release: of the package nvidia-cutlass, if none is named."""
    if folder is None:
        package = importlib.util.find_spec("cutlass_library")
        folder = Path(package.origin).parent / "source" if package and package.origin else None
    if folder is None:
        raise PeerMissing("CUTLASS: pip install --no-deps -r requirements-peers.txt, or name a "
                          f"clone of NVIDIA/cutlass: --folder {CUTLASS}=FOLDER")
    file = folder / "include" / "cutlass" / "version.h"
    if not file.is_file():
        raise PeerMissing(f"CUTLASS: {folder} has no include/cutlass/version.h")
    numbers = dict(re.findall(r"#define CUTLASS_(MAJOR|MINOR|PATCH) (\d+)", text_of(file)))
    return folder, ".".join(numbers.get(part, "0") for part in ("MAJOR", "MINOR", "PATCH"))


def _revision(folder: Path) -> str:
    """The commit that is checked out in a folder; empty if it is no clone."""
    git = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def runs_on(peer: Peer, arch: str) -> bool:
    """Whether a GPU of an architecture has a peer's instructions."""
    return TARGETS.index(peer.arch) <= TARGETS.index(arch)


def build(peer: Peer, folders: Sequence[Path], revision: str, capability: int) -> Path:
    """Compile a peer's wrapper for a device, such as one of compute capability 90.

    What was built of the same revision and wrapper with the same flags is taken again, also from
    another machine: CUTLASS takes minutes, which no GPU need wait for.

    Raises PeerMissing if nvcc is missing or fails.
    """
    wrapper = bytes_of(WRAPPERS / peer.wrapper)
    made_of = repr((FLAGS, peer.flags, peer.arch, capability, revision)).encode() + wrapper
    file = BUILT / f"{peer.name}-{hashlib.sha256(made_of).hexdigest()[:16]}.so"
    if not file.exists():
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            raise PeerMissing(f"{peer.name}: nvcc is not on the PATH: install the CUDA toolkit")
        command = command_of(peer, folders, capability)
        BUILT.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(".part")
        done = subprocess.run([nvcc, *command, "-o", str(made)], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            errors = [line for line in said if "error" in line] or said[-1:] or ["no reason given"]
            raise PeerMissing(f"{peer.name}: nvcc failed: {errors[0]}")
        if SERIALIZED in done.stdout + done.stderr:
            raise PeerMissing(f"{peer.name}: this nvcc puts its wgmma one behind the other "
                              f"({SERIALIZED}), which would make a slow rival of it")
        made.replace(file)
    return file


def command_of(peer: Peer, folders: Sequence[Path], capability: int) -> list[str]:
    """What nvcc is given: machine code for this device, of the instructions of the peer's own."""
    virtual = peer.arch.removeprefix("sm_")
    real = virtual if virtual.endswith("a") else str(capability)
    return [
        *FLAGS, "-Xcompiler", f"-idirafter,{WRAPPERS / 'unused'}",
        "-gencode", f"arch=compute_{virtual},code=sm_{real}",
        *(part for folder in folders for part in ("-I", str(folder))),
        *peer.flags, str(WRAPPERS / peer.wrapper),
    ]


class Built:
    """A peer that is compiled: its configurations, each of which can be launched.

    `file`: what `build` made, or a library with the same interface.
    """

    def __init__(self, file: Path) -> None:
        if driver := ctypes.util.find_library("cuda"):
            # A wrapper may call the driver, and is not linked with it.
            ctypes.CDLL(driver, mode=ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(file))
        library.peer_name.restype = ctypes.c_char_p
        library.peer_prepare.restype = ctypes.c_void_p
        library.peer_prepare.argtypes = [ctypes.c_int] * 4 + [ctypes.c_void_p] * 5
        library.peer_run.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self._library = library

    @property
    def names(self) -> list[str]:
        """What sets the configurations apart."""
        return [self._library.peer_name(place).decode()
                for place in range(self._library.peer_count())]

    def takes(self, configuration: int, problem: Problem) -> bool:
        """Whether a configuration computes this shape."""
        return bool(self._library.peer_takes(configuration, problem.M, problem.N, problem.K))

    def prepare(
        self, configuration: int, problem: Problem, copies: Sequence[tuple[Any, ...]]
    ) -> list[int] | None:
        """What a launch on each of the copies needs, A, B, C and scales where the problem has any.

        None where it can't be made.
        """
        made = [
            self._library.peer_prepare(configuration, problem.M, problem.N, problem.K, *islice(
                chain((matrix.data.ptr for matrix in copy), repeat(None)), 5))
            for copy in copies
        ]
        return made if all(made) else None

    def run(self, configuration: int, prepared: int) -> None:
        """Enqueue a launch on the default stream. Raises RuntimeError if CUDA refuses it."""
        if status := self._library.peer_run(configuration, prepared):
            raise RuntimeError(f"CUDA refuses the launch: error {status}")
