"""The maps of registers that the explorer shows, against runs of the instructions in the emulator:
operands laid out by the maps, results read by them, and the product must be NumPy's."""

import numpy as np
import pytest

from lib import ptx
from lib.show import fragment_maps as model
from lib.show.fragment_maps import LOADS, WGMMA_COLUMNS, maps
from tests.ptx.conftest import lanewise
from tests.ptx.isa.test_mma_ldmatrix import encoded
from tests.ptx.isa.test_tcgen05 import stored_and_loaded
from tests.ptx.isa.test_wgmma import kernel as wgmma_kernel
from tests.tables import cases


def into_registers(one, values, warps=1):
    """A matrix as lanes hold it by a map: (registers, 32 · warps) words of 32 bits."""
    parts = np.arange(one.packed)
    found = []
    for warp in range(warps):
        part = values[16 * warp : 16 * warp + 16] if warps > 1 else values
        rows = one.rows[..., None] + (parts if one.down else 0 * parts)
        columns = one.columns[..., None] + (0 * parts if one.down else parts)
        found.append(np.ascontiguousarray(part[rows, columns]).view(np.uint32)[..., 0])
    return np.concatenate(found, axis=1)


def out_of_registers(one, words, dtype, shape, warps=1):
    """Undo `into_registers`."""
    out = np.zeros(shape, dtype)
    parts = np.arange(one.packed)
    for warp in range(warps):
        part = np.ascontiguousarray(words[:, 32 * warp : 32 * warp + 32])
        rows = 16 * warp + one.rows[..., None] + 0 * parts
        out[rows, one.columns[..., None] + parts] = part.view(np.uint32)[..., None].view(dtype)
    return out


CASES = [
    ("mma.m16n8k8, FP16 or BF16", "m16n8k8", "f16", "f32", 2),
    ("mma.m16n8k8, FP16 or BF16", "m16n8k8", "f16", "f16", 3),
    ("mma.m16n8k16, FP16 or BF16", "m16n8k16", "bf16", "f32", 2),
    ("mma.m16n8k16, FP16 or BF16", "m16n8k16", "f16", "f16", 3),
    ("mma.m16n8k8, TF32", "m16n8k8", "tf32", "f32", 2),
    ("mma.m16n8k32, FP8 or INT8", "m16n8k32", "s8", "s32", 2),
    ("mma.m16n8k32, FP8 or INT8", "m16n8k32", "e4m3", "f32", 2),
]


@pytest.mark.parametrize("name, shape, kind, result, of_c", CASES)
def test_an_mma_of_operands_laid_out_by_the_maps_is_the_product(name, shape, kind, result, of_c):
    a, b, d = maps()[name][0], maps()[name][1], maps()[name][of_c]
    rng = np.random.default_rng(3)
    deep = a.shape[1]
    A, B = (rng.integers(-4, 5, each).astype(float) for each in ((16, deep), (deep, 8)))
    words = [np.ascontiguousarray(into_registers(one, encoded(values, kind)).T)
             for one, values in ((a, A), (b, B))]
    c = np.zeros((32, len(d.rows)), np.uint32)
    out = np.zeros_like(c)
    lanewise(f"mma.sync.aligned.{shape}.row.col.{result}.{kind}.{kind}.{result} D, A, B, C;",
             out, *words, c)
    dtype = {"f32": np.float32, "s32": np.int32, "f16": np.float16}[result]
    found = out_of_registers(d, out.T, dtype, (16, 8))
    assert np.array_equal(found, A @ B)


