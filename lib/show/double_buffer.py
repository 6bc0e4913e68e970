"""What would overlap give? A loop of loads and computations, with one buffer or several.

Each tile takes `load` cycles from the asking to the last byte's arrival, and `compute` cycles of
work that only one tile at a time can get, of one block that is alone on its SM. With b buffers,
step i asks for tile i + b - 1 and computes on tile i; it begins when step i - 1 has ended and tile
i is there. Loads in flight do not slow each other: `load` is a latency, not a use of bandwidth.
"""


def period(load: float, compute: float, buffers: int) -> float:
    """Return the cycles of a step in the steady state: with b ≥ 2 a load has those of b - 1 steps.
    """
    return load + compute if buffers == 1 else max(compute, load / (buffers - 1))
