"""The book's two accounts of a kernel's speed: what caps it, and how busy that was.

01 to 13. The L1's data stage serves one wavefront per cycle and SM. A kernel that needs w of them
per 32 multiply-adds, on units that do P multiply-adds per cycle and SM, can reach at most

    cap = 32 / (P · w)

of the peak: at the peak 32 multiply-adds take 32 / P cycles, and their w wavefronts take w. Its
share of the peak is cap × busy, where busy is the share of cycles in which the stage served one.
That is so by definition, since wavefronts cancel: it explains nothing. What the account predicts
is w, and that no kernel passes its cap; why the stage idles needs another counter.

w is predicted from emulated counters: the wavefronts of shared memory, and the 128-byte lines of
each access of global memory, which takes one for each. An asynchronous copy takes those of its
write to shared memory alone: on the H100 a kernel that fills its tiles by copies has hardly a
wavefront besides those of shared memory.

From 10 on, on tensor cores, the share of the peak has three factors:

    rate of the instruction / peak rate × tensor cores busy × active / elapsed cycles

The rate is what an SM does in a cycle in which its tensor cores are busy: a constant of the
instruction (`RATES`). Busy is the share of the cycles of SMs at work,
``sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active``: how well loads keep up. Active
over elapsed cycles is ``smsp__cycles_active.sum`` / (4 · SMs · ``sm__cycles_elapsed.max``): the
others are of SMs without work, at the start, in the last wave, at the end.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate

from lib.compiler.arch import BLACKWELL
from lib.gpus import Gpu
from lib.kernels import catalogue
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES, Problem
from lib.ptx.core.machine import LINE, WARP
from lib.records import noise, predictions
from lib.records import store as records
from lib.records.schema import Row, mhz
from lib.run import runner
from lib.show import bottleneck as busiest
from lib.show import issue_slots as slots
from lib.show.columns import (
    Column,
    Launches,
    current_labels,
    in_one_run,
    labels,
    launches,
    listed,
    recorded,
    speeds,
)
from lib.show.display import note, table
from lib.show.issue_slots import SLOTS_PER_SM
from lib.show.markdown import NOT_YET
from lib.show.roofline import FP8, instruction
from lib.show.version import RECORDED_ON, Version, short_name


@dataclass(frozen=True)
class Wavefronts:
    """The first account, of one kernel at one size.

    Attributes
    ----------
    each : float
        w: wavefronts per 32 multiply-adds.
    cap : float
        Share of the peak that w allows; above 1 it is no limit.
    busy : float
        Share of the SMs' cycles in which the stage served a wavefront.
    share : float
        Of the peak, reached.
    """

    each: float
    cap: float
    busy: float
    share: float


@dataclass(frozen=True)
class Tensor:
    """The second account, of one kernel at one size.

    Attributes
    ----------
    busy : float
        Share of the cycles of SMs at work in which their tensor cores are busy.
    active : float
        Share of the elapsed cycles in which an SM is at work: mean over all SMs.
    share : float
        Of the peak, reached.
    """

    busy: float
    active: float
    share: float


RATES = {"mma.m16n8k8": 2048.0, "mma.m16n8k16": 4096 * 4 / 6, "wgmma": 4096.0, FP8: 8192.0}
"""FLOP of an SM per cycle in which its tensor cores are busy.

