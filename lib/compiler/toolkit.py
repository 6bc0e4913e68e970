"""The CUDA toolkit that is here: its programs, its headers, its release."""

from __future__ import annotations

import importlib.util
import os
import shutil
from functools import lru_cache
from pathlib import Path

from lib.compiler.fingerprint import file_identity

INSTALL = "pip install -r requirements.txt"


class ToolMissing(Exception):
    """A program of the CUDA toolkit is not installed. The message says how to install it."""


def find_tool(name: str) -> str:
    """Return the path of a program of the CUDA toolkit, from a wheel or from an installed toolkit.

    Raises ToolMissing.
    """
    from cuda import pathfinder

    try:
        path = pathfinder.find_nvidia_binary_utility(name)
    except Exception as error:
        if type(error).__name__ != "UnsupportedBinaryError":  # which has no public name
            raise
        path = _in_a_wheel(name)  # the release that Colab has, 1.6, knows no ptxas
    path = path or shutil.which(name)
    if path is None:
        raise ToolMissing(f"{name} is missing: run {INSTALL}")
    return path


def _in_a_wheel(name: str) -> str | None:
    """Path of a program in one of NVIDIA's wheels; CUDA 13's come before CUDA 12's."""
    nvidia = importlib.util.find_spec("nvidia")
    folders = (nvidia and nvidia.submodule_search_locations) or ()
    found = sorted(path for folder in folders for path in Path(folder).glob(f"*/bin/{name}"))
    return str(found[0]) if found else None


def nvrtc_version() -> tuple[int, int]:
    """NVRTC's release, such as (12, 9)."""
    load_nvrtc()
    from cupy.cuda import nvrtc

    return nvrtc.getVersion()


@lru_cache(maxsize=1)
def nvrtc_architectures() -> tuple[int, ...]:
    """The architectures that NVRTC compiles for, such as 75 and 90."""
    load_nvrtc()
    from cupy.cuda import nvrtc

    return tuple(nvrtc.getSupportedArchs())


@lru_cache(maxsize=1)
def toolkit_includes() -> tuple[str, ...]:
    """Options that let NVRTC find CUDA's own headers (``<mma.h>``, ``<cuda_fp16.h>``, CCCL's).

    They come in several wheels, or in one folder of an installed toolkit.
    """
    from cuda.pathfinder import find_nvidia_header_directory

    found = [find_nvidia_header_directory(part) for part in ("cudart", "nvcc", "cccl", "curand")]
    if nvcc := shutil.which("nvcc"):  # a toolkit on the PATH has what no wheel brought
        found.append(str(Path(nvcc).resolve().parent.parent / "include"))
    return tuple(f"-I{folder}" for folder in dict.fromkeys(found) if folder)


@lru_cache(maxsize=1)
def toolkit_identity() -> str:
    """A text that changes with the installed NVRTC and with the headers that it can include."""
    headers = [Path(folder, name) for option in toolkit_includes()
               for folder, _, names in os.walk(option.removeprefix("-I")) for name in names]
    return "\n".join([str(nvrtc_version()), file_identity(load_nvrtc()),
                      *map(file_identity, sorted(headers))])


@lru_cache(maxsize=1)
def load_nvrtc() -> str:
    """Load NVRTC, from a wheel or from an installed toolkit, and return its path.

    CuPy 13 asks the loader for ``libnvrtc.so`` by that name alone, and the loader does not look
    into wheels; but what is loaded already it finds.

    Raises ToolMissing.
    """
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return load_nvidia_dynamic_lib("nvrtc").abs_path
    except DynamicLibNotFoundError as error:
        raise ToolMissing(f"NVRTC is missing: run {INSTALL}") from error
