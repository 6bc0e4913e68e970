"""Tensor copies in im2col mode, against lists of all the places that a filter takes.

The instructions stand in CUDA C++ as inline PTX, which ptxas assembles.
"""

import itertools
from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.compiler.nvrtc import compile_nvrtc
from tests.tables import cases, numbers, rows, settings

from ..conftest import compile_text, each_landing, f32s, function_of

HEAD = """
struct alignas(64) Map { char bytes[128]; };
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
struct Place { int c, w, h, d, n, ow, oh, od; };
"""
BYTES = 1 << 15


def coordinates(rank: int, at: int) -> tuple[str, str, str]:
    """Coordinates and offsets as operands from %at on, and the values that they are given."""
    names = ["c", "w", *"hd"[: rank - 3], "n"]
    given = ", ".join(f'"r"(p.{name})' for name in names)
    offsets = ", ".join(f'"h"((unsigned short)p.o{name})' for name in "whd"[: rank - 2])
    first = ", ".join(f"%{at + i}" for i in range(rank))
    second = ", ".join(f"%{at + rank + i}" for i in range(rank - 2))
    return first, second, f"{given}, {offsets}"


def source(rank: int) -> str:
    """Kernels that load a column of pixels and write it out, and that store or add one."""
    first, offsets, given = coordinates(rank, 3)
    plain = given[: given.index('"h"') - 2]
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col"
    into = f"{copy}.mbarrier::complete_tx::bytes"
    out = f"async.bulk.tensor.{rank}d.global.shared::cta"
    to, _, _ = coordinates(rank, 2)
    return HEAD + f"""
extern "C" __global__ void load(const __grid_constant__ Map map, const __grid_constant__ Place p,
                                unsigned* to, int bytes) {{
    __shared__ alignas(1024) unsigned tile[{BYTES // 4}];
    __shared__ alignas(8) unsigned long long bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) {{
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(b), "r"(bytes));
        asm volatile("{into} [%0], [%1, {{{first}}}], [%2], {{{offsets}}};"
                     :: "r"(shared_address(tile)), "l"(&map), "r"(b), {given} : "memory");
    }}
    __syncthreads();
    int done = 0;  // a GPU that copies less than it is expected to must not hang
    for (int turn = 0; !done && turn < 1 << 14; turn++)
        asm volatile("{{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.s32 %0, 1, 0, p;}}" : "=r"(done) : "r"(b) : "memory");
    if (!done) return;
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) to[i] = tile[i];
}}
""" + "".join(f"""
extern "C" __global__ void {name}(const __grid_constant__ Map map, const __grid_constant__ Place p,
                                  const unsigned* from, int bytes) {{
    __shared__ alignas(1024) unsigned tile[{BYTES // 4}];
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) tile[i] = from[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {{
        asm volatile("{opcode} [%0, {{{to}}}], [%1];"
                     :: "l"(&map), "r"(shared_address(tile)), {plain} : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }}
}}
""" for name, opcode in (("store", f"cp.{out}.im2col_no_offs.bulk_group"),
                         ("add", f"cp.reduce.{out}.add.im2col_no_offs.bulk_group")))


@cache
def module(rank: int) -> ptx.Module:
    return ptx.Module(compile_text(source(rank), "compute_90a"))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_ptxas_takes_the_instructions(rank):
    assert compile_nvrtc(source(rank), [], ["-arch=sm_90a"], "im2col.cu")


def place(c=0, w=0, h=0, d=0, n=0, ow=0, oh=0, od=0) -> bytes:
    return np.array([c, w, h, d, n, ow, oh, od], np.int32).tobytes()


def place_of(at, c, offsets) -> bytes:
    """A place of a case, (n, ..., w)."""
    axes = dict(zip("whd", at[:0:-1], strict=False))
    shifts = {f"o{axis}": by for axis, by in zip("whd", offsets[::-1], strict=False)}
    return place(c=c, n=at[0], **axes, **shifts)


def images(shape, dtype=np.float32) -> np.ndarray:
    """Whole numbers from 1 on, all different where the type holds them."""
    many = np.arange(1, int(np.prod(shape)) + 1)
    return (many % 1021 if dtype is np.float16 else many).astype(dtype).reshape(shape)


