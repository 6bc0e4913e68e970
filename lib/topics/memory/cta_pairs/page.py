"""What a chapter shows of two blocks that multiply together."""

from __future__ import annotations

from lib.kernels.catalogue import find
from lib.kernels.spec import parted
from lib.plotting.display import show, table
from lib.topics.memory.cta_pairs import figure, model
from lib.topics.version import Version


def halves(version: Version, before: str, variant: str | None = None) -> None:
    """Draw what two blocks hold of a step of K as a pair, and as two blocks of another version.

    Parameters
    ----------
    before : str
        ``"stem/variant"``.
    """
    stem, name = parted(before)
    chosen = version.kernel.variant(variant)
    panels = [(f"{stem[:2]}: each block its own MMA", model.shares(find(stem).variant(name))),
              (f"{version.kernel.stem[:2]}: one MMA reads all of A and B", model.shares(chosen))]
    kib = [blocks[0].stage_bytes // 1024 for _, blocks in panels]
    panels = [(f"{said}; {size} KiB each", blocks)
              for (said, blocks), size in zip(panels, kib, strict=True)]
    title = (f"A stage takes {kib[1]} KiB of each block in place of {kib[0]}: each half of B lies "
             "in one block, and the sums of both need it")
    show(figure.draw(panels, title=title, evidence="modelled: from the tiles of both versions"))


def handovers(version: Version, variant: str | None = None) -> None:
    """Display the mbarriers of a pair: what each says, where it lies, who arrives and who waits."""
    chosen = version.kernel.variant(variant)
    table(("mbarrier", "says", "used in", "arrivals", "by", "who waits"),
          [(f"`{one.name}`", one.says, one.home, one.arrivals, one.by, one.waits)
           for one in model.handovers(chosen)],
          f"modelled: from the tiles and roles of {chosen.name}")


def pending(version: Version, variant: str | None = None) -> None:
    """Display what the leader's `filled` waits for, event by event of a phase."""
    chosen = version.kernel.variant(variant)
    table(("event", "arrivals awaited", "bytes awaited"),
          [(one.event, one.arrivals, f"{one.nbytes:,}".replace("-", "−"))
           for one in model.phase(chosen)],
          f"modelled: a phase of `filled` of {chosen.name}")
