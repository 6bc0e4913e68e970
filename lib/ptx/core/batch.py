"""What a step may ask of the batch that it runs for, and of those who watch it.

`Execution`, `Trace` and `RaceDetector` are what stands behind. They stand above the modules that
use them, so that imports go one way, and these are the sides which those modules see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from .lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from .access_pattern import AccessPattern
    from .hazards import Access, Hazards
    from .masks import Mask
    from .memory import Memory
    from .segment import Segment
    from .syntax import Instruction, MemoryAccess

W = TypeVar("W")


class Tracer(Protocol):
    """Who counts; see `count.trace`."""

    def executed(self, block: Any, f: Batch) -> None: ...

    def guarded(self, index: int, chosen: Mask | None | Literal[False], f: Batch) -> None: ...

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, space: str
    ) -> None: ...

    def copied(
        self, f: Batch, writing: MemoryAccess, to: AccessPattern, reading: MemoryAccess,
        source: AccessPattern | None, past_l1: bool,
    ) -> None: ...

    def multiplied(
        self, index: int, instruction: Instruction, warps: int, wavefronts: int
    ) -> None: ...

    def site(
        self, index: int, instruction: Instruction, kind: str, space: str, nbytes: int
    ) -> Any: ...


class Races(Protocol):
    """Who looks for races; see `race.detector`."""

    granule: int
    code: Any
    known: np.ndarray
    clock: np.ndarray
    own: np.ndarray
    proxy: Any  # the asynchronous proxy, None if nothing in the kernel is of it

    maps: Any  # of `race.tensormap_proxy`

    @property
    def ended(self) -> np.ndarray: ...

    @property
    def agents(self) -> Any: ...  # the asynchronous proxy, of which something is

    def access(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment,
        values: list[np.ndarray] | None = None,
    ) -> None: ...

    def access_of_lane(
        self, segment: Segment, start: int, nbytes: int, row: int, thread: int, index: int,
        kind: str,
    ) -> None: ...

    def landed(
        self, f: Batch, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None: ...

    def barrier(self, arrived: np.ndarray | None, waiting: np.ndarray | None) -> None: ...

    def warp_barrier(self, f: Batch) -> None: ...

    def lanes_meet(self, f: Batch) -> None: ...

    def fence(self, f: Batch, scope: int) -> None: ...

    def proxy_fence(self, f: Batch) -> None: ...

    def init_fence(self, f: Batch) -> None: ...


class Batch(Lanes, Protocol):
    """A batch of blocks while it runs; see `Execution`."""

    r: list[np.ndarray]
    memory: Memory
    hazards: Hazards
    trace: Tracer | None
    races: Races | None
    code: Any  # of `code`
    calls: Any  # of `calls`
    recorder: Any  # of `recorder`, or None
    unwritten: Any  # of `unwritten`, or None
    merge: np.ndarray | None
    groups: dict[int, Mask | None]
    resolved: list[Any]
    waiters: dict[Any, Any]
    twins: list[tuple]
    stacks: dict[int, tuple[list[np.ndarray], np.ndarray]]
    room: np.ndarray | None
    fragments: dict[tuple, tuple]
    products: dict[int, tuple]
    observed: bool
    strict: bool
    failing: frozenset[int]
    late: bool
    steps: int
    at: int
    origin: int
    exited_by: Instruction
    barriers: Any  # of `named_barriers`

    @property
    def waiting(self) -> bool: ...

    def waiter(self, kind: Callable[[Any], W]) -> W: ...

    def masked(
        self, run: Callable[[Any], None], writes: tuple[int, ...], mask: np.ndarray
    ) -> None: ...

    def go(self, at: int, mask: Mask | None) -> None: ...

    def branch(self, predicate: np.ndarray, target: int, otherwise: int) -> None: ...

    def select(self, predicate: np.ndarray) -> Mask | None | Literal[False]: ...

    def selected(self, predicate: np.ndarray) -> Mask | None: ...

    def exit(self, mask: Mask | None, instruction: Instruction | None = None) -> None: ...

    def parked(self) -> str: ...

    def pattern(self, addresses: np.ndarray) -> AccessPattern: ...

    def note_sum(self, total: np.ndarray, array: np.ndarray, added: np.ndarray) -> None: ...

    def forget_addresses(self) -> None: ...

    def hazard(
        self, kind: str, message: str, instruction: Instruction, where: np.ndarray,
        before: Instruction | None = None,
    ) -> None: ...

    def exit_of(self, block: int, thread: int) -> Access: ...
