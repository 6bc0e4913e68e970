"""Where a verdict may look: data sheets, a run in the emulator, the records. Nothing else.

The table of claims (``lib/claims/claims.toml``) is written in these functions. A kernel is named as
on the command line, ``"01_naive/swapped"``, or a version's first variant by the version alone;
recorded is what an H100 measured.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from lib import gpus, ptx
from lib.compiler.compiled import Compiled, Resources, compile_source
from lib.compiler.nvrtc import CompileError
from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.kernels.source import edited
from lib.kernels.spec import Kernel, Variant, parted
from lib.paths import CUDA
from lib.ptx.core.machine import SECTOR, WARP
from lib.ptx.files import text_of
from lib.records import store as records
from lib.records import sweeps
from lib.records.reader import Recorded, RecordedRival
from lib.records.schema import CUBLAS, MachineRecord, Row, Sweep, SweepsRecord, mhz
from lib.run import runner
from lib.show import accesses, bottleneck, roofline
from lib.show import instruction_mix as mix
from lib.show import instruction_order as order
from lib.show.occupancy import Occupancy
from lib.show.occupancy import occupancy as by_rules
from lib.show.timeline import phases

GPU = "H100"  # whose records are read
# Tensor cores of one SM: the architecture white papers (nvidia2018turing, nvidia2020ampere,
# nvidia2022hopper).
TENSOR_CORES_PER_SM = {"T4": 8, "A100": 4, "H100": 4, "H200": 4}

R = TypeVar("R")


class Missing(LookupError):
    """The evidence that a claim asks for is not in the repository; the message names it."""


@dataclass
class Loads:
    """Loads of one array in one run: warp requests, and the sectors or wavefronts they took."""

    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0

    @property
    def sectors_per_request(self) -> float:
        """Sectors that one request touches, on average."""
        return self.sectors / self.requests

    @property
    def conflict(self) -> float:
        """Wavefronts over those of a conflict-free access: 8 is an 8-way conflict."""
        return self.wavefronts / self.ideal


def gpu(key: str) -> gpus.Gpu:
    """The data sheet of a GPU."""
    return gpus.GPUS[key]


def fma_per_tensor_core(key: str) -> float:
    """Multiply-adds that one tensor core does in a clock, from the data sheet's dense peak."""
    sheet = gpu(key)
    return sheet.tensor_fp16_flops / (2 * sheet.sms * TENSOR_CORES_PER_SM[key] * sheet.clock_hz)


def fits(key: str, registers: int, shared_bytes: int, threads: int) -> Occupancy:
    """What fits one SM of a GPU, by CUDA's rules, of blocks that take so much."""
    return by_rules(gpu(key), registers, shared_bytes, threads)


def occupancy(key: str, name: str) -> Occupancy:
    """What fits one SM of a GPU of a kernel's blocks."""
    used = resources(name, gpu(key).arch)
    return fits(key, used.registers, used.shared_bytes, _of(name)[1].threads)


# Machine code.

def resources(name: str, arch: str = "sm_75") -> Resources:
    """What ptxas reports of an instantiation."""
    return _compiled(name, arch).resources


def loop(name: str, arch: str) -> Mapping[str, int]:
    """Instructions of the main loop's machine code, by class of the instruction mix."""
    return Counter(mix.classify(i.opcode) for i in _compiled(name, arch).inner_loop)


def of_kind(counted: Mapping[str, int], kind: str) -> int:
    """How many of a loop's instructions are of the classes that begin so."""
    return sum(number for name, number in counted.items() if name.startswith(kind))


def work_between(name: str, arch: str) -> int:
    """FMA that the main loop's machine code has between a global load and its store."""
    return order.work_between([i.opcode for i in _compiled(name, arch).inner_loop])


def prologue_loads(name: str, arch: str) -> int:
    """Global loads in the machine code before the main loop."""
    compiled = _compiled(name, arch)
    first = compiled.inner_loop[0].address
    return sum(i.base == "LDG" and i.address < first for i in compiled.sass)


def legal(header: str, call: str, arch: str) -> bool:
    """Whether a call of one of the book's device functions compiles for an architecture."""
    text = f'#include "{header}"\ntemplate <int N> __global__ void probe() {{ {call}; }}\n'
    try:
        compile_source(text, "probe<1>", arch, include=CUDA / "include")
    except CompileError:
        return False
    return True


# Emulated.

def counters(name: str, n: int = 64) -> Mapping[str, int]:
    """Counters of an n×n×n emulated run of the oldest code that runs it, α = 1, β = 0."""
    return _emulate(name, n).trace.counters()


def counters_with_beta(name: str, n: int = 64) -> Mapping[str, int]:
    """The same counters with β = 1/2, so that C is read."""
    return _emulate(name, n, beta=0.5).trace.counters()


