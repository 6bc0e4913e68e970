"""Control flow: bra, brx.idx, ret, exit, call, alloca, trap, setmaxnreg."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.batch import Batch, Run
from ..core.calls import CallSite, Passed
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Error, OutOfBounds, visible
from ..core.linking import called_name
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.registers import DTYPES
from ..core.scheduler import Waiter
from ..core.segment import Segment
from ..core.syntax import SIZES, Immediate, Instruction, Operand, Register, Symbol, Vector

# -- What CUDA provides to device code as functions: printf, assert, malloc and free. -------------
#
# printf writes to `sys.stdout` when it is called: lanes that call it together in the order of their
# blocks and threads, and calls in the order in which the schedule comes to them. Control characters
# are written out.


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
        start += int(f.full(segment.rows)[row, thread])
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
    f.calls.give(site, np.zeros(f.shape, np.int32))


def _assert_fail(f: Batch, site: CallSite) -> None:
    """void __assertfail(message, file, line, function, size of a character)"""
    row, thread = _lanes(f)[0]
    message, name, line, within = (
        int(f.calls.argument(site, i, np.uint32 if i == 2 else np.uint64)[row, thread])
        for i in range(4))
    said, file, function = (_text(f, row, thread, at, site) for at in (message, name, within))
    raise Error(
        f"{f.place(site.instruction)}: assertion '{said}' failed in {function}, "
        f"{file}:{line}: {f.geometry.thread_name(row, thread)}; in all {len(_lanes(f))} lanes"
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
    result = np.zeros(f.shape, np.uint64)
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


@opcode("bra")
def branch(d: Decoding) -> Run:
    """bra{.uni} label, with or without a predicate."""
    d.only("uni").count(1)
    d.ends = True
    target, otherwise = d.instruction.target, d.index + 1
    if target is None:
        d.wrong("the label is missing")
    if d.instruction.guard is None:
        return lambda f: f.go(target, f.active)
    slot, negated = d.instruction.guard[0].slot, d.instruction.guard[1]
    if negated:
        return lambda f: f.branch(~f.r[slot], target, otherwise)
    return lambda f: f.branch(f.r[slot], target, otherwise)


@opcode("brx")
def branch_by_index(d: Decoding) -> Run:
    """brx.idx{.uni} index, table: to the label of this number in a .branchtargets"""
    d.only(".idx.uni").count(2)
    index, targets = d.read(0, "u32"), d.instruction.targets

    def step(f: Batch) -> None:
        which = f.full(index(f.r))
        numbers = np.unique(f.of_active(which)).tolist()
        if numbers[-1] >= len(targets):
            raise Error(f"{d.place}: index {numbers[-1]}; the table has {len(targets)} labels")
        masks = [f.selected(which == n) for n in numbers]
        for n, mask in zip(numbers, masks, strict=True):
            f.go(targets[n], mask)

    return predicated_end(d, step)


@opcode("ret", "exit")
def leave(d: Decoding) -> Run:
    """ret goes back to the caller; in a kernel, which has none, it ends a lane as exit does."""
    d.only("uni").count(0)
    if d.instruction.function and d.parts[0] == "ret":
        return predicated_end(d, lambda f: f.calls.leave())
    return predicated_end(d, lambda f: f.exit(f.active, d.instruction))



# -- call: device functions, by name or through a pointer, and what the CUDA runtime provides. ----


@opcode("call")
def call(d: Decoding) -> Run:
    """call{.uni} {(results),} function|register{, (arguments)}{, prototype|targets}"""
    d.only("uni")
    operands = list(d.operands)
    results = _listed(operands)
    target = called_name(d.instruction)
    if target is None:
        d.wrong("what is called is missing")
    operands.pop(0)
    arguments = _listed(operands)
    entry = d.registers.entry
    site = CallSite(
        d.instruction, d.index + 1, tuple(_passed(d, r, True) for r in results),
        tuple(_passed(d, a, False) for a in arguments),
        entry.functions.get(d.instruction.function),
    )
    if isinstance(target, Register):
        return predicated_end(d, _through_pointer(d, target, site))
    name = target.name
    if name in entry.functions:
        callee = entry.functions[name]
        return predicated_end(d, lambda f: f.calls.call(site, callee))
    if name in LAUNCHES:
        d.unsupported("kernels that launch kernels (dynamic parallelism) are not emulated; launch "
                      "the inner kernel from the host")
    if name not in SYSTEM_CALLS:
        d.unsupported(f"function '{name}' is declared here and defined elsewhere; it must be in "
                      f"the module, or one of {' '.join(SYSTEM_CALLS)}")
    run = SYSTEM_CALLS[name]

    def system(f: Batch) -> None:
        run(f, site)
        f.go(site.following, f.active)

    return predicated_end(d, system)


def _listed(operands: list[Operand]) -> tuple[Operand, ...]:
    """Take a list in parentheses, if one comes next."""
    first = operands[0] if operands else None
    if not isinstance(first, Vector):
        return ()
    del operands[0]
    return first.items


def _passed(d: Decoding, given: Operand, written: bool) -> Passed:
    """What a call passes or takes: the name of a variable, a Register, or a constant's slot."""
    if isinstance(given, Register):
        if written:
            d.writes.append(given.slot)
        return given
    if isinstance(given, Symbol):
        if given.name != "_" and given.name not in d.registers.entry.variables:
            d.wrong(f"unknown name {given.name}")
        d.registers.address_of(given.name, 0, np.dtype("u8")) if given.name != "_" else None
        return given.name
    return d.slot(given, "b64" if SIZES.get(d.type, 4) == 8 else "b32")


