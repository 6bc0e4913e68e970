"""What 20 to 24 show: loads for others, shared steps of K, shares of the last wave, shapes."""

import re

import pytest
from msgspec import structs

from lib.kernels.catalogue import CATALOGUE
from lib.records import predictions, store
from lib.records.schema import Pair
from lib.show import accounts as accounts_page
from lib.show import clusters, display, multicast, shares, split_k
from lib.show import shapes as by_shape
from lib.show.columns import Retimed, launches
from lib.show.numbers import Named, Numbers
from lib.show.version import Version
from tests import built
from tests.pages import cells
from tests.show.test_shapes import recorded
from tests.tables import cases

CLUSTERS, STREAM_K = CATALOGUE["21_clusters"], CATALOGUE["23_stream_k"]


def ranks(mask):
    """The blocks of a cluster that a mask names."""
    return tuple(at for at in range(mask.bit_length()) if mask >> at & 1)


@pytest.mark.parametrize("name", ["wide", "cluster_2x2", "cluster_4x1"])
def test_masks_name_the_blocks_that_need_a_part(name):
    variant = CLUSTERS.variant(name)
    down, across = variant.schedule.cluster
    for one in multicast.observed(CLUSTERS, variant):
        assert ranks(one.a_mask) == tuple(i * down + one.m for i in range(across))
        assert ranks(one.b_mask) == tuple(one.n * down + i for i in range(down))


def test_the_blocks_of_a_tile_take_all_steps_and_all_rows_once():
    parts = split_k.parts(64, 13, 4)
    assert sorted(step for part in parts for step in part.steps) == list(range(13))
    assert [row for part in parts for row in part.rows] == list(range(64))
    with pytest.raises(ValueError, match="64 rows are no multiple of 3 blocks"):
        split_k.parts(64, 13, 3)


@cases("""
tiles steps clusters cut sharers
11    16    4        3   4
11    16    4        7   4
10    16    4        2   4
70    64    66       4   32
7     5     3        0   1
70    64    66       70  66
8     5     4        0   1
3     7     5        3   4
""")
def test_shares_cover_every_step_once_and_are_equal(tiles, steps, clusters, cut, sharers):
    found = shares.Shares(tiles, steps, clusters, cut, sharers)
    covered = sorted((part.tile, step) for cluster in range(clusters) for part in found.of(cluster)
                     for step in range(part.first, part.last))
    assert covered == [(tile, step) for tile in range(tiles) for step in range(steps)]
    lengths = {sum(part.steps for part in found.of(cluster) if part.tile < cut)
               for cluster in range(sharers)}
    assert max(lengths) - min(lengths) <= 1
    # Each cluster has room for two parts of tiles.
    assert all(sum(part.steps < steps for part in found.of(cluster)) <= 2
               for cluster in range(clusters))


def test_a_variant_s_shares_are_those_of_its_launch():
    cut, whole = (STREAM_K.variant(name) for name in ("cut", "whole"))
    problem = cut.problem(*shares.EXAMPLE)
    assert shares.shares(cut, problem, 8) == shares.Shares(11, 16, 4, 7, 4)
    assert shares.shares(whole, problem, 8) == shares.shares(cut, problem, 8).whole
    longest = [shares.shares(one, problem, 8).longest for one in (cut, whole)]
    assert longest == [44, 48]
    with pytest.raises(ValueError, match="wide cuts no wave"):
        shares.shares(CLUSTERS.variant("wide"), problem, 8)


def test_a_cut_s_gains_are_drawn_by_how_full_the_last_wave_is(monkeypatch):
    page, figures = recorded("23_stream_k"), []
    monkeypatch.setattr(display, "show", lambda *both: figures.append(both))
    # 6% and 50% full, 97% full, and one that fills its wave: of that nothing is cut.
    timed_as = {(1792, 1280, 4096): 80.0, (2304, 1408, 4096): 99.5, (2560, 1664, 16384): 125.0,
                (2816, 1536, 4096): 100.0, (1024,) * 3: 125.0}
    row = page.version.record.variants["whole"].bench[0]
    for name, times in (("whole", dict.fromkeys(timed_as, 100.0)), ("cut", timed_as)):
        built.let_bench(page.version, name, [
            structs.replace(row, M=M, N=N, K=K, seconds=1e-6 * time, spread=0.005)
            for (M, N, K), time in times.items()])
    shares.gains(page.version)
    wide, narrow = figures[0]
    # The one at 50% is faster by less than the spreads.
    assert wide.finding == narrow.finding == (
        "A cut pays on 1 of 1 last waves up to 6% full, on none of 2 fuller")
    assert wide.alt.endswith(
        "6%: 1,792×1,280×4,096: faster with the cut 125.0; +25.0%. 50%: 2,304×1,408×4,096: as fast "
        "within the spreads 100.5; +0.5%. 97%: 2,560×1,664×16,384: slower 80.0; −20.0%.")
    shares.gains(page.version, cubes=(1024,))
    assert "on none of 3 fuller" in figures[1][0].finding
    assert "1,024×1,024×1,024: slower 80.0" in figures[1][0].alt


