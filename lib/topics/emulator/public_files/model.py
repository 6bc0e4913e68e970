"""Public .cu files that the emulator takes as they are: `set.toml` names them.

How they were drawn is said there. A file counts as taken if it compiles unchanged, with the folders
of ``-I`` that its repository's own build has, and each of its kernels is decoded.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lib import ptx
from lib.ptx.files import text_of
from lib.records.foreign import Compiled
from lib.topics.emulator.foreign import model as foreign

SET = Path(__file__).with_name("set.toml")
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


def compiled(one: File, folder: Path) -> Compiled:
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