def expected(array, lower, upper, channels, pixels, strides, at, c, offsets, empty=0):
    """Walk through all places of the filter, image by image; `at` is one of them, (n, ..., w)."""
    axes = [
        range(low, extent + high, stride)
        for low, high, stride, extent in zip(lower, upper, strides, array.shape[1:-1], strict=True)
    ]
    every = list(itertools.product(range(at[0] + pixels), *axes))
    first = every.index(at)
    out = np.full((pixels, channels), empty, array.dtype)
    for row, (n, *where) in enumerate(every[first : first + pixels]):
        pixel = (n, *(one + offset for one, offset in zip(where, offsets, strict=True)))
        if any(not 0 <= i < size for i, size in zip(pixel, array.shape, strict=False)):
            continue
        for i in range(channels):
            if 0 <= c + i < array.shape[-1]:
                out[row, i] = array[pixel][c + i]
    return out


# Shape, corners, channels and pixels, strides, the filter's place (n, ..., w), C and offsets.
LOADS = {name: (*map(numbers, (shape, lower, upper)), channels, pixels, numbers(strides),
                numbers(at), c, numbers(offsets))
         for name, shape, lower, upper, channels, pixels, strides, at, c, offsets in rows("""
the manual's first example | 6 14 9 64 | -1 -1 | -1 -1 | 8  | 64 | 1 1 | 4 7 7 | 0 | 0 0
its second                 | 6 14 9 64 | 0 0   | -2 -2 | 8  | 64 | 1 1 | 4 7 5 | 16 | 2 2
its third, every other     | 6 14 8 64 | -1 -1 | -1 -1 | 16 | 32 | 2 2 | 3 7 5 | 16 | 1 1
a filter with padding      | 2 6 7 8   | -1 -1 | -1 -1 | 8  | 50 | 1 1 | 0 -1 -1 | 0 | 2 0
past the last image        | 2 3 4 16  | 0 0   | 0 0   | 16 | 40 | 1 1 | 1 1 2 | 0 | 0 0
past the last channel      | 2 3 4 12  | 0 0   | 0 0   | 8  | 10 | 1 1 | 0 0 0 | 8 | 0 0
before the first channel   | 2 3 4 12  | 0 0   | 0 0   | 8  | 10 | 1 1 | 0 0 0 | -4 | 0 0
rows                       | 3 20 16   | -2    | 1     | 16 | 33 | 3   | 0 7   | 0 | 5
volumes                    | 2 4 5 6 8 | -1 0 -2 | -1 1 0 | 4 | 90 | 2 1 3 | 0 1 2 1 | 4 | 1 0 2
""")}


