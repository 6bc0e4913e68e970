"""All versions, cuBLAS and public kernels in one pass on one board: ``record --ladder``.

Everything is compiled before the clock starts. Each product has one contest; every kernel takes
turns with the best of cuBLAS there, and what cuBLAS took in all turns of a product is its one
figure (`lib.records.ladder`). What was measured is kept beside the build and taken up again, on the
same board and commit alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import convert, json

from lib.compiler.arch import BLACKWELL
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import KERNELS, named
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, counters, rivals
from lib.measure.peers import PEERS, Built, Peer, PeerMissing
from lib.measure.record import DRAFTS, chunk_here, provenance
from lib.problem import Epilogue, Problem, WrongResult
from lib.ptx.files import bytes_of, write_whole
from lib.records import ladder, schema
from lib.records import store as records
from lib.records.launched import launch_hash
from lib.records.schema import Chunk, Counters, LadderEntry, LadderRecord, PeerRow, PublicPeer, Row
from lib.run import device

SIZES = (2048, 4096, 8192)
# The size that versions are chosen at: there what isolates a change is timed and counters are read.
SIZE = 4096
SHAPE = Problem(SIZE, SIZE, SIZE).shape
# Public kernels of the types of the ladder's groups.
PUBLIC = ("siboehm", "cutlass_sm75", "cutlass_sm80", "cutlass_sm90", "fast.cu", "DeepGEMM",
          "DeepGEMM_bf16")
# What a pass keeps line by line: rows, those without programmatic launch, public kernels' rows,
# counters, and stretches of time.
KINDS: Mapping[str, Any] = {
    "row": Row, "late": Row, "peer": PeerRow, "counters": Counters, "chunk": Chunk}


@dataclass(frozen=True)
class Entry:
    """An instantiation that takes part; `side` of what only isolates a change."""

    kernel: Kernel
    variant: Variant
    side: bool = False

    @property
    def name(self) -> str:
        """``VERSION/VARIANT``."""
        return f"{self.kernel.stem}/{self.variant.name}"

    def problem(self, size: int) -> Problem:
        """The product that it is timed on."""
        return self.variant.problem(size, size, size)


def entries(runs: Callable[[Kernel, Variant], bool] = lambda kernel, variant: True) -> list[Entry]:
    """Every version's fastest kernel that a GPU runs, the rule, and its pairs of one product."""
    own = [Entry(kernel, kernel.fastest) for kernel in KERNELS.values()
           if kernel.min_arch != BLACKWELL and runs(kernel, kernel.fastest)]
    names = {entry.name: entry for entry in own}
    for entry in own:
        for pair in entry.kernel.pairs:
            if entry.name in (pair.first, pair.second):
                for side in (pair.first, pair.second):
                    other = Entry(*named(side), side=True)
                    if runs(other.kernel, other.variant) and (
                            other.problem(SIZE) == entry.problem(SIZE)):
                        names.setdefault(side, other)
    return list(names.values())


def compiled(chosen: Sequence[Entry], say: Callable[[str], None]) -> list[Entry]:
    """Compile everything in a pool; what doesn't compile is named and left out."""
    def one(entry: Entry) -> str:
        try:
            arch = device.arch(entry.kernel.needs(entry.variant))
            compile_kernel(entry.kernel, entry.variant, arch)
        except Exception as error:  # noqa: BLE001 - said, and the others go on
            return f"{entry.name}: {str(error).splitlines()[0]}"
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(one, chosen))
    for fault in filter(None, faults):
        say(fault)
    return [entry for entry, fault in zip(chosen, faults, strict=True) if not fault]


def record(
    folders: Mapping[str, Path], say: Callable[[str], None], root: Path | None = None,
    draft: bool = False,
) -> tuple[Path, list[str]]:
    """Measure the pass, and write it: the file, and what a person should know of the board.

    Raises NoGpu if there is no GPU.
    """
    chunk, where = chunk_here()
    progress = Progress(DRAFTS / "ladder.jsonl", where)
    progress.keep("chunk", where, chunk)
    chosen = compiled(entries(device.runs), say)
    libraries = _libraries(folders, say)
    for problem, players in _contests(chosen):
        _contest(problem, players, libraries, chunk, progress, say)
    _counted(chosen, progress, say)
    made = _made(chosen, libraries, progress)
    file = records.write(made, DRAFTS if draft else root)
    return file, [
        f"cuBLAS spreads by {figure.spread:.1%} on {figure.title}: not a steady board, make the "
        "pass again" for figure in ladder.figures(made).values() if figure.spread > ladder.STEADY]


def solves(peer: Peer, problem: Problem) -> bool:
    """Whether a peer computes a product: in the same types and layout, and no epilogue."""
    return replace(peer.problem, M=problem.M, N=problem.N, K=problem.K) in (
        problem, replace(problem, epilogue=None) if problem.epilogue == Epilogue() else problem)


def _contests(chosen: Sequence[Entry]) -> Iterator[tuple[Problem, list[Entry]]]:
    """Products, and who takes part in each: what isolates a change at one size alone."""
    for size in SIZES:
        by_problem: dict[Problem, list[Entry]] = {}
        for entry in chosen:
            if size == SIZE or not entry.side:
                by_problem.setdefault(entry.problem(size), []).append(entry)
        yield from by_problem.items()


