"""The shapes on which kernels are timed."""

from __future__ import annotations

from lib.kernels.spec import Kernel, Variant

CUBES = (512, 1024, 2048, 4096, 8192)
# Where what isolates a step is timed: it is compared with its neighbours, on the headline sizes.
STEP_CUBES = (2048, 4096)
# Odd sizes, and shapes of which one size is far from the others: for versions that take any rows.
# Tiles are searched on them.
UNEVEN = (
    (1000, 1000, 1000), (2047, 2049, 2048), (4095, 4097, 4093), (33, 4096, 4096),
    (4096, 33, 4096), (4096, 4096, 33), (8192, 128, 8192), (128, 128, 16384), (4096, 128, 4096),
)
# Large ones, for versions that are the last of their kind.
LARGE = ((16384, 16384, 16384), (16384, 16384, 1024))
# Layers of Llama 3's 8B model (dubey2024llama, table 3): projections of attention, of 4,096 inputs
# and as many outputs, or 1,024 for keys and values; those of the feed-forward part, of 14,336. M is
# the number of tokens: few, as when a text is written, or many, as when one is read.
LAYERS = tuple(
    (tokens, N, K) for tokens in (16, 4096)
    for N, K in ((4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336))
)
# Of DeepSeek-V3's layers and larger ones, as others time products with block scales (deepgemm): of
# many tokens, and few.
SCALED = (
    (4096, 7168, 16384), (4096, 4096, 7168), (4096, 24576, 1536), (4096, 7168, 2048),
    (512, 4096, 7168), (128, 7168, 2048), (64, 4096, 7168),
)


def timed(kernel: Kernel, variant: Variant) -> list[tuple[int, int, int]]:
    """The shapes on which an instantiation is timed: cubes, and what its kernel is for besides."""
    if variant in kernel.steps:
        return [(size, size, size) for size in STEP_CUBES]
    found = [(size, size, size) for size in CUBES]
    first = kernel.variants[0]
    # Those that take any rows: as they are launched, and what may be launched in their place.
    any_rows = variant.dtype == "float32" or variant.pack
    if any_rows and (variant is first or variant.candidates or variant.name in first.candidates):
        found += UNEVEN
    if kernel.large and (variant is first or variant.candidates):
        found += LARGE
    if kernel.layers and variant.candidates:
        found += LAYERS
    if variant.scaling and variant.out != "float32":
        found += SCALED
    return list(dict.fromkeys(found))
