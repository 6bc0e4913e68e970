"""What is launched for a problem: which instantiation, how many blocks of it, and why.

The one place that decides it, for a run as for `lib.gemm`, an exported file, the panel and a
benchmark: `lib.dispatch.fit` says what rows and addresses allow, and of a variant with candidates
`lib.dispatch.cost` (a model) or a search on a GPU, whose times are handed in, says which suits the
shape. A plan depends on the shape, the types, the SMs and on how the matrices are aligned, and on
no address; `lib.run.prepared` lays out what it takes in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lib.dispatch import cost
from lib.dispatch.cost import Choice
from lib.dispatch.fit import fit, refusal
from lib.kernels.grid import MAX_GRID_Y, Launch, Sms, Workspace, h100_sms
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem


class Timed(Protocol):
    """A shape on which candidates were timed: M, N and K, and `seconds` by the candidates' names.
    """

    @property
    def M(self) -> int: ...

    @property
    def N(self) -> int: ...

    @property
    def K(self) -> int: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Plan:
    """What is launched for a problem."""

    # The instantiation: the one that was asked for, one of its candidates, or one of these with a
    # narrower schedule.
    variant: Variant
    launch: Launch
    workspace: Workspace = Workspace()  # what the launch takes behind the matrices
    # The launches of the variant's `packing`, by the matrices that it copies first, ``"A"`` and
    # ``"B"``.
    packing: Mapping[str, Launch] = field(default_factory=dict)
    # Why it is not the variant that was asked for, or what is done besides; empty if neither.
    reason: str = ""


def plan(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    addresses: Sequence[int] = (),
    sms: Sms | None = None,
    *,
    exact: bool = False,
    choice: Choice | None = None,
    searches: Sequence[Timed] | None = None,
) -> Plan:
    """Decide what is launched for a problem.

    `addresses`: where A, B and C begin, or their alignments (`lib.dispatch.fit.alignment`), if that
    is known; of several sets of matrices, one after the other. `sms`: SMs of the GPU, or what says
    how many of them clusters of so many blocks fill; an H100's if not given. A persistent kernel
    has as many blocks as run on them at once. `exact`: keep to the variant's own tile, also where a
    candidate suits the shape better. `choice`: the candidate to launch, in place of the one that
    would be chosen. `searches`: the shapes on which the variant's candidates were timed
    (`lib.records.searches.of`), where a search decides. Raises ValueError if types or layout
    differ, if the shape passes what CUDA's grid or 32-bit indices can hold, or if rows or addresses
    are not what the instantiation needs and nothing packs them.
    """
    if refused := refusal(variant, problem):
        raise ValueError(f"{kernel.stem}/{variant.name} takes {refused}")
    if choice is None and variant.candidates and not exact:
        choice = choose(kernel, variant, problem, searches or ())
    asked, why = (kernel.variant(choice.name), choice.reason) if choice else (variant, "")
    one, packed, reason = fit(kernel, asked, problem, addresses)
    grid = one.grid.blocks(problem, one.tile, one.step, sms or h100_sms)
    return Plan(
        one, Launch(grid, (*one.block, 1), one.shared_bytes, one.programmatic_launch),
        one.grid.workspace(problem, one.tile, one.step, grid),
        {matrix.name: packing_launch(one.packing, matrix.lines * matrix.distinct, matrix.length)
         for matrix in map(problem.operand, packed) if one.packing and matrix.span},
        " and ".join(filter(None, (why, reason))),
    )


def choose(
    kernel: Kernel, variant: Variant, problem: Problem, searches: Sequence[Timed] = ()
) -> Choice:
    """Choose among a variant's candidates: by the model, or by the timed shape that is nearest."""
    if variant.by_rule:
        return cost.ranked(kernel, variant, problem)[0]
    return nearest(variant, problem, searches)


def nearest(variant: Variant, problem: Problem, search: Sequence[Timed]) -> Choice:
    """The candidate that was fastest on the timed shape that is nearest; without any the first.

    A big tile reads shared memory and L2 less often; small ones fill the GPU where C is small. For
    the kernels of older instruction sets no formula of a few lines knows where one overtakes the
    other. So the candidates are timed on a few shapes, once (`lib.measure.search`). Hopper's
    kernels have a model (`lib.dispatch.cost`).

    Shapes lie as far apart as their sizes differ in powers of two, M, N and K added up.
    """
    searched = [row for row in search if set(row.seconds) & set(variant.candidates)]
    if not searched:
        return Choice(variant.candidates[0], "no search of tiles is recorded")
    like = min(searched, key=lambda row: sum(
        abs(math.log2(timed / max(asked, 1))) for timed, asked in (
            (row.M, problem.M), (row.N, problem.N), (row.K, problem.K))))
    name = min(set(like.seconds) & set(variant.candidates), key=like.seconds.__getitem__)
    return Choice(name, f"{name}: fastest at {like.M}×{like.N}×{like.K}, the most similar of the "
                        "shapes searched")


def packing_launch(packing: Variant, rows: int, columns: int) -> Launch:
    """The launch that copies so many rows and columns into rows that tensor maps can step over."""
    threads, each = math.prod(packing.block), packing.tile[1] // math.prod(packing.block)
    # Where rows are short, several share a block: else most of its threads would have no part.
    across = min(threads, 1 << (-(-columns // each) - 1).bit_length())
    down = threads // across
    grid = (-(-columns // (each * across)), min(-(-rows // down), MAX_GRID_Y), 1)
    return Launch(grid, (across, down, 1), programmatic_launch=packing.programmatic_launch)
