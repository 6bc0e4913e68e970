"""clusterlaunchcontrol: a running cluster cancels one that has not begun, and does its work.

PTX ISA, clusterlaunchcontrol.try_cancel and .query_cancel. The emulator runs `launch.RESIDENT`
clusters at once in such a kernel: the others can be cancelled, the first ones first. The response
of 16 bytes comes by the asynchronous proxy and completes on an mbarrier, as a bulk copy does. Where
one was read before, a proxy fence stands between, as in the CUDA C++ Programming
Guide's example of cluster launch control.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from ..core.addressing import SharedBytes, shared_address
from ..core.batch import Batch, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.registers import parted, unstacked
from ..core.scheduler import Waiter
from ..core.syntax import Instruction
from .cp_async_bulk import bring

_BYTES = 16
# The last word of a response, which nothing else has: refused, or granted.
_REFUSED, _GRANTED = 0xC1C00000, 0xC1C00001


class LaunchControl(Waiter):
    """Which blocks of a batch have seen that nothing is left to be cancelled."""

    kind = "launch control"  # hazards of what PTX leaves undefined

    def begin(self) -> None:
        self.seen: dict[int, Instruction] = {}

@opcode("clusterlaunchcontrol")
def cluster_launch_control(d: Decoding) -> Run:
    """clusterlaunchcontrol.try_cancel, .query_cancel.is_canceled, .query_cancel.get_first_ctaid"""
    names = d.instruction.opcode.removeprefix("clusterlaunchcontrol.")
    if names.startswith("try_cancel."):
        return _try_cancel(d)
    if names.startswith("query_cancel.is_canceled."):
        return _is_canceled(d)
    if names.startswith("query_cancel.get_first_ctaid"):
        return _first_block(d, d.parts[2].partition("::")[2])
    d.unsupported("try_cancel, query_cancel.is_canceled and query_cancel.get_first_ctaid")


def _try_cancel(d: Decoding) -> Run:
    """...async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all} [to], [mbar]"""
    d.only(
        ".try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all",
    ).needs("b128").count(2)
    cast = d.has("multicast::cluster::all")

    def ask(f: Batch, by: Issuer, at: int, bar: int) -> None:
        control, peers = f.waiter(LaunchControl), f.geometry.peers
        if by.row in control.seen:
            control.hazard(
                by,
                "asks for one more cluster after its block has seen a request that failed, at "
                f"{f.place(control.seen[by.row])}: that is undefined; end the loop there",
            )
        first = f.geometry.pending.cancel(peers)
        words = (0, 0, 0, _REFUSED) if first is None else (*f.geometry.index_of(first), _GRANTED)

        def write(there: SharedBytes) -> None:
            there.data.view(np.uint32)[:] = words

        mask = (1 << peers) - 1 if cast else None
        bring(f, by, write, at, bar, _BYTES, _BYTES, mask, behind_reads=True)

    return for_each_lane(d, ask, shared_address(d, 0), shared_address(d, 1))


def _words(d: Decoding) -> Callable[[Batch], list[ndarray]]:
    """Make the function that reads responses: four words of each lane."""
    read = d.read(1, "b128")

    def words(f: Batch) -> list[ndarray]:
        found = parted(f.full(read(f.r)), np.uint32)
        if not np.isin(f.of_active(found[..., 3]), (_REFUSED, _GRANTED)).all():
            raise Error(
                f"{f.place(d.instruction)}: these 16 bytes are no response of "
                "clusterlaunchcontrol.try_cancel: load what it wrote, behind a wait on its mbarrier"
            )
        return unstacked(found)

    return words


def _is_canceled(d: Decoding) -> Run:
    d.only(".query_cancel.is_canceled.pred").needs("b128").count(2)
    put, words = d.write(0, "pred"), _words(d)

    def step(f: Batch) -> None:
        granted = words(f)[3] == _GRANTED
        control = f.waiter(LaunchControl)
        for row in np.flatnonzero((~granted & f.active_lanes).any(axis=1)).tolist():
            control.seen.setdefault(row, d.instruction)
        put(f.r, granted)

    return step


def _first_block(d: Decoding, axis: str) -> Run:
    """get_first_ctaid.v4.b32.b128 {x, y, z, _}, response and get_first_ctaid::x.b32.b128 d, ..."""
    items = d.vector(0)
    if axis not in ("", "x", "y", "z") or len(items) != (1 if axis else 4):
        d.wrong("the forms are .get_first_ctaid.v4 {x, y, z, _} and .get_first_ctaid::x, ::y, ::z")
    d.only("query_cancel", d.parts[2], "v4").needs("b128").count(2)
    words = _words(d)
    put, axes = d.write_all(items[:3], "b32"), ["xyz".index(axis)] if axis else [0, 1, 2]

    def step(f: Batch) -> None:
        found = words(f)
        refused = (found[3] == _REFUSED) & f.active_lanes
        if refused.any():
            row, thread = np.argwhere(refused)[0].tolist()
            f.waiter(LaunchControl).hazard(
                Issuer(row, thread, d.instruction, d.index),
                "reads the first block of a request that failed, which is undefined: ask "
                "query_cancel.is_canceled before",
            )
        put(f.r, [found[at] for at in axes])

    return step
