"""The kernels behind the machine's roofs: compiled for each GPU that has them, wgmma's emulated."""

import numpy as np
import pytest

from lib import ptx
from lib.compiler.compiled import compile_file
from lib.measure.roofs import THREADS, WGMMA_N, WGMMA_SHARED, WGMMA_TILES
from lib.paths import CUDA
from lib.ptx.core.tensormap import swizzled

WGMMA = f"wgmma_chains<{THREADS}, {WGMMA_N}>"


@pytest.mark.parametrize("expression, arch", [
    (f"mma_chains<{THREADS}, 8>", "sm_75"), (f"mma_chains<{THREADS}, 16>", "sm_80"),
    (WGMMA, "sm_90a"),
])
def test_roofs_of_tensor_cores_are_products_and_nothing_that_spills(expression, arch):
    made = compile_file(CUDA / "roofs.cu", expression, arch)
    assert made.resources.spill_store_bytes == made.resources.spill_load_bytes == 0
    products = [i for i in made.inner_loop if i.base in ("HMMA", "HGMMA")]
    assert products and not any(i.base in ("LDG", "LDS", "STS") for i in made.inner_loop)


@pytest.mark.parametrize("landing", ["early", "late"])
def test_the_chain_of_wgmma_multiplies_its_tiles(landing):
    made = compile_file(CUDA / "roofs.cu", WGMMA, "sm_90a")
    halves = np.random.default_rng(0).integers(-4, 5, WGMMA_TILES // 2) / np.float16(2)
    halves = halves.astype(np.float16)
    totals = np.zeros(THREADS, np.float32)
    launch = ptx.Module(made.ptx).get_function(made.name)(
        (1,), (THREADS,), (halves, totals, np.int32(3)), shared_mem=WGMMA_SHARED, races=True,
        landing=landing,
    )
    chunks = halves.astype(float).reshape(-1, 8)

    def tile(first, rows):
        """The matrix of what lies there swizzled."""
        own = chunks[8 * first : 8 * (first + rows)]
        return own[swizzled(0, 8 * rows, 128)].reshape(rows, 64)

    b = tile(THREADS // 2, WGMMA_N)
    for group in range(THREADS // 128):
        expected = 3 * (tile(64 * group, 64) @ b.T).sum()
        assert totals[128 * group : 128 * (group + 1)].sum() == expected
    assert not launch.hazards
