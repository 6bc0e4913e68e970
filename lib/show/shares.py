"""Stream-K's shares: the tiles of the last, incomplete wave, cut along K among all clusters.

The arithmetic of ``cuda/include/stream_k.cuh``. The tiles that are cut come first: those that don't
fill a wave, and those of a whole wave with them. All their steps, in a row, are cut into shares of
equal length, one per cluster that takes part; a share that passes a tile's end has a part on either
side of it. The whole tiles follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lib import gpus
from lib.kernels.grid import LastWave
from lib.kernels.spec import Variant
from lib.problem import Problem
from lib.records import store as records
from lib.show import accesses, dots
from lib.show import shapes as by_shape
from lib.show.display import both, once_recorded, show
from lib.show.scene import Scene, Span, key, lanes, words
from lib.show.version import RECORDED_ON, Version
from lib.show.words import plural, sides


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
    def kind(self) -> str:
        """How it fared, by more than the spreads."""
        if abs(self.speed - 1) <= self.spread:
            return LEVEL
        return FASTER if self.speed > 1 else SLOWER


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


def _when(points: Sequence[Gain]) -> str:
    """On how many shapes a cut pays, up to the fullest wave where it does, and beyond."""
    won = [one for one in points if one.kind == FASTER]
    if not won:
        return f"A cut of the last waves pays on none of {plural(len(points), 'shape')}"
    limit = max(one.full for one in won)
    within = [one for one in points if one.full <= limit]
    beyond = len(points) - len(within)
    return (f"A cut pays on {len(won)} of {len(within)} last waves up to {100 * limit:.0f}% full, "
            f"on none of {beyond} fuller")


# Eleven tiles of clusters, on eight SMs in clusters of two: three are left for four clusters.
EXAMPLE, EXAMPLE_SMS = (256, 1408, 1024), 8
# Three tiles on two clusters, and a warp that adds up: of the consumers that came last.
TOUCHED, TOUCHED_SMS, TOUCHED_WARP = (256, 384, 1024), 4, (2, 4)
# What 23's kernel is given, in order.
ARGUMENTS = ("M", "N", "K", "alpha", "A", "B", "beta", "C", "C_map", "parts", "arrivals")


def draw(version: Version, variant: str) -> None:
    """Draw an example's shares, the last waves whole and cut."""
    chosen = version.kernel.variant(variant)
    cut = shares(chosen, chosen.problem(*EXAMPLE), EXAMPLE_SMS)
    show(picture(cut.whole, cut, what=f"{cut.tiles} tiles on {cut.clusters} clusters"))


# How a shape fared, and its dot.
FASTER, SLOWER, LEVEL = "faster with the cut", "slower", "as fast within the spreads"
KINDS = {FASTER: dots.FULL, SLOWER: dots.HOLLOW, LEVEL: dots.GREY}


@once_recorded()
def gains(version: Version, cubes: Sequence[int] = ()) -> None:
    """Draw on which recorded shapes the cut paid; shapes that fill their last wave are left out.

    Parameters
    ----------
    cubes : sequence of int
        Sides of cubes to show beside the version's own shapes.
    """
    chosen, sms = version.kernel.variant("cut"), gpus.GPUS[RECORDED_ON].sms
    before, after = ({row.shape: row for row in version.reader.variant(name).bench}
                     for name in ("whole", "cut"))
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
    rows = [dots.Row(f"{one.full:.0%}: {sides(one.shape)}", [(one.kind, one.speed)],
                     f"{one.speed - 1:+.1%}".replace("-", "−"))
            for one in sorted(points, key=lambda one: one.full)]
    kinds = {kind: dot for kind, dot in KINDS.items() if any(p.kind == kind for p in points)}
    both(dots.draw, rows, kinds, title=_when(points), evidence=records.label(version.record),
         same="speed with whole tiles; before a shape: how full its last wave is")


def coalescing(version: Version, variant: str | None = None) -> None:
    """Draw what a warp's loads and stores of partial sums touch, of an emulated run that cuts."""
    accesses.coalescing(version, version.kernel.variant(variant).name, shape=TOUCHED,
                        watch=TOUCHED_WARP, sms=TOUCHED_SMS, arguments=ARGUMENTS, but=("arrivals",))
