"""The tasks of the panels: a question per task, the two runs that answer it, and what is counted.

A task names a change. The panel makes it in its controls, runs the kernel before it and as the
controls then stand, and counts the same thing in both runs; nothing here holds an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lib.panel.bundle import Mistake

# What a run has besides its counters and the cost of single accesses (`lib.panel.render.COUNTS`).
RACES, WRONG = "races", "wrong"
# How these are said behind a number.
WORDS = {RACES: "pairs of source lines that race", WRONG: "elements of C that are wrong"}
# The kernel's first barrier left out.
NO_BARRIER: Mapping[str, Any] = {"mistake": "bar.sync"}
_CUBE = {"M": 64, "N": 64, "K": 64}  # where one order of warps at a time takes too long on more


@dataclass(frozen=True)
class Task:
    """One question that a change of the kernel, or of how it runs, answers.

    Attributes
    ----------
    question : str
    asked : str
        What is counted: a counter of the run, ``"races"``, ``"wrong"``, or ``SPACE KIND ARRAY
        COUNT``, what one access of the watched warp takes.
    after : dict
        The controls that the task sets; others stay at their defaults. A ``mistake`` is named by
        words of its line or its instruction.
    before : dict
        Those of the run that it is held against: by default the first variant, untouched.
    """

    question: str
    asked: str
    after: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variants(self) -> list[str]:
        """The variants that it names."""
        return [run["variant"] for run in (self.before, self.after) if "variant" in run]


def _to(variant: str, before: str = "") -> dict[str, Mapping[str, Any]]:
    """From one variant to another, or from the first one."""
    return {"after": {"variant": variant}, "before": {"variant": before} if before else {}}


TASKS: Mapping[str, Sequence[Task]] = {
    "01_naive": (
        Task("Swap the mapping: the 32 lanes of a warp compute a column of C instead of a row. How "
             "many sectors does one load of A touch?", "global load A sectors", **_to("swapped")),
        Task("With the same swap, how many sectors do all stores of C touch?",
             "global_store_sectors", **_to("swapped")),
        Task("Make C one column wider, N = 129, so that its rows begin anywhere in a sector. How "
             "many sectors does one store of C touch?", "global store C sectors", {"N": 129}),
    ),
    "02_shared_tile": (
        Task("A alone goes through shared memory; now B does, too. How many sectors do all loads "
             "of global memory touch?", "global_load_sectors", **_to("tile32", "only_a")),
        Task("Leave out the barrier between filling the tiles and reading them. How many pairs of "
             "source lines race?", RACES, NO_BARRIER),
        Task("On a cube of 64, leave out the other barrier, which keeps a tile until all have read "
             "it, and let the highest warp run first. How many elements of C are wrong?", WRONG,
             {"mistake": "everyone has read", "schedule": "highest", **_CUBE}, _CUBE),
    ),
    "03_strip": (
        Task("Number the threads along their strips first, so that the lanes of a warp read 32 "
             "rows of A's tile. How many wavefronts does one load of As take?",
             "shared load As wavefronts", **_to("strips_first")),
        Task("A thread computed one element of C; now it computes a strip of eight. How many loads "
             "of shared memory are left?", "shared_load_instructions",
             **_to("columns_first", "element")),
        Task("With the threads numbered along their strips, how many bytes of each 32-byte sector "
             "does one store of C use?", "global store C bytes_per_sector", **_to("strips_first")),
    ),
    "04_register_tile": (
        Task("A block of 8×8 threads computed 64×64 elements; now one of 16×16 computes 128×128. "
             "How many wavefronts does one load of As take?", "shared load As wavefronts",
             **_to("tile8", "block64")),
        Task("With the same larger tile, how many sectors do all loads of global memory touch?",
             "global_load_sectors", **_to("tile8", "block64")),
        Task("Leave out the barrier between filling the tiles and reading them. How many pairs of "
             "source lines race?", RACES, NO_BARRIER),
    ),
    "05_bank_conflicts": (
        Task("A thread's eight columns lay side by side; now neighbours' columns alternate. How "
             "many wavefronts does one load of Bs take?", "shared load Bs wavefronts",
             **_to("spread", "together")),
        Task("02's tile of A is stored transposed, and now its columns are XORed with its rows. "
             "How many wavefronts does one store of As take?", "shared store As wavefronts",
             **_to("tile_swizzled", "tile_transposed")),
        Task("Pad the rows of A's tile by two floats. How many wavefronts does one store of As "
             "take?", "shared store As wavefronts", **_to("spread_padded")),
    ),
    "06_vectorized": (
        Task("One load of shared memory brought a float per lane; now it brings four. How many "
             "wavefronts does one load of Bs take?", "shared load Bs wavefronts",
             **_to("shared_128", "transposed")),
        Task("With 128-bit loads, how many loads of shared memory does the run issue?",
             "shared_load_instructions", **_to("shared_128", "transposed")),
        Task("Let the loads of global memory be of 128 bits, too. How many sectors does one load "
             "of A touch?", "global load A sectors", **_to("global_128", "shared_128")),
    ),
    "07_double_buffer": (
        Task("Leave out the one barrier of the main loop. How many pairs of source lines race?",
             RACES, NO_BARRIER),
        Task("Leave that barrier out of the loop that has one buffer. How many pairs of source "
             "lines race there?", RACES, {**NO_BARRIER, "variant": "staged"}, NO_BARRIER),
        Task("02's tile had one buffer and loaded a tile when it was needed; now the next tile is "
             "loaded ahead into a second one. How many stores to shared memory does the run issue?",
             "shared_store_instructions", **_to("tile_both", "tile_one_buffer")),
    ),
    "08_warp_tile": (
        Task("The lanes of a warp lay row by row over its rectangle; now they lie in pairs. How "
             "many wavefronts does one load of Bs take?", "shared load Bs wavefronts",
             **_to("warp_64x32", "unpaired")),
        Task("Let a warp own 64×64 instead. How many loads of shared memory does the run issue?",
             "shared_load_instructions", **_to("warp_64x64")),
        Task("Leave out the barrier of the main loop. How many pairs of source lines race?",
             RACES, NO_BARRIER),
    ),
    "09_fp32_limit": (
        Task("Read the floats of one k while those of the k before are multiplied. How many loads "
             "of shared memory does the run issue?", "shared_load_instructions",
             **_to("ahead", "unguarded")),
        Task("C has 128 rows, and the block's tile grows from 64 to 256. How many multiply-adds "
             "do the threads execute?", "ffma_thread_instructions", **_to("tall", "medium")),
        Task("Leave out the barrier of the main loop. How many pairs of source lines race?",
             RACES, NO_BARRIER),
    ),
    "10_wmma": (
        Task("A warp computed one fragment of C; now it computes 2×2 of them. How many loads of "
             "global memory does the run issue?", "global_load_requests", **_to("four_fragments")),
        Task("With 2×2 fragments per warp, how many sectors do all loads of global memory touch?",
             "global_load_sectors", **_to("four_fragments")),
    ),
    "11_wmma_shared": (
        Task("The rows of the tiles had no padding; now each has eight halves of it. How many "
             "wavefronts does one load of a fragment of A take?", "shared ldmatrix As wavefronts",
             **_to("warps_32x32", "unpadded")),
        Task("Let a block compute 32×64 of C instead of 64×64. How many sectors do all loads of "
             "global memory touch?", "global_load_sectors", **_to("tile_32x64")),
        Task("Leave out the barrier between filling the tiles and reading them. How many pairs of "
             "source lines race?", RACES, NO_BARRIER),
    ),
    "12_wmma_pipeline": (
        Task("Leave out the barrier at the end of a step, behind which the next tiles are whole. "
             "How many pairs of source lines race?", RACES,
             {"mistake": "the next tiles are whole"}),
        Task("Leave out the barrier before the main loop instead. How many pairs of source lines "
             "race?", RACES, NO_BARRIER),
        Task("Every warp loaded and multiplied; now half of them load and the others multiply. How "
             "many stores to shared memory does the run issue?", "shared_store_instructions",
             **_to("roles")),
    ),
    "13_wmma_vectorized": (
        Task("A load brought one half per lane; now it brings eight. How many sectors does one "
             "load of B touch?", "global load B sectors",
             **_to("vectors_128x128", "halves_128x128")),
        Task("With eight halves per load, how many loads of global memory does the run issue?",
             "global_load_requests", **_to("vectors_128x128", "halves_128x128")),
    ),
    "14_ldmatrix": (
        Task("WMMA loaded the fragments; now ldmatrix does, four 8×8 matrices at a time. How many "
             "ldmatrix instructions does the run execute?", "ldmatrix_instructions",
             **_to("k8", "wmma")),
        Task("Leave out the barrier between filling the tiles and reading them. How many pairs of "
             "source lines race?", RACES, NO_BARRIER),
    ),
    "15_turing_limit": (
        Task("C is 128×256, and the block's tile shrinks from 128×256 to 64×128. How many sectors "
             "do all loads of global memory touch?", "global_load_sectors",
             {"variant": "tile_64x128", "N": 256}, {"N": 256}),
        Task("C is 128×128, and the tile shrinks in the same way. How many mma does the run "
             "execute?", "mma_instructions", **_to("tile_64x128")),
        Task("Leave out the barrier of the main loop. How many pairs of source lines race?", RACES,
             {"mistake": "the present ones are in registers"}),
    ),
    "16_cp_async": (
        Task("Leave out the barrier between filling a stage and reading it. How many pairs of "
             "source lines race?", RACES, NO_BARRIER),
        Task("Leave out the barrier of the main loop instead. How many pairs of source lines race?",
             RACES, {"mistake": "everyone's part of them"}),
    ),
    "17_wgmma": (
        Task("Leave out the fence between the threads' copies and wgmma, which reads through the "
             "asynchronous proxy. How many pairs of source lines race?", RACES,
             {"mistake": "fence_async_proxy"}),
        Task("Let C be of bfloat16, not FP32. How many bytes of each 32-byte sector does one "
             "store of C use?", "global store C bytes_per_sector", **_to("bf16_column")),
        Task("Make C eight rows taller than a tile, M = 136. How many wgmma does the run issue?",
             "wgmma_instructions", {"M": 136}),
    ),
    "18_tma": (
        Task("Leave out the fence behind the initialisation of the mbarriers. How many pairs of "
             "source lines race?", RACES, {"mistake": "mbarrier_init_fence"}),
        Task("Leave out wgmma.fence before the products instead. How many pairs of source lines "
             "race?", RACES, {"mistake": "wgmma_fence"}),
        Task("TMA fills what lies beyond C's edge with zeros. Make C eight rows taller than a "
             "tile, M = 136. How many wgmma does the run issue?", "wgmma_instructions", {"M": 136}),
    ),
    "19_warp_specialization": (
        Task("C is 128×256, and the tile of both consumers shrinks from 128×256 to 128×128. How "
             "many wavefronts does shared memory take for all operands of wgmma?",
             "wgmma_wavefronts", {"variant": "cooperative", "N": 256}, {"N": 256}),
        Task("Leave out the fence behind the initialisation of the mbarriers, through which "
             "producer and consumers meet. How many pairs of source lines race?", RACES,
             {"mistake": "mbarrier_init_fence"}),
        Task("Leave out wgmma.fence before the products instead. How many pairs of source lines "
             "race?", RACES, {"mistake": "wgmma_fence"}),
    ),
    "20_persistent": (
        Task("C left from the registers of its lanes; now it goes through shared memory and TMA. "
             "How many requests to store C do warps make?", "global_store_requests",
             **_to("staged", "persistent")),
        Task("With C through shared memory, how many stores to shared memory does the run issue?",
             "shared_store_instructions", **_to("staged", "persistent")),
    ),
    "21_clusters": (
        Task("C is 256×256. A block's tile shrinks from 128×256 to 128×128, and each "
             "consumer has tiles of its own. How many wavefronts does shared memory take for all "
             "operands of wgmma?",
             "wgmma_wavefronts", {"variant": "ping_pong", "M": 256, "N": 256},
             {"M": 256, "N": 256}),
        Task("C leaves through shared memory and TMA. Leave out the fence between the threads' "
             "stores and TMA's reads. How many pairs of source lines race?", RACES,
             {"mistake": "fence.proxy.async"}),
        Task("Leave out the barrier between those stores and TMA's reads instead. How many pairs "
             "of source lines race?", RACES, {"mistake": "bar.sync"}),
    ),
    "22_few_tiles": (
        Task("Each block had a tile's K to itself; now four blocks share it. How many stores to "
             "shared memory does the run issue?", "shared_store_instructions",
             **_to("split", "unsplit")),
        Task("With four blocks for a tile, how many requests to store C do warps make?",
             "global_store_requests", **_to("split", "unsplit")),
    ),
    "23_stream_k": (
        Task("Make C eight columns wider than a tile, N = 136. How many wgmma does the run issue?",
             "wgmma_instructions", {"N": 136}),
        Task("Leave out the fence behind the initialisation of the mbarriers. How many pairs of "
             "source lines race?", RACES, {"mistake": "mbarrier_init_fence"}),
        Task("C leaves through shared memory and TMA. Leave out the commit of those stores, "
             "without which no wait covers them. How many pairs of source lines race?", RACES,
             {"mistake": "cp.async.bulk.commit_group"}),
    ),
    "24_any_row": (
        Task("Make B one column wider, N = 129, so that its rows begin anywhere in a sector. How "
             "many sectors do all loads of global memory touch?", "global_load_sectors",
             {"N": 129}),
        Task("Let C be of FP16 instead of FP32. How many requests to store C do warps make?",
             "global_store_requests", **_to("half")),
        Task("Leave out the fence between the threads' stores to shared memory and wgmma's reads. "
             "How many pairs of source lines race?", RACES, {"mistake": "fence_async_proxy"}),
    ),
    "25_epilogue": (
        Task("Add a residual, a matrix of C's shape. How many sectors do all loads of global "
             "memory touch?", "global_load_sectors", **_to("residual")),
        Task("Add a bias and GELU by its tanh. How many multiply-adds do the threads execute?",
             "ffma_thread_instructions", **_to("bias_gelu")),
        Task("Leave out the fence between the slice that the lanes wrote and TMA's store of it. "
             "How many pairs of source lines race?", RACES, {"mistake": "fence.proxy.async"}),
    ),
    "26_fp8": (
        Task("Blocks of 128 shared a scale, and each partial sum was promoted; now a row of A and "
             "a column of B have one scale each. How many multiply-adds do the threads execute?",
             "ffma_thread_instructions", **_to("vector")),
        Task("Let C be of FP32 instead of bfloat16. How many wavefronts does shared memory take?",
             "shared_wavefronts", **_to("two_parts_float")),
        Task("Leave out wgmma.fence before the products. How many pairs of source lines race?",
             RACES, {"mistake": "wgmma.fence"}),
    ),
    "27_tcgen05": (
        Task("C left through shared memory and TMA; now the lanes store it from their registers. "
             "How many requests to store C do warps make?", "global_store_requests",
             **_to("unstaged")),
        Task("C is 128×256, one tile; halve the tile's columns. How many tcgen05.mma does the run "
             "issue?", "tcgen05_instructions", {"variant": "narrow", "N": 256}, {"N": 256}),
        Task("Leave out the fence between C's slices in shared memory and TMA, which stores them. "
             "How many pairs of source lines race?", RACES, {"mistake": "fence.proxy.async"}),
    ),
    "28_cta_pairs": (
        Task("A pair took its tiles in a fixed order; now it asks the launch control for the next. "
             "How many loads of shared memory does the run issue?", "shared_load_instructions",
             **_to("pair", "in_turns")),
        Task("Make K eight elements longer than two steps. How many tcgen05.mma does the run "
             "issue?", "tcgen05_instructions", {"K": 136}),
        Task("Leave out the fence behind the mbarriers' initialisation. How many pairs of source "
             "lines race?", RACES, {"mistake": "mbarrier_init_fence"}),
    ),
}


def named(stem: str) -> list[str]:
    """The variants that a chapter's tasks run."""
    return list(dict.fromkeys(
        name for task in TASKS.get(stem, ()) for name in task.variants))


def subject(stem: str) -> tuple[str, str, str] | None:
    """The access that a chapter is about, by space, kind and array: the first that a task asks of.
    """
    for task in TASKS.get(stem, ()):
        if len(words := task.asked.split()) == 4:
            return words[0], words[1], words[2]
    return None


def settings(run: Mapping[str, Any], mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """What the controls are set to for a run, its mistake by its number.

    Raises
    ------
    ValueError
        If the kernel has no such mistake.
    """
    name = run.get("mistake")
    if name is None:
        return dict(run)
    for number, mistake in enumerate(mistakes):
        if name in mistake.change or name in mistake.source:
            return {**run, "mistake": number}
    raise ValueError(f"no seeded mistake is about {name!r}; there are: "
                     f"{', '.join(one.change for one in mistakes)}")
