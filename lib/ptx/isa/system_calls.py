"""What CUDA provides to device code as functions: printf, assert, malloc and free.

printf writes to `sys.stdout` when it is called: lanes that call it together in the order of their
blocks and threads, and calls in the order in which the schedule comes to them. Control characters
are written out.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.calls import CallSite
from ..core.errors import Error, OutOfBounds
from ..core.segment import Segment
from ..core.visible import visible

if TYPE_CHECKING:
    from ..core.batch import Batch

HEAP_BYTES = 8 << 20  # of all that malloc has given; what CUDA sets aside unless told otherwise
# What CUDA declares for kernels that launch kernels.
LAUNCHES = frozenset({
    "cudaGetParameterBuffer", "cudaGetParameterBufferV2", "cudaLaunchDevice", "cudaLaunchDeviceV2",
    "cudaDeviceSynchronize", "__cudaCDP2GetParameterBufferV2", "__cudaCDP2LaunchDeviceV2",
    "__cudaCDP2DeviceSynchronize",
})
_CONVERSION = re.compile(r"%([-+ #0]*+)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|z|t|j|L)?([a-zA-Z%])")
SystemCall = Callable[..., None]  # takes the `Execution` and the `CallSite`


def _lanes(f: Batch) -> list[list[int]]:
    """Rows and threads of the active lanes, by block and thread."""
    return np.argwhere(f.active_lanes).tolist()


def _bytes(f: Batch, row: int, thread: int, address: int, nbytes: int, site: CallSite) -> bytes:
    """Read bytes at a generic address of a lane."""
    segment = f.memory.locate("generic", address, address + nbytes)
    if segment is None:
        raise OutOfBounds(
            f"{f.place(site.instruction)}: {nbytes} bytes at {address:#x} lie outside of every "
            f"allocation: {f.geometry.thread_name(row, thread)}"
        )
    start = address - segment.base
    if segment.rows is not None:
        start += int(np.broadcast_to(segment.rows, (f.blocks, f.threads))[row, thread])
    return segment.storage[start : start + nbytes].tobytes()


def _text(f: Batch, row: int, thread: int, address: int, site: CallSite) -> str:
    """Read a string that ends with a zero."""
    found = bytearray()
    while not found or found[-1]:
        found += _bytes(f, row, thread, address + len(found), 1, site)
    return found[:-1].decode("utf-8", "replace")


class _Arguments:
    """The values behind printf's format, each aligned to its size."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self.read, self.at = read, 0

    def take(self, code: str) -> Any:
        size = struct.calcsize(code)
        self.at = -(-self.at // size) * size
        value = struct.unpack("<" + code, self.read(self.at, size))[0]
        self.at += size
        return value


def formatted(text: str, arguments: _Arguments, string: Callable[[int], str]) -> str:
    """Do what C's printf does with a format, on the buffer that CUDA passes.

    `text`: the format. `arguments`: whole numbers of 4 bytes, with l, ll, z, t or j of 8; floats as
    doubles; pointers. `string`: reads the string at an address.
    """

    def one(match: re.Match) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(arguments.take("i")) if width == "*" else width or ""
        dotted = precision is not None or "." in match[0]
        precision = str(arguments.take("i")) if precision == "*" else precision or ""
        form = f"%{flags}{width}" + (f".{precision}" if dotted else "")
        wide = length in ("l", "ll", "z", "t", "j")
        if kind in "diuoxX":
            value = arguments.take(("q" if wide else "i") if kind in "di" else "Q" if wide else "I")
            narrow = {"hh": 8, "h": 16}.get(length)
            if narrow:
                value &= (1 << narrow) - 1
                if kind in "di" and value >> narrow - 1:
                    value -= 1 << narrow
            if kind == "o":  # Python writes 0o before it
                digits = f"{value:o}"
                given = "0" + digits if "#" in flags else digits
                return f"%{flags.replace('#', '').replace('0', '')}{width}s" % given
            return f"{form}{'d' if kind in 'iu' else kind}" % value
        if kind in "eEfFgG":
            return f"{form}{kind}" % arguments.take("d")
        if kind in "aA":
            said = arguments.take("d").hex()
            return f"%{width}s" % (said.upper() if kind == "A" else said)
        if kind == "c":
            return f"%{flags.replace('0', '')}{width}s" % chr(arguments.take("i") & 255)
        if kind == "s":
            return f"{form}s" % string(arguments.take("Q"))
        if kind == "p":
            return f"%{flags}{width}s" % f"{arguments.take('Q'):#x}"
        return match[0]

    return _CONVERSION.sub(one, text)


def _printf(f: Batch, site: CallSite) -> None:
    """int vprintf(const char* format, const void* arguments)"""
    formats, buffers = (f.calls.argument(site, i, np.uint64) for i in (0, 1))
    for row, thread in _lanes(f):
        text = _text(f, row, thread, int(formats[row, thread]), site)
        base = int(buffers[row, thread])

        def read(
            at: int, nbytes: int, row: int = row, thread: int = thread, base: int = base
        ) -> bytes:
            return _bytes(f, row, thread, base + at, nbytes, site)

        def string(address: int, row: int = row, thread: int = thread) -> str:
            return _text(f, row, thread, address, site) if address else "(null)"

        sys.stdout.write(visible(formatted(text, _Arguments(read), string)))
    f.calls.give(site, np.zeros((f.blocks, f.threads), np.int32))


def _assert_fail(f: Batch, site: CallSite) -> None:
    """void __assertfail(message, file, line, function, size of a character)"""
    row, thread = _lanes(f)[0]
    values = [int(f.calls.argument(site, i, np.uint32 if i == 2 else np.uint64)[row, thread])
              for i in range(4)]
    said, file, function = (_text(f, row, thread, values[i], site) for i in (0, 1, 3))
    raise Error(
        f"{f.place(site.instruction)}: assertion '{said}' failed in {function}, "
        f"{file}:{values[2]}: {f.geometry.thread_name(row, thread)}; in all {len(_lanes(f))} lanes"
    )


def _malloc(f: Batch, site: CallSite) -> None:
    """void* malloc(size): one segment for all lanes that call it together, with gaps"""
    sizes = f.calls.argument(site, 0, np.uint64)
    lanes = _lanes(f)
    device = f.memory.device
    starts, at = [], 0
    for row, thread in lanes:
        starts.append(at)
        at += -(-max(1, int(sizes[row, thread])) // 16) * 16 + 16
    result = np.zeros((f.blocks, f.threads), np.uint64)
    used = sum(segment.nbytes for segment in device.heap)
    if at + used <= HEAP_BYTES:
        storage = np.full(at, 255, np.uint8)
        base = device.add_heap(storage)
        for (row, thread), start in zip(lanes, starts, strict=True):
            result[row, thread] = base + start
            device.given[base + start] = device.heap[-1]
        f.memory.segments["generic"].append(device.heap[-1])
    f.calls.give(site, result)


def _free(f: Batch, site: CallSite) -> None:
    """void free(pointer)"""
    pointers = f.calls.argument(site, 0, np.uint64)
    device = f.memory.device
    for row, thread in _lanes(f):
        address = int(pointers[row, thread])
        if not address:
            continue
        segment: Segment | None = device.given.pop(address, None)
        if segment is None:
            raise Error(
                f"{f.place(site.instruction)}: free of {address:#x}, which malloc did not give or "
                f"which was freed before: {f.geometry.thread_name(row, thread)}"
            )
        if segment not in device.given.values():
            for held in (device.heap, device.segments, f.memory.segments["generic"]):
                held.remove(segment)
            f.forget_addresses()


SYSTEM_CALLS: dict[str, SystemCall] = {
    "vprintf": _printf, "__assertfail": _assert_fail, "malloc": _malloc, "free": _free,
}
