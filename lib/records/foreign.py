"""What came of kernels that nobody here wrote: ``results/foreign.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lib.kernels.frozen import EMPTY
from lib.paths import RESULTS
from lib.ptx.files import write_whole
from lib.records import seal
from lib.records.schema import Arch, Count, Date, Hash, Name, Part

FILE = RESULTS / "foreign.json"
AGAIN = "git checkout it, or record again: python -m lib foreign --folder FOLDER --write"


ENDED = "ran to its end"


class Mutants(Part, kw_only=True, frozen=True):
    """How many of a kernel's mutants were tried, and those that passed unseen."""

    tried: Count
    unseen: tuple[str, ...]


class Measured(Part, kw_only=True, frozen=True):
    """What ncu counts of a kernel on a GPU, and the emulator of the same machine code.

    `launch` is the digest of what was launched; `right` and `emulated_right`, whether the oracle
    agrees with the GPU's result and with the emulator's, None without an oracle.
    """

    gpu: Name
    arch: Arch
    driver: Name
    cuda: Name
    nvrtc: Name
    ncu_release: Name
    date: Date
    launch: Hash
    right: bool | None
    emulated_right: bool | None
    ncu: Mapping[Name, Count]
    emulated: Mapping[Name, Count]


class Result(Part, kw_only=True, frozen=True):
    """What came of a kernel: in the emulator, and on a GPU if it was launched on one.

    `ended` is `ENDED`, or the error and its message; `right`, whether the oracle agrees, None
    without one; `hazards`, their kinds and lines; `counters`, those of `ptx.Trace.counters`.
    """

    ended: str
    right: bool | None
    hazards: tuple[str, ...]
    counters: Mapping[Name, Count]
    mutants: Mutants
    gpu: Measured | None = None


class Compiled(Part, kw_only=True, frozen=True):
    """What came of a file: how many kernels it has, or what was `said` when it was refused."""

    kernels: Count
    said: str


class Foreign(Part, kw_only=True, frozen=True):
    """The results of each kernel and of each file, by its key."""

    kernels: Mapping[str, Result]
    files: Mapping[str, Compiled] = EMPTY
    digest: str = ""


def read(path: Path = FILE) -> Foreign | None:
    """The record; None if nothing is recorded.

    Raises RecordError if it can't be read, or was edited since it was written.
    """
    return seal.read(path, Foreign, AGAIN)


def write(record: Foreign, path: Path = FILE) -> None:
    """Write the record."""
    write_whole(path, seal.sealed(record))
