"""The pytest plugin in a project of its own: what passes, what fails, and that it is inert."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = r"""
#include <cstdio>
__global__ void mirrored(const float* x, float* y, int stride)
{
    __shared__ float s[64 * 8];
    s[threadIdx.x * stride] = x[threadIdx.x];
#ifndef BROKEN
    __syncthreads();
#endif
    y[threadIdx.x] = s[(63 - threadIdx.x) * stride];
}
int main() { mirrored<<<1, 64>>>(nullptr, nullptr, 1); }
"""
CASES = {
    "clean": ("", 1, None),
    "in_budget": (
        ", 'mirrored', budgets=['sectors_per_request < 5', 'bank_conflicts == 0']", 1, None),
    "broken": (", options=['-DBROKEN']", 1, "What to do: __syncthreads()"),
    "allowed": (", options=['-DBROKEN'], allow=['race']", 1, None),
    "conflicts": (", budgets=['bank_conflicts == 0']", 8, "budget bank_conflicts == 0: it is 28"),
    "misspelt": (", budgets=['bank_conflict == 0']", 1, "the nearest is bank_conflicts"),
}
TEST = """
def test_{name}(emulate):
    import numpy as np
    mirrored = emulate("kernels.cu"{options})
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch = mirrored(1, 64, (x, y, np.int32({stride})))
    assert (y == x[::-1]).all() and launch.races
"""
INERT = """
import sys

def test_inert():
    assert "lib.compiler.pytest_plugin" in sys.modules
    assert not {"numpy", "cupy"} & {name.partition(".")[0] for name in sys.modules}
    assert not any(name.startswith("lib.ptx") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a pytest in a process of its own says of each test of a project."""
    project = tmp_path_factory.mktemp("project")
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "kernels.cu").write_text(KERNELS)
    (project / "test_it.py").write_text(INERT + "".join(
        TEST.format(name=name, options=options, stride=stride)
        for name, (options, stride, _) in CASES.items()))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider",
         "-p", "lib.compiler.pytest_plugin"],
        cwd=project, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_in_a_test_suite(said, name):
    _, _, message = CASES[name]
    outcome = "PASSED" if message is None else "FAILED"
    assert f"{outcome} test_it.py::test_{name}" in said
    part = re.search(rf"_+ test_{name} _+\n(.*?)\n(?:___+ |===+ )", said, re.S)
    assert message is None or message in part[1]


def test_a_hazard_is_told_without_the_plugin_s_own_frames(said):
    part = re.search(r"_+ test_broken _+\n(.*?)\n(?:___+ |===+ )", said, re.S)[1]
    assert "kernels.cu:6 and kernels.cu:10" in part and "pytest_plugin.py" not in part


def test_nothing_is_loaded_where_nobody_asks(said):
    assert "PASSED test_it.py::test_inert" in said
