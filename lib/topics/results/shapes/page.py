"""What versions reach on shapes beside the cubes of the ladder."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lib.dispatch import cost
from lib.dispatch.fit import misfits
from lib.kernels import shapes
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import TMA_STRIDE
from lib.plotting import style
from lib.plotting.columns import Column, listed
from lib.plotting.display import both, note, once_recorded, table
from lib.problem import ITEM_BYTES
from lib.records import reach
from lib.records import store as records
from lib.records.schema import Row
from lib.topics.results.shapes import figure as by_shape
from lib.topics.results.shapes import model
from lib.topics.version import RECORDED_ON, Version, roof, short_name

# From which side on a product has tiles enough for all SMs.
LARGE_SIDE = 1024
# Shapes beside the sizes of the ladders: one too small to fill a GPU, and uneven ones.
OTHER_SHAPES = ((512, 512, 512), *shapes.UNEVEN)


@once_recorded()
def draw(version: Version, fixed: str) -> None:
    """Draw the recorded ratio to cuBLAS over all shapes that both have, and the tile of each.

    Parameters
    ----------
    fixed : str
        The variant to compare with: its tile, whatever the shape.
    """
    tuned = version.kernel.variants[0]
    stored = version.record.variants
    others = {row.shape: row.ratio for row in stored[fixed].bench}
    rows = []
    for row in stored[tuned.name].bench:
        if row.shape not in others:
            continue
        launched = version.reader.launched(row.instantiation, row.shape) or tuned
        rows.append(
            by_shape.Shape("×".join(map(str, row.shape)), row.ratio, launched.name,
                           others[row.shape])
        )
    both(by_shape.draw, rows, fixed=fixed, evidence=records.label(version.record))


def others_table(*stems: str) -> None:
    """Display what versions reach of cuBLAS at `OTHER_SHAPES`, a row a version.

    Parameters
    ----------
    *stems : str
        All versions that are recorded at one of them, if none is named.

    Raises
    ------
    records.NotRecorded
        If none of those named is.
    """
    found: dict[str, dict[tuple[int, int, int], records.Row]] = {}
    for row in records.rows():
        kernel = KERNELS[row.kernel]
        shape = row.M, row.N, row.K
        if row.gpu == RECORDED_ON and row.variant == kernel.variants[0].name and (
                shape in OTHER_SHAPES and row.kernel in (stems or KERNELS)):
            found.setdefault(row.kernel, {})[shape] = row
    if not found:
        raise records.NotRecorded(
            f"{' and '.join(stems)} have no record: python -m lib record {stems[-1]}")
    rows = [
        (short_name(KERNELS[stem]) + (" (stale)" if any(r.stale for r in at.values()) else ""),
         *(reach.give_or_take(at[shape].ratio, at[shape].noise) if shape in at else "not recorded"
           for shape in OTHER_SHAPES))
        for stem, at in found.items()
    ]
    dates = {row.date for at in found.values() for row in at.values()}
    best = {row.rival for at in found.values() for row in at.values()} == {"best"}
    of = "of the best of cuBLAS" if best else "of cuBLAS"
    head = (f"{of}, M×N×K", *("×<br>".join(map(str, shape)) for shape in OTHER_SHAPES))
    table(head, rows, f"recorded: {RECORDED_ON}, {records.span(dates)}; cuBLAS in the same run")


def others(version: Version) -> None:
    """Display what this version and the one before reach of cuBLAS at `OTHER_SHAPES`."""
    before = version.before
    others_table(*([before.kernel.stem] if before else []), version.kernel.stem)


@once_recorded()
def trials(version: Version) -> None:
    """Display what a rule chooses beside the fastest of those that it ranks first, by shape.

    Shape by shape of the version's first variant, and of each variant with a rule the means.
    """
    recorded = version.record.variants
    stored = {
        variant.name: found for variant in version.kernel.variants
        if variant.by_rule and variant.name in recorded and (
            found := [(row, row.trials) for row in recorded[variant.name].bench if row.trials])
    }
    if not stored:
        raise records.NotRecorded(f"the record of {version.kernel.stem} has no trials: "
                                  f"python -m lib record {version.kernel.stem}")
    first = version.kernel.variants[0].name
    rows: list[tuple[str, ...]] = []
    for row, tried in stored.get(first, ()):
        launched = [version.reader.launched(instantiation, row.shape)
                    for instantiation in (row.instantiation, tried.instantiation)]
        names = dict.fromkeys(one.name if one else "another" for one in launched)
        rows.append((style.sides(row.shape),
                     f"{row.ratio:.3f} ± {row.noise * row.ratio:.3f}",
                     f"**{tried.ratio:.3f}** ± "
                     f"{max(tried.spread, tried.cublas_spread) * tried.ratio:.3f}",
                     "<br>".join(names)))
    for name, found in stored.items():
        of_rule = [row.ratio for row, _ in found]
        fastest = [tried.ratio for _, tried in found]
        rows.append((f"`{name}`, {len(found)} shapes: geometric mean; least", _summary(of_rule),
                     f"**{_summary(fastest)}**", ""))
    (count,) = {tried.of for found in stored.values() for _, tried in found}
    table(("M×N×K", "of cuBLAS, the rule's first", f"the fastest of its first {count}",
           "the first; the fastest, if another"), rows, _with_other_choices(version))


def _with_other_choices(version: Version) -> str:
    """The evidence label of a rule's record; of how many rows the rule would take another today."""
    label = records.label(version.record)
    for variant in version.kernel.variants:
        stored = version.record.variants.get(variant.name)
        if stored and (today := records.current(version.kernel, variant.name, stored)):
            every = len(stored.bench)
            if number := every - len(today.bench):
                label += (f"; `{variant.name}`: on {number} of {every} shapes the rule chooses "
                          "another instantiation today")
        elif stored:
            label += f"; `{variant.name}` is stale"
    return label


