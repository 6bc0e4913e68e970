"""call: device functions, by name or through a pointer, and what the CUDA runtime provides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.calls import CallSite
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.linking import called_name
from ..core.predication import predicated_end
from ..core.syntax import SIZES, Register, Symbol, Vector
from .system_calls import LAUNCHES, SYSTEM_CALLS

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.calls import Passed
    from ..core.step import Run
    from ..core.syntax import Operand


@opcode("call")
def call(d: Decoding) -> Run:
    """call{.uni} {(results),} function|register{, (arguments)}{, prototype|targets}"""
    d.only("uni")
    d.ends = True
    operands = list(d.operands)
    results = _listed(operands)
    target = called_name(d.instruction)
    if target is None:
        d.wrong("what is called is missing")
    operands.pop(0)
    arguments = _listed(operands)
    entry = d.registers.entry
    site = CallSite(
        d.instruction, d.index + 1, tuple(_passed(d, r, True) for r in results),
        tuple(_passed(d, a, False) for a in arguments),
        entry.functions.get(d.instruction.function),
    )
    if isinstance(target, Register):
        return predicated_end(d, _through_pointer(d, target, site))
    name = target.name
    if name in entry.functions:
        callee = entry.functions[name]
        return predicated_end(d, lambda f: f.calls.call(site, callee))
    if name in LAUNCHES:
        d.unsupported("kernels that launch kernels (dynamic parallelism) are not emulated; launch "
                      "the inner kernel from the host")
    if name not in SYSTEM_CALLS:
        d.unsupported(f"function '{name}' is declared here and defined elsewhere; it must be in "
                      f"the module, or one of {' '.join(SYSTEM_CALLS)}")
    run = SYSTEM_CALLS[name]

    def system(f: Batch) -> None:
        run(f, site)
        f.go(site.following, f.active)

    return predicated_end(d, system)


def _listed(operands: list[Operand]) -> tuple[Operand, ...]:
    """Take a list in parentheses, if one comes next."""
    first = operands[0] if operands else None
    if not isinstance(first, Vector):
        return ()
    del operands[0]
    return first.items


def _passed(d: Decoding, given: Operand, written: bool) -> Passed:
    """What a call passes or takes: the name of a variable, a Register, or a constant's slot."""
    if isinstance(given, Register):
        if written:
            d.writes.append(given.slot)
        return given
    if isinstance(given, Symbol):
        if given.name != "_" and given.name not in d.registers.entry.variables:
            d.wrong(f"unknown name {given.name}")
        d.registers.address_of(given.name, 0, np.dtype("u8")) if given.name != "_" else None
        return given.name
    return d.slot(given, "b64" if SIZES.get(d.type, 4) == 8 else "b32")


def _through_pointer(d: Decoding, target: Register, site: CallSite) -> Run:
    program, functions, place = d.registers.program, d.registers.entry.functions, d.place

    def step(f: Batch) -> None:
        address = np.broadcast_to(f.r[target.slot], (f.blocks, f.threads))
        found = np.unique(f.of_active(address)).tolist()
        masks = [f.selected(address == a) for a in found]
        outer = f.active, f.merge
        for one, mask in zip(found, masks, strict=True):
            f.active = mask
            callee = functions.get(program.function_at(one) or "")
            if callee is None:
                raise Error(
                    f"{place}: a call through a pointer to {one:#x}, which is "
                    f"{'null' if not one else 'no function'}: {f.lane_names(f.active_lanes)}"
                )
            if len(found) > 1:
                f.merge = f.active_lanes
            f.calls.call(site, callee)
        f.active, f.merge = outer

    return step
