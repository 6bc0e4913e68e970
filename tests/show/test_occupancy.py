"""Occupancy against values worked out by hand from the CUDA Occupancy Calculator's rules."""

import pytest

from lib.gpus import GPUS
from lib.show.occupancy import occupancy


@pytest.mark.parametrize(
    ("gpu", "registers", "shared", "threads", "blocks", "warps", "limited_by"),
    [
        # T4: 32 warps an SM; 256 threads are 8 warps, so 4 blocks fill it.
        ("T4", 32, 0, 256, 4, 32, "warps"),
        # T4: one block of 1,024 threads is all 32 warps.
        ("T4", 40, 8192, 1024, 1, 32, "registers and warps"),
        # T4: 32-thread blocks stop at 16 blocks: half the warps.
        ("T4", 32, 0, 32, 16, 16, "blocks"),
        # T4: 33 KiB twice is more than 64 KiB, so one block of 8 warps.
        ("T4", 32, 33 * 1024, 256, 1, 8, "shared memory"),
        # H100: 40 registers are 1,280 a warp; 16,384 // 1,280 = 12 warps a sub-partition, 48 an
        # SM: one block of 32 warps, not two.
        ("H100", 40, 8192, 1024, 1, 32, "registers"),
        # H100: 32 registers are 1,024 a warp: 64 warps, two blocks.
        ("H100", 32, 8192, 1024, 2, 64, "registers and warps"),
        # A100: (48 + 1) KiB thrice is 147 of 164 KiB; a fourth does not fit.
        ("A100", 64, 48 * 1024, 256, 3, 24, "shared memory"),
        # A100: 80 registers are 2,560 a warp; 16,384 // 2,560 = 6 a sub-partition, 24 an SM,
        # where dividing the whole register file (65,536 // 2,560) would say 25.
        ("A100", 80, 0, 32, 24, 24, "registers"),
        # A100: 152 registers are 4,864 a warp, 3 a sub-partition, 12 an SM: two blocks of 5 warps.
        ("A100", 152, 0, 160, 2, 10, "registers"),
        # H100's largest block: 227 KiB + 1 KiB reserved is the whole 228 KiB.
        ("H100", 168, 227 * 1024, 384, 1, 12, "registers and shared memory"),
    ],
)
def test_known_values(gpu, registers, shared, threads, blocks, warps, limited_by):
    found = occupancy(GPUS[gpu], registers, shared, threads)
    assert (found.blocks, found.warps) == (blocks, warps)
    assert found.limited_by == limited_by
    assert found.fraction == warps / GPUS[gpu].warps_per_sm


def test_limits_name_all_four_resources():
    found = occupancy(GPUS["H100"], 40, 8192, 1024)
    # (8,192 + 1,024) B a block: 233,472 // 9,216 = 25.
    assert found.limits == {"registers": 1, "shared memory": 25, "warps": 2, "blocks": 32}
    assert found.used == {
        "registers": 32 * 1280 / 65536,
        "shared memory": 9216 / 233472,
        "warps": 0.5,
        "blocks": 1 / 32,
    }


def test_shared_memory_is_rounded_up_and_one_kib_reserved_on_ampere():
    # T4 allocates 256 B at a time: 4,097 B become 4,352 B, of which 65,536 B hold 15.
    assert occupancy(GPUS["T4"], 16, 4097, 32).limits["shared memory"] == 15
    # A100: 4,097 + 1,024 = 5,121 becomes 5,248 B: 167,936 // 5,248 = 32.
    assert occupancy(GPUS["A100"], 16, 4097, 32).limits["shared memory"] == 32


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "words"),
    [
        (32, 0, 1025, "1 to 1024 threads"),
        (256, 0, 32, "1 to 255 registers"),
        (32, 65 * 1024, 32, "65,536 B of shared memory"),
        (65, 0, 1024, "do not fit"),  # 65 registers are 2,304 a warp; 32 warps need 73,728
        # 80 registers are 2,560 a warp: 25 warps need 64,000 of 65,536, but no quarter has seven.
        (80, 0, 25 * 32, "do not fit"),
    ],
)
def test_a_block_that_cannot_be_launched_is_an_error(registers, shared, threads, words):
    with pytest.raises(ValueError, match=words):
        occupancy(GPUS["T4"], registers, shared, threads)


def test_registers_are_handed_out_in_whole_units():
    """33 a thread are 1,056 a warp, of which 1,280 are taken: 12 warps of a sub-partition, not 15.
    """
    assert occupancy(GPUS["H100"], 33, 0, 32).limits["registers"] == 4 * 12
