"""What the search knows of the book: which page teaches which term, and people's words for things.

A term that no page of its own teaches is the glossary's alone, and stands under its name here.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY = "chapters/glossary"
TAUGHT: Mapping[str, tuple[str, ...]] = {
    "chapters/method": (
        "latency", "latency hiding", "arithmetic intensity", "roofline", "ridge point",
        "bottleneck", "stall", "account of issue slots", "issue slot", "stale", "measured",
        "modelled", "occupancy",
    ),
    "chapters/01_naive": (
        "thread", "lane", "grid", "request", "sector", "wavefront", "coalescing",
        "L2", "FMA", "NVRTC",
    ),
    "chapters/02_shared_tile": ("shared memory", "L1", "DRAM", "tile", "barrier", "SASS",
                                "data pipe"),
    "chapters/04_register_tile": ("register",),
    "chapters/05_bank_conflicts": ("bank", "bank conflict"),
    "chapters/06_vectorized": ("vectorised access",),
    "chapters/07_double_buffer": ("double buffering",),
    "chapters/08_warp_tile": ("warp",),
    "chapters/09_fp32_limit": ("register bank",),
    "chapters/10_wmma": ("tensor core", "WMMA", "fragment", "FP16"),
    "chapters/12_wmma_pipeline": ("named barrier", "warp specialisation"),
    "chapters/14_ldmatrix": ("ldmatrix", "mma"),
    "chapters/16_cp_async": ("cp.async", "group", "stage", "ring"),
    "chapters/17_wgmma": ("WGMMA", "warpgroup", "accumulator", "swizzle"),
    "chapters/18_tma": ("TMA", "tensor map", "mbarrier", "parity", "asynchronous proxy",
                        "deadlock"),
    "chapters/20_persistent": ("persistent kernel", "programmatic launch", "raster"),
    "chapters/layouts": ("slab", "atom"),
    "chapters/21_clusters": ("cluster", "multicast"),
    "chapters/22_few_tiles": ("split-K",),
    "chapters/23_stream_k": ("stream-K",),
    "chapters/25_epilogue": ("epilogue",),
    "chapters/26_fp8": ("E4M3", "scale", "promotion"),
    "chapters/27_tcgen05": ("tcgen05", "tensor memory", "matrix descriptor"),
    "chapters/28_cta_pairs": ("CTA pair", "launch control"),
    "chapters/rivals": ("cuBLAS",),
    "chapters/scoreboard": ("TF32", "recorded"),
    "chapters/emulator": ("race", "reported", "GEMM"),
    GLOSSARY: (
        "SM", "block", "register spill", "HBM", "throughput", "active warp",
        "memory-bound", "compute-bound", "busiest unit", "interleaved timing",
        "relative error in norm", "cubin", "stmatrix", "emulated",
        "memory-level parallelism", "tolerance", "sub-partition",
        "cache line", "broadcast", "software pipelining", "operand cache", "register file",
        "wave quantisation", "PTX", "commit (tcgen05)", "step", "side step", "turn",
    ),
}

# What people say, as a pattern of whole words, and how the book says it.
MEANT: Mapping[str, str] = {
    "(?:non-?)?determinis(?:m|tic)|reproducible|bitwise": "same bits every order",
    "toolchain": "compile CUDA NVRTC compiler",
    "_?scaled_mm|(?<!wave )quanti[sz](?:ed?|ation)": "FP8 scale",
    "(?:cuda )?(?:out of memory|oom)": "stages fit shared memory",
    "tensor cores? (?:are |is )?(?:so )?slow": "tensor cores share of the peak",
    "(?:why is )?(?:my )?kernel (?:is )?(?:so )?slow": "the method what a kernel waits for",
    "slow|slower than expected": "waits bottleneck",
    "illegal memory access|segfault|out of bounds": "access outside an array",
    "hangs?|stuck": "deadlock",
    "race conditions?|data races?": "races",
    "fusion|fusing": "fused",
    "skinny|gemv|decode|small batch(?: inference)?": "few tiles split-K",
    "lda|ldb|leading dimensions?|unaligned|misaligned rows?": "any row",
    "nsight|nsight compute|ncu|nsys": "profile",
    "coalesced": "coalescing",
    "accuracy|precision|rounding errors?": "bits error",
    "cute": "layouts fragment swizzle descriptor",
}
# Pages that repeat, list or look up what others teach, with what their sections count for.
PRIORS: Mapping[str, float] = {
    "chapters/fp32": 0.5, "chapters/tensor_cores": 0.5, "chapters/claims": 0.4,
    "chapters/course": 0.4, "chapters/objectives": 0.5, "chapters/references": 0.3,
    "chapters/scoreboard": 0.7, "chapters/index": 0.4, GLOSSARY: 0.8,
}
RECORDS = 0.2  # what those of a record's page count for: they are found by a variant's name


def pages() -> dict[str, str]:
    """The page that teaches each term, in lower case."""
    return {term.lower(): page for page, terms in TAUGHT.items() for term in terms}