WGMMA's are the data sheet's peaks. Each sub-partition is busy for 4 cycles with an m16n8k8, of
2,048 FLOP, and for 6 with an m16n8k16, of 4,096; wmma is compiled to the latter.
"""


def cap(each: float, multiply_adds: float) -> float:
    """Share of the peak that w wavefronts per 32 multiply-adds allow; above 1 they cap nothing.

    Parameters
    ----------
    each : float
        w; positive.
    multiply_adds : float
        P: per cycle and SM.
    """
    return WARP / (multiply_adds * each)


def wavefront_account(found: Mapping[str, float], size: int, sms: int, flops_per_cycle: float
               ) -> Wavefronts:
    """Take recorded counters apart.

    Parameters
    ----------
    found : mapping of str to float
        Of one launch (`lib.measure.counters`): `cycles` and `l1_wavefronts`.
    size : int
        M = N = K.
    sms : int
    flops_per_cycle : float
        Of one SM at its peak: 2 P.
    """
    cycles, served = found["cycles"] * sms, found["l1_wavefronts"]
    each = WARP * served / size**3
    return Wavefronts(each, cap(each, flops_per_cycle / 2), served / cycles,
                      2 * size**3 / (cycles * flops_per_cycle))


def share(cycles: float, size: int, sms: int, flops_per_cycle: float) -> float:
    """Share of the peak that a product of M = N = K = `size` reaches in so many cycles."""
    return 2 * size**3 / (cycles * sms * flops_per_cycle)


def tensor_account(found: Mapping[str, float], size: int, sms: int, flops_per_cycle: float
                   ) -> Tensor:
    """Take recorded counters apart: `cycles`, `active_cycles` and `tensor_pipe_percent`.

    Raises
    ------
    ValueError
        If the tensor cores did nothing.
    """
    busy = found["tensor_pipe_percent"] / 100
    if busy <= 0:
        raise ValueError("the tensor cores of this launch did nothing: it has no such account")
    active = found["active_cycles"] / (SLOTS_PER_SM * sms * found["cycles"])
    return Tensor(busy, active, share(found["cycles"], size, sms, flops_per_cycle))


def rate(found: Mapping[str, float], flops: float) -> float:
    """FLOP of an SM per cycle in which its tensor cores were busy, by counters of one launch.

    `flops` are those of all whole tiles: at an edge tensor cores multiply zeros too.
    """
    active = found["active_cycles"] / SLOTS_PER_SM
    return flops / (active * found["tensor_pipe_percent"] / 100)


@cache
def predicted(stem: str, name: str, gpu: Gpu, size: int) -> float:
    """w of a variant at a size, from two emulated launches of one block (see `scaling`).

    Parameters
    ----------
    stem, name : str
        Version and variant.
    gpu : Gpu
        What it is compiled for.
    size : int
        M = N = K: a multiple of the tile.

    Raises
    ------
    ValueError
        If tiles don't divide the problem.
    """
    kernel = catalogue.find(stem)
    variant = kernel.variant(name)
    blocks, (M, N) = busiest.whole_tiles(variant, size), variant.tile
    # Rows of A are at least a line long, as they are in the large problem.
    line = LINE // ITEM_BYTES[variant.dtype]
    depth = -(-max(4 * variant.step, line) // variant.step) * variant.step
    depths = (depth, 2 * depth)
    counted = []
    for K in depths:
        traces = [
            runner.run(kernel, variant.typed(Problem(M, N, K)), variant=variant, exact=True,
                       backend="emulator", arch=gpu.arch, watch=(0, warp)).trace
            for warp in _first_of_each_role(variant)]
        watched = {line: seen for trace in traces
                   for line, seen in trace.watched.items() if seen}
        trace = traces[0]
        counted.append({"shared": trace.counters()["shared_wavefronts"],
                        "lines": busiest.lines(
                            [site for site in trace.sites if site.kind != "copy"], watched)})
    one, other = counted
    found = busiest.scaled(one, other, depths, K=size, blocks=blocks)
    return WARP * (found["shared"] + found["lines"]) / size**3


def _first_of_each_role(variant: Variant) -> list[int]:
    """Warps of a block that between them do all that its warps do: one of each role."""
    sizes = [size for _, size in variant.roles.warps]
    return list(accumulate(sizes[:-1], initial=0))


SIZE, SMALL = 4096, 2048
# The last version that the L1's data pipe explains; behind it the tensor cores' own account does.
LAST_BY_WAVEFRONTS = "13_wmma_vectorized"
AHEAD = 1.2  # times as fast: a version's kernel that is so far behind is made for other shapes


def wavefronts(version: Version, *variants: str, above: Sequence[str] | None = None) -> None:
    """Display cap = 32 / (P·w) and how busy the L1's data pipe was: the account of 01 to 13.

    Where w leaves room for the whole peak, the table says that there is no cap: a share above 1
    would read as a speed that can be reached. Speeds stand beside it, at 2,048, where the clock
    holds, and at the size of the counters.
    """
    rows = launches(version, variants, _above(version, above), SIZE)

    def allowed(one: Launches) -> str:
        return _capped(_by_wavefronts(one).cap if one.counted
                       else cap(_predicted(one), one.peak / 2))

    listed([
        VERSION,
        Column("w predicted / recorded", lambda one: f"{_predicted(one):.3g} / {W.cell(one)}"),
        Column("cap", allowed), recorded("L1 busy", lambda one: _by_wavefronts(one).busy, ".1%"),
        *SPEEDS,
    ], rows, "w: wavefronts of the L1 per 32 multiply-adds, emulated / recorded; cap: 32 / (P·w) "
             f"of the peak, P: {_peaks(rows)} multiply-adds per cycle and SM; counters: one "
             f"profiled launch at {SIZE:,}³; {labels(rows)}")


def _by_wavefronts(one: Launches) -> Wavefronts:
    return wavefront_account(one.counters, one.size, one.sms, one.peak)


def _by_tensor(one: Launches) -> Tensor:
    return tensor_account(one.counters, one.size, one.sms, one.peak)


def _per_fma(one: Launches) -> float:
    return one.counters["instructions"] / (one.size**3 / WARP)


def _slots(part: str, one: Launches) -> float:
    return slots.account_of(one.counters, one.sms).share(part)


def _capped(share: float) -> str:
    return f"{share:.1%}" if share < 1 else "none"


def tensor(version: Version, *variants: str, above: Sequence[str] | None = None) -> None:
    """Display how busy tensor cores are, and how much of the time SMs are at work: from 10 on.

    Speeds stand beside it, at 2,048, where the clock holds, and at the size of the counters.
    """
    rows = launches(version, variants, _above(version, above), SIZE)
    listed([
        VERSION, *BY_TENSOR, *speeds("TFLOP/s at", SMALL, SIZE),
    ], rows, f"counters: one profiled launch at {SIZE:,}³; {BY_TIMED}; {labels(rows)}")


def every(size: int = SIZE) -> None:
    """Display both accounts for all versions that a GPU here has run, as recorded: two tables.

    Of each version its fastest kernel at this size. Of one that has shapes of its own the kernel
    for those stands there; another that is over `AHEAD` times as fast here is in the caption.
    """
    rows = [Launches(*Version(stem).rows(())[0], size)
            for stem, kernel in catalogue.in_book().items() if kernel.min_arch != BLACKWELL]
    first = [one for one in rows if one.page.kernel.stem <= LAST_BY_WAVEFRONTS]
    second = rows[len(first):]
    peaks = {one.page.kernel.group: f"{one.peak // 2:,} in {one.page.kernel.group}"
             for one in first}
    speed: Column[Launches] = recorded(
        "TFLOP/s", lambda one: one.counters and one.row.tflops, ".4g")

    def of_fp32(read: Callable[[Launches], float]) -> Callable[[Launches], float | None]:
        return lambda one: read(one) if one.page.kernel.group == "FP32" else None

    listed([
        LINK, W, recorded("cap = 32 / (P·w)", lambda one: _capped(_by_wavefronts(one).cap)),
        recorded("L1 busy", lambda one: _by_wavefronts(one).busy, ".0%"),
        recorded("instructions per FMA", of_fp32(_per_fma), ".2f"),
        recorded("issue slots empty", of_fp32(partial(_slots, "empty")), ".0%"),
        recorded("share of the peak", lambda one: _by_wavefronts(one).share, ".1%"), speed,
    ], first, "w: wavefronts of the L1's data pipe per 32 multiply-adds; P: multiply-adds per "
              f"cycle and SM of the unit that computes, {', '.join(peaks.values())}; cap: none "
              "where w leaves room for the whole peak; empty: of all issue slots, on SMs that have "
              f"warps; {labels(first)}, {size:,}³")
    others = [ahead for one in second if one.counted and (ahead := _ahead(one))]
    listed([
        LINK, *BY_TENSOR,
        recorded("clock, MHz", lambda one: one.counters and mhz(one.row.clock), ",.0f"), speed,
    ], second, f"counters: one profiled launch; {BY_TIMED}; clock and TFLOP/s: of the launches "
               f"that were timed; {labels(second)}, {size:,}³"
               + (f"; made for other shapes: {'; '.join(others)}" if others else ""))


def measured_rates(size: int = SIZE) -> dict[str, list[float]]:
    """Rates of all recorded launches on tensor cores at a size, by instruction (`RATES`)."""
    found: dict[str, list[float]] = {name: [] for name in RATES}
    for record in records.versions():
        for name, seen in record.variants.items():
            variant = KERNELS[record.kernel].variant(name)
            if record.gpu.key != RECORDED_ON:
                continue
            for row in seen.counters:
                if row.is_cube(size):
                    (M, N), metrics = variant.tile, row.metrics
                    flops = 2.0 * M * N * -(-size // M) * -(-size // N) * size
                    if which := instruction(metrics, flops, variant.dtype):
                        found[which].append(rate(metrics, flops))
    return found


def rates() -> None:
    """Display the rate of each instruction of the tensor cores, and what launches had."""
    wgmma = RATES["wgmma"]
    rows = []
    for name, seen in measured_rates(SIZE).items():
        peak = 2 * wgmma if RATES[name] > wgmma else wgmma
        recorded_as = (f"{statistics.median(seen):,.0f} ({min(seen):,.0f} to {max(seen):,.0f}; "
                       f"{len(seen)} launches)") if seen else NOT_YET
        rows.append((name, f"{RATES[name]:,.0f}", f"{RATES[name] / peak:.0%}",
                     recorded_as))
    table(("instruction", "FLOP per busy cycle and SM", "÷ peak rate",
           f"recorded at {SIZE:,}³, median (all)"), rows,
          f"modelled, and recorded: {RECORDED_ON}, ncu; busy and active cycles are counted in "
          "two passes of a launch, which differ")


def _ahead(one: Launches) -> str:
    """The variant that is far faster than the version's own at this size; else nothing."""
    found, kernel, first = [], one.page.kernel, one.variant
    for variant in kernel.measured if kernel.own_shapes else ():
        if (variant.dtype, variant.out, variant.b_layout) != (
                first.dtype, first.out, first.b_layout):
            continue
        try:
            found.append((replace(one, variant=variant).row.tflops, variant.name))
        except records.NotRecorded:
            continue
    fastest, name = max(found, default=(0.0, ""))
    if not found or fastest < AHEAD * one.row.tflops:
        return ""
    return (f"{kernel.stem[:2]}'s `{first.name}`, where its `{name}` does {fastest:.4g} TFLOP/s")


