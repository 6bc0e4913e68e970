"""Time a kernel against cuBLAS, interleaved in one process.

A benchmark without its rival in the same run is an anecdote: clocks move with temperature. So the
two take turns, A B A B, on random inputs, over several copies of the matrices that together
exceed the L2 cache three times, and the SM clock, the power and the temperature are read while they
run.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from lib.compiler.compiled import Compiled, compile_file
from lib.kernels.grid import Launch
from lib.kernels.spec import Kernel, Variant
from lib.measure import cublas
from lib.paths import CUDA
from lib.problem import Problem, WrongResult
from lib.records.store import HOT_ROUNDS
from lib.run import device
from lib.run.runner import Loaded, prepare

ROUNDS = 15
# One sample is a graph of as many launches as take about this long: far above an event's
# resolution (0.5 µs) and short enough that many samples fit.
SAMPLE_SECONDS = 5e-3
MOST_LAUNCHES = 400
# More than Python needs to enqueue one launch.
ENQUEUE_SECONDS = 30e-6
# A host that is busy with other things queues too slowly, and its pauses are measured: seen as a
# spread of 0.2 to 0.9, where undisturbed series have less than 0.08.
MOST_SPREAD = 0.15
ATTEMPTS = 3
# How many times the L2 the rotating copies of the matrices exceed it.
L2_MULTIPLE = 3
# Tensor cores at work draw all the power there is, and the clock falls. So large products of 16-bit
# matrices take more samples, until it has fallen; and because a kernel in turns with cuBLAS has the
# clock of both, they are timed alone as well.
HOT_FROM = 10**11  # FLOP
METHOD = (
    f"median of {ROUNDS} samples ({HOT_ROUNDS} for large products of 16-bit matrices), kernel and "
    f"cuBLAS in turns; a sample is launches of about "
    f"{SAMPLE_SECONDS * 1e3:g} ms together, queued ahead, between two events; inputs random, "
    f"copies rotated over {L2_MULTIPLE}× the L2"
)


def bench(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    rounds: int | None = None,
    ptx_arch: str | None = None,
    exact: bool = False,
) -> dict[str, Any]:
    """Time one instantiation and cuBLAS on one problem.

    With a `ptx_arch` the code is that older architecture's PTX, assembled for this GPU. With
    `exact` the variant keeps its own tile (see `lib.records.tuning`).

    Returns
    -------
    dict
        A row of a record: sizes, `seconds` (median, s) and `spread` (half the distance between
        the quartiles over the median), TFLOP/s of both, `ratio` of the speeds, the name of the
        `instantiation` that the problem allowed, SM clock in MHz, power in W and temperature in °C
        (medians while both ran; None where nvidia-smi can't tell). Products of 16-bit matrices of
        `HOT_FROM` FLOP or more also have `alone`: seconds, TFLOP/s, clock, power and temperature
        of the kernel without cuBLAS, back to back.

    Raises
    ------
    NoGpu
        If there is no GPU.
    WrongResult
        If the kernel's or cuBLAS's result is wrong: a wrong kernel is not timed.
    """
    rounds = rounds or usual_rounds(problem)
    copies = copies_of(problem, device.cupy())
    ours, instantiation = _checked(kernel, variant, problem, copies, ptx_arch, exact)
    rival = _rival(problem, copies)
    with ClockSampler() as clock:
        times = interleave([ours, rival], len(copies), rounds)
    seconds, rival_seconds = (statistics.median(series) for series in times)
    alone: dict[str, Any] = {}
    if hot(problem):
        alone["alone"] = _alone(ours, problem, len(copies), rounds)
    return {
        "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "out": problem.out, "b_layout": problem.b_layout,
        "alpha": problem.alpha, "beta": problem.beta,
        "seconds": seconds, "spread": spread(times[0]),
        "tflops": problem.flops / seconds / 1e12,
        "cublas_seconds": rival_seconds, "cublas_spread": spread(times[1]),
        "cublas_tflops": problem.flops / rival_seconds / 1e12,
        "ratio": rival_seconds / seconds,
        "instantiation": instantiation,
        **clock.row(), "rounds": rounds, **alone,
    }


def compare(
    kernel: Kernel, variants: Sequence[Variant], problem: Problem, rounds: int
) -> tuple[dict[str, float], float]:
    """Time several instantiations, each with its own tile, and cuBLAS, all in turns.

    Returns
    -------
    seconds : dict of str to float
        Medians, by the variants' names.
    cublas_seconds : float

    Raises
    ------
    NoGpu, WrongResult
        As `bench` does.
    """
    copies = copies_of(problem, device.cupy())
    calls = [_checked(kernel, variant, problem, copies, None, True)[0] for variant in variants]
    times = interleave([*calls, _rival(problem, copies)], len(copies), rounds)
    *seconds, rival_seconds = (statistics.median(series) for series in times)
    names = (variant.name for variant in variants)
    return dict(zip(names, seconds, strict=True)), rival_seconds


def _checked(
    kernel: Kernel, variant: Variant, problem: Problem, copies: list[Any], ptx_arch: str | None,
    exact: bool,
) -> tuple[Callable[[int], None], str]:
    """A call that launches on one of the copies and whose result is right; what it launches."""
    prepared = prepare(kernel, variant, problem, copies, exact)
    call = Loaded(kernel, prepared, device.arch(), ptx_arch)
    refuse_wrong(kernel.stem, call, problem, copies[0][2], _reference(problem))
    return call, kernel.expression(prepared.selection.variant)


def _rival(problem: Problem, copies: list[Any]) -> Callable[[int], None]:
    """The same for cuBLAS."""

    def call(index: int) -> None:
        cublas.gemm(problem, *copies[index])

    refuse_wrong("cuBLAS", call, problem, copies[0][2], _reference(problem))
    return call


@lru_cache(maxsize=1)
def _reference(problem: Problem) -> Any:
    """The first copy's product in float64, on the GPU."""
    return problem.reference(*problem.inputs(0, device.cupy()))


def _alone(
    call: Callable[[int], None], problem: Problem, copies: int, rounds: int
) -> dict[str, Any]:
    """Time a call without its rival."""
    with ClockSampler() as clock:
        (times,) = interleave([call], copies, rounds)
    seconds = statistics.median(times)
    return {"seconds": seconds, "spread": spread(times),
            "tflops": problem.flops / seconds / 1e12, **clock.row()}


def hot(problem: Problem) -> bool:
    """Whether a problem keeps tensor cores busy for long enough that the clock falls."""
    return problem.dtype != "float32" and problem.flops >= HOT_FROM


def usual_rounds(problem: Problem) -> int:
    """How many samples of each are taken in turns."""
    return HOT_ROUNDS if hot(problem) else ROUNDS


def bench_cublas(problem: Problem) -> dict[str, Any]:
    """Time cuBLAS by itself; a row like `bench`'s, with a ratio of 1."""
    cp = device.cupy()
    rounds = usual_rounds(problem)
    copies = copies_of(problem, cp)
    with ClockSampler() as clock:
        (times,) = interleave([lambda i: cublas.gemm(problem, *copies[i])], len(copies), rounds)
    seconds = statistics.median(times)
    tflops = problem.flops / seconds / 1e12
    return {
        "M": problem.M, "N": problem.N, "K": problem.K, "dtype": problem.dtype,
        "out": problem.out, "b_layout": problem.b_layout,
        "alpha": problem.alpha, "beta": problem.beta,
        "seconds": seconds, "spread": spread(times), "tflops": tflops,
        "cublas_seconds": seconds, "cublas_tflops": tflops, "ratio": 1.0,
        **clock.row(), "rounds": rounds,
    }


def interleave(
    calls: list[Callable[[int], None]], copies: int, rounds: int
) -> list[list[float]]:
    """Time several calls in turns; again, up to `ATTEMPTS` times, if something disturbed them.

    Parameters
    ----------
    calls : list of callables
        Each enqueues one launch on copy number `index` of its data.
    copies : int
        How many copies there are to rotate over.
    rounds : int
        Samples of each.

    Returns
    -------
    list of list of float
        Seconds a launch, one list a call.
    """
    series = [_Series(call, copies) for call in calls]
    for _ in range(ATTEMPTS):
        times: list[list[float]] = [[] for _ in calls]
        for _ in range(rounds):
            for samples, one in zip(times, series, strict=True):
                samples.append(one.sample())
        if all(spread(samples) <= MOST_SPREAD for samples in times):
            break
    return times


def refuse_wrong(
    name: str, call: Callable[[int], None], problem: Problem, C: Any, reference: Any
) -> None:
    """Let a call compute the first copy's C anew, and raise WrongResult if that is wrong."""
    C[...] = problem.inputs(0, device.cupy())[2]
    call(0)
    verdict = problem.judge(C, reference)
    if not verdict.ok:
        raise WrongResult(f"{name} at {problem.shape}: {verdict}; not timed")


def copies_of(problem: Problem, cp: Any) -> list[tuple[Any, Any, Any]]:
    """Enough sets of matrices to exceed the L2; at most as many as fill a quarter of the memory."""
    l2 = cp.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
    one = max(replace(problem, beta=0.0).compulsory_bytes, 1)  # each matrix once
    room = cp.cuda.runtime.memGetInfo()[0] // 4
    count = max(2, min(-(-L2_MULTIPLE * l2 // one), room // one, 64))
    # The first is the seed that the reference is made from.
    return [problem.inputs(seed, cp) for seed in range(count)]


class _Series:
    """As many launches of one call as fill a sample, each on the next copy of its data."""

    def __init__(self, call: Callable[[int], None], copies: int) -> None:
        self._call, self._copies = call, copies
        call(0)
        once = min(elapsed(partial(call, index % copies)) for index in range(1, 4))
        self.launches = int(np.clip(round(SAMPLE_SECONDS / once), 1, MOST_LAUNCHES))

    def sample(self) -> float:
        """Seconds a launch.

        The GPU is kept busy while the launches are queued, so that it finds each one waiting and
        Python's time between them is not measured.
        """
        _keep_busy(ENQUEUE_SECONDS * self.launches)
        return elapsed(self._queue) / self.launches

    def _queue(self) -> None:
        for index in range(self.launches):
            self._call(index % self._copies)


def _keep_busy(seconds: float) -> None:
    """Enqueue a kernel of one thread that waits."""
    compiled = compile_file(CUDA / "busy.cu", "busy<1>", device.arch())
    _loaded(compiled)(Launch((1, 1, 1), (1, 1, 1)), (np.uint64(seconds * 1e9),))


@lru_cache(maxsize=4)
def _loaded(compiled: Compiled) -> device.Loaded:
    return device.Loaded(compiled)


def elapsed(work: Callable[[], None]) -> float:
    """Seconds of the current stream's time that `work` takes, between two events."""
    cp = device.cupy()
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    work()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end) / 1e3


def spread(series: list[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    if len(series) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(series, n=4)
    return (high - low) / 2 / middle


class ClockSampler:
    """Ask nvidia-smi every 50 ms while the block runs: SM clock, power, temperature; read only."""

    # In the order in which they are asked for; the power of this moment, not the last second's.
    FIELDS = {"sm_clock_mhz": "clocks.sm", "power_w": "power.draw.instant",
              "temperature_c": "temperature.gpu"}

    def __enter__(self) -> ClockSampler:
        self._samples: list[dict[str, float]] = []
        try:
            self._process = subprocess.Popen(
                ["nvidia-smi", f"--query-gpu={','.join(self.FIELDS.values())}",
                 "--format=csv,noheader,nounits", "--loop-ms=50"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )
        except FileNotFoundError:
            self._process = None
            return self
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        for line in self._process.stdout:
            self._samples.append(self.parse(line))

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._reader.join(timeout=1)

    @classmethod
    def parse(cls, line: str) -> dict[str, float]:
        """What one line of nvidia-smi says; what it can't read (``[N/A]``) is left out."""
        found = {}
        for name, cell in zip(cls.FIELDS, line.split(","), strict=False):
            with contextlib.suppress(ValueError):
                found[name] = float(cell)
        return found

    def row(self) -> dict[str, float | None]:
        """The medians by `FIELDS`; None where nothing was read."""
        # The first reading may be of the time before the work began.
        busy = self._samples[1:]
        read = {name: [one[name] for one in busy if name in one] for name in self.FIELDS}
        return {name: statistics.median(values) if values else None
                for name, values in read.items()}

    @property
    def median(self) -> float | None:
        """Median SM clock, MHz; None where nvidia-smi is missing or too little time passed."""
        return self.row()["sm_clock_mhz"]
