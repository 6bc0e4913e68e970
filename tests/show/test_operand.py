"""Tiles in shared memory, against runs of the emulator.

What tensor copies write, and what wgmma, tcgen05.mma and ldmatrix read with the descriptors and the
addresses that the explorer shows.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.ptx.isa.matrix_descriptor import Descriptor
from lib.ptx.isa.tcgen05_operands import operand_descriptor
from lib.show import operand as model
from lib.show.fragment_maps import maps
from lib.show.operand import ATOMS_OF_32, CHUNK, CODES, FIELDS, START, Tile
from tests.pages import cells
from tests.ptx.conftest import run as run_ptx
from tests.ptx.isa.test_cp_async_bulk import dump
from tests.ptx.isa.test_tcgen05 import PROGRAM, idesc
from tests.ptx.isa.test_tcgen05 import run as run_tcgen05
from tests.ptx.isa.test_wgmma import kernel as wgmma_kernel
from tests.tables import cases, settings

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}
LEGAL = [tile for _, tile in model.every_tile() if isinstance(tile, Tile)]


def few(reader):
    """Each swizzle, type and direction of a reader once, in a tile of more than one instruction."""
    found = {}
    for tile in LEGAL:
        if tile.reader == reader and tile.rows == 128:
            found.setdefault((tile.item, tile.order, tile.mode), tile)
    return [max((one for one in LEGAL if (one.reader, one.item, one.order, one.mode) == (
        reader, *key) and one.rows == 128 and one.k_bytes <= 128),
        key=lambda one: one.k_bytes) for key in found]


def named(tile):
    return f"{tile.reader}-{tile.item}-{tile.order}-{tile.mode}-{tile.rows}-{tile.k_bytes}"


def stored(tile, rows):
    """A matrix, (rows, K), as global memory has it: K or the rows contiguous."""
    return np.ascontiguousarray(rows if tile.order == "K" else rows.T)


def image(tile, rows):
    """The tile's bytes of shared memory, put where `places` says."""
    out = np.full(tile.slab * (tile.run // tile.span), 0xFF, np.uint8)
    chunks = stored(tile, rows).view(np.uint8).reshape(tile.lines, -1, CHUNK)
    at = tile.places[..., None] - START + np.arange(CHUNK)
    out[at] = chunks
    return out


@cache
def copy():
    return ptx.Module(dump(2)).get_function("k")


def brought(tile, rows):
    """The tile's bytes as tensor copies bring them, one box a slab, in the emulator."""
    across, down = tile.box
    matrix = stored(tile, rows)
    swizzle = int(tile.mode) if tile.mode.isdigit() else 0
    tensor_map = ptx.tensor_map(matrix, (down, across), swizzle=swizzle)
    parts = []
    for slab in range(tile.run // tile.span):
        total = -(-(slab + 1) * tile.slab // 1024) * 1024
        out = np.zeros(total, np.uint8)
        numbers = (np.uint32(slab * tile.slab), np.uint32(tile.slab), np.uint32(total),
                   np.int32(slab * across), np.int32(0))
        copy()(1, 32, (tensor_map, out, *numbers), total)
        parts.append(out[slab * tile.slab : (slab + 1) * tile.slab])
    return np.concatenate(parts)


def random_rows(tile, seed=0):
    # Small whole numbers, which every type holds: products are exact.
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (tile.rows, tile.k_bytes), np.uint8).view(UNSIGNED[tile.item])


WRITTEN = [one for reader in model.READERS for one in few(reader)
           if one.box and one.mode != ATOMS_OF_32]


@pytest.mark.parametrize("tile", WRITTEN, ids=named)
def test_an_element_lies_where_a_tensor_copy_brings_it(tile):
    rows = random_rows(tile)
    found = brought(tile, rows)
    assert np.array_equal(found, image(tile, rows))
    for row, k in ((0, 0), (13, 5), (63, tile.k - 1), (127, 3)):
        place = tile.element(row, k)
        at = place.address - START
        assert found[at : at + tile.item].view(UNSIGNED[tile.item])[0] == rows[row, k]
        assert place.bank == place.address % 128 // 4


# -- descriptors, by what reads with them ---------------------------------------------------------

NUMBERS = {1: lambda x: x.astype(np.int8).view(np.uint8),
           2: lambda x: x.astype(np.float16).view(np.uint16),
           4: lambda x: x.astype(np.float32).view(np.uint32)}


def numbers(tile, seed):
    """Small whole numbers, and their bits in the tile's type (INT8, FP16, TF32)."""
    values = np.random.default_rng(seed).integers(-8, 9, (tile.rows, tile.k))
    return values, NUMBERS[tile.item](values)


def two_images(a, b, a_bits, b_bits):
    """Both tiles in one shared memory, A at byte START; where B begins behind A."""
    left, right = image(a, a_bits), image(b, b_bits)
    behind = -(-len(left) // 1024) * 1024
    found = np.zeros(START + behind + -(-len(right) // 1024) * 1024, np.uint8)
    found[START : START + len(left)] = left
    found[START + behind : START + behind + len(right)] = right
    return found, behind


@pytest.mark.parametrize("tile", few("wgmma"), ids=named)
@pytest.mark.parametrize("side", ["A", "B"])
def test_wgmma_multiplies_what_the_descriptors_describe(tile, side):
    one, other = replace(tile, side=side), Tile("wgmma", tile.item, "K", "none", 128, tile.k_bytes,
                                                "B" if side == "A" else "A")
    a, b = (one, other) if side == "A" else (other, one)
    (a_values, a_bits), (b_values, b_bits) = numbers(a, 1), numbers(b, 2)
    shared, behind = two_images(a, b, a_bits, b_bits)
    whole = tile.item == 1
    kinds = {1: "s32.s8.s8", 2: "f32.f16.f16", 4: "f32.tf32.tf32"}[tile.item]
    tail = "" if whole else ", 1, 1"
    if tile.item == 2:
        tail += f", {int(a.order == 'MN')}, {int(b.order == 'MN')}"
    deep = a.piece[1]
    function = ptx.Module(wgmma_kernel(
        f"m64n128k{deep}", kinds, 64, "s32" if whole else "f32", False, tail)).get_function("k")
    registers = maps()["wgmma.m64nNk16, FP16 or BF16"][1]
    for first in range(0, a.rows, 64):
        out = np.zeros((64, 128), np.int32 if whole else np.float32)
        for k in range(0, a.k, deep):
            bits = (a.bits(first, k), b.bits(0, k) + (behind >> 4))
            function(1, 128, (shared, np.zeros((4, 128), np.uint32), out, *map(np.uint64, bits),
                              np.uint32(1), np.uint32(len(shared))), len(shared))
        wanted = a_values[first : first + 64] @ b_values.T
        for warp in range(4):
            rows, columns = registers.rows[:64], registers.columns[:64]
            np.testing.assert_array_equal(out[:, 32 * warp : 32 * warp + 32],
                                          wanted[16 * warp + rows, columns])


@pytest.mark.parametrize("tile", few("tcgen05"), ids=named)
@pytest.mark.parametrize("side", ["A", "B"])
def test_tcgen05_multiplies_what_the_descriptors_describe(tile, side):
    if side == "B":  # 64 columns are what the program reads
        tile = replace(tile, rows=64) if tile.order == "K" or 64 * tile.item >= tile.span else tile
    one = replace(tile, side=side)
    other = Tile("tcgen05", tile.item, "K", "32", 64 if side == "A" else 128, tile.k_bytes,
                 "B" if side == "A" else "A")
    a, b = (one, other) if side == "A" else (other, one)
    (a_values, a_bits), (b_values, b_bits) = numbers(a, 1), numbers(b, 2)
    shared, behind = two_images(a, b, a_bits, b_bits)
    kind, text = {1: (("s8", "s8", "s32"), "i8"), 2: (("f16", "f16", "f32"), "f16"),
                  4: (("tf32", "tf32", "f32"), "tf32")}[tile.item]
    trans = ["m" if each.order == "MN" else "k" for each in (a, b)]
    deep = a.piece[1]
    for k in range(0, a.k, deep):
        out = np.zeros((128, 64), np.uint32)
        given = (a.bits(0, k), b.bits(0, k) + (behind >> 4),
                 np.uint32(idesc(*kind, 128, b.piece[0], trans)), np.uint32(0))
        run_tcgen05(PROGRAM.replace("KIND", text), out, shared, columns=128, given=given)
        wanted = a_values[:, k : k + deep] @ b_values[:, k : k + deep].T
        got = out.view(np.int32 if tile.item == 1 else np.float32)
        np.testing.assert_array_equal(got, wanted[:, :64])


LOAD = """
.reg .b64 %p<3>; .reg .b32 %t, %i, %v, %a, %r<4>; .reg .pred %q;
.shared .align 1024 .b8 s[BYTES];
ld.param.u64 %p0, [out]; ld.param.u64 %p1, [image]; ld.param.u64 %p2, [at];
mov.u32 %t, %tid.x; shl.b32 %i, %t, 2;
FILL: setp.ge.u32 %q, %i, BYTES; @%q bra FULL;
cvt.u64.u32 %p0, %i; add.u64 %p0, %p0, %p1; ld.global.b32 %v, [%p0];
mov.u32 %a, s; add.u32 %a, %a, %i; st.shared.b32 [%a], %v;
add.u32 %i, %i, 128; bra FILL;
FULL: bar.warp.sync -1;
mad.wide.u32 %p2, %t, 4, %p2; ld.global.b32 %v, [%p2];
mov.u32 %a, s; add.u32 %a, %a, %v;
ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%r0, %r1, %r2, %r3}, [%a];
ld.param.u64 %p0, [out]; mad.wide.u32 %p0, %t, 16, %p0;
st.global.v4.b32 [%p0], {%r0, %r1, %r2, %r3};
"""


@pytest.mark.parametrize("tile", few("ldmatrix"), ids=named)
@pytest.mark.parametrize("side", ["A", "B"])
def test_ldmatrix_gives_each_lane_the_elements_that_are_said(tile, side):
    tile = replace(tile, side=side)
    rows = random_rows(tile)
    shared = image(tile, rows)
    text = LOAD.replace("BYTES", str(len(shared))).replace("TRANS", ".trans" * (tile.order == "MN"))
    deep = tile.piece[1]
    for row, k in ((0, 0), (16, 0), (96, tile.k - deep)):
        (line, chunk), _ = tile.chunk(row, k)
        at = tile.places[line + tile.addressed[:, 0], chunk + tile.addressed[:, 1]] - START
        out = np.zeros((32, 4), np.uint32)
        launch = run_ptx(text, out, shared, at.astype(np.uint32),
                         parameters=".param .u64 out, .param .u64 image, .param .u64 at")
        parts = out.view(UNSIGNED[tile.item]).reshape(32, 4, -1)
        for i in range(16):
            for j in range(deep):
                holder = tile.holder(row + i, k + j)
                assert parts[holder.lane, holder.register, holder.part] == rows[row + i, k + j]
        [site] = [one for one in launch.trace.sites if one.kind == "ldmatrix"]
        assert site.wavefronts == 4 * tile.wavefronts(row, k)
        # A lane whose address is an element's chunk is among those that are said to name it.
        assert tile.element(row, k).address - START in at


@pytest.mark.parametrize("tile, waves", [
    (Tile("ldmatrix", mode="none"), 8), (Tile("ldmatrix", mode="none", k_bytes=64), 4),
    (Tile("ldmatrix", mode="padded"), 1), (Tile("ldmatrix", mode="128"), 1),
    (Tile("ldmatrix", mode="64"), 1), (Tile("wgmma", mode="32"), 1),
    (Tile("wgmma", mode="none"), 1),
    (Tile("tcgen05", 4, "MN", ATOMS_OF_32), 1),
], ids=lambda one: named(one) if isinstance(one, Tile) else "")
def test_eight_chunks_take_these_wavefronts(tile, waves):
    assert tile.wavefronts(0, 0) == waves


# -- fields ---------------------------------------------------------------------------------------


def fields(tile, row, k):
    bits = tile.bits(row, k)
    found = {one.name: bits >> one.low & (1 << one.width) - 1 for one in FIELDS[tile.reader]}
    assert sum(found[one.name] << one.low for one in FIELDS[tile.reader]) == bits
    return found


@pytest.mark.parametrize("tile", few("wgmma") + few("tcgen05"), ids=named)
def test_fields_are_what_the_emulator_takes_a_descriptor_apart_into(tile):
    decode = Descriptor.of if tile.reader == "wgmma" else operand_descriptor
    for row, k in ((0, 0), (tile.rows - 1, tile.k - 1)):
        found, said = decode(tile.bits(row, k)), fields(tile, row, k)
        assert (found.start, found.leading, found.stride, found.base) == (
            16 * said["start address"], 16 * said["leading byte offset"],
            16 * said["stride byte offset"], said["base offset"])
        assert said["swizzle"] == CODES[tile.reader][tile.mode]


@pytest.mark.parametrize("tile", few("wgmma") + few("tcgen05"), ids=named)
def test_an_offset_that_is_said_to_be_unused_is(tile):
    """And one that isn't is used: with another one the emulator reads elsewhere."""
    for side in model.SIDES:
        one = replace(tile, side=side)
        rows, _ = one.piece
        bits = one.bits(0, 0)
        for field, said in zip((model.LEADING, model.STRIDE), one.says, strict=True):
            shifted = one._read(bits + (4096 << field.low), rows)
            same = np.array_equal(shifted, one._read(bits, rows))
            # Of a K of 8 elements all lie in one group of 8: there is no next one.
            short = said.startswith("from 8 of K") and one.piece[1] == 8
            assert same == ("unused" in said or short), said


def test_the_names_are_cutlass_s():
    assert Tile().named == "GMMA::Layout_K_SW128_Atom"
    assert Tile(order="MN", mode="none").named == "GMMA::Layout_MN_INTER_Atom"
    assert Tile("tcgen05", 4, "MN", ATOMS_OF_32).named == "UMMA::Layout_MN_SW128_32B_Atom"


@cases("""
arguments                        | complaint
rows=48                          | no tile
item=8                           | no tile
mode="256"                       | no tile
item=1, order=MN                 | only of 16-bit types
mode=padded                      | no room for padded
k_bytes=64                       | 64 bytes, fewer than the 128
mode=128/32                      | Only tcgen05
reader=tcgen05, item=4, order=MN | 32-byte atomicity
reader=tcgen05, mode=128/32      | 32-bit types that run along M or N
reader=ldmatrix, item=4, order=MN | can't transpose others
""")
def test_tiles_that_there_are_not(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Tile(**settings(arguments))


def test_what_is_asked_of_a_tile_that_has_none_of_it():
    with pytest.raises(ValueError, match="64 rows and 64 of K"):
        Tile().element(0, 64)
    with pytest.raises(ValueError, match="takes no descriptor"):
        Tile("ldmatrix").bits(0, 0)
    assert Tile(side="B").holder(0, 0) is None and Tile("tcgen05").holder(0, 0) is None


# -- what the page is given -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def given():
    return model.choices()


def test_the_page_has_every_tile_or_why_there_is_none(given):
    assert len(given["tiles"]) == len(list(model.every_tile())) and len(LEGAL) > 500
    for key, tile in model.every_tile():
        found = given["tiles"][" ".join(map(str, key))]
        if isinstance(tile, str):
            assert given["texts"][found] == tile
        else:
            assert given["texts"][found["name"]] == tile.named


def test_places_and_descriptors_follow_from_what_the_page_is_given(given):
    """By the arithmetic of the page's script, for every element's chunk and each instruction."""
    for tile in LEGAL:
        key = (tile.reader, tile.item, tile.order, tile.mode, tile.rows, tile.k_bytes)
        found = given["tiles"][" ".join(map(str, key))]
        atom = np.array(given["atoms"][found["atom"]]) * CHUNK if "atom" in found else (
            np.arange(8)[:, None] * found["pitch"] + np.arange(found["wide"]) * CHUNK)
        line, chunk = np.indices(tile.places.shape)
        again = (given["start"] + chunk // found["wide"] * found["slab"]
                 + line // 8 * 8 * found["pitch"] + atom[line % 8, chunk % found["wide"]])
        assert np.array_equal(again, tile.places), named(tile)
        # Reads of the next lines are alike.
        assert 8 * tile.pitch % 128 == tile.slab % 128 == 0, named(tile)
        firsts = range(0, tile.span // tile.item, CHUNK // tile.item)
        assert {tile.wavefronts(*((0, at) if tile.order == "K" else (at, 0)))
                for at in firsts} == {found["waves"]}, named(tile)
        for side in model.SIDES:
            one, said = replace(tile, side=side), found[side]
            assert said["rows"] == one.piece[0]
            if tile.reader != "ldmatrix":
                for i, down in enumerate(said["down"]):
                    for j, along in enumerate(said["along"]):
                        bits = int(said["bits"], 16) + (down + along >> 4)
                        assert bits == one.bits(i * one.piece[0], j * one.piece[1]), named(tile)


# -- as the page displays them ---------------------------------------------------------------------


def test_the_rules_of_wgmma(shown):
    model.rules()
    found = cells(shown[0])
    assert len(found) == 8
    for along, swizzle, leading, _, step, bits in found:
        order, mode = {"K": "K", "M or N": "MN"}[along], swizzle.removesuffix(" B")
        tile = Tile("wgmma", 2, order, mode, 128, 128, "B")
        assert int(bits.strip("`"), 16) == tile.bits(0, 0)
        assert leading.startswith("unused") == (order == "K" and mode != "none")
        assert step == f"{tile.begins(0, 16) - tile.begins(0, 0):,} B"


def test_fields_beside_each_other(shown):
    model.fields(Tile(), Tile(order="MN", rows=256, side="B"))
    [text] = shown
    assert "| A, along K, 128 B | B, along M or N, 128 B |" in text
    by_name = {row[1]: row for row in cells(text)}
    assert by_name["leading byte offset"][2:4] == ["1 = 16 B / 16", "512 = 8,192 B / 16"]
    assert by_name["swizzle"][0] == "62 to 63" and by_name["swizzle"][2:4] == ["1", "1"]


def test_lines_show_which_chunks_change_places(shown):
    model.lines(Tile(mode="32"))
    model.lines(Tile())
    found = cells(shown[0])
    assert [row[4] for row in found] == 4 * ["0 1"] + 4 * ["1 0"]
    assert [row[2] for row in found] == 4 * ["000"] + 4 * ["001"]
    assert cells(shown[1])[5][4] == "5 4 7 6 1 0 3 2"  # chunk c of row 5 lies at c XOR 5


def test_what_lanes_name_and_what_it_becomes(shown):
    model.named(Tile("ldmatrix"))
    model.named(Tile("ldmatrix", side="B", order="MN"))
    assert cells(shown[0])[1] == ["8 to 15", "8 to 15", "0 to 7", "r1"]
    assert cells(shown[1])[1] == ["8 to 15", "0 to 7", "8 to 15", "r1"]
