"""A PTX emulator: runs CUDA kernels without a GPU, counts what they do, finds their races.

>>> module = Module(ptx_text)                                   # doctest: +SKIP
>>> launch = module.get_function(name)(grid, block, args)       # doctest: +SKIP
>>> launch.trace.counters()                                     # doctest: +SKIP

Arrays are NumPy's and are updated in place, as in CuPy's calling convention.
"""

from .errors import (
    Deadlock,
    Divergence,
    Endless,
    Error,
    LaunchError,
    Misaligned,
    OutOfBounds,
    ParseError,
    UninitialisedRead,
    UnsupportedInstruction,
)
from .hazards import Access, Hazard
from .launch import Function, Launch, Module
from .memory import Allocation
from .tensormap import TensorMap, tensor_map
from .trace import Site, Trace, WarpAccess, Wide

__all__ = [
    "Access", "Allocation", "Deadlock", "Divergence", "Endless", "Error", "Function", "Hazard",
    "Launch", "LaunchError", "Misaligned", "Module", "OutOfBounds", "ParseError", "Site",
    "TensorMap", "Trace", "UninitialisedRead", "UnsupportedInstruction", "WarpAccess", "Wide",
    "tensor_map",
]  # fmt: skip
