"""Where we are in the machine: the tile of each level, its loop, and the bytes that cross to it.

A tile of m × n elements of C needs, for each k, m elements of A and n of B, and does m·n FMAs with
them. If each of them crosses a boundary once, that is 4·(1/m + 1/n) bytes per FMA for floats:
whoever wants fewer bytes at a boundary makes the tile behind it larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lib.ptx.core.machine import SECTOR, WARP
from lib.topics.code.mapping.model import Region, Work

# Rows of C that a warpgroup's instruction computes (PTX ISA, wgmma).
WARPGROUP_ROWS = 64
_STRAY = 1e-3  # stores per wavefront, of a block's first lines
LEVELS = ("grid", "block", "warp", "thread")


@dataclass(frozen=True)
class Level:
    """One level of the machine, and the loop that walks its tile.

    Attributes
    ----------
    name : str
        Of `LEVELS`.
    rows, columns : int
        Of C, that it computes.
    loop : sequence of str
        Lines of the loop nest, in words of code.
    parts : sequence of Region
        The part of this tile that one member of the next level has, counted from the tile's corner.
    boundary : str
        What operands cross to get here.
    recorded : float or None
        Bytes that crossed it per FMA in the recorded run; None where nothing counts them.
    wavefronts : float or None
        Wavefronts of shared memory per 32 multiply-adds in the recorded run, where operands come
        from there, each of up to 128 bytes. No counter has its bytes, since lanes that want the
        same word share one.
    with_stores : bool
        Whether lanes also stored to shared memory, or copied to it, in that run: the counter adds
        these to what crosses, and has none of what TMA writes.
    changed : bool
        Whether this is the level that the version changes.
    item_bytes : int
        Of an element of A and B.
    joint : bool
        Whether nothing crosses to get here, since a warp multiplies as one: the tensor cores read
        operands out of all its lanes' registers, so no lane needs all that its sums need.
    crossing : float or None
        Bytes per FMA, where it isn't operands that cross.
    finding : str
        What the picture shows of the changed level, where it isn't the size of the tiles.
    whose : str
        What fetches an operand once: the level's tile, or a larger one that shares.
    shared_tile : tuple of (str, int, int) or None
        Name, rows and columns of that larger one, where it is an instruction's.
    also : str
        What else crosses at this level, in a few words.
    """

    name: str
    rows: int
    columns: int
    loop: Sequence[str]
    parts: Sequence[Region]
    boundary: str
    recorded: float | None = None
    wavefronts: float | None = None
    with_stores: bool = False
    changed: bool = False
    item_bytes: int = 4
    joint: bool = False
    crossing: float | None = None
    finding: str = ""
    whose: str = "the tile"
    shared_tile: tuple[str, int, int] | None = None
    also: str = ""

    @property
    def bytes_per_fma(self) -> float:
        """Bytes per FMA if each operand crosses the boundary once for the whole tile."""
        if self.crossing is not None:
            return self.crossing
        return self.item_bytes * (1 / self.rows + 1 / self.columns)


@dataclass(frozen=True)
class Nest:
    """What of the picture is a version's own.

    Attributes
    ----------
    changed : tuple of str
        Levels that differ from the version before.
    loop : mapping of str to tuple of str
        Lines of the loop nest by level; ``{m}``, ``{n}`` are the level's tile, ``{step}`` the depth
        of the tiles along K, ``{each}`` how many elements of C a thread has, ``{columns}`` how many
        columns a block has, ``{warp}`` the warp's tile.
    shared : bool
        Whether operands wait in shared memory.
    pair : bool
        Whether two blocks below each other load half of B each, and both use all of it.
    joint : bool
        Whether a warp's lanes multiply as one, on the tensor cores.
    tensor : bool
        Whether the sums lie in tensor memory, and warps get these alone.
    straight : bool
        Whether the tensor cores read both operands from shared memory, for a warpgroup as one.
    finding : str
        What the picture shows, where it isn't the size of the tiles; ``{m}``, ``{n}`` are those of
        the warp's, ``{block}`` the bytes per FMA that a block gets from the L2, and ``{alone}``
        what it would get if no other block shared them.
    """

    changed: tuple[str, ...]
    loop: Mapping[str, tuple[str, ...]]
    shared: bool = True
    pair: bool = False
    joint: bool = False
    tensor: bool = False
    straight: bool = False
    finding: str = ""


_GRID = ("for each tile of C:           # by blocks",)
_TILE = ("for k0 in range(0, K, {step}):",)
_LOAD = ("  shared = the tiles; barrier",)
_WARPS = ("  for each warp’s part:       # by warps",)
_OUTER = ("    for k in range({step}):", "      a[{m}], b[{n}] from shared",
          "      {m}×{n} FMAs in registers")

# Of a version that has no entry of its own.
PLAIN = Nest((), {
    "grid": _GRID, "block": _TILE, "warp": _WARPS,
    "thread": ("    for k in range({step}):", "      {m}×{n} FMAs"),
})

NESTS: dict[str, Nest] = {
    "01_naive": Nest((), {
        "grid": ("for each tile of C:           # by blocks",),
        "block": ("  for each row of it:         # by warps",),
        "warp": ("    for each column:          # by lanes",),
        "thread": ("      for k in range(K):", "        a, b from global memory", "        1 FMA"),
    }, shared=False),
    "02_shared_tile": Nest(("block",), {
        "grid": ("for each tile of C:     # by blocks",),
        "block": ("for k0 in range(0, K, {step}):", "  load tiles As, Bs; barrier",
                  "  use them; barrier"),
        "warp": ("  for each row of it:    # by warps", "    for each column:     # by lanes"),
        "thread": ("      for k in range({step}):", "        a, b from As, Bs", "        1 FMA"),
    }),
    "03_strip": Nest(("block", "warp", "thread"), {
        "grid": _GRID, "block": _TILE + _LOAD,
        "warp": ("  for each {m}×{n} part:       # by warps",),
        "thread": ("    for k in range({step}):", "      b = Bs[k][column]",
                   "      {m} FMAs of As[row][k] and b"),
    }),
    "04_register_tile": Nest(("block", "thread"), {
        "grid": ("for each tile of C:     # by blocks",),
        "block": (*_TILE, "  As, Bs = tiles; barrier"),
        "warp": ("  for each warp’s part:  # by warps",),
        "thread": ("    for k in range({step}):", "      a[{m}], b[{n}] = As, Bs at k",
                   "      sum[{m}][{n}] += a[i] * b[j]"),
    }),
    "05_bank_conflicts": Nest(("thread",), {
        "grid": ("for each tile of C:     # by blocks",),
        "block": (*_TILE, "  As, Bs = tiles; barrier"),
        "warp": ("  for each warp’s part:  # by warps",),
        "thread": ("    for k in range({step}):", "      a[{m}], b[{n}], 16 apart",
                   "      sum[{m}][{n}] += a[i] * b[j]"),
    }),
    "06_vectorized": Nest(("block", "thread"), {
        "grid": ("for each tile of C:     # by blocks",),
        "block": (*_TILE, "  As = Aᵀ, Bs; 4 floats each", "  barrier"),
        "warp": ("  for each warp’s part:  # by warps",),
        "thread": ("    for k in range({step}):", "      4 loads of 4: a[{m}], b[{n}]",
                   "      sum[{m}][{n}] += a[i] * b[j]"),
    }),
    "07_double_buffer": Nest(("block",), {
        "grid": ("for each tile of C:     # by blocks",),
        "block": (*_TILE, "  registers → shared; barrier", "  next tiles → registers"),
        "warp": ("  for each warp’s part:  # by warps",),
        "thread": ("    for k in range({step}):", "      4 loads of 4: a[{m}], b[{n}]",
                   "      sum[{m}][{n}] += a[i] * b[j]"),
    }, finding="A block asks for its next tiles before it multiplies these"),
    "08_warp_tile": Nest(("warp",), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  registers → shared; barrier", "  next tiles → registers"),
        "warp": ("  for each {m}×{n} warp tile:", "    # 32 lanes, in pairs"),
        "thread": _OUTER,
    }, finding="A warp owns a rectangle of {m}×{n}, its lanes in pairs both ways"),
    "09_fp32_limit": Nest(("grid", "block", "warp", "thread"), {
        "grid": ("for each equal share of tiles:", "  # one block per SM"),
        "block": (*_TILE, "  cp.async: the tile after next", "  wait for the next; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    # copies in 6 of {step} steps"),
        "thread": ("    for k in range({step}):", "      a, b of k + 1 from shared",
                   "      {m}×{n} FMAs, odd rows back"),
    }),
    "10_wmma": Nest(("block", "warp", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": ("  for each {warp} part:  # by warps",),
        "warp": ("    for k0 in range(0, K, 16):", "      A, B fragments from global"),
        "thread": ("      mma: the warp’s 16×16×16", "      {each} sums in each lane"),
    }, shared=False, joint=True),
    "11_wmma_shared": Nest(("block", "warp"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  load tiles As, Bs; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    2 + 2 fragments from As, Bs"),
        "thread": ("    4 mma of 16×16×16", "    {each} sums in each lane"),
    }, joint=True),
    "12_wmma_pipeline": Nest(("block",), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  next tiles → registers", "  … → other buffer; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    2 + 2 fragments from As, Bs"),
        "thread": ("    4 mma of 16×16×16", "    {each} sums in each lane"),
    }, joint=True, finding="Two buffers: the next tiles go where no warp reads"),
    "13_wmma_vectorized": Nest(("block", "warp", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  next tiles, 8 halves a load", "  … → other buffer; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    fragments from As, Bs"),
        "thread": ("    mma of 16×16×16", "    {each} sums in each lane"),
    }, joint=True),
    "14_ldmatrix": Nest(("block", "warp", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  load tiles As, Bs; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    ldmatrix: rows of As, Bs"),
        "thread": ("    mma of 16×8×8, twice", "    {each} sums, in known places"),
    }, joint=True),
    "15_turing_limit": Nest(("block", "warp", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  next tiles → registers", "  … → other buffer; barrier"),
        "warp": ("  for each {m}×{n} warp tile:", "    ldmatrix, one step ahead"),
        "thread": ("    mma of 16×8×8", "    {each} sums, in known places"),
    }, joint=True),
    "16_cp_async": Nest(("block", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  wait_group; barrier", "  cp.async: 3 tiles ahead"),
        "warp": ("  for each {m}×{n} warp tile:", "    ldmatrix, one step ahead"),
        "thread": ("    mma of 16×8×16", "    {each} sums, in known places"),
    }, joint=True, finding="A ring of four stages: three tiles on their way, one in use"),
    "17_wgmma": Nest(("block", "warp", "thread"), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  wait_group; fence; barrier", "  wgmma; cp.async: 3 ahead"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True),
    "18_tma": Nest(("block",), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  mbarrier: bytes are here", "  wgmma; thread 0 asks TMA"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="One thread asks TMA for tiles; all wait on mbarriers"),
    "19_warp_specialization": Nest(("grid", "block"), {
        "grid": ("for each two tiles of C:", "  # by blocks"),
        "block": (*_TILE, "  a warpgroup: TMA", "  two warpgroups: wgmma"),
        "warp": ("  for each part of both tiles:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    sums of a tile in each lane"),
    }, straight=True, finding="One warpgroup loads, two multiply; a block has two tiles of C"),
    "20_persistent": Nest(("grid", "block"), {
        "grid": ("for each block’s tiles of C:", "  # one block per SM"),
        "block": (*_TILE, "  TMA: on into the next tile", "  wgmma: 2 steps in flight",
                  "  C: shared, then TMA"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="One block per SM walks from tile to tile, and its loads run ahead"),
    "21_clusters": Nest(("grid", "block"), {
        "grid": ("for each cluster’s tiles:", "  # in bands: the L2’s order"),
        "block": (*_TILE, "  TMA: my part of A and B", "  → all blocks that want it",
                  "  wgmma: 2 steps in flight"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="A block loads its part of a tile, for all of its cluster"),
    "22_few_tiles": Nest(("grid", "block"), {
        "grid": ("for each tile of C:", "  # 4 blocks share its K"),
        "block": ("for every fourth k0 of K:", "  TMA, wgmma",
                  "add up a quarter of 4", "  partial sums: C"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="Four blocks share a tile’s K, then each sums a quarter"),
    "23_stream_k": Nest(("grid", "block"), {
        "grid": ("for each share of the last", "  wave’s steps of K, then",
                 "  for each whole tile:"),
        "block": ("for k0 in the share:", "  TMA, wgmma", "the last to come adds up:",
                  "  parts from memory: C"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="The last wave’s tiles are cut along K; who comes last adds up"),
    "24_any_row": Nest(("block",), {
        "grid": ("for each tile of C:  # by blocks",),
        "block": (*_TILE, "  3 warpgroups: rows of A, B", "  → registers → shared",
                  "  1 warpgroup: wgmma"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    {each} sums in each lane"),
    }, straight=True, finding="Three warpgroups read rows of any length for one that multiplies"),
    "25_epilogue": Nest(("thread",), {
        "grid": ("for each cluster’s tiles:", "  # in bands: the L2’s order"),
        "block": (*_TILE, "  TMA: A, B → shared", "  wgmma: 2 steps in flight",
                  "  C: shared, then TMA"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×16", "    act(α·sum+β·C+bias) + res"),
    }, straight=True,
        finding="A sum gets bias and activation in its register, before it is stored"),
    "26_fp8": Nest(("block", "thread"), {
        "grid": ("for each block’s tiles of C:", "  # one block per SM"),
        "block": (*_TILE, "  TMA: A, B → shared", "  wgmma: one set of parts",
                  "  FP32: sums += other set"),
        "warp": ("  for each {m}×{n} part:", "    # of a warpgroup’s 4 warps"),
        "thread": ("    wgmma of 64×{columns}×32", "    {each} sums in each lane"),
    }, straight=True, finding="Sums of 128 k are added up in FP32 while the next are multiplied"),
    "27_tcgen05": Nest(("block", "warp", "thread"), {
        "grid": ("for each block’s tiles of C:", "  # one block per SM"),
        "block": (*_TILE, "  TMA: A, B → shared", "  one thread: MMAs →",
                  "  tensor memory, 2 tiles"),
        "warp": ("  for its 32 of 128 lanes:", "    # the tile before"),
        "thread": ("    row of sums → registers", "    C = α · sums + β · C"),
    }, tensor=True, finding="Sums lie in tensor memory, not in registers, and two tiles fit"),
    "28_cta_pairs": Nest(("grid", "block"), {
        "grid": ("for each tile of C:  # pairs", "  # of two blocks, 256 rows"),
        "block": (*_TILE, "  TMA: A, half B → shared", "  one thread for both:",
                  "  MMAs → tensor memory"),
        "warp": ("  for its 32 of 128 lanes:", "    # the tile before"),
        "thread": ("    row of sums → registers", "    C = α · sums + β · C"),
    }, tensor=True, pair=True,
        finding="Two blocks share a tile and load half of B each: {block} B per FMA, not {alone}"),
}


def levels(
    stem: str, work: Work, step: int, size: int, metrics: Mapping[str, float] | None = None,
    item_bytes: int = 4, cluster: tuple[int, int] = (1, 1),
) -> list[Level]:
    """The picture's levels for a version.

    Parameters
    ----------
    stem : str
        A version's; the loops of one that `NESTS` doesn't have are plain ones.
    work : mapping.model.Work
        Who computes what, from a traced run.
    step : int
        Depth of the tiles along K.
    size : int
        M = N = K of the problem that the bytes are of.
    metrics : mapping of str to float, optional
        Hardware counters recorded at that size.
    item_bytes : int
        Of an element of A and B.
    cluster : tuple of (int, int)
        Blocks along M and N that share what they load: each asks for its part.
    """
    nest = NESTS.get(stem, PLAIN)
    warp = _extent(work.warp)
    # Through shared memory a lane stores other elements than those whose sums it holds.
    of_thread = fragment(work.warp) if nest.joint else work.thread
    thread = _extent(of_thread)
    tiles = {"grid": (size, size), "block": (work.block.rows, work.block.columns),
             "warp": warp, "thread": thread}
    corner = _corner(work.warp)
    parts = {
        "grid": [work.block],
        "block": [_shifted(r, work.block.row, work.block.column) for r in work.warp],
        "warp": [_shifted(r, *corner) for r in of_thread],
        "thread": [],
    }
    boundaries = {
        "grid": "DRAM → L2", "block": "L2 → SM", "thread": "into registers",
        "warp": "shared → warp" if nest.shared else "L1 → warp",
    }
    if nest.joint:
        boundaries["warp"] = f"{'shared' if nest.shared else 'L1'} → registers"
        boundaries["thread"] = "held by 32 lanes"
    sums: dict[str, float] = {}
    whose: dict[str, str] = {}
    if nest.straight:
        boundaries |= {"warp": "shared → tensor cores", "thread": "wanted by 128 lanes"}
        sums["warp"] = item_bytes * (1 / WARPGROUP_ROWS + 1 / warp[1])
        whose["warp"] = f"{WARPGROUP_ROWS}×{warp[1]}"
    if nest.tensor:  # a float each, once for all of K
        boundaries |= {"warp": "tensor memory → warp"}
        sums = dict.fromkeys(("warp", "thread"), 4 / size)
    if cluster != (1, 1):
        rows, columns = tiles["block"]
        sums["block"] = item_bytes * (1 / (cluster[0] * rows) + 1 / (cluster[1] * columns))
        whose["block"] = "the cluster"
    if nest.pair:
        rows, columns = tiles["block"]
        sums["block"] = item_bytes * (1 / (2 * rows) + 1 / columns)
    crossed = _crossed(metrics, size, nest.shared) if metrics else {}
    wavefronts = {} if not (metrics and nest.shared) or nest.tensor else {
        # A GPU counts an asynchronous copy more than once; the data stage served no more than
        # `l1_wavefronts`.
        "warp": WARP * min(metrics["shared_wavefronts"],
                           metrics.get("l1_wavefronts", float("inf"))) / size**3}
    each = sum(r.rows * r.columns for r in of_thread)
    alone = item_bytes * sum(1 / side for side in tiles["block"])
    finding = nest.finding.format(m=warp[0], n=warp[1], alone=f"{alone:.2g}",
                                  block=f"{sums.get('block', alone):.2g}")
    return [
        Level(name, *tiles[name],
              [line.format(m=tiles[name][0], n=tiles[name][1], step=step, each=each,
                           columns=work.block.columns, warp=f"{warp[0]}×{warp[1]}")
               for line in nest.loop[name]],
              parts[name], boundaries[name], crossed.get(name), wavefronts.get(name),
              name in wavefronts and _stores(metrics), name in nest.changed, item_bytes,
              (nest.joint or nest.straight) and name == "thread", sums.get(name), finding,
              whose.get(name, "the tile"),
              ("WGMMA", WARPGROUP_ROWS, warp[1]) if nest.straight and name == "warp" else None,
              # An MMA takes all rows of the tile, so it reads what has come, each operand once.
              "as much: shared → MMA" if nest.tensor and name == "block" else "")
        for name in LEVELS
    ]


def extent_of_warp(work: Work) -> tuple[int, int]:
    """Rows and columns of the rectangle around a warp's elements."""
    top, left = _corner(work.warp)
    return (max(r.row + r.rows for r in work.warp) - top,
            max(r.column + r.columns for r in work.warp) - left)


