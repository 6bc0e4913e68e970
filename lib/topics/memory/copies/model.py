"""Who copies what of a stage, and when: the indices of ``cuda/09_fp32_limit.cu``.

A stage of shared memory is a tile of A, transposed, and one of B. By single floats thread t copies
of A, in copy i, row k = t % 8 and column t / 8 + i · threads / 8; by vectors, of B, the t-th of all
vectors, then the one `threads` further. A step of the loop issues as many copies as spread them
over `steps_with_copies`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.kernels.spec import Variant

FLOAT = 4  # bytes
ROWS_OF_A = 8  # of k, that neighbouring threads copy: a sector of a row of A
_PADDING = 4  # floats behind a row of A's tile


@dataclass(frozen=True)
class Piece:
    """What one thread copies at once.

    Attributes
    ----------
    tile : {"A", "B"}
    row, column : int
        Of its first float in the tile, where a row is one k.
    floats : int
    offset : int
        Bytes from the stage's begin.
    """

    tile: str
    row: int
    column: int
    floats: int
    offset: int


@dataclass(frozen=True)
class Stage:
    """A stage and the threads that fill it.

    Attributes
    ----------
    rows, columns, depth : int
        BM, BN and BK.
    threads : int
        Of the block.
    vector : int
        Floats of B that a thread copies at once.
    spread : int
        Steps over which a thread's copies are spread.
    """

    rows: int
    columns: int
    depth: int
    threads: int
    vector: int
    spread: int

    @property
    def of_a(self) -> int:
        """Copies of A by each thread."""
        return self.rows * self.depth // self.threads

    @property
    def copies(self) -> int:
        """Copies by each thread, of A and then of B."""
        return self.of_a + self.columns * self.depth // self.vector // self.threads

    @property
    def a_row_bytes(self) -> int:
        """Bytes from one k of A's tile to the next."""
        return (self.rows + _PADDING) * FLOAT

    @property
    def b_offset(self) -> int:
        """Bytes from the stage's begin to B's tile."""
        return self.depth * self.a_row_bytes

    @property
    def nbytes(self) -> int:
        """Of the stage."""
        return self.b_offset + self.depth * self.columns * FLOAT

    def step(self, copy: int) -> int:
        """The step of the loop that issues a copy."""
        return copy // -(-self.copies // self.spread)

    def piece(self, thread: int, copy: int) -> Piece:
        """What a thread copies in its copy of that number."""
        if copy < self.of_a:
            groups = self.of_a * ROWS_OF_A // self.depth  # copies along a row of A's tile
            row = thread % ROWS_OF_A + copy // groups * ROWS_OF_A
            column = thread // ROWS_OF_A + copy % groups * (self.threads // ROWS_OF_A)
            return Piece("A", row, column, 1, row * self.a_row_bytes + column * FLOAT)
        vector = thread + (copy - self.of_a) * self.threads
        row, place = divmod(vector, self.columns // self.vector)
        column = place * self.vector
        return Piece("B", row, column, self.vector,
                     self.b_offset + (row * self.columns + column) * FLOAT)

    def copied(self, copy: int) -> int:
        """Bytes that all threads copy in their copy of that number."""
        return self.threads * self.piece(0, copy).floats * FLOAT


def stage(variant: Variant) -> Stage:
    """The stage of a variant of 09.

    Raises
    ------
    ValueError
        If the variant doesn't spread copies.
    """
    schedule = variant.schedule
    if "SPREAD" not in schedule.own:
        raise ValueError(f"{variant.name} spreads no copies")
    threads = variant.block[0] * variant.block[1]
    return Stage(*variant.tile, variant.step, threads, schedule.vec, int(schedule.own["SPREAD"]))
