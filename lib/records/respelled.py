"""Records of variants that have other names today, or other arguments of the same template.

What was measured stays what it is as long as the code is the same. Where a kernel's text has
changed, that is asked of the compiler: the source of then and that of today, for the architectures
that were measured, with marks and without, must become the same PTX, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from lib.compiler.compiled import compile_file
from lib.compiler.fingerprint import fingerprint
from lib.dispatch.fit import forms
from lib.kernels.catalogue import find
from lib.kernels.spec import Kernel, parted
from lib.kernels.spec import Variant as KernelVariant
from lib.paths import CUDA, RESULTS
from lib.records import store
from lib.records.launched import launch_hash
from lib.records.renamed import paired
from lib.records.schema import KernelRecord, MachineCode, SearchRecord, Timeline, Variant

Code = TypeVar("Code", Variant, MachineCode)

# Of PTX what says where a line came from, and not what is done.
_WHENCE = re.compile(r"\s*(?://.*|\.(?:loc|file)\b.*)?$")


def rename(
    stem: str, names: Mapping[str, str], before: Path, root: Path | None = None
) -> dict[Path, dict[str, bool]]:
    """Write the records of a version, of every GPU, with its variants' names of today.

    A search among its variants is written with them.

    Parameters
    ----------
    stem : str
        The version's.
    names : mapping of str to str
        Today's names by the recorded ones; an empty one leaves a variant out.
    before : Path
        The folder ``cuda`` as it was when the record was made.
    root : Path, optional
        Where records lie, if not in ``results``.

    Returns
    -------
    dict of Path to dict of str to bool
        The files written, and of each of their variants whether its code is still the same: the
        record of another one goes on to be stale.

    Raises
    ------
    ValueError
        If no GPU has a record of the version, two variants would have one name, or a name is none
        of the recorded or none of today's; nothing is written then.
    """
    kernel = find(stem)
    files = sorted((root or RESULTS).glob(f"*/{stem}.json"))
    if not files:
        raise ValueError(f"no GPU has a record of {stem}")
    made, searched = [], []
    for file in files:
        record = store.read(file)
        if not isinstance(record, KernelRecord):
            raise ValueError(f"{file} is no record of a version")
        if unknown := set(names) - set(record.variants):
            raise ValueError(f"{file} has no variant {min(unknown)}")
        new = _renamed(record, kernel, names, before)
        made.append(new)
        search = store.load(SearchRecord, record.gpu.key, root=root)
        if search and any(tuned.startswith(f"{stem}/") for tuned in search.searches):
            searched.append(_searched(search, record, new, names))
    for search in searched:
        store.write(search, root)
    return {
        store.write(record, root): {
            name: not store.stale(record, name) for name in record.variants
        } for record in made
    }


def _searched(
    search: SearchRecord, old: KernelRecord, new: KernelRecord, names: Mapping[str, str]
) -> SearchRecord:
    """The search of a GPU with today's names of a version's variants, and their fingerprints."""
    def today(name: str) -> str:
        return names.get(name, name)

    found = {}
    for tuned, one in search.searches.items():
        stem, name = parted(tuned)
        if stem == new.kernel:
            tuned = f"{stem}/{today(name or '')}"
            one = structs.replace(one, hashes={
                today(candidate): new.variants[today(candidate)].hash
                if old.variants[candidate].hash == digest else digest
                for candidate, digest in one.hashes.items()
            }, rows=[
                structs.replace(row, seconds={today(candidate): seconds
                                              for candidate, seconds in row.seconds.items()})
                for row in one.rows
            ])
        found[tuned] = one
    return structs.replace(search, searches=found)


def _renamed(
    record: KernelRecord, kernel: Kernel, names: Mapping[str, str], before: Path
) -> KernelRecord:
    """The record with today's names, and today's fingerprints where the code is the same."""
    today = {old: names.get(old, old) for old in record.variants if names.get(old, old)}
    if len(set(today.values())) < len(today):
        raise ValueError(f"two variants of {kernel.stem} would have the same name")
    stored = {
        new: _of_today(kernel, kernel.variant(new), paired(record.variants[old], today), before)
        for old, new in today.items()
    }
    order = [one.name for one in kernel.measured]
    return structs.replace(
        record, variants={name: stored[name] for name in sorted(stored, key=order.index)})


def _of_today(kernel: Kernel, variant: KernelVariant, stored: Variant, before: Path) -> Variant:
    """What was recorded, with today's fingerprints if its code is today's, otherwise as it is."""
    then = before / kernel.file(variant).relative_to(CUDA)
    if not then.is_file():  # a step whose code was its kernel's then
        then = before / kernel.source.name
    if not store.changed(kernel, variant.name, stored):
        return stored
    rows = [row for code in stored.codes.values() for row in code.bench]
    expressions = {row.instantiation for row in rows}
    if not any(fingerprint(then, one) == stored.hash for one in expressions):
        return stored  # of other code than what lies there
    archs = [(stored.arch, None), *((stored.arch, older) for older in stored.ptx)]
    launched = [variant, *map(kernel.variant, variant.candidates)]
    today = [kernel.expression(form) for one in launched for form in forms(one)]
    same: dict[str, str] = {}
    for old in expressions:
        for new in today:
            if all(_ptx(then, old, *arch) == _ptx(kernel.file(variant), new, *arch)
                   for arch in archs):
                same[old] = new
    times: Timeline | None = stored.timeline
    if len(same) < len(expressions):
        return stored
    if times:
        marked = next(one for one in expressions if fingerprint(then, one) == stored.hash)
        if (fingerprint(then, marked, marks=True) != times.hash
                or _ptx(then, marked, stored.arch, None, "-DTIMELINE")
                != _ptx(kernel.file(variant), same[marked], stored.arch, None, "-DTIMELINE")):
            return stored
        times = structs.replace(times, hash=kernel.hash(variant, marks=True))
    return structs.replace(
        _instantiated(stored, same), hash=kernel.hash(variant), timeline=times,
        launch=launch_hash(kernel, variant),
        ptx={arch: _instantiated(code, same) for arch, code in stored.ptx.items()})


def _instantiated(code: Code, same: Mapping[str, str]) -> Code:
    """Machine code whose rows name today's instantiations."""
    return structs.replace(code, bench=[
        structs.replace(row, instantiation=same[row.instantiation]) for row in code.bench])


def _ptx(
    file: Path, expression: str, arch: str, older: str | None, *options: str
) -> list[str]:
    """The lines of an instantiation's PTX that say what is done, the kernel's name left out."""
    made = compile_file(file, expression, arch, options, older, 0, True)
    text = made.ptx.partition("\t.section")[0]
    # Without the first letter, which a block's array has before the kernel's name.
    named = re.compile(re.escape(made.name[1:]))
    return [named.sub("KERNEL", line) for line in text.splitlines() if not _WHENCE.match(line)]