def _summary(ratios: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(ratios):.3f}; {min(ratios):.3f}"


def side_by_side(version: Version, first: str, second: str, by: str = "costs",
                 cubes: Sequence[int] = (), rival: bool = False) -> None:
    """Display two variants on the shapes that their version is about, predicted and recorded.

    A sentence under the table counts on how many of the recorded shapes the second is the faster.

    Parameters
    ----------
    first, second : str
        Of this version.
    by : {"costs", "steps"}
        What predicts: the rule's costs, or the steps of K of the longest cluster.
    cubes : sequence of int
        Sides of cubes to show above them.
    rival : bool
        Show the best of cuBLAS in the run of the first variant.
    """
    one, other = (version.kernel.variant(name) for name in (first, second))
    predict = {"costs": model.by_costs, "steps": model.by_steps}[by]
    how = {"costs": "the rule's costs (lib/dispatch/cost.py)",
           "steps": "steps of K of the cluster that has most, sums for nothing"}[by]
    rows = [Pair(shape, *(_row(version, name, shape) for name in (first, second)))
            for shape in (*((n, n, n) for n in cubes), *version.kernel.own_shapes)]
    timed = [pair for pair in rows if pair.timed]
    columns: list[Column[Pair]] = [Column("M×N×K", lambda pair: style.sides(pair.shape))]
    if by == "steps":
        columns.append(
            Column("last wave full", lambda pair: model.last_wave(one, pair.shape), ".0%"))
    columns.append(Column(f"`{second}` over `{first}`, predicted",
                          lambda pair: predict(one, other, pair.shape), ".3f"))
    if timed:
        columns += [
            _of_both(f"`{first}`, µs", lambda before, _: f"{1e6 * before.seconds:,.1f}"),
            _of_both(f"`{second}`, µs", lambda _, after: f"{1e6 * after.seconds:,.1f}"),
            _of_both("speed over speed",
                     lambda before, after: f"**{before.seconds / after.seconds:.3f}**"),
        ]
        if rival:
            columns.append(_of_both("best of cuBLAS, µs",
                                    lambda before, _: f"{1e6 * before.cublas_seconds:,.1f}"))
    label = [records.label(version.record)] if timed else []
    listed(columns, rows, "; ".join((f"predicted: modelled, {how}", *label)))
    if timed:
        note(_counted(timed, first, second))


@dataclass(frozen=True)
class Pair:
    """What is recorded of two variants on a shape."""

    shape: tuple[int, int, int]
    before: Row | None
    after: Row | None

    @property
    def timed(self) -> tuple[Row, Row] | None:
        """Both rows, where there are both."""
        return (self.before, self.after) if self.before and self.after else None


def _of_both(head: str, cell: Callable[[Row, Row], str]) -> Column[Pair]:
    return Column(head, lambda pair: cell(*pair.timed) if pair.timed else None, absent="")


def each(version: Version, *variants: str) -> None:
    """Display variants on the shapes that their version is about: time, and share of cuBLAS's best.

    The fastest of a row stands out, beside the one that the rule's costs expect to be.

    Parameters
    ----------
    *variants : str
        All of them if none is named, a column each.
    """
    names = variants or tuple(variant.name for variant in version.kernel.variants)
    rows, labels = [], dict[str, None]()
    for shape in version.kernel.own_shapes:
        expected = model.fastest([version.kernel.variant(name) for name in names], shape)
        found = {name: row for name in names if (row := _row(version, name, shape))}
        least = min(found, key=lambda name: found[name].seconds, default="")
        if found:
            labels[records.label(version.record)] = None
        rows.append((style.sides(shape), f"`{expected}`", *(
            _time(found[name], name == least) if name in found
            else f"{model.microseconds(version.kernel.variant(name), shape):,.1f} expected"
            for name in names)))
    table(("M×N×K", "fastest, predicted", *(f"`{name}`, µs" for name in names)), rows,
          "predicted and expected: modelled, the rule's costs (lib/dispatch/cost.py)"
          + (f"; in brackets of the best of cuBLAS in the same run; {'; '.join(labels)}"
             if labels else ""))


