"""The race detector as its parts see it: clocks, what the instructions are, where findings go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from ..core.batch import Batch
    from ..core.code import Code
    from ..core.hazards import Hazards
    from ..core.segment import Segment
    from .stamps import Group, Side, Stamped


class Detector(Protocol):
    """What `RaceDetector` keeps for the shadows of memory, flags and the asynchronous proxy."""

    f: Batch
    code: Code
    hazards: Hazards
    granule: int  # bytes of a word
    is_atomic: np.ndarray
    strength: np.ndarray
    is_volatile: np.ndarray
    peers: int  # blocks of a cluster
    warps: int  # of a cluster
    clock: np.ndarray
    known: np.ndarray
    met: np.ndarray
    own: np.ndarray
    floor: int
    stamped: Stamped | None
    uses_tensors: bool  # whether tcgen05 takes part
    remembered: int  # bytes
    looked_at: int  # accesses of words
    proxy: Any  # of `async_proxy`, or None
    release_acquire: Any  # of `release_acquire`, or None
    global_shadows: dict[int, Any]
    shared_shadow: Any  # of `shared_memory`

    @property
    def ended(self) -> np.ndarray: ...

    def linear(self, rows: np.ndarray) -> np.ndarray: ...

    def report(self, kind: str, what: str, earlier: Side, later: Side) -> None: ...

    def access_of_lane(
        self, segment: Segment, start: int, nbytes: int, row: int, thread: int, index: int,
        kind: str,
    ) -> None: ...

    def lane_group(self, row: int, thread: int, many: int) -> Group: ...

    def global_shadow(self, segment: Segment) -> Any: ...

    def _set_floor(self) -> None: ...

    def _joined(
        self, known: np.ndarray, came: np.ndarray, waits: np.ndarray, own: bool
    ) -> np.ndarray: ...
