"""Where a verdict may look: data sheets, a run in the emulator, the records. Nothing else.

A judge (``lib.claims.checks``) gets one `Evidence` and asks it for numbers, so a test can hand it
other numbers and see the verdict change.
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
from lib.paths import CUDA
from lib.ptx.core.machine import WARP
from lib.ptx.files import text_of
from lib.records import store as records
from lib.records import sweeps
from lib.records.reader import Recorded, RecordedRival
from lib.records.schema import CUBLAS, MachineRecord, Row, Sweep, SweepsRecord, mhz
from lib.run import runner
from lib.topics.code.instruction_mix import model as mix
from lib.topics.code.instruction_order import model as order
from lib.topics.limits.bottleneck import emulated as saturation
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.limits.occupancy.model import Occupancy, occupancy
from lib.topics.limits.roofline import model as roofline
from lib.topics.memory.accesses import model as accesses
from lib.topics.time.timeline.model import phases

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
NOT_TESTABLE = "not testable here"
NOT_YET = "not yet judged"
VERDICTS = (REPRODUCED, CONTRADICTED, NOT_TESTABLE, NOT_YET)

MEASURED = "measured"
RECORDED = "recorded"
EMULATED = "emulated"
MODELLED = "modelled"
REPORTED = "reported"
KINDS = (MEASURED, RECORDED, EMULATED, MODELLED, REPORTED)


R = TypeVar("R")

# The records' names (``lib.measure.counters``) of the counters that judges ask for.
DRAM_READ = "dram_read_bytes"
L2_BYTES = "l2_bytes"
WARPS_ACTIVE = "warps_active_percent"
FMA_PIPE = "fma_pipe_percent"
L1_DATA = "l1_data_percent"
LONG_SCOREBOARD = "stall_long_scoreboard"
BARRIER_STALL = "stall_barrier"
STALLS = (LONG_SCOREBOARD, BARRIER_STALL, "stall_short_scoreboard", "stall_mio_throttle",
          "stall_lg_throttle", "stall_math_pipe_throttle", "stall_wait", "stall_not_selected")


class Missing(LookupError):
    """The evidence that a judge asked for is not in the repository; the message names it."""


@dataclass(frozen=True)
class Verdict:
    """What the evidence says about a claim."""

    kind: str  # one of `VERDICTS`
    sentence: str  # why, with the numbers
    # Kinds of evidence, out of `KINDS`; empty only for a claim not yet judged.
    evidence: tuple[str, ...]
    where: str  # where in the repository, or in which publication, the evidence is

    def __post_init__(self) -> None:
        if self.kind not in VERDICTS:
            raise ValueError(f"{self.kind!r} is no verdict; use one of {', '.join(VERDICTS)}")
        unknown = set(self.evidence) - set(KINDS)
        if unknown:
            raise ValueError(f"{sorted(unknown)} is no kind of evidence; use {', '.join(KINDS)}")
        if self.kind != NOT_YET and not (self.evidence and self.where and self.sentence):
            raise ValueError(f"a verdict of {self.kind!r} needs a sentence, evidence and a place")


@dataclass(frozen=True)
class Loads:
    """Global loads of one matrix in one run: warp requests and the sectors they touched."""

    requests: int
    sectors: int

    @property
    def sectors_per_request(self) -> float:
        """Sectors that one request touches, on average."""
        return self.sectors / self.requests


@dataclass(frozen=True)
class SharedLoads:
    """Shared loads of one array in one run: machine instructions and wavefronts of warps."""

    instructions: int
    wavefronts: int
    ideal: int

    @property
    def conflict(self) -> float:
        """Wavefronts over those of a conflict-free access: 8 is an 8-way conflict."""
        return self.wavefronts / self.ideal


class Evidence:
    """The repository's evidence: data sheets, emulated runs, records."""

    def gpu(self, key: str) -> gpus.Gpu:
        """The data sheet of a GPU."""
        return gpus.GPUS[key]

    def counters(self, stem: str, variant: str, n: int = 64) -> Mapping[str, int]:
        """Counters of an n×n×n emulated run of the oldest code that runs it, α = 1, β = 0."""
        return _emulate(stem, variant, n).trace.counters()

    def counters_with_beta(self, stem: str, variant: str, n: int = 64) -> Mapping[str, int]:
        """The same counters with β = 1/2, so that C is read."""
        return _emulate(stem, variant, n, beta=0.5).trace.counters()

    def work_of_warps(self, stem: str, variant: str, n: int = 64) -> list[frozenset[str]]:
        """What each warp of the first block does in an n×n×n run in the emulator.

        Returns ``"load"`` where a warp loads from global memory, ``"multiply"`` where it loads
        fragments from shared memory.
        """
        warps = kernels.find(stem).variant(variant).threads // WARP
        found = []
        for warp in range(warps):
            trace = _emulate(stem, variant, n, warp=warp).trace
            kinds = {
                (site.kind, site.space) for site in trace.sites if trace.watched.get(site.line)
            }
            found.append(frozenset(
                name for name, kind in _WORK.items() if kind in kinds
            ))
        return found

    def resources(self, stem: str, variant: str, arch: str = "sm_75") -> Resources:
        """What ptxas reports of an instantiation."""
        return _compiled(stem, variant, arch).resources

    def work_between(self, stem: str, variant: str, arch: str) -> int:
        """FMA that the main loop's machine code has between a global load and its store."""
        loop = _compiled(stem, variant, arch).inner_loop
        return order.work_between([i.opcode for i in loop])

    def prologue_loads(self, stem: str, variant: str, arch: str) -> int:
        """Global loads in the machine code before the main loop."""
        compiled = _compiled(stem, variant, arch)
        first = compiled.inner_loop[0].address
        return sum(i.base == "LDG" and i.address < first for i in compiled.sass)

    def races(self, stem: str, variant: str, without: str = "") -> int:
        """Hazards that the emulator finds, with the source's line that holds `without` left out."""
        kernel = kernels.find(stem)
        chosen = kernel.variant(variant)
        text = text_of(kernel.file(chosen))
        if without:
            line = next((r for r in text.splitlines(keepends=True) if without in r), without)
            text = edited(text, line, "")
        done = runner.run(kernel, chosen.problem(64, 64, 96), variant=chosen,
                          backend="emulator", source=text, races=True)
        return len(done.emulated.hazards)

    def buffers(self, stem: str, variant: str) -> list[tuple[int, int]]:
        """Which buffer of A each step of the main loop fills, and which it reads, by addresses.

        From a run of four steps; the first warp of the first block.
        """
        launch = _emulate(stem, variant, 128).emulated
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

    def arrival(self, gpu: str, stem: str, variant: str) -> float:
        """Median cycles from a warp's first load of a tile to the arrival of the last, recorded.

        Raises Missing if there is no such record.
        """
        marks = self._found(f"the timeline of {stem} ({variant}) on the {gpu}",
                            lambda: Recorded(stem, gpu).timeline(variant))
        spans = phases(marks.events, marks.blocks[0].warps)
        took = [
            load.end - load.start + wait.end - wait.start
            for load, wait in zip(spans, spans[1:], strict=False)
            if (load.event, wait.event) == ("load", "wait") and load.warp == wait.warp
        ]
        return statistics.median(took)

    def loads(self, stem: str, variant: str, n: int = 64) -> Mapping[str, Loads]:
        """Global loads of ``"A"`` and of ``"B"`` in an n×n×n run in the emulator.

        Which matrix a load reads is told by its addresses, taken from the first warp.
        """
        launch = _emulate(stem, variant, n).emulated
        found: dict[str, Loads] = {}
        for site in launch.trace.sites:
            if site.kind != "load" or site.space != "global" or not site.requests:
                continue
            matrix = accesses.array(launch.trace.watched[site.line][0], launch.allocations)
            before = found.get(matrix, Loads(0, 0))
            found[matrix] = Loads(before.requests + site.requests, before.sectors + site.sectors)
        return found

    def shared_loads(self, stem: str, variant: str, n: int = 128) -> Mapping[str, SharedLoads]:
        """Shared loads of each array, by its name in the source, in an n×n×n emulated run."""
        launch = _emulate(stem, variant, n).emulated
        found: dict[str, SharedLoads] = {}
        for site in launch.trace.sites:
            if site.kind != "load" or site.space != "shared" or not site.requests:
                continue
            name = accesses.array(launch.trace.watched[site.line][0], launch.shared)
            before = found.get(name, SharedLoads(0, 0, 0))
            found[name] = SharedLoads(
                before.instructions + site.requests, before.wavefronts + site.wavefronts,
                before.ideal + site.ideal,
            )
        return found

    def loop(self, stem: str, variant: str, arch: str) -> Mapping[str, int]:
        """Instructions of the main loop's machine code, by class of the instruction mix."""
        return Counter(mix.classify(i.opcode) for i in _compiled(stem, variant, arch).inner_loop)

    def refused(self, stem: str, variant: str) -> np.ndarray:
        """The 32 addresses of the access, off its alignment, at which the emulator stops a run.

        None are returned, an empty array, where it runs to its end.
        """
        kernel = kernels.find(stem)
        chosen = kernel.variant(variant)
        M, N = chosen.tile
        try:
            runner.run(kernel, chosen.problem(M, N, chosen.step), variant=chosen,
                       backend="emulator", exact=True)
        except ptx.Misaligned as error:
            if error.addresses is not None:
                return error.addresses[0, :32]
            raise
        return np.empty(0, dtype=np.int64)

    def unit_times(self, gpu: str, stem: str, variant: str, n: int) -> Mapping[str, float]:
        """The least seconds that each unit of a GPU would need at n×n×n, from emulated counters."""
        return saturation.unit_times(stem, variant, self.gpu(gpu), n)[0]

    def occupancy(self, gpu: str, stem: str, variant: str) -> Occupancy:
        """What fits one SM of a GPU, by CUDA's rules."""
        sheet, used = self.gpu(gpu), self.resources(stem, variant, self.gpu(gpu).arch)
        threads = kernels.find(stem).variant(variant).threads
        return occupancy(sheet, used.registers, used.shared_bytes, threads)

    def per_fma(self, stem: str, n: int = 128) -> Mapping[str, float]:
        """What a multiply-add costs each level of the machine, in the emulator, first variant.

        ``"L1"``: requests of global memory; ``"L2 and DRAM"``: their sectors; ``"shared memory"``:
        its wavefronts; ``"registers"``: a thread's, by ptxas, for sm_75.
        """
        kernel = kernels.find(stem)
        chosen = kernel.variants[0]
        found = self.counters(stem, chosen.name, n)
        work = found["ffma_thread_instructions"]
        return {
            "L1": (found["global_load_requests"] + found["global_store_requests"]) / work,
            "L2 and DRAM": (found["global_load_sectors"] + found["global_store_sectors"]) / work,
            "shared memory": found["shared_wavefronts"] / work,
            "registers": self.resources(stem, chosen.name).registers,
        }

    def busiest(self, gpu: str, stem: str, n: int) -> str:
        """The unit that needs longest for an n×n×n run's recorded counters, first variant.

        Raises Missing if there is no such record, size or counter.
        """
        name = kernels.find(stem).variants[0].name
        found = {
            counter: self.counter(gpu, stem, name, n, counter) for counter in (
                "global_load_requests", "global_store_requests", "global_load_sectors",
                "global_store_sectors", "shared_wavefronts", "ffma_thread_instructions",
                "instructions", L2_BYTES, DRAM_READ, "dram_write_bytes")
        }
        machine = records.load(MachineRecord, gpu)
        return busiest.longest(busiest.of_record(
            found, self.gpu(gpu),
            roofline.Roofs.from_record(machine, self.gpu(gpu)) if machine else None,
            product=roofline.product_of(_emulate(stem, name, 128).trace.instructions),
            flops=2.0 * n**3, clock_mhz=mhz(self.bench(gpu, stem, name, n).clock),
        ))

    def legal(self, header: str, call: str, arch: str) -> bool:
        """Whether a call of one of the book's device functions compiles for an architecture."""
        text = f'#include "{header}"\ntemplate <int N> __global__ void probe() {{ {call}; }}\n'
        try:
            compile_source(text, "probe<1>", arch, include=CUDA / "include")
        except CompileError:
            return False
        return True

    def counter(self, gpu: str, stem: str, variant: str, n: int, metric: str) -> float:
        """One ncu counter of an n×n×n run, as recorded.

        Raises Missing if there is no such record, size or counter.
        """
        what = f"{metric} of {stem} ({variant}) at {n:,} on the {gpu}"
        found = self._found(what, lambda: (
            RecordedRival(gpu).counters(n, variant) if stem == CUBLAS
            else Recorded(stem, gpu).counters(n, variant)))
        if metric not in found:
            raise Missing(what)
        return float(found[metric])

    def bench(
        self, gpu: str, stem: str, variant: str, n: int, ptx_arch: str | None = None
    ) -> Row:
        """The recorded timing of an n×n×n run: seconds, TFLOP/s, ratio and more.

        With a `ptx_arch` it is that of this older architecture's code, assembled for the GPU.

        Raises Missing if there is no such record, code or size.
        """
        code = f", {ptx_arch} code," if ptx_arch else ""
        return self._found(f"the time of {stem} ({variant}){code} at {n:,} on the {gpu}",
                           lambda: Recorded(stem, gpu).bench(n, variant, ptx_arch))

    def first(self, gpu: str, stem: str, n: int) -> Row:
        """`bench` of a version's first variant."""
        return self.bench(gpu, stem, kernels.find(stem).variants[0].name, n)

    def sweep(self, gpu: str, name: str) -> Sweep:
        """A recorded series of `lib.measure.sweeps`.

        Raises Missing if there is no such record, or it is of other source than today's.
        """
        record = records.load(SweepsRecord, gpu)
        if record is None or name not in record.sweeps:
            raise Missing(f"the sweep {name} on the {gpu}")
        if sweeps.stale(record.sweeps[name]):
            raise Missing(f"the sweep {name} of today's source on the {gpu}")
        return record.sweeps[name]

    @staticmethod
    def _found(what: str, read: Callable[[], R]) -> R:
        """What a record holds; `what` says what is missing where it holds nothing."""
        try:
            return read()
        except (records.NotRecorded, ValueError) as nothing:  # or no such kernel, or variant
            raise Missing(what) from nothing




def _compiled(stem: str, variant: str, arch: str) -> Compiled:
    kernel = kernels.find(stem)
    return compile_kernel(kernel, kernel.variant(variant), arch)


# What tells that a warp loads tiles, or multiplies them.
_WORK = {"load": ("load", "global"), "multiply": ("ldmatrix", "shared")}


@cache
def _emulate(stem: str, variant: str, n: int, beta: float = 0.0, warp: int = 0) -> Any:
    """One run, kept for the process: several judges ask about the same one."""
    kernel = kernels.find(stem)
    chosen = kernel.variant(variant)
    return runner.run(kernel, chosen.problem(n, n, n, beta=beta), variant=chosen,
                      backend="emulator", arch=kernel.oldest(chosen), watch=(0, warp))