def chosen(*given: tuple[int, int, int], rule: str = "hopper") -> None:
    """Display what a rule launches for some shapes, in the types of its first variant."""
    kernel = KERNELS[rule]
    tuned, rows = kernel.variants[0], []
    for shape in given:
        problem = tuned.problem(*shape)
        one = kernel.variant(cost.choose(kernel, tuned, problem).name)
        schedule, grid = one.schedule, one.grid
        rows.append((
            style.sides(shape), one.version[:2], style.sides(one.tile),
            "persistent" if grid.blocks_per_sm else "a tile per block",
            f"{grid.cluster} × {grid.cluster_n}", grid.split, "yes" if schedule.swapped else "no",
            "read by warps" if one.warps_read else
            "packed" if misfits(problem, TMA_STRIDE) else "by TMA"))
    table(("M×N×K", "version", "tile", "blocks", "cluster", "blocks that share K",
           "operands swapped", "A and B"), rows,
          "modelled: the rule of lib.gemm, lib/dispatch/cost.py")


def _time(row: Row, least: bool) -> str:
    text = f"{1e6 * row.seconds:,.1f} ({row.ratio:.0%})"
    return f"**{text}**" if least else text


def _row(version: Version, name: str, shape: tuple[int, int, int]) -> Row | None:
    try:
        stored = version.reader.variant(name).bench
    except records.NotRecorded:
        return None
    return next((row for row in stored if row.shape == shape), None)


def _counted(timed: Sequence[Pair], first: str, second: str) -> str:
    """On how many shapes the second is faster by more than both spreads, and where most."""
    gains = [(before.seconds / after.seconds, before.spread + after.spread, pair.shape)
             for pair in timed if pair.timed for before, after in (pair.timed,)]
    won = [one for one in gains if one[0] - 1 > one[1]]
    lost = [one for one in gains if 1 - one[0] > one[1]]
    highest, least = max(gains), min(gains)
    return (f"Of {len(gains)} recorded shapes `{second}` is faster than `{first}` on {len(won)}, "
            f"slower on {len(lost)}, and as fast within both spreads on "
            f"{len(gains) - len(won) - len(lost)}. Its best is "
            f"{highest[0]:.3f} times the speed, at {style.sides(highest[2])}; its worst "
            f"{least[0]:.3f}, at {style.sides(least[2])}.")


@once_recorded()
def means(version: Version) -> None:
    """Display, of each variant with a rule, its ratios' geometric mean and least, of three sets.

    All recorded shapes; those whose rows are multiples of 16 bytes, which the rival's fast kernels
    want too; and of these the ones with all sides from 1,024.
    """
    recorded = version.record.variants
    rows = []
    for variant in version.kernel.variants:
        if not variant.by_rule or variant.name not in recorded:
            continue
        every = recorded[variant.name].bench
        aligned = [row for row in every
                   if not misfits(variant.problem(row.M, row.N, row.K), TMA_STRIDE)]
        large = [row for row in aligned if min(row.shape) >= LARGE_SIDE]
        rows.append((f"`{variant.name}`", *(
            f"{_summary([row.ratio for row in one])} ({len(one)})" if one else "none"
            for one in (every, aligned, large))))
    table(("of the best of cuBLAS: geometric mean; least (shapes)", "all",
           "rows of whole 16 bytes", f"of these all sides from {LARGE_SIDE:,}"), rows,
          _with_other_choices(version))


def packing(version: Version, packed_by: str = "packed") -> None:
    """Display what packing moves on the shapes that a version is about, and how long it takes.

    Read once and written once, at the DRAM rate that was measured; then read again by the product.
    Where it is recorded, the time of the copies alone stands beside it, and its share of the whole.

    Parameters
    ----------
    packed_by : str
        The variant that packs.
    """
    variant, rows, labels = version.kernel.variant(packed_by), [], dict[str, None]()
    for shape in version.kernel.own_shapes:
        problem = variant.problem(*shape)
        packed = misfits(problem, TMA_STRIDE)
        traffic = sum(2 * one.lines * one.length * ITEM_BYTES[problem.dtype]
                    for one in map(problem.operand, packed))
        share = problem.flops / (traffic or 1)
        row, cells = _row(version, packed_by, shape), ("", "")
        if row and row.packing:
            labels[records.label(version.record)] = None
            cells = (f"{1e6 * row.packing.seconds:.1f}", f"{row.packing.seconds / row.seconds:.0%}")
        rows.append((style.sides(shape), " and ".join(packed) or "none", f"{traffic / 1e6:.2f}",
                     f"{share:,.0f}", f"{1e6 * traffic / roof('copy'):.1f}", *cells))
    head = ("M×N×K", "packed", "MB read and written", "FLOP per byte of it", "least time, µs",
            *(("copies alone, µs", "of the whole product") if labels else ()))
    table(head, [row[:len(head)] for row in rows],
          "; ".join(("modelled: bytes, at the measured rate of DRAM; small matrices stay in the L2",
                     *labels)))
