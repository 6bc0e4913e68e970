"""Sizes that all of NVIDIA's architectures from sm_75 on share, each written once."""

WARP = 32  # lanes
WARPGROUP = 4  # warps that execute a wgmma together
BANKS = 32  # of shared memory, 4 bytes wide each
WAVEFRONT = 128  # bytes of shared memory that one pass delivers: a word from each bank
SECTOR = 32  # bytes of global memory, the least that is fetched
LINE = 128  # bytes of a cache line: four sectors
