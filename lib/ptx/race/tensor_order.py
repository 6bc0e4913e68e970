"""What orders accesses of tensor memory: PTX ISA 9.7.16.6 (memory consistency model of tcgen05).

Five instructions are asynchronous: mma, cp, shift, ld, st (9.7.16.6.1). Two of them that access one
word, at least one writing, are ordered

* by being a pipelined pair, issued in this order (9.7.16.6.2): mma → mma of one accumulator, shape
  and kind, cp → mma, shift → mma, shift → cp.4x256b, mma → shift. *Not* mma → cp, nor anything with
  ld or st;
* by completion: of mma, cp and shift through tcgen05.commit and a wait on its mbarrier
  (9.7.16.6.2.1.1), of ld and st through tcgen05.wait in the thread that issued them
  (9.7.16.6.2.1.2).

What is issued is ordered behind a wait on an mbarrier, or behind other threads, only with
``fence::after_thread_sync`` in between; what was issued before is ordered before what other threads
do only with ``fence::before_thread_sync`` ahead of the barrier, which commit does by itself
(9.7.16.6.3, and the five canonical patterns of 9.7.16.6.4). A commit passes on through other
threads' barriers without fences of theirs, as any causality order does. That a load's registers
are there when they are used (9.7.16.6.4.5) orders no access of tensor memory.

Operands in shared memory are another question: `TensorOrder.reads_shared`.

This is PTX ISA 9.2. Notes of others on 9.4 name further pairs, of an mma's operands ahead of a cp:
until they can be read here, such a copy is reported.

So there are more clocks beside those of `detector`: PASSED, what reached a warp through
barriers, ordered before what they order; ORDERED, the same at its latest
``fence::after_thread_sync``, which its own asynchronous instructions may rely on; SETTLED, all
that it knew then, for what these read of shared memory. A warp counts as one thread here. An
asynchronous operation of a warp is one of an agent, at the time of its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Issuer, Warp
from ..core.hazards import REMARK
from ..core.tensor_memory import Area
from .clocks import CARRIED, EPOCH, KNOWN, ORDERED, PASSED, SETTLED, THREAD, TIME, column_of

IN_FLIGHT, UNFENCED = "tensor memory in flight", "missing tcgen05.fence"


@dataclass(eq=False)
class TensorAccess:
    """What one instruction does to an area of a block's tensor memory."""

    what: str  # "mma", "cp", "shift", "ld" or "st"
    area: Area
    writes: bool
    by: Issuer
    shape: tuple = ()  # of an mma: what must be the same for the next one to follow in order
    issued: int = 0  # time of the warp's clock when it was issued
    number: int = 0  # of an mma, cp or shift: its time as the agent of its warp
    done: int = 0  # of a ld or st: the warp's clock when it had been waited for; 0: it has not
    serial: int = field(default_factory=count().__next__)  # its number among all
    # Numbers of those that it meets and is ordered behind.
    behind: set[int] = field(default_factory=set)
    # Of what two blocks do together: whose tensor memory this is, if not the issuer's.
    peer: int | None = None

    @property
    def block(self) -> int:
        """The block whose tensor memory is accessed."""
        return self.by.row if self.peer is None else self.peer

    @property
    def committed(self) -> bool:
        """Whether it completes through a commit, not a wait."""
        return self.what not in ("ld", "st")


