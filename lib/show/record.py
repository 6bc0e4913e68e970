"""A version's record as a page shows it: every variant, size, counter and pair, without prose."""

from __future__ import annotations

from lib.compiler.arch import BLACKWELL
from lib.records import reach
from lib.records import store as records
from lib.records.schema import Row, mhz
from lib.show import accounts
from lib.show.columns import Column, listed
from lib.show.display import note, once_recorded, table
from lib.show.markdown import reading
from lib.show.version import Version
from lib.show.words import sides


def names(version: Version) -> list[str]:
    """The version's variants, then the steps that isolate a change."""
    return [variant.name for variant in version.kernel.measured]


def is_recorded(version: Version) -> bool:
    """Whether a GPU here can run it: of the others there is only what the emulator says."""
    return version.kernel.min_arch != BLACKWELL


@once_recorded()
def account(version: Version) -> None:
    """Display the account of every variant: by wavefronts, or by how busy tensor cores are."""
    which = accounts.wavefronts if by_wavefronts(version) else accounts.tensor
    which(version, *names(version), above=())


@once_recorded()
def pairs(version: Version) -> None:
    """Display every pair of kernels that differ in one thing."""
    if version.kernel.pairs:
        accounts.isolated(version,
                          account="wavefronts" if by_wavefronts(version) else "tensor")


def by_wavefronts(version: Version) -> bool:
    """Whether the L1's data pipe explains it."""
    return version.kernel.stem <= accounts.LAST_BY_WAVEFRONTS


@once_recorded()
def variant(version: Version, name: str) -> None:
    """Display a variant's template arguments, its times on every shape, and every counter."""
    chosen, stored = version.kernel.variant(name), version.reader.variant(name)
    code = " · ".join(f"`{text}`" for text in dict.fromkeys(
        row.instantiation for row in stored.bench))
    note(f"{chosen.meaning}: {code} · {chosen.threads} threads per block, {stored.registers} "
         f"registers per thread, {stored.shared_bytes:,} B of shared memory per block")
    listed([
        Column("M×N×K", lambda row: sides(row.shape)),
        Column("TFLOP/s", lambda row: f"{row.tflops:.4g} ± {row.spread:.1%}"),
        Column("best of cuBLAS", lambda row: row.cublas_tflops, ".4g"),
        Column("share", lambda row: reach.give_or_take(row.ratio, row.noise)),
        Column("sustained", _sustained),
        Column("MHz", lambda row: mhz(row.clock), ",.0f"),
        Column("J per product", lambda row: row.joules and row.joules[0], ".4f"),
        Column("board, day", lambda row: f"{row.board[:records.BOARD]}, "
                                         f"{records.day(version.record, row.chunk)}"),
    ], stored.bench, records.label(version.record))
    shapes = [one.shape for one in stored.counters]
    metrics = dict.fromkeys(name for one in stored.counters for name, value in one.metrics.items()
                            if value)
    table(("counter", *map(sides, shapes)),
          [(name.replace("_", " "), *(_amount(one.metrics.get(name)) for one in stored.counters))
           for name in metrics],
          f"{records.label(version.record)}, ncu, one launch each; counters that are 0 in all of "
          "them are left out")


@once_recorded()
def metrics(version: Version) -> None:
    """Display which of ncu's metrics each counter is."""
    named = version.record.method.counters
    if isinstance(named, str):
        note(named)
        return
    table(("counter", "metric"), [(name.replace("_", " "), f"`{metric}`")
                                  for name, metric in named.items()],
          records.label(version.record))


def _amount(value: float | None) -> str:
    whole = value is not None and value == round(value)
    return reading(value, ",.0f" if whole else ",.4g")


def _sustained(row: Row) -> str | None:
    return f"{row.sustained.ratio:.3f}" if row.sustained else None
