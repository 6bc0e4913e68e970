"""The command's arguments, and its exit status; what it does is in `emulate`.

``python -m lib emulate`` in this repository, and the console command of the package: one function.
Exit status 0: the kernel ran and nothing is suspicious; 1: a hazard, an error or a budget overrun;
2: bad input.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.compiler import arguments, streams

DESCRIPTION = """Run a kernel of a .cu file without a GPU and report what it did: counters by source
line, hazards, time. FILE may also be a Python script: what it launches is reported, in order, also
by CuPy's RawModule, RawKernel and ElementwiseKernel, whose arrays are NumPy's then."""
JSON_HELP = ("print JSON: {version, file, launches: [{kernel, ended, errors, hazards, remarks, "
             "counters, lines, merged, seconds}], over_budget, ok}, with --link its link")
EXAMPLES = """examples:
  %(prog)s my.cu --kernel 'gemm<128,8>' --grid 8,8 --block 256 --arg int:128 \\
      --arg 'A=float32[128,128]:uniform' --arg 'C=float32[128,128]:nan' --races --out C.npy
  %(prog)s several_kernels.py --races
  %(prog)s softmax.py --triton softmax --signature '*fp32:16,*fp32:16,i32,i32,512' --grid 8 \\
      --arg 'o=float32[8,500]:nan' --arg 'x=float32[8,500]:normal' --arg int:500 --arg int:500"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{arguments.GRAMMAR}\n\n{EXAMPLES}"
    parser.add_argument("file", metavar="FILE", help="a .cu, .ptx or .py file")
    parser.add_argument("--kernel", help="its name, or a template's with its arguments (default: "
                        "the only one)")
    parser.add_argument("--triton", metavar="NAME", help="FILE is Python: compile this "
                        "@triton.jit function, ahead of time and without a GPU, and run it")
    parser.add_argument("--numba", metavar="NAME", help="the same with numba-cuda")
    parser.add_argument("--signature", metavar="TYPE,…", help="its parameters' types: of Triton's "
                        "'*fp32:16, i32, 256' (the value of a constexpr), of Numba's "
                        "'float32[:], int32'")
    parser.add_argument("--num-warps", type=_natural, default=4, help="Triton's (default: 4)")
    parser.add_argument("--num-stages", type=_natural, default=3, help="Triton's (default: 3)")
    parser.add_argument("--grid", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]")
    parser.add_argument("--block", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]")
    parser.add_argument("--cluster", type=_sizes, metavar="X[,Y[,Z]]")
    parser.add_argument("--shared", type=_natural, default=0, metavar="BYTES",
                        help="dynamic shared memory per block")
    parser.add_argument("--arg", action="append", default=[], metavar="[NAME=]TYPE…",
                        help="the next argument, such as int:128, 'A=float32[128,128]:uniform' or "
                        "'map[64,32]:A:64': all of them are below")
    parser.add_argument("--constant", action="append", default=[], metavar="NAME=TYPE…",
                        help="what a __constant__ or __device__ variable holds, written as an "
                        "argument is: 'filter=float32[9]:ones', limit=int:5")
    parser.add_argument("--out", action="append", default=[], metavar="[NAME=]FILE.npy",
                        help="write an argument's array; NAME is the file's stem if not given")
    flags(parser, races="look for races")
    parser.add_argument("--schedule", default="lowest", choices=("lowest", "highest", "random"),
                        help="order of the warps")
    parser.add_argument("--landing", default="early", choices=("early", "late"),
                        help="when asynchronous copies land")
    flags(parser, strict="stop where memory is read that nobody wrote; one value that several "
                         "lanes store to one word is a finding, too")
    parser.add_argument("--allow", action="append", default=[], metavar="KIND",
                        help="findings of this kind, as they are told (warning, race, …), are "
                        "notes: they don't fail the command")
    flags(
        parser, link="end with the link that opens the "
             "book's page \"Try your own kernel\" on what ran; nothing is sent",
        go_on="leave a block that stops with an error, and run the others")
    parser.add_argument("--turns", type=_natural, metavar="N",
                        help="runs of instructions between branches that a batch of blocks may "
                        "take before it is stopped as endless; 0: any number (default: 1,048,576)")
    flags(
        parser, progress="say on stderr how far it is, also where that is no terminal",
        yes="let it run even if it takes longer than an hour")
    parser.add_argument("--budget", action="append", default=[], metavar="'FIGURE < NUMBER'",
                        help="fail if a launch costs more: 'sectors_per_request < 5', "
                        "'bank_conflicts == 0'")
    parser.add_argument("--seed", type=_natural, default=0,
                        help="of random arrays and schedules: 0 or more")
    parser.add_argument("--arch", default="sm_80", help="what to compile for (default: sm_80)")
    parser.add_argument("-I", action="append", default=[], type=_folder, dest="include",
                        metavar="FOLDER")
    parser.add_argument("-D", action="append", default=[], type=_macro, dest="define",
                        metavar="NAME[=VALUE]")
    parser.add_argument("--option", action="append", default=[], help="one more of NVRTC's")


def flags(parser: Any, **named: str) -> None:
    """Add options that are given or not, by their names, each with its help."""
    for name, said in named.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=said)


def run(options: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    # The emulator and CuPy take longer to load than it takes to say what the options are.
    from lib.compiler.emulate import emulate

    return emulate(options)


def main(argv: Sequence[str] | None = None) -> int:
    """The console command of the package."""
    return streams.ended(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    flags(parser, json=JSON_HELP)
    add_arguments(parser)
    options = parser.parse_args(argv)
    try:
        # Here, where one line can say that the package's extra is missing.
        from lib.compiler.nvrtc import CompileError
        from lib.compiler.toolkit import ToolMissing
    except ImportError as error:
        return streams.failed(error)
    try:
        return run(options)
    except (ValueError, ImportError, CompileError, ToolMissing) as error:
        return streams.failed(error)


def _sizes(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(?:[,x×]\d+){0,2}", text):
        raise argparse.ArgumentTypeError(f"{text!r}: one to three sizes, such as 8,8")
    return tuple(int(size) for size in re.split("[,x×]", text))


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 0 on")
    return int(text)


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no such folder")
    return text


def _macro(text: str) -> str:
    if not re.match(r"[A-Za-z_]\w*(=|$)", text):
        raise argparse.ArgumentTypeError(f"{text!r}: NAME or NAME=VALUE")
    return text
