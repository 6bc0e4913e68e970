"""From an emulated launch to the panels of the coalescing and bank figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lib import ptx
from lib.figures import banks, coalescing

# Which argument of a GEMM kernel (M, N, K, alpha, A, B, beta, C) is which matrix.
MATRICES = {4: "A", 5: "B", 7: "C"}


def coalescing_panels(
    launch: ptx.Launch, names: Mapping[int, str] = MATRICES, *, first: int = 0
) -> list[coalescing.Panel]:
    """Return a panel for each line of CUDA that loads from or stores to a matrix.

    A loop that the compiler unrolled has many PTX lines for one of CUDA; the first stands for all.

    Parameters
    ----------
    launch : ptx.Launch
        Run with `watch`.
    names : mapping of int to str
        Argument number to the array's name.
    first : int
        Which of a line's watched accesses to show: the loop's iteration.

    Raises
    ------
    ValueError
        If no warp was watched.
    """
    panels: dict[tuple, coalescing.Panel] = {}
    files = _files(launch)
    for site, access in _watched(launch, "global", first):
        lowest = int(access.addresses[access.active].min())
        allocation = next(
            a for a in launch.allocations if a.base <= lowest < a.base + a.nbytes
        )
        array = names[allocation.argument]
        key = (site.cuda, array, site.kind)
        if key not in panels:
            panels[key] = coalescing.panel(
                _expression(site, array, files), access, allocation,
                array=array, kind=site.kind, where=_where(site),
            )
    order = list(names.values())
    return sorted(panels.values(), key=lambda p: (p.kind == "store", order.index(p.array)))


def bank_panels(
    launch: ptx.Launch, arrays: Mapping[str, range], *, first: int = 0
) -> list[banks.Panel]:
    """Return a panel for each line of CUDA and array that shared memory is accessed by.

    Parameters
    ----------
    launch : ptx.Launch
        Run with `watch`.
    arrays : mapping of str to range
        Each shared array's bytes within the block's shared memory, by name: in the order of their
        declaration, as ptxas lays them out.
    first : int
        Which of a line's watched accesses to show.

    Raises
    ------
    ValueError
        If no warp was watched, or an access lies outside all arrays.
    """
    panels: dict[tuple, banks.Panel] = {}
    files = _files(launch)
    for site, access in _watched(launch, "shared", first):
        lowest = int(access.addresses[access.active].min())
        array = next((name for name, where in arrays.items() if lowest in where), None)
        if array is None:
            raise ValueError(f"shared address {lowest} lies in none of {', '.join(arrays)}")
        key = (site.cuda, array, site.kind)
        if key not in panels:
            panels[key] = banks.panel(
                _expression(site, array, files), access, kind=site.kind, where=_where(site)
            )
    return sorted(panels.values(), key=lambda p: p.kind != "store")


def _watched(launch: ptx.Launch, space: str, first: int):
    found = [
        (site, accesses[min(first, len(accesses) - 1)])
        for site in launch.trace.sites
        if site.space == space and (accesses := launch.trace.watched.get(site.line))
    ]
    if not found and any(site.space == space for site in launch.trace.sites):
        raise ValueError("no warp was watched: run with watch=(block, warp)")
    return found


def _where(site: ptx.Site) -> str:
    return f"{Path(site.cuda[0]).name}:{site.cuda[1]}" if site.cuda else f"PTX line {site.line}"


def _expression(site: ptx.Site, array: str, files: set[str]) -> str:
    """Return the array's element as the source names it: ``B[k * N + col]``.

    From the access's own line; or, where a function of a header was given a pointer, from the first
    address of an element that a kernel of this launch takes (``&C[row * N + col]``).
    """
    element = rf"\b{re.escape(array)}((\[[^\[\]]*\])+)"
    here = []
    if site.cuda and Path(site.cuda[0]).is_file():
        here = [Path(site.cuda[0]).read_text(encoding="utf-8").splitlines()[site.cuda[1] - 1]]
    passed = [
        line
        for file in sorted(files)
        for line in Path(file).read_text(encoding="utf-8").splitlines()
        if f"&{array}[" in line
    ]
    for line in [*here, *passed]:
        match = re.search(element, re.sub(r"\(size_t\)\s*", "", line))
        if match:
            return match[0]
    return array


def _files(launch: ptx.Launch) -> set[str]:
    files = {site.cuda[0] for site in launch.trace.sites if site.cuda}
    return {file for file in files if Path(file).is_file()}
