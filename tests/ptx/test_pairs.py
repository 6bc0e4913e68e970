"""A GEMM of pairs of blocks, with TMA: right, silent, and what is left out of it is found."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from lib import ptx
from lib.compiler.raw_module import RawModule
from lib.kernels.source import edited
from lib.paths import CUDA
from lib.ptx.mutants import SETTINGS

from .conftest import function_of, kinds

SOURCE = Path(__file__).parent / "pairs.cu"
LAST_WAITS = """
        for (int i = K / 64; i < K / 64 + STAGES; ++i)  // the last commits arrive in both blocks
            mbarrier_wait(freed + 8 * (i % STAGES), (i / STAGES + 1) & 1);"""


@lru_cache
def compiled():
    module = RawModule(
        path=SOURCE, name_expressions=["pair_gemm<64, 2>"], arch="sm_100a",
        options=(f"-I{CUDA / 'include'}", "-lineinfo"),
    )
    return module.ptx, module.get_function("pair_gemm<64, 2>").name


def run(m=256, n=128, k=320, change=lambda text: text, **options):
    """Launch; returns the launch, and whether C is right."""
    text, name = compiled()
    rng = np.random.default_rng(5)
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, np.float32)
    maps = (ptx.tensor_map(a.view(np.uint16), (128, 64), swizzle=128),
            ptx.tensor_map(b.view(np.uint16), (32, 64), swizzle=128))
    launch = function_of(change(text), name)(
        2 * (m // 256) * (n // 64), 128, (n, k, *maps, c), 1024 + 2 * (128 + 32) * 128,
        trace=False, **options)
    return launch, bool(np.allclose(c, a.astype(float) @ b.astype(float).T, atol=4e-3))


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_two_tiles_of_five_steps(options):
    launch, right = run(races=True, **options)
    assert right and not launch.hazards


def test_each_block_signals_the_barrier_of_the_first():
    """Without the mask, the second block's bytes come to its own barrier: the first waits."""
    assert "-16777224" in compiled()[0]  # the mask, less the bits that a multiple of 8 lacks
    with pytest.raises(ptx.Deadlock):
        run(change=lambda text: text.replace("-16777224", "-8"), landing="late")


def test_the_barrier_of_another_block_needs_the_group():
    with pytest.raises(ptx.Error, match="or with .cta_group::2 the other one of its pair"):
        run(change=lambda text: text.replace("tensor.2d.cta_group::2.", "tensor.2d."))


def test_a_buffer_of_the_peer_refilled_early():
    """Who loads in the second block waits for nothing: the first one's mma may still read."""
    text, _ = compiled()
    waits = [line for line in text.splitlines() if "mbarrier.try_wait" in line]
    with pytest.raises(ptx.Deadlock) as stopped:
        run(change=lambda text: _at_once(text, waits[0]), races=True)
    assert {"race", "mbarrier"} & kinds(stopped.value)


def test_a_block_that_ends_before_a_commit_has_come():
    """Who has waited for a later commit knows that the work is done, not that the arrival came."""
    module = RawModule(
        code=edited(SOURCE.read_text(), LAST_WAITS, ""), name_expressions=["pair_gemm<64, 2>"],
        arch="sm_100a", options=(f"-I{CUDA / 'include'}", "-lineinfo"),
    )
    launch, right = run(change=lambda text: module.ptx, races=True)
    assert right and kinds(launch) == {"block exited"}


def _at_once(text, line):
    """Let the first wait of the kernel be over at once."""
    predicate = line.split()[1].rstrip(",")
    return text.replace(line, f"setp.eq.u32 {predicate}, 0, 0;", 1)
