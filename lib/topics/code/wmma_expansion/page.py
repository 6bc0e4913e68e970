"""What a wmma instruction becomes, and costs."""

from __future__ import annotations

from collections import Counter

from lib import gpus
from lib.plotting.display import table
from lib.topics.code.wmma_expansion import model as expansion
from lib.topics.version import Version

# What a wmma of PTX is called on a page, in the order of its work.
_STEPS = {
    "load a": "`wmma.load` of A", "load b": "`wmma.load` of B", "load c": "`wmma.load` of C",
    "mma": "`wmma.mma`", "store d": "`wmma.store`",
}

_SPACES = {"global": " (global memory)", "shared": " (shared memory)", "": ""}


def becomes(version: Version, *archs: str) -> None:
    """Display which machine instructions one wmma of each kind becomes.

    Parameters
    ----------
    *archs : str
        The oldest and the newest that the kernel is compiled for, if none is named.
    """
    archs = archs or (version.kernel.min_arch, "sm_90a")
    columns = [expansion.expansions(one.ptx, one.sass) for one in map(version.compiled, archs)]
    rows = []
    for step, name in _STEPS.items():
        for space, where in _SPACES.items():
            key = f"{step}, {space}" if space else step
            if key in columns[0]:
                rows.append((name + where, *(_listed(found[key]) for found in columns)))
    table(
        ("in PTX", *archs), rows,
        f"modelled: SASS of NVRTC {version.compiled(archs[0]).toolkit}, by the PTX line that each "
        "instruction came from; addresses left out",
    )


def products(version: Version) -> None:
    """Display what a 16×16×16 product costs each GPU: instructions, and tensor-core cycles."""
    rows = []
    for arch, key in gpus.ARCHITECTURES.items():
        gpu, compiled = gpus.GPUS[key], version.compiled(arch)
        found = expansion.expansions(compiled.ptx, compiled.sass)["mma"]
        (opcode, count), = found.items()
        each = expansion.flops(opcode)
        cycles = expansion.tensor_cycles(gpu, count * each)
        peak = gpu.flops_per_cycle("float16") / gpu.flops_per_cycle("float32")
        rows.append((f"{key} ({arch})", _listed(found), f"{each:,}", f"{cycles:.0f}",
                     f"{peak:.1f}×"))
    table(
        ("GPU", "one 16×16×16 product is", "FLOP each", "cycles of a sub-partition",
         "peak over FP32's, cycle for cycle"),
        rows, "modelled: SASS, and FLOP per cycle and SM; dense FP16, sums in FP32",
    )


def _listed(counts: Counter[str]) -> str:
    return " + ".join(f"{count} `{opcode}`" for opcode, count in sorted(counts.items()))
