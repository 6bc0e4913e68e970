"""The way of the tensor cores' instructions from version to version: a table, and two drawn."""

from __future__ import annotations

from lib.plotting import columns
from lib.plotting.columns import Column
from lib.plotting.display import show
from lib.ptx.core.machine import WARP, WARPGROUP
from lib.topics.code.tensor_instructions import figure, model
from lib.topics.code.tensor_instructions.model import Multiplies

# What each version's instruction took from the one before, by stem.
_CHANGED = {
    "15_turing_limit": "",
    "17_wgmma": "A and B: out of registers, into shared memory",
    "27_tcgen05": "the sums: out of registers, into tensor memory",
    "28_cta_pairs": "half of B: into the other SM",
}


def compared(*versions: str) -> None:
    """Display who holds, who issues and who waits, a version a column.

    Parameters
    ----------
    *versions : str
        Stems, or ``"stem/variant"``, of versions whose PTX multiplies on tensor cores.
    """
    columns.compared("", [
        Column("one instruction", lambda one: f"`{one.opcode}`"),
        Column("multiplies, M×N×K", lambda one: "×".join(map(str, one.shape))),
        Column("FLOP of one", lambda one: one.flops, ","), Column("who holds the sums", _sums),
        Column("where A and B come from", _operands), Column("who issues it", _issuer),
        Column("how its end is known", _end),
        Column("what moved", lambda one: _CHANGED.get(one.stem, "")),
    ], [(f"version {one.stem[:2]}", one) for one in map(model.multiplies, versions)],
        "PTX of each version's first variant; M and N of tcgen05 by the instruction descriptor")


def draw(name: str, before: str) -> None:
    """Draw what multiplies in a version beside what did in another, to one scale.

    Parameters
    ----------
    name, before : str
        ``"stem"`` or ``"stem/variant"``; the operands of `name` lie as `model.multiplies` reads.
    """
    show(figure.draw(model.multiplies(name), model.multiplies(before)))


def _sums(one: Multiplies) -> str:
    if one.sums:
        return f"{one.sums} registers of each of {one.issuers} threads"
    where = "tensor memory"
    return where if one.blocks == 1 else f"{where}, half in each of {one.blocks} SMs"


def _operands(one: Multiplies) -> str:
    if one.a and one.b:
        return f"registers: {one.a} and {one.b} of each thread"
    return "shared memory" if one.blocks == 1 else f"shared memory of {one.blocks} SMs"


def _issuer(one: Multiplies) -> str:
    names = {WARP: "a warp", WARP * WARPGROUP: "a warpgroup, four warps"}
    if one.issuers in names:
        return names[one.issuers]
    return "one thread" if one.blocks == 1 else f"one thread, for {one.blocks} blocks"


def _end(one: Multiplies) -> str:
    if not one.waits:
        return "the next instruction may use the sums"
    if one.waits.startswith("wgmma"):
        return f"`{one.waits}`, by the warps that issued it"
    where = "an mbarrier" if one.blocks == 1 else "an mbarrier of each block"
    return f"`{one.waits}`: {where}, and whoever waits there"
