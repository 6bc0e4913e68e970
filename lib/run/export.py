"""One kernel as a file to take away: a `.cu` without includes of ours, with its host's launch.

What is launched, and with which arguments, is what `lib.run.prepared` lays out for that shape: the
text says the same in CUDA's runtime API.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from lib.compiler.fingerprint import include_folder, without_marks
from lib.dispatch.plan import Plan
from lib.kernels.grid import PERSISTENT_SMS
from lib.kernels.schedule import CUDA_TYPES
from lib.kernels.spec import Kernel, Variant
from lib.problem import LARGEST, Problem, numpy_dtype
from lib.ptx import TensorMap
from lib.ptx.files import text_of
from lib.run.prepared import L2_PROMOTION, Step
from lib.run.runner import prepare

# CUDA driver API, cuda.h: CUtensorMapDataType.
MAP_TYPES = {"float16": "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
             "bfloat16": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
             "float32": "CU_TENSOR_MAP_DATA_TYPE_FLOAT32"}
# Elements of C that `main` computes again in float64, at most.
CHECKED = 1 << 16
FILE = Path(__file__).with_name("export.cu.in")
MAPS = '''
// What TMA must know of a matrix: where it is, its rows, columns and pitch in bytes, and the box.
TensorMap tensor_map(void* matrix, CUtensorMapDataType type, cuuint64_t rows, cuuint64_t columns,
                     cuuint64_t pitch, cuuint32_t box_rows, cuuint32_t box_columns,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion)
{
    static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "one stands for the other");
    TensorMap made;
    const cuuint64_t sizes[] = {columns, rows}, pitches[] = {pitch};
    const cuuint32_t box[] = {box_columns, box_rows}, steps[] = {1, 1};
    const CUresult code = cuTensorMapEncodeTiled(
        reinterpret_cast<CUtensorMap*>(&made), type, 2, matrix, sizes, pitches, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuTensorMapEncodeTiled: CUresult %d\\n", (int)code);
        std::exit(2);
    }
    return made;
}
'''


class Made(NamedTuple):
    """A file: its text, the instantiation that its main launch is of, and the oldest target."""

    text: str
    instantiation: str
    arch: str

    @property
    def target(self) -> str:
        """nvcc's flag for this target.

        ``-arch=sm_90a`` lets nvcc 13.0 make PTX for plain sm_90 besides, which has no wgmma.
        """
        return flag(self.arch)


def flag(arch: str) -> str:
    """nvcc's flag for a target, such as ``sm_75`` or ``sm_90a``; see `Made.target`."""
    if arch.endswith("a"):
        return f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}"
    return f"-arch={arch}"


def made(
    kernel: Kernel, variant: Variant, problem: Problem, command: str
) -> Made:
    """Make the file for one problem.

    `variant`: the tile that suits the shape takes its place. `problem`: its shape, α and β are in
    the file; A and B are drawn by it. `command`: what made the file, for its first comment. Raises
    ValueError if the shape can't be launched or has no product to compute, if α or β is not finite,
    or if the problem has scales.
    """
    if variant.scaling:
        raise ValueError(f"{kernel.stem} has scales, which an exported file draws none of: take "
                         "the kernel from cuda/ and its launch from lib.gemm(..., scale_a=, "
                         "scale_b=)")
    if problem.epilogue:
        raise ValueError(f"{kernel.stem} has an epilogue, whose operands an exported file draws "
                         "none of: take the kernel from cuda/ and its launch from lib.gemm(..., "
                         "epilogue=)")
    if 0 in (problem.M, problem.N, problem.K):
        raise ValueError(f"{problem.shape} has nothing to multiply: export a shape without a 0")
    for name, scalar in (("alpha", problem.alpha), ("beta", problem.beta)):
        if not abs(scalar) <= LARGEST["float32"]:
            raise ValueError(f"{name} = {scalar} is no finite float: export with another")
    matrices = _placeholders(problem)
    plan, (steps,) = prepare(kernel, variant, problem, [matrices])
    names = dict(zip(map(id, matrices), "ABC", strict=True))
    makes, frees = _rooms(steps, names)
    launches = "\n".join(
        line for number, step in enumerate(steps)
        for line in _launch(kernel, step, names, number))
    packings = [plan.variant.packing] if plan.packing and plan.variant.packing else []
    instantiation = kernel.expression(plan.variant)
    arch = kernel.oldest(plan.variant)
    words = {
        "command": command, "sms": PERSISTENT_SMS, "kernel": instantiation,
        "meaning": plan.variant.meaning, "why": _why(plan),
        "target": flag(arch), "device": flattened(kernel, plan.variant, *packings),
        "T": CUDA_TYPES[problem.dtype], "TC": CUDA_TYPES[problem.out],
        "M": problem.M, "N": problem.N,
        "K": problem.K, "alpha": repr(float(problem.alpha)), "beta": repr(float(problem.beta)),
        "b_by_rows": "true" if problem.b_layout == "row" else "false",
        "tolerance": f"{problem.tolerance:.3e}", "checked": CHECKED,
        "makes": "\n".join(f"    {line}" for line in makes),
        "frees": "\n".join(f"        {line}" for line in frees),
        "maps": MAPS if "tensor_map(" in launches else "",
        "launches": launches,
    }
    text = Template(text_of(FILE)).substitute(words)
    return Made(text, instantiation, arch)


