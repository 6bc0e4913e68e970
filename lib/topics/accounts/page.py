"""The book's two accounts, a version and the one before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lib import gpus
from lib.plotting.display import table
from lib.records import store as records
from lib.topics.accounts import model
from lib.topics.version import RECORDED_ON, Row, Version, rung

T = TypeVar("T")
SIZE = 4096
NOT_YET = "not recorded yet"


def wavefronts(version: Version, *variants: str, above: Sequence[str] | None = None,
               size: int = SIZE) -> None:
    """Display cap = 32 / (P·w) and how busy the L1's data stage was: the account of 01 to 13.

    Parameters
    ----------
    version : Version
    *variants : str
        The first if none is named.
    above : sequence of str, optional
        Versions to show above, as ``stem`` or ``stem/variant``; the version before, of the same
        group, if not given.
    size : int
        M = N = K.
    """
    sheet = gpus.GPUS[RECORDED_ON]
    rows, label = [], _Labels()
    for one in version.rows(variants, _above(version, above)):
        peak = sheet.flops_per_cycle(one.variant.dtype)
        each = model.predicted(one.page.kernel.stem, one.variant.name, sheet, size)

        def told(found: Mapping[str, float], sms: int, peak: int = peak) -> model.Wavefronts:
            return model.wavefronts(found, size, sms, peak)

        found = _recorded(one, size, told, label)
        rows.append((
            _name(one), f"{each:.3g}", f"{model.cap(each, peak / 2):.1%}",
            *((f"{found.each:.3g}", f"{found.cap:.1%}", f"{found.busy:.1%}", f"{found.share:.1%}")
              if found else (NOT_YET, "", "", "")), _tflops(one, size)))
    table(
        ("version", "w predicted", "cap = 32 / (P·w)", "w recorded", "cap", "stage busy",
         "cap × busy: share of the peak", "TFLOP/s"),
        rows, f"w: wavefronts of the L1 per 32 multiply-adds, predicted: emulated for {sheet.arch};"
        f" P: multiply-adds per cycle and SM, {_peaks(version, variants, above)}; "
        f"{label}, {size:,}³")


def tensor(version: Version, *variants: str, above: Sequence[str] | None = None,
           size: int = SIZE) -> None:
    """Display FLOP per tensor-busy cycle and how many cycles are busy: the account from 14 on.

    Parameters
    ----------
    version : Version
    *variants : str
        The first if none is named.
    above : sequence of str, optional
        Versions to show above, as ``stem`` or ``stem/variant``; the version before, of the same
        group, if not given.
    size : int
        M = N = K.
    """
    sheet = gpus.GPUS[RECORDED_ON]
    rows, label = [], _Labels()
    for one in version.rows(variants, _above(version, above)):
        peak = sheet.flops_per_cycle(one.variant.dtype)

        def told(found: Mapping[str, float], sms: int, peak: int = peak) -> model.Tensor:
            return model.tensor(found, size, sms, peak)

        found = _recorded(one, size, told, label)
        rows.append((
            _name(one), f"{peak:,}",
            *((f"{found.each:,.0f}", f"{found.busy:.1%}", f"{found.share:.1%}")
              if found else (NOT_YET, "", "")), _tflops(one, size)))
    table(
        ("version", "FLOP per cycle and SM, at most", "FLOP per tensor-busy cycle, recorded",
         "cycles busy", "share of the peak", "TFLOP/s"),
        rows, f"at most: the data sheet's, modelled; {label}, {size:,}³")


class _Labels:
    """The records that the rows of a table came from, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, text: str) -> None:
        self._found[text] = None

    def __str__(self) -> str:
        return "; ".join(self._found) or NOT_YET


def _recorded(one: Row, size: int, told: Callable[[Mapping[str, float], int], T], label: _Labels
              ) -> T | None:
    """The account of what is recorded of a row; None where nothing is."""
    try:
        found, record = one.page.metrics(size, one.variant.name), one.page.record
    except records.NotRecorded:
        return None
    stale = " (stale: the source has changed since)" if one.page.kept.stale else ""
    label.add(records.label(record) + stale)
    return told(found, record.gpu.sms)


def _tflops(one: Row, size: int) -> str:
    try:
        return f"{one.page.recorded(size, one.variant.name).tflops:.4g}"
    except records.NotRecorded:
        return NOT_YET


def _above(version: Version, above: Sequence[str] | None) -> Sequence[str]:
    if above is not None:
        return above
    before = version.before
    return [before.kernel.stem] if before and before.kernel.group == version.kernel.group else []


def _name(one: Row) -> str:
    first = one.variant is one.page.kernel.variants[0]
    return rung(one.page.kernel) if first else one.name


def _peaks(version: Version, variants: Sequence[str], above: Sequence[str] | None) -> str:
    sheet = gpus.GPUS[RECORDED_ON]
    kinds = {one.variant.dtype for one in version.rows(variants, _above(version, above))}
    return ", ".join(
        f"{sheet.flops_per_cycle(kind) // 2:,} " + (
            "FP32 lanes" if kind == "float32" else "on tensor cores") for kind in sorted(kinds))
