"""Seed mistakes in a kernel: each at a line of its CUDA source, with a short name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from lib.panel import render
from lib.panel.bundle import HERE, Mistake
from lib.paths import ROOT
from lib.ptx.core.parser import parse
from lib.ptx.files import text_of
from lib.ptx.mutants import Mutant, mutants

MAX_MISTAKES = 8
COLUMNS = 16  # of a fragment of wmma
# Here the lanes of a warp run together, so that nobody sees that they don't wait for each other.
_UNSEEN = ("bar.warp",)
# What a mistake may be about, so that a chapter's are of several kinds.
_SUBJECT = re.compile(r"[a-z]+(?:\.(?:sync|async|proxy|mbarrier|bulk))*")
# What an opcode does, as a mistake's name says it: the first that it begins with.
_NAMES = (
    (r"bar(?:rier)?(?:\.cta)?\.sync", "barrier"),
    (r"bar(?:rier)?(?:\.cta)?\.arrive", "arrival at the barrier"),
    (r"barrier\.cluster\.arrive", "arrival at the cluster's barrier"),
    (r"barrier\.cluster\.wait", "wait at the cluster's barrier"),
    (r"cp\.async\.mbarrier", "arrival of the copies"),
    (r"cp\.async\.bulk\.commit", "commit of TMA's stores"),
    (r"cp\.async\.bulk\.wait\S*read", "wait until TMA has read"),
    (r"cp\.async\.bulk\.wait", "wait for TMA's stores"),
    (r"cp\.async\.commit", "commit of the copies"),
    (r"cp\.async\.wait", "wait for the copies"),
    (r"fence\.proxy", "proxy fence"),
    (r"fence\.mbarrier_init", "fence behind the mbarriers' init"),
    (r"membar|fence", "memory fence"),
    (r"mbarrier\.init", "init of the mbarrier"),
    (r"mbarrier\.(?:arrive\.)?expect_tx", "count of expected bytes"),
    (r"mbarrier\.arrive", "arrival at the mbarrier"),
    (r"mbarrier\.\w+_wait", "wait for the mbarrier"),
    (r"wgmma\.fence", "wgmma.fence"),
    (r"wgmma\.commit", "commit of the wgmma"),
    (r"wgmma\.wait", "wait for the wgmma"),
    (r"tcgen05\.fence", "tcgen05.fence"),
    (r"tcgen05\.wait", "wait for tensor memory"),
    (r"tcgen05\.commit", "commit of the tcgen05.mma"),
    (r"tcgen05\.dealloc", "release of tensor memory"),
)
# Where a line of PTX is in the source: file and line.
Own = Mapping[int, tuple[str, int] | None]


def mistakes(text: str, entry: str, executed: Collection[int]) -> list[Mistake]:
    """Seed some mistakes, of as many kinds as there are (`lib.ptx.mutants`, and indices).

    Parameters
    ----------
    text : str
        PTX with line information.
    entry : str
        Name of the kernel.
    executed : collection of int
        The lines of PTX that the run which a page shows first executes: elsewhere a mistake would
        change nothing.

    Returns
    -------
    list of Mistake
        At most `MAX_MISTAKES`.
    """
    before = text.split("\n")
    # The kernel's own line, where a header's function does it.
    own = {one.line: render.own_line(one) for one in parse(text).entries[entry].instructions
           if one.line in executed}
    by_kind: dict[str, list[Mistake]] = {}
    for mutant in mutants(text, entry):
        if mutant.opcode.startswith(_UNSEEN):
            continue
        after = mutant.text.split("\n")
        lines = {n: new for n, (old, new) in enumerate(zip(before, after, strict=True), 1)
                 if old != new}
        if not lines.keys() & own.keys():
            continue
        place = own[min(lines.keys() & own.keys())] or mutant.cuda
        change = f"{mutant.statement} became {mutant.change}" if mutant.change else (
            f"{mutant.opcode} was left out")
        kind = _SUBJECT.match(mutant.opcode)
        by_kind.setdefault(kind[0] if kind else "", []).append(
            Mistake(_name(mutant), change, lines, *_place(place)))
    for kind, found in (
            ("index", _indices), ("fragment", _fragments), ("phase", _phases)):
        by_kind[kind] = list(found(before, entry, own))
    rounds = max(map(len, by_kind.values()), default=0)
    in_turn = [found[i] for i in range(rounds) for found in by_kind.values() if i < len(found)]
    return [mistake for mistake in in_turn if mistake.file][:MAX_MISTAKES]


def _name(mutant: Mutant) -> str:
    """What was done, in a few words."""
    subject = next((name for opcode, name in _NAMES if re.match(opcode, mutant.opcode)),
                   mutant.opcode)
    if not mutant.change:
        return f"{subject} left out"
    if "relaxed" in mutant.change and "relaxed" not in mutant.statement:
        return f"{subject} relaxed"
    if ".cta" in mutant.change and ".cta" not in mutant.statement:
        return f"{subject} of the block's scope only"
    if mutant.change.startswith("setp"):
        return f"{subject} over at once"
    if "wait_group" in mutant.change:
        return f"{subject} is over too early"
    return f"{subject} changed"


def _place(cuda: tuple[str, int] | None) -> tuple[str, int, str]:
    """A CUDA line's file, number and text; nothing where it isn't known."""
    if cuda is None:
        return "", 0, ""
    file = Path(cuda[0].replace(HERE, f"{ROOT}/"))
    text = text_of(file).split("\n")[cuda[1] - 1] if file.is_file() else ""
    return str(file), cuda[1], text.strip()


def _first(
    lines: list[str], entry: str, own: Own, pattern: str,
    changed: Callable[[re.Match[str]], tuple[str, str]],
) -> Iterator[Mistake]:
    """A mistake at the first statement of a kind that a line of the kernel's is known of.

    Parameters
    ----------
    pattern : str
        The statement.
    changed : callable
        What stands in its place, and the mistake's name.
    """
    statement = re.compile(pattern)
    for number, line in _inside(lines, entry):
        found = statement.match(line)
        if found and own.get(number):
            instead, name = changed(found)
            change = f"{' '.join(line.split())} became {' '.join(instead.split())}"
            yield Mistake(name, change, {number: instead}, *_place(own[number]))
            return


def _indices(lines: list[str], entry: str, own: Own) -> Iterator[Mistake]:
    """An access of each kind, one element off."""
    def shifted(match: re.Match[str]) -> tuple[str, str]:
        begin, kind, space, vector, bits, offset, end = match.groups()
        # A vector stays on a multiple of its size.
        wide = int(bits) // 8 * int(vector or 1)
        name = f"{'store to' if kind == 'st' else 'load from'} {space} memory off by one"
        return f"{begin}+{int(offset or 0) + wide}{end}", f"{name}{' vector' if vector else ''}"

    for kind, space in (("st", "shared"), ("st", "global"), ("ld", "shared"), ("ld", "global")):
        yield from _first(
            lines, entry, own,
            rf"^(\s*({kind})\.({space})(?:\.nc)?\.(?:v([24])\.)?[a-z](\d+)\s.*\[%\w+)(?:\+(-?\d+))?"
            r"(\].*)$", shifted)


def _fragments(lines: list[str], entry: str, own: Own) -> Iterator[Mistake]:
    """A fragment of `COLUMNS` columns loaded or stored so many columns off."""
    def shifted(match: re.Match[str]) -> tuple[str, str]:
        begin, kind, bits, offset, end = match.groups()
        off = int(offset or 0) + COLUMNS * int(bits) // 8
        return (f"{begin}+{off}{end}",
                f"{kind} of a fragment {COLUMNS} columns off")

    for kind in ("load", "store"):
        yield from _first(
            lines, entry, own,
            rf"^(\s*wmma\.({kind})\.\w\.\S*\.f(\d+)\s.*\[%\w+)(?:\+(-?\d+))?(\].*)$", shifted)


def _phases(lines: list[str], entry: str, own: Own) -> Iterator[Mistake]:
    """A wait for the other phase of an mbarrier."""
    def other(match: re.Match[str]) -> tuple[str, str]:
        begin, phase, end = match.groups()
        return (f"{{ .reg .b32 %other; xor.b32 %other, {phase}, 1; {begin.strip()} %other{end} }}",
                "wait for the wrong phase of the mbarrier")

    yield from _first(
        lines, entry, own,
        r"^(.*mbarrier\.try_wait\S*parity\S*\s+[^,]+,\s*\[[^\]]+\],\s*)(%\w+)(.*)$", other)


def _inside(lines: list[str], entry: str) -> Iterator[tuple[int, str]]:
    """The lines of an entry, counted from 1."""
    start = next(n for n, line in enumerate(lines) if ".entry" in line and entry in line)
    for number, line in enumerate(lines[start:], start + 1):
        yield number, line
        if line.startswith("}"):
            return
