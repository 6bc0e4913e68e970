"""Occupancy against values worked out by hand from the CUDA Occupancy Calculator's rules."""

import pytest

from lib.gpus import GPUS
from lib.show.occupancy import occupancy
from tests.tables import cases


@cases("""
gpu  | registers | shared | threads | blocks | warps | limited_by | why
T4   | 32  | 0      | 256  | 4  | 32 | warps | of 32 an SM, 8 a block
T4   | 40  | 8192   | 1024 | 1  | 32 | registers and warps | one block is all 32 warps
T4   | 32  | 0      | 32   | 16 | 16 | blocks | 16 an SM: half the warps
T4   | 32  | 33792  | 256  | 1  | 8  | shared memory | 33 KiB twice is more than 64 KiB
H100 | 40  | 8192   | 1024 | 1  | 32 | registers \
 | 1,280 a warp; 16,384 // 1,280 = 12 warps a sub-partition, 48 an SM: one block of 32, not two
H100 | 32  | 8192   | 1024 | 2  | 64 | registers and warps | 1,024 a warp: 64 warps, two blocks
A100 | 64  | 49152  | 256  | 3  | 24 | shared memory \
 | (48 + 1) KiB thrice is 147 of 164 KiB; a fourth does not fit
A100 | 80  | 0      | 32   | 24 | 24 | registers \
 | 2,560 a warp; 16,384 // 2,560 = 6 a sub-partition, 24 an SM; all 65,536 // 2,560 would be 25
A100 | 152 | 0      | 160  | 2  | 10 | registers \
 | 4,864 a warp, 3 a sub-partition, 12 an SM: two blocks of 5 warps
H100 | 168 | 232448 | 384  | 1  | 12 | registers and shared memory \
 | the largest block: 227 KiB + 1 KiB reserved is the whole 228 KiB
""")
def test_known_values(gpu, registers, shared, threads, blocks, warps, limited_by, why):
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


@cases("""
registers | shared | threads | words                     | why
32        | 0      | 1025    | 1 to 1024 threads         |
256       | 0      | 32      | 1 to 255 registers        |
32        | 66560  | 32      | 65,536 B of shared memory |
65        | 0      | 1024    | do not fit                | 2,304 a warp; 32 warps need 73,728
80        | 0      | 800     | do not fit \
 | 2,560 a warp: 25 warps need 64,000 of 65,536, but no quarter has seven
""")
def test_a_block_that_cannot_be_launched_is_an_error(registers, shared, threads, words, why):
    with pytest.raises(ValueError, match=words):
        occupancy(GPUS["T4"], registers, shared, threads)


def test_registers_are_handed_out_in_whole_units():
    """33 a thread are 1,056 a warp, of which 1,280 are taken: 12 warps of a sub-partition, not 15.
    """
    assert occupancy(GPUS["H100"], 33, 0, 32).limits["registers"] == 4 * 12
