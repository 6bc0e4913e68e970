"""Which lanes of a batch run: what memory and access patterns ask of an `Execution`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from .geometry import Geometry
    from .masks import Mask
    from .syntax import Instruction


class Lanes(Protocol):
    """A batch of blocks and its lanes; see `Execution`."""

    blocks: int
    threads: int
    warps: int
    lanes: int
    active: Mask | None
    live: Mask | None
    geometry: Geometry
    shapes: Any  # of `access_pattern`

    @property
    def active_lanes(self) -> np.ndarray: ...

    @property
    def active_warps(self) -> np.ndarray: ...

    @property
    def live_lanes(self) -> np.ndarray: ...

    def lanes_in(self, mask: Mask | None) -> np.ndarray: ...

    def of_active(self, values: np.ndarray) -> np.ndarray: ...

    def warp_costs(self, addresses: np.ndarray) -> dict: ...

    def place(self, instruction: Instruction) -> str: ...

    def lane_names(self, where: np.ndarray, max_names: int = 4) -> str: ...
