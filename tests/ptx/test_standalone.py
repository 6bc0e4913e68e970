"""The emulator alone: it runs when copied out, with NumPy only; its indices fit 32-bit machines."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .narrow_intp import PTX, narrowable

ROOT = Path(__file__).parents[2]
KERNEL = """
import sys, numpy, numpy.random, numpy.typing
before = set(sys.modules)
import {name} as emulator
text = '''.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n) {{
    .reg .pred %p; .reg .b32 %t, %n, %v; .reg .b64 %x;
    mov.u32 %t, %tid.x; ld.param.u32 %n, [n]; setp.ge.u32 %p, %t, %n; @%p bra END;
    ld.param.u64 %x, [x]; mad.wide.u32 %x, %t, 4, %x;
    ld.global.u32 %v, [%x]; add.u32 %v, %v, %v; st.global.u32 [%x], %v;
    END: ret;
}}'''
x = numpy.arange(48, dtype=numpy.uint32)
launch = emulator.Module(text).get_function("twice")(1, 64, (x, numpy.uint32(40)), races=True)
assert x.tolist() == [2 * i if i < 40 else i for i in range(48)] and not launch.hazards
print(launch.trace.counters()["global_load_sectors"])
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def test_a_copy_under_another_name_runs_a_kernel(tmp_path):
    shutil.copytree(PTX, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", KERNEL.format(name="elsewhere")], cwd=tmp_path,
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    sectors, modules = done.stdout.splitlines()
    assert sectors == "5"
    assert set(modules.split()) - set(sys.stdlib_module_names) == {"elsewhere"}


# -- 32-bit machines ------------------------------------------------------------------------------

# Whole kernels of each family, and tests of what no whole kernel has.
NARROW = ("test_corpus.py", "isa/test_wmma.py", "isa/test_atom_red.py", "isa/test_opcodes.py",
          "isa/test_mma_sp.py", "isa/test_im2col.py", "isa/test_tcgen05.py",
          "isa/test_tcgen05_pair.py", "isa/test_tcgen05_scaled.py",
          "isa/test_clusterlaunchcontrol.py")
CHOSEN = (
    "13.5_06_vectorized or 13.5_tensor_80 or 13.5_hopper or 13.5_blocks or test_pairs_of_halves or "
    "test_vectors or prmt or (shape10 and f16 and global) or (k64 and dense) or volumes or "
    "test_stores or test_a_second_mma_adds or what_renews or loads_and_stores or "
    "left_out_and_shifted or a_in_tensor_memory or multicast_signals or test_single_coordinates or "
    "(test_products and mxf4nvf4)"
)


@pytest.mark.skipif(not narrowable(), reason="C has one type of 64 bits here")
def test_no_index_is_wider_than_32_bits():
    """Addresses have 64 bits, indices those of a pointer: 32 on WebAssembly."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.ptx.narrow_intp", "-q", "-x", "-k", CHOSEN,
         *(f"tests/ptx/{name}" for name in NARROW)],
        cwd=ROOT, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.skipif(not narrowable(), reason="C has one type of 64 bits here")
def test_an_index_that_is_too_wide_is_refused():
    code = """
import tests.ptx.narrow_intp as narrow
np = narrow.narrow()
places = np.zeros(4, np.int64) + np.arange(4)
narrow.check(places.astype(np.intp))
for use in (lambda: np.zeros(9)[places], lambda: np.zeros(9).take(places >> 1),
            lambda: np.bincount(places)):
    try:
        use()
    except narrow.WideIndex:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["refused"] * 3, done.stderr
