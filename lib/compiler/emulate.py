"""What the command does: compile a .cu and run a kernel of it, or run a Python file; report."""

from __future__ import annotations

import argparse
import io
import json
import math
import runpy
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler import arguments, cupy_script, from_python, link, streams
from lib.compiler.budgets import broken, parse
from lib.compiler.nvrtc import CompileError
from lib.compiler.raw_module import (
    WATCHES,
    CompileException,
    Kernel,
    RawModule,
    Watch,
    open_kernel,
    stopped_document,
)
from lib.compiler.streams import lasting
from lib.ptx.core.errors import visible
from lib.ptx.core.execution import Execution
from lib.ptx.core.hazards import REMARK
from lib.ptx.files import write_whole
from lib.ptx.report import document

VERSION = 1  # of the JSON: another where a key goes or means something else
MAX_WARNINGS = 8  # of NVRTC that are shown
# What is refused unless it is asked for, and what a launch is looked at for to foresee it.
LONG_SECONDS, FORESEEN_SECONDS = 3600.0, 2.0


def emulate(options: argparse.Namespace) -> int:
    """Run the command with `command`'s options; returns its exit status."""
    path, limits = Path(options.file), parse(options.budget)
    if not path.is_file():
        raise ValueError(f"{path}: " + ("is no file that can be read" if path.exists()
                                        else "there is no such file"))
    progress = ptx.Progress() if options.yes else Foreseen()
    far = Far(path.name, progress)
    apart = streams.stdout_to_stderr() if options.json else nullcontext()
    with _recorded(options, progress) as launches, streams.progress(far, options.progress), apart:
        try:
            script = path.suffix == ".py" and not (options.triton or options.numba)
            if script and options.link:
                raise ValueError("--link: a script's launches have arrays that no link describes; "
                                 "name a .cu or a .ptx")
            error = (_run_script if script else _run_kernel)(path, options)
        except CompileException as refused:
            raise CompileError(str(refused)) from None
    for launch in launches:
        _chosen(launch, options.strict, options.allow)
    over = [said for launch in launches for said in broken(launch, limits)]
    ok = error is None and bool(launches) and all(one.clean for one in launches) and not over
    if options.json:
        documents = [document(launch) for launch in launches]
        if error is not None:
            documents.append(stopped_document(options.kernel or "", error))
        whole = {"version": VERSION, "file": str(path), "launches": documents, "over_budget": over,
                 "ok": ok}
        if options.link:
            whole["link"] = options.address
        print(json.dumps(whole, indent=1))
        return 0 if ok else 1
    for launch in launches:
        print(visible(str(launch)))
        print(f"{launch.seconds:.2f} s in the emulator, which is no GPU's time.\n")
    for said in over:
        print(said)
    if error is not None:
        print(visible(f"stopped: {type(error).__name__}: {error}"))
        for note in getattr(error, "__notes__", ()):
            print(visible(f"  {note}"))
    elif not launches:
        print(f"{path.name} launched no kernel")
    if options.link:
        print(options.address)
    return 0 if ok else 1


def _chosen(launch: ptx.Launch, strict: bool, allowed: Sequence[str]) -> None:
    """Let remarks be findings where they are to be, and findings of allowed kinds remarks."""
    every = [*launch.hazards, *launch.remarks]
    findings = {id(each) for each in (every if strict else launch.hazards)
                if each.kind not in (REMARK, *allowed)}
    launch.hazards = [each for each in every if id(each) in findings]
    launch.remarks = [each for each in every if id(each) not in findings]


class Foreseen(ptx.Progress):
    """Stops a launch whose first blocks say that all of it would take longer than an hour."""

    _began = 0.0

    def begin(self, blocks: int, done: int, running: Execution) -> None:
        """Note that blocks begin to run. Raises ValueError."""
        now = time.monotonic()
        if not done:
            self._began = now
        elif (spent := now - self._began) > FORESEEN_SECONDS:
            whole = spent * blocks / done
            if whole > LONG_SECONDS:
                raise ValueError(f"--grid: {blocks:,} blocks would take about {lasting(whole)} in "
                                 "the emulator; launch fewer, or add --yes to let them run")
        super().begin(blocks, done, running)


