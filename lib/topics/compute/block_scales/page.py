"""What a chapter shows of operands with block scales."""

from __future__ import annotations

from lib.compiler.fingerprint import without_marks
from lib.kernels import source
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import find, named
from lib.paths import CUDA
from lib.plotting.display import note, table
from lib.ptx.files import text_of
from lib.topics.code.instruction.page import apart_of
from lib.topics.compute.block_scales import model
from lib.topics.memory.tensor_memory.model import SHAPE, asked


def instruction(opcode: str, variant: str) -> None:
    """Display one PTX instruction of a variant with block scales, part by part."""
    apart_of(compile_kernel(*named(f"{model.STEM}/{variant}")), opcode)


def excerpt(first: str, last: str) -> None:
    """Display lines of the kernel with block scales, from one that holds `first` on."""
    kernel = find(model.STEM)
    file = kernel.file(kernel.laid[0])
    listing = source.excerpt(without_marks(text_of(file)), first, last, False)
    note(f"```cpp\n{listing}```\n\n*cuda/{file.relative_to(CUDA)}*")


def costs(*variants: str) -> None:
    """Display what formats ask of a pair per FLOP, beside the 16-bit pair on the same tile."""
    plain = asked(model.STEM, "in_turns", SHAPE)
    found = [model.scaled(name) for name in variants]

    def per_kflop(nbytes: float, flops: float) -> str:
        return f"{1e3 * nbytes / flops:.2f}"

    table(("", "FP16", *variants), [
        ("bits of an element, with its share of a scale", "16",
         *(f"{a.bits:g}" for a in found)),
        ("K of one MMA", "16", *(str(a.each) for a in found)),
        ("bytes that TMA loads, per kFLOP", per_kflop(plain.loaded, plain.flops),
         *(per_kflop(a.loaded, a.flops) for a in found)),
        ("of these scales", "0", *(per_kflop(a.of_scales, a.flops) for a in found)),
        ("bytes of operands that MMAs read of shared memory, per kFLOP",
         per_kflop(plain.read, plain.flops), *(per_kflop(a.read, a.flops) for a in found)),
        ("MMAs per MFLOP", f"{1e6 * plain.products / plain.flops:.2f}",
         *(f"{1e6 * a.products / a.flops:.2f}" for a in found)),
        ("copies of scales per MMA", "0", *(f"{a.copies / a.products:g}" for a in found)),
        ("columns of tensor memory for scales", "0", *(str(a.columns) for a in found)),
    ], "emulated: tiles of 256×256; the bits and the columns by the format and the stages")
