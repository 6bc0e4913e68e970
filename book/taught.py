"""Which page teaches which term of the glossary: the search shows it first.

A term that no page of its own teaches is the glossary's alone, and stands under its name here.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY = "chapters/glossary"
TAUGHT: Mapping[str, tuple[str, ...]] = {
    "chapters/method": (
        "latency", "latency hiding", "arithmetic intensity", "roofline", "ridge point",
        "bottleneck", "account of issue slots", "issue slot", "stale", "measured", "modelled",
    ),
    "chapters/01_naive": (
        "thread", "lane", "grid", "request", "sector", "wavefront", "coalescing",
        "L2", "FMA", "NVRTC", "occupancy",
    ),
    "chapters/02_shared_tile": ("shared memory", "L1", "DRAM", "tile", "barrier", "SASS"),
    "chapters/04_register_tile": ("register", "PTX"),
    "chapters/05_bank_conflicts": ("bank", "bank conflict"),
    "chapters/06_vectorized": ("vectorised access",),
    "chapters/07_double_buffer": ("double buffering",),
    "chapters/08_warp_tile": ("warp", "stall"),
    "chapters/09_fp32_limit": ("register bank",),
    "chapters/10_wmma": ("tensor core", "WMMA", "fragment", "FP16"),
    "chapters/12_wmma_pipeline": ("named barrier", "warp specialisation", "epilogue"),
    "chapters/14_ldmatrix": ("ldmatrix", "mma"),
    "chapters/16_cp_async": ("cp.async",),
    "chapters/17_wgmma": ("WGMMA", "warpgroup", "accumulator", "swizzle"),
    "chapters/18_tma": ("TMA", "tensor map", "mbarrier", "asynchronous proxy", "deadlock"),
    "chapters/20_persistent": ("persistent kernel", "programmatic launch"),
    "chapters/21_clusters": ("cluster", "multicast"),
    "chapters/22_few_tiles": ("split-K",),
    "chapters/23_stream_k": ("stream-K",),
    "chapters/26_fp8": ("E4M3", "scale", "promotion"),
    "chapters/27_tcgen05": ("tcgen05", "tensor memory", "commit (tcgen05)", "matrix descriptor"),
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
        "wave quantisation",
    ),
}


def pages() -> dict[str, str]:
    """The page that teaches each term, in lower case."""
    return {term.lower(): page for page, terms in TAUGHT.items() for term in terms}
