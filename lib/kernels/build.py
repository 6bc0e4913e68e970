"""Instantiations of the catalogue, compiled: one, or all of some kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lib.compiler.arch import BLACKWELL, KNOWN, check_arch, check_compiler, legal
from lib.compiler.compiled import Compiled, compile_source
from lib.compiler.fingerprint import include_folder
from lib.compiler.nvrtc import CompileError
from lib.kernels.spec import Kernel, Variant
from lib.ptx import files

_KERNEL = re.compile(
    r"(?:template\s*<([^{};]*?)>\s*)?__global__\s+void\s+(?:__launch_bounds__\([^{};]*?\)\s*)?(\w+)\(")


def compile_kernel(
    kernel: Kernel,
    variant: Variant | None = None,
    arch: str | None = None,
    timeline: bool = False,
    ptx_arch: str | None = None,
    source: str | None = None,
    ptx_only: bool = False,
) -> Compiled:
    """Compile one instantiation of a catalogue entry.

    `variant`: the kernel's fastest if not given. `arch`: ``"sm_75"``, ``"sm_80"``, ``"sm_90a"``
    or ``"sm_100a"``; the oldest that has the variant's instructions if not given. `timeline`:
    compile the marks in. `ptx_arch`: compile PTX for this older architecture and assemble that for
    `arch`: what the older one's code becomes on a later machine. `source`: CUDA text to compile in
    place of the kernel's file: the file, changed, for an experiment. `ptx_only`: leave the machine
    code until something asks for it: half of the time. Raises ValueError if the architecture is
    unknown, can't run the variant, or isn't known to this NVRTC; CompileError with NVRTC's message
    and our source line.
    """
    variant = variant or kernel.fastest
    needs = kernel.needs(variant)
    target = check_arch(arch or needs)
    source_arch = check_arch(ptx_arch or target)
    if source_arch not in legal(needs):
        which = f"{kernel.stem}/{variant.name}" if variant.min_arch else kernel.stem
        if BLACKWELL in (needs, source_arch):
            known = ", ".join(legal(needs))
            raise ValueError(f"{which} is compiled for {known}, not for {source_arch}")
        raise ValueError(f"{which} runs on {needs} and later, not on {source_arch}")
    check_compiler(target)
    options = ("-DTIMELINE",) if timeline else ()
    expression = kernel.expression(variant)
    file = kernel.file(variant)
    text = files.text_of(file) if source is None else source
    try:
        return compile_source(text, expression, target, options, str(file), ptx_arch,
                              variant.shared_bytes, include_folder(file), ptx_only)
    except CompileError as error:
        # NVRTC's own words for a name that the file doesn't have speak of a file of its own.
        if "__nv_name_map" not in str(error):
            raise
        raise CompileError(
            f"the entry's variant {variant.name} asks for {expression}, and {file.name} has "
            f"{templates(text)}: make function= and the variant's template= name what is there"
        ) from error


def templates(text: str) -> str:
    """The kernels that a text declares, each with its template's parameters, in words."""
    found = [f"template <{' '.join(parameters.split())}> {name}" if parameters else name
             for parameters, name in _KERNEL.findall(text)]
    return " and ".join(found) or "no __global__ function"


def prepare(kernels: Iterable[Kernel], share: int = 0, shares: int = 1) -> None:
    """Compile what chapters and tests will ask for, and keep it on disk.

    Each variant for each architecture that it runs on, but for those that stand in for another
    where a shape asks for it: those are compiled when one does. The machine code is listed where it
    is looked at: for the oldest architecture, whose code the emulator counts, and for the newest.

    `share`, `shares`: do one of so many equal shares of the work: for processes that do it side by
    side.
    """
    pairs = [
        (kernel, arch) for arch in KNOWN for kernel in kernels if arch in legal(kernel.min_arch)
    ]
    for kernel, arch in pairs[share::shares]:
        stand_ins = {name for variant in kernel.variants for name in variant.candidates
                     if name != variant.name}
        for variant in kernel.variants:
            ends = kernel.oldest(variant), legal(kernel.needs(variant))[-1]
            if arch in ends and variant.name not in stand_ins:
                compile_kernel(kernel, variant, arch).sass  # noqa: B018 - listed when asked for
