"""Tensor maps wherever a kernel finds them: parameters, structures, memory, constants."""

import gc
from functools import cache

import numpy as np
import pytest

from lib import ptx

from .conftest import compile_text, f32s

SOURCE = r"""
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
struct Params { int x; float scale; CUtensorMap map; int y; };
__constant__ CUtensorMap constant;

__device__ __forceinline__ void copied(const CUtensorMap* map, int x, int y, float scale,
                                       float* out) {
    __shared__ alignas(128) float tile[8][16];
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = __cvta_generic_to_shared(&bar), t = __cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(b));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(t), "l"(map), "r"(x), "r"(y), "r"(b) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
                 " @!p bra W;}" :: "r"(b) : "memory");
    for (int i = threadIdx.x; i < 128; i += 32) out[i] = tile[i / 16][i % 16] * scale;
}
extern "C" __global__ void structure(const __grid_constant__ Params p, float* out) {
    copied(&p.map, p.x, p.y, p.scale, out);
}
extern "C" __global__ void pointer(const CUtensorMap* maps, float* out, int i) {
    copied(maps + i, 4, 2, 1, out);
}
extern "C" __global__ void constants(float* out) { copied(&constant, 4, 2, 1, out); }
"""


@cache
def text():
    return compile_text(SOURCE, "compute_90a")


def matrix():
    a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    return a, ptx.tensor_map(a, (8, 16)), a[2:10, 4:20]


def launch(name, args, module=None):
    module = module or ptx.Module(text())
    return module.get_function(name)(1, 32, args, races=True)


def test_in_a_structure():
    _, tensor_map, box = matrix()
    kind = np.dtype({"names": ["x", "scale", "map", "y"], "formats": ["i4", "f4", "V128", "i4"],
                     "offsets": [0, 4, 64, 192], "itemsize": 256})
    out = f32s((8, 16))
    given = np.zeros((), kind)
    given["x"], given["y"], given["scale"], given["map"] = 4, 2, 3, bytes(tensor_map)
    assert not launch("structure", (given, out)).hazards
    assert (out == 3 * box).all()


def test_through_a_pointer():
    a, tensor_map, box = matrix()
    other = ptx.tensor_map(a + 1, (8, 16))
    maps = np.frombuffer(bytes(other) + bytes(tensor_map), np.uint8)
    out = f32s((8, 16))
    for i, more in ((1, 0), (0, 1)):
        assert not launch("pointer", (maps, out, i)).hazards
        assert (out == box + more).all()


def test_in_constant_memory():
    _, tensor_map, box = matrix()
    module, out = ptx.Module(text()), f32s((8, 16))
    module.get_global("constant")[:] = np.frombuffer(bytes(tensor_map), np.uint8)
    assert not launch("constants", (out,), module).hazards
    assert (out == box).all()


@pytest.mark.parametrize("shift", [0, 16])
def test_what_is_no_map(shift):
    _, tensor_map, _ = matrix()
    data = bytes(tensor_map) if shift else bytes(128)
    maps = np.frombuffer(bytes(shift) + data + bytes(128), np.uint8)[shift:]
    with pytest.raises(ptx.Error, match="no tensor map at address .*bytes\\(tensor_map\\)"):
        launch("pointer", (maps, f32s(128), 0))


def test_a_map_that_is_gone():
    data = np.frombuffer(bytes(matrix()[1]), np.uint8)
    gc.collect()
    with pytest.raises(ptx.Error, match="keep the tensor map"):
        launch("pointer", (data, f32s(128), 0))
