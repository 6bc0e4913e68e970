"""An instantiation of the catalogue, compiled."""

from __future__ import annotations

from lib.compiler.arch import TARGETS, check_arch
from lib.compiler.compiled import Compiled, compile_file
from lib.kernels.spec import Kernel, Variant


def compile_kernel(
    kernel: Kernel,
    variant: Variant | None = None,
    arch: str | None = None,
    timeline: bool = False,
    ptx_arch: str | None = None,
) -> Compiled:
    """Compile one instantiation of a catalogue entry.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant, optional
        The kernel's first one if not given.
    arch : str, optional
        ``"sm_75"``, ``"sm_80"`` or ``"sm_90a"``; the oldest that the kernel runs on if not given.
    timeline : bool
        Compile the marks in.
    ptx_arch : str, optional
        Compile PTX for this older architecture and assemble that for `arch`: what the older one's
        code becomes on a later machine.

    Raises
    ------
    ValueError
        If the architecture is unknown, or older than the kernel's oldest.
    CompileError
        With NVRTC's message and our source line.
    """
    variant = variant or kernel.variants[0]
    target, known = check_arch(arch or kernel.min_arch), TARGETS
    source_arch = check_arch(ptx_arch or target)
    if known.index(source_arch) < known.index(kernel.min_arch):
        raise ValueError(f"{kernel.stem} runs on {kernel.min_arch} and later, not on {source_arch}")
    options = ("-DTIMELINE",) if timeline else ()
    return compile_file(
        kernel.source, kernel.expression(variant), target, options,
        ptx_arch and check_arch(ptx_arch), variant.shared_bytes,
    )
