"""Kernels for any architecture that NVRTC compiles for, and whose rules count them."""

from __future__ import annotations

import numpy as np
import pytest

import lib
from lib.compiler.arch import TARGETS, check_any_arch, nearest_target
from lib.compiler.toolkit import nvrtc_architectures
from tests.tables import cases

SOURCE = """
extern "C" __global__ void k(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1] * 2;
}
"""
LATER = [f"sm_{n}" for n in nvrtc_architectures() if n >= 75]
# The oldest, the newest, one between them without rules of its own, and one of its own.
TRIED = (LATER[0], LATER[-1], "sm_86", "sm_90a")


@pytest.mark.parametrize("arch", [
    pytest.param(arch, marks=() if arch in TRIED else pytest.mark.slow)
    for arch in [*LATER, "sm_90a"]
])
def test_a_kernel_for_every_architecture(arch):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = lib.RawModule(code=SOURCE, arch=arch).get_function("k")
    launch = kernel((1,), (64,), (x, y), races=True)
    assert (y == 2 * x.reshape(-1, 2)[:, ::-1].ravel()).all() and not launch.hazards
    assert launch.trace.counters()["global_load_sectors"] == 8
    said = f"by the rules of {nearest_target(arch)}"
    assert (said in kernel.counted) == (arch not in TARGETS)


@cases("""
arch    target
sm_75   sm_75
sm_86   sm_80
sm_89   sm_80
sm_90   sm_90a
sm_100a sm_90a
sm_121  sm_90a
""")
def test_the_nearest_that_was_calibrated(arch, target):
    assert nearest_target(arch) == target


@pytest.mark.parametrize("arch", ["sm_70", "sm_77", "turing", 75])
def test_others_are_refused_with_a_list(arch):
    with pytest.raises(ValueError, match="unknown architecture .*sm_75, sm_80"):
        check_any_arch(arch)
