"""Public .cu files that the emulator takes as they are: `set.toml` names them.

How they were drawn is said there. A file counts as taken if it compiles unchanged, with the folders
of ``-I`` that its repository's own build has, and each of its kernels is decoded.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lib import ptx
from lib.ptx.files import text_of
from lib.records import foreign as records
from lib.records.foreign import ENDED, Compiled, Measured
from lib.show import foreign
from lib.show.display import note, table

SET = Path(__file__).with_name("public") / "files.toml"
ARCH = "sm_80"


@dataclass(frozen=True)
class File:
    """A file of somebody else's.

    Attributes
    ----------
    repository, revision, file : str
        Where it is, on GitHub.
    kernels : tuple of str
        Templates with arguments, so that they are compiled at all.
    include : tuple of str
        Folders of the repository that its build gives as ``-I``.
    held_out : bool
        Whether it is of the ten that nothing was to be mended for.
    broken : str
        What is wrong in the file itself at that revision, if something is.
    """

    repository: str
    revision: str
    file: str
    kernels: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    held_out: bool = False
    broken: str = ""

    @property
    def key(self) -> str:
        """What its result is recorded under."""
        return f"{self.repository}:{self.file}"


@lru_cache
def files(path: Path = SET) -> tuple[File, ...]:
    """The files of the set."""
    found = []
    for one in tomllib.loads(text_of(path))["file"]:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in one.items()
        }
        found.append(File(**given))
    return tuple(found)


def compile_file(one: File, folder: Path) -> Compiled:
    """Compile a file of a clone as it is, and decode its kernels.

    Raises
    ------
    ValueError
        As `foreign.clone_of` does.
    """
    from cupy.cuda.compiler import CompileException

    from lib.compiler.raw_module import RawModule  # loads CuPy

    clone = foreign.clone_of(one, folder)
    try:
        module = RawModule(path=clone / one.file, arch=ARCH, name_expressions=one.kernels,
                           options=[f"-I{clone / place}" for place in one.include])
        names = module.kernels()
        for name in names:
            module.get_function(name)
    except (CompileException, ptx.Error) as error:
        lines = [line for line in str(error).splitlines() if "error:" in line] or [str(error)]
        return Compiled(kernels=0, said=lines[0].replace(f"{clone}/", ""))
    return Compiled(kernels=len(names), said="")


def outcome(result: Compiled) -> str:
    """A result in a few words."""
    if result.said:
        return f"refused: {result.said}"
    return f"{result.kernels} kernel{'s' * (result.kernels != 1)}"


LONGEST = 60  # name that stands in a table with its template's arguments


def found() -> None:
    """Display which kernels of others' were run, and the defects that were verified in them."""
    record = foreign.recorded()
    by_repository: dict[str, list[foreign.Foreign]] = {}
    for one in foreign.kernels():
        if one.key in record:
            by_repository.setdefault(one.repository, []).append(one)
    rows = []
    for repository, run in by_repository.items():
        results = [record[one.key] for one in run]
        checked = [result.right for result in results if result.right is not None]
        tried = sum(result.mutants.tried for result in results)
        unseen = sum(len(result.mutants.unseen) for result in results)
        unexplained = sum(len(one.unexplained(record[one.key].mutants.unseen)) for one in run)
        alike = unseen - unexplained
        same = f", {alike} change{'s' * (alike == 1)} nothing" if alike else ""
        revision = run[0].revision
        rows.append((
            f"[{repository}](https://github.com/{repository}/tree/{revision})", revision[:10],
            len(run), f"{sum(checked)} of {len(checked)}" if checked else "no oracle",
            f"{tried - unseen} of {tried}{same}" if tried else "none tried",
        ))
    table(("repository", "revision", "kernels run", "right", "mutants found"), rows,
          "emulated: `python -m lib foreign` on clones; which launches, says "
          "`lib/show/public/foreign.toml`")


