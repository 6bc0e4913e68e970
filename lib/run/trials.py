"""Candidates of a rule timed on the caller's matrices; what was found is remembered on disk.

It lies beside what was compiled (`lib.compiler.cache`), under a digest of all that it depends on:
the GPU, its driver, the code of the candidates, the problem and how its matrices are aligned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from lib.compiler.cache import cached, is_cached
from lib.compiler.toolkit import toolkit_identity
from lib.dispatch.cost import Choice
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem
from lib.run import device

# A trial: turns, and launches of each.
_TURNS, _LAUNCHES = 3, 10


def depends_on(
    kernel: Kernel, candidates: Sequence[Variant], problem: Problem, alignments: Sequence[int]
) -> tuple[str, ...]:
    """All that the fastest of some candidates depends on, but the GPU's temper."""
    return (
        "trials", device.name(), str(device.driver()), str(toolkit_identity()),
        *(f"{one.name} {kernel.expression(one)} {kernel.hash(one)}" for one in candidates),
        repr(problem), repr(list(alignments)),
    )


def known(parts: tuple[str, ...]) -> bool:
    """Whether the fastest has been found before, in this process or another."""
    return is_cached(parts)


def fastest(
    parts: tuple[str, ...], candidates: Sequence[Choice], seconds: Callable[[Choice], float]
) -> str:
    """The name of the fastest candidate: as it was found before, or timed now.

    `parts`: see `depends_on`. `seconds`: what a candidate takes, s.
    """
    def timed() -> bytes:
        return json.dumps({one.name: seconds(one) for one in candidates}).encode()

    found: dict[str, float] = json.loads(cached(parts, timed))
    return min(found, key=found.__getitem__)


def seconds(launch: Callable[[int], None]) -> float:
    """What launches take, by the least of some turns behind one that is not counted, s.

    A turn is a graph of launches: small products are done sooner than Python enqueues them.

    `launch`: enqueues them on a CUstream.
    """
    cp = device.cupy()
    stream = cp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    for _ in range(_LAUNCHES):
        launch(stream.ptr)
    graph = stream.end_capture()
    cp.cuda.runtime.deviceSynchronize()  # what the caller has enqueued would take its share
    times: list[float] = []
    for _ in range(1 + _TURNS):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record(stream)
        graph.launch(stream)
        end.record(stream)
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end))
    return min(times[1:]) / (1e3 * _LAUNCHES)
