"""What each block of a pair has of A, of B and of the sums, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.kernels.catalogue import find
from lib.kernels.spec import Variant, parted
from lib.problem import ITEM_BYTES
from lib.show import scene
from lib.show.display import show, table
from lib.show.scene import Box, Drawing, Scene, column, row, words
from lib.show.version import Version


@dataclass(frozen=True)
class Share:
    """What one block of a cluster has of one step of K, in elements.

    Attributes
    ----------
    rows : range
        Of A, and of the sums: from the cluster's first row on.
    held : range
        Columns of B in its shared memory.
    summed : range
        Columns of the sums in its tensor memory.
    stage_bytes : int
        Shared memory of a stage, B.
    """

    rows: range
    held: range
    summed: range
    stage_bytes: int


def shares(variant: Variant, blocks: int = 2) -> list[Share]:
    """What each of two blocks below each other has: of a pair, or of neighbours without one."""
    (rows, columns), step = variant.tile, variant.step
    pair = variant.grid.cluster
    part = columns // pair
    item = ITEM_BYTES[variant.dtype]
    found = []
    for rank in range(blocks):
        first = rank % pair * part
        held = range(first, first + part)
        found.append(Share(range(rank * rows, (rank + 1) * rows), held, range(columns),
                           (rows + len(held)) * step * item))
    return found


@dataclass(frozen=True)
class Handover:
    """An mbarrier of the pair.

    Attributes
    ----------
    name : str
        What its address is called in the source.
    says : str
        What a completed phase says.
    home : str
        In whose shared memory it is used.
    arrivals : int
        That complete a phase.
    by : str
        Who arrives, and bytes that are expected.
    waits : str
    """

    name: str
    says: str
    home: str
    arrivals: int
    by: str
    waits: str


def handovers_of(variant: Variant) -> list[Handover]:
    """The mbarriers of 28, in the order in which a tile meets them."""
    warps = dict(variant.roles.warps)
    storing, pair = 32 * warps["epilogue"], variant.grid.cluster
    nbytes = sum(one.stage_bytes for one in shares(variant, pair))
    found = [
        Handover("filled", "a stage of both blocks is there", "leader", 1,
                 f"the leader's producer, and {nbytes:,} bytes: TMA of both blocks",
                 "the thread that multiplies"),
        Handover("freed", "the MMAs have read the stage", "each block", 1,
                 "a commit to both blocks", "each block's producer"),
        Handover("ready", "a tile of sums is complete", "each block", 1,
                 "a commit to both blocks", "each block's epilogue"),
        Handover("drained", "both halves of the tile are read", "leader",
                 pair * storing, f"{storing} threads of each epilogue",
                 "the thread that multiplies"),
    ]
    if variant.constants["CONTROL"]:
        readers = pair * storing + pair + 1
        found += [
            Handover("told", "the next tile is known", "each block", 1,
                     "the block's producer, and 16 bytes: the answer",
                     "all who walk through tiles"),
            Handover("read", "all have read the answer", "leader", readers,
                     f"{readers} threads of both blocks", "the leader's producer"),
        ]
    return found


@dataclass(frozen=True)
class Pending:
    """What the leader's `filled` of a stage still waits for behind an event of a phase.

    Attributes
    ----------
    event : str
    arrivals, nbytes : int
        Bytes are negative where some have come that nobody has expected yet.
    """

    event: str
    arrivals: int
    nbytes: int


def phase(variant: Variant) -> list[Pending]:
    """A phase of `filled` in which the second block's bytes come first."""
    leader, second = (one.stage_bytes for one in shares(variant))
    both = leader + second
    return [
        Pending("the phase before has ended", 1, 0),
        Pending(f"TMA of the second block: {second:,} bytes", 1, -second),
        Pending(f"the leader's producer expects {both:,}, arrives", 0, both - second),
        Pending(f"TMA of the leader: {leader:,} bytes", 0, 0),
        Pending("both are 0: the phase ends", 1, 0),
    ]


# A block's colour, for all that it holds; px of a picture, of A's depth and of a row of B.
_OF = ("compute", "load")
_SIDE, _DEPTH, _STRIP, _GAP = 330.0, 34.0, 18.0, 8.0


def draw(ways: Sequence[tuple[str, Sequence[Share]]], *, title: str, evidence: str) -> Scene:
    """Draw some ways to divide a tile between two blocks, each with its name."""
    key = scene.key(*((colour, text, True) for colour, text in zip(
        _OF, ("first block (a pair's leader)", "second block"), strict=True)))
    return Scene(title, row(*(
        column(words(name, bold=True), _drawing(blocks).html(), width=_SIDE)
        for name, blocks in ways)) + key, evidence)


def _drawing(blocks: Sequence[Share]) -> Drawing:
    """B above, A at the left, the sums between them; what two blocks have is drawn twice."""
    left, top = _DEPTH + _GAP, len(blocks) * (_STRIP + 3) + _GAP
    scale = (_SIDE - left) / max(block.summed.stop for block in blocks)
    drawing = Drawing(_SIDE, top + scale * max(block.rows.stop for block in blocks))

    def box(rank: int, text: str, place: Box) -> None:
        drawing.filled(place, text, _OF[rank], pale=True, framed=True)

    for rank, block in enumerate(blocks):
        low, high = top + block.rows.start * scale, len(block.rows) * scale
        box(rank, f"B, {len(block.held)} columns",
            (left + block.held.start * scale, rank * (_STRIP + 3), len(block.held) * scale, _STRIP))
        box(rank, f"A\n{len(block.rows)}\nrows", (0, low, _DEPTH, high))
        box(rank, f"sums of rows {block.rows.start} to {block.rows.stop - 1}",
            (left + block.summed.start * scale, low, len(block.summed) * scale, high))
    return drawing


def halves(version: Version, before: str) -> None:
    """Draw what two blocks hold of a step of K as a pair, and as two blocks of another version.

    Parameters
    ----------
    before : str
        ``"stem/variant"``.
    """
    stem, name = parted(before)
    chosen = version.kernel.variants[0]
    panels = [(f"{stem[:2]}: each block its own MMA", shares(find(stem).variant(name))),
              (f"{version.kernel.stem[:2]}: one MMA for both", shares(chosen))]
    kib = [blocks[0].stage_bytes // 1024 for _, blocks in panels]
    panels = [(f"{said}; {size} KiB each", blocks)
              for (said, blocks), size in zip(panels, kib, strict=True)]
    title = (f"A stage takes {kib[1]} KiB of each block in place of {kib[0]}: each half of B lies "
             "in one block, and the sums of both need it")
    show(draw(panels, title=title, evidence="modelled: from the tiles of both versions"))


def handovers(version: Version, variant: str | None = None) -> None:
    """Display the mbarriers of a pair: what each says, where it lies, who arrives and who waits."""
    chosen = version.kernel.variant(variant)
    table(("mbarrier", "says", "used in", "arrivals", "by", "who waits"),
          [(f"`{one.name}`", one.says, one.home, one.arrivals, one.by, one.waits)
           for one in handovers_of(chosen)],
          f"modelled: from the tiles and roles of {chosen.name}")


def pending(version: Version, variant: str | None = None) -> None:
    """Display what the leader's `filled` waits for, event by event of a phase."""
    chosen = version.kernel.variant(variant)
    table(("event", "arrivals awaited", "bytes awaited"),
          [(one.event, one.arrivals, f"{one.nbytes:,}".replace("-", "−"))
           for one in phase(chosen)],
          f"modelled: a phase of `filled` of {chosen.name}")
