"""What the chapters, the tests and the command line call; the map is in the README."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Load `RawModule` when it is first asked for: it needs CuPy, which most commands don't."""
    if name == "RawModule":
        from lib.compiler.raw_module import RawModule

        return RawModule
    raise AttributeError(f"module 'lib' has no attribute {name!r}")
