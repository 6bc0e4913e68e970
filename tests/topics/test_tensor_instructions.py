"""From Turing's mma to a pair's: who holds, who issues, who waits, as PTX has it."""

import pytest

from lib.topics.code.tensor_instructions import model, page
from tests.pages import cells

VERSIONS = ("15_turing_limit", "17_wgmma", "27_tcgen05", "28_cta_pairs/in_turns")


def test_shapes_holders_and_issuers_are_those_of_the_isa():
    found = [model.multiplies(name) for name in VERSIONS]
    assert [one.shape for one in found] == [(16, 8, 8), (64, 256, 16), (128, 256, 16),
                                            (256, 256, 16)]
    assert [one.issuers for one in found] == [32, 128, 1, 1]
    assert [one.blocks for one in found] == [1, 1, 1, 2]
    # m16n8: four floats a lane; m64n256: 64 · 256 / 128; then none.
    assert [one.sums for one in found] == [4, 128, 0, 0]
    assert [(one.a, one.b) for one in found] == [(2, 1), (0, 0), (0, 0), (0, 0)]
    assert [one.waits for one in found] == ["", "wgmma.wait_group", *2 * ["tcgen05.commit"]]
    assert found[0].flops == 2 * 16 * 8 * 8


def test_a_version_without_tensor_cores_is_refused():
    with pytest.raises(ValueError, match="01_naive multiplies by none of mma.sync"):
        model.multiplies("01_naive")


def test_the_table_says_what_moved(shown):
    page.compared(*VERSIONS)
    rows = {row[0]: row[1:] for row in cells(shown[0])}
    assert rows["who issues it"] == ["a warp", "a warpgroup, four warps", "one thread",
                                     "one thread, for 2 blocks"]
    assert rows["who holds the sums"][-1] == "tensor memory, half in each of 2 SMs"
    assert rows["what moved"][1:] == [
        "A and B: out of registers, into shared memory",
        "the sums: out of registers, into tensor memory", "half of B: into the other SM"]
