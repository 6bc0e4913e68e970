"""Grids, blocks and clusters: their limits, and which block each row of a batch is."""

from __future__ import annotations

import itertools
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from .errors import LaunchError
from .machine import WARP
from .registers import SPECIAL, scalar
from .syntax import Entry

# KiB of one block, by target (CUDA C++ Programming Guide, technical specifications).
_SHARED_KIB = {"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99, "sm_90": 227,
               "sm_100": 227, "sm_101": 227, "sm_103": 227, "sm_110": 227, "sm_120": 99,
               "sm_121": 99}
SHARED_LIMIT = max(_SHARED_KIB.values()) * 1024  # on any GPU
STATIC_LIMIT = 48 * 1024  # what ptxas lets a kernel declare
LOCAL_LIMIT = 512 * 1024  # bytes of a thread's local memory (CUDA C++ Programming Guide)
CLUSTER_LIMIT = 16  # blocks; more than 8 need an attribute of the kernel on a GPU

Sizes = tuple[int, int, int]  # along x, y, z


def shared_limit(target: str) -> int:
    """Return the most shared memory that a block may have, B; of an unknown target any GPU's."""
    kib = _SHARED_KIB.get(target.rstrip("af"))
    return SHARED_LIMIT if kib is None else kib * 1024


def shared_base(target: str) -> int:
    """Return the shared address at which a block's variables begin, B.

    From sm_90 on the first KiB is the system's, and ptxas counts from behind it.
    """
    digits = target.removeprefix("sm_").rstrip("af")
    return 1024 if digits.isdigit() and int(digits) >= 90 else 0


class Pending:
    """The blocks of a grid that have not begun, which a running one may cancel.

    `next`, `total`: the first of them, as blocks count cluster by cluster, and how many the grid
    has.
    """

    def __init__(self, total: int) -> None:
        self.next, self.total = 0, total

    def cancel(self, many: int) -> int | None:
        """Take the next cluster of so many blocks away; returns its first, None if all began."""
        if self.next >= self.total:
            return None
        self.next += many
        return self.next - many


