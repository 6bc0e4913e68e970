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
# What 22 is about: few tiles. Small cubes, C of one or a few tiles with a long K, few rows.
FEW_TILES = (
    (512, 512, 512), (1024, 1024, 1024), (128, 128, 16384), (256, 256, 16384), (16, 4096, 4096),
    (16, 4096, 14336), (64, 4096, 4096),
)
# What 20 is held against besides: one wave of its first variant, 132 tiles of 128×256 of C, and a
# second one from nearly empty to full.
SECOND_WAVES = tuple((128 * rows, 256 * columns, 4096) for rows, columns in (
    (10, 14), (11, 15), (11, 18), (11, 21), (12, 22)))
# What 23 is about: last waves from nearly empty to full. A wave of its first variant is 66 pairs of
# tiles, 256×128 of C each; M / 256 · N / 128 of them make 1, 2 or 3 full waves and a part of one.
LAST_WAVES = tuple(
    (256 * rows, 128 * columns, K) for K, tiles in (
        (4096, ((7, 10), (7, 11), (7, 12), (9, 11), (10, 11), (10, 12), (10, 13), (11, 12),
                (8, 17), (11, 15), (13, 15), (12, 17))),
        (16384, ((7, 10), (9, 11), (10, 13))),
    ) for rows, columns in tiles
)
# What 24 is about: rows that are no multiple of 16 bytes, from a corner of a tile to large ones.
ANY_ROWS = (
    (33, 57, 75), (127, 129, 4095), (501, 259, 1163), (16, 4097, 4093), (1023, 1025, 1021),
    (4095, 33, 4097), (2047, 2049, 2047), (4095, 4097, 4093),
)
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
    first = kernel.variants[0]
    alike = (variant.dtype, variant.out, variant.b_layout) == (
        first.dtype, first.out, first.b_layout)
    shapes = kernel.own_shapes if alike else ()
    if variant in kernel.steps:
        return list(dict.fromkeys([*((size, size, size) for size in STEP_CUBES), *shapes]))
    found = [*((size, size, size) for size in CUBES), *shapes]
    # Those that take any rows: as they are launched, and what may be launched in their place.
    any_rows = variant.dtype == "float32" or variant.packing
    if any_rows and (variant is first or variant.candidates or variant.name in first.candidates):
        found += UNEVEN
    if kernel.large and (variant is first or variant.candidates):
        found += LARGE
    if kernel.layers and variant.candidates:
        found += LAYERS
    if variant.scaling and variant.out != "float32":
        found += SCALED
    return list(dict.fromkeys(found))
