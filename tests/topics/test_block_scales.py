"""What block scales ask of a pair: bits, bytes, MMAs, copies, columns."""

import pytest

from lib.kernels.catalogue import find
from lib.topics.compute.block_scales import model, page
from tests.pages import cells


@pytest.mark.parametrize("name, bits, each, copies, columns", [
    ("mxfp8_wide", 8 + 1 / 4, 32, 3 / 4, 5 * 3 * 4), ("nvfp4_wide", 4 + 1 / 2, 64, 3, 5 * 12 * 4),
])
def test_what_a_format_asks_is_what_its_sizes_say(name, bits, each, copies, columns):
    found = model.scaled(name)
    assert (found.bits, found.each, found.columns) == (bits, each, columns)
    assert found.copies / found.products == copies
    assert found.products == found.flops / (2 * 256 * 256 * each)
    # Rows of 128 bytes: 256 of A and 256 of B, for two tiles and four steps.
    assert found.read == 2 * 4 * 512 * 128
    atoms = 4 if name.startswith("nvfp4") else 1
    # Each block has the scales of its rows of A, and of all columns of B.
    assert found.of_scales == 2 * 4 * atoms * 512 * 2 * (1 + 2)
    assert found.loaded == found.read + found.of_scales


def test_the_table_sets_them_beside_16_bits(shown):
    page.costs("mxfp8_wide", "nvfp4_wide")
    rows = {row[0]: row[1:] for row in cells(shown[0])}
    assert rows["K of one MMA"] == ["16", "32", "64"]
    assert rows["bytes of operands that MMAs read of shared memory, per kFLOP"] == [
        "7.81", "3.91", "1.95"]


def test_its_instructions_are_taken_apart(shown):
    for opcode in ("tcgen05.cp", "tcgen05.mma"):
        for variant in find(model.STEM).laid[::3]:
            page.instruction(opcode, variant.name)
    assert "four scales per row and K step" in shown[-1]


def test_the_lines_that_copy_scales_are_shown(shown):
    page.excerpt("const unsigned from = Ss", "i, step > 0 || i > 0);")
    assert "pair_copy_scales" in shown[0] and "cuda/steps/28_cta_pairs_scaled.cu" in shown[0]
