"""From a traced launch to named accesses: which line of which array a warp touched.

The trace knows PTX lines and addresses. A reader knows source lines and arrays. This ties them:
an address names the array it falls into, and the source line shows how it is indexed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from lib import ptx
from lib.paths import ROOT
from lib.ptx.core.segment import PEER_BYTES
from lib.ptx.source_lines import SourceLines
from lib.show import banks as served
from lib.show import coalescing as touched

if TYPE_CHECKING:
    from lib.show.version import Version

SOURCES = SourceLines(folders=(ROOT,))  # PTX may name any file: none but the book's are read

HEADERS = (".cuh", ".hpp")  # the book's own, and CUDA's: `wmma` is a header of those

# The arguments of every kernel of this book, in order; the last two where tiles are cut.
ARGUMENTS = ("M", "N", "K", "alpha", "A", "B", "beta", "C", "parts", "arrivals",
             "", "", "", "a_scales", "b_scales")


@dataclass(frozen=True)
class Named:
    """One memory instruction of the source, with one access of the watched warp.

    Attributes
    ----------
    label : str
        How the source indexes it, such as ``"B[k * N + col]"``; the array's name if it doesn't.
    array : str
        Name of the array.
    kind, space : str
        ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"`` or ``"copy"``; ``"global"`` or
        ``"shared"``.
    where : str
        File and line, such as ``"01_naive.cu:28"``.
    access : ptx.WarpAccess
        The watched warp's first one.
    allocation : ptx.Allocation
        The array it falls into.
    requests : int
        How often warps executed it in the whole launch.
    source : ptx.WarpAccess or None
        Of a copy's writes to shared memory: what it reads in global memory.
    past_l1 : bool
        Of a copy: whether it goes past the L1.
    """

    label: str
    array: str
    kind: str
    space: str
    where: str
    access: ptx.WarpAccess
    allocation: ptx.Allocation
    requests: int
    source: ptx.WarpAccess | None = None
    past_l1: bool = False

    def touched(self) -> touched.Panel:
        """What it touches in global memory."""
        return touched.panel(self.label, self.access, self.allocation, array=self.array,
                             kind=self.kind, where=self.where)

    def served(self) -> served.Panel:
        """How the banks of shared memory serve it.

        Raises
        ------
        ValueError
            If it has a width, or an order of copies, that no rule is known for.
        """
        return served.panel(self.label, self.access, kind=self.kind, where=self.where,
                            source=self.source, past_l1=self.past_l1)


def named(launch: ptx.Launch, space: str, arguments: Sequence[str] = ARGUMENTS) -> list[Named]:
    """Return the memory instructions that the watched warp executed, one a line and array.

    Where a line was unrolled into several instructions on one array, the one that warps executed
    most often stands for all, the first of those in the PTX.

    Parameters
    ----------
    launch : ptx.Launch
        Of a run that watched a warp.
    space : {"global", "shared"}
    arguments : sequence of str
        Names of the kernel's arguments, where it has others.

    Raises
    ------
    ValueError
        If no warp was watched.
    """
    arrays = launch.allocations if space == "global" else launch.shared
    if launch.traced.watched is None or not any(launch.traced.watched.values()):
        raise ValueError("no warp was watched: run with watch=(block, warp)")
    lines = _lines(launch)
    found: dict[tuple[str, str, str], Named] = {}
    for site in launch.traced.sites:
        accesses = launch.traced.watched.get(site.line)
        if site.space != space or not site.requests or not accesses:
            continue
        writes, reads = accesses[0], None
        if site.kind == "copy":
            pair = _copied(accesses)
            if pair is None:  # all that the warp copied lay outside: zeros, from nowhere
                continue
            writes, reads = pair
        access = reads if reads and space == "global" else writes
        if space == "shared" and access.addresses[access.active].max() >= PEER_BYTES:
            continue  # another block's memory, through the cluster's window
        allocation = _holder(access, arrays)
        name = name_of(allocation, arguments)
        where = _where(site)
        label = _label(site, name, lines)
        one = Named(label, name, site.kind, space, where, access, allocation, site.requests,
                    reads if space == "shared" else None, ".cg." in site.opcode)
        key = (where, name, site.kind)
        if key not in found or one.requests > found[key].requests:
            found[key] = one
    return _apart(list(found.values()))


def _apart(accesses: list[Named]) -> list[Named]:
    """Accesses without those of a line whose code the compiler has joined with another's.

    There the line that names one array is said to access another, too, which a line of its own has.
    """
    named_by = Counter((access.where, access.kind, access.label) for access in accesses)
    joined = [access for access in accesses
              if named_by[access.where, access.kind, access.label] > 1]
    alone = {(access.array, access.kind) for access in accesses if access not in joined}
    return [access for access in accesses
            if access not in joined or (access.array, access.kind) not in alone]


def _copied(accesses: list[ptx.WarpAccess]) -> tuple[ptx.WarpAccess, ptx.WarpAccess] | None:
    """The first copy that reads: what it writes and what it reads, kept one behind the other."""
    pairs = zip(accesses, accesses[1:], strict=False)
    return next(((to, source) for to, source in pairs if to.step == source.step), None)


def array(access: ptx.WarpAccess, arrays: Iterable[ptx.Allocation]) -> str:
    """The name of the array that an access falls into."""
    return name_of(_holder(access, arrays))


def name_of(allocation: ptx.Allocation, arguments: Sequence[str] = ARGUMENTS) -> str:
    """The name that the source gives an array.

    A shared variable's mangled name ends in its own, behind its length; that of one that a function
    declares stands behind an E, as a template's arguments that look like a length don't.
    """
    if isinstance(allocation.argument, int):
        return arguments[allocation.argument]
    for before in ("(?<=E)", ""):
        for tail in re.finditer(before + r"(?=(\d+)([A-Za-z_]\w*)$)", allocation.argument):
            if int(tail[1]) == len(tail[2]):
                return tail[2]
    return allocation.argument


def _holder(access: ptx.WarpAccess, arrays: Iterable[ptx.Allocation]) -> ptx.Allocation:
    address = int(access.addresses[access.active][0])
    for allocation in arrays:
        if allocation.base <= address < allocation.base + allocation.nbytes:
            return allocation
    raise LookupError(f"address {address:#x} is in none of the launch's arrays")


def _place(site: ptx.Site) -> tuple[str, int] | None:
    """The line of the kernel's own file that an access belongs to.

    A function of a header is inlined: the reader looks for the line that calls it.
    """
    places = (site.cuda, *site.callers) if site.cuda else ()
    return next((place for place in places if not place[0].endswith(HEADERS)), site.cuda)


def _where(site: ptx.Site) -> str:
    place = _place(site)
    return f"{PurePath(place[0]).name}:{place[1]}" if place else f"PTX line {site.line}"


def _label(site: ptx.Site, array: str, lines: dict[str, list[str]]) -> str:
    """The array's element as the source names it, casts left out.

    From the access's line in the kernel's file; or, where that names a pointer into the array,
    from the first element whose address a kernel of this launch takes (``&C[row * N + col]``).
    """
    place = _place(site)
    here = lines.get(place[0], []) if place else []
    own = here[place[1] - 1 : place[1] + 1] if place else []
    own = own[: 1 + own[0].rstrip().endswith("(")] if own else []  # a call's arguments with it
    passed = [text for file in sorted(lines) for text in lines[file] if f"&{array}[" in text]
    passed.sort(key=lambda text: f"{site.kind}<" not in text)  # `load<4>(…, &As[…])` for a load
    if site.kind in ("ldmatrix", "stmatrix"):  # never what a load or a store of lanes is passed
        passed = [text for text in passed if "load<" not in text and "store<" not in text]
        passed = passed if len(passed) == 1 else []
    for text in (*own, *passed):
        text = text.replace("(size_t)", "")
        element = re.search(rf"\b{re.escape(array)}(\[[^\[\]]*\])+", text)
        # A tile that shares its memory with others is a member: `shared.tiles.A[row][k]`.
        member = re.search(rf"\b{re.escape(array)}\.((?:\w+\.)*)(\w+(?:\[[^\[\]]*\])+)", text)
        if element:
            return element[0]
        if member:
            return member[2]
    return _by_callers(site, lines) or array


def _by_callers(site: ptx.Site, lines: dict[str, list[str]]) -> str:
    """What a line that only has a pointer into an array points at or moves: ``slice[e]``, ``a[i]``.

    The first element that the access's line names, or, from call to call, the line that calls it;
    lines of the kernel's own file before those of headers.
    """
    chain = [place for place in (site.cuda, *site.callers) if place] if site.cuda else []
    for file, number in sorted(chain, key=lambda place: place[0].endswith(HEADERS)):
        text = "".join(lines.get(file, [])[number - 1 : number])
        if '"' in text:  # inline PTX: its operands are nobody's elements
            continue
        element = re.search(r"&(\w+(?:\[[^\[\]]*\])+)", text) or re.search(
            r"\b(\w+(?:\[[^\[\]]*\])+)", text)
        if element:
            return element[1]
    return ""


def _lines(launch: ptx.Launch) -> dict[str, list[str]]:
    """The text of every source file that the launch's accesses come from."""
    files = {
        place[0] for site in launch.traced.sites if site.cuda
        for place in (site.cuda, *site.callers)
    }
    return {file: SOURCES.text(file).splitlines() for file in files}


