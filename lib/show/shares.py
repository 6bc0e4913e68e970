"""Stream-K's shares: the tiles of the last, incomplete wave, cut along K among all clusters.

The arithmetic of ``cuda/include/stream_k.cuh``. The tiles that are cut come first: those that don't
fill a wave, and those of a whole wave with them. All their steps, in a row, are cut into shares of
equal length, one per cluster that takes part; a share that passes a tile's end has a part on either
side of it. The whole tiles follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import gpus
from lib.kernels.grid import LastWave
from lib.kernels.spec import Variant
from lib.problem import Problem
from lib.records import store as records
from lib.show import accesses
from lib.show import chart as style
from lib.show import shapes as by_shape
from lib.show.display import both, once_recorded, show
from lib.show.scene import Scene, Span, key, lanes, words
from lib.show.version import RECORDED_ON, Version


@dataclass(frozen=True)
class Part:
    """Steps [first, last) of one tile."""

    tile: int
    first: int
    last: int

    @property
    def steps(self) -> int:
        """How many."""
        return self.last - self.first


@dataclass(frozen=True)
class Shares:
    """How the tiles of a product are dealt to clusters.

    Attributes
    ----------
    tiles : int
        Of clusters: of a cluster of 2 × 1 blocks two tiles below each other are one.
    steps : int
        Of K, in each.
    clusters : int
        That run at once.
    cut_tiles, sharers : int
        How many tiles are cut, and among how many clusters; 0 and 1 if all stay whole.
    """

    tiles: int
    steps: int
    clusters: int
    cut_tiles: int
    sharers: int

    @property
    def rest(self) -> int:
        """Tiles of the last, incomplete wave."""
        return self.tiles % self.clusters

    @property
    def full(self) -> float:
        """How full the last wave is; 1 if all are."""
        return (self.rest or self.clusters) / self.clusters

    def of(self, cluster: int) -> list[Part]:
        """What a cluster does, in its order."""
        parts, every = [], self.cut_tiles * self.steps
        begin, end = (every * place // self.sharers for place in (cluster, cluster + 1))
        while cluster < self.sharers and begin < end:
            tile, first = divmod(begin, self.steps)
            last = min(self.steps, first + end - begin)
            parts.append(Part(tile, first, last))
            begin += last - first
        # The tile that it begins before the one that it ends: so all clusters walk along K at once.
        return parts[-1:] + parts[:-1] + [
            Part(tile, 0, self.steps)
            for tile in range(self.cut_tiles + cluster, self.tiles, self.clusters)]

    def places(self, time: int) -> int:
        """At how many places along K clusters are that have done so many steps of their share."""
        steps = [[step for part in self.of(cluster) for step in range(part.first, part.last)]
                 for cluster in range(self.sharers)]
        return len({walk[time] for walk in steps if time < len(walk)})

    @property
    def whole(self) -> Shares:
        """The same tiles, none of them cut."""
        return replace(self, cut_tiles=0, sharers=1)

    @property
    def longest(self) -> int:
        """Steps of the cluster that has most to do."""
        return max(sum(part.steps for part in self.of(cluster)) for cluster in range(self.clusters))

    @property
    def partial(self) -> int:
        """Parts of tiles whose sums go through memory."""
        return sum(part.steps < self.steps
                   for cluster in range(self.clusters) for part in self.of(cluster))


@dataclass(frozen=True)
class Gain:
    """What cutting the last waves was worth on one recorded shape.

    Attributes
    ----------
    shape : (int, int, int)
        M, N and K.
    full : float
        How full the wave is that was cut.
    speed : float
        Speed with the cut over that with whole tiles.
    spread : float
        Both spreads between series, added.
    """

    shape: tuple[int, int, int]
    full: float
    speed: float
    spread: float

    @property
    def won(self) -> bool:
        """Faster by more than both spreads."""
        return self.speed - 1 > self.spread

    @property
    def lost(self) -> bool:
        """Slower by more than both spreads."""
        return 1 - self.speed > self.spread


def shares(variant: Variant, problem: Problem, sms: int) -> Shares:
    """How a variant of 23 deals a problem's tiles on a GPU of so many SMs.

    Raises
    ------
    ValueError
        If the variant cuts none.
    """
    grid = variant.grid
    if not isinstance(grid, LastWave):
        raise ValueError(f"{variant.name} cuts no wave")
    clusters = grid.blocks(problem, variant.tile, variant.step, sms)[0] // grid.size
    return Shares(grid.cluster_tiles(problem, variant.tile), -(-problem.K // variant.step),
                  clusters, *grid.cut(problem, variant.tile, variant.step, clusters))


_KEY = 16.0
# Of the plot of gains, pt: its height, what stands left of it and below it, a dot, a label's line.
_PLOT, _TICKS, _AXIS, _DOT, _LINE = 172.0, 36.0, 32.0, 3.6, 10.0
_STEP = 0.2  # from one line of speed to the next
_ROUND, _DIAMOND, _SQUARE = "o", "D", "s"


def picture(whole: Shares, cut: Shares, *, what: str,
         evidence: str = "modelled: every step of K takes equally long") -> Scene:
    """Draw a row per cluster, its time to the right, the tiles by their numbers.

    Parameters
    ----------
    whole, cut : Shares
        The same tiles on the same clusters: whole, and cut.
    what : str
        The product, for the finding.
    """
    longest = max(whole.longest, cut.longest)
    return Scene(
        f"{what}: {whole.longest} steps with whole tiles, {cut.longest} with the last waves cut",
        key(("compute", "a whole tile", False), ("load", "part of a tile: its steps", False),
            ("warning", "idle", True)) + "".join(
            words(f"{name}: {shares.longest} steps", bold=True)
            + lanes([(f"cluster {cluster}", _spans(shares, cluster))
                     for cluster in range(shares.clusters)], longest, unit=f"{longest} steps")
            for name, shares in (("whole tiles", whole), ("the last waves cut", cut))), evidence)


def _spans(shares: Shares, cluster: int) -> Iterator[Span]:
    at = 0
    for part in shares.of(cluster):
        is_cut = part.steps < shares.steps
        yield (at, at + part.steps, "load" if is_cut else "compute",
               f"{part.tile}: {part.first}–{part.last - 1}" if is_cut else part.tile)
        at += part.steps
    yield at, shares.longest, "warning pale", ""


@style.styled
def gains_picture(points: Sequence[Gain], *, deep: int, evidence: str, narrow: bool = False
                  ) -> Figure:
    """Draw a dot for each shape: how full its last wave is, and what the cut was worth.

    Parameters
    ----------
    points : sequence of Gain
        At least one.
    deep : int
        From which K on a shape has a mark of its own; cubes have a third.
    """
    key = 2 * _KEY if narrow else _KEY
    fig, ax = style.canvas(_when(points), _AXIS + _PLOT + 28 + key, narrow)
    low = math.floor(min(one.speed for one in points) / _STEP + 1e-9) * _STEP
    high = math.ceil(max(one.speed for one in points) / _STEP - 1e-9) * _STEP
    low, high = min(low, 1 - _STEP), max(high, 1 + _STEP)
    long = style.room(narrow) - _TICKS - 16

    def place(full: float, speed: float) -> tuple[float, float]:
        return _TICKS + long * full, _AXIS + _PLOT * (speed - low) / (high - low)

    _scales(ax, place, low, high)
    joined: dict[tuple[int, int], list[Gain]] = {}
    for one in points:
        joined.setdefault(one.shape[:2], []).append(one)
    style.strokes(ax, [(place(a.full, a.speed), place(b.full, b.speed))
                        for some in joined.values() for a, b in zip(some, some[1:], strict=False)],
                   linewidth=0.8, alpha=0.6)
    drawn: list[tuple[float, float]] = []
    for one in points:
        colour = style.GOOD if one.won else style.WARNING if one.lost else style.OTHER
        x, y = place(one.full, one.speed)
        # Of two dots in one place the second stands beside the first.
        while any(abs(x - left) < _DOT and abs(y - base) < _DOT for left, base in drawn):
            x += 2 * _DOT
        drawn.append((x, y))
        _dot(ax, x, y, _mark(one.shape, deep), colour)
    _names(ax, points, place)
    _kinds(ax, _AXIS + _PLOT + 28 + key, deep, narrow)
    return style.finish(fig, alt=_alt_of_gains(points), evidence=evidence,
                        note="lines join shapes of one M×N")


def _mark(shape: tuple[int, int, int], deep: int) -> str:
    return _SQUARE if len(set(shape)) == 1 else _DIAMOND if shape[2] >= deep else _ROUND


def _dot(ax: Axes, x: float, y: float, mark: str, colour: str) -> None:
    ax.plot([x], [y], linestyle="none", clip_on=False, marker=mark, markersize=2 * _DOT - 0.6,
            markeredgewidth=0, markerfacecolor=colour)


def _scales(ax: Axes, place: Callable[[float, float], tuple[float, float]], low: float,
            high: float) -> None:
    """Lines of equal speed, the shares of a wave under them, and which side of "as fast" is which.
    """
    for count in range(round((high - low) / _STEP) + 1):
        speed = low + count * _STEP
        (left, y), (right, _) = place(0, speed), place(1, speed)
        even = abs(speed - 1) < _STEP / 100
        style.strokes(ax, [((left, y), (right, y))], linewidth=1.2 if even else 0.5,
                       alpha=1.0 if even else 0.18)
        ax.text(left - 6, y, "0" if even else f"{100 * (speed - 1):+.0f}%".replace("-", "−"),
                ha="right", va="center", weight="bold" if even else "normal")
    for full in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(full, low)
        style.strokes(ax, [((x, y), (x, y - 3))], linewidth=0.6)
        ax.text(x, y - 5, f"{100 * full:.0f}%", ha="center", va="top")
    x, _ = place(0.5, low)
    ax.text(x, 12, "share of the last wave that is full", size=style.NORMAL, ha="center", va="top")
    right, y = place(1, 1 + _STEP)
    ax.text(right, y + 4, "faster with the cut", weight="bold", ha="right", va="bottom")
    left, y = place(0, 1 - _STEP)
    ax.text(left + 4, y - 4, "slower with the cut", weight="bold", va="top")
    ax.text(0, place(0, high)[1] + 8, "speed with the last waves cut, against whole tiles",
            size=style.NORMAL, va="bottom")


def _kinds(ax: Axes, top: float, deep: int, narrow: bool) -> None:
    """What the three marks are."""
    x, y = _DOT, top - _KEY / 2
    for mark, text in ((_ROUND, f"K under {deep:,}"), (_DIAMOND, f"K = {deep:,} or more"),
                       (_SQUARE, "a cube, M = N = K")):
        needs = 12 + style.text_width(text, style.SMALL)
        if x + needs > style.room(narrow):
            x, y = _DOT, y - _KEY
        _dot(ax, x, y, mark, style.OTHER)
        ax.text(x + 8, y, text, va="center")
        x += needs + 12


def _names(ax: Axes, points: Sequence[Gain],
           place: Callable[[float, float], tuple[float, float]]) -> None:
    """Write the cubes' sides, and the shapes that gain and lose most, where nothing is in the way.
    """
    taken = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT)
             for x, y in (place(one.full, one.speed) for one in points)]
    right_end = place(1, 1)[0] + 16
    ends = (max(points, key=lambda one: one.speed), min(points, key=lambda one: one.speed))
    for one in points:
        cube = len(set(one.shape)) == 1
        if not cube and one not in ends:
            continue
        gained = f"{100 * (one.speed - 1):+.0f}%".replace("-", "−") if one in ends else ""
        name = f"{one.shape[0]:,}³" if cube else style.sides(one.shape)
        text = f"{name}: {gained}" if gained else name
        x, y = place(one.full, one.speed)
        wide = style.text_width(text, style.SMALL) + 2
        for left, bottom in (
            (x + _DOT + 3, y - _LINE / 2), (x - _DOT - 3 - wide, y - _LINE / 2),
            (x - wide / 2, y + _DOT + 1), (x - wide / 2, y - _DOT - 1 - _LINE),
        ):
            box = (left, bottom, left + wide, bottom + _LINE)
            if left < _TICKS + 2 or box[2] > right_end or any(
                    box[0] < other[2] and other[0] < box[2] and box[1] < other[3]
                    and other[1] < box[3] for other in taken):
                continue
            ax.text(left, bottom + _LINE / 2, text, va="center")
            taken.append(box)
            break


def _when(points: Sequence[Gain]) -> str:
    """On how many shapes a cut pays, up to the fullest wave where it does, and beyond."""
    won = [one for one in points if one.won]
    if not won:
        return f"A cut of the last waves pays on none of {style.plural(len(points), 'shape')}"
    limit = max(one.full for one in won)
    within = [one for one in points if one.full <= limit]
    beyond = len(points) - len(within)
    return (f"A cut pays on {len(won)} of {len(within)} last waves up to {100 * limit:.0f}% full, "
            f"on none of {beyond} fuller")


def _alt_of_gains(points: Sequence[Gain]) -> str:
    said = [f"{style.sides(one.shape)}, {100 * one.full:.0f}% full: {100 * (one.speed - 1):+.1f}%"
            for one in sorted(points, key=lambda one: one.full)]
    return ("Speed with the last waves cut against whole tiles, by how full the last one is. "
            f"{'; '.join(said)}.")


# Eleven tiles of clusters, on eight SMs in clusters of two: three are left for four clusters.
EXAMPLE, EXAMPLE_SMS = (256, 1408, 1024), 8
# Three tiles on two clusters, and a warp that adds up: of the consumers that came last.
TOUCHED, TOUCHED_SMS, TOUCHED_WARP = (256, 384, 1024), 4, (2, 4)
# From which K on a shape is marked as a deep one.
DEEP = 16384
# What 23's kernel is given, in order.
ARGUMENTS = ("M", "N", "K", "alpha", "A", "B", "beta", "C", "C_map", "parts", "arrivals")


def draw(version: Version, variant: str | None = None,
         shape: tuple[int, int, int] = EXAMPLE, sms: int = EXAMPLE_SMS) -> None:
    """Draw an example's shares, the last waves whole and cut.

    Parameters
    ----------
    shape : (int, int, int)
        M, N and K.
    sms : int
        SMs that the example's GPU has.
    """
    chosen = version.kernel.variant(variant)
    cut = shares(chosen, chosen.problem(*shape), sms)
    whole = cut.whole
    what = f"{cut.tiles} tiles on {cut.clusters} clusters"
    show(picture(whole, cut, what=what))


@once_recorded()
def gains(version: Version, whole: str = "whole", cut: str = "cut",
          cubes: Sequence[int] = ()) -> None:
    """Draw on which recorded shapes the cut paid; shapes that fill their last wave are left out.

    Parameters
    ----------
    whole, cut : str
        Variants that differ in the cut alone.
    cubes : sequence of int
        Sides of cubes to show beside the version's own shapes.
    """
    chosen, sms = version.kernel.variant(cut), gpus.GPUS[RECORDED_ON].sms
    before, after = ({row.shape: row for row in version.reader.variant(name).bench}
                     for name in (whole, cut))
    points = []
    for shape in (*((n, n, n) for n in cubes), *version.kernel.own_shapes):
        deal = shares(chosen, chosen.problem(*shape), sms)
        if deal.cut_tiles and shape in before and shape in after:
            one, other = before[shape], after[shape]
            points.append(Gain(shape, by_shape.last_wave(chosen, shape),
                                     one.seconds / other.seconds, one.spread + other.spread))
    if not points:
        raise records.NotRecorded(f"no shape of {version.kernel.stem} is recorded both ways: "
                                  f"python -m lib record {version.kernel.stem}")
    both(gains_picture, points, deep=DEEP, evidence=records.label(version.record))


def coalescing(version: Version, variant: str | None = None) -> None:
    """Draw what a warp's loads and stores of partial sums touch, of an emulated run that cuts."""
    accesses.coalescing(version, version.kernel.variant(variant).name, shape=TOUCHED,
                        watch=TOUCHED_WARP, sms=TOUCHED_SMS, arguments=ARGUMENTS, but=("arrivals",))
