"""compute-sanitizer's recorded verdicts on the kernels of the zoo: ``results/sanitizer.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lib.paths import RESULTS

FILE = RESULTS / "sanitizer.json"
TOOLS = ("memcheck", "racecheck", "synccheck")


def read(path: Path = FILE) -> dict[str, Any]:
    """Return the record; an empty one if nothing is recorded.

    Returns
    -------
    dict
        gpu, driver, sanitizer (its release), date; kernels: by name {hash, mistake, cured}, both by
        tool {said ("errors", "clean", "hangs" or "failed"), errors, warnings, first: the first line
        of a report}.
    """
    if not path.exists():
        return {"kernels": {}}
    return json.loads(path.read_text())


def write(record: dict[str, Any], path: Path = FILE) -> None:
    """Write the record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def current(record: dict[str, Any], name: str, digest: str) -> dict[str, Any] | None:
    """The verdicts on a kernel, if they are of its present source."""
    found = record["kernels"].get(name)
    return found if found and found["hash"] == digest else None


def summary(verdicts: dict[str, Any]) -> str:
    """What the tools say of one variant, in a few words: ``"racecheck"``, ``"nothing"``."""
    told = []
    for tool in TOOLS:
        verdict = verdicts.get(tool)
        if verdict is None:
            continue
        if verdict["said"] == "errors":
            told.append(tool if verdict["errors"] else f"{tool} (warning)")
        elif verdict["said"] != "clean":
            told.append(f"{tool} {verdict['said']}")
    return ", ".join(told) or "nothing"
