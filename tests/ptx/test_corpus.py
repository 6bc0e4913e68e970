"""PTX of several releases of NVRTC: each text is read, decoded and runs right.

The corpus holds PTX of 12.1 to 13.x; `python -m tests.ptx.make_corpus` makes it anew.
"""

import json
import lzma

import numpy as np
import pytest

from lib import ptx
from lib.problem import Problem
from lib.run.prepared import arguments

from . import test_hopper, test_tensor_kernels
from .conftest import function_of, problem
from .make_corpus import CORPUS, MAX_BYTES, RELEASES
from .race import test_blocks

MANIFEST = json.loads((CORPUS / "corpus.json").read_text())
TEXTS = MANIFEST["texts"]


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
        how["grid"], how["block"], arguments(given, A, B, C), how["shared_mem"], races=True
    )
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


def run_tensor(text: str, entry: dict, monkeypatch):
    """Run the WMMA, mma.sync and cp.async kernels of tensor.cu that are for this architecture."""
    monkeypatch.setattr(test_tensor_kernels, "compile_kernels", lambda *_: text)
    for arch, name, dtype in test_tensor_kernels.KERNELS:
        if arch == entry["arch"]:
            error, launch = test_tensor_kernels.product(arch, name, dtype, (64, 64, 96), races=True)
            assert error < 1e-3 and right(launch)
    return True


def run_hopper(text: str, *_):
    """Run the TMA and wgmma kernels of hopper.cu, alone and in pairs."""
    for name in ("gemm", "pair_gemm"):
        launch, c, exact = test_hopper.product(name, (256, 128, 200), text=text, races=True)
        assert right(launch) and np.allclose(c, exact, atol=1e-4)
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


def test_the_corpus_is_whole_and_small():
    files = {path.name for path in CORPUS.iterdir()}
    assert files == {entry["file"] for entry in TEXTS} | {"corpus.json"}
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) < MAX_BYTES
    assert {entry["release"] for entry in TEXTS} == set(RELEASES)
    versions = {ptx.Module(module(e)).program.version for e in TEXTS if "01_naive" in e["file"]}
    assert len(versions) == len(RELEASES)