@pytest.fixture
def of_another_run(monkeypatch):
    """A record of 21 whose `unclustered` was added later, and timed beside `wide` then."""
    record = Version("21_clusters").record
    variants = record.variants
    wide = {(row.M, row.N, row.K): row for row in variants["wide"].bench}

    def again(row):
        one = wide[row.M, row.N, row.K]
        return Pair(variant="wide", seconds=1.01 * one.seconds, spread=one.spread,
                    tflops=one.tflops / 1.01, cublas_seconds=one.cublas_seconds,
                    ratio=one.ratio / 1.01, clock=one.clock)

    added = variants["unclustered"]
    added = structs.replace(added, bench=tuple(
        structs.replace(row, chunk="20261128T000000-0001", pair=again(row)) for row in added.bench))
    record = structs.replace(record, variants={**variants, "unclustered": added})
    load = store.load
    monkeypatch.setattr(store, "load", lambda kind, key, stem="", root=None: (
        record if stem == "21_clusters" else load(kind, key, stem, root)))


@pytest.mark.usefixtures("of_another_run")
def test_a_pair_of_two_runs_is_told_of_the_run_that_timed_both(shown):
    version = Version("21_clusters")
    accounts_page.isolated(version)
    row = version.recorded(4096, "unclustered")
    gain = row.pair.tflops / row.tflops - 1
    assert f"{row.tflops:.4g} → {row.pair.tflops:.4g}, {gain:+.1%}" in shown[0]
    assert "†" not in shown[0]


def test_a_variant_that_was_not_timed_beside_another_has_no_such_row():
    version = Version("21_clusters")
    first, second = launches(version, (), ("21_clusters/band_8", "21_clusters/wide"), 4096)[:2]
    again = Retimed(second.page, second.variant, second.size, first)
    with pytest.raises(store.NotRecorded, match="isn't recorded beside"):
        assert again.row


def test_pairs_stand_side_by_side_and_a_sentence_counts_them(shown, monkeypatch):
    page = recorded("23_stream_k")
    shapes = page.kernel.own_shapes
    row = page.version.record.variants["whole"].bench[0]
    for name, times in (("whole", (100.0,) * 3), ("cut", (80.0, 80.0, 125.0))):
        built.let_bench(page.version, name, [
            structs.replace(row, M=M, N=N, K=K, seconds=1e-6 * microseconds)
            for (M, N, K), microseconds in zip(shapes, times, strict=False)])
    by_shape.side_by_side(page.version, "whole", "cut")
    rows = cells(shown[0])
    assert len(rows) == len(shapes)
    assert rows[0][-4:-1] == ["100.0", "80.0", "**1.250**"] and rows[-1][-4:] == [""] * 4
    # Beside them what cuBLAS took in the run of the first.
    cublas = page.version.record.variants["whole"].bench[0].cublas_seconds
    assert rows[0][0] == "1,792×1,280×4,096" and rows[0][-1] == f"{1e6 * cublas:,.1f}"
    assert shown[1].startswith(
        "Of 3 recorded shapes `cut` is faster than `whole` on 2, slower on 1")
    assert "1.250 times the speed, at 1,792×1,408×4,096; its worst 0.800" in shown[1]
    by_shape.each(page.version, "cut")
    assert cells(shown[2])[0] == ["1,792×1,280×4,096", "`cut`", "**80.0 (120%)**"]
    # Nothing is recorded of the last one: the time is the model's, and says so.
    expected = by_shape.microseconds(page.kernel.variant("cut"), shapes[-1])
    assert cells(shown[2])[-1][2] == f"{expected:,.1f} expected"


def test_of_shapes_that_are_not_recorded_predictions_stand_alone(shown, monkeypatch):
    monkeypatch.setattr(by_shape, "_row", lambda *_: None)
    by_shape.side_by_side(Version("24_any_row"), "packed", "read")
    assert len(shown) == 1 and "recorded" not in shown[0]
    assert all(len(row) == 2 and float(row[1]) > 0 for row in cells(shown[0]))


