"""The shapes on which kernels are timed."""

from __future__ import annotations

from lib.kernels.spec import Kernel, Variant

# Cubes, odd sizes, and shapes of which one size is far from the others: every FP32 record holds
# them, and that of the version that takes every shape; tiles are searched on them.
CUBES = (512, 1024, 2048, 4096, 8192)
UNEVEN = (
    (1000, 1000, 1000), (2047, 2049, 2048), (4095, 4097, 4093), (33, 4096, 4096),
    (4096, 33, 4096), (4096, 4096, 33), (8192, 128, 8192), (128, 128, 16384),
)
# Layers of Llama 3's 8B and 70B models (dubey2024llama, table 3): the projections
# of attention, of 4,096 and 8,192 inputs and outputs, and those of the feed-forward part, of 14,336
# and 28,672. M is the number of tokens.
LAYERS = (
    (2048, 4096, 4096), (2048, 14336, 4096), (2048, 4096, 14336),
    (8192, 8192, 8192), (8192, 28672, 8192), (8192, 8192, 28672),
)


def timed(kernel: Kernel, variant: Variant) -> list[tuple[int, int, int]]:
    """The shapes on which an instantiation is timed: cubes, and what its kernel is for besides."""
    cubes = [(size, size, size) for size in CUBES]
    # Those that take any rows.
    uneven = UNEVEN if variant.dtype == "float32" or variant.pack and variant.candidates else ()
    large = ((16384, 16384, 16384), *LAYERS) if kernel.layers and variant.candidates else ()
    return list(dict.fromkeys((*cubes, *uneven, *large)))
