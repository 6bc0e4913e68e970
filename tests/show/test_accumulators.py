"""Where sums lie, and which part of an atom an MMA reads."""

import pytest

from lib.kernels.catalogue import find
from lib.show import accumulators as model
from lib.show.operand import Tile
from lib.show.tensor_memory import followed
from lib.show.version import Version

TENSOR, PERSISTENT = find("27_tcgen05"), find("20_persistent")


def test_two_warpgroups_hold_a_tile_and_tensor_memory_two():
    held = model.in_registers(PERSISTENT.variant("wide"))
    assert (held.groups, held.rows, held.columns, held.each) == (2, 64, 256, 128)
    both = model.in_tensor_memory(TENSOR.variant("wide"))
    assert (both.tiles, both.columns, both.lanes) == (2, 256, 32)
    assert both.tiles * both.columns == 512


def test_an_address_has_the_lane_above_the_column():
    memory = model.in_tensor_memory(TENSOR.variant("wide"))
    assert memory.address(0, 256) == 256 and memory.address(40, 300) == 40 * 65536 + 300
    with pytest.raises(ValueError, match="128 lanes and 512 columns"):
        memory.address(128, 0)


def test_the_pictures_say_in_words_what_they_show():
    drawn = model.where_picture(("old", model.in_registers(PERSISTENT.variant("wide"))),
                         ("new", model.in_tensor_memory(TENSOR.variant("wide"))), (40, 300),
                         title="A finding", evidence="modelled: x")
    assert drawn.text.count("64×256 sums") == 3 and "0x0028012c" in drawn.text
    a, b = Tile("tcgen05", rows=128), Tile("tcgen05", order="MN", rows=256, side="B")
    drawn = model.atoms_picture(a, b, title="A finding", evidence="modelled: x")
    assert "right: the next MMA, 32 B" in drawn.text
    assert "in 4 slabs" in drawn.text and "the next 64 columns, leading 8,192 B" in drawn.text


def test_what_is_drawn_is_what_the_kernel_s_descriptors_say(shown):
    model.atoms(Version("27_tcgen05"))
    model.where(Version("27_tcgen05"), "20_persistent/wide")
    assert "2 atoms of each slab of B" in shown[0]
    _, a, b, _ = followed("27_tcgen05", "wide").operands
    for tile, bits in ((Tile("tcgen05", rows=128), a),
                       (Tile("tcgen05", order="MN", rows=256, side="B"), b)):
        assert tile.bits(0, 0) >> 14 == bits >> 14  # all but where the tile begins
