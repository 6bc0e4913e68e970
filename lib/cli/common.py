"""What commands share: arguments, the objects that they name, and how an answer is printed."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from lib import gpus
from lib.compiler.arch import check_arch
from lib.compiler.command import flags
from lib.kernels import catalogue as kernels
from lib.kernels.catalogue import KERNELS
from lib.kernels.spec import Kernel, Variant, parted
from lib.problem import DTYPES, Problem, parse_shape
from lib.problem.scales import FORMATS

Number = TypeVar("Number", int, float)


def adder(subparsers: Any) -> Callable[..., argparse.ArgumentParser]:
    def add(function: Callable[..., int], name: str, text: str, json_help: str) -> Any:
        parser = subparsers.add_parser(name, help=text, description=text[0].upper() + text[1:])
        flags(parser, json=f"print JSON: {json_help}")
        parser.set_defaults(run=function)
        return parser

    return add


def add_kernel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", metavar="NAME[/VARIANT]",
                        help=f"a kernel and an instantiation of it (default: its first); NAME is "
                        f"one of {', '.join(KERNELS)}")


def add_arch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", help=f"one of {', '.join(gpus.ARCHITECTURES)} "
                        "(default: this GPU's, or the oldest that the kernel runs on)")


def add_problem(
    parser: argparse.ArgumentParser, arch: bool = True, others: Sequence[str] = (),
    ptx_arch: bool = False,
) -> None:
    add_kernel(parser)
    if ptx_arch:
        parser.add_argument("--ptx-arch", choices=tuple(gpus.ARCHITECTURES),
                            help="run this older architecture's PTX, assembled for this GPU")
    if others:
        parser.description = f"{parser.description}; NAME may also be {' or '.join(others)}"
    parser.add_argument("--shape", default="256", help="MxNxK, or one number for a cube")
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--beta", type=float, default=0.0)
    parser.add_argument("--dtype", help=f"type of A and B: {', '.join(DTYPES)} (default: the "
                        "kernel's)")
    if arch:
        add_arch(parser)


def add_yes(parser: argparse.ArgumentParser) -> None:
    flags(parser, yes="let the emulator run even if it takes longer than a minute")


def seed(text: str) -> int:
    return _at_least(0, int(text))


def count(text: str) -> int:
    return _at_least(1, int(text))


def minutes(text: str) -> float:
    return _at_least(0.0, float(text))


def _at_least(least: Number, number: Number) -> Number:
    if not number >= least:  # nor NaN
        raise argparse.ArgumentTypeError(f"{number} is below {least}")
    return number


@contextmanager
def of(option: str) -> Iterator[None]:
    """Name the option that a bad value was given to."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error


def chosen(options: argparse.Namespace, *, block_scaled: bool = False) -> tuple[Kernel, Variant]:
    """What ``NAME/VARIANT`` names; 28's with block scales only where a command takes their problem.

    Raises ValueError if there is none of that name, or the command doesn't take it.
    """
    with of("NAME/VARIANT"):
        kernel, variant = kernels.named(options.kernel)
        if variant.scaling in FORMATS and not block_scaled:
            raise ValueError(f"{options.kernel} has block scales, which check, trace and resources "
                             "take and this command doesn't")
        return kernel, variant


def target(options: argparse.Namespace) -> str | None:
    with of("--arch"):
        return check_arch(options.arch) if options.arch is not None else None


def problem(
    options: argparse.Namespace, variant: Variant | None, shape: str | None = None
) -> Problem:
    """The problem of the options in a variant's types, or in those of cuBLAS that they name."""
    from lib.measure import cublas

    if variant is None:
        with of("NAME/VARIANT"):
            usual = cublas.problem(rival(options), 1, 1, 1)
    with of("--shape"):
        sizes = (*parse_shape(shape or options.shape), options.alpha, options.beta)
        problem = variant.problem(*sizes) if variant else cublas.problem(rival(options), *sizes)
    with of("--dtype"):
        takes = variant.dtype if variant else usual.dtype
        if options.dtype not in (None, takes):
            name = parted(options.kernel)[0]
            what = f"{name}/{variant.name if variant else rival(options)}"
            raise ValueError(f"{what} takes A and B in {takes}, not {options.dtype}")
    return problem


def cubes(text: str) -> list[int]:
    """Sides of cubes, with commas between them: ``"2048,4096"``.

    Raises ValueError if one is no shape, or no cube.
    """
    shapes = [parse_shape(size) for size in text.split(",")]
    if other := [shape for shape in shapes if len(set(shape)) > 1]:
        raise ValueError(f"{'x'.join(map(str, other[0]))} is no cube")
    return [size for size, _, _ in shapes]


def rival(options: argparse.Namespace) -> str:
    """Which types and layout of cuBLAS, by their name in `cublas.PROBLEMS`."""
    from lib.measure import cublas

    _, name = parted(options.kernel)
    return next(iter(cublas.PROBLEMS)) if name is None else name


def say(options: argparse.Namespace, document: Any, lines: Iterable[str]) -> None:
    """Print one JSON document, or lines for people."""
    if options.json:
        print(json.dumps(_plain(document), indent=1, allow_nan=False))
    else:
        for line in lines:
            print(line)


def fields(part: Any) -> dict[str, Any]:
    """What a measured part prints as, field by field: one of a record, or a dataclass."""
    return to_builtins(part)


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: a number that isn't finite as a string, ``"inf"``."""
    if isinstance(value, Struct):
        return _plain(to_builtins(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