def _through_pointer(d: Decoding, target: Register, site: CallSite) -> Run:
    program, functions = d.registers.program, d.registers.entry.functions

    def step(f: Batch) -> None:
        address = f.full(f.r[target.slot])
        found = np.unique(f.of_active(address)).tolist()
        masks = [f.selected(address == a) for a in found]
        outer = f.active, f.merge
        for one, mask in zip(found, masks, strict=True):
            f.active = mask
            callee = functions.get(program.function_at(one) or "")
            if callee is None:
                raise Error(
                    f"{d.place}: a call through a pointer to {one:#x}, which is "
                    f"{'null' if not one else 'no function'}: {f.lane_names(f.active_lanes)}"
                )
            if len(found) > 1:
                f.merge = f.active_lanes
            f.calls.call(site, callee)
        f.active, f.merge = outer

    return step



# -- alloca, stacksave, stackrestore: local memory whose size the kernel says when it runs. -------


@opcode("alloca")
def allocate(d: Decoding) -> Run:
    """alloca.type ptr, size{, align}: a local address"""
    d.only().needs(".u32.u64").count(2, 3)
    put, size = d.write(0, d.type), d.read(1, d.type)
    align = d.operands[2].bits if len(d.operands) == 3 and isinstance(
        d.operands[2], Immediate) else 8
    dtype = DTYPES[d.type]
    return lambda f: put(
        f.r, f.calls.allocate(size(f.r).astype(np.int64), align, d.instruction).astype(dtype)
    )


@opcode("stacksave")
def save(d: Decoding) -> Run:
    """stacksave.type d"""
    (put,), dtype = d.only().needs(".u32.u64").accessors(d.type), DTYPES[d.type]
    return lambda f: put(f.r, f.calls.stack.astype(dtype))


@opcode("stackrestore")
def restore(d: Decoding) -> Run:
    """stackrestore.type a"""
    d.only().needs(".u32.u64").count(1)
    read = d.read(0, d.type)
    return lambda f: f.calls.restore(read(f.r).astype(np.int64))



# -- trap, brkpt. ---------------------------------------------------------------------------------


@opcode("trap", "brkpt")
def trap(d: Decoding) -> Run:
    """trap stops the kernel: assertions end here."""

    def stop(f: Batch) -> None:
        row, thread = np.argwhere(f.active_lanes)[0].tolist()
        raise Error(
            f"{d.place}: the kernel trapped: {f.geometry.thread_name(row, thread)}; in all "
            f"{f.lane_names(f.active_lanes)}"
        )

    return predicated_end(d, stop)


# -- setmaxnreg: registers that the warps of a block hand to each other. ---------------------------
#
# A block has what its threads are launched with: as many as fit with ``.maxntid`` and
# ``.minnctapersm``, or ``.maxnreg``. ``dec`` gives some back, ``inc`` waits until enough are there
# (PTX ISA 9.7.20.5); where they never will be, that is a deadlock. An exit gives none back: PTX
# names ``dec`` alone. Without such a directive the pool is not known, and nobody waits.


OF_SM, LARGEST = 1 << 16, 256  # 32-bit registers of an SM; of a thread, as the hardware allots them
UNIT = 8