def _contest(
    problem: Problem, players: Sequence[Entry], libraries: Mapping[Peer, tuple[Built, str]],
    chunk: str, progress: Progress, say: Callable[[str], None],
) -> None:
    """Time all that take part in one product and aren't timed yet."""
    peers = [peer for peer in libraries if solves(peer, problem)]
    rows, of_peers = progress.found["row"], progress.found["peer"]
    left = [entry for entry in players if (entry.name, problem.shape) not in rows]
    if not left and all((peer.name, problem.shape) in of_peers for peer in peers):
        return
    say(f"{problem.shape} {problem.dtype} {problem.out}: {len(left)} kernels, {len(peers)} peers")
    try:
        contest = bench.Contest(problem)
    except ValueError as error:  # no rival for such a product here
        say(str(error))
        return
    last = {entry.kernel.group: entry.name for entry in players if not entry.side}
    for entry in left:
        headline = problem.M == SIZE and entry.name == last[entry.kernel.group]
        try:
            row = contest.row(entry.kernel, entry.variant, thorough=headline)
            late = contest.row(entry.kernel, replace(entry.variant, programmatic_launch=False)) if (
                entry.variant.programmatic_launch and not entry.side
                and not entry.variant.by_rule) else None  # a rule launches what it chooses
        except WrongResult as error:
            say(str(error))
            continue
        if late:
            progress.keep("late", Row.of(late, chunk), entry.name, problem.shape)
        progress.keep("row", Row.of(row, chunk), entry.name, problem.shape)
        say(f"  {entry.name:45} {row.tflops:7.1f} {row.ratio:6.3f}")
    for peer in peers:
        if (peer.name, problem.shape) not in of_peers:
            if taken := rivals.row(peer, libraries[peer][0], contest, say, chunk):
                progress.keep("peer", taken, peer.name, problem.shape)
                say(f"  {peer.name:45} {taken.tflops:7.1f} {taken.ratio:6.3f}")


def _counted(chosen: Sequence[Entry], progress: Progress, say: Callable[[str], None]) -> None:
    """Counters of every version's kernel at one size, under one ncu."""
    names = [entry.name for entry in chosen if not entry.side and (
        entry.name, SHAPE) in progress.found["row"] and not progress.of("counters", entry.name)]
    if not names:
        return
    say(f"counters of {len(names)} kernels")
    try:
        seen = counters.of_several(names, (SIZE, SIZE, SIZE))
    except counters.ProfilerMissing as error:
        say(str(error))
        return
    for name, metrics in zip(names, seen, strict=True):
        progress.keep("counters", Counters(M=SIZE, N=SIZE, K=SIZE, metrics=metrics), name)


def _libraries(
    folders: Mapping[str, Path], say: Callable[[str], None]
) -> dict[Peer, tuple[Built, str]]:
    """Public kernels that can be built here; what can't is said."""
    capability = int(device.cupy().cuda.Device().compute_capability)
    try:
        built = rivals.built([PEERS[name] for name in PUBLIC], folders, capability, say)
    except PeerMissing:
        return {}
    return {peer: (Built(file), revision) for peer, (file, revision) in built.items()}


def _made(
    chosen: Sequence[Entry], libraries: Mapping[Peer, tuple[Built, str]], progress: Progress,
) -> LadderRecord:
    """The record of what was measured."""
    measured = {
        entry.name: LadderEntry(
            hash=entry.kernel.hash(entry.variant),
            launch=launch_hash(entry.kernel, entry.variant), side=entry.side, bench=rows,
            late=progress.of("late", entry.name), counters=progress.of("counters", entry.name))
        for entry in chosen if (rows := progress.of("row", entry.name))}
    peers = {
        peer.name: PublicPeer(
            repository=peer.repository, revision=revision, licence=peer.licence,
            half_sums=peer.half_sums, rows=rows)
        for peer, (_, revision) in libraries.items() if (rows := progress.of("peer", peer.name))}
    used = {row.chunk for entry in measured.values() for row in entry.bench}
    return LadderRecord.of(
        provenance(schema.LADDER), entries=measured, peers=peers,
        chunks={name: chunk for (name, _), chunk in progress.found["chunk"].items()
                if name in used})


class Progress:
    """What a pass has measured so far, a line a row, taken up on its own board and commit alone.

    `found`: each kind's rows by name and shape; chunks and counters have none.
    """

    def __init__(self, file: Path, where: Chunk) -> None:
        self._file = file
        self.found: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in KINDS}
        content = bytes_of(file) if file.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:  # something ended the process in the middle of a line
            write_whole(file, whole)
        lines = whole.splitlines()
        head = json.encode([where.board, where.revision])
        if not lines or lines[0] != head:  # another board's is thrown away
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(head + b"\n")
        else:
            for line in lines[1:]:
                kind, name, shape, value = json.decode(line)
                self.found[kind][name, shape] = convert(value, KINDS[kind])

    def keep(self, kind: str, value: Any, name: str, shape: str = "") -> None:
        """Keep one more row."""
        self.found[kind][name, shape] = value
        with self._file.open("ab") as stream:
            stream.write(json.encode([kind, name, shape, value]) + b"\n")

    def of(self, kind: str, name: str) -> tuple[Any, ...]:
        """The rows of a name."""
        return tuple(row for (other, _), row in self.found[kind].items() if other == name)
