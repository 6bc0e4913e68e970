"""Public peers measured here: in turns with ours and cuBLAS, against the same reference."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, cublas, turns
from lib.measure.peers import PEERS, Built, Peer, PeerMissing, build, find_source, runs_on
from lib.measure.sensors import Sampler, board
from lib.problem import ROUNDING_MARGIN, ROUNDOFF, Problem, WrongResult
from lib.records.schema import Ours, PeerRow, PublicPeer
from lib.run import device


def ours(peer: Peer) -> tuple[Kernel, Variant] | None:
    """What of ours a peer is held against: the last version of its architecture and types.

    None of one that adds up in FP16, which none of ours does.
    """
    if peer.half_sums:
        return None
    problem = peer.problem
    types = (problem.dtype, problem.out, problem.b_layout, problem.scaling)
    return next((
        (kernel, variant) for kernel in reversed(KERNELS.values())
        if kernel.min_arch == peer.arch
        for variant in (kernel.fastest, *kernel.variants)
        if (variant.dtype, variant.out, variant.b_layout, variant.scaling) == types
    ), None)


def measure(
    names: Sequence[str], folders: Mapping[str, Path], sizes: Sequence[int],
    say: Callable[[str], None], chunk: str,
) -> dict[str, PublicPeer]:
    """Build and time peers.

    `names`: of `PEERS`; all of them if none is named. `folders`: where their sources are, by
    `Peer.source`. `sizes`: cubes. `say`: is told what can't be measured, a line each. `chunk`: the
    stretch of GPU time that it is done in. Raises NoGpu if there is no GPU; PeerMissing if none of
    the peers could be built; the message says what is expected of the first.
    """
    capability = int(device.cupy().cuda.Device().compute_capability)
    chosen = [PEERS[name] for name in names or PEERS]
    for peer in chosen:
        if not runs_on(peer, device.arch()):
            say(f"{peer.name}: {device.name()} has not the instructions of {peer.arch}")
    found = {}
    ready = built([peer for peer in chosen if runs_on(peer, device.arch())], folders, capability,
                  say)
    for peer, (file, revision) in ready.items():
        library = Built(file)
        rows = tuple(row for size in sizes if (row := timed(peer, library, size, say, chunk)))
        found[peer.name] = PublicPeer(repository=peer.repository, revision=revision,
                                      licence=peer.licence, half_sums=peer.half_sums, rows=rows)
    return found


def built(
    peers: Sequence[Peer], folders: Mapping[str, Path], capability: int, say: Callable[[str], None]
) -> dict[Peer, tuple[Path, str]]:
    """Build peers for a device, all at once; the file and the revision of each.

    Raises PeerMissing if none could be built; the message says what is expected of the first.
    """
    def one(peer: Peer) -> tuple[Path, str] | PeerMissing:
        try:
            folder, revision = find_source(peer, folders)
            return build(peer, folder, revision, capability), revision
        except PeerMissing as error:
            return error

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        made = dict(zip(peers, pool.map(one, peers), strict=True))
    missing = [error for error in made.values() if isinstance(error, PeerMissing)]
    for error in missing:
        say(str(error))
    if peers and len(missing) == len(peers):
        raise missing[0]
    return {peer: one for peer, one in made.items() if not isinstance(one, PeerMissing)}


def _run(library: Built, place: int, prepared: Sequence[int], index: int) -> None:
    library.run(place, prepared[index])


def timed(
    peer: Peer, library: Built, size: int, say: Callable[[str], None], chunk: str
) -> PeerRow | None:
    """Time a peer's best configuration on one cube, in turns with cuBLAS and with ours."""
    problem = replace(peer.problem, M=size, N=size, K=size)
    contest = bench.Contest(problem, rival=half_rival(problem) if peer.half_sums else None)
    return row(peer, library, contest, say, chunk, ours(peer))


def row(
    peer: Peer, library: Built, contest: bench.Contest, say: Callable[[str], None], chunk: str,
    chosen: tuple[Kernel, Variant] | None = None,
) -> PeerRow | None:
    """Time a peer's best configuration in a contest, in turns with cuBLAS and what is chosen of
    ours; None, with a line, where none of its configurations is right."""
    problem = contest.problem
    players, names = [], []
    for place, name in enumerate(library.names):
        if not library.takes(place, problem):
            continue
        ready = library.prepare(place, problem, contest.rival_copies)
        if ready is None:
            say(f"{peer.name} {name} at {problem.shape}: can't be prepared")
            continue
        call = partial(_run, library, place, ready)
        try:
            check(peer, contest, name, call)
        except WrongResult as error:
            say(str(error))
            continue
        players.append(bench.KernelPlayer(call, len(contest.copies)))
        names.append(name)
    best = bench.fastest(players)
    if best is None:
        say(f"{peer.name}: none of its configurations is right at {problem.shape}")
        return None
    entrants = [players[best], contest.cublas()]
    if chosen:
        entrants.append(contest.player(*chosen)[0])
    with Sampler() as sensed:
        timings = turns.take(entrants, bench.usual_rounds(problem) // turns.SERIES)
    partner = None
    if chosen:
        (kernel, variant), own = chosen, timings[2]
        partner = Ours(kernel=kernel.stem, variant=variant.name,
                      **bench.side_of(own, problem))
    return PeerRow(
        **bench.problem_of(problem), configuration=names[best],
        **bench.times_of(timings[0], timings[1], problem), ours=partner,
        rival=None if peer.half_sums else contest.rival_timed,
        temperature_c=sensed.temperature_c, throttle=sensed.throttle(), board=board(), chunk=chunk,
    )


def check(peer: Peer, contest: bench.Contest, name: str, call: Callable[[int], None]) -> None:
    """Let a peer compute the first copy's C, and raise WrongResult if that is wrong.

    Peers scale C by β = 0 without leaving it unread, so there it holds zeros and no NaN; and one
    that adds up in FP16 is allowed the rounding errors of that.
    """
    for copy in contest.copies:
        copy[2][...] = 0
    call(0)
    verdict = contest.problem.judge(contest.copies[0][2], contest.reference)
    tolerance = half_tolerance(contest.problem) if peer.half_sums else verdict.tolerance
    if verdict.unwritten or not verdict.error <= tolerance:
        raise WrongResult(f"{peer.name} {name} at {contest.problem.shape}: wrong, error "
                          f"{verdict.error:.1e} above {tolerance:.1e}; not timed")


def half_tolerance(problem: Problem) -> float:
    """The error that rounding explains where sums are FP16: as `Problem.tolerance`, by its unit."""
    return ROUNDING_MARGIN * ROUNDOFF["float16"] * math.sqrt(problem.K + 4)


def half_rival(problem: Problem) -> bench.Rival:
    """cuBLAS with sums in FP16, ``cublasHgemm``, by its default."""
    return bench.Rival(lambda A, B, C: cublas.gemm(problem, A, B, C, half_sums=True), None)


def lines(found: Mapping[str, PublicPeer]) -> list[str]:
    """What was measured, a line a row, for a terminal."""
    made = []
    for name, peer in found.items():
        for row in peer.rows:
            rival = "cublasHgemm" if peer.half_sums else "the best of cuBLAS"
            mine = row.ours
            made.append(
                f"{name} ({row.configuration}) {row.M}x{row.N}x{row.K}: "
                f"{row.tflops:.1f} TFLOP/s, {row.ratio:.3f} of {rival}"
                + (f"; {mine.kernel} {mine.variant} {mine.tflops:.1f}" if mine else
                   "; sums in FP16, not ranked with ours")
            )
    return made
