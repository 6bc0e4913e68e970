"""The kernels of the zoo under compute-sanitizer, on this GPU: one process a kernel and tool.

A kernel that faults takes its process with it, and one that hangs is stopped after a while: so each
has a process of its own. That process loads the PTX that the emulator runs.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypedDict

from lib.paths import ROOT
from lib.ptx.files import text_of
from lib.records import sanitizer as records
from lib.records.sanitizer import Checked, Sanitizer, Verdict
from lib.show import zoo as model

VARIANTS = ("mistake", "cured")
SECONDS = 60.0  # after which a process counts as hanging; CuPy takes a few to start
PLACES = ("/usr/local/cuda/bin/compute-sanitizer",
          "/usr/local/cuda/compute-sanitizer/compute-sanitizer")
LAUNCHED = "zoo: launched"  # the child says so when its kernel has ended


class SanitizerMissing(ValueError):
    """compute-sanitizer is not here. The message says where it comes from."""


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer. Raises SanitizerMissing."""
    found = shutil.which("compute-sanitizer") or next(
        (place for place in PLACES if Path(place).is_file()), None
    )
    if found is None:
        raise SanitizerMissing("compute-sanitizer is missing: it comes with the CUDA toolkit; put "
                               "its folder on the PATH")
    return found


def record(
    names: Sequence[str] = (), minutes: float = 8.0, jobs: int = 6, seconds: float = SECONDS,
    path: Path = records.FILE, tell: Callable[[str], None] = print,
) -> int:
    """Run what isn't recorded yet, and write the record after each kernel.

    `names`: kernels of the zoo; all if none are given. `minutes`: no kernel is begun after so long:
    the next call goes on. `jobs`: processes at once. `seconds`: after which a process counts as
    hanging. `path`: the record. `tell`: told of each kernel. Returns how many kernels are left.
    """
    program = find_sanitizer()
    found, where = records.read(path), machine(program)
    kernels = dict(found.kernels) if found else {}
    wanted = [one for one in model.specimens() if not names or one.name in names]
    if unknown := set(names) - {one.name for one in wanted}:
        raise ValueError(f"no such kernel in the zoo: {', '.join(sorted(unknown))}")
    todo = [one for one in wanted if not records.current(found, one.name, model.digest(one))]
    until, has = time.monotonic() + 60 * minutes, capability()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for done, specimen in enumerate(todo):
            if time.monotonic() > until:
                return len(todo) - done
            if has is not None and not model.runs_on(specimen, has):
                tell(f"{specimen.name}: no GPU of this architecture, {specimen.arch}")
                continue
            for variant in VARIANTS:
                kernel = model.compiled(specimen, variant == "cured")
                file = Path(folder, f"{specimen.name}.{variant}.ptx")
                file.write_text(kernel.text, encoding="utf-8")
            runs = {
                (variant, tool): pool.submit(
                    _run, program, tool, specimen.name, variant, Path(folder), seconds)
                for variant in VARIANTS for tool in records.TOOLS
            }
            mistake, cured = ({tool: runs[variant, tool].result() for tool in records.TOOLS}
                              for variant in VARIANTS)
            kernels[specimen.name] = Checked(hash=model.digest(specimen), mistake=mistake,
                                             cured=cured)
            records.write(Sanitizer(**where, kernels=kernels), path)
            tell(f"{specimen.name}: {records.summary(mistake)}; cured: {records.summary(cured)}")
    return 0


class Machine(TypedDict):
    """Where verdicts are of."""

    gpu: str
    driver: str
    sanitizer: str
    date: str


def machine(program: str) -> Machine:
    """Which GPU, driver and compute-sanitizer this is, and when."""
    outcome = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"Version ([\d.]+)", outcome.stdout)
    gpu, driver = "unknown", "unknown"
    if said := _first_gpu("name,driver_version"):
        gpu, _, driver = (part.strip() for part in said.partition(","))
    return {"gpu": gpu, "driver": driver, "sanitizer": version[1] if version else "unknown",
            "date": datetime.date.today().isoformat()}


def capability() -> tuple[int, int] | None:
    """Return the compute capability of the first GPU, None if nvidia-smi doesn't tell."""
    found = re.match(r"\s*(\d+)\.(\d+)", _first_gpu("compute_cap"))
    return (int(found[1]), int(found[2])) if found else None


def _first_gpu(fields: str) -> str:
    """What nvidia-smi says of the first GPU, a line; empty if it says nothing."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return ""
    said = subprocess.run([smi, f"--query-gpu={fields}", "--format=csv,noheader"],
                          capture_output=True, text=True, check=False).stdout
    return said.partition("\n")[0]


def _run(program: str, tool: str, name: str, variant: str, folder: Path, seconds: float
         ) -> Verdict:
    words = [program, "--tool", tool, sys.executable, "-m", "lib.measure.sanitizer", name,
             str(folder / f"{name}.{variant}.ptx")]
    # A session of its own: the tool has children, and all of them must go when one hangs.
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, start_new_session=True) as process:
        try:
            return verdict(process.communicate(timeout=seconds)[0])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return verdict(process.communicate()[0], hung=True)


def verdict(said: str, hung: bool = False) -> Verdict:
    """Read what a tool of compute-sanitizer printed. `hung`: whether it had to be stopped."""
    hazards = re.search(
        r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warnings?\)", said
    )
    summary = re.search(r"ERROR SUMMARY: (\d+) errors?", said)
    errors = int(hazards[1] if hazards else summary[1] if summary else 0)
    warnings = int(hazards[2]) if hazards else 0
    reports = re.findall(r"^========= (?!COMPUTE|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)$", said,
                         re.M)
    outcome: Literal["errors", "clean", "hangs", "failed"]
    if hung:
        outcome = "hangs"
    elif errors or warnings:
        outcome = "errors"
    elif (hazards or summary) and LAUNCHED in said:
        outcome = "clean"
    else:
        outcome = "failed"
    first = reports[0].strip() if reports else "" if outcome == "clean" else said.strip()[-200:]
    return Verdict(said=outcome, errors=errors, warnings=warnings, first=first)


def _launch(name: str, path: str) -> None:
    """In a process under compute-sanitizer: launch a kernel of the zoo once on the GPU."""
    import cupy
    import numpy as np

    specimen = next(one for one in model.specimens() if one.name == name)
    entry = re.search(r"\.entry\s+(\w+)", text_of(Path(path)))
    if entry is None:
        raise ValueError(f"{path} has no kernel")
    kernel = cupy.RawModule(path=path).get_function(entry[1])
    args = [cupy.asarray(one.value) if isinstance(one.value, np.ndarray) else one.value
            for one in specimen.args()]
    kernel((specimen.grid,), (specimen.block,), tuple(args), shared_mem=specimen.shared)
    cupy.cuda.runtime.deviceSynchronize()
    print(LAUNCHED)


if __name__ == "__main__":
    _launch(*sys.argv[1:])
