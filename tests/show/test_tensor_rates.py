"""Tensor-core kernels: boxes, copies, roofs, counters of large problems, units of a T4."""

from functools import partial

import numpy as np
import pytest

from lib.chapter import Chapter
from lib.gpus import GPUS
from lib.kernels.catalogue import find
from lib.run.runner import run
from lib.show import bottleneck as busiest
from lib.show import bottleneck as scaling
from lib.show import display, roofline
from lib.show.banks import describe_copy
from lib.show.bottleneck import emulated_times
from lib.show.coalescing import Access
from tests.show.conftest import strided

T4 = GPUS["T4"]


def test_copies_of_one_line_to_one_line_go_together():
    straight = strided(1, bytes_per_lane=16)
    assert describe_copy(straight, straight, True).wavefronts == 4
    assert describe_copy(straight, straight, False).wavefronts == 4
    lanes = np.arange(32)
    short = Access(lanes // 4 * 512 + lanes % 4 * 16, np.ones(32, bool), 16)  # rows of 64 bytes
    found = describe_copy(straight, short, True)
    assert (found.wavefronts, found.ideal) == (8, 4)
    halves = Access(lanes * 64, np.ones(32, bool), 16)
    with pytest.raises(ValueError, match="not known"):
        describe_copy(halves, Access(lanes * 32, np.ones(32, bool), 16), True)
    assert describe_copy(halves, straight, False).wavefronts == 16
    with pytest.raises(ValueError, match="16 bytes"):
        describe_copy(strided(1), strided(1), True)


@pytest.mark.parametrize("opcode, product", [
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "mma.m16n8k8"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.m16n8k16"),
    ("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32", "mma.m16n8k16"),
    ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "wgmma"),
    *((f"wgmma.mma_async.sync.aligned.m64n64k32.f32.{types}", roofline.FP8)
      for types in ("e4m3.e4m3", "e5m2.e5m2", "e4m3.e5m2")),
    ("wgmma.fence.sync.aligned", None), ("fma.rn.f32", None),
])
def test_which_instruction_multiplies(opcode, product):
    assert roofline.product_of(["add.s32", opcode]) == product


def test_counters_of_a_large_problem():
    """One emulated block at two depths gives those of four blocks at a third, exactly."""
    kernel = find("14_ldmatrix")
    variant = kernel.variants[0]
    M, N = variant.tile

    def counters(rows, columns, K):
        problem = variant.problem(rows, columns, K)
        done = run(kernel, problem, variant=variant, backend="emulator", exact=True)
        return done.launch.trace.counters()

    found = scaling.scaled(counters(M, N, 64), counters(M, N, 128), (64, 128), K=256, blocks=4)
    assert found == counters(2 * M, 2 * N, 256)
    with pytest.raises(ValueError, match="tell nothing"):
        scaling.scaled({}, {}, (64, 64), K=1, blocks=1)
    with pytest.raises(ValueError, match="no whole number"):
        scaling.scaled({"x": 1}, {"x": 2}, (64, 128), K=96, blocks=1)


def test_what_a_t4_would_saturate():
    """Padding and single buffers ask more of a T4's shared memory than of its tensor cores."""
    times = partial(emulated_times, "15_turing_limit", gpu=GPUS["T4"])
    start, limit = (times(name, size=1024) for name in ("padded", "tile_128x256"))
    assert start["tensor pipe"] == limit["tensor pipe"]
    assert busiest.longest(start) == "shared memory"
    assert busiest.longest(limit) == "tensor pipe"
    with pytest.raises(ValueError, match="no multiple"):
        times("padded", size=1000)


def test_pages_draw_copies_and_say_what_has_none():
    with display.collected() as figures:
        Chapter("16_cp_async").coalescing("tile_128x256")
        Chapter("16_cp_async").banks("tile_128x256")
    copied = figures[0].text.split("A[(row0 + ar) * K + ac * 8] ")[1]
    assert "16 sectors 100% useful" in copied.split("copy ")[0]
    assert "storage" in figures[1].text and "4 wavefronts, ideal 4" in figures[1].text
    with pytest.raises(ValueError, match="draw its boxes"):
        Chapter("20_persistent").coalescing("staged")
