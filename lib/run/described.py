"""From the matrices that a caller has to the problem: which way each lies, and with which gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from lib.problem import Operand, Problem
from lib.run.placed import Placed


@dataclass(frozen=True)
class Shape:
    """A product's sizes, and whether its matrices have an axis for the products of a batch."""

    # M, N, K, batch: any of them may be 0.
    M: int
    N: int
    K: int
    batch: int
    of_c: tuple[int, ...]  # shape of C: (M, N), or (batch, M, N)

    @property
    def empty(self) -> bool:
        """Whether C has no elements."""
        return 0 in self.of_c


def shape_of(A: Placed, B: Placed) -> Shape:
    """The sizes of a product; of a batch A, B or both have three axes.

    Raises ValueError if they don't fit each other.
    """
    batches = {one.shape[0] for one in (A, B) if one.ndim == 3}
    fits = A.ndim in (2, 3) and B.ndim in (2, 3) and len(batches) < 2
    if not fits or A.shape[-1] != B.shape[-2]:
        raise ValueError(
            f"A is {A.shape} and B is {B.shape}: they must be M×K and K×N, or batches of as many")
    M, N = A.shape[-2], B.shape[-1]
    return Shape(M, N, A.shape[-1], max(batches, default=1), (*batches, M, N))


def problems(A: Placed, B: Placed, C: Placed | None, shape: Shape, out: str) -> list[Problem]:
    """The problem that matrices are; several where one of them lies both ways.

    `C`: tight if not given. `shape`: theirs; no size but K is 0. `out`: C's type. Raises ValueError
    if the neighbours of a row or of a column don't lie beside each other, or lines overlap.
    """
    ways = [list(_ways(name, one, shape.batch)) for name, one in (("A", A), ("B", B))]
    if C is None:
        of_c = [Operand("C", "row", shape.M, shape.N, shape.N, shape.batch, shape.M * shape.N)]
    else:
        of_c = [one for one in _ways("C", C, shape.batch) if one.layout == "row"]
        if not of_c:
            raise ValueError(f"C must lie by rows, and its strides are {C.strides} bytes: pass "
                             "another C")
    found = []
    for a, b in product(*ways):
        operands = (a, b, of_c[0])
        found.append(Problem(
            shape.M, shape.N, shape.K, dtype=A.dtype.name, out=out, a_layout=a.layout,
            b_layout=b.layout, batch=shape.batch,
            leads=(a.lead, b.lead, of_c[0].lead),
            strides=tuple(one.stride for one in operands) if shape.batch > 1 else (),
        ))
    return found


def _ways(name: str, matrix: Placed, products: int) -> Iterator[Operand]:
    """How a matrix lies: by rows, by columns, or, where one of its sizes is 1, both ways."""
    (rows, columns), item = matrix.shape[-2:], matrix.dtype.itemsize
    down, across = (step // item for step in matrix.strides[-2:])
    stride = matrix.strides[0] // item if matrix.ndim == 3 else 0
    found = 0
    for layout, lines, length, lead, step in (
        ("row", rows, columns, down, across), ("column", columns, rows, across, down),
    ):
        if not rows or not columns:
            lead, step, stride = length, 1, lines * length
        if (step == 1 or length == 1) and (lead >= length or lines == 1):
            found += 1
            lead = max(lead, 1) if lines > 1 else max(length, 1)
            yield Operand(name, layout, lines, length, lead if length else 0, products, stride)
    if not found:
        raise ValueError(
            f"{name}'s strides are {matrix.strides} bytes: the elements of its rows, or those of "
            f"its columns, must be neighbours, and rows apart; pass a contiguous copy"
        )
