"""Two instantiations side by side: source, registers, machine code, counters."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from lib import gpus
from lib.compiler.arch import KNOWN
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Kernel, Variant
from lib.ptx.files import text_of
from lib.run.runner import run
from lib.show.instruction_mix import classify
from lib.show.occupancy import occupancy


@dataclass(frozen=True)
class Side:
    """What one instantiation is, in numbers.

    Attributes
    ----------
    name : str
        ``"04_register_tile tile8"``.
    expression : str
        The instantiation in C++.
    resources : mapping of str to int or float
        Registers per thread, shared bytes per block, spilled bytes, occupancy.
    mix : mapping of str to int
        Instructions of the SASS of its inner loop by class (`instruction_mix.classify`).
    counters : mapping of str to int
        Counted in the emulator on the problem that both sides ran.
    """

    name: str
    expression: str
    resources: Mapping[str, int | float]
    mix: Mapping[str, int]
    counters: Mapping[str, int]


def common_arch(*chosen: tuple[Kernel, Variant]) -> str:
    """The oldest architecture that all of some instantiations run on."""
    return max((kernel.oldest(variant) for kernel, variant in chosen), key=KNOWN.index)


def side(kernel: Kernel, variant: Variant, arch: str, shape: tuple[int, int, int]) -> Side:
    """Compile an instantiation and run it in the emulator.

    Raises
    ------
    ValueError
        If the shape can't be launched.
    """
    compiled = compile_kernel(kernel, variant, arch)
    done = run(kernel, variant.problem(*shape), variant=variant, backend="emulator", arch=arch)
    used, gpu = compiled.resources, gpus.for_arch(arch)
    resident = occupancy(gpu, used.registers, used.shared_bytes, variant.threads)
    return Side(f"{kernel.stem}/{variant.name}", kernel.expression(variant),
                {**asdict(used), "threads": variant.threads, "warps_per_sm": resident.warps},
                dict(Counter(classify(one.opcode) for one in compiled.inner_loop)),
                done.trace.counters())


def source_difference(one: Kernel, other: Kernel) -> list[str]:
    """Lines of the unified difference of two kernels' files; none if they are one file."""
    ours, theirs = (
        text_of(kernel.source).splitlines() for kernel in (one, other))
    return list(difflib.unified_diff(
        ours, theirs, f"{one.stem}.cu", f"{other.stem}.cu", n=2, lineterm=""))
