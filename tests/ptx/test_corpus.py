"""PTX of several releases of NVRTC: each text is read, decoded and runs right.

The corpus holds PTX of 12.1 to 13.x; `python -m tests.ptx.make_corpus` makes it anew.
"""

import json
import lzma

import numpy as np
import pytest

from lib import ptx
from lib.kernels.catalogue import find
from lib.problem import Problem
from lib.run.prepared import arguments

from .conftest import function_of, problem, s32s
from .make_corpus import CORPUS, RELEASES
from .race import test_blocks

NAIVE = find("01_naive").fastest  # which takes pointers, as all kernels of the corpus do
MANIFEST = json.loads((CORPUS / "corpus.json").read_text())
TEXTS = MANIFEST["texts"]
STAGES = 3 * 2 * 128 * 64 * 2  # bytes of the ring of hopper.cu
# Of tensor.cu.
KERNELS = [
    ("compute_75", "wmma_gemm", np.float16), ("compute_80", "wmma_gemm", np.float16),
    ("compute_75", "mma_m16n8k8", np.float16), ("compute_80", "pipelined", np.float16),
    ("compute_80", "int8_mma", np.int8), ("compute_80", "tf32_mma", np.float32),
]
SHAPES = {"int8_mma": ((8, 16), 32), "tf32_mma": ((8, 16), 32)}


def module(entry: dict) -> str:
    """Return the PTX of one entry of the manifest."""
    return lzma.decompress((CORPUS / entry["file"]).read_bytes()).decode()


def right(launch: ptx.Launch) -> bool:
    assert not launch.hazards, launch.hazards[:2]
    return True


def run_book(text: str, entry: dict, _):
    """Run one of the book's kernels."""
    how = entry["launch"]
    types = {name: how[name] for name in ("dtype", "out", "b_layout")}
    given = Problem(*MANIFEST["problem"], 0.5, -2.0, **types)
    A, B, C = given.inputs()
    exact = given.reference(A, B, C)
    function = function_of(text, entry["kernel"])
    launch = function(
        how["grid"], how["block"], arguments(given, A, B, C, NAIVE, {}), how["shared_mem"],
        races=True)
    return right(launch) and given.judge(C, exact).ok


def run_kernels(text: str, *_):
    """Run the plain kernels of kernels.cu."""
    loaded, ok = ptx.Module(text), True
    for name, tile, block in (
        ("naive", 32, (32, 32)), ("shared_tile", 32, (32, 32)), ("register_tile", 128, 256),
    ):
        a, b, c = problem(128, 128, 128)
        launch = loaded.get_function(name)(
            (128 // tile, 128 // tile), block, (128, 128, 128, 1.0, a, b, 0.0, c), races=True
        )
        ok &= right(launch) and np.allclose(c, a.astype(float) @ b.astype(float), atol=1e-4)
    return ok


def product(text, name, dtype, sizes):
    """Run a kernel of tensor.cu; returns the relative error and the launch."""
    M, N, K = sizes
    random = np.random.default_rng(0)
    if dtype == np.int8:
        a, b = random.integers(-128, 128, (M, K), dtype), random.integers(-128, 128, (N, K), dtype)
        c, exact = s32s((M, N)), a.astype(float) @ b.T.astype(float)
    else:
        a, b = (random.uniform(-1, 1, shape).astype(dtype) for shape in ((M, K), (K, N)))
        c, exact = np.full((M, N), np.nan, np.float32), a.astype(float) @ b.astype(float)
    tile, block = SHAPES.get(name, ((64, 64), 128))
    done = function_of(text, name)(
        (N // tile[0], M // tile[1]), block, (M, N, K, a, b, c), races=True)
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact)), done


def run_tensor(text: str, entry: dict, _):
    """Run the WMMA, mma.sync and cp.async kernels of tensor.cu that are for this architecture."""
    for arch, name, dtype in KERNELS:
        if arch == entry["arch"]:
            error, launch = product(text, name, dtype, (64, 64, 96))
            assert error < 1e-3 and right(launch)
    return True


def run_hopper(text: str, *_):
    """Run the TMA and wgmma kernels of hopper.cu, alone and in pairs."""
    M, N, K = 256, 128, 200
    random = np.random.default_rng(M + N + K)
    a, b = ((random.random((n, K)) - 0.5).astype(np.float16) for n in (M, N))
    for name, rows, grid in (("gemm", 128, (1, 2)), ("pair_gemm", 64, (2, 1))):
        c = np.full((M, N), np.nan, np.float32)
        maps = (ptx.tensor_map(a, (128, 64), swizzle=128),
                ptx.tensor_map(b, (rows, 64), swizzle=128))
        launch = function_of(text, name)(grid, 288, (*maps, c, M, N, K), STAGES, races=True)
        assert right(launch) and np.allclose(c, a.astype(float) @ b.astype(float).T, atol=1e-4)
    return True


def run_blocks(text: str, _, monkeypatch):
    """Run the kernels of blocks.cu, whose blocks wait for each other."""
    monkeypatch.setattr(test_blocks, "compile_kernels", lambda *_: text)
    return all(
        ok and right(launch) for launch, ok in (p(races=True) for p in test_blocks.PATTERNS)
    )


RUNS = {
    "kernels.cu": run_kernels, "tensor.cu": run_tensor, "hopper.cu": run_hopper,
    "blocks.cu": run_blocks,
}


# By night those between the oldest release and the newest, too.
@pytest.mark.parametrize("entry", [
    pytest.param(entry, id=entry["file"].removesuffix(".ptx.xz"), marks=() if entry["release"] in (
        min(RELEASES), max(RELEASES)) else pytest.mark.slow) for entry in TEXTS])
def test_each_text_runs_right(entry, monkeypatch):
    text = module(entry)
    loaded = ptx.Module(text)
    assert loaded.program.entries
    for name in loaded.program.entries:
        loaded.get_function(name)
    run = RUNS.get(entry["source"], run_book)
    assert run(text, entry, monkeypatch)
