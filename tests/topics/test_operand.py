"""An operand of a WGMMA: descriptor, places, banks and lanes, against formulas by hand."""

import numpy as np
import pytest

from lib.topics.fragments.model import held
from lib.topics.operand.model import K_BYTES, ROWS, START, TYPES, Operand, lines
from lib.topics.tma_swizzle.model import descriptor


@pytest.mark.parametrize("span", [128, 64, 32])
@pytest.mark.parametrize("item", TYPES.values())
def test_rows_along_k_lie_as_the_swizzle_says(span, item):
    operand = Operand(span, item)
    mask = {128: 7, 64: 3, 32: 1}[span]
    for row in (0, 5, 13, 63):
        for k in range(operand.k):
            plain = START + row * span + k * item
            assert operand.element(row, k).address == plain ^ (plain >> 7 & mask) << 4
    assert operand.wavefronts(13, 0) == 1


@pytest.mark.parametrize("order", ["K", "MN"])
def test_the_bits_are_those_that_the_kernels_make(order):
    assert Operand(128, 2, order).bits == descriptor(1024, 128, order, slab_rows=16).bits


@pytest.mark.parametrize("span", [128, 64, 32, 0])
@pytest.mark.parametrize("item, order", [(1, "K"), (2, "K"), (4, "K"), (2, "MN")])
def test_no_two_chunks_share_a_place(span, item, order):
    operand = Operand(span, item, order)
    assert len(np.unique(operand.places)) == operand.places.size == ROWS * K_BYTES // 16
    assert len(lines(operand)) == 32 if order == "K" else 64


def test_lanes_are_those_of_the_fragment():
    found, operand = held("wgmma.m64n64k16", "A"), Operand(128)
    for row, k in ((0, 0), (13, 5), (40, 15)):
        place = operand.element(row, k)
        assert (place.lane, place.register, place.part) == (
            found.lane[row, k], found.register[row, k], found.half[row, k])
        assert place.bank == place.address // 4 % 32


@pytest.mark.parametrize("arguments, complaint", [
    ((48, 2, "K"), "no operand"), ((128, 8, "K"), "no operand"), ((128, 2, "N"), "no operand"),
    ((128, 1, "MN"), "only of 16-bit types"),
])
def test_operands_that_there_are_not(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Operand(*arguments)
    with pytest.raises(ValueError, match="64 rows and 8 of K"):
        Operand(128, 4).element(0, 8)