def isolated(version: Version, account: str = "tensor") -> None:
    """Display what each change by itself was worth: a row a pair that differs in one thing.

    A speed is told at 2,048, where the clock holds, and at a larger size; cycles, of the launches
    that were timed, and the account's two factors are those of the larger one. A difference within
    the noise of its comparison is none, and two boards are not compared (`lib.records.noise`).
    Where the log has a guess that was written before the change was measured, it stands beside, and
    its reason under the table.

    Parameters
    ----------
    account : {"tensor", "wavefronts"}
    """
    chosen = version.kernel.pairs
    cause = AT_WORK if account == "tensor" else W.called("w: wavefronts per 32 multiply-adds")
    expected = any(predictions.foreseen(one.first, one.second) for one in chosen)
    rows: list[tuple[str, ...]] = []
    found: list[Launches] = []
    for pair in chosen:
        both = in_one_run(*launches(version, (), (pair.first, pair.second), SIZE)[:2])
        guess = predictions.foreseen(pair.first, pair.second)
        rows.append((
            f"**{pair.change}**: {' → '.join(_side(one, version) for one in both)}",
            *((f"{guess.gain:+.1%}" if guess else "",) if expected else ()),
            *_changed(both, account, cause)))
        found += both if all(one.current for one in both) else []
    marked = MARKED if any(PROFILED_APART in row[-1] for row in rows) else ""
    table(
        ("one thing changed", *(("speed predicted",) if expected else ()),
         f"TFLOP/s at {SMALL:,}", f"at {SIZE:,}", f"k cycles at {SIZE:,}", cause.head,
         "tensor cores busy" if account == "tensor" else "L1 busy"),
        rows, "none: within the noise; what stands behind the cycles: one profiled launch at "
        f"{SIZE:,}³{marked}; {current_labels(found)}"
        + (f"; predictions {predictions.label(version.kernel.stem)}" if expected else ""))
    if expected:
        note("Why that was predicted: " + "; ".join(
            f"{one.change}, {guess.because}" for one in chosen
            if (guess := predictions.foreseen(one.first, one.second))) + ".")


