"""What operands with block scales ask of a pair, counted in the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lib.kernels.blackwell import BLOCK_SCALED
from lib.kernels.block_scaled import ATOM_BYTES, FORMATS, BlockScaledProblem, Format
from lib.kernels.spec import Variant
from lib.ptx.core.machine import SECTOR, WAVEFRONT
from lib.run.block_scaled import run

# Four bytes of each of 128 rows in four columns of tensor memory.
ATOM_COLUMNS = ATOM_BYTES // 128
# Rows and columns of C, and steps of K: two tiles of 256×256.
ROWS, COLUMNS, STEPS = 256, 512, 4


@dataclass(frozen=True)
class Scaled:
    """What a variant asks of the machine.

    Attributes
    ----------
    bits : float
        Of an element and its share of a scale.
    flops : float
        Of the problem, FLOP.
    loaded, of_scales : int
        Bytes that TMA loads, and those of them that are scales, B.
    read : int
        Bytes of shared memory that MMAs read, B.
    products, copies : int
        Instructions that multiply, and that copy scales to tensor memory.
    each : int
        K of one that multiplies.
    columns : int
        Of tensor memory, that the scales of all stages take.
    """

    bits: float
    flops: float
    loaded: int
    of_scales: int
    read: int
    products: int
    copies: int
    each: int
    columns: int


def form_of(variant: Variant) -> Format:
    """The format of a variant of `BLOCK_SCALED`."""
    return next(one for one in FORMATS.values() if one.cuda == variant.constants["FORMAT"])


@lru_cache(maxsize=4)
def scaled(name: str) -> Scaled:
    """Count what one pair, or two, ask for two tiles of C."""
    variant = BLOCK_SCALED.variant(name)
    form = form_of(variant)
    K = STEPS * variant.step
    done = run(BlockScaledProblem(ROWS, COLUMNS, K, out=variant.out, format=form.name),
               variant=variant, backend="emulator", trace=True)
    assert done.launch is not None and done.verdict.ok
    trace = done.launch.traced
    loads = [site for site in trace.sites if site.kind == "bulk load"]
    # A box of elements has as many rows as a tile; one of scales, some atoms.
    atoms = variant.step // form.block // 4
    small = [site for site in loads if SECTOR * site.sectors == site.requests * atoms * ATOM_BYTES]

    def count(begin: str) -> int:
        return sum(n for opcode, (n, _) in trace.instructions.items() if opcode.startswith(begin))

    return Scaled(
        8 / form.per_byte + 8 / form.block, 2.0 * ROWS * COLUMNS * K,
        SECTOR * sum(site.sectors for site in loads), SECTOR * sum(site.sectors for site in small),
        WAVEFRONT * sum(site.wavefronts for site in trace.sites if site.kind == "tcgen05"),
        count("tcgen05.mma"), count("tcgen05.cp"), variant.step // 4,
        variant.schedule.stages * (1 + variant.tile[1] // 128) * atoms * ATOM_COLUMNS)
