"""What the lanes of a warp exchange: shfl, vote, activemask, match, elect, redux."""

from __future__ import annotations

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.masks import by_warp, spread
from ..core.registers import DTYPES
from .membermask import check_membermask, lane_ids


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
    place = d.place

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        check_membermask(f, member(r), place)
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
    place = d.place

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        check_membermask(f, member(r), place)
        active = f.active_lanes
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
        active = f.active_lanes
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
    place = d.place

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        check_membermask(f, member(r), place)
        active = by_warp(f.active_lanes, False)
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
        active = by_warp(f.active_lanes, False)
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
    place = d.place
    dtype = DTYPES[kind]

    def step(f):
        r, shape = f.r, (f.blocks, f.threads)
        check_membermask(f, member(r), place)
        active = by_warp(f.active_lanes, False)
        rows = by_warp(np.broadcast_to(a(r), shape))
        if operation is np.add:
            total = np.where(active, rows, 0).sum(axis=2, dtype=dtype)
        else:  # a value that an active lane holds changes no minimum, maximum, and or or
            first = np.take_along_axis(rows, active.argmax(axis=2)[..., None], axis=2)
            neutral = np.zeros_like(first) if operation is np.bitwise_xor else first
            total = operation.reduce(np.where(active, rows, neutral), axis=2)
        put(r, spread(total.astype(dtype), f.threads))

    return step
