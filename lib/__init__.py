"""What the chapters, the tests and the command line call; the map is in CONTRIBUTING.md."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Load what needs CuPy when it is first asked for: most commands don't need it."""
    found: Any
    if name == "RawModule":
        from lib.compiler.raw_module import RawModule

        found = RawModule
    elif name == "gemm":
        from lib.run.gemm import gemm

        found = gemm
    else:
        raise AttributeError(f"module 'lib' has no attribute {name!r}")
    globals()[name] = found  # the next time it is an attribute like others
    return found
