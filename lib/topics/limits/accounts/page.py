"""The book's two accounts, a version and the one before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lib import gpus
from lib.compiler.arch import BLACKWELL
from lib.kernels import catalogue
from lib.kernels.spec import Pair
from lib.plotting.display import table
from lib.records import predictions
from lib.records import store as records
from lib.records.schema import mhz
from lib.topics.limits.accounts import model
from lib.topics.limits.issue_slots import model as slots
from lib.topics.version import RECORDED_ON, Row, Version, short_name

T = TypeVar("T")
SIZE, SMALL = 4096, 2048
# The last version that the L1's data stage explains; behind it the tensor cores' own account does.
LAST_BY_WAVEFRONTS = "13_wmma_vectorized"
NOT_YET = "not recorded yet"
AHEAD = 1.2  # times as fast: a first variant that is so far behind is made for other shapes


def wavefronts(version: Version, *variants: str, above: Sequence[str] | None = None,
               size: int = SIZE) -> None:
    """Display cap = 32 / (P·w) and how busy the L1's data stage was: the account of 01 to 13.

    Where w leaves room for the whole peak, the table says that there is no cap: a share above 1
    would read as a speed that can be reached. Speeds stand beside it, at 2,048, where the clock
    holds, and at the size of the counters.

    Parameters
    ----------
    above : sequence of str, optional
        Versions to show above, as ``stem`` or ``stem/variant``; the version before, of the same
        group, if not given.
    """
    sizes = tuple(dict.fromkeys((SMALL, size)))
    sheet = gpus.GPUS[RECORDED_ON]
    rows, label = [], _Labels()
    for one in version.rows(variants, _above(version, above)):
        peak = sheet.flops_per_cycle(one.variant.dtype)
        each = model.predicted(one.page.kernel.stem, one.variant.name, sheet, size)
        found = _recorded(one, size, partial(_by_wavefronts, size, peak), label)
        rows.append((
            _name(one),
            *((f"{each:.3g} / {found.each:.3g}", _capped(found.cap), f"{found.busy:.1%}")
              if found else (f"{each:.3g} / {NOT_YET}", _capped(model.cap(each, peak / 2)), "")),
            *(_tflops(one, n) for n in sizes), _cycles(one, size, 1e6)))
    table(
        ("version", "w predicted / recorded", "cap", "stage busy",
         *(f"{'at' if i else 'TFLOP/s at'} {n:,}" for i, n in enumerate(sizes)), "M cycles"),
        rows, "w: wavefronts of the L1 per 32 multiply-adds, emulated / recorded; cap: 32 / (P·w) "
        f"of the peak, P: {_peaks(version, variants, above)} multiply-adds per cycle and SM; "
        f"counters: one launch at {size:,}³; {label}")


def issued(version: Version, *variants: str, above: Sequence[str] | None = None,
           size: int = SIZE) -> None:
    """Display what issue slots hold and warps wait for: the account where w caps nothing.

    The share of slots that hold an FMA is the share of the FP32 peak. Beside it stand what can
    change it: instructions per FMA, and the cycles that a warp waits for each of its FMAs.

    Parameters
    ----------
    above : sequence of str, optional
        Versions to show above, as ``stem`` or ``stem/variant``; the version before, of the same
        group, if not given.
    """
    sizes = tuple(dict.fromkeys((SMALL, size)))
    sheet = gpus.GPUS[RECORDED_ON]
    rows, label = [], _Labels()
    for one in version.rows(variants, _above(version, above)):
        peak = sheet.flops_per_cycle(one.variant.dtype)
        found = _recorded(one, size, partial(_by_slots, size, peak), label)
        rows.append((
            _name(one),
            *((f"{found.each:.3g}", f"{found.instructions:.2f}", f"{found.fma:.0%}",
               f"{found.empty:.0%}", f"{found.idle:.0%}",
               *(f"{value:.2f}" for value in found.waits))
              if found else (NOT_YET, *[""] * (4 + len(_WAITS)))),
            *(_tflops(one, n) for n in sizes)))
    table(
        ("version", "w", "issued per FMA", "slots: FMA", "slots: empty", "slots: no warp",
         *(f"wait: {name}" for name in _WAITS.values()),
         *(f"{'at' if i else 'TFLOP/s at'} {n:,}" for i, n in enumerate(sizes))),
        rows, "w: wavefronts of the L1 per 32 multiply-adds; issued: instructions of a warp per "
        "FMA of a warp; slots: of all issue slots, empty on SMs that have warps; wait: cycles in "
        "that stall per FMA of a warp, for global memory and at barriers; counters: one launch at "
        f"{size:,}³; {label}")


@dataclass(frozen=True)
class _Issued:
    """What `issued` tells of one launch."""

    each: float
    instructions: float
    fma: float
    empty: float
    idle: float
    waits: tuple[float, ...]


# Stalls, and what a warp waits for in them.
_WAITS = {"long_scoreboard": "global", "barrier": "barrier"}


def _by_slots(size: int, peak: int, found: Mapping[str, float], sms: int) -> _Issued:
    per_fma = found["instructions"] / (size**3 / model.WARP)
    shares = slots.account(found, sms)
    return _Issued(
        model.wavefronts(found, size, sms, peak).each, per_fma, shares.share("fma"),
        shares.share("empty"), shares.share("idle"),
        tuple(per_fma * found[f"stall_{reason}"] for reason in _WAITS))


def _capped(share: float) -> str:
    return f"{share:.1%}" if share < 1 else "none"


def tensor(version: Version, *variants: str, above: Sequence[str] | None = None,
           size: int = SIZE) -> None:
    """Display FLOP per tensor-busy cycle and how many cycles are busy: the account from 14 on.

    Speeds stand beside it, at 2,048, where the clock holds, and at the size of the counters.

    Parameters
    ----------
    above : sequence of str, optional
        Versions to show above, as ``stem`` or ``stem/variant``; the version before, of the same
        group, if not given.
    """
    sizes = tuple(dict.fromkeys((SMALL, size)))
    sheet = gpus.GPUS[RECORDED_ON]
    rows, label = [], _Labels()
    for one in version.rows(variants, _above(version, above)):
        peak = sheet.flops_per_cycle(one.variant.dtype)
        found = _recorded(one, size, partial(_by_tensor, size, peak), label)
        rows.append((
            _name(one), f"{peak:,}",
            *((f"{found.each:,.0f}", f"{found.busy:.1%}", f"{found.share:.1%}")
              if found else (NOT_YET, "", "")),
            *(_tflops(one, n) for n in sizes), _cycles(one, size)))
    table(
        ("version", "FLOP per cycle and SM, at most", "FLOP per tensor-busy cycle, recorded",
         "cycles busy", "share of the peak",
         *(f"TFLOP/s at {n:,}" for n in sizes), "cycles"),
        rows, f"at most: the data sheet's, modelled; counters: one launch at {size:,}³; {label}")


def every(size: int = SIZE) -> None:
    """Display both accounts for all versions that a GPU here has run, as recorded: two tables.

    Of each version its first variant. Where the version has shapes of its own, and another of its
    variants is more than `AHEAD` times as fast at this one, the caption names it.
    """
    sheet = gpus.GPUS[RECORDED_ON]
    by_wavefronts, by_tensor, labels = [], [], (_Labels(), _Labels())
    peaks: dict[str, str] = {}
    others = []
    for stem, kernel in catalogue.in_book().items():
        if kernel.min_arch == BLACKWELL:
            continue
        one = Version(stem).rows(())[0]
        peak = sheet.flops_per_cycle(one.variant.dtype)
        link = f"[{short_name(kernel)}]({stem}.ipynb)"
        if stem <= LAST_BY_WAVEFRONTS:
            peaks[kernel.group] = f"{peak // 2:,} in {kernel.group}"
            first = _recorded(one, size, partial(_by_wavefronts, size, peak), labels[0])
            by_issue = _recorded(one, size, partial(_by_slots, size, peak), labels[0])
            by_wavefronts.append((
                link,
                *((f"{first.each:.3g}", _capped(first.cap), f"{first.busy:.0%}")
                  if first else (NOT_YET, "", "")),
                *((f"{by_issue.instructions:.2f}", f"{by_issue.empty + by_issue.idle:.0%}")
                  if by_issue and kernel.group == "FP32" else ("", "")),
                f"{first.share:.1%}" if first else "", _tflops(one, size) if first else ""))
        else:
            second = _recorded(one, size, partial(_by_tensor, size, peak), labels[1])
            by_tensor.append((
                link, f"{peak:,}",
                *((f"{second.each:,.0f}", f"{second.busy:.1%}", f"{second.share:.1%}")
                  if second else (NOT_YET, "", "")),
                *((_clock(one, size), _tflops(one, size)) if second else ("", ""))))
            if second and (ahead := _ahead(one, size)):
                others.append(ahead)
    table(("version", "w", "cap = 32 / (P·w)", "stage busy", "instructions per FMA",
           "issue slots empty, idle SMs' too", "share of the peak", "TFLOP/s"), by_wavefronts,
          "w: wavefronts of the L1's data stage per 32 multiply-adds; P: multiply-adds per cycle "
          f"and SM of the unit that computes, {', '.join(peaks.values())}; cap: none where w "
          f"leaves room for the whole peak; {labels[0]}, {size:,}³")
    table(("version", "FLOP per cycle and SM, at most", "FLOP per tensor-busy cycle",
           "cycles busy", "share of the peak", "clock, MHz", "TFLOP/s"), by_tensor,
          "at most: the data sheet's; counters: one launch; clock and TFLOP/s: of the launches "
          f"that were timed; {labels[1]}, {size:,}³"
          + (f"; made for other shapes: {'; '.join(others)}" if others else ""))


def _ahead(one: Row, size: int) -> str:
    """The variant that is far faster than the first at this size, with its speed; else nothing."""
    found, kernel, first = [], one.page.kernel, one.variant
    for variant in (*kernel.variants, *kernel.steps) if kernel.own_shapes else ():
        if (variant.dtype, variant.out, variant.b_layout) != (
                first.dtype, first.out, first.b_layout):
            continue
        try:
            found.append((one.page.recorded(size, variant.name).tflops, variant.name))
        except records.NotRecorded:
            continue
    fastest, name = max(found, default=(0.0, ""))
    if not found or fastest < AHEAD * one.page.recorded(size, first.name).tflops:
        return ""
    return (f"{kernel.stem[:2]}'s `{first.name}`, where its `{name}` does {fastest:.4g} TFLOP/s")


def _clock(one: Row, size: int) -> str:
    found = mhz(one.page.recorded(size, one.variant.name).clock)
    return f"{found:,.0f}" if found else ""


def _by_wavefronts(size: int, peak: int, found: Mapping[str, float], sms: int
                   ) -> model.Wavefronts:
    return model.wavefronts(found, size, sms, peak)


def _by_tensor(size: int, peak: int, found: Mapping[str, float], sms: int) -> model.Tensor:
    return model.tensor(found, size, sms, peak)


def isolated(version: Version, *changes: str, account: str = "tensor", counter: str = "",
             emulated: bool = False, size: int = SIZE, timed: bool = False) -> None:
    """Display what each change by itself was worth: a row a pair that differs in one thing.

    A speed is told at 2,048, where the clock holds, and at a larger size; cycles and the account's
    two factors are those of the larger one. Where the log has a guess that was written before the
    change was measured, it stands beside.

    Parameters
    ----------
    *changes : str
        What the second of a pair has (`lib.kernels.spec.Pair`), or its beginning; all of the
        version's pairs if none is named.
    account : {"tensor", "wavefronts"}
    counter : str
        What names the cause where the account's first factor doesn't, and stands in its place: a
        recorded stall such as ``"stall_long_scoreboard"``, or a part of the issue slots such as
        ``"empty"`` (`lib.topics.limits.issue_slots.model.Account.share`).
    emulated : bool
        Whether w stands beside the one that is predicted from emulated counters.
    timed : bool
        Whether cycles are those of the launches that were timed, at both sizes: many launches in a
        row scatter less than the one that a profiler counts.

    Raises
    ------
    ValueError
        If the version has no such pair.
    """
    sheet = gpus.GPUS[RECORDED_ON]
    chosen = _pairs(version, changes)
    cause = _cause(account, counter)
    expected = any(predictions.foreseen(one.first, one.second) for one in chosen)
    rows, label = [], _Labels()
    for pair in chosen:
        first, second = version.rows((), (pair.first, pair.second))[:2]
        guess = predictions.foreseen(pair.first, pair.second)
        rows.append((
            f"**{pair.change}**: {_side(first, version)} → {_side(second, version)}",
            *((f"{guess.gain:+.1%}" if guess else "none",) if expected else ()),
            *((_foreseen(first, second, sheet, size),) if emulated else ()),
            *_changed(first, second, account, cause, sheet, size, label, timed)))
    cycles = f"k cycles at {SMALL:,}; at {size:,}" if timed else "M cycles"
    of_launches = ("cycles: of the timed launches; what stands behind them" if timed
                   else "cycles and what stands behind them")
    table(
        ("one thing changed", *(("speed predicted",) if expected else ()),
         *(("w predicted",) if emulated else ()),
         f"TFLOP/s at {SMALL:,}", f"at {size:,}", cycles, cause.name,
         "tensor cores busy" if account == "tensor" else "stage busy"),
        rows, f"{of_launches}: one launch at {size:,}³; {label}"
        + (f"; w predicted: emulated for {sheet.arch}" if emulated else "")
        + (f"; predictions {predictions.label(version.kernel.stem)}" if expected else ""))


@dataclass(frozen=True)
class _Cause:
    """The column that names the cause: its head, how a value is written, and where it is from."""

    name: str
    digits: str
    found: Callable[[Mapping[str, float], int, float], float]  # counters, SMs, the account's first


def _cause(account: str, counter: str) -> _Cause:
    if not counter:
        name, digits = ("FLOP per tensor-busy cycle", ",.0f") if account == "tensor" else (
            "w: wavefronts per 32 multiply-adds", ".3g")
        return _Cause(name, digits, lambda _counters, _sms, each: each)
    reason = counter.removeprefix("stall_")
    if reason != counter:
        return _Cause(f"{reason.replace('_', ' ')}: warps per instruction issued", ".2f",
                      lambda counters, _sms, _each: counters[counter])
    return _Cause(f"issue slots {counter}", ".1%",
                  lambda counters, sms, _each: slots.account(counters, sms).share(counter))


def _foreseen(first: Row, second: Row, sheet: gpus.Gpu, size: int) -> str:
    return " → ".join(
        f"{model.predicted(one.page.kernel.stem, one.variant.name, sheet, size):.3g}"
        for one in (first, second))


def crossed(version: Version, columns: Sequence[str], rows: Mapping[str, Sequence[str]],
            what: str = "", size: int = SIZE) -> None:
    """Display two things changed apart and together: one down, the other across.

    Of each kernel its speed at 2,048, where the clock holds, and at a larger size cycles, which
    don't depend on it, and both factors of the tensor cores' account.

    Parameters
    ----------
    columns : sequence of str
        The states of what changes across.
    rows : mapping of str to sequence of str
        By the state of what changes down: the kernel of each column, as ``stem/variant``.
    what : str
        What changes down, for the table's head.
    """
    sheet = gpus.GPUS[RECORDED_ON]
    label, lines = _Labels(), []
    for state, names in rows.items():
        kernels = version.rows((), names)[:len(names)]
        cells = [_speed_and_cycles(one, sheet, size, label) for one in kernels]
        lines.append((f"**{state}**",
                      *(cell for each in zip(*cells, strict=True) for cell in each)))
    heads = (f"TFLOP/s at {SMALL:,}", f"cycles at {size:,}", "FLOP per tensor-busy cycle × busy")
    table((what, *(f"{column}, {head}" for head in heads for column in columns)), lines,
          f"the last: one launch at {size:,}³; {label}")


def _speed_and_cycles(one: Row, sheet: gpus.Gpu, size: int, label: _Labels) -> tuple[str, str, str]:
    try:
        found = one.page.metrics(size, one.variant.name)
        parts = model.tensor(found, size, one.page.record.gpu.sms,
                             sheet.flops_per_cycle(one.variant.dtype))
        speed = f"{one.page.recorded(SMALL, one.variant.name).tflops:.4g}"
    except records.NotRecorded:
        return NOT_YET, NOT_YET, NOT_YET
    stale = " (stale: the source has changed since)" if one.page.reader.stale else ""
    label.add(records.label(one.page.record) + stale)
    return speed, f"{found['cycles']:,.0f}", f"{parts.each:,.0f} × {parts.busy:.1%}"


def _pairs(version: Version, changes: Sequence[str]) -> list[Pair]:
    found = []
    for change in changes:
        named = [pair for pair in version.kernel.pairs if pair.change.startswith(change)]
        if not named:
            raise ValueError(f"{version.kernel.stem} has no pair that is {change!r}")
        found.append(named[0])
    return found or list(version.kernel.pairs)


def _side(one: Row, version: Version) -> str:
    own = one.page.kernel.stem == version.kernel.stem
    return f"`{one.variant.name}`" if own else f"{one.page.kernel.stem[:2]}'s `{one.variant.name}`"


def _changed(first: Row, second: Row, account: str, cause: _Cause, sheet: gpus.Gpu, size: int,
             label: _Labels, timed: bool) -> tuple[str, ...]:
    """The cells of a pair: two speeds, cycles, what names the cause, and how busy the unit was."""
    def counted(one: Row) -> tuple[float, float, float]:
        found = one.page.metrics(size, one.variant.name)
        sms, peak = one.page.record.gpu.sms, sheet.flops_per_cycle(one.variant.dtype)
        parts: model.Tensor | model.Wavefronts = (
            model.tensor(found, size, sms, peak) if account == "tensor"
            else model.wavefronts(found, size, sms, peak))
        return found["cycles"], cause.found(found, sms, parts.each), parts.busy

    both = (first, second)
    try:
        for one in both:
            one.page.reader.check_current(one.variant.name)
        for one in both:
            label.add(records.label(one.page.record))
    except records.NotRecorded:
        return NOT_YET, "", "", "", ""
    speeds = tuple(_both(both, partial(_tflops_at, n)) for n in (SMALL, size))
    try:
        before, after = counted(first), counted(second)
    except records.NotRecorded:
        return (*speeds, _cycles_of_turns(first, second, size) if timed else NOT_YET, NOT_YET, "")
    cycles = (_cycles_of_turns(first, second, size) if timed
              else f"{before[0] / 1e6:.4g} → {after[0] / 1e6:.4g}, {after[0] / before[0] - 1:+.1%}")
    return (*speeds, cycles,
            f"{before[1]:{cause.digits}} → {after[1]:{cause.digits}}",
            f"{before[2]:.1%} → {after[2]:.1%}")


def _tflops_at(size: int, one: Row) -> float:
    return one.page.recorded(size, one.variant.name).tflops


def _both(sides: Sequence[Row], found: Callable[[Row], float]) -> str:
    """A value of both sides and by how much they differ."""
    try:
        before, after = map(found, sides)
    except records.NotRecorded:
        return NOT_YET
    return f"{before:.4g} → {after:.4g}, {after / before - 1:+.1%}"


def _cycles_of_turns(first: Row, second: Row, size: int) -> str:
    """Cycles of a pair's timed launches at both sizes, thousands, and by how much they differ."""
    words = []
    for n in (SMALL, size):
        try:
            clocks = [one.page.recorded(n, one.variant.name).clock for one in (first, second)]
        except records.NotRecorded:
            clocks = [None]
        if not all(clocks):
            words.append(NOT_YET)
            continue
        before, after = (clock.cycles for clock in clocks if clock)
        words.append(f"{before / 1e3:,.1f} → {after / 1e3:,.1f}, {after / before - 1:+.1%}")
    return "; ".join(words)


