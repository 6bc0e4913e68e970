"""The command: compile a .cu, run a kernel of it, and report; or run a Python file that does.

``python -m lib emulate`` in this repository, and the console command of the package: one function.
Exit status 0: it ran and nothing is suspicious; 1: a hazard or an error; 2: bad input.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler import arguments
from lib.compiler.budgets import broken, parse
from lib.compiler.nvrtc import CompileError
from lib.compiler.toolkit import ToolMissing
from lib.ptx.report import document

# `raw_module` loads CuPy, which takes longer than saying what the options are: see `run`.

DESCRIPTION = """Run a kernel of a .cu file without a GPU and report what it did: counters by source
line, hazards, time. FILE may also be a Python script: what it launches is reported, in order."""
JSON_HELP = ("print JSON: {file, launches: [{kernel, ended, errors, hazards, counters, lines, "
             "merged, seconds}], over_budget, ok}")
EXAMPLES = """examples:
  %(prog)s my.cu --kernel 'gemm<128,8>' --grid 8,8 --block 256 --arg int:128 \\
      --arg 'A=float32[128,128]:uniform' --arg 'C=float32[128,128]:nan' --races --out C.npy
  %(prog)s several_kernels.py --races"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="a .cu, .ptx or .py file")
    parser.add_argument("--kernel", help="its name, or a template's with its arguments (default: "
                        "the only one)")
    parser.add_argument("--grid", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]")
    parser.add_argument("--block", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]")
    parser.add_argument("--cluster", type=_sizes, metavar="X[,Y[,Z]]")
    parser.add_argument("--shared", type=int, default=0, metavar="BYTES",
                        help="dynamic shared memory per block")
    parser.add_argument("--arg", action="append", default=[], metavar="[NAME=]TYPE…",
                        help="the next argument: int:128, float:0.5, 'A=float32[128,128]:uniform' "
                        f"(or {', '.join(arguments.FILLS)}, a number), A=@file.npy, null")
    parser.add_argument("--out", action="append", default=[], metavar="[NAME=]FILE.npy",
                        help="write an argument's array; NAME is the file's stem if not given")
    parser.add_argument("--races", action="store_true", help="look for races")
    parser.add_argument("--schedule", default="lowest", choices=("lowest", "highest", "random"),
                        help="order of the warps")
    parser.add_argument("--landing", default="early", choices=("early", "late"),
                        help="when asynchronous copies land")
    parser.add_argument("--strict", action="store_true",
                        help="stop where memory is read that nobody wrote")
    parser.add_argument("--go-on", action="store_true",
                        help="leave a block that stops with an error, and run the others")
    parser.add_argument("--budget", action="append", default=[], metavar="'FIGURE < NUMBER'",
                        help="fail if a launch costs more: 'sectors_per_request < 5', "
                        "'bank_conflicts == 0'")
    parser.add_argument("--seed", type=int, default=0, help="of random arrays and schedules")
    parser.add_argument("--arch", default="sm_80", help="what to compile for (default: sm_80)")
    parser.add_argument("-I", action="append", default=[], dest="include", metavar="FOLDER")
    parser.add_argument("-D", action="append", default=[], dest="define", metavar="NAME[=VALUE]")
    parser.add_argument("--option", action="append", default=[], help="one more of NVRTC's")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from lib.compiler.raw_module import CompileException

    path, limits = Path(options.file), parse(options.budget)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    with _recorded(options) as launches:
        try:
            error = (_run_script if path.suffix == ".py" else _run_kernel)(path, options)
        except CompileException as refused:
            raise CompileError(str(refused)) from None
    over = [said for launch in launches for said in broken(launch, limits)]
    ok = error is None and bool(launches) and all(one.clean for one in launches) and not over
    if options.json:
        told = [document(launch) for launch in launches]
        if error is not None:
            told.append({"kernel": options.kernel or "", "ended": "stopped", "errors": [
                {"kind": type(error).__name__, "message": str(error),
                 "notes": list(getattr(error, "__notes__", ()))}],
                "hazards": [{"kind": one.kind, "message": one.message} for one in error.hazards]})
        whole = {"file": str(path), "launches": told, "over_budget": over, "ok": ok}
        print(json.dumps(whole, indent=1))
        return 0 if ok else 1
    for launch in launches:
        print(launch)
        print(f"{launch.seconds:.2f} s in the emulator, which is no GPU's time.\n")
    for said in over:
        print(said)
    if error is not None:
        print(f"stopped: {type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            print(f"  {note}")
    elif not launches:
        print(f"{path.name} launched no kernel")
    return 0 if ok else 1


def main(argv: Sequence[str] | None = None) -> int:
    """The console command of the package."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except (ValueError, OSError, ImportError, CompileError, ToolMissing) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in text.replace("x", ",").split(","))
    if not 1 <= len(sizes) <= 3:
        raise argparse.ArgumentTypeError(f"{text}: one to three sizes")
    return sizes


@contextmanager
def _recorded(options: argparse.Namespace) -> Iterator[list[ptx.Launch]]:
    """Collect what is launched; launches that don't say otherwise get the command's options."""
    from lib.compiler.raw_module import WATCHES, Watch

    launches: list[ptx.Launch] = []
    defaults = {
        "races": options.races, "schedule": options.schedule, "landing": options.landing,
        "strict": options.strict, "go_on": options.go_on, "seed": options.seed,
    }
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
        runpy.run_path(str(path), run_name="__main__")
    except ptx.Error as error:
        return error
    finally:
        sys.path[:] = before
    return None


def _run_kernel(path: Path, options: argparse.Namespace) -> ptx.Error | None:
    from lib.compiler.raw_module import RawModule

    args = arguments.parse(options.arg, options.seed)
    outputs = _outputs(options.out, args)
    flags = [*(f"-I{folder}" for folder in options.include),
             *(f"-D{name}" for name in options.define), *options.option]
    wanted = options.kernel
    expressions = [wanted] if wanted and "<" in wanted else []
    module = RawModule(
        path=path, options=flags, name_expressions=expressions, arch=options.arch
    )
    try:
        kernel = module.get_function(wanted or module.only_kernel())
        extra: dict[str, Any] = {"cluster": options.cluster} if options.cluster else {}
        kernel(options.grid, options.block, [one.value for one in args], options.shared, **extra)
    except ptx.Error as error:
        return error
    for file, value in outputs:
        np.save(file, value)
    return None


def _outputs(
    words: Sequence[str], args: Sequence[arguments.Argument]
) -> list[tuple[Path, np.ndarray]]:
    """Which arrays go to which files."""
    arrays = {one.name: one.value for one in args if isinstance(one.value, np.ndarray)}
    found = []
    for word in words:
        name, _, file = word.rpartition("=")
        name = name or Path(file).stem
        if name not in arrays:
            raise ValueError(f"--out {word}: no array is called {name}; there are: "
                             f"{', '.join(arrays) or 'none'}")
        found.append((Path(file), arrays[name]))
    return found
