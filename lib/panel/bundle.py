"""A chapter's kernels as a page carries them: PTX, how ptxas merged its accesses, mistakes to find.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, TypeVar

from lib.paths import ROOT

# What ptxas made of the accesses at lines of PTX (see `lib.ptx.Function`).
Merge = dict[int, tuple[int, int] | None]
Known = TypeVar("Known")
# Stands in a bundle for the folder of the repository, wherever that lies.
HERE = "@/"
_ROOT = json.dumps(f"{ROOT}/")[1:-1]  # as JSON writes the folder


@dataclass(frozen=True)
class Mistake:
    """A change of the PTX that makes the kernel wrong.

    Attributes
    ----------
    name : str
        What was done, in a few words: "barrier left out".
    change : str
        What of the PTX is another, such as ``bar.sync was left out``.
    lines : dict of int to str
        What stands in place of these lines, counted from 1; there are as many lines as before.
    file : str
        The CUDA file; empty where none is known.
    line : int
        The line in it that the mistake belongs to, counted from 1.
    source : str
        That line.
    """

    name: str
    change: str
    lines: dict[int, str]
    file: str = ""
    line: int = 0
    source: str = ""

    @property
    def said(self) -> str:
        """It in a line: what was done, and where."""
        return f"{self.name}, {PurePath(self.file).name}:{self.line}" if self.file else self.name


@dataclass(frozen=True)
class Instance:
    """One instantiation, compiled.

    Attributes
    ----------
    entry : str
        Name of the PTX entry.
    arch : str
        Whose machine code is counted.
    ptx : str
    merge : dict of int to ((int, int) or None)
    mistakes : list of Mistake
    """

    entry: str
    arch: str
    ptx: str
    merge: Merge = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)


@dataclass(frozen=True)
class Bundle:
    """The instantiations of a chapter by their C++ name, and the variants that a reader may choose.
    """

    stem: str
    variants: list[str]
    instances: dict[str, Instance]

    def dumps(self) -> str:
        """Write it as JSON that says nothing of this machine's folders."""
        return json.dumps(asdict(self), separators=(",", ":")).replace(_ROOT, HERE)


def loads(text: str) -> Bundle:
    """Read what `Bundle.dumps` wrote, with the folders of this machine."""
    found = json.loads(text.replace(HERE, _ROOT))

    def instance(one: dict[str, Any]) -> Instance:
        merge = {int(line): wide and tuple(wide) for line, wide in one["merge"].items()}
        mistakes = [
            Mistake(**{**m, "lines": {int(n): text for n, text in m["lines"].items()}})
            for m in one["mistakes"]
        ]
        return Instance(one["entry"], one["arch"], one["ptx"], merge, mistakes)

    instances = {name: instance(one) for name, one in found["instances"].items()}
    return Bundle(found["stem"], found["variants"], instances)


def carried_over(known: dict[int, Known], before: str, after: str) -> dict[int, Known]:
    """Find the lines of PTX that something is known of in an edited text.

    Parameters
    ----------
    known : dict of int to object
        By line of `before`, counted from 1.
    before, after : str

    Returns
    -------
    dict of int to object
        The same by line of `after`; lines that changed are left out.
    """
    old, new = before.split("\n"), after.split("\n")
    shorter = min(len(old), len(new))
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), shorter)
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    # Only what lies between the first and the last edit is compared: a text has 10,000 lines.
    matcher = difflib.SequenceMatcher(
        None, old[start:len(old) - end], new[start:len(new) - end], autojunk=False)
    places = {i: i for i in range(start)}
    places |= {len(old) - 1 - i: len(new) - 1 - i for i in range(end)}
    for a, b, many in matcher.get_matching_blocks():
        places |= {start + a + i: start + b + i for i in range(many)}
    return {places[line - 1] + 1: what for line, what in known.items() if line - 1 in places}
