"""A launch's memory and arguments: where variables lie, what a parameter's bytes are."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from .errors import LaunchError
from .registers import RegisterFile
from .segment import PARAMETER_BASE, Allocation, DeviceMemory, Segment
from .syntax import SIZES, Entry, Program, Reference, Variable
from .tensormap import TENSOR_MAP_BYTES, TensorMap, encoded
from .texture import Surface, Texture

STACK_BYTES = 1 << 14  # of a thread, for the frames of functions that call themselves


class Layout:
    """Where the variables of an entry lie in their spaces; shared ones from `shared_base` on."""

    def __init__(
        self, registers: RegisterFile, device: DeviceMemory, shared_mem: int, shared_base: int = 0
    ) -> None:
        self.shared_base = shared_base
        self._addresses: dict[str, int] = {}
        entry, program = registers.entry, registers.program
        for name, offset in registers.parameters.items():
            self._addresses[name] = PARAMETER_BASE + offset
        used = {name for _, name, _, _ in registers.addresses}
        variables = list(entry.variables.values())
        variables += [v for n, v in program.variables.items() if n in used]
        shared = [v for v in variables if v.space == "shared"]
        at = 0
        for variable in (v for v in shared if v.count):
            at = self._place(variable, at, shared_base)
        self.static_bytes = at
        # Those that the launch sizes, and how many bytes it gives them.
        self.dynamic = frozenset(v.name for v in shared if not v.count)
        self.dynamic_bytes = shared_mem
        for variable in (v for v in shared if not v.count):  # all of these share one address
            start = -(-at // variable.align) * variable.align
            self._addresses[variable.name] = shared_base + start
            self.static_bytes = max(self.static_bytes, start if shared_mem else at)
        self.shared_bytes = self.static_bytes + shared_mem
        self.shared = [
            Allocation(v.name, self._addresses[v.name], v.nbytes if v.count else shared_mem)
            for v in shared
        ]
        at = 0
        in_frames = {v.name for c in entry.functions.values() for v in c.frame}
        own = [v for v in variables if v.space in ("local", "call")]
        self.sizes = {v.name: v.nbytes for v in own}
        for variable in (v for v in own if v.name not in in_frames):
            at = self._place(variable, at)
        self._place_frames(registers, -(-at // 16) * 16)
        for name in program.variables:
            if name in device.variables:
                self._addresses[name] = device.variables[name]

    def _place_frames(self, registers: RegisterFile, at: int) -> None:
        """Place the variables of functions that may call themselves: each call has its own."""
        self.static_local = self.local_bytes = at
        self.stack_bytes = 0
        self.frame_bytes: dict[str, int] = {}
        self.frames: dict[str, list[tuple[int, int, np.dtype]]] = {}  # slots, offsets, types
        self.in_frame: dict[str, int] = {}  # variable -> slot of its address
        for name, callee in registers.entry.functions.items():
            offsets, end = {}, 0
            for variable in callee.frame:
                offsets[variable.name] = -(-end // variable.align) * variable.align
                end = offsets[variable.name] + variable.nbytes
            if not callee.frame:
                continue
            self.frame_bytes[name] = -(-end // 16) * 16
            self.frames[name] = [
                (slot, offsets[of] + offset, dtype)
                for slot, of, offset, dtype in registers.addresses if of in offsets
            ]
            for slot, of, offset, dtype in registers.addresses:
                if of in offsets and offset == 0 and dtype.itemsize == 8:
                    self.in_frame[of] = slot
            for of in offsets.keys() - self.in_frame.keys():
                self.in_frame[of] = -1  # named nowhere as a whole
        if self.frames or any(i.parts[0] == "alloca" for i in registers.entry.instructions):
            self.stack_bytes = STACK_BYTES
            self.local_bytes = at + STACK_BYTES

    def _place(self, variable: Variable, at: int, base: int = 0) -> int:
        start = -(-(base + at) // variable.align) * variable.align - base
        self._addresses[variable.name] = base + start
        return start + variable.nbytes

    def extent(self, name: str) -> tuple[int, int]:
        """Return where a shared variable begins and ends; what the launch sizes ends with all."""
        for one in self.shared:
            if one.argument == name:
                end = one.base + one.nbytes
                whole = not one.nbytes or end > self.shared_base + self.static_bytes
                return one.base, self.shared_base + self.shared_bytes if whole else end
        raise LaunchError(f"variable {name} is not in shared memory")

    def shared_at(self, address: int) -> str | None:
        """Return the shared variable that an address lies in, if it lies in one."""
        return next((str(one.argument) for one in self.shared
                     if one.base <= address < self.extent(str(one.argument))[1]), None)

    def address_of(self, name: str) -> int:
        """Return the address of a variable in its own space."""
        if name not in self._addresses:
            raise LaunchError(f"variable {name} has no storage: it is declared elsewhere")
        return self._addresses[name]


def initial_bytes(program: Program, variable: Variable) -> ndarray:
    """Return what a module variable holds before the first launch.

    Raises LaunchError if it holds the address of something that the module does not define.
    """
    size, values = variable.size, bytearray(variable.nbytes)
    for i, value in enumerate(variable.initial):
        if isinstance(value, Reference):
            bits = _referred(program, variable, value)
        else:
            bits = value.bits
            if value.kind == "f64" and size == 4:
                bits = int.from_bytes(
                    struct.pack("<f", struct.unpack("<d", bits.to_bytes(8, "little"))[0]), "little"
                )
        values[i * size : (i + 1) * size] = (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
    return np.frombuffer(values, np.uint8)


def _referred(program: Program, variable: Variable, value: Reference) -> int:
    if value.name in program.addresses:
        return program.addresses[value.name] + value.offset
    if program.functions.get(value.name) is not None:
        return program.address_of_function(value.name) + value.offset
    raise LaunchError(
        f"variable {variable.name} holds the address of {value.name}, which the module does not "
        "define"
    )


def device_memory(program: Program, storage: dict[str, ndarray]) -> DeviceMemory:
    """Place those of a module's variables whose bytes are in `storage`."""
    device = DeviceMemory()
    for name, array in storage.items():
        at = program.addresses[name]
        if program.variables[name].space == "const":
            segment = Segment(f"variable {name}", "const", at, len(array), array, None, False)
            device.constants.append(segment)
            device.variables[name] = at
        else:
            device.variables[name] = device.add(name, array, at)
    return device