def l1_load_bytes(name: str, n: int) -> float:
    """Bytes that global loads move out of L1 at n×n×n, B.

    Every multiply-add brings the same sectors with it whatever the size (a multiple of the tile),
    so a small run gives them.
    """
    return counters(name)["global_load_sectors"] * SECTOR * (n / 64) ** 3


def flop_per_shared_load(name: str) -> float:
    """Operations of a thread for each shared load that it executes in machine code."""
    counted = counters(name, 128)
    return 2 * counted["ffma_thread_instructions"] / (WARP * counted["shared_load_instructions"])


def loads(name: str, n: int = 64) -> Mapping[str, Loads]:
    """Global loads of ``"A"`` and of ``"B"`` in an n×n×n emulated run.

    Which matrix a load reads is told by its addresses, taken from the first warp.
    """
    return _loads(name, n, "global")


def shared_loads(name: str) -> Mapping[str, Loads]:
    """Shared loads of each array, by its name in the source, in an n×n×n emulated run."""
    return _loads(name, 128, "shared")


def _loads(name: str, n: int, space: str) -> Mapping[str, Loads]:
    launch = _emulate(name, n).emulated
    arrays = launch.allocations if space == "global" else launch.shared
    found: dict[str, Loads] = {}
    for site in launch.trace.sites:
        if (site.kind, site.space) == ("load", space) and site.requests:
            array = accesses.array(launch.trace.watched[site.line][0], arrays)
            one = found.setdefault(array, Loads())
            one.requests += site.requests
            one.sectors += site.sectors
            one.wavefronts += site.wavefronts
            one.ideal += site.ideal
    return found


