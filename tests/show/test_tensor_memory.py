"""What is told of tensor memory: its steps, what a tile asks, both descriptors, the pictures."""

import pytest

from lib.show import tensor_memory as model
from lib.show.version import Version

STEM = "27_tcgen05"


@pytest.fixture(scope="module")
def wide():
    return model.followed(STEM, "wide")


def test_a_block_s_columns_are_allocated_filled_loaded_and_free_at_the_end(wide):
    kinds = [one.kind for one in wide.changes]
    assert kinds[0] == "alloc" and kinds[-1] == "dealloc"
    assert set(kinds) == {"alloc", "mma", "ld", "dealloc"}
    # 4 tiles of 3 steps of K, each 4 MMAs; each warp loads 8 times 32 columns of a tile.
    assert kinds.count("mma") == 4 * 3 * 4 and kinds.count("ld") == 4 * 4 * 8
    steps = [one.step for one in wide.changes]
    assert steps == sorted(steps) and steps[-1] <= wide.last


def test_the_next_tile_is_begun_early_only_where_there_is_room_for_it(wide):
    assert model.begun_early(wide) == (3, 3)
    assert model.begun_early(model.followed(STEM, "one_accumulator")) == (0, 3)


def test_where_mmas_complete_at_once_all_of_a_tile_is_issued_while_the_one_before_is_loaded():
    found = model.followed(STEM, "wide", landing="early")
    (mma,) = {one.warp for one in found.changes if one.kind == "mma"}
    issued, loaded = model.spans(found, mma, "mma"), model.spans(found, 0, "ld")
    assert all(issued[tile][1] < loaded[tile - 1][1] for tile in (1, 2, 3))
    one = model.followed(STEM, "one_accumulator", landing="early")
    issued, loaded = model.spans(one, mma, "mma"), model.spans(one, 0, "ld")
    assert all(issued[tile][0] > loaded[tile - 1][1] for tile in (1, 2, 3))


def test_a_group_of_mmas_is_of_the_tiles_that_are_begun_together(wide):
    (mma,) = {one.warp for one in wide.changes if one.kind == "mma"}
    whole = model.spans(wide, mma, "mma")
    groups = model.bursts(wide, mma, 500)
    assert sorted({tile for tiles, _ in groups for tile in tiles}) == sorted(whole) == [0, 1, 2, 3]
    assert groups[0][0] == [0, 1]  # with two accumulators the second is begun at once
    one = model.followed(STEM, "one_accumulator")
    assert [tiles for tiles, _ in model.bursts(one, mma, 500)] == [[0], [1], [2], [3]]
    loaded = model.spans(wide, 0, "ld")
    assert all(begin < end for begin, end in loaded.values())


def test_what_a_tile_asks_is_what_its_sizes_say():
    ours, before = (model.asked(*name, (128, 512, 256)) for name in (
        (STEM, "wide"), ("20_persistent", "wide")))
    assert ours.flops == before.flops == 2 * 128 * 512 * 256
    assert ours.read == 2 * 2 * (128 + 256) * 256
    assert before.read == 2 * 2 * 2 * (64 + 256) * 256
    assert (ours.products, before.products) == (2 * 16, 2 * 16 * 2)


def test_the_timelines_say_in_words_what_they_show():
    rows = [(name, model.followed(STEM, name)) for name in ("one_accumulator", "wide")]
    roles = Version(STEM).kernel.variants[0].roles.warps
    together = model.timeline(rows, roles, title="A finding", evidence="emulated: x")
    assert "one_accumulator 0 of 3 tiles" in together.text and "wide 3 of 3 tiles" in together.text
    # Variants are several runs: no scale of steps says which is the longer.
    apart = model.timeline(rows, roles, title="A finding", evidence="emulated: x", together=False)
    assert "instructions in order" in together.text and "instructions in order" not in apart.text
    assert "order of instructions, no time" in apart.text


def test_roofs_are_a_data_sheet_s_and_no_speed_is_told(shown):
    model.by_intensity(Version(STEM), "20_persistent/wide")
    assert "want 160 bytes" in shown[0] and "96 as 27 does" in shown[0]
    assert "intensity emulated; no speed" in shown[0]
    assert "160 of 128 bytes per cycle, at most 80% of the peak" in shown[0]
    assert shown[0].count('class="warning"') == 1  # what is asked beyond what is given