def coalescing(
    version: Version, *variants: str, shape: tuple[int, int, int] | None = None,
    watch: tuple[int, int] = (0, 0), sms: int | None = None,
    arguments: Sequence[str] = ARGUMENTS, but: Sequence[str] = (),
) -> None:
    """Draw what a warp's loads and stores touched in global memory, variant by variant.

    Parameters
    ----------
    version : Version
    *variants : str
        All of them if none is named, but for those whose matrices the copy engine moves.
    shape : (int, int, int), optional
        M, N and K of another run than the traced one, whose block and warp are `watch`.
    watch : (int, int)
    sms : int, optional
        How many SMs that run is launched for, where not for the book's GPU.
    arguments : sequence of str
        Names of the kernel's arguments, where it has others.
    but : sequence of str
        Arrays to leave out.
    """
    from lib.show.display import show  # the panel has accesses, and no page

    groups: list[touched.Group] = []
    chosen = [version.kernel.variant(name) for name in variants] or version.kernel.variants
    for variant in chosen:
        if shape:
            options = {"sms": sms} if sms else {}
            launch = version.run(variant.problem(*shape), variant.name, backend="emulator",
                                 exact=True, watch=watch, **options).emulated
        else:
            launch = version.traced(variant.name).emulated
        panels = [
            access.touched()
            for access in sorted(named(launch, "global", arguments),
                                 key=lambda access: access.kind == "store")
            if access.array not in but
        ]
        if panels:
            groups.append(touched.Group(variant.name if len(chosen) > 1 else "", panels))
        if not groups and variant is chosen[-1] or variants and not panels:
            raise ValueError(f"{version.kernel.stem}, {variant.name}: no lane reads or writes "
                             "global memory itself; draw its boxes instead: box()")
    evidence = version.emulated_label()
    if shape:
        evidence = (f"emulated: {version.kernel.min_arch} PTX, {'×'.join(map(str, shape))}"
                    + f" on {sms} SMs" * (sms is not None))
    show(touched.draw(groups, evidence=evidence))


def banks(version: Version, variant: str | None = None, kind: str | None = None) -> None:
    """Draw which banks a warp's shared accesses meet: of one kind, or of all."""
    from lib.show.display import show

    panels = [
        access.served()
        for access in sorted(named(version.traced(variant).emulated, "shared"),
                             key=lambda access: access.kind in ("load", "ldmatrix"))
        if kind in (None, access.kind)
    ]
    if not panels:
        raise ValueError(f"{version.kernel.stem} has no shared memory to draw")
    show(served.draw(panels, evidence=version.emulated_label()))