def fragment(warp: Sequence[Region]) -> list[Region]:
    """The sums that lane 0 of a warp holds after `mma` (PTX ISA, accumulators of m16n8k16).

    Of each 16×8 elements it has columns 0 and 1 of rows 0 and 8; ptxas lays a `wmma` fragment out
    like that too.

    Parameters
    ----------
    warp : sequence of Region
        The warp's elements of C.
    """
    top, left = _corner(warp)
    rows, columns = _extent(warp)
    return [Region(top + row, left + column, 1, 2)
            for row in range(0, rows, 8) for column in range(0, columns, 8)]


def _crossed(metrics: Mapping[str, float], size: int, shared: bool) -> dict[str, float]:
    """Bytes per FMA that crossed each boundary whose bytes a recorded counter has."""
    found = {"grid": metrics["dram_read_bytes"], "block": metrics["l2_bytes"]}
    if not shared:
        found["warp"] = metrics["global_load_sectors"] * SECTOR
    return {name: value / size**3 for name, value in found.items()}


def _stores(metrics: Mapping[str, float] | None) -> bool:
    """Whether a counted launch stored tiles or C to shared memory, TMA's writes apart."""
    found = metrics or {}
    stores = found.get("shared_store_instructions", 0) + found.get("copy_instructions", 0)
    return stores > _STRAY * found.get("shared_wavefronts", 0)


def _extent(regions: Sequence[Region]) -> tuple[int, int]:
    """How many different rows and columns some regions have."""
    rows = {row for r in regions for row in range(r.row, r.row + r.rows)}
    columns = {column for r in regions for column in range(r.column, r.column + r.columns)}
    return len(rows), len(columns)


def _corner(regions: Sequence[Region]) -> tuple[int, int]:
    return min(r.row for r in regions), min(r.column for r in regions)


def _shifted(region: Region, row: int, column: int) -> Region:
    return Region(region.row - row, region.column - column, region.rows, region.columns)
