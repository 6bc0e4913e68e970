"""A machine that seems to have a GPU: its arrays are NumPy's, and the emulator runs its kernels.

So it can be tested without a GPU what a chapter shows where there is one, and where it is too old
for some kernels. Times are made up; what can't be compiled for the GPU, or doesn't fit it, is
refused as there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from lib.compiler.compiled import Compiled
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch
from lib.kernels.spec import Kernel, Variant
from lib.measure import bench, timeline
from lib.paths import ROOT
from lib.problem import Problem
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
    put(device, "Loaded", Loaded)
    put(bench, "bench", _bench)
    put(timeline, "timeline", _timeline)
    return cupy


def _refuse(kernel: Kernel, variant: Variant) -> None:
    if problem := device.why_not(kernel, variant):
        raise device.NoGpu(problem)
    device.Loaded(compile_kernel(kernel, variant, device.arch()))


def _bench(
    kernel: Kernel, variant: Variant, problem: Problem, rounds: int | None = None,
    ptx_arch: str | None = None, exact: bool = False, thorough: bool = False,
) -> dict[str, Any]:
    _refuse(kernel, variant)
    return {"M": problem.M, "N": problem.N, "K": problem.K, "tflops": 1.25, "cublas_tflops": 2.5,
            "ratio": 0.5, "spread": 0.01, "seconds": problem.flops / 1.25e12, "sm_clock_mhz": None}


def _timeline(kernel: Kernel, variant: Variant, problem: Problem) -> Mapping[str, Any]:
    _refuse(kernel, variant)
    file = ROOT / "results" / "h100" / f"{kernel.stem}.json"
    if not file.is_file():
        import pytest  # a played Colab has none, and asks for no version that isn't recorded

        pytest.skip(f"what is played is a record, and {kernel.stem} has none yet")
    return json.loads(file.read_text())["variants"][variant.name]["timeline"]
