"""Rows of a rule's records that don't say yet which candidate they are of, with its fingerprint.

A record has the candidates' launches in one fingerprint, and each row its instantiation. So what a
row ran can be proved: the list of candidates of then gives the record's fingerprint only if each of
them is launched today as it was; and the sources of then, if they lie there, give their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from lib.compiler.fingerprint import fingerprint
from lib.dispatch.fit import forms
from lib.kernels.catalogue import find
from lib.kernels.spec import Kernel
from lib.kernels.spec import Variant as KernelVariant
from lib.paths import CUDA, RESULTS
from lib.records import launched, store
from lib.records.schema import KernelRecord, Row, Variant


def identify(
    stem: str, candidates: Mapping[str, Sequence[str]], before: Path, root: Path | None = None
) -> dict[Path, dict[str, int]]:
    """Write the records of a rule, of every GPU, with what their rows are of.

    Parameters
    ----------
    stem : str
        The rule's.
    candidates : mapping of str to sequence of str
        Of each variant the names of the candidates that it had when it was recorded, in order.
    before : Path
        The folder ``cuda`` as it was then.
    root : Path, optional
        Where records lie, if not in ``results``.

    Returns
    -------
    dict of Path to dict of str to int
        The files written, and of each variant the number of its rows that are of code and a launch
        that the catalogue still has. The others stay as they are.

    Raises
    ------
    ValueError
        If no GPU has a record of the rule, or the candidates named, launched as they are today, are
        not those that its record has the fingerprint of; nothing is written then.
    """
    kernel = find(stem)
    files = sorted((root or RESULTS).glob(f"*/{stem}.json"))
    if not files:
        raise ValueError(f"no GPU has a record of {stem}")
    made = []
    for file in files:
        record = store.read(file)
        if not isinstance(record, KernelRecord):
            raise ValueError(f"{file} is no record of a version")
        made.append(structs.replace(record, variants={
            name: _identified(kernel, name, stored, candidates.get(name, ()), before)
            for name, stored in record.variants.items()}))
    return {
        store.write(record, root): {
            name: sum(row.chosen is not None for row in stored.bench)
            for name, stored in record.variants.items()
        } for record in made
    }


def _identified(
    kernel: Kernel, name: str, stored: Variant, candidates: Sequence[str], before: Path
) -> Variant:
    """A variant with the fingerprints of the candidates that its rows are of."""
    variant = kernel.variant(name)
    then = [kernel.variant(candidate) for candidate in candidates]
    if launched.launch_hash_of(variant, *then) != stored.launch:
        raise ValueError(f"{kernel.stem}/{name} was not recorded with these candidates, launched "
                         "as they are today")
    return structs.replace(
        stored, bench=[_of_candidate(kernel, row, then, before) for row in stored.bench])


def _of_candidate(
    kernel: Kernel, row: Row, candidates: Sequence[KernelVariant], before: Path
) -> Row:
    """A row with the fingerprint of its candidate, if that is one, and its code as it was."""
    found = {launched.candidate_hash(kernel, one) for one in candidates
             if row.instantiation in map(kernel.expression, forms(one))
             and _same(kernel, one, before)}
    return structs.replace(row, chosen=found.pop()) if len(found) == 1 else row


def _same(kernel: Kernel, variant: KernelVariant, before: Path) -> bool:
    """Whether the source of a variant, and of what packs its rows, is that of then."""
    parts = [one for one in (variant, variant.packing) if one]
    return all(
        fingerprint(before / kernel.file(one).relative_to(CUDA), kernel.expression(one))
        == fingerprint(kernel.file(one), kernel.expression(one)) for one in parts)
