"""Others' kernels on this GPU: what ncu counts of them, and the emulator of the same machine code.

All launches are made by one process under one ncu, whose start takes longer than any of them. A
kernel that faults or hangs takes that process with it: the others are then launched again.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lib import ptx
from lib.compiler.arch import TARGETS
from lib.compiler.compiled import Compiled, of_ptx
from lib.compiler.nvrtc import CompileError
from lib.compiler.toolkit import nvrtc_version
from lib.kernels.grid import Launch
from lib.measure import ncu, sensors
from lib.measure.counters import EMULATED, parse
from lib.ptx.files import text_of
from lib.records.foreign import Measured
from lib.run import device, runner
from lib.run.tensor_maps import encode
from lib.show import foreign as model
from lib.show.foreign import Foreign

SECONDS = 30.0  # after which a launch counts as hanging; ncu repeats it for each pass
JOBS = 8


class Made(NamedTuple):
    """A kernel's machine code, what the emulator counts of it, and whether its result is right."""

    kernel: Foreign
    compiled: Compiled
    emulated: dict[str, int]
    right: bool | None


def measure(
    kernels: Sequence[Foreign], folder: Path, tell: Callable[[str], None] = print
) -> dict[str, Measured]:
    """Profile kernels, each launched once as the set says.

    `folder`: where the clones are. `tell`: told of each kernel that is left out, and why. Returns
    by `Foreign.key`; counters are by the emulator's names. Raises NoGpu if there is no GPU;
    ProfilerMissing if ncu is missing, the driver refuses it the counters, or it saw other launches
    than ours.
    """
    device.cupy()
    known = ncu.listed(EMULATED.values())
    metrics = {name: metric for name, metric in EMULATED.items() if metric in known}
    where = machine()
    made = _all_made(kernels, folder, tell)
    found = {}
    for one, right, row in _launched(made, list(metrics.values()), tell):
        found[one.kernel.key] = Measured(
            **where, launch=one.kernel.digest, right=right, emulated_right=one.right,
            ncu={name: int(number) for name, number in parse([row], metrics).items()},
            emulated={name: one.emulated[name] for name in metrics},
        )
    return found


def machine() -> dict[str, str]:
    """Which GPU, driver and tools these are, and when."""
    runtime = device.cupy().cuda.runtime.runtimeGetVersion()
    return {"gpu": device.name(), "arch": device.arch(), "driver": sensors.driver(),
            "cuda": f"{runtime // 1000}.{runtime % 1000 // 10}",
            "nvrtc": ".".join(map(str, nvrtc_version())), "ncu_release": ncu.version(),
            "date": datetime.date.today().isoformat()}


def _all_made(
    kernels: Sequence[Foreign], folder: Path, tell: Callable[[str], None]
) -> list[Made]:
    arch = device.arch()
    fitting = []
    for kernel in kernels:
        if TARGETS.index(kernel.arch) > TARGETS.index(arch):
            tell(f"{kernel.key}: left out: {device.name()} doesn't run {kernel.arch} code")
        else:
            fitting.append(kernel)
    made = []
    with ThreadPoolExecutor(JOBS) as pool:  # compilers run in parallel, the emulator doesn't
        waiting = [pool.submit(_compiled, kernel, folder, arch) for kernel in fitting]
        for kernel, each in zip(fitting, waiting, strict=True):
            try:
                compiled = each.result()
                launch, right = _emulated(kernel, compiled)
            except (ptx.Error, CompileError, ValueError) as error:
                tell(f"{kernel.key}: left out: {_line(error)}")
                continue
            made.append(Made(kernel, compiled, launch.traced.counters(), right))
    return made


def _compiled(kernel: Foreign, folder: Path, arch: str) -> Compiled:
    from cupy.cuda.compiler import CompileException

    try:
        module = model.module_of(kernel, folder, arch)
    except CompileException as error:
        raise CompileError(str(error)) from None
    compiled = of_ptx(module.ptx, module.get_function(kernel.name).name, arch, kernel.shared)
    compiled.sass  # noqa: B018 - what takes longest, made where others are made beside it
    return compiled


def _emulated(kernel: Foreign, compiled: Compiled) -> tuple[ptx.Launch, bool | None]:
    made, before = model.operands(kernel), model.operands(kernel).named
    launch = runner.emulate(compiled, _grid(kernel), made.values)
    return launch, model.is_right(kernel, made.named, before)


