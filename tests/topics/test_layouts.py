"""Layouts of a tile: each element in a place of its own, and the wavefronts they cost."""

import numpy as np
import pytest

from lib.show import banks
from lib.topics.memory.layouts.model import Layout


def cost(access):
    found = banks.describe(access)
    return found.wavefronts, found.ideal


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("padding", [0, 1, 4])
@pytest.mark.parametrize("swizzled", [False, True])
def test_every_element_has_a_place_of_its_own(width, padding, swizzled):
    layout = Layout(padding, swizzled, width)
    row, column = np.meshgrid(np.arange(32), np.arange(32), indexing="ij")
    words = layout.word(row, column)
    assert len(set(words.ravel())) == 32 * 32
    assert words.min() == 0 and words.max() < 32 * (32 + padding)


def test_a_column_of_floats():
    assert cost(Layout().down(5)) == (32, 1)
    assert cost(Layout(padding=1).down(5)) == (1, 1)
    assert cost(Layout(swizzled=True).down(5)) == (1, 1)
    assert cost(Layout(padding=4).down(5)) == (4, 1)


def test_a_column_of_float4():
    assert cost(Layout(width=4).down(8)) == (32, 4)
    assert cost(Layout(width=4, padding=4).down(8)) == (4, 4)
    assert cost(Layout(width=4, swizzled=True).down(8)) == (4, 4)
    assert not Layout(width=4, padding=1).aligned() and Layout(width=4, padding=4).aligned()


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("swizzled", [False, True])
def test_a_row_is_free_of_conflicts_in_any_layout(width, swizzled):
    assert cost(Layout(0, swizzled, width).along(3)) == (width, width)


def test_the_swizzle_is_the_kernel_s():
    """05 stores element (k, row) at As[k][row ^ k]."""
    layout = Layout(swizzled=True)
    assert layout.column(6, 5) == 5 ^ 6 and layout.word(6, 5) == 6 * 32 + (5 ^ 6)
