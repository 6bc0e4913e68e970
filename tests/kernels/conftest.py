"""What the tests of kernels share: the shapes and scalars that every version must get right."""

import pytest

from lib.kernels import CATALOGUE

# Square, ragged on each side, one wide, and the ends of K.
SHAPES = (
    (64, 64, 64), (100, 99, 101), (33, 65, 31), (1, 1, 1), (1, 70, 40), (70, 1, 40), (31, 33, 1),
    (5, 7, 0), (1, 1, 200),
)
ALPHAS = BETAS = (0.0, 1.0, 0.5, -2.0)
SCALARS = tuple((alpha, beta) for alpha in ALPHAS for beta in BETAS)

VARIANTS = [
    pytest.param(kernel, variant, id=f"{kernel.stem}-{variant.name}")
    for kernel in CATALOGUE.values()
    for variant in kernel.variants
]
