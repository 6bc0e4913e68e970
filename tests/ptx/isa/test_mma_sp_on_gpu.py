"""mma.sp on a GPU and in the emulator: one text of CUDA C++ for both."""

import numpy as np
import pytest

from lib.compiler.nvrtc import compile_nvrtc
from lib.run import device

from ..conftest import function_of, run_on_gpu
from .test_mma_sp import BITS, CASES, FORMS, NAMED, architecture, cuda_source, operands, result

pytestmark = pytest.mark.gpu
# Of a factor's bits, those that are drawn, and those that are set: numbers from 1/8 to 2, of either
# sign. Below them what a tensor core may lose of a sum, by its factors; where a sum is of 16 bits
# it is rounded to those. Terms are aligned to the largest and cut off there; how far, no manual
# says, and the emulator rounds once.
DRAWN = {"f16": (0x8FFF, 0x3000), "bf16": (0x81FF, 0x3E00), "tf32": (0x81FFE000, 0x3E000000),
         "e4m3": (0x9F, 0x20), "e5m2": (0x8F, 0x30)}
LOST = {"f16": 2.0**-14, "bf16": 2.0**-14, "tf32": 2.0**-14, "e4m3": 2.0**-4, "e5m2": 2.0**-4}
LOST_OF_HALVES = 2.0**-4
FLOATS = [case for case in CASES if case[0][1] in DRAWN]


def both(form, source: str, registers: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Registers of D, of the GPU and of the emulator."""
    arch, needed = device.arch(), architecture(form)
    if int(needed.rstrip("a")) > int(arch[3:].rstrip("a")):
        pytest.skip(f"{' '.join(form[1:4])} needs sm_{needed}, and this GPU runs {arch}")
    there, here = ([one.copy() for one in registers] for _ in range(2))
    run_on_gpu(compile_nvrtc(source, [], [f"-arch={arch}"], "sparse.cu").cubin, 32, there, 0)
    virtual = arch.replace("sm_", "compute_")
    text = compile_nvrtc(source, [], [f"-arch={virtual}"], "sparse.cu").ptx.decode()
    function_of(text)(1, 32, here)
    return there[0], here[0]


@pytest.mark.parametrize("ordered", [False, True], ids=["any order", "ordered"])
@pytest.mark.parametrize("form, selector", CASES, ids=NAMED)
def test_the_same_bits_of_whole_numbers(form, selector, ordered):
    """No sum of these has more bits than the least of the accumulators."""
    a, b, c, registers = operands(form, selector, ordered, seed=11)
    theirs, mine = both(form, cuda_source(form, selector, ordered), registers)
    np.testing.assert_array_equal(result(theirs, form[3]), a @ b + c)
    assert theirs.tobytes() == mine.tobytes()


@pytest.mark.parametrize("form, selector", FLOATS, ids=lambda value: str(value))
def test_about_the_same_sums_of_floats(form, selector):
    _, a_kind, b_kind, c_kind, _ = form
    *_, registers = operands(form, selector, True, seed=13)
    random = np.random.default_rng(selector)
    for place, kind in ((1, a_kind), (2, b_kind)):
        pattern, fixed = DRAWN[kind]
        factors = registers[place].view(f"u{BITS[kind] // 8}")
        bits = random.integers(0, 1 << BITS[kind], factors.shape, dtype=np.uint64) & pattern | fixed
        factors[...] = bits.astype(factors.dtype)
    theirs, mine = (result(one, c_kind) for one in both(
        form, cuda_source(form, selector, True), registers))
    lost = LOST_OF_HALVES if c_kind == "f16" else max(LOST[a_kind], LOST[b_kind])
    np.testing.assert_allclose(theirs, mine, rtol=0, atol=lost)


@pytest.mark.parametrize("form", [form for form in FORMS if form[3] == "s32"],
                         ids=lambda form: f"k{form[0]} {' '.join(form[1:4])}")
def test_whole_numbers_are_clamped_alike(form):
    *_, registers = operands(form, 0, True, seed=17)
    registers[0][:16] = np.int32(2**31 - 9).view(np.uint32)
    registers[0][16:] = np.int32(9 - 2**31).view(np.uint32)
    theirs, mine = both(form, cuda_source(form, 0, True, ".satfinite"), registers)
    assert np.isin(mine.view(np.int32), [2**31 - 1, -2**31]).any()
    assert theirs.tobytes() == mine.tobytes()
