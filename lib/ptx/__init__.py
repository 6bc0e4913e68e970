"""A PTX emulator: runs CUDA kernels without a GPU, counts what they do, finds their races.

>>> module = Module(ptx_text)                                   # doctest: +SKIP
>>> launch = module.get_function(name)(grid, block, args)       # doctest: +SKIP
>>> launch.trace.counters()                                     # doctest: +SKIP

Arrays are NumPy's and are updated in place, as in CuPy's calling convention. README.md says in
which order to read the code.
"""

from .core.errors import (
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
from .core.hazards import Access, Hazard
from .core.recorder import Moment, Recorder
from .core.segment import Allocation
from .core.tensormap import TensorMap, im2col_map, tensor_map
from .core.texture import Surface, Texture
from .count.trace import Site, Trace, WarpAccess, Wide
from .launch import Function, Module
from .progress import LoopShare, Progress
from .report import Finding, Launch

__all__ = [
    "Access", "Allocation", "Deadlock", "Divergence", "Endless", "Error", "Finding", "Function",
    "Hazard", "Launch", "LaunchError", "LoopShare", "Misaligned", "Module", "Moment",
    "OutOfBounds", "ParseError", "Progress", "Recorder", "Site", "Surface", "TensorMap", "Texture",
    "Trace", "UninitialisedRead", "UnsupportedInstruction", "WarpAccess", "Wide", "im2col_map",
    "tensor_map",
]
