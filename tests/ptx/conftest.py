"""What the emulator's tests share: PTX from NVRTC, and small kernels written by hand."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lib import ptx
from lib.compiler.cache import cached
from lib.compiler.nvrtc import compile_nvrtc
from lib.compiler.toolkit import toolkit_identity, toolkit_includes

HERE = Path(__file__).parent


@cache
def compile_kernels(
    arch: str = "compute_75", path: str = str(HERE / "kernels.cu"), options: tuple[str, ...] = ()
) -> str:
    """Compile a CUDA file to PTX; its kernels keep their names (extern "C")."""
    source = Path(path).read_text().replace("__global__", 'extern "C" __global__')
    return compile_text(source, arch, path, options=options)


def compile_text(
    source: str, arch: str = "compute_75", filename: str = "source.cu", lineinfo: bool = True,
    options: tuple[str, ...] = (),
) -> str:
    """Compile CUDA text to PTX; kept on disk until it, its headers or NVRTC change."""
    lines = ["-lineinfo"] if lineinfo else []
    target = [f"-arch={arch}", *lines, "--std=c++17", *toolkit_includes(), *options]
    headers = [path.read_bytes() for folder in options if folder.startswith("-I")
               for path in sorted(Path(folder[2:]).rglob("*.*h"))]
    parts = ["a test's PTX", source, filename, *target, *headers, toolkit_identity()]
    return cached(parts, lambda: compile_nvrtc(source, [], target, filename).ptx).decode()


@pytest.fixture(scope="session")
def kernels() -> ptx.Module:
    """The compiled kernels of kernels.cu."""
    return ptx.Module(compile_kernels())


each_landing = pytest.mark.parametrize("landing", ["early", "late"])
each_schedule = pytest.mark.parametrize("schedule", ["lowest", "highest", "random"])


def u32s(shape):
    """Zeros of a type."""
    return np.zeros(shape, np.uint32)


def f32s(shape):
    return np.zeros(shape, np.float32)


def s32s(shape):
    return np.zeros(shape, np.int32)


def kinds(launch):
    """The kinds of hazard of a launch."""
    return {hazard.kind for hazard in launch.hazards}


def function_of(text, name="k"):
    """A kernel of a PTX text."""
    return ptx.Module(text).get_function(name)


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def entry(body: str, parameters: str = ".param .u64 out", name: str = "k") -> str:
    """Wrap statements into a module with one kernel."""
    return f"{HEAD}.visible .entry {name}({parameters})\n{{\n{body}\nret;\n}}\n"


def run(body: str, *args, grid=1, block=32, parameters=".param .u64 out", **options):
    """Run statements as a kernel."""
    function = ptx.Module(entry(body, parameters)).get_function("k")
    return function(grid, block, args, **options)


def lanewise(body: str, out, *given, head: str = HEAD, **options) -> ptx.Launch:
    """Run statements in each lane, whose rows of the arrays are its registers.

    Of `given` they are %a0, %a1, … (in a vector, A), %b0, … and so on; %d0, … are put into `out`.
    """
    load, store, vectors = ".reg .b64 %at; .reg .b32 %t; mov.u32 %t, %tid.x;\n", "", {}
    for name, array in zip("dabce", (out, *given), strict=False):
        size, places = array.itemsize, range(array.size // len(array))
        vectors[name.upper()] = "{" + ", ".join(f"%{name}{i}" for i in places) + "}"
        load += f".reg .b{max(16, 8 * size)} %{name}<{len(places)}>;\n"
        row = f"ld.param.u64 %at, [{name}]; mad.wide.u32 %at, %t, {array.strides[0]}, %at;\n"
        if name == "d":
            store = row + "".join(f"st.global.b{8 * size} [%at+{size * i}], %d{i};\n"
                                  for i in places)
        else:
            load += row + "".join(f"ld.global.b{8 * size} %{name}{i}, [%at+{size * i}];\n"
                                  for i in places)
    body = load + re.sub(r"\b[A-E]\b", lambda name: vectors[name[0]], body) + store
    parameters = ", ".join(f".param .u64 {name.lower()}" for name in vectors)
    return function_of(entry(body, parameters).replace(HEAD, head))(
        1, len(out), (out, *given), **options)


def problem(M: int, N: int, K: int, seed: int = 0):
    """Return A, B and a C full of NaN."""
    random = np.random.default_rng(seed)
    a = random.random((M, K), np.float32) - np.float32(0.5)
    b = random.random((K, N), np.float32) - np.float32(0.5)
    return a, b, np.full((M, N), np.nan, np.float32)


def run_on_gpu(code: str | bytes, block: int, args, shared_mem: int, name: str = "k"):
    """Run a kernel of a PTX text or a cubin on a GPU, one block; arrays are updated in place."""
    import cupy

    module = cupy.cuda.function.Module()
    module.load(code.encode() if isinstance(code, str) else code)
    there = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    function = module.get_function(name)
    function((1, 1, 1), (block, 1, 1), tuple(there), shared_mem=shared_mem)
    cupy.cuda.runtime.deviceSynchronize()
    for mine, theirs in zip(args, there, strict=True):
        if isinstance(mine, np.ndarray):
            mine[...] = theirs.get()
