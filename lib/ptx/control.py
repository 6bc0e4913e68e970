"""Branches, exits, barriers of a block and fences."""

from __future__ import annotations

import numpy as np

from .between import is_fence
from .decode import DTYPES, Decoding, opcode
from .errors import Error


@opcode("bra")
def branch(d: Decoding):
    """bra{.uni} label, with or without a predicate."""
    d.only("uni").count(1)
    d.ends = True
    target, otherwise = d.instruction.target, d.index + 1
    if d.instruction.guard is None:
        return lambda f: f.go(target, f.active)
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]
    if negated:
        return lambda f: f.branch(~f.r[slot], target, otherwise)
    return lambda f: f.branch(f.r[slot], target, otherwise)


@opcode("brx")
def branch_by_index(d: Decoding):
    """brx.idx{.uni} index, table: to the label of this number in a .branchtargets"""
    d.only("idx", "uni").count(2)
    index, targets, place = d.read(0, "u32"), d.instruction.targets, d.code.place(d.instruction)

    def step(f):
        which = np.broadcast_to(index(f.r), (f.blocks, f.threads))
        chosen = which if f.active is None else which[f.active.array]
        numbers = np.unique(chosen).tolist()
        if numbers[-1] >= len(targets):
            raise Error(f"{place}: index {numbers[-1]}; the table has {len(targets)} labels")
        masks = [f.select(which == n) for n in numbers]
        for n, mask in zip(numbers, masks, strict=True):
            f.go(targets[n], mask)

    return _for_chosen(d, step)


@opcode("ret", "exit")
def leave(d: Decoding):
    """ret and exit end a lane: a kernel has no caller."""
    d.only("uni").count(0)
    instruction = d.instruction
    return _for_chosen(d, lambda f: f.exit(f.active, instruction))


@opcode("trap", "brkpt")
def trap(d: Decoding):
    """trap stops the kernel: assertions end here."""
    d.ends = True
    place = d.code.place(d.instruction)

    def stop(f):
        where = np.ones((1, 1), bool) if f.active is None else f.active.array
        raise Error(f"{place}: the kernel trapped: {f.lane_names(where)}")

    return _for_chosen(d, stop)


def _for_chosen(d: Decoding, end):
    """Make the end of a block that holds only for lanes with the predicate; others go on."""
    d.ends = True
    otherwise = d.index + 1
    if d.instruction.guard is None:
        return end
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]

    def step(f):
        active = f.active
        predicate = ~f.r[slot] if negated else f.r[slot]
        chosen = f.select(predicate)
        if chosen is False:
            f.go(otherwise, active)
            return
        if chosen is not active:
            f.active = f.select(~predicate)
            f.go(otherwise, f.active)
        f.active = chosen
        end(f)

    return step


# -- barriers -----------------------------------------------------------------------------------


@opcode("bar", "barrier")
def barrier(d: Decoding):
    """bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red; barrier.* the same."""
    d.only("cta", "sync", "arrive", "aligned", "red", *VOTES)
    if not d.has("sync", "arrive", "red"):
        d.unsupported("bar.sync, bar.arrive, bar.red and bar.warp.sync")
    if d.has("red"):
        return _vote(d)
    parks = d.has("sync")
    d.count(*((1, 2) if parks else (2,)))
    number = d.read(0, "u32")
    count = d.read(1, "u32") if len(d.operands) == 2 else None
    instruction, following = d.instruction, d.index + 1

    def step(f):
        which = number(f.r)
        many = None if count is None else count(f.r)
        if which.size == 1 and (many is None or many.size == 1):
            n = None if many is None else int(many[0, 0])
            f.barriers.arrive(instruction, int(which[0, 0]), n, following, parks)
            return
        # The number is computed: let the lanes of each number arrive in turn.
        whole = f.active
        shape = (f.blocks, f.threads)
        which = np.broadcast_to(which, shape)
        many = np.full(shape, -1) if many is None else np.broadcast_to(many, shape).astype(int)
        lanes = np.ones(shape, bool) if whole is None else whole.array
        for n, c in sorted(set(zip(which[lanes].tolist(), many[lanes].tolist(), strict=True))):
            f.active = f.select((which == n) & (many == c))
            f.barriers.arrive(instruction, n, None if c < 0 else c, following, parks)
            f.active = whole

    return _for_chosen(d, step)


