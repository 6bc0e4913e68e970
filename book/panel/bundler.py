"""Compile what a chapter's page carries: it stays behind when the rest goes to the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lib.dispatch.fit import forms
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Kernel, Variant
from lib.panel import render, tasks
from lib.panel.bundle import HERE, Bundle, Instance, Mistake
from lib.paths import ROOT
from lib.ptx.core.parser import parse
from lib.ptx.mutants import mutants

MAX_VARIANTS = 4  # a click loads all of them
MAX_MISTAKES = 6
# Here the lanes of a warp run together, so that nobody sees that they don't wait for each other.
_UNSEEN = ("bar.warp",)
# What a mistake may be about, so that a chapter's are of several kinds.
_SUBJECT = re.compile(r"[a-z]+(?:\.(?:sync|async|proxy|mbarrier|bulk))*")


def offered(kernel: Kernel) -> list[Variant]:
    """The variants that a page offers.

    The first of those that the chapter shows, its exhibits, and what its tasks name.
    """
    shown: dict[str, Variant] = {}
    for variant in kernel.variants:
        shown.setdefault(kernel.expression(variant), variant)
    chosen = [*list(shown.values())[:MAX_VARIANTS], *kernel.exhibits]
    asked = (kernel.variant(name) for name in tasks.named(kernel.stem))
    return list({variant.name: variant for variant in (*chosen, *asked)}.values())


def bundle(kernel: Kernel) -> Bundle:
    """Compile a chapter's bundle.

    Of the first variant there is every form, so that it takes every shape; of the others there is
    the one that is named.
    """
    variants = offered(kernel)
    first = variants[0]
    chosen = [*forms(first), *([first.packing] if first.packing else []), *variants[1:]]
    instances = {}
    for variant in chosen:
        expression = kernel.expression(variant)
        if expression in instances:
            continue
        compiled = compile_kernel(kernel, variant, kernel.oldest(variants[0]))
        text = _portable(compiled.ptx)
        mistakes = []
        if variant in variants:
            mistakes = list(_mistakes(text, compiled.name))
        instances[expression] = Instance(
            compiled.name, compiled.arch, text, compiled.merge, mistakes)
    return Bundle(kernel.stem, [v.name for v in variants], instances)


def _portable(ptx: str) -> str:
    """PTX whose files are named from the repository's folder, or as the toolkit's."""
    def name(match: re.Match[str]) -> str:
        path = Path(match[2])
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
            return f'{match[1]}"{HERE}{path.relative_to(ROOT).as_posix()}"'
        return f'{match[1]}"toolkit/{path.name}"'

    return re.sub(r'^(\s*\.file\s+\d+\s+)"([^"]+)"', name, ptx, flags=re.M)


def _mistakes(text: str, entry: str) -> Iterator[Mistake]:
    """Some seeded mistakes, of as many kinds as there are: see `lib.ptx.mutants`, and indices."""
    before = text.split("\n")
    # The kernel's own line, where a header's function does it.
    own = {one.line: render.own_line(one) for one in parse(text).entries[entry].instructions}
    by_kind: dict[str, list[Mistake]] = {}
    for mutant in mutants(text, entry):
        if mutant.opcode.startswith(_UNSEEN):
            continue
        after = mutant.text.split("\n")
        lines = {n: new for n, (old, new) in enumerate(zip(before, after, strict=True), 1)
                 if old != new}
        where, source = _place(own.get(mutant.line) or mutant.cuda)
        # Registers are numbered anew in each variant, and a page has each text once.
        said = f"{mutant.statement} became {mutant.change}" if mutant.change else (
            f"{mutant.opcode} was left out")
        kind = _SUBJECT.match(mutant.opcode)
        by_kind.setdefault(kind[0] if kind else "", []).append(
            Mistake(said, lines, where, source))
    by_kind["index"] = list(_indices(before, entry, own))
    by_kind["phase"] = list(_phases(before, entry, own))
    rounds = max(map(len, by_kind.values()), default=0)
    in_turn = [found[i] for i in range(rounds) for found in by_kind.values() if i < len(found)]
    yield from in_turn[:MAX_MISTAKES]


def _place(cuda: tuple[str, int] | None) -> tuple[str, str]:
    """A CUDA line's place and its text; both empty where it isn't known."""
    if cuda is None:
        return "", ""
    file = Path(cuda[0].replace(HERE, f"{ROOT}/"))
    text = file.read_text(encoding="utf-8").split("\n")[cuda[1] - 1] if file.is_file() else ""
    return f"{file.name}:{cuda[1]}", text.strip()


def _indices(
    lines: list[str], entry: str, own: Mapping[int, tuple[str, int] | None]
) -> Iterator[Mistake]:
    """An access to shared memory, one element off."""
    access = re.compile(
        r"^(\s*(?:ld|st)\.shared\.(?:v[24]\.)?[a-z](\d+)\s.*\[%\w+)(?:\+(-?\d+))?(\].*)$")
    for number, line in _inside(lines, entry):
        if found := access.match(line):
            # A vector stays on a multiple of its size.
            wide = int(found[2]) // 8 * (4 if ".v4" in line else 2 if ".v2" in line else 1)
            off = int(found[3] or 0) + wide
            changed = f"{found[1]}+{off}{found[4]}"
            yield Mistake("the access to shared memory is one element off: "
                          f"{' '.join(changed.split())}", {number: changed},
                          *_place(own.get(number)))
            return


def _phases(
    lines: list[str], entry: str, own: Mapping[int, tuple[str, int] | None]
) -> Iterator[Mistake]:
    """A wait for the other phase of an mbarrier."""
    wait = re.compile(r"^(.*mbarrier\.try_wait\S*parity\S*\s+[^,]+,\s*\[[^\]]+\],\s*)(%\w+)(.*)$")
    for number, line in _inside(lines, entry):
        if found := wait.match(line):
            changed = (f"{{ .reg .b32 %other; xor.b32 %other, {found[2]}, 1; "
                       f"{found[1].strip()} %other{found[3]} }}")
            yield Mistake("the wait asks for the wrong phase of its mbarrier",
                          {number: changed}, *_place(own.get(number)))
            return


def _inside(lines: list[str], entry: str) -> Iterator[tuple[int, str]]:
    """The lines of an entry, counted from 1."""
    start = next(n for n, line in enumerate(lines) if ".entry" in line and entry in line)
    for number, line in enumerate(lines[start:], start + 1):
        yield number, line
        if line.startswith("}"):
            return