@cases("""
name                         | shape      | kinds         | of_d
wgmma.m64nNk16, FP16 or BF16 | m64n256k16 | f32.f16.f16   | 1
wgmma.m64nNk16, FP16 or BF16 | m64n64k16  | f16.f16.f16   | 2
wgmma.m64nNk8, TF32          | m64n64k8   | f32.tf32.tf32 | 1
wgmma.m64nNk32, FP8 or INT8  | m64n128k32 | s32.s8.s8     | 1
""")
def test_a_wgmma_of_an_a_laid_out_by_the_map_is_the_product(name, shape, kinds, of_d):
    """A from registers, B without a swizzle in shared memory; D read by the map, of any N."""
    a, d = maps()[name][0], maps()[name][of_d]
    result, kind, _ = kinds.split(".")
    n, deep = int(shape[4:].partition("k")[0]), a.shape[1]
    rng = np.random.default_rng(4)
    A, B = (rng.integers(-4, 5, each).astype(float) for each in ((64, deep), (n, deep)))
    bits = encoded(B, kind)
    image = np.zeros(32 * n, np.uint8)  # core matrices of 8 rows; the second 16 bytes of K behind
    image[:] = bits.view(np.uint8).reshape(n, 2, 16).transpose(1, 0, 2).ravel()
    count = n * d.shape[0] * 4 // (128 * d.packed)
    text = wgmma_kernel(shape, kinds, count, result, True, ", 1, 1, 0" if kind == "f16" else
                        ", 1, 1" if result != "s32" else "")
    out = np.zeros((count, 128), np.uint32)
    descriptor = 16 * n >> 4 << 16 | 128 >> 4 << 32
    ptx.Module(text).get_function("k")(1, 128, (
        image, into_registers(a, encoded(A, kind), 4), out, np.uint64(0), np.uint64(descriptor),
        np.uint32(1), np.uint32(len(image))), len(image))
    narrow = model.Map(d.matrix, d.kind, d.packed, d.down, d.rows[:count], d.columns[:count], "")
    dtype = {"f32": np.float32, "s32": np.int32, "f16": np.float16}[result]
    assert np.array_equal(out_of_registers(narrow, out, dtype, (64, n), 4), A @ B.T)
    assert narrow.shape == (16, n) and d.shape == (16, WGMMA_COLUMNS)


@pytest.mark.parametrize("name", LOADS)
def test_a_load_of_tensor_memory_brings_the_words_of_the_map(name):
    [one] = maps()[name]
    shape, repeats = LOADS[name]
    found = stored_and_loaded(shape, repeats, 1, False)  # word c of lane l is 65793 l + 77777 c + 1
    for warp in range(4):
        for register in range(len(one.rows)):
            lanes = 32 * warp + one.rows[register]
            wanted = lanes * 65793 + one.columns[register] * 77777 + 1
            assert np.array_equal(found[32 * warp : 32 * warp + 32, register], wanted)


@pytest.mark.parametrize("name", [name for name in maps() if name.startswith("mma")])
def test_the_picture_names_the_lane_and_the_registers_of_each_element(name):
    found = model.picture(name, "modelled: x")
    for one in maps()[name]:
        cells = one.shape[0] * one.shape[1] // one.packed
        assert cells == one.rows.size and one.matrix in found.text
    said = found.text.split(maps()[name][0].matrix + ",")[-1]
    assert all(f" r{register} " in said for register in range(len(maps()[name][0].rows)))


def test_the_page_is_given_sums_that_are_the_maps():
    for name, each in model.choices().items():
        for made, one in zip(each, maps()[name], strict=True):
            for axis, wanted in (("row", one.rows), ("column", one.columns)):
                register, lane = map(np.array, made[axis])
                assert np.array_equal(register[:, None] + lane, wanted)
            assert tuple(made["shape"]) == one.shape


def test_two_results_of_an_mma_in_fp16_are_the_a_of_another():
    a, _, _, d = maps()["mma.m16n8k16, FP16 or BF16"]
    for half in range(2):  # the eight columns of D behind the first eight are those of A
        registers = slice(2 * half, 2 * half + 2)
        assert np.array_equal(a.rows[registers], d.rows)
        assert np.array_equal(a.columns[registers], d.columns + 8 * half)
