"""mbarrier: init, inval, arrive, expect_tx, complete_tx, test_wait, try_wait, pending_count."""

from __future__ import annotations

import numpy as np

from ..core.addressing import shared_address
from ..core.analysis import BLOCK, CLUSTER
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Error
from ..core.lanes import lane_groups
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.syntax import Address, Instruction, Symbol
from .mbarrier_object import CARRIED, MAX_COUNT, PENDING_BITS, Mbarrier, Mbarriers, arrivals

_WORDS = (
    "release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta", "shared::cluster",
)


@opcode("mbarrier")
def mbarrier(d: Decoding) -> Run:
    """mbarrier.{init,inval,arrive,arrive_drop,expect_tx,complete_tx,test_wait,try_wait,...}.b64"""
    what = d.parts[1] if len(d.parts) > 1 else ""
    kinds = {
        "init": _init, "inval": _invalidate, "arrive": _arrive, "arrive_drop": _arrive,
        "expect_tx": _transaction, "complete_tx": _transaction, "test_wait": _wait,
        "try_wait": _wait, "pending_count": _pending_count,
    }
    if what not in kinds:
        d.unsupported(f"mbarrier.{{{','.join(kinds)}}}")
    return kinds[what](d)


def _init(d: Decoding) -> Run:
    d.only("init", *_WORDS).count(2)
    address, count, instruction = shared_address(d, 0), d.read(1, "u32"), d.instruction

    def step(f: Batch) -> None:
        all_ = f.waiter(Mbarriers)
        for row, (at, n), threads in lane_groups(f, address(f), count(f.r)):
            all_.init(row, at, n, int(threads[0]), instruction)

    return step


def _invalidate(d: Decoding) -> Run:
    d.only("inval", *_WORDS).count(1)
    address, instruction = shared_address(d, 0), d.instruction

    def step(f: Batch) -> None:
        all_ = f.waiter(Mbarriers)
        for row, (at,), threads in lane_groups(f, address(f)):
            all_.invalidate(row, at, int(threads[0]), instruction)

    return step


def _arrive(d: Decoding) -> Run:
    """mbarrier.arrive{.expect_tx}{.noComplete}{.sem}{.scope}{.space}.b64 {state|_}, [a]{, n}"""
    d.only("arrive", "arrive_drop", "expect_tx", "noComplete", *_WORDS)
    instruction, index, drop = d.instruction, d.index, d.has("arrive_drop")
    # Without a state: the form for other blocks.
    first = 0 if isinstance(d.operands[0], Address) else 1
    d.count(first + 1, first + 2)
    put = None
    if first and not (isinstance(d.operands[0], Symbol) and d.operands[0].name == "_"):
        put = d.write(0, "b64")
    address = shared_address(d, first)
    expects, incomplete, releases = d.has("expect_tx"), d.has("noComplete"), not d.has("relaxed")
    wide, own = d.has("cluster"), not d.has("shared::cluster")
    given = d.read(first + 1, "u32") if len(d.operands) == first + 2 else None
    if given is None and (expects or incomplete):
        d.wrong("a count is missing")
    one = np.ones((1, 1), np.uint32)

    def step(f: Batch) -> None:
        all_ = f.waiter(Mbarriers)
        state = np.zeros(f.shape, np.uint64) if put is not None else None
        number = one if given is None else given(f.r)
        began = None if f.races is None else f.races.clock
        for row, (at, n), threads in lane_groups(f, address(f), number):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])), own, threads)
            for thread in arrivals(
                f, barrier, row, threads, index, releases, wide=wide, began=began
            ):
                phase = barrier.phase
                if expects:
                    barrier.tx += n
                    barrier.bytes_came = True
                    all_._check_tx(barrier, instruction)
                arrived = all_.arrive(barrier, 1 if expects else n, instruction, drop)
                if state is not None:
                    state[row, thread] = arrived[0] << PENDING_BITS | arrived[1]
                if incomplete and barrier.phase != phase:
                    raise Error(
                        f"{f.place(instruction)}: .noComplete, but the phase completes; "
                        f"{all_.state(barrier)}"
                    )
        if put is not None and state is not None:
            put(f.r, state)

    return step


def _transaction(d: Decoding) -> Run:
    """mbarrier.{expect_tx,complete_tx}{.relaxed}{.scope}{.space}.b64 [a], n"""
    d.only("expect_tx", "complete_tx", *_WORDS).count(2)
    address, number, instruction = shared_address(d, 0), d.read(1, "u32"), d.instruction
    expects, own = d.has("expect_tx"), not d.has("shared::cluster")

    def step(f: Batch) -> None:
        all_ = f.waiter(Mbarriers)
        for row, (at, n), threads in lane_groups(f, address(f), number(f.r)):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])), own, threads)
            for _ in threads:
                (all_.expect if expects else all_.brought)(barrier, n, instruction)

    return step