class TensorOrder:
    """The clocks of one batch, and what its blocks do to tensor memory."""

    def __init__(self, races: Any, f: Batch) -> None:
        self.races, self.f = races, f
        self.numbers = np.zeros((f.blocks, f.warps), np.int64)
        self.accesses: dict[int, list[TensorAccess]] = {}

    # -- what orders ----------------------------------------------------------------------------

    def before(self, warp: Warp) -> None:
        """fence::before_thread_sync (9.7.16.6.3): what it issued comes before its barriers."""
        races = self.races
        races.of(warp)[PASSED, races.own[warp]] = races.clock[warp]
        races.advance(warp)

    def after(self, warp: Warp) -> None:
        """fence::after_thread_sync (9.7.16.6.3): what the warp issues now comes behind them."""
        clocks = self.races.of(warp)
        np.maximum(clocks[ORDERED], clocks[PASSED], out=clocks[ORDERED])
        clocks[SETTLED] = clocks[KNOWN]

    def committed(self, warp: Warp, column: int) -> ndarray:
        """Return what an mbarrier learns of a commit (9.7.16.6.2.1.1; its fence: 9.7.16.6.4.2).

        That is all of the warp's operations so far, and what these were issued behind: the copies,
        say, of which the warp had learnt before. Its ordinary accesses are not released.
        """
        found = self.races.of(warp)[:CARRIED].copy()
        found[:, column] = EPOCH + self.numbers[warp]
        return found

    def reads_shared(self, cells: ndarray, by: Issuer) -> None:
        """Remark on shared memory that an mma or cp reads behind a barrier, but behind no fence.

        Of tensor memory the fence is needed (`_compare`). Of operands in shared memory the text can
        be read in two ways, and only a GPU's maker knows which holds; a strict launch tells both.
        """
        if not self.f.strict:
            return
        races = self.races
        clocks = races.of(by.warp)
        seen = races.shared_shadow.writer.take(cells)
        other, time = column_of(seen & THREAD), seen >> TIME
        bad = (time > clocks[SETTLED][other]) & (time <= clocks[KNOWN][other])
        bad &= other != races.own[by.warp]
        races.proxy.report(
            REMARK, "operands in shared memory are read behind a wait or barrier, without "
            "tcgen05.fence::after_thread_sync in between. PTX ISA 9.7.16.6.3 orders "
            "asynchronous tcgen05 operations behind a synchronisation by this fence; CUTLASS's "
            "main loops for sm_100 and Triton's code have none there, as if what the wait "
            "itself orders were enough for shared memory, and the fence were for tensor memory",
            seen[bad], by,
        )

    def waited(self, warp: Warp, what: str) -> None:
        """tcgen05.wait (9.7.16.6.2.1.2): the warp's loads, or stores, are complete."""
        races, found = self.races, False
        for each in self.accesses.get(warp[0], ()):
            if each.what == what and each.by.warp == warp and not each.done:
                each.done, found = int(races.clock[warp]), True
        if found:
            races.advance(warp)

    # -- accesses -------------------------------------------------------------------------------

    def issue(self, parts: list[TensorAccess]) -> None:
        """Compare what one instruction does with what is in flight, and remember it."""
        warp = parts[0].by.warp
        self.numbers[warp] += parts[0].committed
        for part in parts:
            part.issued = int(self.races.clock[warp])
            part.number = int(self.numbers[warp])
        for block in dict.fromkeys(part.block for part in parts):
            self._compare(block, [part for part in parts if part.block == block])

    def _compare(self, block: int, parts: list[TensorAccess]) -> None:
        """Compare what an instruction does with one block's tensor memory."""
        known = self.accesses.setdefault(block, [])
        behind: list[TensorAccess] = []
        for old in known:
            superseded = False
            for new in parts:
                if not old.area.meets(new.area):
                    continue
                right = self._is_ordered(old, new) or self._by_another(old, new, known)
                if right:
                    new.behind.add(old.serial)
                if (old.writes or new.writes) and not right:
                    self._report(old, new)
                    right = True  # it is told once
                superseded |= right and new.area.covers(old.area) and (new.writes or not old.writes)
            if not superseded:
                behind.append(old)
        self.accesses[block] = behind + parts

    def _is_ordered(self, old: TensorAccess, new: TensorAccess) -> bool:
        clocks, same = self.races.of(new.by.warp)[ORDERED], old.by.warp == new.by.warp
        own = self.races.own[old.by.warp]
        if self._is_complete(old, clocks) or old.done and same:
            return True
        return _is_pipelined(old, new) and (same or bool(clocks[own] >= old.issued))

    def _is_complete(self, old: TensorAccess, clocks: ndarray) -> bool:
        """Tell whether a warp's clocks have the completion of an access."""
        if old.committed:
            return bool(clocks[self.races.proxy.tensor(old.by.warp)] >= EPOCH + old.number)
        return bool(old.done and clocks[self.races.own[old.by.warp]] >= old.done)

    def _by_another(
        self, old: TensorAccess, new: TensorAccess, known: list[TensorAccess]
    ) -> bool:
        """Tell whether one in between is ordered behind `old` and ahead of `new`.

        An order of execution is passed on: mma → shift and shift → cp.4x256b are pairs, so of what
        the shift writes the cp renews nothing that the mma has yet to write.
        """
        return any(
            old.serial in each.behind and each.writes and each.area.covers(new.area)
            and self._is_ordered(each, new) for each in known
        )

    def _report(self, old: TensorAccess, new: TensorAccess) -> None:
        f, races = self.f, self.races
        known, passed = races.ended[new.by.warp], races.of(new.by.warp)[PASSED]
        own, complete = races.own[old.by.warp], self._is_complete(old, races.ended[new.by.warp])
        kind, cure = IN_FLIGHT, "tcgen05.commit on an mbarrier behind the first, a wait on it and "
        cure += "tcgen05.fence::after_thread_sync before the second"
        if old.committed:
            if complete:
                kind, cure = UNFENCED, "tcgen05.fence::after_thread_sync before the second"
        elif not old.done:
            cure = (f"tcgen05.wait::{old.what} behind the first"
                    + ("" if old.by.warp == new.by.warp else ", in its warp, before the barrier"))
        elif complete:
            kind = UNFENCED
            cure = ("tcgen05.fence::after_thread_sync before the second" if passed[own] >= old.done
                    else "tcgen05.fence::before_thread_sync behind the first, before the barrier")
        else:
            cure = ("a barrier between the warps, behind tcgen05.fence::before_thread_sync and "
                    "before tcgen05.fence::after_thread_sync")
        if kind == IN_FLIGHT and _is_pipelined(old, new):
            kind = UNFENCED if known[own] >= old.issued else kind
            cure = ("tcgen05.fence::before_thread_sync behind the first, a barrier, and "
                    "tcgen05.fence::after_thread_sync before the second")
        verb = {True: "writes", False: "reads"}
        sides = [f.side(each.by) for each in (old, new)]
        f.hazards.add(
            kind,
            f"{sides[1]} {verb[new.writes]} tensor memory, {new.area}, while nothing orders it "
            f"behind {sides[0]}, which {verb[old.writes]} {old.area}; insert {cure}",
            *sides,
        )

    def freed(self, by: Issuer, area: Area) -> None:
        """Compare a dealloc, which is synchronous (9.7.16.6.1), with what is in flight there."""
        f, left = self.f, []
        known = self.races.ended[by.warp]
        for old in self.accesses.get(by.row, []):
            if not old.area.meets(area):
                left.append(old)
                continue
            own = not old.committed and old.by.warp == by.warp
            if not own and not self._is_complete(old, known):
                cure = ("tcgen05.commit on an mbarrier, and a wait on it" if old.committed else
                        f"tcgen05.wait::{old.what} in the warp that issued it, then a barrier")
                sides = [f.side(old.by), f.side(by)]
                f.hazards.add(
                    IN_FLIGHT,
                    f"{sides[1]} frees tensor memory, columns {area.first}-{area.last - 1}, while "
                    f"nothing orders it behind {sides[0]}, which accesses {old.area}; insert "
                    f"{cure}",
                    *sides,
                )
        self.accesses[by.row] = left


def _is_pipelined(old: TensorAccess, new: TensorAccess) -> bool:
    """Tell whether two instructions, issued in this order, execute in it (9.7.16.6.2)."""
    if new.what == "mma":
        if old.what == "mma":
            return old.shape == new.shape
        return old.what in ("cp", "shift")
    if new.what == "shift":
        return old.what == "mma"
    return (old.what, new.what, new.shape) == ("shift", "cp", ("4x256b",))
