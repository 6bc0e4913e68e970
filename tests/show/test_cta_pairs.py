"""What is told of a pair: who has which half, its mbarriers, its blocks' steps."""


from lib.kernels.catalogue import CATALOGUE
from lib.show import cta_pairs as model
from lib.show import tensor_memory as steps
from lib.show.version import Version
from tests.pages import cells

PAIRS, ALONE = CATALOGUE["28_cta_pairs"], CATALOGUE["27_tcgen05"]


def test_a_pair_has_each_half_of_b_once_and_two_blocks_have_it_twice():
    pair, alone = (model.shares(kernel.variants[0]) for kernel in (PAIRS, ALONE))
    assert [list(one.held) for one in pair] == [list(range(128)), list(range(128, 256))]
    assert [list(one.held) for one in alone] == 2 * [list(range(256))]
    for blocks in (pair, alone):
        assert [one.rows for one in blocks] == [range(128), range(128, 256)]
        assert {one.summed for one in blocks} == {range(256)}
    assert (pair[0].stage_bytes, alone[0].stage_bytes) == (32 << 10, 48 << 10)


def test_mbarriers_count_what_the_source_makes_them_for():
    """The arrivals as `mbarrier_init` has them, of every mbarrier of the kernel."""
    found = {one.name: one.arrivals for one in model.handovers_of(PAIRS.variants[0])}
    assert found == {"filled": 1, "freed": 1, "ready": 1, "drained": 2 * 32 * 4, "told": 1,
                     "read": 2 * 32 * 4 + 2 + 1}
    source = PAIRS.source.read_text()
    assert "READERS = 2 * 32 * STORERS + 2 + 1" in source
    assert "mbarrier_init(drained + 8 * i, 2 * 32 * STORERS)" in source
    without = model.handovers_of(PAIRS.variant("in_turns"))
    assert [one.name for one in without] == ["filled", "freed", "ready", "drained"]


def test_a_stage_s_bytes_are_told_against_the_version_before(shown):
    model.halves(Version("28_cta_pairs"), "27_tcgen05/wide")
    assert "32 KiB of each block in place of 48" in shown[0]


def test_the_table_of_mbarriers_names_the_leader_and_the_bytes_of_both(shown):
    model.handovers(Version("28_cta_pairs"))
    rows = {row[0]: row[1:] for row in cells(shown[0])}
    full = next(row for name, row in rows.items() if "filled" in name)
    assert full[1] == "leader" and "65,536 bytes" in full[3]


def test_a_phase_may_count_bytes_before_they_are_expected_and_ends_all_the_same(shown):
    events = model.phase(PAIRS.variant("in_turns"))
    assert [(one.arrivals, one.nbytes) for one in events] == [
        (1, 0), (1, -32768), (0, 32768), (0, 0), (1, 0)]
    model.pending(Version("28_cta_pairs"), "in_turns")
    assert [row[2] for row in cells(shown[0])] == ["0", "−32,768", "32,768", "0", "0"]


def test_only_the_leader_issues_mmas_and_both_blocks_store():
    leader, second = (steps.followed("28_cta_pairs", "in_turns", block=rank) for rank in (0, 1))
    kinds = [[one.kind for one in found.changes] for found in (leader, second)]
    assert kinds[0].count("mma") == 4 * 3 * 4 and "mma" not in kinds[1]
    assert kinds[0].count("ld") == kinds[1].count("ld") == 4 * 4 * 8
    assert steps.begun_early(leader) == (3, 3) and steps.begun_early(second) == (0, 0)
    # Both blocks' warps load the four tiles, in their order.
    for found in (leader, second):
        for warp in range(4):
            spans = steps.spans(found, warp, "ld")
            assert list(spans) == [0, 1, 2, 3]
            assert all(spans[tile][1] < spans[tile + 1][0] for tile in range(3))


def test_the_timeline_says_where_mmas_are_issued(shown):
    steps.timeline_of_blocks(Version("28_cta_pairs"), "in_turns", "leader", "second block")
    assert "All MMAs are issued in the leader; each block loads and stores" in shown[0]
    assert "second block</strong></p><p>it issues no MMA" in shown[0]
