"""Run tests under a NumPy that refuses 64-bit numbers as an index, as NumPy of wasm32 does.

There `intp` has 32 bits, and 64-bit numbers can't be cast to it safely. Here both have 64, but C
has two types of this size: `long`, which is `intp`, and `long long`. So every 64-bit number of the
emulator is made a `long long`, and an array of these is refused wherever NumPy wants an index.
Addresses pass through as they must; what was cast to `intp` on purpose is accepted.

In a process of its own, before the emulator is imported; what follows is for pytest:
``python -m tests.ptx.narrow_intp tests/ptx/isa``
"""

import ast
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

PTX = Path(__file__).parents[2] / "lib" / "ptx"
INTP = np.dtype(np.intp)
_WIDE = {"i8": "q", "u8": "Q", "<i8": "q", "<u8": "Q", "int64": "q", "uint64": "Q"}


class WideIndex(RuntimeError):
    """An array of 64-bit numbers stands where an index must."""


def narrowable() -> bool:
    """Tell whether C has a second type of 64 bits beside the one that is `intp`."""
    return np.dtype(np.longlong).char != INTP.char and INTP.itemsize == 8


def check(index):
    """Refuse an index that NumPy of wasm32 would have to narrow."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and not _fits(part):
            raise WideIndex(f"an index of type {part.dtype.char!r}, shape {part.shape}")


class Checked(np.ndarray):
    """An array whose indices are looked at; what is computed from it is one, too."""

    def __getitem__(self, index):
        check(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        check(index)
        super().__setitem__(index, value)

    def take(self, indices, *args, **options):
        """Take elements, by an index that fits."""
        check(indices)
        return super().take(indices, *args, **options)

    def view(self, *args, **options):
        """Show the bytes as another type: ``"i8"`` is the wide one."""
        return super().view(*(_widened(a) for a in args), **options)

    def astype(self, kind, *args, **options):
        """Convert: ``"i8"`` is the wide one, and `intp` is `intp` even if nothing is copied."""
        made = super().astype(_widened(kind), *args, **options)
        return made.view(INTP) if kind is np.intp or kind == INTP else made


    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        """Compute; whole numbers of 64 bits are `intp` only if all that they come from fits it."""
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        options = {key: _plain(value) for key, value in options.items()}
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if out is not None:
            return out[0]
        if isinstance(result, tuple):
            return tuple(map(_checked, result))
        if isinstance(result, np.ndarray) and result.dtype.kind in "iu":
            fits = all(_fits(each) for each in inputs if hasattr(each, "dtype"))
            if result.dtype.itemsize == 8 and not (fits and result.dtype.kind == "i"):
                result = result.view(result.dtype.kind.replace("i", "q").replace("u", "Q"))
        return _checked(result)


def _plain(value):
    return value.view(np.ndarray) if isinstance(value, Checked) else value


def _fits(value) -> bool:
    """Tell whether NumPy of wasm32 would hold this in an `intp`."""
    return value.dtype.char == INTP.char or np.can_cast(value.dtype, np.int32)


def _widened(kind):
    return _WIDE.get(kind, kind) if isinstance(kind, str) else kind


def _checking(function):
    """Return a NumPy function whose results are `Checked`."""

    def call(*args, **options):
        options = {key: _widened(value) for key, value in options.items()}
        return _checked(function(*(_widened(a) for a in args), **options))

    return call


def _checked(result):
    if isinstance(result, tuple | list):
        return type(result)(map(_checked, result))
    return result.view(Checked) if type(result) is np.ndarray else result


def _by_index(function, position: int):
    """Return a NumPy function that looks at the argument that is an index."""

    def call(*args, **options):
        if len(args) > position:
            check(np.asarray(args[position]))
        return _checked(function(*args, **options))

    return call


def narrow() -> ModuleType:
    """Import the emulator with a NumPy of its own, which is returned."""
    used = {
        node.attr
        for path in PTX.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
    }
    indices = {"take": 1, "bincount": 0, "repeat": 1, "take_along_axis": 1, "put_along_axis": 1}
    made = ModuleType("numpy")
    made.__dict__.update(np.__dict__)
    for name in used | set(indices):
        function = getattr(np, name)
        if name in indices:
            setattr(made, name, _by_index(function, indices[name]))
        elif callable(function) and not isinstance(function, type | np.ufunc):
            setattr(made, name, _checking(function))
    made.int64, made.uint64 = np.longlong, np.ulonglong
    made.dtype = lambda kind: np.dtype(_widened(kind))
    if any(name.startswith("lib.ptx") for name in sys.modules):
        raise RuntimeError("the emulator was imported before")
    sys.modules["numpy"] = made
    try:
        from lib.ptx.core.memory import Segment
    finally:
        sys.modules["numpy"] = np
    view = Segment.view
    Segment.view = lambda *args: view(*args).view(Checked)
    return made


if __name__ == "__main__":
    narrow()
    import pytest

    sys.exit(pytest.main(["-p", "no:xdist", "-p", "no:cacheprovider", *sys.argv[1:]]))