class Geometry:
    """A grid, and which of its blocks run in this batch."""

    def __init__(
        self, grid: Sizes, block: Sizes, first: int, blocks: int, shared_bytes: tuple[int, int],
        cluster: tuple[int, int, int] | None = None,
    ) -> None:
        self.grid, self.block, self.first, self.blocks = grid, block, first, blocks
        self.explicit = cluster is not None
        self.cluster = cluster or (1, 1, 1)
        self.peers = int(np.prod(self.cluster))  # blocks of a cluster: neighbouring rows
        self.threads = block[0] * block[1] * block[2]
        self.shared_bytes = shared_bytes
        self.workspace = 0  # address of what cooperative groups keep for a grid
        self.pending = Pending(first + blocks)

    def block_index(self, row: int) -> tuple[int, int, int]:
        """Return blockIdx of a row of this batch."""
        return self.index_of(self.first + row)

    def index_of(self, at: int) -> tuple[int, int, int]:
        """Return blockIdx of the at-th block of the grid, cluster by cluster."""
        x, y, z = self._indices(at)
        return int(x), int(y), int(z)

    def _indices(self, at: Any) -> list[Any]:
        """Return blockIdx, as (x, y, z), of the at-th block of the grid; `at` may be an array.

        Blocks count along x, then y, then z; with clusters, cluster by cluster.
        """
        number, rank = at // self.peers, at % self.peers
        place = []
        for extent, size in zip(self.grid, self.cluster, strict=True):
            many = extent // size
            place.append(number % many * size + rank % size)
            number, rank = number // many, rank // size
        return place

    def block_name(self, row: int) -> str:
        """Return blockIdx as text."""
        return "({}, {}, {})".format(*self.block_index(row))

    def thread_name(self, row: int, thread: int) -> str:
        """Return blockIdx and threadIdx as text."""
        x, y, _ = self.block
        index = (thread % x, thread // x % y, thread // (x * y))
        return "block {}, thread ({}, {}, {})".format(self.block_name(row), *index)

    def row_of(self, block: int) -> int | None:
        """Return the row of a block by its linear number, None if it is in another batch."""
        if self.peers > 1:
            x, y, _ = self.grid
            rows = np.arange(self.first, self.first + self.blocks)
            i, j, k = self._indices(rows)
            found = np.flatnonzero(i + x * (j + y * k) == block)
            return int(found[0]) if len(found) else None
        row = block - self.first
        return row if 0 <= row < self.blocks else None

    def special(self, name: str) -> ndarray:
        """Return a special register: (1, 1), (blocks, 1) or (1, threads)."""
        threads = np.arange(self.threads, dtype=np.int64)[None, :]
        rows = np.arange(self.first, self.first + self.blocks, dtype=np.int64)[:, None]
        lane = threads % WARP
        warps = -(-self.threads // WARP)
        base, _, axis = name.partition(".")
        wholes = tuple(g // c for g, c in zip(self.grid, self.cluster, strict=True))
        sizes = {
            "%ntid": self.block, "%nctaid": self.grid, "%nclusterid": wholes,
            "%cluster_nctaid": self.cluster,
        }
        value: ndarray | int
        if base in sizes:
            value = sizes[base]["xyz".index(axis)]
        elif base == "%tid":
            x, y, _ = self.block
            value = {"x": threads % x, "y": threads // x % y, "z": threads // (x * y)}[axis]
            if self.block["xyz".index(axis)] == 1:
                value = 0
        elif base in ("%ctaid", "%clusterid", "%cluster_ctaid"):
            at = "xyz".index(axis)
            value, size = self._indices(rows)[at], self.cluster[at]
            if base != "%ctaid":
                value = value // size if base == "%clusterid" else value % size
            if self.grid[at] == 1:
                value = 0
        else:
            every = (1 << 32) - 1
            others: dict[str, ndarray | int] = {
                "%laneid": lane,
                "%warpid": threads // WARP,
                "%nwarpid": warps,
                "%nsmid": 1,
                "%is_explicit_cluster": self.explicit,
                "%cluster_nctarank": self.peers,
                "%cluster_ctarank": rows % self.peers,
                "WARP_SZ": 32,
                "%lanemask_eq": 1 << lane,
                "%lanemask_lt": (1 << lane) - 1,
                "%lanemask_le": (2 << lane) - 1,
                "%lanemask_gt": every ^ ((2 << lane) - 1),
                "%lanemask_ge": every ^ ((1 << lane) - 1),
                "%dynamic_smem_size": self.shared_bytes[1],
                "%total_smem_size": sum(self.shared_bytes),
                "%envreg1": self.workspace >> 32,
                "%envreg2": self.workspace & every,
            }
            value = others.get(base, 0)
        kind = {"pred": "?", "u32": "u4", "u64": "u8"}[SPECIAL[name]]
        if isinstance(value, ndarray):
            return value.astype(kind)
        return scalar(value, kind)


def three_sizes(given: object, name: str) -> tuple[int, int, int]:
    """Return one to three sizes as three."""
    sizes = given if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int | np.integer) for s in sizes):
        raise LaunchError(f"{name} {given!r} must be one to three whole numbers")
    x, y, z = itertools.islice((*map(int, sizes), 1, 1), 3)
    return x, y, z


def check_geometry(entry: Entry, grid: Sizes, block: Sizes, shared_mem: int) -> None:
    """Refuse a grid, a block or an amount of shared memory that CUDA would refuse as well."""

    def wrong(message: str) -> NoReturn:
        raise LaunchError(f"kernel '{entry.name}': {message}")

    for sizes, limits, name in (
        (grid, (2**31 - 1, 65535, 65535), "grid"),
        (block, (1024, 1024, 64), "block"),
    ):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if not 1 <= size <= limit:
                wrong(f"{name} {sizes}: {axis} must be from 1 to {limit}")
    threads = block[0] * block[1] * block[2]
    if threads > 1024:
        wrong(f"block {block} has {threads} threads; the most is 1024")
    for directive in ("maxntid", "reqntid"):
        compiled = entry.limits.get(directive)
        if compiled and threads > np.prod(compiled, dtype=object):
            wrong(f"block {block} has {threads} threads; it was compiled for {compiled}")
    if not isinstance(shared_mem, int | np.integer) or not 0 <= shared_mem <= SHARED_LIMIT:
        wrong(f"shared_mem {shared_mem!r} must be a number of bytes up to {SHARED_LIMIT}")


def cluster_sizes(entry: Entry, given: object, grid: Sizes) -> tuple[int, int, int] | None:
    """Return the sizes of a cluster, None if the kernel is launched without clusters."""
    limits = entry.limits
    compiled = limits.get("reqnctapercluster") or None
    if given is None:
        if compiled is None and "explicitcluster" in limits:
            raise LaunchError(f"kernel '{entry.name}' must be launched with cluster=...")
        given = compiled
    if given is None:
        return None
    cluster = three_sizes(given, "cluster")
    if compiled is not None and cluster != three_sizes(compiled, "cluster"):
        raise LaunchError(
            f"kernel '{entry.name}': cluster {cluster}; it was compiled for {compiled}"
        )
    if min(cluster) < 1 or np.prod(cluster, dtype=object) > CLUSTER_LIMIT:
        raise LaunchError(
            f"kernel '{entry.name}': cluster {cluster}; the most is {CLUSTER_LIMIT} blocks"
        )
    for axis, size, extent in zip("xyz", cluster, grid, strict=True):
        if extent % size:
            raise LaunchError(
                f"kernel '{entry.name}': grid {grid} is no multiple of the cluster {cluster} "
                f"along {axis}"
            )
    return cluster
