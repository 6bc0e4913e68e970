"""The traffic that a staged tile leaves, against the kernels' own traces."""

import pytest

from lib.kernels import catalogue as kernels
from lib.run import runner
from lib.show.staging import Staging


def counted(stem, variant, n=128):
    """Bytes of sectors and of wavefronts for each multiply-add of an emulated run."""
    kernel = kernels.find(stem)
    chosen = kernel.variant(variant)
    done = runner.run(kernel, chosen.problem(n, n, n), variant=chosen, backend="emulator")
    found = done.launch.trace.counters()
    return found["global_load_sectors"] * 32 / n**3, found["shared_wavefronts"] * 128 / n**3


def of(stem, variant):
    chosen = kernels.find(stem).variant(variant)
    return Staging(chosen.tile, chosen.schedule.warp)


@pytest.mark.parametrize("variant", ["warps_32x32", "tile_32x64"])
def test_bytes_are_those_of_the_trace(variant):
    model = of("11_wmma_shared", variant)
    assert (model.global_bytes, model.shared_bytes) == counted("11_wmma_shared", variant)


@pytest.mark.parametrize("variant, size", [("one_fragment", 16), ("four_fragments", 32)])
def test_fragments_from_global_memory_too(variant, size):
    model = Staging(None, (size, size))
    assert (model.global_bytes, model.shared_bytes) == counted("10_wmma", variant)
    assert model.warps == 1


def test_a_larger_block_asks_for_less_and_a_larger_warp_reads_less():
    small, large = Staging((64, 64), (32, 32)), Staging((128, 128), (64, 64))
    assert large.global_bytes == small.global_bytes / 2
    assert large.intensity("L2", 4096) == 64 and small.intensity("L2", 4096) == 32
    assert small.warps == large.warps == 4 and large.sums == 4 * small.sums == 128
    assert Staging((64, 64), (32, 32), store_bytes=16).shared_bytes < small.shared_bytes


def test_what_can_t_be_is_refused():
    with pytest.raises(ValueError, match="don't divide"):
        Staging((64, 64), (48, 32))
    with pytest.raises(ValueError, match="no level"):
        Staging((64, 64), (32, 32)).intensity("L3", 64)