class Far:
    """Says how far a launch is, and how long all of it takes, from what has been done so far.

    Once blocks have ended, from their time. Before that from the outermost loop whose counter has
    moved between two looks: what it has left takes as long as what it did.

    `name`: of the file.
    """

    def __init__(self, name: str, progress: ptx.Progress) -> None:
        self.name, self.progress = name, progress
        self._done = 0, 0.0  # blocks, and when it was seen first that so many have ended
        self._turns: tuple[int, float, int] | None = None  # done blocks, spent, turns: a first look

    def __call__(self, spent: float) -> str:
        """What to say after so many seconds."""
        progress = self.progress
        if not progress.instructions:
            return f"{self.name}: {lasting(spent)}"
        if progress.done:
            if progress.done != self._done[0]:
                self._done = progress.done, spent
            whole = self._done[1] * progress.blocks / progress.done
            return (f"{self.name}: {progress.done:,} of {progress.blocks:,} blocks, "
                    f"{lasting(spent)} of about {lasting(max(whole, spent))}{self._stops(spent)}")
        found = progress.loop(spent)
        if found is None:
            return (f"{self.name}: {lasting(spent)}, {progress.instructions:,} instructions"
                    f"{self._stops(spent)}")
        loop, seen = found
        left = seen * (1 - loop.share) / loop.share
        whole = (spent + left) * progress.blocks / progress.together
        about = "about" if loop.outermost else "at least"
        line = f" of line {loop.cuda[1]}" if loop.cuda else ""
        return (f"{self.name}: {lasting(spent)} of {about} {lasting(whole)}; the loop{line} has "
                f"done {loop.share:.1%} in {lasting(seen)}{self._stops(spent, left)}")

    def _stops(self, spent: float, left: float = math.inf) -> str:
        """When the launch will be stopped as endless, if that is within `left` seconds."""
        turns, total = self.progress.turns
        if total is None:
            return ""
        if self._turns is None or self._turns[0] != self.progress.done:
            self._turns = self.progress.done, spent, turns
        _, began, before = self._turns
        if turns <= before or spent <= began:
            return ""
        stops = (total - turns) * (spent - began) / (turns - before)
        if stops >= left or math.isinf(left) and turns < total / 2:
            return ""
        return f"; stopped as endless in {lasting(max(stops, 0.0))} (--turns 0: never)"


@contextmanager
def _recorded(
    options: argparse.Namespace, progress: ptx.Progress
) -> Iterator[list[ptx.Launch]]:
    """Collect what is launched; launches that don't say otherwise get the command's options."""
    launches: list[ptx.Launch] = []
    defaults: dict[str, Any] = {
        "races": options.races, "schedule": options.schedule, "landing": options.landing,
        "strict": options.strict, "go_on": options.go_on, "seed": options.seed,
        "progress": progress,
    }
    if options.turns is not None:
        defaults["turns"] = options.turns or None  # 0: any number
    watch = Watch(launches.append, defaults)
    WATCHES.append(watch)
    try:
        yield launches
    finally:
        WATCHES.remove(watch)


def _run_script(path: Path, options: argparse.Namespace) -> ptx.Error | None:
    before = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with cupy_script.seen_by_scripts(options.arch):
            runpy.run_path(str(path), run_name="__main__")
    except ptx.Error as error:
        return error
    except CompileException:
        raise
    except SystemExit as end:
        if end.code:
            raise ValueError(f"{path} ended with status {end.code}") from None
    except Exception as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ValueError(f"{path}{_line_of(path, error)}: {said}") from error
    finally:
        sys.path[:] = before
    return None