def _grid(kernel: Foreign) -> Launch:
    return Launch(_three(kernel.grid), _three(kernel.block), kernel.shared)


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _launched(
    made: Sequence[Made], metrics: Sequence[str], tell: Callable[[str], None]
) -> list[tuple[Made, bool | None, dict[str, str]]]:
    """Profile kernels: each that ended, whether its result is right, and ncu's row."""
    left = list(made)
    with tempfile.TemporaryDirectory() as place:
        work, said = Path(place, "work.json"), Path(place, "said")
        while left:
            work.write_text(json.dumps([
                (one.kernel.key, one.compiled.name, one.compiled.ptx, one.compiled.arch)
                for one in left
            ]), encoding="utf-8")
            said.write_text("", encoding="utf-8")
            rows, missing = [], None
            try:
                rows = ncu.profile(metrics, [str(work), str(said)], cached=True, module=__name__)
            except ncu.ProfilerMissing as error:
                missing = error
            ended, failed = _outcomes(said)
            for key, why in failed.items():
                tell(f"{key}: not profiled: {why}")
            if missing is None:
                launched = [one for one in left if one.kernel.key in ended]
                return _matched(launched, ended, rows, tell)
            if not failed or str(missing) == ncu.FORBIDDEN:
                raise missing
            left = [one for one in left if one.kernel.key not in failed]
    return []


def _matched(
    made: Sequence[Made], right: dict[str, bool | None], rows: Sequence[dict[str, str]],
    tell: Callable[[str], None],
) -> list[tuple[Made, bool | None, dict[str, str]]]:
    """Each kernel with ncu's row of it: both are in the order of the launches."""
    found: list[tuple[Made, bool | None, dict[str, str]]] = []
    for one in made:
        name = one.kernel.name.partition("<")[0].rpartition("::")[2]
        row = rows[len(found)] if len(found) < len(rows) else {"Kernel Name": "nothing more"}
        if re.search(rf"\b{name}\b", row["Kernel Name"]):
            found.append((one, right[one.kernel.key], row))
        else:
            tell(f"{one.kernel.key}: not profiled: ncu saw {row['Kernel Name']} in its place")
    return found


def _outcomes(said: Path) -> tuple[dict[str, bool | None], dict[str, str]]:
    """What the process that launches has said: kernels that ended, and those that failed."""
    ended: dict[str, bool | None] = {}
    failed: dict[str, str] = {}
    for row in text_of(said).splitlines():
        what, key, more = json.loads(row)
        failed.pop(key, None)
        if what == "ended":
            ended[key] = more
        else:
            failed[key] = more
    return ended, failed


def launch_all(work: Path, said: Path) -> int:
    """In the process under ncu: launch each kernel once. Returns 1 if the GPU is lost by one."""
    kernels = {one.key: one for one in model.kernels()}

    def say(*words: Any) -> None:
        with said.open("a", encoding="utf-8") as file:
            print(json.dumps(words), file=file)

    def stop(key: str) -> None:
        say("failed", key, f"stopped after {SECONDS:g} s")
        os._exit(1)  # the launch that hangs holds the main thread, and may hold it for ever

    for key, name, text, arch in json.loads(text_of(work)):
        say("begun", key, "it ended the process")
        watch = threading.Timer(SECONDS, stop, [key])
        watch.start()
        try:
            right = _launch(kernels[key], of_ptx(text, name, arch, kernels[key].shared))
        except Exception as error:  # whatever it is, the other kernels are launched all the same
            say("failed", key, _line(error))
            if _is_lost():
                return 1
        else:
            say("ended", key, right)
        finally:
            watch.cancel()
    return 0


def _launch(kernel: Foreign, compiled: Compiled) -> bool | None:
    """Launch a kernel on the GPU; whether its result is right."""
    cp = device.cupy()

    def put(array: np.ndarray) -> Any:
        # CuPy need not know the type: maps and kernels move its bits.
        known = array.dtype.kind != "V"
        return cp.asarray(array if known else array.view(f"u{array.dtype.itemsize}"))

    made, before = model.operands(kernel, put, encode), model.operands(kernel).named
    values = [np.uint64(0) if value is None else value for value in made.values]
    device.Loaded(compiled)(_grid(kernel), values)
    cp.cuda.get_current_stream().synchronize()
    after = {name: cp.asnumpy(made.named[name]).view(value.dtype)
             if isinstance(value, np.ndarray) else value for name, value in before.items()}
    return model.is_right(kernel, after, before)


def _is_lost() -> bool:
    """Whether the process can use the GPU no more: after a fault every call fails."""
    try:
        device.cupy().cuda.get_current_stream().synchronize()
    except Exception:  # CuPy's own, of which there are several
        return True
    return False


def _line(error: BaseException) -> str:
    reason = " ".join(str(error).split())
    return f"{type(error).__name__}: {reason}"[:300]


if __name__ == "__main__":
    sys.exit(launch_all(*map(Path, sys.argv[1:])))