def _placeholders(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices of the problem's shapes and types that take no memory until they are touched."""
    if not problem.plain or problem.a_layout != "row":
        raise ValueError("a file is exported for one product, A by rows, without gaps")
    A, B, C = (np.empty(one.shape, numpy_dtype(one.dtype)) for one in problem.operands)
    return A, B, C


def _why(plan: Plan) -> str:
    """Why it isn't the instantiation that was asked for, as the end of a sentence."""
    return f" ({plan.reason})" if plan.reason else ""


# -- the device's part ---------------------------------------------------------------------------


def flattened(kernel: Kernel, *variants: Variant) -> str:
    """The files of instantiations with the headers of ours that they include in their places.

    Each once, and without the timeline's marks.
    """
    seen: set[Path] = set()
    lines = [line for file in dict.fromkeys(map(kernel.file, variants))
             for line in _lines(file, include_folder(file), seen)]
    return "\n".join(lines) + "\n"


def _lines(file: Path, folder: Path, seen: set[Path]) -> Iterator[str]:
    for line in without_marks(text_of(file)).splitlines():
        included = re.match(r'#include "([^"]+)"', line)
        if line == "#pragma once":
            continue
        if not included:
            yield line
        elif (header := folder / included[1]) not in seen:
            seen.add(header)
            yield f"// -- {included[1]} " + "-" * (94 - len(included[1]))
            yield from _lines(header, folder, seen)
            yield f"// -- end of {included[1]}"


# -- the host's part -----------------------------------------------------------------------------


def _rooms(steps: Sequence[Step], names: dict[int, str]) -> tuple[list[str], list[str]]:
    """Declarations of what a launch needs beside the matrices, and what gives it back.

    Names what it finds.
    """
    makes: list[str] = []
    frees: list[str] = []
    for step in steps:
        for argument in step.arguments:
            array = _array(argument)
            if array is None or id(array) in names or not array.size:
                continue
            base = array if array.base is None else array.base
            if id(base) not in names:
                name = f"room{len(makes)}"
                names[id(base)] = f"space.{name}"
                kind = {"int32": "int", **CUDA_TYPES}[base.dtype.name]
                fill = 0 if base.dtype.name == "int32" else 255
                makes.append(f"{kind}* {name} = room<{kind}>({base.size}ull, {fill});")
                frees.append(f"CHECK(cudaFree({name}));")
            names[id(array)] = names[id(base)]
    return makes, frees


def _array(argument: Any) -> np.ndarray | None:
    """The array that an argument points to, or that its tensor map describes."""
    if isinstance(argument, TensorMap):
        return argument.array
    return argument if isinstance(argument, np.ndarray) and argument.ndim else None


def _launch(kernel: Kernel, step: Step, names: Mapping[int, str], number: int) -> Iterator[str]:
    """The statements of one launch, behind the tensor maps that it takes."""
    launch, arguments, scalars = step.launch, [], iter(("alpha", "beta"))
    for place, argument in enumerate(step.arguments):
        if isinstance(argument, TensorMap):
            map_name = f"map{number}_{place}"
            yield f"    const TensorMap {map_name} ="
            yield from (f"        {line}" for line in _tensor_map(argument, names))
            arguments.append(map_name)
        elif isinstance(argument, np.floating):
            arguments.append(next(scalars))
        elif isinstance(argument, np.void):
            arguments.append("TensorMap{}")  # of a matrix that isn't moved by TMA
        elif _array(argument) is not None:
            arguments.append(names[id(argument)])
        else:
            arguments.append(str(int(argument)))
    grid, block = (", ".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
    yield f"    launch({kernel.expression(step.variant)},"
    yield (f"           dim3({grid}), dim3({block}), {launch.shared_bytes}, "
           f"{str(launch.programmatic_launch).lower()}, stream,")
    yield f"           {', '.join(arguments)});"


def _tensor_map(made: TensorMap, names: Mapping[int, str]) -> tuple[str, str]:
    """The call that encodes a map: rows and columns of a matrix, its pitch in bytes, the box."""
    rows, columns = made.array.shape
    swizzle = f"{made.swizzle}B" if made.swizzle else "NONE"
    return (f"tensor_map({names[id(made.array)]}, {MAP_TYPES[made.array.dtype.name]}, {rows}, "
            f"{columns}, {made.array.strides[0]},",
            f"           {made.box[0]}, {made.box[1]}, CU_TENSOR_MAP_SWIZZLE_{swizzle}, "
            f"CU_TENSOR_MAP_L2_PROMOTION_L2_{L2_PROMOTION}B);")
