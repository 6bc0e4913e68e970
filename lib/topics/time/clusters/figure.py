"""What does one cluster more than fits cost? Each cluster's tiles over time, a thin row each."""

from __future__ import annotations

from lib.show.scene import Scene, Span, lanes, words
from lib.show.words import plural
from lib.topics.time.clusters.model import Walk


def draw(more: Walk, fitting: Walk, *, what: str,
         evidence: str = "modelled: every tile takes equally long") -> Scene:
    """Draw the same tiles on more clusters than run at once, and on as many as do.

    Parameters
    ----------
    more, fitting : Walk
    what : str
        The product and the cluster, for the finding.
    """
    longest = max(more.time, fitting.time)
    return Scene(
        f"{what}: {more.clusters} clusters take {plural(more.time, 'tile')} of time, "
        f"{fitting.clusters} take {fitting.time}",
        "".join(_panel(walk, longest) for walk in (more, fitting)), evidence,
        f"{plural(more.tiles, 'tile')} of clusters; grey: waits until another has ended")


def _panel(walk: Walk, longest: int) -> str:
    waits = walk.clusters - min(walk.at_once, walk.clusters)
    rows: list[tuple[str, list[Span]]] = [
        ("", [(0, begin, "wait", ""), *((begin + tile, begin + tile + 1, "compute", "")
                                        for tile in range(walk.of(cluster)))])
        for cluster, begin in enumerate(walk.begins)]
    return words(f"{walk.clusters} clusters launched: {walk.clusters - waits} run"
                 + (f", {waits} wait" if waits else ""), bold=True) + lanes(
        rows, longest, unit=f"{plural(longest, 'tile')} of time", tall=5)
