"""The hierarchical roofline: which roof is over a kernel, at each level of memory.

Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009); a roof for each level after Yang,
Kurth and Williams, "Hierarchical Roofline Analysis" (2020):
attainable FLOP/s = min(peak FLOP/s, intensity × bandwidth of the level), with
intensity = FLOP / bytes that cross that level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lib.gpus import Gpu
from lib.models import units

LEVELS = ("L1/shared", "L2", "DRAM")


@dataclass(frozen=True)
class Roofs:
    """What one GPU can do at most.

    Attributes
    ----------
    dram, l2, shared : float or None
        Bandwidths, B/s; None where no source gives one. `shared` stands for L1 too: they are one
        array behind one data path.
    ffma, tensor : float or None
        FP32 and FP16 tensor-core peaks, FLOP/s.
    evidence : str
        Where the figures come from, as a figure's corner shows it.
    """

    dram: float | None
    l2: float | None
    shared: float | None
    ffma: float | None
    tensor: float | None
    evidence: str

    @classmethod
    def from_gpu(cls, gpu: Gpu) -> Roofs:
        """Roofs of the data sheet; the vendor gives no L2 bandwidth."""
        return cls(
            dram=gpu.dram_bytes_per_s,
            l2=None,
            shared=units.data_bytes_per_clock(gpu) * gpu.sms * gpu.clock_hz,
            ffma=gpu.fp32_flops,
            tensor=gpu.tensor_fp16_flops,
            evidence=f"modelled: data sheet of {gpu.name}",
        )

    @classmethod
    def from_record(cls, machine: Mapping, gpu: Gpu) -> Roofs:
        """Roofs measured on a machine; what it did not measure stays None.

        Parameters
        ----------
        machine : mapping
            A ``machine.json`` record: ``roofs`` has ``copy``, ``l2``, ``shared`` in B/s and
            ``ffma`` in FLOP/s.
        gpu : Gpu
            Gives the tensor-core peak, which no small kernel of ours measures.
        """
        measured = {name: roof["value"] for name, roof in machine["roofs"].items()}
        return cls(
            dram=measured.get("copy"),
            l2=measured.get("l2"),
            shared=measured.get("shared"),
            ffma=measured.get("ffma"),
            tensor=measured.get("tensor", gpu.tensor_fp16_flops),
            evidence=f"recorded: {machine['gpu']['name']}, {machine['date']}",
        )

    @property
    def bandwidths(self) -> dict[str, float]:
        """Known bandwidths by level, B/s."""
        known = {"L1/shared": self.shared, "L2": self.l2, "DRAM": self.dram}
        return {level: value for level, value in known.items() if value is not None}

    @property
    def peaks(self) -> dict[str, float]:
        """Known peaks, FLOP/s."""
        known = {"FFMA": self.ffma, "tensor": self.tensor}
        return {name: value for name, value in known.items() if value is not None}

    def ridge(self, level: str, peak: str = "FFMA") -> float:
        """Intensity (FLOP/B) above which `peak`, not the level's bandwidth, is the lower roof."""
        return self.peaks[peak] / self.bandwidths[level]

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


def l1_bytes(counters: Mapping[str, int]) -> int:
    """Bytes that cross L1 and shared memory, from a trace's counters.

    Global sectors count 32 bytes each, shared wavefronts 128 bytes each: both are what the data
    path is busy for, whether a lane uses the bytes or not.
    """
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    return 32 * sectors + 128 * counters["shared_wavefronts"]


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
