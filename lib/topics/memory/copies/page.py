"""What a chapter shows of the copies that fill a stage."""

from __future__ import annotations

from lib.plotting.display import show
from lib.topics.memory.copies import figure
from lib.topics.memory.copies.model import stage
from lib.topics.version import Version

THREAD = 70  # neither the first of a row nor of a warp


def draw(version: Version, *variants: str, thread: int = THREAD) -> None:
    """Draw a stage, the copies that fill it, and when each of some variants issues them.

    Parameters
    ----------
    *variants : str
        Of 09, which differ in that alone; the last one is the page's.
    thread : int
        Whose copies are marked.
    """
    ways = [(name, stage(version.kernel.variant(name))) for name in variants]
    show(figure.draw(ways, thread=thread))
