"""The hierarchical roofline: which roof is over a kernel, at each level of memory.

Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009); a roof for each level after Yang,
Kurth and Williams, "Hierarchical Roofline Analysis" (2020):
attainable FLOP/s = min(peak FLOP/s, intensity × bandwidth of the level), with
intensity = FLOP / bytes that cross that level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lib import gpus
from lib.gpus import Gpu
from lib.ptx.core.machine import SECTOR, WAVEFRONT
from lib.records.schema import MachineRecord

LEVELS = ("L1/shared", "DRAM")

# Roofs of tensor-core instructions: the record's key, and the instruction.
PRODUCTS = {"mma_k8": "mma.m16n8k8", "mma_k16": "mma.m16n8k16", "wgmma": "wgmma"}
# wgmma of 8-bit floats, whose roof nothing has measured: the data sheet's peak is its own.
FP8 = "wgmma, FP8"


@dataclass(frozen=True)
class Roofs:
    """What one GPU can do at most.

    Attributes
    ----------
    dram, shared : float or None
        Bandwidths, B/s; None where no source gives one. `shared` stands for L1 too: they are one
        array behind one data path. Nobody gives the L2's.
    ffma, tensor : float or None
        FP32 and FP16 tensor-core peaks, FLOP/s.
    evidence : str
        Where the figures come from, as a figure's corner shows it.
    products : mapping of str to float
        Measured peaks of single tensor-core instructions, FLOP/s, by `PRODUCTS`' names.
    """

    dram: float | None
    shared: float | None
    ffma: float | None
    tensor: float | None
    evidence: str
    products: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_gpu(cls, gpu: Gpu) -> Roofs:
        """Roofs of the data sheet; the vendor gives no L2 bandwidth."""
        return cls(dram=gpu.dram_bytes_per_s,
                   shared=gpus.data_bytes_per_clock(gpu) * gpu.sms * gpu.clock_hz,
                   ffma=gpu.fp32_flops, tensor=gpu.tensor_fp16_flops,
                   evidence=f"modelled: data sheet of {gpu.name}")

    @classmethod
    def from_record(cls, machine: MachineRecord, gpu: Gpu) -> Roofs:
        """Roofs measured on a machine; what it did not measure stays None.

        Parameters
        ----------
        machine : MachineRecord
            ``roofs`` has ``copy``, ``shared`` in B/s and ``ffma``, ``mma_k8``, ``mma_k16`` and
            ``wgmma`` in FLOP/s. Its ``l2``, what one loop of reads reached, is passed by kernels
            here, so it is no roof.
        gpu : Gpu
            Gives the tensor cores' peak, which no instruction need reach.
        """
        measured = {name: roof.value for name, roof in machine.roofs.named().items()}
        return cls(
            dram=measured.get("copy"),
            shared=measured.get("shared"),
            ffma=measured.get("ffma"),
            tensor=gpu.tensor_fp16_flops,
            evidence=f"recorded: {machine.gpu.name}, {machine.date}",
            products={
                name: measured[key] for key, name in PRODUCTS.items() if key in measured
            },
        )

    @property
    def bandwidths(self) -> dict[str, float]:
        """Known bandwidths by level, B/s."""
        known = {"L1/shared": self.shared, "DRAM": self.dram}
        return {level: value for level, value in known.items() if value is not None}

    @property
    def peaks(self) -> dict[str, float]:
        """Known peaks, FLOP/s."""
        known = {"FFMA": self.ffma, "tensor": self.tensor}
        return {name: value for name, value in known.items() if value is not None} | dict(
            self.products)

    def ridge(self, level: str, peak: str = "FFMA") -> float:
        """Intensity (FLOP/B) above which `peak`, not the level's bandwidth, is the lower roof."""
        return self.peaks[peak] / self.bandwidths[level]

    def shares(self, mine: Sequence[Point], peak: str = "FFMA") -> dict[str, float]:
        """Return how much of each roof one version reaches, by the roof's name.

        Parameters
        ----------
        mine : sequence of Point
            The version, at each level.
        peak : str
            Which of `peaks` it is held against.
        """
        found = {
            point.level: point.flops_per_s / (point.intensity * self.bandwidths[point.level])
            for point in mine if point.level in self.bandwidths
        }
        return {**found, peak: mine[0].flops_per_s / self.peaks[peak]} if found else {}

    def attainable(self, level: str, intensity: float, peak: str = "FFMA") -> float:
        """FLOP/s that `intensity` (FLOP/B) at `level` leaves possible."""
        return min(self.peaks[peak], intensity * self.bandwidths[level])


@dataclass(frozen=True)
class Point:
    """One version at one level of memory.

    Attributes
    ----------
    name, level : str
    intensity : float
        FLOP/B at this level.
    flops_per_s : float
        What the version reaches, FLOP/s.
    """

    name: str
    level: str
    intensity: float
    flops_per_s: float


def product_of(opcodes: Iterable[str]) -> str | None:
    """Return which tensor-core instruction a kernel multiplies with, by `PRODUCTS`' names.

    Parameters
    ----------
    opcodes : iterable of str
        PTX opcodes that ran, as ``Trace.instructions`` has them. wmma counts as m16n8k16, which
        ptxas makes of it from sm_80 on.

    Returns
    -------
    str or None
        None if there is none of them; `FP8` for a wgmma of 8-bit floats.
    """
    names = [opcode.split(".") for opcode in opcodes]
    if any(parts[0] == "wgmma" and parts[1] == "mma_async" for parts in names):
        return FP8 if any({"e4m3", "e5m2"} & {*parts} for parts in names) else "wgmma"
    if any(parts[0] == "wmma" and parts[1] == "mma" or "m16n8k16" in parts for parts in names):
        return "mma.m16n8k16"
    return "mma.m16n8k8" if any("m16n8k8" in parts for parts in names) else None


def l1_bytes(counters: Mapping[str, float]) -> float:
    """Bytes that cross L1 and shared memory, from a trace's counters or a GPU's.

    Global sectors count 32 bytes each, shared wavefronts 128 bytes each: both are what the data
    path is busy for, whether a lane uses the bytes or not. A GPU counts an asynchronous copy in
    both, and more than once; where it also counts the wavefronts that the data stage served, no
    more than 128 bytes for each of them have crossed it.
    """
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    asked = SECTOR * sectors + WAVEFRONT * counters["shared_wavefronts"]
    served = counters.get("l1_wavefronts")
    return min(asked, WAVEFRONT * served) if served else asked


def points(name: str, flops: float, seconds: float, bytes_by_level: Mapping[str, float]) -> list[
    Point
]:
    """Return one point for each level.

    Parameters
    ----------
    name : str
        The version.
    flops : float
        Floating-point operations of the problem (2·M·N·K and what β adds).
    seconds : float
        Measured or recorded time.
    bytes_by_level : mapping of str to float
        Bytes that cross each of `LEVELS`; levels that are missing give no point.

    Raises
    ------
    ValueError
        If a level is unknown, or bytes or seconds are not positive.
    """
    if seconds <= 0:
        raise ValueError(f"{name} took {seconds} s; a time is positive")
    found = []
    for level, nbytes in bytes_by_level.items():
        if level not in LEVELS:
            raise ValueError(f"unknown level {level!r}; known: {', '.join(LEVELS)}")
        if nbytes <= 0:
            raise ValueError(f"{name} moved {nbytes} B at {level}; a level that is used moves some")
        found.append(Point(name, level, flops / nbytes, flops / seconds))
    return sorted(found, key=lambda point: LEVELS.index(point.level))
