"""The table of mutants and verdicts that tests fill in, check and write down."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from lib.ptx.core.errors import Error
from lib.ptx.core.hazards import Access, Hazard, Hazards
from lib.ptx.files import text_of
from lib.ptx.mutants import SETTINGS, Mutant, mutants, verdict

BUILD = Path(__file__).resolve().parent.parent / "_build"


class FirstHazard(Error):
    """What ends a launch `until_a_hazard`."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(str(hazard))
        self.hazard = hazard


@contextmanager
def until_a_hazard() -> Iterator[None]:
    """End launches at their first hazard: that is enough to find a mistake out.

    Raises
    ------
    FirstHazard
        From within, where there is one.
    """
    def add(
        self: Hazards, kind: str, message: str, first: Access, second: Access | None = None
    ) -> None:
        raise FirstHazard(Hazard(kind, message, first, second))

    with mock.patch.object(Hazards, "add", add):
        yield


def _first_found(run: Callable[..., tuple], settings: Any) -> str:
    """The `verdict` on a run that ends at its first hazard."""
    def until(**options: Any) -> tuple:
        try:
            with until_a_hazard():
                return run(**options)
        except FirstHazard as found:
            return SimpleNamespace(hazards=[found.hazard]), True

    return verdict(until, settings)


@dataclass(frozen=True)
class Equivalent:
    """Mutants that cannot misbehave, and why.

    Attributes
    ----------
    kernels : str
        Regular expression for the whole name of a kernel (and of its variant).
    mutant : str
        Regular expression that the changed statement begins with.
    source : str
        What stands in the statement's CUDA line, of any of them if empty.
    reason : str
        Why nothing can go wrong.
    """

    kernels: str
    mutant: str
    source: str
    reason: str

    def fits(self, kernel: str, mutant: Mutant) -> bool:
        """Tell whether a mutant of a kernel is meant."""
        return (
            re.fullmatch(self.kernels, kernel) is not None
            and re.match(self.mutant, str(mutant)) is not None
            and self.source in cuda_line(mutant)
        )


