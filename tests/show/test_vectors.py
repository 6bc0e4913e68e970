"""Who loads a tile, held against the emulator's counts of 13_wmma_vectorized."""

import pytest

from lib.kernels import catalogue as kernels
from lib.run import runner
from lib.show.bottleneck import HMMA_1688
from lib.show.vectors import Step, TileLoad


@pytest.mark.parametrize("name", ["vectors_128x128", "vectors_32x64", "halves_32x64"])
def test_requests_and_sectors_are_those_of_the_trace(name):
    kernel = kernels.find("13_wmma_vectorized")
    variant = kernel.variant(name)
    M, N = variant.tile
    found = []
    for K in (64, 128):
        run = runner.run(kernel, variant.problem(M, N, K), variant=variant, backend="emulator",
                         exact=True)
        found.append(run.launch.trace.counters())
    step = Step(M, N, variant.step, variant.threads, variant.schedule.vec)
    steps = 64 / variant.step
    requests = found[1]["global_load_requests"] - found[0]["global_load_requests"]
    sectors = found[1]["global_load_sectors"] - found[0]["global_load_sectors"]
    assert requests == steps * (step.a.requests + step.b.requests)
    assert sectors == steps * step.sectors * step.products
    assert step.products == M * N * variant.step / HMMA_1688


def test_a_quarter_of_the_lanes_have_work_in_the_worklog_s_tile():
    load = TileLoad(32, 16, threads=256, width=8)
    assert (load.vectors, load.instructions, load.requests, load.lanes) == (64, 8, 2, 8.0)
    assert load.at_work.shape == (1, 8, 32)
    assert load.at_work[0, :2].all() and not load.at_work[0, 2:].any()
    assert TileLoad(32, 16, threads=256, width=1).loads == 2


@pytest.mark.parametrize("threads, width", [(256, 3), (100, 8)])
def test_what_cannot_be_loaded_is_an_error(threads, width):
    with pytest.raises(ValueError, match="multiple"):
        TileLoad(32, 16, threads, width)