def _side(one: Launches, version: Version) -> str:
    own = one.page.kernel.stem == version.kernel.stem
    return f"`{one.variant.name}`" if own else f"{one.page.kernel.stem[:2]}'s `{one.variant.name}`"


def _changed(both: Sequence[Launches], account: str, cause: Column[Launches]) -> tuple[str, ...]:
    """The cells of a pair: two speeds, cycles, what names the cause, and how busy the unit was."""
    if not all(one.current for one in both):
        return NOT_YET, "", "", "", ""
    size, counted = both[0].size, all(one.counted for one in both)
    by_account = _by_tensor if account == "tensor" else _by_wavefronts
    busy = Column[Launches]("", lambda one: by_account(one).busy, ".1%")
    return (
        *(_both([one.at(n) for one in both], lambda one: one.row.tflops, noise.of_speed)
          for n in (SMALL, size)),
        _both(both, _cycles, noise.of_cycles, ",.1f"),
        *((" → ".join(column.cell(one) + PROFILED_APART * _apart(one) for one in both)
           for column in (cause, busy)) if counted else (NOT_YET, "")))


PROFILED_APART = "‡"
APART = 0.03  # profiled and timed cycles that differ by more are told apart
MARKED = (f"; {PROFILED_APART}: that launch took over {APART:.0%} more or fewer cycles than the "
          "timed ones")


