"""What the tests of kernels share: the shapes and scalars that every version must get right."""

import pytest

from lib.gpus import ARCHITECTURES
from lib.kernels.catalogue import CATALOGUE

# Square, ragged on each side, one wide, and the ends of K.
SHAPES = (
    (64, 64, 64), (100, 99, 101), (33, 65, 31), (1, 1, 1), (1, 70, 40), (70, 1, 40), (31, 33, 1),
    (5, 7, 0), (1, 1, 200),
)
ALPHAS = BETAS = (0.0, 1.0, 0.5, -2.0)
SCALARS = tuple((alpha, beta) for alpha in ALPHAS for beta in BETAS)

# A tuned variant is one of its candidates, whichever suits the shape: these are here.
VARIANTS = [
    pytest.param(kernel, variant, id=f"{kernel.stem}-{variant.name}")
    for kernel in CATALOGUE.values()
    for variant in kernel.measured
    if not variant.candidates
]


def architectures(kernel, variant):
    """Return the architectures that a kernel's instantiation is legal on."""
    known = tuple(ARCHITECTURES)
    return known[known.index(kernel.oldest(variant)):]


ON_ARCHITECTURES = [
    pytest.param(*param.values, arch, id=f"{param.id}-{arch}")
    for param in VARIANTS for arch in architectures(*param.values[:2])
]


def legal(variant, M, N, K):
    """Round a shape up to one whose rows the variant can load, if it doesn't pack them."""
    if not variant.row_bytes or variant.pack:
        return M, N, K
    return M, -(-N // 8) * 8 if variant.b_layout == "row" else N, -(-K // 8) * 8
