"""Several mma behind each other, of which none needs another's result, as one step.

A warp that owns a tile of C multiplies each of its fragments of A by each of its fragments of B.
One by one, each product would be a call of BLAS a warp on matrices so small that calling costs
more than multiplying; so they are one product of all rows by all columns. It is the same
arithmetic: products and sums in float64, rounded once to the type of the accumulator.

Rows and columns stand in an order in which four lanes that are neighbours (t = 0 to 3 of a
fragment) hold neighbours in memory, so that a matrix is dealt out to registers 16 bytes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .fragments import GROUP, Fragment, gather, scatter, whole_warps

if TYPE_CHECKING:
    from ..core.batch import Batch

PRODUCTS = 8  # matrices of accumulators that are remembered
FOUR = np.dtype("c16")  # the words of four lanes, moved as one


@dataclass(frozen=True)
class Block:
    """Fragments of A that are multiplied by the same fragments of B."""

    # left, right: places of the instructions whose left factors, and whose right ones, are
    # multiplied.
    left: tuple[int, ...]
    right: tuple[int, ...]
    steps: tuple[int, ...]  # which instruction is of which left and right factor, row by row


def blocks_of(pairs: list[tuple]) -> list[Block]:
    """Part products into blocks, each of all its left factors by all its right ones.

    `pairs`: what each instruction multiplies, hashable; equal means the same registers.
    """
    rows: dict = {}  # left factor -> right factor -> instruction
    again = []
    for i, (left, right) in enumerate(pairs):
        if right in rows.setdefault(left, {}):
            again.append(Block((i,), (i,), (i,)))
        else:
            rows[left][right] = i
    alike: dict = {}
    for row in rows.values():
        alike.setdefault(frozenset(row), []).append(row)
    found = []
    for group in alike.values():
        columns = list(group[0])
        found.append(
            Block(
                tuple(next(iter(row.values())) for row in group),
                tuple(group[0][column] for column in columns),
                tuple(row[column] for row in group for column in columns),
            )
        )
    return found + again


def _operand(fragment: Fragment, words: np.ndarray, many: int, dealt: bool) -> np.ndarray:
    """Put `many` fragments of each warp below each other: (warps, rows, words of a row).

    Rows stand as in the matrices; `dealt`: those of eight neighbours in the order 0 2 4 6 1 3 5 7.
    """
    rows, halves, along = (fragment.size(axis) for axis in "RHC")
    parts = words.view(FOUR).reshape(many, rows, along, halves, -1, GROUP)
    parts = parts.transpose(4, 0, 1, 3, 5, 2)
    if dealt:
        shape = parts.shape
        parts = parts.reshape(*shape[:4], 4, 2, along).swapaxes(4, 5)
    return np.ascontiguousarray(parts).view(words.dtype).reshape(-1, many * rows * halves * GROUP,
                                                                 4 * along)


class ProductTile:
    """The step of several instructions of one kind on fragments of 32-bit accumulators.

    `steps`: of one kind, none of which reads what another one writes.
    """

    def __init__(self, steps: list) -> None:
        self.steps = steps
        self.blocks = blocks_of([step.factors for step in steps])

    def __call__(self, f: Batch) -> None:
        """Execute them for the active warps."""
        one = self.steps[0]
        whole_warps(f, one.place)
        r = list(f.r)  # what they read is read before any of them writes
        for block in self.blocks:
            left, right = (self._factor(f, r, block, side) for side in (0, 1))
            total = np.matmul(left, right.swapaxes(1, 2))
            tiles = len(block.left), len(block.right)
            steps = [self.steps[i] for i in block.steps]
            before = [value for step in steps for value in step.addends(r)]
            np.add(total, self._addends(f, before, tiles), out=total)
            matrix = one.rounded(total)
            values = scatter(f, self._registers(matrix, tiles))
            puts = [put for step in steps for put in step.puts]
            for put, value in zip(puts, values, strict=True):
                put(f.r, value)
            if len(f.products) >= PRODUCTS:
                del f.products[next(iter(f.products))]
            f.products[id(values[0])] = values, tiles, matrix

    def _addends(
        self, f: Batch, registers: list[np.ndarray], tiles: tuple[int, int]
    ) -> np.ndarray:
        """Return C as matrices: those that an earlier tile left, if these are its registers."""
        values, shape, matrix = f.products.pop(id(registers[0]), ((), None, None))
        if shape == tiles and len(values) == len(registers):
            if all(a is b for a, b in zip(values, registers, strict=True)):
                return matrix
        return self._matrix(gather(f, registers, self.steps[0].types[2]), tiles)

    def _factor(self, f: Batch, r: list, block: Block, side: int) -> np.ndarray:
        """Return the factors of all warps, (warps, rows or columns, k), in float64."""
        one, places = self.steps[0], (block.left, block.right)[side]
        registers = [value for i in places for value in self.steps[i].factor_words(r, side)]
        fragment = one.fragments[one.order[side]]
        words = gather(f, registers, one.types[0])
        return one.widened(_operand(fragment, words, len(places), side == 1), side)

    def _axes(self, tiles: tuple[int, int]) -> tuple[list[int], list[int]]:
        """Sizes of the registers' axes but for the warps', and those of the matrix."""
        fragment = self.steps[0].fragments[3]
        rows, along, halves = (fragment.size(axis) for axis in "RCH")
        return [*tiles, rows, along, halves, 2], [tiles[0], rows, halves, GROUP, tiles[1], along, 2]

    def _registers(self, matrix: np.ndarray, tiles: tuple[int, int]) -> np.ndarray:
        """Deal matrices, (warps, rows, columns), to registers: (registers, lanes)."""
        sizes, axes = self._axes(tiles)
        # warp, i, R, H, g, j, C, e -> i, j, R, C, H, e, warp, g
        parts = matrix.view(FOUR).reshape(-1, *axes).transpose(1, 5, 2, 6, 3, 7, 0, 4)
        dealt = np.ascontiguousarray(parts).view(matrix.dtype)
        return dealt.reshape(int(np.prod(sizes)), -1)

    def _matrix(self, words: np.ndarray, tiles: tuple[int, int]) -> np.ndarray:
        """Undo `_registers`."""
        sizes, axes = self._axes(tiles)
        parts = words.view(FOUR).reshape(*sizes, -1, GROUP).transpose(6, 0, 2, 4, 7, 1, 3, 5)
        rows = axes[0] * axes[1] * axes[2] * GROUP
        return np.ascontiguousarray(parts).view(words.dtype).reshape(len(parts), rows, -1)