def _apart(one: Launches) -> bool:
    """Tell whether a profiled launch took other cycles than those that were timed."""
    clock = one.row.clock if one.timed else None
    return clock is not None and abs(one.counters["cycles"] / clock.cycles - 1) > APART


def _both(sides: Sequence[Launches], found: Callable[..., float | None],
          within: Callable[[Row, Row], float], form: str = ".4g") -> str:
    """A value of both sides and by how much they differ, if by more than the noise."""
    try:
        before, after = map(found, sides)
    except records.NotRecorded:
        return NOT_YET
    if before is None or after is None:
        return NOT_YET
    rows, change = [one.row for one in sides], after / before - 1
    differ = ("two boards" if not noise.one_board(*rows)
              else f"{change:+.1%}" if abs(change) > within(*rows) else "none")
    return f"{before:{form}} → {after:{form}}, {differ}"


def _cycles(one: Launches) -> float | None:
    """Thousands of cycles of a launch among those that were timed."""
    return one.row.clock.cycles / 1e3 if one.row.clock else None


def _share_timed(one: Launches) -> float | None:
    """Share of the peak in the cycles of the launches that were timed."""
    clock = one.row.clock
    return share(clock.cycles, one.size, one.sms, one.peak) if clock else None


def _of_peak(one: Launches) -> str:
    """Share of the peak in a profiled launch, and in timed ones where it is another."""
    share = f"{_by_tensor(one).share:.1%}"
    return f"{share}; timed {_share_timed(one):.1%}" if _apart(one) else share


def _above(version: Version, above: Sequence[str] | None) -> Sequence[str]:
    if above is not None:
        return above
    before = version.before
    return [before.kernel.stem] if before and before.kernel.group == version.kernel.group else []


def _name(one: Launches) -> str:
    own = one.variant is one.page.kernel.fastest
    return short_name(one.page.kernel) if own else one.name


def _peaks(rows: Sequence[Launches]) -> str:
    kinds = {one.variant.dtype: one.peak // 2 for one in rows}
    return ", ".join(f"{kinds[kind]:,} {'FP32' if kind == 'float32' else 'tensor'}"
                     for kind in sorted(kinds))


def _predicted(one: Launches) -> float:
    """w from emulated counters."""
    return predicted(one.page.kernel.stem, one.variant.name, one.sheet, one.size)


VERSION: Column[Launches] = Column("version", _name)
LINK: Column[Launches] = Column(
    "version", lambda one: f"[{short_name(one.page.kernel)}]({one.page.kernel.stem}.ipynb)")
SPEEDS = [*speeds("TFLOP/s at", SMALL), *speeds("at", SIZE)]  # where the clock holds, and at SIZE
W: Column[Launches] = recorded("w", lambda one: _by_wavefronts(one).each, ".3g", absent=NOT_YET)
BUSY: Column[Launches] = recorded(
    "tensor cores busy", lambda one: _by_tensor(one).busy, ".1%", absent=NOT_YET)
AT_WORK: Column[Launches] = recorded(
    "SMs at work", lambda one: _by_tensor(one).active, ".1%", absent=NOT_YET)
BY_TENSOR: tuple[Column[Launches], ...] = (
    BUSY, AT_WORK, recorded("share of the peak", _of_peak, absent=NOT_YET))
BY_TIMED = ("SMs at work: active of elapsed cycles; share: by its cycles, and by the timed "
            f"launches' too where these differ by over {APART:.0%}")
