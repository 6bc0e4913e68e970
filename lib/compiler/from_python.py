"""Kernels in Python that Triton or numba-cuda compile ahead of time, which takes no GPU.

Both are optional. Their PTX runs as it is; what their own launchers would add to the arguments is
added here: Triton's scratch memory, Numba's shapes and strides.
"""

from __future__ import annotations

import ast
import re
import runpy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler.raw_module import Kernel
from lib.ptx.files import text_of


@dataclass(frozen=True)
class Compiled:
    """A kernel as one of the compilers made it."""

    kernel: Kernel
    block: int  # threads that it is compiled for; 0 if any number will do
    shared: int  # dynamic shared memory that it needs, bytes
    scratch: int  # global memory that each block needs, bytes
    # Given the arguments and how many blocks there are: all that the PTX takes.
    complete: Callable[[Sequence[Any], int], list[Any]]


def triton(
    path: Path, name: str, signature: str, arch: str, warps: int = 4, stages: int = 3
) -> Compiled:
    """Compile a function of a file with Triton.

    `name`: of a ``@triton.jit`` function. `signature`: as ``triton.tools.compile`` has it: a type
    for each parameter, such as ``*fp32:16`` (a pointer to a multiple of 16 bytes) or ``i32``, and
    the value of each ``tl.constexpr``. `arch`: such as ``"sm_90a"``. `warps`, `stages`:
    ``num_warps`` and ``num_stages``. Raises ImportError if Triton is not installed; ValueError if
    there is no such function, or the signature does not fit it.
    """
    try:
        from triton import compile as compiled
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as missing:
        raise ImportError("--triton needs Triton: pip install triton") from missing
    function = _function(path, name)
    types, constants, hints = triton_signature(signature, list(function.arg_names))
    capability = int(re.sub(r"\D", "", arch))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = compiled(
            ASTSource(function, types, constants, hints), target=GPUTarget("cuda", capability, 32),
            options={"num_warps": warps, "num_stages": stages},
        )
    text, data = made.asm["ptx"], made.metadata
    kernel = _kernel(path, text, data.name)
    scratch = int(getattr(data, "global_scratch_size", 0) or 0)
    return Compiled(kernel, threads(kernel), int(data.shared), scratch,
                    completed(kernel, scratch))


def triton_signature(
    signature: str, names: Sequence[str]
) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int], list]]:
    """Types, constants and hints, by the parameters' names and places.

    Raises ValueError if there are not as many as parameters.
    """
    words = [word.strip() for word in signature.split(",")]
    if len(words) != len(names):
        raise ValueError(f"--signature has {len(words)} types, the kernel {len(names)} parameters: "
                         f"{', '.join(names)}")
    types, constants, hints = {}, {}, {}
    for place, (name, word) in enumerate(zip(names, words, strict=True)):
        kind, _, hint = word.partition(":")
        try:
            constants[name] = ast.literal_eval(kind)
            types[name] = "constexpr"
        except (ValueError, SyntaxError):
            types[name] = kind
        if hint == "16":
            hints[(place,)] = [["tt.divisibility", 16]]
        elif hint == "1":
            constants[name], types[name] = 1, "constexpr"
        elif hint:
            raise ValueError(f"--signature {word}: behind the colon stands 16 or 1")
    return types, constants, hints


def threads(kernel: Kernel) -> int:
    """The threads of a block that a kernel's PTX is made for; 0 if it says nothing."""
    return kernel.function.entry.limits.get("reqntid", (0,))[0]


def completed(kernel: Kernel, scratch: int = 0) -> Callable[[Sequence[Any], int], list[Any]]:
    """What adds the pointers to scratch memory that Triton's kernels take at the end."""
    wanted = len(kernel.function.entry.parameters)

    def complete(args: Sequence[Any], blocks: int) -> list[Any]:
        hidden: list[Any] = [None] * max(0, wanted - len(args))
        if hidden and scratch:
            hidden[0] = np.zeros(scratch * blocks, np.uint8)
        return [*args, *hidden]

    return complete


def numba(path: Path, name: str, signature: str, arch: str) -> Compiled:
    """Compile a function of a file with numba-cuda.

    `name`: of a ``@cuda.jit`` function, or of one without a decorator. `signature`: its parameters'
    types, such as ``float32[:], float32[:,::1], int32``. Raises ImportError if numba-cuda, or what
    it compiles with, is not installed; ValueError if there is no such function.
    """
    try:
        from numba import cuda
        from numba.core import sigutils
    except ImportError as missing:
        raise ImportError(
            "--numba needs numba-cuda with its compiler: pip install 'numba-cuda[cu12]'"
        ) from missing
    function = _function(path, name)
    types, _ = sigutils.normalize_signature(f"void({signature})")
    digits = re.sub(r"\D", "", arch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text, _ = cuda.compile_ptx(getattr(function, "py_func", function), types, lineinfo=True,
                                   cc=(int(digits[:-1]), int(digits[-1])))
    entry = next(iter(ptx.Module(text).program.entries))
    kernel = _kernel(path, text, entry)
    return Compiled(kernel, threads(kernel), 0, 0, lambda args, _: flattened(args))


def flattened(args: Sequence[Any]) -> list[Any]:
    """The arguments as Numba's kernels take them: of an array its size, shape and strides as well.

    The two pointers before them are to what the host keeps of it.
    """
    flat: list[Any] = []
    for value in args:
        if isinstance(value, np.ndarray):
            numbers = (np.int64(value.size), np.int64(value.itemsize))
            flat += [None, None, *numbers, value, *map(np.int64, value.shape),
                     *map(np.int64, value.strides)]
        else:
            flat.append(value)
    return flat


def _function(path: Path, name: str) -> Any:
    found = runpy.run_path(str(path), run_name=path.stem)
    if name not in found:
        raise ValueError(f"{path} has no function {name}")
    return found[name]


def _kernel(path: Path, text: str, name: str) -> Kernel:
    source = text_of(path, errors="replace")
    module = ptx.Module(text, sources={str(path.resolve()): source, path.name: source})
    return Kernel(module.get_function(name), text)
