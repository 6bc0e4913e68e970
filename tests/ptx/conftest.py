"""What the emulator's tests share: PTX from NVRTC, and small kernels written by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lib import ptx

HERE = Path(__file__).parent


def includes() -> list[str]:
    """Return the options that let NVRTC find the toolkit's headers (mma.h, cuda_fp16.h)."""
    from cuda.pathfinder import find_nvidia_header_directory

    folders = map(find_nvidia_header_directory, ("cudart", "nvcc", "cccl"))
    return [f"-I{folder}" for folder in folders if folder]


@cache
def compile_kernels(
    arch: str = "compute_75", path: str = str(HERE / "kernels.cu"), options: tuple[str, ...] = ()
) -> str:
    """Compile a CUDA file to PTX; its kernels keep their names (extern "C")."""
    from cupy.cuda import nvrtc

    source = Path(path).read_text().replace("__global__", 'extern "C" __global__')
    program = nvrtc.createProgram(source, path, [], [])
    try:
        nvrtc.compileProgram(
            program, [f"-arch={arch}", "-lineinfo", "--std=c++17", *includes(), *options]
        )
    except nvrtc.NVRTCError as error:
        raise AssertionError(nvrtc.getProgramLog(program)) from error
    text = nvrtc.getPTX(program)
    return (text if isinstance(text, str) else text.decode()).rstrip("\0")


@pytest.fixture(scope="session")
def kernels() -> ptx.Module:
    """The compiled kernels of kernels.cu."""
    return ptx.Module(compile_kernels())


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def entry(body: str, parameters: str = ".param .u64 out", name: str = "k") -> str:
    """Wrap statements into a module with one kernel."""
    return f"{HEAD}.visible .entry {name}({parameters})\n{{\n{body}\nret;\n}}\n"


def run(body: str, *args, grid=1, block=32, parameters=".param .u64 out", **options):
    """Run statements as a kernel."""
    function = ptx.Module(entry(body, parameters)).get_function("k")
    return function(grid, block, args, **options)


def problem(M: int, N: int, K: int, seed: int = 0):
    """Return A, B and a C full of NaN."""
    random = np.random.default_rng(seed)
    a = random.random((M, K), np.float32) - np.float32(0.5)
    b = random.random((K, N), np.float32) - np.float32(0.5)
    return a, b, np.full((M, N), np.nan, np.float32)
