"""What a change of the launch is predicted to be worth on a shape, by two models that say why."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from lib.dispatch import cost
from lib.dispatch.fit import misfits
from lib.dispatch.plan import choose
from lib.gpus import GPUS
from lib.kernels.catalogue import KERNELS
from lib.kernels.grid import h100_sms
from lib.kernels.spec import TMA_STRIDE, Variant
from lib.records import store as records
from lib.records.schema import Row
from lib.show import chart as style
from lib.show.columns import Column, listed
from lib.show.display import note, once_recorded, table
from lib.show.version import Version

Shape = tuple[int, int, int]


def by_costs(first: Variant, second: Variant, shape: Shape) -> float:
    """Predicted speed of the second over that of the first, by the rule's costs of an H100."""
    return (cost.cycles(first, first.problem(*shape), cost.H100)
            / cost.cycles(second, second.problem(*shape), cost.H100))


def fastest(variants: Sequence[Variant], shape: Shape) -> str:
    """Which of some variants the rule's costs of an H100 expect to be the fastest, by its name."""
    return min(variants, key=lambda one: cost.cycles(one, one.problem(*shape), cost.H100)).name


def microseconds(variant: Variant, shape: Shape) -> float:
    """Time that the rule's costs of an H100 expect at the data sheet's clock, µs."""
    cycles = cost.cycles(variant, variant.problem(*shape), cost.H100)
    return 1e6 * cycles / GPUS["H100"].clock_hz


def last_wave(variant: Variant, shape: Shape) -> float:
    """How full the last wave of a persistent variant is, of what the GPU holds; 1 if all are.

    Raises
    ------
    ValueError
        If it isn't persistent.
    """
    grid, problem = variant.grid, variant.problem(*shape)
    if not grid.blocks_per_sm:
        raise ValueError(f"{variant.name} has no waves of a persistent grid")
    clusters = grid.at_once(h100_sms)
    return (grid.cluster_tiles(problem, variant.tile) % clusters or clusters) / clusters


# From which side on a product has tiles enough for all SMs.
LARGE_SIDE = 1024


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


def side_by_side(version: Version, first: str, second: str) -> None:
    """Display two variants on the shapes that their version is about, predicted and recorded.

    Beside them stands the best of cuBLAS in the run of the first. A sentence under the table counts
    on how many of the recorded shapes the second is the faster.
    """
    one, other = (version.kernel.variant(name) for name in (first, second))
    rows: list[Pair] = []
    for shape in version.kernel.own_shapes:
        before, after = (_row(version, name, shape) for name in (first, second))
        rows.append((shape, (before, after) if before and after else None))
    timed = [(shape, *both) for shape, both in rows if both]
    columns: list[Column[Pair]] = [
        Column("M×N×K", lambda pair: style.sides(pair[0])),
        Column(f"`{second}` over `{first}`, predicted",
               lambda pair: by_costs(one, other, pair[0]), ".3f")]
    if timed:
        columns += [
            _of_both(f"`{first}`, µs", lambda before, _: f"{1e6 * before.seconds:,.1f}"),
            _of_both(f"`{second}`, µs", lambda _, after: f"{1e6 * after.seconds:,.1f}"),
            _of_both("speed over speed",
                     lambda before, after: f"**{before.seconds / after.seconds:.3f}**"),
            _of_both("best of cuBLAS, µs", lambda before, _: f"{1e6 * before.cublas_seconds:,.1f}"),
        ]
    label = [records.label(version.record)] if timed else []
    listed(columns, rows, "; ".join((
        "predicted: modelled, the rule's costs (lib/dispatch/cost.py)", *label)))
    if timed:
        note(_counted(timed, first, second))


Pair = tuple[Shape, tuple[Row, Row] | None]
"""A shape, and what is recorded of two variants on it, where there are both."""


def _of_both(head: str, cell: Callable[[Row, Row], str]) -> Column[Pair]:
    return Column(head, lambda pair: cell(*pair[1]) if pair[1] else None, absent="")


def each(version: Version, *variants: str) -> None:
    """Display variants on the shapes that their version is about: time, and share of cuBLAS's best.

    The fastest of a row stands out, beside the one that the rule's costs expect to be.

    Parameters
    ----------
    *variants : str
        All of them if none is named, a column each.
    """
    names = version.named(variants)
    rows, labels = [], dict[str, None]()
    for shape in version.kernel.own_shapes:
        expected = fastest([version.kernel.variant(name) for name in names], shape)
        found = {name: row for name in names if (row := _row(version, name, shape))}
        least = min(found, key=lambda name: found[name].seconds, default="")
        if found:
            labels[records.label(version.record)] = None
        rows.append((style.sides(shape), f"`{expected}`", *(
            _time(found[name], name == least) if name in found
            else f"{microseconds(version.kernel.variant(name), shape):,.1f} expected"
            for name in names)))
    table(("M×N×K", "fastest, predicted", *(f"`{name}`, µs" for name in names)), rows,
          "predicted and expected: modelled, the rule's costs (lib/dispatch/cost.py)"
          + (f"; in brackets of the best of cuBLAS in the same run; {'; '.join(labels)}"
             if labels else ""))


def chosen(*given: tuple[int, int, int]) -> None:
    """Display what a rule launches for some shapes, in the types of its first variant."""
    kernel = KERNELS["hopper"]
    tuned, rows = kernel.variants[0], []
    for shape in given:
        problem = tuned.problem(*shape)
        one = kernel.variant(choose(kernel, tuned, problem).name)
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


def _counted(timed: Sequence[tuple[Shape, Row, Row]], first: str, second: str) -> str:
    """On how many shapes the second is faster by more than both spreads, and where most."""
    gains = [(before.seconds / after.seconds, before.spread + after.spread, shape)
             for shape, before, after in timed]
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
