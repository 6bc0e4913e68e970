"""What lanes of a warp do together: wait, exchange values, vote, compare, add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .control import _for_chosen
from .decode import DTYPES, Decoding, opcode
from .errors import Divergence
from .masks import Mask, any_in_warp, by_warp, spread


@opcode("bar.warp")
def warp_barrier(d: Decoding):
    """bar.warp.sync mask: lanes wait for each other; those that run apart come together here."""
    d.only("warp", "sync").count(1)
    member = d.read(0, "u32")
    place, instruction, following = d.code.place(d.instruction), d.instruction, d.index + 1

    def step(f):
        mask, barriers = member(f.r), f.waiter(WarpBarriers)
        _members(f, mask, place, alone=True)
        if f.active is None and _is_whole(mask) and not barriers.parties:
            if f.races is not None:
                f.races.warp_barrier(f)
            f.go(following, None)
            return
        barriers.arrive(mask, instruction, following)

    return _for_chosen(d, step)


@dataclass
class Waiting:
    """Lanes that wait at one bar.warp.sync."""

    instruction: object
    next: int
    lanes: np.ndarray  # bool (blocks, threads)


class WarpBarriers:
    """Lanes at bar.warp.sync: they go on when all that their mask names, and that live, have come.

    They may have come by different instructions (PTX ISA, bar.warp.sync).
    """

    def __init__(self, f):
        self.f = f
        self.parties: list[Waiting] = []
        self.masks = np.zeros((f.blocks, f.threads), np.uint32)

    @property
    def waiting(self) -> bool:
        """Whether any lane is parked."""
        return bool(self.parties)

    def arrive(self, mask: np.ndarray, instruction, following: int):
        """Park the active lanes, and let go of who is complete."""
        f = self.f
        active = np.ones((f.blocks, f.threads), bool) if f.active is None else f.active.array
        self.masks = np.where(active, mask, self.masks)
        for party in self.parties:
            if party.instruction is instruction:
                party.lanes = party.lanes | active
                break
        else:
            self.parties.append(Waiting(instruction, following, active))
        self.left()

    def left(self):
        """Let go of lanes that wait for nobody any more; an exit may be what they waited for."""
        f = self.f
        if not self.parties:
            return
        came = np.logical_or.reduce([party.lanes for party in self.parties])
        live = True if f.live is None else f.live.array
        free = np.zeros_like(came)
        for mask in np.unique(self.masks[came]).tolist():
            here = came & (self.masks == mask)
            named = ((np.uint32(mask) >> lane_ids(f)) & 1).astype(bool)
            free |= here & ~spread(any_in_warp(named & live & ~here), f.threads)
        if not free.any():
            return
        if f.races is not None:
            outer, f.active = f.active, Mask(free)
            f.races.warp_barrier(f)
            f.active = outer
        for party in self.parties:
            released = party.lanes & free
            if released.any():
                f.go(party.next, Mask(released))
            party.lanes = party.lanes & ~free
        self.parties = [party for party in self.parties if party.lanes.any()]

    def stir(self) -> bool:
        """Nothing that is in flight lets these lanes go."""
        return False

    def finish(self):
        """Nothing is left when all lanes have exited."""

    def describe(self) -> str:
        """Say who waits where, for a deadlock report."""
        return " ".join(
            f"Waiting at {self.f.place(p.instruction)}: {self.f.lane_names(p.lanes)}."
            for p in self.parties
        )


def _is_whole(mask: np.ndarray) -> bool:
    return mask.size == 1 and int(mask[0, 0]) == 0xFFFFFFFF


def _members(f, mask: np.ndarray, place: str, alone: bool = False):
    """Report lanes that run a .sync operation and that its mask doesn't name.

    Unless `alone`, those too that it names and that don't run it, though they haven't exited.
    """
    if f.active is None and _is_whole(mask):
        return
    shape = (f.blocks, f.threads)
    active = np.ones(shape, bool) if f.active is None else f.active.array
    mask = np.broadcast_to(mask, shape)
    wrong = ((mask >> lane_ids(f)) & 1 == 0) & active
    if wrong.any():
        raise Divergence(f"{place}: the mask leaves out lanes that run it: {f.lane_names(wrong)}")
    if alone:
        return
    called = np.bitwise_or.reduce(by_warp(np.where(active, mask, np.uint32(0)), 0), axis=2)
    live = True if f.live is None else f.live.array
    absent = ((spread(called, f.threads) >> lane_ids(f)) & 1).astype(bool) & ~active & live
    if absent.any():
        raise Divergence(
            f"{place}: the mask names lanes that do not run it: {f.lane_names(absent)}"
        )


def lane_ids(f) -> np.ndarray:
    """Return the lane number of each thread, (1, threads), as uint32."""
    return (np.arange(f.threads, dtype=np.uint32) & np.uint32(31))[None, :]


@opcode("shfl")
def shuffle(d: Decoding):
    """shfl.sync.mode.b32 d|p, a, b, c, mask"""
    d.only("sync", "up", "down", "bfly", "idx").count(5)
    if not d.has("sync"):
        d.unsupported("shfl.sync")
    mode = d.pick(("up", "down", "bfly", "idx"))
    target, predicate = d.pair(0)
    put = d.write(target, "b32")
    put_valid = d.write(predicate, "pred") if predicate is not None else None
    a, b, c, member = d.read(1, "b32"), d.read(2, "s32"), d.read(3, "s32"), d.read(4, "u32")
    place = d.code.place(d.instruction)

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        _members(f, member(r), place)
        rows = by_warp(np.broadcast_to(a(r), shape))
        lane = np.arange(32)
        move = by_warp(np.broadcast_to(b(r), shape)) & 31
        clamp = by_warp(np.broadcast_to(c(r), shape))
        segment, bound = (clamp >> 8) & 31, clamp & 31
        most = (lane & segment) | (bound & ~segment)
        if mode == "up":
            source, valid = lane - move, lane - move >= most
        elif mode == "down":
            source, valid = lane + move, lane + move <= most
        elif mode == "bfly":
            source, valid = lane ^ move, (lane ^ move) <= most
        else:
            source = (lane & segment) | (move & ~segment)
            valid = source <= most
        source = np.where(valid, source, lane)
        moved = np.take_along_axis(rows, source, axis=2)
        put(r, np.ascontiguousarray(moved.reshape(f.blocks, -1)[:, : f.threads]))
        if put_valid is not None:
            valid = np.broadcast_to(valid, rows.shape).reshape(f.blocks, -1)[:, : f.threads]
            put_valid(r, np.ascontiguousarray(valid))

    return step


@opcode("vote")
def vote(d: Decoding):
    """vote.sync.{all,any,uni,ballot} d, {!}a, mask"""
    d.only("sync", "all", "any", "uni", "ballot").count(3)
    if not d.has("sync"):
        d.unsupported("vote.sync")
    mode = d.pick(("all", "any", "uni", "ballot"))
    put = d.write(0, "b32" if mode == "ballot" else "pred")
    a, member = d.read(1, "pred"), d.read(2, "u32")
    place = d.code.place(d.instruction)

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        _members(f, member(r), place)
        active = np.ones(shape, bool) if f.active is None else f.active.array
        said = by_warp(np.broadcast_to(a(r), shape) & active, False)
        active = by_warp(active, False)
        some, every = said.any(axis=2), (said | ~active).all(axis=2)
        if mode == "ballot":
            result = ballot(said)
        else:
            result = {"any": some, "all": every, "uni": every | ~some}[mode]
        put(r, spread(result, f.threads))

    return step


def ballot(said: np.ndarray) -> np.ndarray:
    """Pack bools of (blocks, warps, 32) into uint32 words, (blocks, warps)."""
    return np.packbits(said, axis=2, bitorder="little").view("<u4")[..., 0]


@opcode("activemask")
def active_mask(d: Decoding):
    """activemask.b32 d"""
    d.only().count(1)
    put = d.write(0, "b32")

    def step(f):
        active = np.ones((f.blocks, f.threads), bool) if f.active is None else f.active.array
        put(f.r, spread(ballot(by_warp(active, False)), f.threads))

    return step


@opcode("match")
def match(d: Decoding):
    """match.{any,all}.sync.type d{|p}, a, mask"""
    d.only("any", "all", "sync").count(3)
    target, predicate = d.pair(0)
    put = d.write(target, "b32")
    put_all = d.write(predicate, "pred") if predicate is not None else None
    a, member = d.read(1, d.type), d.read(2, "u32")
    every = d.has("all")
    place = d.code.place(d.instruction)

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        _members(f, member(r), place)
        active = by_warp(np.ones(shape, bool) if f.active is None else f.active.array, False)
        values = by_warp(np.broadcast_to(a(r), shape))
        alike = (values[..., :, None] == values[..., None, :]) & active[..., None, :]
        words = np.packbits(alike, axis=3, bitorder="little").view("<u4")[..., 0]
        if every:
            whole = ballot(active)[..., None]
            same = words == whole
            words = np.where(same, words, 0).astype(np.uint32)
            if put_all is not None:
                put_all(r, same.reshape(f.blocks, -1)[:, : f.threads])
        put(r, np.ascontiguousarray(words.reshape(f.blocks, -1)[:, : f.threads]))

    return step


@opcode("elect")
def elect(d: Decoding):
    """elect.sync d|p, mask: the lowest active lane is the leader."""
    d.only("sync").count(2)
    target, predicate = d.pair(0)
    put = d.write(target, "b32")
    put_leader = d.write(predicate, "pred") if predicate is not None else None

    def step(f):
        shape = (f.blocks, f.threads)
        active = by_warp(np.ones(shape, bool) if f.active is None else f.active.array, False)
        leader = active.argmax(axis=2).astype(np.uint32)
        lanes = spread(leader, f.threads)
        put(f.r, lanes)
        if put_leader is not None:
            put_leader(f.r, lanes == lane_ids(f))

    return step


@opcode("redux")
def warp_reduce(d: Decoding):
    """redux.sync.op.type d, a, mask"""
    operations = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    d.only("sync", *operations).count(3)
    operation = operations[d.pick(operations)]
    kind = d.type
    put, a, member = d.write(0, kind), d.read(1, kind), d.read(2, "u32")
    place = d.code.place(d.instruction)
    dtype = DTYPES[kind]

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        _members(f, member(r), place)
        active = by_warp(np.ones(shape, bool) if f.active is None else f.active.array, False)
        rows = by_warp(np.broadcast_to(a(r), shape))
        if operation is np.add:
            total = np.where(active, rows, 0).sum(axis=2, dtype=dtype)
        else:  # a value that an active lane holds changes no minimum, maximum, and or or
            first = np.take_along_axis(rows, active.argmax(axis=2)[..., None], axis=2)
            neutral = np.zeros_like(first) if operation is np.bitwise_xor else first
            total = operation.reduce(np.where(active, rows, neutral), axis=2)
        put(r, spread(total.astype(dtype), f.threads))

    return step