class _Labels:
    """The records that the rows of a table came from, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, text: str) -> None:
        self._found[text] = None

    def __str__(self) -> str:
        return "; ".join(self._found) or NOT_YET


def _recorded(one: Row, size: int, account: Callable[[Mapping[str, float], int], T], label: _Labels
              ) -> T | None:
    """The account of what is recorded of a row; None where nothing is."""
    try:
        found, record = one.page.metrics(size, one.variant.name), one.page.record
    except records.NotRecorded:
        return None
    stale = " (stale: the source has changed since)" if one.page.reader.stale else ""
    label.add(records.label(record) + stale)
    return account(found, record.gpu.sms)


def _tflops(one: Row, size: int) -> str:
    try:
        return f"{one.page.recorded(size, one.variant.name).tflops:.4g}"
    except records.NotRecorded:
        return NOT_YET


def _cycles(one: Row, size: int, unit: float = 1.0) -> str:
    try:
        cycles = one.page.metrics(size, one.variant.name)["cycles"] / unit
    except records.NotRecorded:
        return ""
    return f"{cycles:,.0f}" if unit == 1.0 else f"{cycles:.4g}"


def _above(version: Version, above: Sequence[str] | None) -> Sequence[str]:
    if above is not None:
        return above
    before = version.before
    return [before.kernel.stem] if before and before.kernel.group == version.kernel.group else []


def _name(one: Row) -> str:
    first = one.variant is one.page.kernel.variants[0]
    return short_name(one.page.kernel) if first else one.name


def _peaks(version: Version, variants: Sequence[str], above: Sequence[str] | None) -> str:
    sheet = gpus.GPUS[RECORDED_ON]
    kinds = {one.variant.dtype for one in version.rows(variants, _above(version, above))}
    return ", ".join(
        f"{sheet.flops_per_cycle(kind) // 2:,} " + (
            "FP32" if kind == "float32" else "tensor") for kind in sorted(kinds))
