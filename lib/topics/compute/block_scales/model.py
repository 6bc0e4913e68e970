"""What operands with block scales ask of a pair, counted in the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lib.kernels.catalogue import find
from lib.problem.scales import ATOM_BYTES, FORMATS
from lib.ptx.core.machine import SECTOR, WAVEFRONT
from lib.run.runner import run

STEM = "28_cta_pairs"
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


@lru_cache(maxsize=4)
def scaled(name: str) -> Scaled:
    """Count what one pair, or two, ask for two tiles of C."""
    kernel = find(STEM)
    variant = kernel.variant(name)
    form = FORMATS[variant.scaling]
    K = STEPS * variant.step
    done = run(kernel, variant.problem(ROWS, COLUMNS, K), variant=variant, backend="emulator")
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
