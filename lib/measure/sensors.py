"""What the GPU's sensors say: temperature, throttling, energy; read only.

Neither the clock nor the power of what is timed: a reading is of a moment, or of the last second,
and a turn lasts 5 ms. The clock is the SMs' own (`lib.measure.probe`), the power that of a run of
seconds by the energy counter (`lib.measure.energy`).

Through NVML (the package ``nvidia-ml-py``) where it is installed, else through ``nvidia-smi``,
which knows no energy and no reasons. Nothing is ever set.
"""

from __future__ import annotations

import contextlib
import hashlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import ModuleType
from typing import Any, Protocol

from lib.run import device

# Bits of what NVML gives as the reasons for a clock below the highest (nvml.h,
# nvmlClocksEventReason*). That the GPU is idle is no reason to distrust a time.
REASONS = {
    0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
    0x80: "hardware power brake", 0x100: "display clocks",
}
# A bit that isn't among them is told by its number: a later driver may have more.
# Reasons that a GPU at work has by itself: every large product on tensor cores meets the power cap.
# The others say that the machine, not the kernel, set the clock.
USUAL = frozenset({"power cap"})
IDLE = 0x1
PERIOD = 0.02  # s between two readings

NOT_READ = "energy and throttling are not read: "
WITHOUT_NVML = NOT_READ + "pip install nvidia-ml-py"


def driver() -> str:
    """The release of NVIDIA's driver, or "unknown" where nvidia-smi doesn't say."""
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return said.partition("\n")[0].strip() or "unknown"


class Counter(Protocol):
    """NVML's energy counter."""

    def joules(self) -> float | None: ...


class Sensors:
    """One GPU's sensors, by NVML.

    `nvml`: ``pynvml``, or what plays it. `handle`: the device, as NVML names it.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    def read(self) -> dict[str, Any]:
        """What can be read now: `temperature_c`, `reasons`."""
        nvml, handle = self._nvml, self._handle
        asked = {
            "temperature_c": lambda: float(
                nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        }
        found = {}
        for name, ask in asked.items():
            with contextlib.suppress(nvml.NVMLError):
                found[name] = ask()
        return found

    def joules(self) -> float | None:
        """Energy since the driver was loaded, J; None on a GPU without the counter."""
        try:
            return self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1e3
        except self._nvml.NVMLError:
            return None

    def others(self) -> int:
        """How many other processes compute on the GPU: a shared one's times are not its own."""
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError:
            return 0
        return max(len(running) - 1, 0)


def nvml() -> Sensors | None:
    """The sensors of the current device; None where they can't be asked (`why_not` says why)."""
    return _opened()[0]


def why_not() -> str:
    """Why there are no sensors, and what to do, in a line; empty where there are."""
    return _opened()[1]


@lru_cache(maxsize=1)
def _opened() -> tuple[Sensors | None, str]:
    module = _pynvml()
    if module is None:
        return None, WITHOUT_NVML
    try:
        module.nvmlInit()
        return Sensors(module, module.nvmlDeviceGetHandleByUUID(uuid())), ""
    except module.NVMLError as error:
        return None, NOT_READ + f"NVML says {error}: does nvidia-smi work here?"


def _pynvml() -> ModuleType | None:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def uuid() -> str:
    """The current device's UUID, as the driver's tools print it: ``GPU-…``."""
    cp = device.cupy()
    raw = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["uuid"]
    digits = bytes(raw).hex() if not isinstance(raw, str) else raw
    return "GPU-" + "-".join(
        digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))


def board() -> str:
    """Which board this is, without naming it: a hash of its UUID."""
    return hashlib.sha256(uuid().encode()).hexdigest()[:16]


class Sampler:
    """Read the sensors while the block runs: temperature and throttling; read only.

    By NVML every 20 ms, or the temperature by ``nvidia-smi`` every 50 ms.
    """

    def __init__(self, sensors: Callable[[], Sensors | None] = nvml) -> None:
        self._sensors = sensors

    def __enter__(self) -> Sampler:
        self._samples: list[dict[str, Any]] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._over = threading.Event()
        source = self._sensors()
        if source is not None:
            self._reader = threading.Thread(target=self._poll, args=(source,), daemon=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                self._process = subprocess.Popen(
                    ["nvidia-smi", "--query-gpu=temperature.gpu",
                     "--format=csv,noheader,nounits", "--loop-ms=50", f"--id={uuid()}"],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                )
                self._reader = threading.Thread(
                    target=self._read, args=(self._process.stdout,), daemon=True)
        if self._reader:
            self._reader.start()
        return self

    def _poll(self, source: Sensors) -> None:
        while not self._over.wait(PERIOD):
            self._samples.append(source.read())

    def _read(self, said: Iterable[str]) -> None:
        for line in said:
            self._samples.append(self.parse(line))

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        if self._reader is not None:
            self._reader.join(timeout=1)

    @staticmethod
    def parse(line: str) -> dict[str, float]:
        """What one line of nvidia-smi says; what it can't read (``[N/A]``) is left out."""
        with contextlib.suppress(ValueError):
            return {"temperature_c": float(line)}
        return {}

    @property
    def temperature_c(self) -> float | None:
        """The median of what was read, °C; None where nothing was."""
        # The first reading may be of the time before the work began.
        read = [one["temperature_c"] for one in self._samples[1:] if "temperature_c" in one]
        return statistics.median(read) if read else None

    def throttle(self) -> tuple[str, ...] | None:
        """Why the clock was not the highest at some moment; None where that can't be read.

        An empty one is no proof that it was the highest: NVML says what holds at the moment of a
        reading, and the driver lowers the clock between two. The launches' own clock decides.
        """
        masks = [one["reasons"] for one in self._samples[1:] if "reasons" in one]
        return tuple(reasons(masks)) if masks else None


def reasons(masks: Iterable[int]) -> list[str]:
    """Names of the bits that any of NVML's masks has, that of an idle GPU apart."""
    seen = 0
    for mask in masks:
        seen |= mask & ~IDLE
    known = [name for bit, name in REASONS.items() if seen & bit]
    rest = seen & ~sum(REASONS)
    return known + [f"bit {bit:#x}" for bit in (1 << n for n in range(rest.bit_length()))
                    if rest & bit]


def idle_watts(counter: Counter, seconds: float, sleep: Callable[[float], None] = time.sleep,
               now: Callable[[], float] = time.perf_counter) -> float | None:
    """Power of the GPU while nothing runs, W, by the energy counter; None where it can't be read.
    """
    before, start = counter.joules(), now()
    sleep(seconds)
    after, lasted = counter.joules(), now() - start
    return None if before is None or after is None else (after - before) / lasted