@each_landing
@pytest.mark.parametrize("case", LOADS.values(), ids=LOADS)
def test_loads(case, landing):
    shape, lower, upper, channels, pixels, strides, at, c, offsets = case
    array = images(shape)
    made = ptx.im2col_map(array, lower, upper, channels, pixels, (1, *strides, 1))
    want = expected(array, lower, upper, channels, pixels, strides, at, c, offsets)
    out = f32s((pixels, channels))
    launch = module(len(shape)).get_function("load")(
        1, 64, (made, place_of(at, c, offsets), out, out.nbytes),
        races=True, landing=landing,
    )
    np.testing.assert_array_equal(out, want)
    assert want.any() and not launch.hazards
    (site,) = (s for s in launch.trace.sites if s.kind == "bulk load")
    touched = set((np.flatnonzero(np.isin(array, want[want != 0])) * 4 // 32).tolist())
    assert (site.requests, site.sectors) == (1, len(touched))


@pytest.mark.parametrize("name", ["store", "add"])
def test_stores(name):
    array = images((2, 5, 6, 16))
    before = array.copy()
    made = ptx.im2col_map(array, (1, 0), (-1, -2), 8, 20, (1, 2, 1, 1))
    data = np.random.default_rng(1).integers(1, 99, (20, 8)).astype(np.float32)
    launch = module(4).get_function(name)(
        1, 64, (made, place(c=8, w=2, h=3, n=0), data, data.nbytes), races=True
    )
    want = before.copy()
    for row, (n, h, w) in enumerate([*itertools.product(range(9), (1, 3), range(4))][6:26]):
        if n < 2:
            want[n, h, w, 8:] = data[row] + (want[n, h, w, 8:] if name == "add" else 0)
    np.testing.assert_array_equal(array, want)
    assert (want != before).any() and not launch.hazards


def test_a_store_reads_only_what_it_stores():
    """Shared memory that nobody wrote stops it, but not where the pixels are past the last."""
    text = source(4).replace("tile[i] = from[i];", "if (i < 32) tile[i] = from[i];")
    function = function_of(compile_text(text, "compute_90a"), "store")
    array, data = images((1, 2, 2, 8)), np.ones((20, 8), np.float32)
    made = ptx.im2col_map(array, (0, 0), (0, 0), 8, 20)
    function(1, 64, (made, place(), data, data.nbytes))
    assert (array == 1).all()
    larger = ptx.im2col_map(images((1, 2, 3, 8)), (0, 0), (0, 0), 8, 20)
    with pytest.raises(ptx.UninitialisedRead, match="was never written"):
        function(1, 64, (larger, place(), data, data.nbytes))


@cases("""
message                                                | given
outside of the bounding box from -1 to 4               | w=5
along H, outside                                       | h=-2
the im2col offset 256; with 4 dimensions it is 0 to 255 | ow=256
multiple of 16 bytes                                   | c=2
""")
def test_places_that_are_undefined(message, given):
    made = ptx.im2col_map(images((2, 5, 6, 16)), (-1, -1), (-1, -1), 8, 20)
    out = f32s((20, 8))
    with pytest.raises(ptx.Error, match=message):
        module(4).get_function("load")(1, 64, (made, place(**settings(given)), out, out.nbytes))


def test_a_store_has_to_stay_inside():
    array = images((2, 5, 6, 16))
    made, data = ptx.im2col_map(array, (-1, 0), (0, 0), 8, 20), np.ones((20, 8), np.float32)
    with pytest.raises(ptx.Error, match="inside of the tensor"):
        module(4).get_function("store")(1, 64, (made, place(), data, data.nbytes))


def test_instructions_and_maps_of_two_modes():
    array, out = images((2, 5, 6, 16)), f32s((20, 8))
    tiled = ptx.tensor_map(array, (1, 4, 5, 8))
    with pytest.raises(ptx.Error, match="in im2col mode, the tensor map is not"):
        module(4).get_function("load")(1, 64, (tiled, place(), out, out.nbytes))
    text = source(4).replace("global.im2col.", "global.tile.").replace(
        ", {%7, %8}", "").replace(', "h"((unsigned short)p.ow), "h"((unsigned short)p.oh)', "")
    made = ptx.im2col_map(array, (-1, -1), (-1, -1), 8, 20)
    with pytest.raises(ptx.Error, match="in tile mode, the tensor map is not"):
        function_of(compile_text(text, "compute_90a"), "load")(
            1, 64, (made, place(), out, out.nbytes)
        )


def test_how_many_offsets():
    text = compile_text(source(4), "compute_90a").replace(".4d.shared", ".5d.shared")
    with pytest.raises(ptx.ParseError, match="2 im2col offsets for 5 dimensions"):
        function_of(text, "load")


REFUSED = {message: settings(changed) for message, changed in rows("""
3 to 5 dimensions, not 2              | shape=4 16
may be -128 to 127                    | lower=-129 0
the bounding box is empty: from 2 to 1 | lower=0 2, upper=0 -4
moves 257 channels                    | channels=257
moves 1025 pixels                     | pixels=1025
12 bytes; it must be a multiple of 16 | channels=3
with a swizzle of 32 bytes            | channels=16, swizzle=32
the first axis, N, must be 1          | element_strides=2 1 1 1
the last axis must be 1               | element_strides=1 1 1 2
it may be 1 to 8                      | element_strides=1 9 1 1
lower .* must be 2 whole numbers      | lower=0
must be a multiple of 16              | shape=2 5 6 18
fill 'nan' needs floating-point       | dtype=i4, fill=nan
""")}


def asked(shape=(2, 5, 6, 16), dtype="f4", **changed):
    """What a map is asked for; of rows of 18 the first 16 elements."""
    given = dict(array=images(shape, dtype)[..., :16], lower=(0, 0), upper=(-2, -2), channels=8,
                 pixels=20)
    return given | changed


@pytest.mark.parametrize("message, changed", REFUSED.items(), ids=REFUSED)
def test_maps_that_the_driver_would_refuse(message, changed):
    with pytest.raises(ValueError, match=message):
        ptx.im2col_map(**asked(**changed))


def test_a_map_of_an_array_alone():
    assert ptx.im2col_map(**asked()).nbytes == 20 * 8 * 4
    with pytest.raises(ValueError, match="needs a NumPy array"):
        ptx.im2col_map(**asked() | {"array": memoryview(images((2, 5, 6, 16)))})