def parameter_bytes(entry: Entry, args: Sequence[Any], device: DeviceMemory) -> ndarray:
    """Check the arguments and lay them out as the bytes of the parameter space."""
    layout = entry.parameter_layout()
    args = tuple(args)
    if len(args) != len(layout):
        raise LaunchError(f"kernel '{entry.name}' takes {len(layout)} arguments, not {len(args)}")
    end = max((offset + p.nbytes for p, offset in layout), default=0)
    data = bytearray(-(-end // 16) * 16)
    for i, ((parameter, offset), value) in enumerate(zip(layout, args, strict=True)):
        raw = _argument(entry, i, parameter, value, device)
        data[offset : offset + len(raw)] = raw
    return np.frombuffer(data, np.uint8)


def _argument(entry: Entry, i: int, parameter: Variable, value: Any, device: DeviceMemory) -> bytes:
    def wrong(message: str) -> NoReturn:
        raise LaunchError(f"kernel '{entry.name}', argument {i}: {message}")

    kind, size = parameter.type, parameter.size
    if isinstance(value, TensorMap):
        if parameter.nbytes != TENSOR_MAP_BYTES or parameter.align < 64:
            how = ("; to a pointer pass the map's bytes, "
                   "numpy.frombuffer(bytes(tensor_map), numpy.uint8).copy(), and keep the map (on "
                   "the command line mapptr[BOX] in the place of map[BOX])") * (size == 8)
            wrong(f"is no parameter for a tensor map (128 bytes, aligned to 64){how}")
        device.bind(value, i)
        return encoded(value)
    if isinstance(value, Texture | Surface):
        if size != 8 or parameter.count != 1 or kind == "f64":
            wrong("is no parameter for a texture or surface object (8 bytes)")
        return value.handle.to_bytes(8, "little")
    if parameter.count != 1 or kind == "b8":
        raw = value if isinstance(value, bytes | bytearray) else None
        if raw is None and isinstance(value, np.generic | ndarray):
            raw = value.tobytes()
        if raw is None or len(raw) != parameter.nbytes:
            wrong(f"needs {parameter.nbytes} bytes (a structure), not {_describe(value)}")
        return bytes(raw)
    if isinstance(value, ndarray) and value.ndim == 0 and size != 8:
        value = value[()]
    if value is None and size == 8 and kind != "f64":
        return bytes(8)  # CuPy's null pointer
    if isinstance(value, ndarray):
        if not value.dtype.isnative:
            wrong(f"holds {value.dtype.str}: a GPU reads little-endian values")
        if size != 8 or kind == "f64":
            wrong(f"is a .{kind} value, not an array")
        if value.dtype.hasobject:
            wrong("arrays of Python objects have no bytes to pass")
        if not value.flags.c_contiguous:
            wrong("the array must be C-contiguous; pass numpy.ascontiguousarray(...)")
        return device.add(i, value).to_bytes(8, "little")
    if kind in ("f32", "f64", "f16"):
        dtype = {"f16": "f2", "f32": "f4", "f64": "f8"}[kind]
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, np.generic):  # a GPU takes its bytes as they are
            fits = isinstance(value, np.floating) and value.nbytes == size
        if not fits:
            wrong(
                f"is a .{kind} value, not {_describe(value)}: pass numpy.{np.dtype(dtype).name}(…)"
            )
        return np.array(value, dtype).tobytes()
    if isinstance(value, np.float16) and size == 2:
        return value.tobytes()
    if not isinstance(value, int | np.integer | np.bool_):
        wrong(f"is a .{kind} value, not {_describe(value)}")
    if isinstance(value, np.generic) and value.nbytes < size:
        wrong(f"has {size} bytes; CuPy would pass the {value.nbytes} of {_describe(value)}")
    if not -(1 << 8 * size - 1) <= int(value) < 1 << 8 * size:
        wrong(f"{int(value)} does not fit {SIZES[kind]} bytes")
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def _describe(value: Any) -> str:
    if isinstance(value, ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    if isinstance(value, np.generic):
        return f"numpy.{value.dtype} {value}"
    return f"{type(value).__name__} {value!r}"[:80]
