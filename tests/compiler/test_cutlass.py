"""CUTLASS's own GEMMs, compiled by NVRTC and run: right, and nothing is suspected that is in order.

With its headers installed: ``pip install --no-deps -r requirements-peers.txt``. The one for sm_90a
takes NVRTC a minute, so these are not among the usual tests.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lib import ptx
from lib.compiler.cache import cached
from lib.compiler.nvrtc import compile_nvrtc
from lib.compiler.toolkit import toolkit_includes

HERE = Path(__file__).parent / "cutlass"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("cutlass_library") is None, reason="CUTLASS is not installed"),
]
M, N, K = 256, 192, 328  # an edge in N and in K
ALPHA, BETA = 0.75, -0.5


def module(name: str, arch: str) -> ptx.Module:
    """Compile a file of this folder with CUTLASS's headers; the PTX is kept."""
    headers = Path(find_spec("cutlass_library").origin).parent / "source" / "include"
    source = (HERE / name).read_text()
    version = (headers / "cutlass" / "version.h").read_text()
    options = [f"-arch={arch}", "-lineinfo", "--std=c++17", "-default-device", f"-I{headers}",
               *toolkit_includes()]
    text = cached(["CUTLASS's GEMM", source, version, *options],
                lambda: compile_nvrtc(source, [], options, name).ptx)
    return ptx.Module(text.decode(), sources={name: source})


def sizes(found: ptx.Module) -> list[int]:
    out = np.zeros(3, np.int32)
    found.get_function("sizes")(1, 1, (out,))
    return out.tolist()


def factors(b_shape):
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), b_shape))
    return a, b, random.uniform(-1, 1, (M, N)).astype(np.float32)


@pytest.mark.parametrize("landing", ["early", "late"])
def test_sm_80(landing):
    found = module("sm80.cu", "compute_80")
    shared, threads, _ = sizes(found)
    a, b, c = factors((K, N))
    wanted = ALPHA * (a.astype(float) @ b) + BETA * c
    launch = found.get_function("gemm")(
        (M // 128, -(-N // 128)), threads, (M, N, K, ALPHA, a, b, BETA, c), shared,
        races=True, landing=landing,
    )
    np.testing.assert_allclose(c, wanted, atol=2e-5)
    assert launch.clean, launch.findings
    assert launch.trace.matrix_counters()["mma_instructions"] == 4 * 4 * -(-K // 32) * 2 * 4 * 8


@pytest.mark.parametrize("landing", ["early", "late"])
def test_sm_90a(landing):
    found = module("sm90.cu", "compute_90a")
    shared, threads, size = sizes(found)
    a, b, c = factors((N, K))
    wanted = ALPHA * (a.astype(float) @ b.T) + BETA * c
    grid = M // 128, -(-N // 128)
    blocks = grid[0] * grid[1]
    parameters = np.zeros((blocks, size), np.uint8)
    maps = [ptx.tensor_map(each[None], (1, 128, 64), swizzle=128) for each in (a, b)]
    found.get_function("build")(blocks, 1, (parameters, *maps, M, N, K, ALPHA, BETA))
    launch = found.get_function("gemm")(
        grid, threads, (parameters, c), shared, races=True, landing=landing
    )
    np.testing.assert_allclose(c, wanted, atol=2e-5)
    assert launch.clean, launch.findings
    assert launch.trace.matrix_counters()["wgmma_instructions"] == blocks * 4 * -(-K // 64) * 8
