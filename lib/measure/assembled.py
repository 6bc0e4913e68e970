"""A record from what a pass has measured of it, unit by unit."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.measure.plan import BENCH, Unit
from lib.records import store as records
from lib.records.journal import Journal


def assembled(
    head: Mapping[str, Any], made: Iterable[tuple[Unit, Mapping[str, Any]]],
    chunks: Mapping[str, Any], old: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Put a record together.

    Parameters
    ----------
    head : mapping
        What every record begins with.
    made : iterable of (Unit, mapping)
        The units of this record that are measured, in any order.
    chunks : mapping
        All chunks of the pass. Those that a row is of are kept.
    old : mapping, optional
        The record whose variants stay, unless they were measured again.
    """
    found = dict(copy.deepcopy(dict(head)))
    variants: dict[str, Any] = {}
    for unit, part in made:
        part = copy.deepcopy(dict(part))
        measured = part.pop("variants", None)
        found |= part
        for name, one in (measured or {}).items():
            _add(variants.setdefault(name, _empty(unit)), one)
    if not variants:
        return found
    shapes = {shape: place for place, shape in enumerate(_order(variants))}
    for one in variants.values():
        for code in (one, *one.get("ptx", {}).values()):
            code["bench"].sort(key=lambda row: shapes[records.shape_of(row)])
    kept = {**(old["variants"] if old else {}), **variants}
    known = CATALOGUE.get(head["kernel"])
    names = [v.name for v in known.measured] if known else list(kept)
    found["variants"] = {name: kept[name] for name in names if name in kept}
    every = {**(old["chunks"] if old else {}), **chunks}
    used = {row["chunk"] for one in found["variants"].values()
            for code in (one, *one.get("ptx", {}).values()) for row in code["bench"]}
    found["chunks"] = {name: every[name] for name in every if name in used}
    return found


def rows_of(stem: str, journal: Journal) -> dict[str, list[dict[str, Any]]]:
    """The rows that a pass has so far of a record, by variant."""
    found: dict[str, list[dict[str, Any]]] = {}
    for made in journal.made(f"{BENCH} {stem} "):
        for name, one in made.get("variants", {}).items():
            found.setdefault(name, []).extend(one["bench"])
    return found


def _empty(unit: Unit) -> dict[str, Any]:
    return {"bench": [], "counters": []}


def _add(into: dict[str, Any], one: Mapping[str, Any]) -> None:
    """Add what one unit measured of a variant."""
    for key, value in one.items():
        if key in ("bench", "counters"):
            into[key] = into[key] + value
        elif key == "ptx":
            for arch, code in value.items():
                _add(into.setdefault("ptx", {}).setdefault(arch, {"bench": [], "counters": []}),
                     code)
        else:
            into[key] = value


def _order(variants: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Shapes as records list them: cubes by size, then the others as they were measured."""
    seen = dict.fromkeys(
        records.shape_of(row) for one in variants.values()
        for code in (one, *one.get("ptx", {}).values()) for row in code["bench"])
    cubes = sorted(shape for shape in seen if len(set(shape)) == 1 and shape[0] & shape[0] - 1 == 0)
    return [*cubes, *(shape for shape in seen if shape not in cubes)]
