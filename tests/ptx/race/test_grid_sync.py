"""this_grid().sync(): all blocks of a cooperative launch wait for each other."""

from functools import cache

import numpy as np
import pytest

from lib import ptx

from ..conftest import compile_text, each_schedule, function_of, s32s

SOURCE = """
#include <cooperative_groups.h>
extern "C" __global__ void k(int* a, int* b) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    a[i] = i * 3;
    SYNC;
    b[i] = a[(i + 77) % grid.size()];
    grid.sync();
    a[i] = b[(i + 5) % grid.size()];
}
"""


@cache
def kernel(sync: str, arch: str) -> ptx.Function:
    return function_of(compile_text(SOURCE.replace("SYNC", sync), arch))


@each_schedule
@pytest.mark.parametrize("arch", ["compute_75", "compute_90a"])
def test_the_grid_meets(arch, schedule):
    i = np.arange(256)
    a, b = s32s((2, 256))
    launch = kernel("grid.sync()", arch)(4, 64, (a, b), races=True, schedule=schedule)
    exact = 3 * ((i + 77) % 256)
    assert (b == exact).all() and (a == exact[(i + 5) % 256]).all()
    assert not launch.hazards, launch.hazards[:2]
