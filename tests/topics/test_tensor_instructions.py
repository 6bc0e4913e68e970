"""From Turing's mma to a pair's: who holds, who issues, who waits, as PTX has it."""

import re

import pytest

from lib.plotting import display
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


def test_one_of_each_is_drawn_to_one_scale():
    with display.collected() as figures:
        page.draw("17_wgmma", "16_cp_async")
    (scene,) = figures
    assert scene.title == (
        "4 warps multiply as one, with one copy of B: the work of 128 mma.m16n8k16")
    assert ("4 warps A, 64×16, in shared memory B, 16×256, in shared memory, one copy, read by all "
            "4 warps sums, 64×256, in 128 registers per lane, 16 rows for each warp") in scene.text
    assert "A, 16×16, in 4 registers per lane B, 16×8, in 2 registers per lane" in scene.text
    large, small = (re.findall(r'class="(load|compute) pale" d="M\S+ \S+?h([0-9.]+)', drawing)
                    for drawing in scene.body.split("<svg")[3:5])
    assert [colour for colour, _ in large] == ["load", "load", "compute"]
    assert [colour for colour, _ in small] == ["compute"] * 3
    # 256 columns of sums, and the 8 of an mma.
    assert float(large[2][1]) / float(small[2][1]) == pytest.approx(256 / 8, rel=0.02)
    assert "warp 3: rows 48 to 63" in scene.text
