"""The tables of tiles, as the page of layouts displays them."""

from lib.show import operand as page
from lib.show.operand import Tile


def rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
            if line.startswith("|")]


def test_the_rules_of_both_readers(shown):
    page.rules()
    page.rules("tcgen05")
    for text, reader in zip(shown, ("wgmma", "tcgen05"), strict=True):
        found = rows(text)[2:]
        assert len(found) == 8
        for along, swizzle, leading, _, step, bits in found:
            order, mode = {"K": "K", "M or N": "MN"}[along], swizzle.removesuffix(" B")
            tile = Tile(reader, 2, order, mode, 128, 128, "B")
            assert int(bits.strip("`"), 16) == tile.bits(0, 0)
            assert leading.startswith("unused") == (order == "K" and mode != "none")
            assert step == f"{tile.begins(0, 16) - tile.begins(0, 0):,} B"


def test_fields_beside_each_other(shown):
    page.fields(Tile(), Tile(order="MN", rows=256, side="B"))
    [text] = shown
    head, _, *found = rows(text)
    assert head[2:4] == ["A, along K, 128 B", "B, along M or N, 128 B"]
    by_name = {row[1]: row for row in found}
    assert by_name["leading byte offset"][2:4] == ["1 = 16 B / 16", "512 = 8,192 B / 16"]
    assert by_name["swizzle"][0] == "62 to 63" and by_name["swizzle"][2:4] == ["1", "1"]


def test_lines_show_which_chunks_change_places(shown):
    page.lines(Tile(mode="32"))
    page.lines(Tile())
    found = rows(shown[0])[2:]
    assert [row[4] for row in found] == 4 * ["0 1"] + 4 * ["1 0"]
    assert [row[2] for row in found] == 4 * ["000"] + 4 * ["001"]
    assert rows(shown[1])[2 + 5][4] == "5 4 7 6 1 0 3 2"  # chunk c of row 5 lies at c XOR 5


def test_what_lanes_name_and_what_it_becomes(shown):
    page.named(Tile("ldmatrix"))
    page.named(Tile("ldmatrix", side="B", order="MN"))
    assert rows(shown[0])[2 + 1] == ["8 to 15", "8 to 15", "0 to 7", "r1"]
    assert rows(shown[1])[2 + 1] == ["8 to 15", "0 to 7", "8 to 15", "r1"]
