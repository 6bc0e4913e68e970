"""Textures and surfaces, as NVRTC makes tex.2d, tld4.r, suld.b and sust.b, against an oracle."""

import math
from functools import cache

import numpy as np
import pytest

from lib import ptx

from ..conftest import compile_text, f32s, function_of, s32s

SOURCE = r"""
extern "C" {
__global__ void one(cudaTextureObject_t t, const float* x, float* o) {
    o[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]);
}
__global__ void whole(cudaTextureObject_t t, const int* x, float* o) {
    o[threadIdx.x] = tex1Dfetch<float>(t, x[threadIdx.x]);
}
__global__ void two(cudaTextureObject_t t, const float2* x, float* o) {
    o[threadIdx.x] = tex2D<float>(t, x[threadIdx.x].x, x[threadIdx.x].y);
}
__global__ void three(cudaTextureObject_t t, const float4* x, float* o) {
    float4 v = x[threadIdx.x];
    o[threadIdx.x] = tex3D<float>(t, v.x, v.y, v.z)
                     + tex2DLayered<float>(t, v.x, v.y, max(0, (int)v.z));
}
__global__ void four(cudaTextureObject_t t, const float2* x, float4* o) {
    o[threadIdx.x] = tex2DLod<float4>(t, x[threadIdx.x].x, x[threadIdx.x].y, 0.f);
}
__global__ void bytes(cudaTextureObject_t t, const float2* x, int* o) {
    uchar4 c = tex2D<uchar4>(t, x[threadIdx.x].x, x[threadIdx.x].y);
    o[threadIdx.x] = c.x + 256 * c.y + 65536 * c.w;
}
__global__ void gather(cudaTextureObject_t t, const float2* x, float4* o) {
    o[threadIdx.x] = tex2Dgather<float4>(t, x[threadIdx.x].x, x[threadIdx.x].y, 0);
}
__global__ void surface(cudaSurfaceObject_t s, cudaSurfaceObject_t to) {
    float v;
    surf2Dread(&v, s, threadIdx.x * 4, blockIdx.x);
    surf2Dwrite(v * 2, to, (31 - threadIdx.x) * 4, blockIdx.x);
}
__global__ void outside(cudaSurfaceObject_t s, float* o, int x) {
    surf1Dread(o, s, x * 4, MODE);
}
__global__ void wide(cudaSurfaceObject_t s) {
    float4 v;
    surf3Dread(&v, s, threadIdx.x * 16, 1, 2);
    v.x += v.w;
    surf3Dwrite(v, s, threadIdx.x * 16, 0, 1);
}
}
"""


@cache
def module(mode: str = "cudaBoundaryModeTrap") -> ptx.Module:
    return ptx.Module(compile_text(SOURCE.replace("MODE", mode)))


def launch(name, *args, threads=32, grid=1, mode="cudaBoundaryModeTrap"):
    module(mode).get_function(name)(grid, threads, args)


def index(i: int, n: int, mode: str, normalized: bool) -> int | None:
    if mode == "border":
        return i if 0 <= i < n else None
    if mode == "wrap" and normalized:
        return i % n
    if mode == "mirror" and normalized:
        return i % n if i // n % 2 == 0 else n - 1 - i % n
    return min(max(i, 0), n - 1)


def oracle(a, at, mode, filter, normalized):
    """Coordinates fastest first; a's axes slowest first."""
    n = a.shape[::-1]
    x = [float(c) * (s if normalized else 1) for c, s in zip(at, n, strict=True)]

    def texel(places):
        found = [index(i, s, mode, normalized) for i, s in zip(places, n, strict=True)]
        return 0.0 if None in found else float(a[tuple(found[::-1])])

    if filter == "point":
        return texel([math.floor(c) for c in x])
    base = [math.floor(c - 0.5) for c in x]
    part = [round((c - 0.5 - b) * 256) / 256 for c, b in zip(x, base, strict=True)]
    total = 0.0
    for corner in np.ndindex(*(2,) * len(n)):
        weight = math.prod(p if c else 1 - p for c, p in zip(corner, part, strict=True))
        total += weight * texel([b + c for b, c in zip(base, corner, strict=True)])
    return total


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("name, shape", [("one", (13,)), ("two", (7, 13)), ("three", (5, 7, 13))])
def test_fetches(name, shape, mode, filter, normalized):
    random = np.random.default_rng(len(shape))
    a = random.random(shape, np.float32)
    spread = 3.0 if normalized else 3.0 * max(shape)
    x = ((random.random((32, len(shape) + (len(shape) == 3))) - 0.3) * spread).astype(np.float32)
    out = f32s(32)
    texture = ptx.Texture(a, address=mode, filter=filter, normalized=normalized)
    launch(name, texture, x, out)
    exact = [oracle(a, row[: len(shape)], mode, filter, normalized) for row in x]
    if name == "three":
        exact = [e + oracle(a[min(max(int(r[2]), 0), 4)], r[:2], mode, filter, normalized)
                 for e, r in zip(exact, x, strict=True)]
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-6)


