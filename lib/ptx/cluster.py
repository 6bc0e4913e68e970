"""Clusters: addresses in each other's shared memory, and the barrier of all their threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .access import _address
from .control import _for_chosen
from .decode import DTYPES, Decoding, opcode
from .errors import Error, OutOfBounds
from .hazards import access
from .masks import Mask, any_in_warp
from .memory import PEER_BYTES, WINDOW_BYTES, WINDOWS
from .proxy import merged

# -- addresses ----------------------------------------------------------------------------------


def shared_address(d: Decoding, operand: int):
    """Make the function that reads an address in the shared::cluster window, as int64.

    Generic addresses of shared memory are taken as well.
    """
    slot, offset = _address(d, operand, "shared")
    base, place = WINDOWS["shared"], d.code.place(d.instruction)

    def read(f) -> np.ndarray:
        address = f.r[slot].astype(np.int64) + offset
        if (address >= WINDOW_BYTES).any():
            address = np.where(address >= base, address - base, address)
            if (_of_active(f, address) >= WINDOW_BYTES).any():
                raise OutOfBounds(f"{place}: the address is not in shared memory")
        return address

    return read


def _of_active(f, values: np.ndarray) -> np.ndarray:
    full = np.broadcast_to(values, (f.blocks, f.threads))
    return full if f.active is None else full[f.active.array]


def locate(f, row: int, address: int, nbytes: int, align: int, instruction) -> tuple[int, int]:
    """Return the row whose shared memory an address of a row's lane lies in, and the offset.

    Raises
    ------
    Error
        If it is misaligned or lies outside.
    """
    peers, (rank, offset) = f.geometry.peers, divmod(address, PEER_BYTES)
    if rank > peers or offset + nbytes > f.memory.shared.nbytes:
        raise OutOfBounds(
            f"{f.place(instruction)}: {nbytes} bytes at {address:#x} lie outside of the "
            f"{f.memory.shared.nbytes} bytes of shared memory, block {f.geometry.block_name(row)}"
        )
    if offset % align:
        raise Error(
            f"{f.place(instruction)}: shared address {address:#x} is no multiple of {align}"
        )
    if rank == 0:
        return row, offset
    home = row // peers * peers + rank - 1
    if home != row:
        check_alive(f, home, instruction, row)
    return home, offset


def check_alive(f, home: int, instruction, row: int):
    """Report the use of the shared memory of a block that has exited."""
    if f.live is not None and not f.live.array[home].any():
        lane = 0 if f.active is None else int(f.active.array[row].argmax())
        f.hazards.add(
            "block exited",
            f"{f.place(instruction)}: block {f.geometry.block_name(home)} exited while its peer "
            f"{f.geometry.block_name(row)} still uses its shared memory: {f.exit_of(home, 0)}",
            f.exit_of(home, 0), access(instruction, row, lane, f),
        )  # fmt: skip


def lane_groups(f, *values: np.ndarray):
    """Part the active lanes by row and by values of fewer than 30 bits.

    Yields
    ------
    row : int
    values : list of int
    threads : ndarray of int
        The lanes, ascending.
    """
    shape = (f.blocks, f.threads)
    if f.active is None:
        rows, threads = (a.ravel() for a in np.indices(shape))
    else:
        rows, threads = np.nonzero(f.active.array)
    columns = [np.broadcast_to(v, shape)[rows, threads].astype(np.int64) for v in values]
    first = [rows, *columns]
    if all((c == c[0]).all() for c in first):
        yield int(rows[0]), [int(c[0]) for c in columns], threads
        return
    group = np.zeros(len(rows), np.int64)
    for column in first:
        _, inverse = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (len(rows) + 1) + inverse, return_inverse=True)
    for number in range(int(group.max()) + 1):
        chosen = np.flatnonzero(group == number)
        at = chosen[0]
        yield int(rows[at]), [int(c[at]) for c in columns], threads[chosen]


@opcode("mapa")
def map_address(d: Decoding):
    """mapa{.shared::cluster}.type d, a, b: the address of a in the block of rank b"""
    d.only("shared::cluster").needs("u32", "u64").count(3)
    kind = d.type
    put, rank = d.write(0, kind), d.read(2, "u32")
    generic = not d.has("shared::cluster")
    source = d.operands[1]
    a = d.read(source, kind)
    dtype = DTYPES[kind]
    base = WINDOWS["shared"] if generic else 0
    place, instruction = d.code.place(d.instruction), d.instruction

    def step(f):
        address = a(f.r).astype(np.int64)
        local = address - base if generic else address
        to = rank(f.r).astype(np.int64)
        if (_of_active(f, to) >= f.geometry.peers).any():
            raise Error(f"{place}: the cluster has {f.geometry.peers} blocks")
        if ((_of_active(f, local) < 0) | (_of_active(f, local) >= WINDOW_BYTES)).any():
            raise Error(f"{f.place(instruction)}: the address is not in shared memory")
        put(f.r, (base + (to + 1) * PEER_BYTES + local % PEER_BYTES).astype(dtype))

    return step


@opcode("getctarank")
def get_rank(d: Decoding):
    """getctarank{.shared::cluster}.type d, a: the rank of the block that an address lies in"""
    d.only("shared::cluster").needs("u32", "u64").count(2)
    put, a = d.write(0, "u32"), d.read(1, d.type)
    generic = not d.has("shared::cluster")

    def step(f):
        address = a(f.r).astype(np.int64) - (WINDOWS["shared"] if generic else 0)
        rank = address // PEER_BYTES - 1
        own = (np.arange(f.blocks) % f.geometry.peers)[:, None]
        put(f.r, np.where(rank < 0, own, rank).astype(np.uint32))

    return step


# -- barrier.cluster ----------------------------------------------------------------------------


@dataclass(eq=False)
class Party:
    """Lanes that wait by one instruction."""

    instruction: object
    next: int
    lanes: np.ndarray


class ClusterBarriers:
    """The barrier of each cluster: all threads that have not exited arrive, then go on."""

    def __init__(self, f):
        self.f = f
        shape = (f.blocks, f.threads)
        self.arrived = np.zeros(shape, bool)  # in this phase
        self.passed = np.zeros(shape, bool)  # arrived in a complete phase, has not waited yet
        self.parties: list[Party] = []
        self.last: dict[int, object] = {}  # cluster -> instruction of an arrival
        clusters = f.blocks // f.geometry.peers
        self.gathering: list = [None] * clusters
        self.carried: list = [None] * clusters

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties)

    def arrive(self, instruction, releases: bool):
        """Let the active lanes arrive."""
        f = self.f
        active = np.ones(self.arrived.shape, bool) if f.active is None else f.active.array
        again = active & (self.arrived | self.passed)
        if again.any():
            raise Error(
                f"{f.place(instruction)}: a thread arrives again without barrier.cluster.wait: "
                f"{f.lane_names(again)}"
            )
        self.arrived = self.arrived | active
        if f.races is not None and f.races.proxy is not None and releases:
            for row, warp in np.argwhere(any_in_warp(active)).tolist():
                cluster = row // f.geometry.peers
                self.gathering[cluster] = f.races.proxy.release(row, warp, self.gathering[cluster])
        self.left()

    def left(self):
        """Complete the barrier of every cluster whose remaining threads have all arrived."""
        f, peers = self.f, self.f.geometry.peers
        if not self.arrived.any():
            return
        live = np.ones(self.arrived.shape, bool) if f.live is None else f.live.array
        lacking = (live & ~self.arrived).reshape(-1, peers * f.threads).any(axis=1)
        full = ~lacking & self.arrived.reshape(-1, peers * f.threads).any(axis=1)
        if not full.any():
            return
        rows = np.repeat(full, peers)[:, None]
        self.passed = self.passed | (self.arrived & rows)
        self.arrived = self.arrived & ~rows
        for cluster in np.flatnonzero(full).tolist():
            if self.gathering[cluster] is not None:
                self.carried[cluster] = merged(self.carried[cluster], self.gathering[cluster])
                self.gathering[cluster] = None
        for party in list(self.parties):
            released = party.lanes & rows
            if released.any():
                self._pass(released)
                f.go(party.next, Mask(released))
                party.lanes = party.lanes & ~rows
                if not party.lanes.any():
                    self.parties.remove(party)

    def wait(self, instruction, following: int):
        """Let the active lanes wait, or go on if the barrier is complete."""
        f = self.f
        active = np.ones(self.arrived.shape, bool) if f.active is None else f.active.array
        early = active & ~(self.arrived | self.passed)
        if early.any():
            raise Error(
                f"{f.place(instruction)}: a thread waits without barrier.cluster.arrive: "
                f"{f.lane_names(early)}"
            )
        ready, rest = active & self.passed, active & ~self.passed
        if ready.any():
            self._pass(ready)
            f.go(following, Mask(ready))
        if rest.any():
            self.parties.append(Party(instruction, following, rest))

    def _pass(self, lanes: np.ndarray):
        f = self.f
        self.passed = self.passed & ~lanes
        if f.races is not None and f.races.proxy is not None:
            for row, warp in np.argwhere(any_in_warp(lanes)).tolist():
                f.races.proxy.acquire(row, warp, self.carried[row // f.geometry.peers])

    def stir(self) -> bool:
        """Nothing is in flight here."""
        return False

    def finish(self):
        """Nothing is left to do when all lanes have exited."""

    def describe(self) -> str:
        """Say who waits, for a deadlock report."""
        f, lines = self.f, []
        for party in self.parties:
            row = int(np.argwhere(party.lanes)[0][0])
            home = row // f.geometry.peers * f.geometry.peers
            came = int(self.arrived[home : home + f.geometry.peers].sum())
            lines.append(
                f"The barrier of the cluster has {came} of {f.geometry.peers * f.threads} threads; "
                f"waiting at {f.place(party.instruction)}: {f.lane_names(party.lanes)}."
            )
        return " ".join(lines)


@opcode("barrier.cluster")
def cluster_barrier(d: Decoding):
    """barrier.cluster.arrive{.release|.relaxed}, barrier.cluster.wait{.acquire}"""
    d.only("cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned").count(0)
    instruction, following = d.instruction, d.index + 1
    if d.has("arrive") == d.has("wait"):
        d.unsupported("barrier.cluster.arrive and barrier.cluster.wait")
    if d.has("wait"):
        return _for_chosen(d, lambda f: f.waiter(ClusterBarriers).wait(instruction, following))
    releases = not d.has("relaxed")

    def step(f):
        active = f.active
        f.waiter(ClusterBarriers).arrive(instruction, releases)
        f.go(following, active)

    return _for_chosen(d, step)
