"""Textures and surfaces: tex, tld4, suld, sust, on one level of detail.

Their accesses go through the texture unit: they are not counted, nor looked at for races.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Reader, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error, OutOfBounds
from ..core.registers import DTYPES, UNSIGNED, unstacked
from ..core.syntax import SIZES, Address, Operand, Register, Symbol
from ..core.texture import Surface, Texture, object_of

Places = Callable[["Batch", Surface, ndarray], tuple[ndarray, ndarray]]
GEOMETRIES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True),
              "a2d": (2, True)}


def _place(d: Decoding, operand: int, whole: bool) -> tuple[int, Reader | None, list[Reader]]:
    """Read ``[object, {coordinates}]``: the handle's slot, readers of the layer and coordinates."""
    geometry = d.one_of(GEOMETRIES, "geometries")
    rank, layered = GEOMETRIES[geometry]
    given = d.operands[operand]
    if isinstance(given, Address) and isinstance(given.base, Symbol):
        d.unsupported("texture and surface references are not emulated; pass a texture object "
                      "(cudaTextureObject_t) as an argument")
    if (not isinstance(given, Address) or not isinstance(given.base, Register)
            or len(given.coordinates) != 1):
        d.unsupported("[object, {coordinates}] with the object in a register")
    items = d.vector(given.coordinates[0])
    if len(items) < rank + layered:
        d.wrong(f"{len(items)} coordinates for .{geometry}")
    layer = d.read(items[0], "u32") if layered else None
    kind = "s32" if whole else "f32"
    return given.base.slot, layer, [d.read(i, kind) for i in items[layered : layered + rank]]


def _each_object(
    f: Batch, slot: int, kind: type, d: Decoding
) -> Iterator[tuple[Any, ndarray]]:
    """Yield each object that active lanes name, and the lanes, bool (blocks, threads)."""
    handles = f.full(f.r[slot])
    active = f.active_lanes
    for handle in np.unique(handles[active]).tolist():
        found = object_of(handle)
        lanes = active & (handles == handle)
        if not isinstance(found, kind):
            raise Error(
                f"{d.place}: {handle:#x} is no {kind.__name__.lower()}: pass a "
                f"ptx.{kind.__name__} and keep it: {f.lane_names(lanes)}"
            )
        yield found, lanes


def _sampled(d: Decoding, read: Callable[..., ndarray]) -> Run:
    """Make the step that gives each lane four values of a texture; `read` is asked for them."""
    targets = d.vector(0)
    to, whole = d.types[0], d.types[1] == "s32"
    if len(targets) not in (1, 2, 4) or to not in ("f32", "s32", "u32"):
        d.unsupported("results are one to four of f32, s32 or u32")
    put = d.write_all(targets, to)
    slot, layer, reads = _place(d, 1, whole)
    dtype = DTYPES[to]

    def step(f: Batch) -> None:
        result = np.zeros((*f.shape, 4), dtype)
        for texture, lanes in _each_object(f, slot, Texture, d):
            rank = len(reads) + (layer is not None)
            if len(texture.sizes) != rank:
                raise Error(
                    f"{d.place}: a texture of {len(texture.sizes)} axes, read with {rank}"
                )
            at = [f.full(one(f.r))[lanes].astype(np.int64 if whole else np.float32)
                  for one in reads]
            which = None
            if layer is not None:
                which = f.full(layer(f.r))[lanes].astype(np.int64)
            values = read(texture, at, which, whole)
            if (values.dtype.kind == "f") != (dtype.kind == "f"):
                raise Error(
                    f"{d.place}: reads .{to} of a texture whose elements are {values.dtype}"
                )
            result[lanes] = 0, 0, 0, 1
            result[lanes, : values.shape[-1]] = values.astype(dtype)
        put(f.r, unstacked(result[..., : len(targets)]))

    return step


@opcode("tex")
def sample(d: Decoding) -> Run:
    """tex{.base|.level|.grad}.geometry.v4.dtype.ctype {d}, [object, {coordinates}]{, level}"""
    d.only(*GEOMETRIES, ".v2.v4.level.base.grad").count(2, 3, 4)
    if len(d.types) != 2:
        d.wrong("tex needs the types of results and coordinates")

    return _sampled(d, lambda texture, at, layer, whole: (
        texture.element if whole else texture.fetch)(at, layer))


