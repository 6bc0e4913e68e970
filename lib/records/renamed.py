"""Records of a version under another name: its number or its variants' names, not its code.

What was measured stays what it is as long as the code that was measured is in the catalogue: an
instantiation is known by its fingerprint, whatever it is called today.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from lib.kernels.catalogue import find
from lib.kernels.spec import Kernel
from lib.paths import RESULTS
from lib.records import store
from lib.records.schema import KernelRecord, Variant


def rename(old: str, new: str, root: Path | None = None) -> list[Path]:
    """Write the records of a version, of every GPU, as those of another name, and remove the old.

    Parameters
    ----------
    old : str
        The stem that the records have.
    new : str
        The catalogue's stem of the same code; the old one where only variants' names changed.
    root : Path, optional

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ValueError
        If no GPU has a record of `old`, one of `new` lies there already, or a recorded variant's
        code or launch is none of those that `new` has today; nothing is written then.
    RecordError
        As `store.read` and `store.write` do.
    """
    kernel = find(new)
    files = sorted((root or RESULTS).glob(f"*/{old}.json"))
    if not files:
        raise ValueError(f"no GPU has a record of {old}")
    made = []
    for file in files:
        record = store.read(file)
        if not isinstance(record, KernelRecord):
            raise ValueError(f"{file} is no record of a version")
        there = store.path(record.gpu.key, new, root)
        if old != new and there.exists():
            raise ValueError(f"{there} is there already")
        made.append(_renamed(record, kernel))
    written = [store.write(record, root) for record in made]
    for file in files:
        if file not in written:
            file.unlink()
    return written


def _renamed(record: KernelRecord, kernel: Kernel) -> KernelRecord:
    """The record with the stem and the variants' names that its code has today."""
    names = {name: _today(record.kernel, name, stored, kernel)
             for name, stored in record.variants.items()}
    if len(set(names.values())) < len(names):
        raise ValueError(f"two variants of {record.kernel} are one of {kernel.stem} today")
    order = [one.name for one in kernel.measured]
    variants = {names[name]: paired(stored, names) for name, stored in record.variants.items()}
    return structs.replace(
        record, kernel=kernel.stem,
        variants={name: variants[name] for name in sorted(variants, key=order.index)})


def _today(stem: str, name: str, stored: Variant, kernel: Kernel) -> str:
    """What the recorded code of a variant is called today.

    Raises
    ------
    ValueError
        If it is no longer there.
    """
    same = [one.name for one in kernel.measured if not store.changed(kernel, one.name, stored)]
    if not same:
        raise ValueError(
            f"{stem}/{name} was measured with code {stored.hash}, which no variant of "
            f"{kernel.stem} has today: record it again, python -m lib record {kernel.stem}")
    return name if name in same else same[0]


def paired(stored: Variant, today: Mapping[str, str]) -> Variant:
    """Return a variant whose rows name those beside which they were measured as they are today."""
    bench = [
        structs.replace(row, pair=structs.replace(
            row.pair, variant=today.get(row.pair.variant, row.pair.variant))) if row.pair else row
        for row in stored.bench
    ]
    return structs.replace(stored, bench=bench)
