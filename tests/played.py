"""A machine that seems to have a GPU: its arrays are NumPy's, and the emulator runs its kernels.

So it can be tested without a GPU what a chapter shows where there is one, and where it is too old
for some kernels. Times are made up; what can't be compiled for the GPU, or doesn't fit it, is
refused as there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from lib.compiler.compiled import Compiled
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch, h100_sms
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, cublaslt, timeline
from lib.paths import ROOT
from lib.problem import Problem
from lib.records import store
from lib.records.schema import Benchmark, Default, KernelRecord, Rival, Timeline
from lib.run import device, runner

KIB = 1024


@dataclass(frozen=True)
class Gpu:
    """What the CUDA runtime says of a device."""

    name: str
    capability: int
    sms: int
    shared_limit: int


T4 = Gpu("Tesla T4", 75, 40, 64 * KIB)
L4 = Gpu("NVIDIA L4", 89, 58, 99 * KIB)
A100 = Gpu("NVIDIA A100-SXM4-40GB", 80, 108, 163 * KIB)
H100 = Gpu("NVIDIA H100 80GB HBM3", 90, 132, 227 * KIB)
B200 = Gpu("NVIDIA B200", 100, 148, 227 * KIB)


class Board:
    """A clock and an energy counter that move together, at so many watts."""

    def __init__(self, watts: float) -> None:
        self.watts, self.time, self.energy = watts, 0.0, 1000.0

    def joules(self) -> float:
        return self.energy

    def now(self) -> float:
        return self.time

    def pass_time(self, seconds: float, watts: float | None = None) -> None:
        self.time += seconds
        self.energy += seconds * (self.watts if watts is None else watts)

    def meter(self, counter: Board) -> Readings:
        """Reads the counter where it moves at the begin of a run and at its end."""
        return Readings(self)


class Readings:
    """What a meter has read of a board: each move 10 ms after the reading before."""

    def __init__(self, board: Board) -> None:
        self.board, self.readings = board, [(0.0, 0.0)]

    def __enter__(self) -> Readings:
        self.readings = [(self.board.time - 0.01, 0.0), (self.board.time, self.board.energy)]
        return self

    def __exit__(self, *_: object) -> None:
        self.readings += [(self.board.time - 0.01, self.readings[-1][1]),
                          (self.board.time, self.board.energy)]


class Cupy:
    """As much of CuPy as a run needs, over NumPy."""

    def __init__(self, gpu: Gpu) -> None:
        properties = {
            "name": gpu.name.encode(), "multiProcessorCount": gpu.sms,
            "sharedMemPerBlockOptin": gpu.shared_limit,
        }
        self.asnumpy = np.asarray
        self.loaded: list[bytes] = []  # the code that was handed to the driver
        module = SimpleNamespace(load=self.loaded.append, get_function=lambda name: name)
        self.cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(id=0, compute_capability=str(gpu.capability)),
            runtime=SimpleNamespace(getDeviceProperties=lambda index: properties),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            function=SimpleNamespace(Module=lambda: module),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Loaded(device.Loaded):
    """A kernel that is loaded as on a device, and launched in the emulator."""

    def __init__(self, compiled: Compiled) -> None:
        super().__init__(compiled)
        self._compiled = compiled

    def __call__(self, launch: Launch, args: Any) -> None:
        runner.emulate(self._compiled, launch, tuple(args), trace=False)


def play(gpu: Gpu, put: Callable[[Any, str, Any], None] = setattr) -> Cupy:
    """Let `lib` believe that a GPU is here.

    Parameters
    ----------
    gpu : Gpu
    put : callable
        How an attribute is set: pytest's `monkeypatch.setattr`, or for good.
    """
    cupy = Cupy(gpu)
    put(device, "why_unusable", lambda: None)
    put(device, "cupy", lambda: cupy)
    put(device, "filled", lambda cluster: gpu.sms if cluster < 3 else h100_sms(cluster))
    put(device, "Loaded", Loaded)
    put(cublaslt, "lacking", lambda: "")
    put(bench, "bench", _bench)
    put(timeline, "timeline", _timeline)
    return cupy


def play_cupy(gpu: Gpu, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let CuPy itself seem to have a GPU, for cells that import it, beside `play`.

    Its modules compile for that GPU and run in the emulator; nothing is timed.
    """
    import cupy
    import cupyx.profiler

    from lib import RawModule

    for name in ("asarray", "empty", "full", "matmul", "ones", "zeros"):
        put(cupy, name, getattr(np, name))
    draw = SimpleNamespace(random=np.random.default_rng(0).random)
    put(cupy, "random", draw)
    put(cupy, "RawModule", partial(RawModule, arch=f"sm_{gpu.capability}"))
    put(cupyx.profiler, "benchmark",
        lambda function, arguments, *_, **__: SimpleNamespace(gpu_times=np.full((1, 10), 1e-3)))


def _refuse(kernel: Kernel, variant: Variant) -> None:
    if problem := device.why_not(kernel, variant):
        raise device.NoGpu(problem)
    device.Loaded(compile_kernel(kernel, variant, device.arch()))


def _bench(
    kernel: Kernel, variant: Variant, problem: Problem, rounds: int | None = None,
    ptx_arch: str | None = None, exact: bool = False, thorough: bool = False,
) -> Benchmark:
    _refuse(kernel, variant)
    seconds, rival = problem.flops / 1.25e12, problem.flops / 2.5e12
    default = Default(seconds=rival, spread=0.01, tflops=2.5, kernels=None)
    return Benchmark(
        **bench.problem_of(problem), seconds=seconds, spread=0.01, tflops=1.25,
        cublas_seconds=rival, cublas_spread=0.01, cublas_tflops=2.5, ratio=0.5,
        instantiation=kernel.expression(variant), temperature_c=None, throttle=None,
        rounds=5, series=[seconds] * 5, spread_within=0.01,
        inputs="uniform", rival=Rival(default=default, best=None, candidates=0), board="0" * 16,
    )


def _timeline(kernel: Kernel, variant: Variant, problem: Problem) -> Timeline:
    _refuse(kernel, variant)
    # What isn't recorded yet is played by another's marks, which are of the same phases.
    for stem, name in ((kernel.stem, variant.name), ("20_persistent", "wide")):
        stored = store.load(KernelRecord, "H100", stem, ROOT / "results")
        if stored and name in stored.variants and (found := stored.variants[name].timeline):
            return found
    raise AssertionError("no recorded timeline is left to play")
