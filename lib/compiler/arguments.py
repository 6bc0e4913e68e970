"""Kernel arguments as words of a command line: ``int:128``, ``A=float32[128,128]:uniform``."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lib.ptx.files import bytes_of

if TYPE_CHECKING:
    from lib import ptx

# The NumPy type of an element by its type in C++.
ELEMENTS = {
    "bool": "b1", "char": "i1", "signed char": "i1", "unsigned char": "u1", "short": "i2",
    "unsigned short": "u2", "int": "i4", "unsigned int": "u4", "long": "i8", "unsigned long": "u8",
    "long long": "i8", "unsigned long long": "u8", "float": "f4", "double": "f8", "__half": "f2",
    "half": "f2", "unsigned": "u4", "size_t": "u8", "uint": "u4", "int8_t": "i1", "uint8_t": "u1",
    "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4", "uint32_t": "u4", "int64_t": "i8",
    "uint64_t": "u8",
}
_SPEC = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?"
    r"(?:@(?P<file>.+)|(?P<type>\w+)(?:\[(?P<shape>[\d,x ]*)\])?(?::(?P<value>.+))?)"
)
GRAMMAR = """\
arguments, in their order, each with NAME= before it or not:
  int:128                          a number: bool char short int uint long size_t half float double,
                                   or a type of NumPy's
  float32[128,128]:uniform         an array; behind the colon zeros ones nan uniform normal arange
                                   integers, numbers (1,2,0: the last fills the rest) or FIRST..LAST
                                   (any whole numbers; FIRST..LAST bytes: of each byte)
  @FILE.npy                        an array that numpy.save wrote
  bytes:HEX                        a structure
  null                             a null pointer
  map[BOX]:A[:SWIZZLE[:WIDTH]]     a tensor map of the array A, named before; for a pointer to one
                                   mapptr[BOX]:A. BOX is rows,columns; of 3 to 5 sizes it has the
                                   columns in slices of WIDTH: (slice, row, column)
  map[BOX]:float32[64,64]:uniform[:SWIZZLE[:WIDTH]]
                                   the same of an array that is no argument of the kernel; or of
                                   @FILE.npy"""
FILLS = ("zeros", "ones", "nan", "uniform", "normal", "arange", "integers")


@dataclass(frozen=True)
class Argument:
    """One argument."""

    name: str  # what it is called on the command line, or ``arg0``, ``arg1``, …
    value: Any
    keeps: Any = None  # what must live as long as the value is used


def parse(
    words: list[str], seed: int = 0, arrays: Mapping[str, Any] | None = None,
    encode: Callable[..., Any] | None = None, option: str = "--arg",
) -> list[Argument]:
    """Read arguments.

    `words`: ``[NAME=]TYPE:NUMBER``, ``[NAME=]DTYPE[SHAPE][:FILL]`` (`FILLS`, or numbers with commas
    between them, the last of which fills the rest, or ``FIRST..LAST``, any whole numbers from one
    to the other, of each byte with `` bytes`` behind), ``[NAME=]@FILE.npy``, ``[NAME=]bytes:HEX``
    or ``[NAME=]null``; ``[NAME=]map[BOX]:ARRAY[:SWIZZLE[:WIDTH]]`` for a tensor map of an array
    that was named before, ``mapptr`` for a pointer to one; ``DTYPE[SHAPE]:FILL`` or ``@FILE.npy``
    in the place of ``ARRAY`` for one that is no argument. A box of 3 to 5 sizes has the array's
    columns in slices, `WIDTH` wide or as wide as the box: (slice, row, column), axes of 1 before
    them. `GRAMMAR` has all of it. `seed`: of random fills; each argument has its own stream.
    `arrays`: further arrays that maps may name, of NumPy or of what `encode` takes. `encode`: makes
    a map of an array, a box and ``swizzle=``: the emulator's, if not given. `option`: what they are
    called in messages. Raises ValueError naming the word.
    """
    found: list[Argument] = []
    for place, word in enumerate(words):
        match = _SPEC.fullmatch(word)
        if match is None:
            raise ValueError(f"{option} {word!r}: write int:128, 'A=float32[128,128]:uniform', "
                             "A=@file.npy, bytes:HEX, null or 'map[32,32]:A:128'; --help has all")
        try:
            if match["type"] in ("map", "mapptr"):
                named = {**(arrays or {}), **{one.name: one.value for one in found}}
                value, keeps = _map(match, named, encode, np.random.default_rng([seed, place]))
            else:
                value, keeps = _value(match, np.random.default_rng([seed, place])), None
        except (TypeError, ValueError, OSError) as error:
            raise ValueError(f"{option} {word!r}: {error}") from error
        found.append(Argument(match["name"] or f"arg{place}", value, keeps))
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two arguments are called {name}")
    return found


def _map(
    match: re.Match, arrays: Mapping[str, Any], encode: Callable[..., Any] | None,
    random: np.random.Generator,
) -> tuple[Any, ptx.TensorMap | np.void]:
    """A tensor map, or the 128 bytes that a pointer to it shows."""
    name, *rest = (match["value"] or "").split(":")
    array: Any
    if name.startswith("@"):
        array = _loaded(Path(name[1:]))
    elif "[" in name:  # an array of its own, with its fill
        own = _SPEC.fullmatch(":".join([name, *rest[:1]]))
        if own is None:
            raise ValueError(f"{name!r} is no array, such as float32[64,64]:uniform")
        array, rest = _value(own, random), rest[1:]
    else:
        array = arrays.get(name)
        array = getattr(array, "array", array)  # another map's
    if array is None or getattr(array, "ndim", 0) != 2:
        raise ValueError(f"there is no matrix {name!r} before it; name one, or write it out, as in "
                         "map[32,32]:float32[64,64]:uniform")
    swizzle, width = (*rest, "", "")[:2]
    box = _sizes(match["shape"] or "")
    if len(box) > 2:
        rows = len(array)
        array = array.reshape(rows, -1, int(width or box[-1])).swapaxes(0, 1)
        array = array.reshape(*(1,) * (len(box) - 3), *array.shape)
    if encode is None:
        from lib import ptx  # here: commands that make no map start without the emulator

        encode = ptx.tensor_map
    made = encode(array, box, swizzle=int(swizzle or 0))
    if match["type"] == "map":
        return made, made
    return np.frombuffer(bytes(made), np.uint8).copy(), made


def _sizes(text: str) -> list[int]:
    return [int(size) for size in re.split(r"[,x ]+", text) if size]


def _value(match: re.Match, random: np.random.Generator) -> Any:
    if match["file"]:
        return _loaded(Path(match["file"]))
    kind, value = match["type"], match["value"]
    if kind == "null":
        return None
    if kind == "bytes":
        return bytes.fromhex(value or "")
    if match["shape"] is None:
        if value is None:
            raise ValueError("has neither a [SHAPE] nor a :NUMBER")
        return _number(_dtype(kind), value)
    return _array(_dtype(kind), _sizes(match["shape"]), value or "zeros", random)


def _loaded(file: Path) -> np.ndarray:
    """The array of a .npy file."""
    if not file.exists():
        raise ValueError("there is no such file")
    try:
        array = np.load(io.BytesIO(bytes_of(file)))
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except (EOFError, ValueError, zipfile.BadZipFile):  # torn, of another kind, or with objects
        array = None
    if not isinstance(array, np.ndarray):
        raise ValueError("holds no array: numpy.save writes such files")
    return array


def _dtype(name: str) -> np.dtype:
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        try:
            import ml_dtypes
        except ImportError as missing:
            raise ValueError(f"{name} needs the package ml_dtypes") from missing
        return np.dtype(getattr(ml_dtypes, name))
    try:
        return np.dtype(ELEMENTS.get(name, name))
    except TypeError:
        raise ValueError(f"there is no type {name}; such as int, size_t, half, float") from None


def _number(dtype: np.dtype, text: str) -> Any:
    if dtype.kind in "iu":
        try:
            number = int(text, 0)
        except ValueError:
            raise ValueError(f"{text!r} is no whole number") from None
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise ValueError(f"{number} does not fit {dtype.name}")
        return dtype.type(number)
    if dtype.kind == "b":
        truth = {"1": True, "true": True, "0": False, "false": False}
        if text.lower() not in truth:
            raise ValueError(f"{text!r} is neither true nor false")
        return dtype.type(truth[text.lower()])
    exact = float(text)
    with np.errstate(over="ignore"):
        number = dtype.type(exact)
    if math.isfinite(exact) and not np.isfinite(number):
        raise ValueError(f"{text} does not fit {dtype.name}")
    return number


def _array(dtype: np.dtype, shape: list[int], fill: str, random: np.random.Generator) -> np.ndarray:
    whole = dtype.kind in "iub"
    if fill in ("zeros", "ones"):
        return np.full(shape, fill == "ones", dtype)
    if fill == "arange":
        return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    if fill == "integers" or fill == "uniform" and whole:
        return random.integers(0, 2 if dtype.kind == "b" else 10, shape).astype(dtype)
    if fill == "uniform":
        return random.uniform(-1, 1, shape).astype(dtype)
    if fill == "normal":
        return random.normal(size=shape).astype(dtype)
    if fill == "nan" and whole:
        raise ValueError(f"{dtype.name} has no NaN; fill with a number")
    if fill == "nan":
        return np.full(shape, np.nan, dtype)
    if whole and (span := re.fullmatch(r"(-?\d+)\.\.(-?\d+)( bytes)?", fill)):
        each = np.dtype(np.uint8) if span[3] else dtype
        low, high = (int(_number(each, number)) for number in span.groups()[:2])
        if low > high:
            raise ValueError(f"{fill} has no number: the first is to be the smaller one")
        many = [*shape, dtype.itemsize // each.itemsize]
        return random.integers(low, high + 1, many).astype(each).view(dtype).reshape(shape)
    try:
        *first, rest = (_number(dtype, number) for number in fill.split(","))
    except ValueError as error:
        raise ValueError(f"{error}; fill with numbers, or {', '.join(FILLS)}") from None
    array = np.full(shape, rest, dtype)
    array.reshape(-1)[: len(first)] = first
    return array
