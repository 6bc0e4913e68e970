"""What the lanes of a warp exchange: shfl, vote, activemask, match, elect, redux."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Run, Writer
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Divergence, UninitialisedRead
from ..core.hazards import MISSING_LANE, access
from ..core.machine import WARP
from ..core.masks import Mask, any_in_warp, by_warp, spread
from ..core.registers import DTYPES
from ..core.scheduler import Waiter, join
from ..core.syntax import Instruction

# -- The membermask of .sync operations: who takes part, and who must not be missing. -------------


def names_all_lanes(mask: ndarray) -> bool:
    return mask.size == 1 and int(mask[0, 0]) == 0xFFFFFFFF


def check_membermask(
    f: Batch, mask: ndarray, instruction: Instruction, alone: bool = False
) -> None:
    """Report lanes that run a .sync operation and that its mask doesn't name.

    Unless `alone`, those too that it names and that don't run it, though they haven't exited, or
    that run it with another mask; and the race detector hears that the lanes have met.
    """
    if not alone and f.races is not None:
        f.races.lanes_meet(f)
    if f.active is None and names_all_lanes(mask):
        return
    active = f.active_lanes
    mask = f.full(mask)
    wrong = ((mask >> lane_ids(f)) & 1 == 0) & active
    if wrong.any():
        raise Divergence(f"{f.place(instruction)}: the mask leaves out lanes that run it: "
                         f"{f.lane_names(wrong)}")
    if alone:
        return
    asked = parties(f, mask)
    if asked.shape[2] > 1:
        rows = by_warp(mask, 0)
        others = (asked & (rows[..., :, None] != rows[..., None, :])).any(axis=3)
        torn = to_lanes(others, f.threads) & active
        if torn.any():
            raise Divergence(f"{f.place(instruction)}: the masks of these lanes name lanes that "
                             f"run it with another mask: {f.lane_names(torn)}")
    called = np.bitwise_or.reduce(by_warp(np.where(active, mask, 0), 0), axis=2)
    live = f.live_lanes
    absent = ((spread(called, f.threads) >> lane_ids(f)) & 1).astype(bool) & ~active & live
    if absent.any():
        raise Divergence(
            f"{f.place(instruction)}: the mask names lanes that do not run it: "
            f"{f.lane_names(absent)}"
        )


def parties(f: Batch, mask: ndarray) -> ndarray:
    """Which active lanes take part with each lane, by the masks.

    Returns (blocks, warps, lane, other lane). One row stands for all lanes where those of each warp
    have the same mask, as nearly always: (blocks, warps, 1, other lane).
    """
    active = by_warp(f.active_lanes, False)[..., None, :]
    if mask.size == 1:
        return active
    named = by_warp(f.full(mask), 0)[..., None]
    first = np.take_along_axis(named, active.argmax(axis=3)[..., None], axis=2)
    if ((named == first) | ~active.swapaxes(2, 3)).all():
        return active
    return ((named >> np.arange(32, dtype=np.uint32)) & 1).astype(bool) & active


def meeting(
    d: Decoding, member: int, compute: Callable[[Batch, ndarray], Iterable[ndarray]],
    *puts: Writer,
) -> Run:
    """Make the step of lanes that meet: `compute` is told of the parties, and gives the results.

    `member`: the operand that is the mask. Results: (blocks, warps, lane), or one for all lanes.
    """
    mask_of = d.read(member, "u32")

    def step(f: Batch) -> None:
        mask = mask_of(f.r)
        check_membermask(f, mask, d.instruction)
        for put, result in zip(puts, compute(f, parties(f, mask)), strict=True):
            put(f.r, to_lanes(result, f.threads))

    return step


def to_lanes(found: ndarray, threads: int) -> ndarray:
    """Bring (blocks, warps, lane), or one value for all lanes of a warp, to (blocks, threads)."""
    blocks, warps, _ = found.shape
    rows = np.broadcast_to(found, (blocks, warps, 32)).reshape(blocks, -1)
    return np.ascontiguousarray(rows[:, :threads])


def lane_ids(f: Batch) -> ndarray:
    """Return the lane number of each thread, (1, threads), as uint32."""
    return (np.arange(f.threads, dtype=np.uint32) & 31)[None, :]


# What a shuffle gives of a lane that takes no part: all ones, as memory that nobody wrote. GPUs
# differ in it.
UNDEFINED = np.uint32(0xFFFFFFFF)


@opcode("shfl")
def shuffle(d: Decoding) -> Run:
    """shfl.sync.mode.b32 d|p, a, b, c, mask"""
    d.only(".sync.up.down.bfly.idx").count(5)
    if not d.has("sync"):
        d.unsupported("shfl.sync")
    mode = d.one_of(("up", "down", "bfly", "idx"))
    target, predicate = d.pair(0)
    put, put_valid = d.write(target, "b32"), d.write(predicate, "pred")
    reads = [*map(d.read, (1, 2, 3, 4), ("b32", "s32", "s32", "u32"))]

    def step(f: Batch) -> None:
        r = f.r
        a, b, c, mask = (read(r) for read in reads)
        check_membermask(f, mask, d.instruction)
        rows = by_warp(f.full(a))
        lane = np.arange(32)
        move = by_warp(f.full(b)) & 31
        clamp = by_warp(f.full(c))
        segment, bound = (clamp >> 8) & 31, clamp & 31
        edge = (lane & segment) | (bound & ~segment)
        if mode == "up":
            source, valid = lane - move, lane - move >= edge
        elif mode == "down":
            source, valid = lane + move, lane + move <= edge
        elif mode == "bfly":
            source, valid = lane ^ move, (lane ^ move) <= edge
        else:
            source = (lane & segment) | (move & ~segment)
            valid = source <= edge
        source = np.where(valid, source, lane)
        shuffled = np.take_along_axis(rows, source, axis=2)
        if f.active is not None or f.threads % WARP or not names_all_lanes(mask):
            missing = _missing(f, source, mask, d.instruction)
            if missing is not None:
                shuffled = np.where(missing, UNDEFINED, shuffled)
        put(r, to_lanes(shuffled, f.threads))
        if predicate is not None:
            put_valid(r, to_lanes(np.broadcast_to(valid, rows.shape), f.threads))

    return step


def _missing(
    f: Batch, source: ndarray, mask: ndarray, instruction: Instruction
) -> ndarray | None:
    """Find active lanes that read a lane that takes no part; what they get is undefined.

    PTX ISA, shfl.sync: a lane's value is defined for others only where the mask names it and it
    runs the instruction. Lanes that are named and not there any more are a mistake of the mask and
    reported at once. A lane that the mask leaves out is often read in vain, as by a reduction of
    half a warp with ``__shfl_down_sync``: that is reported when the value is used, see
    `core.unwritten`, or at once if the launch is strict.

    `source`: the lane that each lane reads; broadcasts to (blocks, warps, 32). `mask`: broadcasts
    to (blocks, threads). Returns (blocks, warps, 32); None if there is none.
    """
    active = by_warp(f.active_lanes, False)
    source = np.broadcast_to(source, active.shape)
    masks = by_warp(f.full(mask), 0)
    named = ((masks >> source.astype(np.uint32)) & 1).astype(bool)
    # All lanes that are named and have not exited run it: `check_membermask` has seen to that.
    missing = active & ~(named & np.take_along_axis(active, source, axis=2))
    if not missing.any():
        return None
    gone, left_out = missing & named, missing & ~named
    if gone.any():
        _report_gone(f, source, gone, instruction)
    if left_out.any() and not f.hazards.is_reported(MISSING_LANE, instruction.line):
        readers = np.argwhere(left_out).tolist()
        row, warp, lane = readers[0]
        text = (f"{f.place(instruction)}: the mask leaves out lanes that are read, and what is "
                f"read from them is undefined: {_reading(f, source, readers)}")
        reader = access(instruction, row, WARP * warp + lane, f)
        if f.strict:
            f.hazards.add(MISSING_LANE, text, reader)
        elif f.unwritten is None:
            raise UninitialisedRead(text, instruction)
        else:
            f.unwritten.undefined(to_lanes(left_out, f.threads), text, reader)
    return missing


def _report_gone(
    f: Batch, source: ndarray, gone: ndarray, instruction: Instruction
) -> None:
    """Report lanes that read one that their mask names and that is not there any more."""
    readers = np.argwhere(gone)
    for left in (True, False):
        some = [[row, warp, lane] for row, warp, lane in readers.tolist()
                if (WARP * warp + source[row, warp, lane] < f.threads) == left]
        if not some:
            continue
        why = (f"have exited at {f.place(f.exited_by)}" if left
               else f"a block of {f.threads} threads does not have")
        row, warp, lane = some[0]
        reader = access(instruction, row, WARP * warp + lane, f)
        exited = f.exit_of(row, WARP * warp + int(source[row, warp, lane]))
        f.hazards.add(
            MISSING_LANE,
            f"{f.place(instruction)}: the mask names lanes that {why}, and what is read from them "
            f"is undefined: {_reading(f, source, some)}",
            *((exited, reader) if left else (reader,)),
        )


def _reading(f: Batch, source: ndarray, readers: list[list[int]]) -> str:
    """Name lanes, as (row, warp, lane), and the lanes that they read."""
    pairs = "; ".join(f"block {f.geometry.block_name(row)} warp {warp} lane {lane} reads lane "
                      f"{source[row, warp, lane]}" for row, warp, lane in readers[:4])
    return pairs + (f" and {len(readers) - 4} more" if len(readers) > 4 else "")


@opcode("vote")
def vote(d: Decoding) -> Run:
    """vote.sync.{all,any,uni,ballot} d, {!}a, mask"""
    d.only(".sync.all.any.uni.ballot").count(3)
    if not d.has("sync"):
        d.unsupported("vote.sync")
    mode = d.one_of(("all", "any", "uni", "ballot"))
    put = d.write(0, "b32" if mode == "ballot" else "pred")
    a = d.read(1, "pred")

    def compute(f: Batch, asked: ndarray) -> list[ndarray]:
        said = by_warp(f.full(a(f.r)), False)[..., None, :] & asked
        if mode == "ballot":
            return [ballot(said)]
        some, every = said.any(axis=3), (said | ~asked).all(axis=3)
        return [{"any": some, "all": every, "uni": every | ~some}[mode]]

    return meeting(d, 2, compute, put)


def ballot(said: ndarray) -> ndarray:
    """Pack bools of (…, 32) into uint32 words, (…)."""
    return np.packbits(said, axis=-1, bitorder="little").view("<u4")[..., 0]


@opcode("activemask")
def active_mask(d: Decoding) -> Run:
    """activemask.b32 d"""
    d.only().count(1)
    put = d.write(0, "b32")

    def step(f: Batch) -> None:
        active = by_warp(f.active_lanes, False)
        put(f.r, to_lanes(ballot(active[..., None, :]), f.threads))

    return step


@opcode("match")
def match(d: Decoding) -> Run:
    """match.{any,all}.sync.type d{|p}, a, mask"""
    d.only(".any.all.sync").count(3)
    target, predicate = d.pair(0)
    put, put_all = d.write(target, "b32"), d.write(predicate, "pred")
    a, every = d.read(1, d.type), d.has("all")

    def compute(f: Batch, asked: ndarray) -> list[ndarray]:
        values = by_warp(f.full(a(f.r)))
        words = ballot((values[..., :, None] == values[..., None, :]) & asked)
        same = words == ballot(asked)
        return [np.where(same, words, 0).astype(np.uint32) if every else words, same]

    return meeting(d, 2, compute, put, put_all)


@opcode("elect")
def elect(d: Decoding) -> Run:
    """elect.sync d|p, mask: the lowest lane that the mask names is the leader."""
    d.only("sync").count(2)
    target, predicate = d.pair(0)

    def compute(f: Batch, asked: ndarray) -> list[ndarray]:
        leader = asked.argmax(axis=3).astype(np.uint32)
        return [leader, leader == np.arange(WARP)]

    return meeting(d, 1, compute, d.write(target, "b32"), d.write(predicate, "pred"))


@opcode("redux")
def warp_reduce(d: Decoding) -> Run:
    """redux.sync.op.type d, a, mask; redux.sync.{min,max}{.abs}{.NaN}.f32 on sm_100"""
    operations = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }
    d.only(".sync.abs.NaN", *operations).count(3)
    name, kind = d.one_of(operations), d.type
    operation = operations[name]
    magnitudes, floats = d.has("abs"), kind == "f32"
    if floats and name not in ("min", "max") or not floats and d.has("abs", "NaN"):
        d.unsupported("redux.sync of whole numbers, and .min and .max{.abs}{.NaN} of f32")
    if floats and not d.has("NaN"):
        operation = {"min": np.fmin, "max": np.fmax}[name]
    put, a, dtype = d.write(0, kind), d.read(1, kind), DTYPES[kind]

    def compute(f: Batch, asked: ndarray) -> list[ndarray]:
        value = np.abs(a(f.r)) if magnitudes else a(f.r)
        rows = by_warp(f.full(value))[..., None, :]
        if operation is np.add:
            total = np.where(asked, rows, 0).sum(axis=3, dtype=dtype)
        else:  # a value that a lane holds that takes part changes no minimum, maximum, and or or
            rows = np.broadcast_to(rows, asked.shape)
            first = np.take_along_axis(rows, asked.argmax(axis=3)[..., None], axis=3)
            neutral = np.zeros_like(first) if operation is np.bitwise_xor else first
            total = operation.reduce(np.where(asked, rows, neutral), axis=3)
            if floats:  # -0 is less than +0
                zeros = asked & (rows == 0)
                minus, plus = (zeros & np.signbit(rows)).any(3), (zeros & ~np.signbit(rows)).any(3)
                zero = np.where(minus if name == "min" else ~plus, -0.0, 0.0)
                total = np.where(total == 0, zero, total)
        return [total.astype(dtype)]

    return meeting(d, 2, compute, put)



# -- bar.warp.sync: lanes of a warp wait for each other (__syncwarp). -----------------------------


@opcode("bar.warp")
def warp_barrier(d: Decoding) -> Run:
    """bar.warp.sync mask: lanes wait for each other; those that run apart come together here."""
    d.only(".warp.sync").count(1)
    member = d.read(0, "u32")
    following = d.index + 1

    def step(f: Batch) -> None:
        mask, barriers = member(f.r), f.waiter(WarpBarriers)
        check_membermask(f, mask, d.instruction, alone=True)
        if f.active is None and names_all_lanes(mask) and not barriers.parties:
            if f.races is not None:
                f.races.warp_barrier(f)
            f.go(following, None)
            return
        barriers.arrive(mask, d.instruction, following)

    return predicated_end(d, step)


class WarpBarriers(Waiter):
    """Lanes at bar.warp.sync: they go on when all that their mask names, and that live, have come.

    They may have come by different instructions (PTX ISA, bar.warp.sync).
    """

    def begin(self) -> None:
        self.masks = np.zeros(self.f.shape, np.uint32)

    def arrive(self, mask: ndarray, instruction: Instruction, following: int) -> None:
        """Park the active lanes, and let go of who is complete."""
        f = self.f
        active = f.active_lanes
        self.masks = np.where(active, mask, self.masks)
        join(self.parties, instruction, following, active)
        self.left()

    def left(self) -> None:
        """Let go of lanes that wait for nobody any more; an exit may be what they waited for."""
        f = self.f
        if not self.parties:
            return
        came = np.logical_or.reduce([party.lanes for party in self.parties])
        live = f.live_lanes
        free = np.zeros_like(came)
        for mask in np.unique(self.masks[came]).tolist():
            here = came & (self.masks == mask)
            named = (mask >> lane_ids(f) & 1).astype(bool)
            free |= here & ~spread(any_in_warp(named & live & ~here), f.threads)
        if not free.any():
            return
        if f.races is not None:
            outer, f.active = f.active, Mask(free)
            f.races.warp_barrier(f)
            f.active = outer
        self.release(free)
