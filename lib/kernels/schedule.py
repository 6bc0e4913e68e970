"""How a kernel divides a product, and the arguments of its C++ template that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lib.kernels.frozen import frozen

# NumPy's names of types and what they are called in CUDA.
CUDA_TYPES = {"float32": "float", "float16": "half", "bfloat16": "__nv_bfloat16",
              "float8_e4m3fn": "__nv_fp8_e4m3", "float4_e2m1fn": "__nv_fp4_e2m1"}

# A template's argument; an enumerator by its name.
Argument = int | bool | str


@dataclass(frozen=True)
class Schedule:
    """Tiles, and who computes and moves which part of them when.

    What a kernel's template has no argument for is 0, False or one.
    """

    tile: tuple[int, int]  # rows and columns of C that one block computes
    step: int  # how far the main loop goes along K in one step
    # warp, thread: rows and columns of C that a warp or a thread computes.
    warp: tuple[int, int] = (0, 0)
    thread: tuple[int, int] = (1, 1)
    vec: int = 0  # elements of A and B in a vector
    stages: int = 0  # tiles of A and of B in the ring that is filled ahead
    # Rows of tiles, or of clusters, that are gone through together, column by column.
    group: int = 0
    blocks: int = 0  # blocks that an SM must hold at a time: a promise to the compiler
    cluster: tuple[int, int] = (1, 1)  # tiles of a cluster, down and across C
    split: int = 1  # blocks of a cluster that share the steps of K of one tile
    in_flight: int = 0  # steps whose products may be under way when the next one's are asked for
    # Whether the next tiles wait in registers while the present ones are multiplied.
    prefetch: bool = False
    # Slices of C in shared memory of each consumer, which tensor maps store; the lanes store C if
    # 0.
    staged: int = 0
    # Whether each consumer has a tile of its own, in turn, where otherwise both share one.
    ping_pong: bool = False
    swapped: bool = False  # whether the tensor cores get their operands in the other order, Bᵀ·Aᵀ
    loaders: int = 0  # warpgroups that read A and B where TMA can't
    # Arguments that mean something to one kernel alone, by their names in its template.
    own: Mapping[str, Argument] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "own", frozen(self.own))

    def with_own(self, **changes: Argument) -> Schedule:
        """The schedule with other arguments of the kernel's own."""
        return replace(self, own={**self.own, **changes})

    def arguments(
        self, template: Iterable[str], dtype: str, out: str, b_layout: str, a_layout: str = "row"
    ) -> dict[str, Argument]:
        """The arguments of a template that takes those of these names, in that order.

        `dtype`, `out`, `b_layout`, `a_layout`: types and layouts of the matrices, as a `Problem`
        has them. Raises KeyError if the template takes one that no schedule has.
        """
        known: dict[str, Argument] = {
            "T": CUDA_TYPES[dtype], "TC": CUDA_TYPES[out], "B_BY_ROWS": b_layout == "row",
            "A_BY_ROWS": a_layout == "row", "S": "Strides",
            "TILE": self.tile[0], "BM": self.tile[0], "BN": self.tile[1], "BK": self.step,
            "WM": self.warp[0], "WN": self.warp[1], "TM": self.thread[0], "TN": self.thread[1],
            "VEC": self.vec, "STAGES": self.stages, "GROUP": self.group, "BLOCKS": self.blocks,
            "CLUSTER_M": self.cluster[0], "CLUSTER_N": self.cluster[1], "CLUSTER_K": self.split,
            "IN_FLIGHT": self.in_flight, "PREFETCH": self.prefetch, "STAGED": self.staged,
            "PING_PONG": self.ping_pong, "SWAPPED": self.swapped, "LOADERS": self.loaders,
            **self.own,
        }
        return {name: known[name] for name in template}