def compiled() -> None:
    """Display how many public files are taken as they are, and what becomes of the others."""
    record = records.read()
    known = record.files if record else {}
    rows, notes = [], []
    groups = ((False, "drawn first, then mended for"), (True, "held out"))
    for held_out, name in groups:
        group = [one for one in files() if one.held_out == held_out and one.key in known]
        if group:
            taken = sum(not known[one.key].said for one in group)
            rows.append((name, len(group), f"{taken} of {len(group)}"))
        notes += [f"- [{one.file}](https://github.com/{one.repository}/blob/{one.revision}/"
                 f"{one.file}) of {one.repository}: {one.broken or known[one.key].said}"
                 for one in group if known[one.key].said]
    table(("public files", "how many", "compiled as they are"), rows,
          "`python -m lib foreign --files --folder FOLDER` on clones; which they are and how they "
          "were drawn, says "
          "`lib/show/public/files.toml`")
    if notes:
        note("What is refused:\n\n" + "\n".join(notes))


def defects() -> None:
    """Display the defects that were verified in the source, each at its revision."""
    record = foreign.recorded()
    rows = []
    for one in foreign.kernels():
        if not one.defect or one.key not in record:
            continue
        result = record[one.key]
        ended = "nothing" if result.ended == ENDED else result.ended.partition(":")[0]
        said = ", ".join(sorted({hazard.partition(":")[0] for hazard in result.hazards})) or ended
        file = one.source or one.file
        address = f"https://github.com/{one.repository}/blob/{one.revision}/{file}"
        name, with_arguments, _ = one.name.partition("<")
        short = one.name if len(one.name) <= LONGEST else f"{name}{with_arguments and '<…>'}"
        rows.append((f"`{short}` in [{one.repository}]({address})",
                     one.defect[0].upper() + one.defect[1:], said))
    table(("kernel", "what the source has at that revision", "the emulator says"), rows,
          "emulated at the revision that the link names; later ones may have changed it")


def counted() -> None:
    """Display how the emulator's counters of these kernels compare to ncu's on a GPU."""
    record = foreign.recorded()
    kernels = [(one, found) for one in foreign.kernels()
               if (found := foreign.profiled(one, record))]
    rows: Counter[tuple[str, str]] = Counter()
    for one, found in kernels:
        alike = len(found.ncu) - len(foreign.counted_otherwise(found))
        rows[one.repository, f"{alike} of {len(found.ncu)}"] += 1
    lost = [one for one in foreign.kernels()
            if one.on_gpu and one.key in record and not foreign.profiled(one, record)]
    rows.update((one.repository, "not counted") for one in lost)
    machines = dict.fromkeys(
        f"{found.gpu}, CUDA {found.cuda}, driver {found.driver}, "
        f"ncu {found.ncu_release}, {found.date}" for _, found in kernels)
    table(("kernels of", "how many", "counters alike"),
          [(repository, count, alike) for (repository, alike), count in rows.items()],
          f"recorded: {'; '.join(machines)}; emulated: the same machine code")
    results: dict[tuple[str, str], list[foreign.Foreign]] = {}
    for one in (*(one for one, _ in kernels if one.on_gpu), *lost):
        results.setdefault((one.repository, one.on_gpu), []).append(one)
    notes = [*_otherwise(kernels),
            *(f"{_names(those)}: {why}" for (_, why), those in results.items())]
    if notes:
        note("What is otherwise on the GPU:\n\n" + "\n".join(f"- {line}" for line in notes))


def _otherwise(kernels: Sequence[tuple[foreign.Foreign, Measured]]) -> Iterator[str]:
    """What a GPU counts otherwise, a line for each reason: kernels, why, and the counters."""
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    by_key = {one.key: (one, found) for one, found in kernels}
    for key, (one, found) in by_key.items():
        for name in foreign.counted_otherwise(found):
            reason = one.repository, one.unlike.get(name, "no reason is known")
            reasons.setdefault(reason, {}).setdefault(key, []).append(name)
    for (_, why), counters in reasons.items():
        numbers: dict[str, None] = {}
        for key, names in counters.items():
            _, found = by_key[key]
            numbers |= dict.fromkeys(
                f"`{name}` {found.ncu[name]:,} in place of {found.emulated[name]:,}"
                for name in names)
        yield f"{_names(by_key[key][0] for key in counters)}: {why}. {', '.join(numbers)}."


def _names(kernels: Iterable[foreign.Foreign]) -> str:
    """Kernels without their template arguments, and whose they are."""
    kernels = list(kernels)
    names = ", ".join(f"`{one.name.partition('<')[0]}`" for one in kernels)
    return f"{names} of {kernels[0].repository}"