def work_of_warps(name: str) -> list[set[str]]:
    """What each warp of the first block does in an n×n×n emulated run.

    ``"load"`` where it loads from global memory, ``"multiply"`` where it loads fragments from
    shared memory.
    """
    work = {("load", "global"): "load", ("ldmatrix", "shared"): "multiply"}
    traces = [_emulate(name, 64, warp=warp).trace for warp in range(_of(name)[1].threads // WARP)]
    return [{work[site.kind, site.space] for site in trace.sites if trace.watched.get(site.line)
             and (site.kind, site.space) in work} for trace in traces]


def buffers(name: str) -> list[tuple[int, int]]:
    """Which buffer of A each step of the main loop fills, and which it reads, by addresses.

    From a run of four steps; the first warp of the first block.
    """
    launch = _emulate(name, 128).emulated
    tiles = next(a for a in launch.shared if accesses.name_of(a) == "As")
    longest: dict[str, list[int]] = {"store": [], "load": []}
    for site in launch.trace.sites:
        touched = [
            (int(access.addresses[access.active][0]) - tiles.base) // (tiles.nbytes // 2)
            for access in launch.trace.watched.get(site.line, ())
        ]
        inside = site.space == "shared" and touched and set(touched) <= {0, 1}
        if inside and len(touched) > len(longest[site.kind]):
            longest[site.kind] = touched
    return list(zip(longest["store"], longest["load"], strict=False))


def races(name: str, without: str = "") -> int:
    """Hazards that the emulator finds, with the source's line that holds `without` left out."""
    kernel, variant = _of(name)
    text = text_of(kernel.file(variant))
    if without:
        line = next((r for r in text.splitlines(keepends=True) if without in r), without)
        text = edited(text, line, "")
    done = runner.run(kernel, variant.problem(64, 64, 96), variant=variant, backend="emulator",
                      source=text, races=True)
    return len(done.emulated.hazards)


def refused(name: str) -> np.ndarray:
    """The 32 addresses of the access, off its alignment, at which the emulator stops a run.

    None are returned, an empty array, where it runs to its end.
    """
    kernel, variant = _of(name)
    try:
        runner.run(kernel, variant.problem(*variant.tile, variant.step), variant=variant,
                   backend="emulator", exact=True)
    except ptx.Misaligned as error:
        if error.addresses is not None:
            return error.addresses[0, :WARP]
        raise
    return np.empty(0, dtype=np.int64)


def unit_times(key: str, name: str, n: int) -> Mapping[str, float]:
    """The least seconds that each unit of a GPU would need at n×n×n, from emulated counters."""
    kernel, variant = _of(name)
    return bottleneck.emulated_times(kernel.stem, variant.name, gpu(key), n)


def per_fma(name: str) -> Mapping[str, float]:
    """What a multiply-add costs each level of the machine, in the emulator.

    ``"L1"``: requests of global memory; ``"L2 and DRAM"``: their sectors; ``"shared memory"``:
    its wavefronts; ``"registers"``: a thread's, by ptxas, for sm_75.
    """
    found = counters(name, 128)
    work = found["ffma_thread_instructions"]
    return {
        "L1": (found["global_load_requests"] + found["global_store_requests"]) / work,
        "L2 and DRAM": (found["global_load_sectors"] + found["global_store_sectors"]) / work,
        "shared memory": found["shared_wavefronts"] / work,
        "registers": resources(name).registers,
    }


# Recorded. Each raises Missing if there is no such record, size or counter.

def comparable_size(n: int) -> int:
    """The size at which an H100 can stand for a T4 at n×n×n, where DRAM traffic is in question.

    What reaches DRAM depends on how far the matrices exceed the L2. At 2,048 a matrix is four
    times a T4's L2 and a third of an H100's: the same size would compare nothing. So n is doubled
    until a matrix exceeds the H100's L2 at least as far.
    """
    size = n
    while size**2 / gpu(GPU).l2_bytes < n**2 / gpu("T4").l2_bytes:
        size *= 2
    return size


def counter(name: str, n: int, metric: str) -> float:
    """One ncu counter of an n×n×n run."""
    what = f"{metric} of {name} at {n:,} on the {GPU}"
    stem, variant = parted(name)
    found = _found(what, lambda: (
        RecordedRival(GPU).counters(n, variant or "") if stem == CUBLAS
        else Recorded(stem, GPU).counters(n, _of(name)[1].name)))
    if metric not in found:
        raise Missing(what)
    return float(found[metric])


def bench(name: str, n: int, ptx_arch: str | None = None) -> Row:
    """The timing of an n×n×n run: seconds, TFLOP/s, ratio and more.

    With a `ptx_arch` it is that of this older architecture's code, assembled for the GPU.
    """
    code = f", {ptx_arch} code," if ptx_arch else ""
    return _found(f"the time of {name}{code} at {n:,} on the {GPU}", lambda: Recorded(
        parted(name)[0], GPU).bench(n, _of(name)[1].name, ptx_arch))


def gain_of_buffers(variant: str, n: int) -> float:
    """Speed of one of 07's small tiles over that of the padded kernel, less 1."""
    before = bench("05_bank_conflicts/tile_padded", n).seconds
    return before / bench(f"07_double_buffer/{variant}", n).seconds - 1


def arrival(name: str) -> float:
    """Median cycles from a warp's first load of a tile to the arrival of the last."""
    marks = _found(f"the timeline of {name} on the {GPU}",
                   lambda: Recorded(parted(name)[0], GPU).timeline(_of(name)[1].name))
    spans = phases(marks.events, marks.blocks[0].warps)
    return statistics.median(
        load.end - load.start + wait.end - wait.start
        for load, wait in zip(spans, spans[1:], strict=False)
        if (load.event, wait.event) == ("load", "wait") and load.warp == wait.warp)


def busiest(name: str, n: int) -> str:
    """The unit that needs longest for an n×n×n run's counters."""
    found = {
        one: counter(name, n, one) for one in (
            "global_load_requests", "global_store_requests", "global_load_sectors",
            "global_store_sectors", "shared_wavefronts", "ffma_thread_instructions",
            "hmma_instructions", "gmma_instructions", "instructions", "l2_bytes",
            "dram_read_bytes", "dram_write_bytes")
    }
    machine = records.load(MachineRecord, GPU)
    return bottleneck.longest(bottleneck.of_record(
        found, gpu(GPU), roofline.Roofs.from_record(machine, gpu(GPU)) if machine else None,
        dtype=_of(name)[1].dtype, flops=2.0 * n**3, clock_mhz=mhz(bench(name, n).clock),
    ))


def sweep(name: str) -> Sweep:
    """A series of `lib.measure.sweeps`, of today's source."""
    record = records.load(SweepsRecord, GPU)
    if record is None or name not in record.sweeps or sweeps.stale(record.sweeps[name]):
        raise Missing(f"the sweep {name} of today's source on the {GPU}")
    return record.sweeps[name]


def _found(what: str, read: Callable[[], R]) -> R:
    """What a record holds; `what` says what is missing where it holds nothing."""
    try:
        return read()
    except (records.NotRecorded, ValueError) as nothing:  # or no such kernel, or variant
        raise Missing(what) from nothing


def _of(name: str) -> tuple[Kernel, Variant]:
    stem, variant = parted(name)
    kernel = kernels.find(stem)
    return kernel, kernel.variant(variant or kernel.variants[0].name)


def _compiled(name: str, arch: str) -> Compiled:
    return compile_kernel(*_of(name), arch)


@cache
def _emulate(name: str, n: int, beta: float = 0.0, warp: int = 0) -> Any:
    """One run, kept for the process: several claims ask about the same one."""
    kernel, variant = _of(name)
    return runner.run(kernel, variant.problem(n, n, n, beta=beta), variant=variant,
                      backend="emulator", arch=kernel.oldest(variant), watch=(0, warp))