@opcode("tld4")
def gather(d: Decoding) -> Run:
    """tld4.{r,g,b,a}.2d.v4.dtype.f32 {d}, [object, {x, y}]: one channel of four neighbours"""
    channels = ("r", "g", "b", "a")
    d.only(".2d.v4", *channels).count(2)
    channel = channels.index(d.pick(channels, "r"))
    if len(d.types) != 2 or d.types[1] != "f32":
        d.wrong("tld4 takes coordinates of f32")

    def read(
        texture: Texture, at: list[ndarray], layer: ndarray | None, whole: bool
    ) -> ndarray:
        if channel >= texture.channels:
            raise Error(f"{d.place}: channel {channel} of {texture.channels}")
        return texture.gather(at, channel)

    return _sampled(d, read)


def _surface(d: Decoding, memory: int) -> tuple[int, int, tuple[Operand, ...], Places]:
    """Decode suld and sust: the step calls `move` with bytes of the surface, place and elements."""
    d.only("b", *GEOMETRIES, ".v2.v4.trap.clamp.zero").count(2)
    if not d.has("b"):
        d.unsupported("suld.b and sust.b, which move bytes as they are")
    count = d.many
    items = d.vector(1 - memory)
    if len(items) != count or d.type not in ("b8", "b16", "b32", "b64"):
        d.wrong(f"{len(items)} registers for {count} elements")
    slot, layer, reads = _place(d, memory, True)
    width, mode = SIZES[d.type] * count, d.pick(("trap", "clamp", "zero"), "trap")

    def places(f: Batch, surface: Surface, lanes: ndarray) -> tuple[ndarray, ndarray]:
        """Byte offsets of the lanes' elements, and which of them lie inside."""
        at = [f.full(one(f.r))[lanes].astype(np.int64) for one in reads]
        texel = surface.array.itemsize * surface.channels
        sizes = surface.sizes[::-1]
        if len(at) + (layer is not None) != len(sizes):
            raise Error(f"{d.place}: a surface of {len(sizes)} axes, used with {len(at)}")
        if layer is not None:
            at.append(f.full(layer(f.r))[lanes].astype(np.int64))
        if (at[0] % width).any():
            raise Error(f"{d.place}: x is in bytes, and no multiple of {width}")
        where, inside, pitch = np.zeros_like(at[0]), np.ones(len(at[0]), bool), 1
        for axis, (c, n) in enumerate(zip(at, sizes, strict=True)):
            extent = n * texel if axis == 0 else n
            last = extent - width if axis == 0 else extent - 1
            outside = (c < 0) | (c > last)
            if mode == "trap" and outside.any():
                bad = np.zeros(lanes.shape, bool)
                bad[lanes] = outside
                raise OutOfBounds(
                    f"{d.place}: coordinate {'xyz'[axis]} = {int(c[outside][0])} of a surface "
                    f"with {extent}{' bytes' if axis == 0 else ''}: {f.lane_names(bad)}"
                )
            inside &= ~outside | (mode == "clamp")
            where += np.clip(c, 0, max(0, last)) * pitch
            pitch *= extent
        return where // width, inside

    return slot, width, items, places


def _rows(surface: Surface, width: int) -> ndarray:
    return surface.array.reshape(-1).view(np.uint8).reshape(-1, width)


@opcode("suld")
def surface_load(d: Decoding) -> Run:
    """suld.b.geometry{.v2|.v4}.type{.trap|.clamp|.zero} {d}, [object, {x, ...}]; x in bytes"""
    slot, width, items, places = _surface(d, 1)
    put, dtype = d.write_all(items, d.type), UNSIGNED[SIZES[d.type]]

    def step(f: Batch) -> None:
        result = np.zeros((*f.shape, len(items)), dtype)
        for surface, lanes in _each_object(f, slot, Surface, d):
            where, inside = places(f, surface, lanes)
            found = np.ascontiguousarray(_rows(surface, width)[where]).view(dtype)
            result[lanes] = np.where(inside[:, None], found, 0)
        put(f.r, unstacked(result))

    return step


@opcode("sust")
def surface_store(d: Decoding) -> Run:
    """sust.b.geometry{.v2|.v4}.type{.trap|.clamp|.zero} [object, {x, ...}], {a}; x in bytes"""
    slot, width, items, places = _surface(d, 0)
    read, dtype = d.read_all(items, d.type), UNSIGNED[SIZES[d.type]]

    def step(f: Batch) -> None:
        for surface, lanes in _each_object(f, slot, Surface, d):
            where, inside = places(f, surface, lanes)
            values = np.stack([f.full(each)[lanes].view(dtype) for each in read(f.r)], -1)
            raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(where), width)
            _rows(surface, width)[where[inside]] = raw[inside]

    return step