@opcode("setmaxnreg")
def set_registers(d: Decoding) -> Run:
    """setmaxnreg.{inc,dec}.sync.aligned.u32 n"""
    d.only(".inc.dec.sync.aligned").needs("u32").count(1)
    many = d.constant(0, "the number of registers")
    if not 24 <= many <= 256 or many % UNIT:
        d.wrong(f"{many} registers; the number must be a multiple of 8 from 24 to 256")
    launched = at_launch(d.registers.entry.limits)
    if launched is None:
        return lambda f: None
    following, grows = d.index + 1, d.has("inc")

    def step(f: Batch) -> None:
        pools = f.waiter(RegisterPools)
        pools.launch(*launched)
        if not grows and not pools.parties:
            pools.held = np.where(f.active_warps, np.minimum(pools.held, many), pools.held)
            f.go(following, f.active)
            return
        for row, warp in np.argwhere(f.active_warps).tolist():
            if grows and pools.held[row, warp] < many:
                pools.parties.append(_Wait(d.instruction, following, row, warp, many, _of_warp(
                    f.active_lanes, row, warp)))
            else:
                if not grows:
                    pools.held[row, warp] = min(pools.held[row, warp], many)
                f.go(following, Mask(_of_warp(f.active_lanes, row, warp)))
        pools.give()

    return predicated_end(d, step)


def _of_warp(active: np.ndarray, row: int, warp: int) -> np.ndarray:
    """The active lanes of a warp."""
    found = np.zeros_like(active)
    part = row, slice(warp * WARP, warp * WARP + WARP)
    found[part] = active[part]
    return found


def at_launch(limits: Mapping[str, tuple[int, ...]]) -> tuple[int, str] | None:
    """How many registers a thread is launched with, and by which directives; None if by none."""
    if "maxnreg" in limits:
        return limits["maxnreg"][0], f".maxnreg {limits['maxnreg'][0]}"
    name = next((each for each in ("reqntid", "maxntid") if each in limits), None)
    if name is None:
        return None
    threads, blocks = int(np.prod(limits[name])), limits.get("minnctapersm", (1,))[0]
    many = min(OF_SM // (threads * max(1, blocks)) // UNIT * UNIT, LARGEST)
    return many, f".{name} {threads}, .minnctapersm {blocks}"


@dataclass(eq=False)
class _Wait:
    """A warp that waits for registers."""

    instruction: Instruction
    next: int
    row: int
    warp: int
    many: int
    lanes: np.ndarray


class RegisterPools(Waiter):
    """How many registers each warp holds, of each of its threads, and who waits for more."""

    def begin(self) -> None:
        self.held = np.zeros((self.f.blocks, self.f.warps), np.int64)
        self.each, self.why = 0, ""

    def launch(self, each: int, why: str) -> None:
        """Let all warps have what they are launched with."""
        if not self.each:
            self.held[:], self.each, self.why = each, each, why

    def give(self) -> None:
        """Give registers to those that wait, in order, if there are enough."""
        waits, self.parties = self.parties, []
        for each in waits:
            free = self.each * self.f.warps - int(self.held[each.row].sum())
            if each.many - self.held[each.row, each.warp] > free:
                self.parties.append(each)
                continue
            self.held[each.row, each.warp] = each.many
            self.f.go(each.next, Mask(each.lanes))

    def describe(self) -> str:
        """Say who waits for how many, and what the sum is."""
        said = []
        for row in dict.fromkeys(each.row for each in self.parties):
            waits = [each for each in self.parties if each.row == row]
            wanted = self.held[row].copy()
            for each in waits:
                wanted[each.warp] = each.many
            sums = [" + ".join(f"{count} x {WARP} x {many}" for many, count in zip(
                *(part.tolist() for part in np.unique(of, return_counts=True)), strict=True))
                for of in (self.held[row], wanted)]
            block, pool = self.f.geometry.block_name(row), self.each * self.f.warps * WARP
            said.append(
                f"Block {block} has {pool:,} registers, {self.each} a thread ({self.why}); its "
                f"warps hold {sums[0]} = {int(self.held[row].sum()) * WARP:,}, and with what "
                f"warp {', '.join(str(each.warp) for each in waits)} waits for at "
                f"{self.f.place(waits[0].instruction)} it would be {sums[1]} = "
                f"{int(wanted.sum()) * WARP:,}."
            )
        return " ".join(said)
