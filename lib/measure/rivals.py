"""Public peers measured here: in turns with ours and cuBLAS, against the same reference."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, cublas, turns
from lib.measure.peers import PEERS, Built, Peer, PeerMissing, build, find_source, runs_on
from lib.measure.sensors import ClockSampler, board
from lib.problem import ROUNDING_MARGIN, ROUNDOFF, Problem, WrongResult
from lib.run import device

SIZES = (2048, 4096, 8192)


def ours(peer: Peer) -> tuple[Kernel, Variant] | None:
    """What of ours a peer is held against: the last version of its architecture and types.

    None of one that adds up in FP16, which none of ours does.
    """
    if peer.half_sums:
        return None
    types = (peer.problem.dtype, peer.problem.out, peer.problem.b_layout)
    return next((
        (kernel, variant) for kernel in reversed(CATALOGUE.values())
        if kernel.min_arch == peer.arch
        for variant in kernel.variants if (variant.dtype, variant.out, variant.b_layout) == types
    ), None)


def measure(
    names: Sequence[str], folders: Mapping[str, Path], sizes: Sequence[int],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Build and time peers.

    Parameters
    ----------
    names : sequence of str
        Of `PEERS`; all of them if none is named.
    folders : mapping of str to Path
        Where their sources are, by `Peer.source`.
    sizes : sequence of int
        Cubes.
    say : callable
        Is told what can't be measured, a line each.

    Returns
    -------
    dict
        By peer `repository`, `revision`, `licence`, `half_sums` and `rows`.

    Raises
    ------
    NoGpu
        If there is no GPU.
    PeerMissing
        If none of the peers could be built; the message says what is expected of the first.
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
        rows = [row for size in sizes if (row := timed(peer, library, size, say))]
        found[peer.name] = {"repository": peer.repository, "revision": revision,
                            "licence": peer.licence, "half_sums": peer.half_sums, "rows": rows}
    return found


def built(
    peers: Sequence[Peer], folders: Mapping[str, Path], capability: int, say: Callable[[str], None]
) -> dict[Peer, tuple[Path, str]]:
    """Build peers for a device, all at once; the file and the revision of each.

    Raises
    ------
    PeerMissing
        If none could be built; the message says what is expected of the first.
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


def timed(
    peer: Peer, library: Built, size: int, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """Time a peer's best configuration on one cube; None, with a line, where none is right."""
    problem = replace(peer.problem, M=size, N=size, K=size)
    contest = bench.Contest(problem, rival=half_rival(problem) if peer.half_sums else None)
    players, names = [], []
    for place, name in enumerate(library.names):
        if not library.takes(place, problem):
            continue
        prepared = library.prepare(place, problem, contest.copies)
        if prepared is None:
            say(f"{peer.name} {name} at {problem.shape}: can't be prepared")
            continue

        def call(index: int, place: int = place, prepared: list[int] = prepared) -> None:
            library.run(place, prepared[index])

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
    chosen = ours(peer)
    entrants = [players[best], contest.cublas()]
    if chosen:
        entrants.append(contest.player(*chosen)[0])
    with ClockSampler() as clock:
        timings = turns.take(entrants, bench.usual_rounds(problem) // turns.SERIES)
    own = timings[2] if chosen else None
    return {
        **bench.problem_of(problem), "configuration": names[best],
        "seconds": timings[0].seconds, "spread": timings[0].spread,
        "tflops": problem.flops / timings[0].seconds / 1e12,
        "cublas_seconds": timings[1].seconds,
        "cublas_tflops": problem.flops / timings[1].seconds / 1e12,
        "ratio": timings[1].seconds / timings[0].seconds,
        **({"ours": {
            "kernel": chosen[0].stem, "variant": chosen[1].name, "seconds": own.seconds,
            "spread": own.spread, "tflops": problem.flops / own.seconds / 1e12,
        }} if chosen else {}),
        **({} if peer.half_sums else {"rival": contest.rival.about}),
        **clock.row(), "throttle": clock.throttle(), "board": board(),
    }


def check(peer: Peer, contest: bench.Contest, name: str, call: Callable[[int], None]) -> None:
    """Let a peer compute the first copy's C, and raise WrongResult if that is wrong.

    Peers scale C by β = 0 without leaving it unread, so there it holds zeros and no NaN; and one
    that adds up in FP16 is allowed the rounding errors of that.
    """
    C = contest.copies[0][2]
    for _, _, other in contest.copies:
        other[...] = 0
    call(0)
    verdict = contest.problem.judge(C, contest.reference)
    tolerance = half_tolerance(contest.problem) if peer.half_sums else verdict.tolerance
    if verdict.unwritten or not verdict.error <= tolerance:
        raise WrongResult(f"{peer.name} {name} at {contest.problem.shape}: wrong, error "
                          f"{verdict.error:.1e} above {tolerance:.1e}; not timed")


def half_tolerance(problem: Problem) -> float:
    """The error that rounding explains where sums are FP16: as `Problem.tolerance`, by its unit."""
    return ROUNDING_MARGIN * ROUNDOFF["float16"] * math.sqrt(problem.K + 4)


def half_rival(problem: Problem) -> bench.Rival:
    """cuBLAS with sums in FP16, ``cublasHgemm``, by its default."""
    return bench.Rival(lambda A, B, C: cublas.gemm(problem, A, B, C, half_sums=True), {})


def lines(found: Mapping[str, Any]) -> list[str]:
    """What was measured, a line a row, for a terminal."""
    made = []
    for name, peer in found.items():
        for row in peer["rows"]:
            rival = "cublasHgemm" if peer["half_sums"] else "the best of cuBLAS"
            mine = row.get("ours")
            made.append(
                f"{name} ({row['configuration']}) {row['M']}x{row['N']}x{row['K']}: "
                f"{row['tflops']:.1f} TFLOP/s, {row['ratio']:.3f} of {rival}"
                + (f"; {mine['kernel']} {mine['variant']} {mine['tflops']:.1f}" if mine else
                   "; sums in FP16, not ranked with ours")
            )
    return made
