"""Modules, functions and launches: CuPy's calling convention over NumPy arrays."""

from __future__ import annotations

import difflib
import itertools
import struct
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from . import (  # noqa: F401 - fill OPCODES
    access,
    alu,
    bulk,
    carry,
    control,
    convert,
    copies,
    floats,
    matrix_moves,
    mma,
    moves,
    wgmma,
    wmma,
)
from .decode import SPECIAL, Code, parameter_layout, scalar
from .errors import Error, LaunchError, ParseError
from .hazards import Hazard, Hazards
from .lanes import Lanes
from .memory import CONSTANT_BASE, PARAMETER_BASE, Allocation, DeviceMemory, Memory, Segment
from .parser import parse
from .races import Races
from .syntax import SIZES, Entry, Program, Variable
from .tensormap import TENSOR_MAP_BYTES, TensorMap, encoded, root
from .trace import Trace

# Blocks are independent, so a big grid runs in batches of about so many lanes, and shared and
# local memory of about so many bytes. Larger batches fall out of the cache and gain nothing.
LANES_PER_BATCH = 1 << 15
BYTES_PER_BATCH = 1 << 26
SHARED_LIMIT = 227 * 1024  # of one block, on sm_90; smaller GPUs have less
SCHEDULES = ("lowest", "highest", "random")
LANDINGS = ("early", "late")
MODULES_KEPT = 32  # parsed and decoded: a few MB each where loops are unrolled
CLUSTER_LIMIT = 16  # blocks; more than 8 need an attribute of the kernel on a GPU


@dataclass
class Launch:
    """What a launch left behind.

    Attributes
    ----------
    trace : Trace or None
        Counters, sites and watched addresses; None if the launch was told not to trace.
    hazards : list of Hazard
        Races and torn barriers.
    allocations : list of Allocation
        Which addresses are which argument's array.
    shared : list of Allocation
        Where each variable lies in a block's shared memory.
    """

    trace: Trace | None
    hazards: list[Hazard] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    shared: list[Allocation] = field(default_factory=list)