def _wait(d: Decoding) -> Run:
    """mbarrier.{test_wait,try_wait}{.parity}...b64 p, [a], state{, time}"""
    d.only("test_wait", "try_wait", "parity", *_WORDS)
    d.count(*((3,) if d.has("test_wait") else (3, 4)))
    instruction, index, following = d.instruction, d.index, d.index + 1
    put = d.write(0, "pred")
    address, by_parity = shared_address(d, 1), d.has("parity")
    which = d.read(2, "u32" if by_parity else "b64")
    acquires, wide, own = not d.has("relaxed"), d.has("cluster"), True
    (slot,) = d.writes

    def step(f: Batch) -> None:
        all_, shape = f.waiter(Mbarriers), f.shape
        given = which(f.r)
        if by_parity:
            given = given & np.uint32(1)
        else:
            given = (given >> np.uint64(PENDING_BITS)).astype(np.int64) & MAX_COUNT
        done, failed = np.zeros(shape, bool), np.zeros(shape, bool)
        held = []
        for row, (at, phase), threads in lane_groups(f, address(f), given):
            barrier = all_.find(row, at, instruction, (row, int(threads[0])), own, threads)
            if by_parity:
                ready = barrier.phase & 1 != phase
            else:
                behind = (barrier.phase - phase) & MAX_COUNT
                if behind > 1:
                    raise Error(
                        f"{f.place(instruction)}: the state is of phase {phase}, neither the "
                        f"current nor the one before; {all_.state(barrier)}"
                    )
                ready = behind == 1
            if index in f.failing:
                fail = all_.failing(barrier, row, threads, phase, by_parity)
                failed[row, threads[fail]] = True
                threads = threads[~fail]
            if not len(threads):
                continue
            if ready:
                done[row, threads] = True
                _acquire_clocks(
                    f, barrier, row, threads, instruction, by_parity, acquires, wide)
            else:
                held.append((barrier, row, threads))
                if by_parity and f.races is not None and f.races.proxy is not None:
                    for warp in np.unique(threads // WARP).tolist():
                        first = int(threads[threads // WARP == warp][0])
                        barrier.wait_by_parity(f, row, first, instruction, ~barrier.phase & 1)
        active = f.active
        here = f.lanes_in(active)
        put(f.r, np.where(here, done, np.broadcast_to(f.r[slot], shape)))
        if not held:
            f.go(following, active)
            return
        done |= failed
        if done.any():
            f.go(following, Mask(done))
        for barrier, row, threads in held:
            all_.park(barrier, instruction, following, row, threads)

    return predicated_end(d, step)


def _acquire_clocks(
    f: Batch, barrier: Mbarrier, row: int, threads: np.ndarray, instruction: Instruction,
    by_parity: bool, acquires: bool, wide: bool,
) -> None:
    """Let the warps of some lanes learn what arrived at a barrier, and what was copied.

    A wait by parity has seen the first phase of that parity which its warp can't rule out. More may
    be complete by now, but that would be luck.
    """
    if f.races is None or f.races.proxy is None:
        return
    proxy = f.races.proxy
    before = barrier.before
    writes, column, remote = (each(barrier.row, barrier.offset) for each in (
        proxy.mbarrier, proxy.phases, proxy.remote_stores))
    for warp in np.unique(threads // WARP).tolist():
        seen = barrier.phase
        if by_parity:
            first = int(threads[threads // WARP == warp][0])
            seen = barrier.wait_by_parity(f, row, first, instruction, barrier.phase & 1)
        oldest = max(seen, barrier.phase - CARRIED + 1)

        def near(warp: int = warp, seen: int = seen, oldest: int = oldest) -> None:
            proxy.acquire(row, warp, barrier.carried.get(oldest))
            proxy.learn(row, warp, writes, before + seen)
            if barrier.remote:
                proxy.outlive(row, warp, remote, before + seen)

        def far(warp: int = warp, seen: int = seen, oldest: int = oldest) -> None:
            proxy.acquire(row, warp, barrier.carried_wide.get(oldest))
            proxy.learn(row, warp, remote, before + seen)

        for scope, learn in ((BLOCK, near), (CLUSTER, far))[: 1 + wide]:
            if acquires:
                learn()
            else:
                proxy.relaxed.see(row, warp, scope, learn)
        proxy.learn(row, warp, column, before + seen)


def _pending_count(d: Decoding) -> Run:
    """mbarrier.pending_count.b64 count, state"""
    d.only("pending_count").count(2)
    put, state = d.write(0, "u32"), d.read(1, "b64")
    return lambda f: put(f.r, (state(f.r) & np.uint64(MAX_COUNT)).astype(np.uint32))