def test_a_step_may_be_foreseen_from_a_variant_that_is_not_the_one_before():
    found = predictions.foreseen("20_persistent/persistent", "20_persistent/staged")
    assert found.gain == 0.02
    assert predictions.foreseen("20_persistent/wide", "20_persistent/staged") is None
    for stem, steps in predictions.PREDICTIONS.items():
        for name, step in steps.items():
            pairs = [(pair.first, pair.second) for pair in CATALOGUE[stem].pairs]
            assert not step.since or (step.since, f"{stem}/{name}") in pairs, (stem, name)
    assert "2026-11-24" in predictions.label("21_clusters")
    assert "2026-11-21" in predictions.label("15_turing_limit")


def test_partial_sums_are_drawn_from_a_run_that_cuts():
    with display.collected() as figures:
        shares.coalescing(Version("23_stream_k"), "cut")
    [picture] = figures
    stored = picture.text.split(" mine[i * 128] ")[1]
    assert "16 sectors 100% useful" in stored and " parts" in picture.text


def test_shapes_that_were_won_are_counted(monkeypatch):
    page = recorded("23_stream_k")
    for name, seconds in (("whole", 1e-4), ("cut", 8e-5)):
        stored = page.version.record.variants[name]
        built.let_bench(page.version, name, [
            structs.replace(stored.bench[0], M=M, N=N, K=K, seconds=seconds)
            for M, N, K in page.kernel.own_shapes[:3]])
    monkeypatch.setattr(Numbers, "_of", lambda self, name: Named(
        page.version, page.version.kernel.variant(name)))
    assert Numbers("23_stream_k").won("cut", "whole") == "3 of 3"
    assert Numbers("23_stream_k").won("whole", "cut") == "0 of 3"


def test_ratios_have_three_means(shown):
    page = recorded("hopper")
    stored = page.version.record.variants["tuned"].bench
    odd, small = (structs.replace(stored[0], M=M, N=N, K=K, ratio=ratio)
                  for M, N, K, ratio in ((4095, 4097, 4093, 4.0), (512, 512, 512, 0.25)))
    built.let_bench(page.version, "tuned", [structs.replace(stored[0], ratio=1.0), odd, small])
    by_shape.means(page.version)
    assert cells(shown[0])[0] == [
        "`tuned`", "1.000; 0.250 (3)", "0.500; 0.250 (2)", "1.000; 1.000 (1)"]


# ⌈128 / 30⌉; the first thirty have four tiles or three, those that wait three; as long again.
@cases("""
tiles launched at_once time
128   30       30      5
128   33       30      7
12    4        3       6
5     5        3       2
7     1        9       7
""")
def test_a_cluster_that_finds_no_room_has_all_its_tiles_still_to_do(
        tiles, launched, at_once, time):
    walk = clusters.Walk(tiles, launched, at_once)
    assert walk.time == time
    assert sum(walk.of(cluster) for cluster in range(launched)) == tiles
    ends = [begin + walk.of(cluster) for cluster, begin in enumerate(walk.begins)]
    for cluster, begin in enumerate(walk.begins):  # no more than there is room for at any time
        assert sum(b <= begin < e for b, e in zip(walk.begins, ends, strict=True)) <= at_once
        assert (begin > 0) == (cluster >= at_once)


def test_blocks_that_share_k_are_drawn_with_the_rows_that_each_adds_up():
    parts = split_k.parts(64, 16, 4)
    scene = split_k.picture(parts, 16, evidence="modelled: four")
    assert scene.title.startswith("Each of 4 blocks multiplies every fourth step of K")
    steps, sums = re.findall(r'class="(?:compute|focus)" d="([^"]+)"',
                             scene.body.split("block ")[3])
    assert re.findall(r"M([0-9.]+)", steps) == ["33", "97", "161", "225"]  # 2, 6, 10, 14 of 16 px
    assert {float(y) for y in re.findall(r"M\S+ ([0-9.]+)h", sums)} == {14.0}  # half of 26 px down


@pytest.mark.parametrize("size", (2048, 4096, 8192))
def test_as_many_clusters_as_fit_are_never_slower_than_as_many_as_sms_hold(size):
    for variant in CLUSTERS.variants:
        more, fitting = (clusters.walk(variant, size, by_sms=by_sms) for by_sms in (True, False))
        assert fitting.time <= more.time and fitting.clusters <= fitting.at_once
        if variant.grid.size < 3:  # these fill all SMs
            assert fitting == more
    with pytest.raises(ValueError, match="isn't persistent"):
        clusters.walk(CATALOGUE["18_tma"].variants[0], size)
    with pytest.raises(ValueError, match="at least 1"):
        clusters.Walk(1, 0, 1)