class Geometry:
    """A grid, and which of its blocks run in this batch."""

    def __init__(self, grid, block, first, blocks, shared_bytes, cluster=None):
        self.grid, self.block, self.first, self.blocks = grid, block, first, blocks
        self.explicit = cluster is not None
        self.cluster = cluster or (1, 1, 1)
        self.peers = int(np.prod(self.cluster))  # blocks of a cluster: neighbouring rows
        self.threads = block[0] * block[1] * block[2]
        self.shared_bytes = shared_bytes

    def block_index(self, row: int) -> tuple[int, int, int]:
        """Return blockIdx of a row of this batch."""
        return tuple(int(i) for i in self._indices(self.first + row))

    def _indices(self, at):
        """Return blockIdx, as (x, y, z), of the at-th block of the grid; `at` may be an array.

        Blocks count along x, then y, then z; with clusters, cluster by cluster.
        """
        number, rank = at // self.peers, at % self.peers
        place = []
        for extent, size in zip(self.grid, self.cluster, strict=True):
            many = extent // size
            place.append(number % many * size + rank % size)
            number, rank = number // many, rank // size
        return place

    def block_name(self, row: int) -> str:
        """Return blockIdx as text."""
        return "({}, {}, {})".format(*self.block_index(row))

    def row_of(self, block: int) -> int | None:
        """Return the row of a block by its linear number, None if it is in another batch."""
        if self.peers > 1:
            x, y, _ = self.grid
            rows = np.arange(self.first, self.first + self.blocks)
            i, j, k = self._indices(rows)
            found = np.flatnonzero(i + x * (j + y * k) == block)
            return int(found[0]) if len(found) else None
        row = block - self.first
        return row if 0 <= row < self.blocks else None

    def special(self, name: str) -> np.ndarray:
        """Return a special register: (1, 1), (blocks, 1) or (1, threads)."""
        threads = np.arange(self.threads, dtype=np.int64)[None, :]
        rows = np.arange(self.first, self.first + self.blocks, dtype=np.int64)[:, None]
        lane = threads % 32
        warps = -(-self.threads // 32)
        base, _, axis = name.partition(".")
        wholes = tuple(g // c for g, c in zip(self.grid, self.cluster, strict=True))
        sizes = {
            "%ntid": self.block, "%nctaid": self.grid, "%nclusterid": wholes,
            "%cluster_nctaid": self.cluster,
        }  # fmt: skip
        if base in sizes:
            value = sizes[base]["xyz".index(axis)]
        elif base == "%tid":
            x, y, _ = self.block
            value = {"x": threads % x, "y": threads // x % y, "z": threads // (x * y)}[axis]
            if self.block["xyz".index(axis)] == 1:
                value = 0
        elif base in ("%ctaid", "%clusterid", "%cluster_ctaid"):
            at = "xyz".index(axis)
            value, size = self._indices(rows)[at], self.cluster[at]
            if base != "%ctaid":
                value = value // size if base == "%clusterid" else value % size
            if self.grid[at] == 1:
                value = 0
        else:
            every = (1 << 32) - 1
            value = {
                "%laneid": lane,
                "%warpid": threads // 32,
                "%nwarpid": warps,
                "%nsmid": 1,
                "%is_explicit_cluster": self.explicit,
                "%cluster_nctarank": self.peers,
                "%cluster_ctarank": rows % self.peers,
                "WARP_SZ": 32,
                "%lanemask_eq": 1 << lane,
                "%lanemask_lt": (1 << lane) - 1,
                "%lanemask_le": (2 << lane) - 1,
                "%lanemask_gt": every ^ ((2 << lane) - 1),
                "%lanemask_ge": every ^ ((1 << lane) - 1),
                "%dynamic_smem_size": self.shared_bytes[1],
                "%total_smem_size": sum(self.shared_bytes),
            }.get(base, 0)
        kind = {"pred": "?", "u32": "u4", "u64": "u8"}[SPECIAL[name]]
        if isinstance(value, np.ndarray):
            return value.astype(kind)
        return scalar(value, kind)


class Layout:
    """Where the variables of an entry lie in their spaces."""

    def __init__(self, code: Code, device: DeviceMemory, shared_mem: int):
        self._addresses: dict[str, int] = {}
        entry, program = code.entry, code.program
        for name, offset in code.parameters.items():
            self._addresses[name] = PARAMETER_BASE + offset
        used = {name for _, name, _, _ in code.addresses}
        variables = [v for v in entry.variables.values()]
        variables += [v for n, v in program.variables.items() if n in used]
        shared = [v for v in variables if v.space == "shared"]
        at = 0
        for variable in (v for v in shared if v.count):
            at = self._place(variable, at)
        self.static_bytes = at
        for variable in (v for v in shared if not v.count):  # all of these share one address
            start = -(-at // variable.align) * variable.align
            self._addresses[variable.name] = start
            self.static_bytes = max(self.static_bytes, start if shared_mem else at)
        self.shared_bytes = self.static_bytes + shared_mem
        self.shared = [
            Allocation(v.name, self._addresses[v.name], v.nbytes if v.count else shared_mem)
            for v in shared
        ]
        at = 0
        for variable in (v for v in variables if v.space == "local"):
            at = self._place(variable, at)
        self.local_bytes = at
        for name in program.variables:
            if name in device.variables:
                self._addresses[name] = device.variables[name]

    def _place(self, variable: Variable, at: int) -> int:
        start = -(-at // variable.align) * variable.align
        self._addresses[variable.name] = start
        return start + variable.nbytes

    def address_of(self, name: str) -> int:
        """Return the address of a variable in its own space."""
        if name not in self._addresses:
            raise LaunchError(f"variable {name} has no storage: it is declared elsewhere")
        return self._addresses[name]


@lru_cache(MODULES_KEPT)
def _read(text: str) -> tuple[Program, dict[str, Code]]:
    """Parse a module; beside it lies what has been decoded of it. No launch changes either.

    Reading unrolled code takes longer than running it on a small problem, and the same kernel is
    run on many problems. Modules share this, but not their variables.
    """
    return parse(text), {}


class Module:
    """PTX text, parsed once.

    Parameters
    ----------
    text : str
        PTX, as NVRTC returns it.

    Raises
    ------
    ParseError
        If the text is no PTX.
    """

    def __init__(self, text: str):
        if not isinstance(text, str):
            raise ParseError(f"PTX text must be a str, not {type(text).__name__}")
        self.program, self._codes = _read(text)
        self._functions: dict[str, Function] = {}
        self._storage = {
            name: _initial(variable)
            for name, variable in self.program.variables.items()
            if variable.space in ("global", "const") and variable.count
        }

    def get_function(self, name: str) -> Function:
        """Return a kernel, decoded.

        Raises
        ------
        Error
            If there is no such kernel; the message names the nearest.
        UnsupportedInstruction
            If the kernel has an instruction that the emulator lacks.
        """
        entries = self.program.entries
        if name not in entries:
            near = difflib.get_close_matches(str(name), entries, 1, 0.0)
            hint = f"; the nearest is '{near[0]}'" if near else "; the module has no kernels"
            raise Error(f"no kernel '{name}' in this module{hint}")
        if name not in self._functions:
            if name not in self._codes:
                self._codes[name] = Code(self.program, entries[name])
            self._functions[name] = Function(self, entries[name], self._codes[name])
        return self._functions[name]

    def get_global(self, name: str) -> np.ndarray:
        """Return the bytes of a module variable, as a uint8 array that launches update in place."""
        if name not in self._storage:
            raise Error(f"no global variable '{name}' in this module")
        return self._storage[name]


def _initial(variable: Variable) -> np.ndarray:
    size, values = variable.size, bytearray(variable.nbytes)
    for i, value in enumerate(variable.initial):
        bits = value.bits
        if value.kind == "f64" and size == 4:
            bits = int.from_bytes(
                struct.pack("<f", struct.unpack("<d", bits.to_bytes(8, "little"))[0]), "little"
            )
        values[i * size : (i + 1) * size] = (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
    return np.frombuffer(values, np.uint8)


class Function:
    """A kernel that can be launched: ``function(grid, block, args, shared_mem=0)``."""

    def __init__(self, module: Module, entry: Entry, code: Code):
        self.module, self.entry, self.name, self.code = module, entry, entry.name, code

    def __call__(
        self, grid, block, args, shared_mem: int = 0, *, watch=None, trace: bool = True,
        races: bool = False, schedule: str = "lowest", seed: int = 0, merge=None,
        cluster=None, landing: str = "early",
    ) -> Launch:  # fmt: skip
        """Run the kernel; arrays are updated in place.

        Parameters
        ----------
        grid, block : tuple of int
            Up to three sizes each.
        args : sequence
            One value a parameter: NumPy arrays for pointers, numbers for scalars, bytes for
            structures.
        shared_mem : int
            Bytes of dynamic shared memory a block.
        watch : tuple of (int, int), optional
            Linear block number and warp whose addresses shall be kept.
        trace : bool
            Whether to count.
        races : bool
            Whether to look for races; about three times slower.
        schedule : str
            "lowest": all warps together, the lowest program counter first. "highest": in each
            block the highest warp runs until it must wait. "random": random warps at each turn.
        seed : int
            For the random schedule.
        merge : mapping of int to Wide or None, optional
            What ptxas made of the accesses at these PTX lines: None where another absorbed it.
        cluster : int or tuple of int, optional
            Blocks of a cluster, up to three sizes; by default what the kernel was compiled for.
        landing : str
            When asynchronous copies and wgmma have their effect. "early": at once. "late": when
            somebody waits for them, as late as PTX allows.

        Returns
        -------
        Launch
            Counters, hazards, allocations.

        Raises
        ------
        LaunchError
            For a grid, block or argument that CUDA would refuse as well.
        Error
            What the kernel did wrong: see `errors`.
        """
        grid, block = _sizes(grid, "grid"), _sizes(block, "block")
        self._check_geometry(grid, block, shared_mem)
        if schedule not in SCHEDULES:
            raise LaunchError(f"schedule '{schedule}'; there are {', '.join(SCHEDULES)}")
        if landing not in LANDINGS:
            raise LaunchError(f"landing '{landing}'; there are {', '.join(LANDINGS)}")
        cluster = self._cluster(cluster, grid)
        device = self._device()
        parameters = self._parameters(args, device)
        layout = Layout(self.code, device, shared_mem)
        if layout.shared_bytes > SHARED_LIMIT:
            raise LaunchError(
                f"kernel '{self.name}' wants {layout.shared_bytes} bytes of shared memory a block; "
                f"no GPU has more than {SHARED_LIMIT}"
            )
        record = Trace(watch, merge) if trace else None
        if record is not None:
            record.begin(self.code)
        hazards = Hazards()
        detector = Races(hazards, self.code) if races else None
        random = np.random.default_rng(seed)
        threads, total = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
        # Races keep a record of every word for every warp, which is much larger than the word.
        own = layout.shared_bytes * (16 if races else 1) + layout.local_bytes * threads
        size = max(1, min(LANES_PER_BATCH // threads, BYTES_PER_BATCH // max(1, own)))
        together = int(np.prod(cluster or 1))
        size = max(1, size // together) * together
        for first in range(0, total, size):
            blocks = min(size, total - first)
            shared = (layout.static_bytes, shared_mem)
            geometry = Geometry(grid, block, first, blocks, shared, cluster)
            memory = Memory(device, layout, parameters, blocks, threads, geometry.peers)
            lanes = Lanes(
                self.code, geometry, memory, record, detector, hazards, schedule, random, landing
            )
            if detector is not None:
                detector.begin(lanes)
            try:
                lanes.run()
            except Error as error:
                error.hazards = hazards.found
                if hazards.found:
                    error.add_note("Found before: " + hazards.found[0].message)
                raise
            if record is not None:
                record.end()
        return Launch(record, hazards.found, device.allocations, layout.shared)

    def _check_geometry(self, grid, block, shared_mem):
        def wrong(message):
            raise LaunchError(f"kernel '{self.name}': {message}")

        for sizes, most, name in (
            (grid, (2**31 - 1, 65535, 65535), "grid"),
            (block, (1024, 1024, 64), "block"),
        ):
            for axis, size, limit in zip("xyz", sizes, most, strict=True):
                if not 1 <= size <= limit:
                    wrong(f"{name} {sizes}: {axis} must be from 1 to {limit}")
        threads = block[0] * block[1] * block[2]
        if threads > 1024:
            wrong(f"block {block} has {threads} threads; the most is 1024")
        for directive in ("maxntid", "reqntid"):
            limit = self.entry.limits.get(directive)
            if limit and threads > np.prod(limit, dtype=object):
                wrong(f"block {block} has {threads} threads; it was compiled for {limit}")
        if not isinstance(shared_mem, int | np.integer) or not 0 <= shared_mem <= SHARED_LIMIT:
            wrong(f"shared_mem {shared_mem!r} must be a number of bytes up to {SHARED_LIMIT}")

    def _cluster(self, given, grid) -> tuple[int, int, int] | None:
        """Return the sizes of a cluster, None if the kernel is launched without clusters."""
        limits = self.entry.limits
        compiled = limits.get("reqnctapercluster") or None
        if given is None:
            if compiled is None and "explicitcluster" in limits:
                raise LaunchError(f"kernel '{self.name}' must be launched with cluster=...")
            given = compiled
        if given is None:
            return None
        cluster = _sizes(given, "cluster")
        if compiled is not None and cluster != _sizes(compiled, "cluster"):
            raise LaunchError(
                f"kernel '{self.name}': cluster {cluster}; it was compiled for {compiled}"
            )
        if min(cluster) < 1 or np.prod(cluster, dtype=object) > CLUSTER_LIMIT:
            raise LaunchError(
                f"kernel '{self.name}': cluster {cluster}; the most is {CLUSTER_LIMIT} blocks"
            )
        for axis, size, extent in zip("xyz", cluster, grid, strict=True):
            if extent % size:
                raise LaunchError(
                    f"kernel '{self.name}': grid {grid} is no multiple of the cluster {cluster} "
                    f"along {axis}"
                )
        return cluster

    def _device(self) -> DeviceMemory:
        device = DeviceMemory()
        device.variables = {}
        at = CONSTANT_BASE
        for name, array in self.module._storage.items():
            if self.module.program.variables[name].space == "const":
                segment = Segment(f"variable {name}", "const", at, len(array), array, None, False)
                device.constants.append(segment)
                device.variables[name] = at
                at += -(-len(array) // 256) * 256 + 4096
            else:
                device.variables[name] = device.add(name, array)
        return device

    def _parameters(self, args, device: DeviceMemory) -> np.ndarray:
        """Check the arguments and lay them out as the bytes of the parameter space."""
        layout = parameter_layout(self.entry)
        args = tuple(args)
        if len(args) != len(layout):
            raise LaunchError(
                f"kernel '{self.name}' takes {len(layout)} arguments, not {len(args)}"
            )
        end = max((offset + p.nbytes for p, offset in layout), default=0)
        data = bytearray(-(-end // 16) * 16)
        for i, ((parameter, offset), value) in enumerate(zip(layout, args, strict=True)):
            raw = self._argument(i, parameter, value, device)
            data[offset : offset + len(raw)] = raw
        return np.frombuffer(data, np.uint8)

    def _argument(self, i: int, parameter: Variable, value, device: DeviceMemory) -> bytes:
        def wrong(message):
            raise LaunchError(f"kernel '{self.name}', argument {i}: {message}")

        kind, size = parameter.type, parameter.size
        if isinstance(value, TensorMap):
            if parameter.nbytes != TENSOR_MAP_BYTES or parameter.align < 64:
                wrong("is no parameter for a tensor map (128 bytes, aligned to 64)")
            array = value.array
            device.add(i, array if array.flags.c_contiguous else root(array))
            device.maps.append(value)
            return encoded(len(device.maps) - 1)
        if parameter.count != 1 or kind == "b8":
            raw = value if isinstance(value, bytes | bytearray) else None
            if raw is None and isinstance(value, np.generic | np.ndarray):
                raw = value.tobytes()
            if raw is None or len(raw) != parameter.nbytes:
                wrong(f"needs {parameter.nbytes} bytes (a structure), not {_describe(value)}")
            return bytes(raw)
        if isinstance(value, np.ndarray) and value.ndim == 0 and size != 8:
            value = value[()]
        if isinstance(value, np.ndarray):
            if size != 8 or kind == "f64":
                wrong(f"is a .{kind} value, not an array")
            if value.dtype.hasobject:
                wrong("arrays of Python objects have no bytes to pass")
            if not value.flags.c_contiguous:
                wrong("the array must be C-contiguous; pass numpy.ascontiguousarray(...)")
            return device.add(i, value).to_bytes(8, "little")
        if kind in ("f32", "f64", "f16"):
            if isinstance(value, bool | np.bool_) or not isinstance(
                value, int | float | np.floating | np.integer
            ):
                wrong(f"is a .{kind} value, not {_describe(value)}")
            if isinstance(value, np.floating) and value.dtype.itemsize > size:
                wrong(f"is a .{kind} value, not {_describe(value)}")
            return np.array(value, {"f16": "f2", "f32": "f4", "f64": "f8"}[kind]).tobytes()
        if isinstance(value, np.float16) and size == 2:
            return value.tobytes()
        if not isinstance(value, int | np.integer | np.bool_):
            wrong(f"is a .{kind} value, not {_describe(value)}")
        if not -(1 << 8 * size - 1) <= int(value) < 1 << 8 * size:
            wrong(f"{int(value)} does not fit {SIZES[kind]} bytes")
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def _describe(value) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    if isinstance(value, np.generic):
        return f"numpy.{value.dtype} {value}"
    return f"{type(value).__name__} {value!r}"[:80]


def _sizes(given, name: str) -> tuple[int, int, int]:
    """Return one to three sizes as three."""
    sizes = given if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int | np.integer) for s in sizes):
        raise LaunchError(f"{name} {given!r} must be one to three whole numbers")
    return tuple(itertools.islice((*map(int, sizes), 1, 1), 3))