def _vote(d: Decoding):
    """{bar,barrier.cta}.red.{and,or}.pred p, a{, b}, {!}c; .red.popc.u32 d, a{, b}, {!}c"""
    what = d.pick(VOTES)
    if what is None:
        d.unsupported(f"the reductions are {' '.join(VOTES)}")
    d.needs("u32" if what == "popc" else "pred").count(3, 4)
    put, number = d.write(0, d.type), d.read(1, "u32")
    (slot,) = d.writes or (None,)
    d.writes.clear()  # written for the lanes that the barrier lets go
    count = d.read(2, "u32") if len(d.operands) == 4 else None
    said, kind = d.read(len(d.operands) - 1, "pred"), DTYPES[d.type]
    instruction, following = d.instruction, d.index + 1

    def step(f):
        which, many = number(f.r), None if count is None else count(f.r)
        if which.size != 1 or (many is not None and many.size != 1):
            d.unsupported("a barrier whose number and threads are the same for all lanes")
        shape = (f.blocks, f.threads)
        here = np.ones(shape, bool) if f.active is None else f.active.array
        votes = np.broadcast_to(said(f.r), shape) & here

        def finish(yes: np.ndarray, arrived: np.ndarray, lanes: np.ndarray):
            found = VOTES[what](yes.sum(axis=1), arrived.sum(axis=1))[:, None].astype(kind)
            if slot is not None:
                old = f.r[slot]
                old = old if old.dtype == kind else old.view(kind)
                put(f.r, np.where(lanes, found, np.broadcast_to(old, shape)))

        n = None if many is None else int(many[0, 0])
        f.barriers.arrive(instruction, int(which[0, 0]), n, following, True, (votes, finish))

    return _for_chosen(d, step)


# What a barrier tells of the threads that said yes, and of all that arrived.
VOTES = {
    "and": lambda yes, arrived: yes == arrived, "or": lambda yes, arrived: yes > 0,
    "popc": lambda yes, arrived: yes,
}  # fmt: skip


@opcode("membar", "fence")
def fence(d: Decoding):
    """Fences order what the emulator runs in order anyway; the race detector is told of them."""
    d.only(
        "cta", "gl", "gpu", "sys", "cluster", "sc", "acq_rel", "acquire", "release", "proxy",
        "alias", "async", "global", "shared::cta", "async::generic", "shared::cluster",
        "mbarrier_init", "sync_restrict::shared::cluster", "sync_restrict::shared::cta",
        "tensormap::generic",
    )  # fmt: skip
    if is_fence(d.instruction):

        def publish(f):
            if f.races is not None:
                f.races.fence(f)

        return publish
    if not d.has("async", "async::generic", "mbarrier_init"):
        return lambda f: None

    def step(f):
        if f.races is not None:
            f.races.proxy_fence(f)

    return step


@opcode("setmaxnreg")
def set_registers(d: Decoding):
    """setmaxnreg.{inc,dec}.sync.aligned.u32 n: registers here are as many as anybody wants"""
    d.only("inc", "dec", "sync", "aligned").needs("u32").count(1)
    many = d.operands[0].bits
    if not 24 <= many <= 256 or many % 8:
        d.wrong(f"{many} registers; the number must be a multiple of 8 from 24 to 256")
    return lambda f: None


@opcode("nanosleep", "pragma", "griddepcontrol")
def nothing(d: Decoding):
    """Nothing to do."""
    return lambda f: None