def _line_of(path: Path, error: Exception) -> str:
    """The line of a script that an error came from, behind a colon; nothing if it is none's."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    return f":{lines[-1]}" if lines else ""


def _run_kernel(path: Path, options: argparse.Namespace) -> ptx.Error | None:
    args = arguments.parse(options.arg, options.seed)
    outputs = _outputs(options.out, args)
    values, block, shared = [one.value for one in args], options.block, options.shared
    texts: Mapping[str, str] = {}
    try:
        if options.triton or options.numba:
            made = _from_python(path, options)
            kernel, values = made.kernel, made.complete(values, math.prod(options.grid))
            block = (made.block,) if made.block and math.prod(block) == 1 else block
            shared = max(shared, made.shared)
        else:
            kernel, texts = _from_cuda(path, options)
    except ptx.UnsupportedInstruction as error:
        return error
    if options.link:
        if options.numba:
            raise ValueError("--link: a link doesn't hold what numba-cuda makes of arrays")
        options.address = link.of_kernel(kernel, texts, options, block, shared)
    extra: dict[str, Any] = {"cluster": options.cluster} if options.cluster else {}
    try:
        kernel(options.grid, block, values, shared, **extra)
    except ptx.LaunchError as error:  # what CUDA would refuse as well: nothing ran
        how = "" if options.arg else (
            "; name each in order: --arg 'A=float32[128,128]:uniform' --arg int:128 …")
        raise ValueError(f"{error}{how}") from error
    except ptx.Error as error:
        return error
    for file, value in outputs:
        _save(file, value)
    return None


def _from_cuda(path: Path, options: argparse.Namespace) -> tuple[Kernel, Mapping[str, str]]:
    """The kernel of a .cu or a .ptx, its variables set, and the source's text."""
    flags = [*(f"-I{folder}" for folder in options.include),
             *(f"-D{name}" for name in options.define), *options.option]
    try:
        module, kernel = open_kernel(options.kernel, path=path, options=flags, arch=options.arch)
    except ptx.UnsupportedInstruction:
        raise
    except ptx.Error as error:  # no PTX, no such kernel
        raise ValueError(str(error)) from error
    for warning in module.warnings[:MAX_WARNINGS]:
        print(visible(f"warning: {warning}"), file=sys.stderr)
    _set_constants(module, options.constant, options.seed)
    return kernel, module.texts()


def _from_python(path: Path, options: argparse.Namespace) -> from_python.Compiled:
    """A kernel that Triton or Numba compile from a Python file."""
    if options.signature is None:
        raise ValueError("--triton and --numba need --signature, a type for each parameter")
    if options.triton:
        return from_python.triton(path, options.triton, options.signature, options.arch,
                                  options.num_warps, options.num_stages)
    return from_python.numba(path, options.numba, options.signature, options.arch)


def _set_constants(module: RawModule, words: Sequence[str], seed: int) -> None:
    """Write what variables of the module hold.

    Raises ValueError naming the word, if there is no such variable or it is smaller.
    """
    for word, constant in zip(words, arguments.parse(list(words), seed, option="--constant"),
                              strict=True):
        if "=" not in word or not isinstance(constant.value, np.ndarray | np.generic | bytes):
            raise ValueError(f"--constant {word!r}: write NAME=TYPE:NUMBER, "
                             "NAME=DTYPE[SHAPE]:FILL, NAME=@FILE.npy or NAME=bytes:HEX")
        there = module.variables()
        if constant.name not in there:
            raise ValueError(f"--constant {word!r}: the compiled module has no such variable; "
                             f"there are: {', '.join(there) or 'none'}")
        storage, value = module.get_global(there[constant.name]), constant.value
        data = value if isinstance(value, bytes) else value.tobytes()
        if len(data) > len(storage):
            raise ValueError(f"--constant {word!r}: has {len(data)} bytes, the variable "
                             f"{len(storage)}")
        storage[: len(data)] = np.frombuffer(data, np.uint8)


def _save(file: Path, value: np.ndarray) -> None:
    """Write an array to the very file that was named; `numpy.save` would add a suffix."""
    made = io.BytesIO()
    np.save(made, value)
    write_whole(file, made.getvalue())


def _outputs(
    words: Sequence[str], args: Sequence[arguments.Argument]
) -> list[tuple[Path, np.ndarray]]:
    """Which arrays go to which files."""
    values = {one.name: getattr(one.value, "array", one.value) for one in args}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    found = []
    for word in words:
        name, _, file = word.rpartition("=")
        name = name or Path(file).stem
        if not file:
            raise ValueError(f"--out {word}: name a file")
        if name not in arrays:
            raise ValueError(f"--out {word}: no array is called {name}; there are: "
                             f"{', '.join(arrays) or 'none'}")
        found.append((Path(file), arrays[name]))
    return found