@dataclass
class Table:
    """Kernels, their mutants, what was found, and what is listed as equivalent."""

    title: str
    equivalents: tuple[Equivalent, ...]
    rows: list[tuple[str, Mutant, str, Equivalent | None]] = field(default_factory=list)
    _kinds: dict[tuple, tuple] = field(default_factory=dict)  # the mutant that stands for a kind

    def check(
        self, kernel: str, variants: Iterable[tuple[str, str, Callable]], settings=SETTINGS,
        larger: Iterable[tuple[str, str, Callable]] = (), one_of_a_kind: bool = False,
    ):
        """Run the mutants of a kernel; nothing may survive that is not listed.

        Parameters
        ----------
        kernel : str
            What the table calls it.
        variants : iterable of (str, str, callable)
            Of each instantiation the PTX, the entry in it, and what takes PTX and returns a
            function of launch options that runs it: see `verdict`. A statement of the source is
            tried in one after another until a mutant of it is found out, under the first of the
            settings in all of them, then under the others.
        settings : sequence of dict
            Under which options.
        larger : iterable of (str, str, callable)
            More of the same statements, which are tried only where a mutant has survived.
        one_of_a_kind : bool
            Run only the first mutant of each kind that isn't listed, a kind being a change of one
            sort of statement in one template; otherwise every mutant.
        """
        mine: dict[tuple, tuple[str, Mutant, str]] = {}

        def survives(mutant: Mutant, found: str) -> bool:
            return not found and not self._listed(kernel, mutant)

        def all_of_them() -> Iterator[tuple[tuple[str, str, Callable], Any]]:
            """The instantiations, and under which settings: the first finds out most mutants, of
            what is left most in another instantiation."""
            seen = []
            for one in variants:
                seen.append(one)
                yield one, settings[:1]
            for one, some in chain(((one, settings[1:]) for one in seen),
                                   ((one, settings) for one in larger)):
                if not any(survives(mutant, found) for _, mutant, found in mine.values()):
                    return
                yield one, some

        unharmed = set()
        for (text, name, runs), some in all_of_them():
            rest = [
                m for m in mutants(text, name)
                if m.key not in mine or survives(m, mine[m.key][2])
            ]
            if one_of_a_kind:
                rest = self._first_of_each(kernel, name, rest, mine)
            if not rest:
                continue
            if text not in unharmed:
                # With copies that land late; other tests run the kernel as it is in every order.
                found = _first_found(runs(text), settings[1:2])
                assert not found, f"{kernel} itself, before anything is changed: {found}"
                unharmed.add(text)
            for mutant in rest:
                under = settings if self._listed(kernel, mutant) else some
                mine[mutant.key] = kernel, mutant, _first_found(runs(mutant.text), under)
        survivors = []
        for _, mutant, found in mine.values():
            listed = None if found else self._listed(kernel, mutant)
            self.rows.append((kernel, mutant, found, listed))
            if not found and not listed:
                survivors.append(f"{mutant} (PTX line {mutant.line}, CUDA: {cuda_line(mutant)})")
        assert not survivors, f"{kernel}: nobody finds out " + "; ".join(survivors)

    def _first_of_each(
        self, kernel: str, name: str, rest: list[Mutant], tried: Collection[tuple]
    ) -> list[Mutant]:
        """Of the mutants of an instantiation one a kind: those tried before, or the first."""
        chosen: dict[tuple, Mutant] = {}
        for mutant in rest:
            # Which change of which sort of statement it is, wherever the statement stands.
            kind = template(name), *mutant.key[2:]
            if mutant.key in tried:  # it has survived the smaller ones
                chosen[kind] = mutant
            elif not self._listed(kernel, mutant):
                self._kinds.setdefault((kernel, *kind), mutant.key)
                if self._kinds[kernel, *kind] == mutant.key:
                    chosen.setdefault(kind, mutant)
        return list(chosen.values())

    def _listed(self, kernel: str, mutant: Mutant) -> Equivalent | None:
        return next((e for e in self.equivalents if e.fits(kernel, mutant)), None)

    def stale(self) -> list[Equivalent]:
        """List the equivalents of kernels in the table that no mutant is any more."""
        used = {id(listed) for *_, listed in self.rows if listed}
        kernels = {kernel for kernel, *_ in self.rows}
        return [
            entry for entry in self.equivalents
            if id(entry) not in used and any(re.fullmatch(entry.kernels, k) for k in kernels)
        ]

    def write(self, path: Path):
        """Write the table as Markdown."""
        lines = [f"# {self.title}", ""]
        kernels = dict.fromkeys(kernel for kernel, *_ in self.rows)
        found = sum(bool(said) for _, _, said, _ in self.rows)
        lines += [
            f"{len(self.rows)} mutants of {len(kernels)} kernels; {found} are found out, "
            f"{len(self.rows) - found} are equivalent.", "",
            "| kernel | PTX line | copies | CUDA line | what is changed | verdict |",
            "|---|---|---|---|---|---|",
        ]
        for kernel, mutant, said, listed in self.rows:
            where = f"{Path(mutant.cuda[0]).name}:{mutant.cuda[1]}" if mutant.cuda else ""
            if not said:
                said = f"equivalent: {listed.reason}" if listed else "**nothing**"
            change = str(mutant).replace("|", "\\|")
            cells = kernel, mutant.line, mutant.copies, where, f"`{change}`", said
            lines.append(f"| {' | '.join(map(str, cells))} |")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


def template(name: str) -> str:
    """Return the template that an entry instantiates, from its mangled name."""
    mangled = re.match(r"_Z(\d+)", name)
    return name[mangled.end():][: int(mangled[1])] if mangled else name


def cuda_line(mutant: Mutant) -> str:
    """Return the text of a mutant's CUDA line, empty if it is not known."""
    if mutant.cuda is None or not Path(mutant.cuda[0]).exists():
        return ""
    return text_of(Path(mutant.cuda[0])).splitlines()[mutant.cuda[1] - 1].strip()