def test_whole_coordinates_outside_are_zero():
    a, x = np.arange(1, 11, dtype=np.float32), np.arange(-10, 22, dtype=np.int32)
    out = np.full(32, 9, np.float32)
    texture = ptx.Texture(a)
    launch("whole", texture, x, out)
    assert out.tolist() == [float(i + 1) if 0 <= i < 10 else 0.0 for i in x.tolist()]


def test_channels_and_bytes():
    random = np.random.default_rng(1)
    a, b = random.random((8, 8, 4), np.float32), random.integers(0, 256, (8, 8, 4), np.uint8)
    x = (random.random((32, 2)) * 8).astype(np.float32)
    four, out = f32s((32, 4)), s32s(32)
    first, second = ptx.Texture(a, 4), ptx.Texture(b, 4)
    launch("four", first, x, four)
    launch("bytes", second, x, out)
    places = x.astype(int)
    assert (four == a[places[:, 1], places[:, 0]]).all()
    c = b[places[:, 1], places[:, 0]].astype(int)
    assert (out == c[:, 0] + 256 * c[:, 1] + 65536 * c[:, 3]).all()
    third = ptx.Texture(b, 4, read="normalized", filter="linear")
    launch("four", third, x, four)
    exact = [oracle(b[..., 0], row, "clamp", "linear", False) / 255 for row in x]
    np.testing.assert_allclose(four[:, 0], exact, rtol=1e-5, atol=1e-6)


def test_gathers():
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    x, out = np.full((32, 2), 3.2, np.float32), f32s((32, 4))
    texture = ptx.Texture(a)
    launch("gather", texture, x, out)  # around (2.7, 2.7): texels 2 and 3 of each axis
    assert out[0].tolist() == [a[3, 2], a[3, 3], a[2, 3], a[2, 2]]


def test_surfaces():
    a, b = np.arange(64, dtype=np.float32).reshape(2, 32), f32s((2, 32))
    first, second = ptx.Surface(a), ptx.Surface(b)
    launch("surface", first, second, grid=2)
    assert (b == 2 * a[:, ::-1]).all()
    c = np.random.default_rng(2).random((4, 3, 32, 4), np.float32)
    exact = c.copy()
    exact[1, 0] = exact[2, 1]
    exact[1, 0, :, 0] += exact[2, 1, :, 3]
    third = ptx.Surface(c, 4)
    launch("wide", third)
    assert (c == exact).all()


@pytest.mark.parametrize("mode, found", [("Clamp", 7.0), ("Zero", 0.0), ("Trap", None)])
def test_outside_of_a_surface(mode, found):
    surface, out = ptx.Surface(np.arange(8, dtype=np.float32)), np.full(1, 5, np.float32)
    arguments = ("outside", surface, out, np.int32(9))
    if found is None:
        with pytest.raises(ptx.OutOfBounds, match="x = 36 of a surface with 32 bytes"):
            launch(*arguments, threads=1)
    else:
        launch(*arguments, threads=1, mode=f"cudaBoundaryMode{mode}")
        assert out[0] == found


def test_what_is_wrong_is_named():
    out, x = f32s(32), f32s(32)
    with pytest.raises(ptx.Error, match="is no texture: pass a ptx.Texture"):
        launch("one", 12345, x, out)
    surface = ptx.Surface(f32s(4))
    with pytest.raises(ptx.Error, match="is no texture"):
        launch("one", surface, x, out)
    texture = ptx.Texture(f32s((4, 4)))
    with pytest.raises(ptx.Error, match="a texture of 2 axes, read with 1"):
        launch("one", texture, x, out)
    for options in ({"filter": "cubic"}, {"channels": 3}, {"read": "normalized"}):
        with pytest.raises(ValueError):
            ptx.Texture(f32s((4, 4)), **options)


DECLARED = """.version 8.0
.target sm_75
.address_size 64
{0}
.visible .entry k() {{ .reg .f32 %f<5>; .reg .b64 %r; .reg .s32 %i; mov.u32 %i, 0; {1} ret; }}
"""


@pytest.mark.parametrize("declared, used", [
    (".global .texref t;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%i}];"),
    (".global .samplerref t;", ""), (".global .surfref t;", "suld.b.1d.b32.trap {%i}, [t, {%i}];"),
    (".global .texref t;", "mov.u64 %r, t;"),
    (".tex .u64 t;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%i}];"),
])
def test_references_are_said_not_to_be_emulated_in_one_plain_line(declared, used):
    with pytest.raises(ptx.UnsupportedInstruction, match="references are not emulated; pass a tex"):
        function_of(DECLARED.format(declared, used))


@pytest.mark.parametrize("query", ["txq.width.b32 %i, [%r];", "suq.height.b32 %i, [%r];"])
def test_queries_are_said_not_to_be_emulated(query):
    with pytest.raises(ptx.UnsupportedInstruction, match=f"{query[:3]} is not emulated") as said:
        function_of(DECLARED.format("", query))
    assert "It has" not in str(said.value) and "\n" not in str(said.value)
