"""Each barrier of the versions on tensor cores is needed: without it a race is reported.

That none is reported with all of them in place is tested in `test_emulator`.
"""

import pytest

from lib.kernels import CATALOGUE, INCLUDE
from lib.ptx import Error
from lib.runner import run

# Kernel, variant, the line to leave out (its only one, or `which` of several), and the shape.
TWO_TILES = (64, 64, 64)
BARRIERS = [
    ("11_wmma_shared", "square", "whole before anyone reads", 0, TWO_TILES),
    ("11_wmma_shared", "square", "before they are overwritten", 0, TWO_TILES),
    *(
        ("12_wmma_pipeline", name, "__syncthreads();", which, TWO_TILES)
        for name in ("staged", "seed") for which in (0, 1)
    ),
    *(
        ("12_wmma_pipeline", "roles", line, 0, TWO_TILES)
        for line in ("barrier_sync(EMPTY", "barrier_sync(FULL", "barrier_sync(DONE")
    ),
    ("13_wmma_vectorized", "seed", "__syncthreads();", 0, TWO_TILES),
    ("13_wmma_vectorized", "seed", "__syncthreads();", 1, TWO_TILES),
    ("14_ldmatrix", "mirrored", "whole before anyone reads", 0, (128, 128, 64)),
    ("14_ldmatrix", "mirrored", "before they are overwritten", 0, (128, 128, 64)),
    ("15_turing_limit", "start", "whole before anyone reads", 0, (128, 128, 64)),
    ("15_turing_limit", "start", "before they are overwritten", 0, (128, 128, 64)),
    ("15_turing_limit", "small", "__syncthreads();", 2, (64, 128, 96)),
    ("15_turing_limit", "small", "__syncthreads();", 3, (64, 128, 96)),
    ("15_turing_limit", "small", "the tiles are no longer needed", 0, (64, 128, 96)),
    ("15_turing_limit", "small", "__syncwarp();", 0, (64, 128, 32)),
    ("15_turing_limit", "small", "__syncwarp();", 1, (64, 128, 32)),
]


def without(text, line, which):
    rows = text.splitlines(keepends=True)
    places = [place for place, row in enumerate(rows) if line in row]
    rows[places[which]] = "\n"
    return "".join(rows)


def found(stem, name, source, shape):
    """Hazards, or the error that the emulator stopped at, in the first schedule that has any."""
    kernel = CATALOGUE[stem]
    variant = kernel.variant(name)
    for schedule in ("lowest", "highest", "random"):
        try:
            done = run(kernel, variant.problem(*shape), variant=variant, backend="emulator",
                       source=source, races=True, schedule=schedule, exact=True)
        except Error as error:
            return [error]
        if done.launch.hazards:
            return done.launch.hazards
    return []


@pytest.mark.parametrize("stem, name, line, which, shape", BARRIERS)
def test_a_missing_barrier_is_reported(stem, name, line, which, shape):
    text = CATALOGUE[stem].source.read_text()
    assert found(stem, name, without(text, line, which), shape)


@pytest.mark.parametrize("name, shape, which", [
    ("10_wmma", (9, 9, 40), 0), ("10_wmma", (9, 9, 40), 1), ("10_wmma", (9, 9, 8), 3),
    ("12_wmma_pipeline", (64, 64, 16), 4), ("12_wmma_pipeline", (64, 64, 16), 5),
])
def test_a_missing_barrier_of_a_warp_is_reported(name, shape, which):
    """Those of the fragments' header: before and behind what goes through shared memory."""
    text = CATALOGUE[name].source.read_text()
    header = (INCLUDE / "wmma.cuh").read_text()
    include = '#include "wmma.cuh"\n'
    assert include in text
    broken = text.replace(include, without(header, "__syncwarp();", which))
    assert found(name, CATALOGUE[name].variants[0].name, broken, shape)
