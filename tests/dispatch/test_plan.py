"""A plan: by shape, types and alignments alone, and nothing else of where matrices lie."""

import random
from dataclasses import replace
from itertools import product

import pytest

from lib.dispatch.fit import MAX_ALIGNMENT, alignment, forms
from lib.dispatch.plan import nearest, plan
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.problem import Problem
from lib.ptx import TensorMap
from lib.records import searches
from lib.records.schema import Searched
from lib.run.runner import prepare

RULE, LIMIT, TURING = (
    KERNELS[stem] for stem in ("hopper", "09_fp32_limit", "15_turing_limit"))


def outcome(kernel, variant, problem, addresses):
    try:
        return plan(kernel, variant, problem, addresses, exact=True)
    except ValueError as refused:
        return str(refused)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.stem)
def test_of_an_address_nothing_but_its_alignment_matters(kernel):
    draw = random.Random(kernel.stem)
    for variant in (*kernel.variants, *kernel.steps, *kernel.menu[:8]):
        problem = variant.problem(136, 264, 128)
        for _ in range(4):
            item = 2 if variant.dtype != "float32" else 4
            places = [draw.randrange(1 << 20) * item * draw.choice((1, 4, 16)) for _ in "ABCABC"]
            aligned = [alignment(place) for place in places]
            assert all(one in (1, 2, 4, 8, 16, MAX_ALIGNMENT) for one in aligned)
            assert outcome(kernel, variant, problem, places) == (
                outcome(kernel, variant, problem, aligned))


def test_an_alignment_is_the_power_of_two_that_divides_an_address():
    assert [alignment(one) for one in (0, 1, 6, 24, 256 + 16, 32, 4096)] == [
        MAX_ALIGNMENT, 1, 2, 8, 16, 32, 32]


def test_a_plan_launches_one_of_the_forms_of_the_variant():
    for kernel, variant in ((LIMIT, LIMIT.variant("large")),
                            (RULE, RULE.variant("21_clusters/ping_pong")),
                            (CATALOGUE["16_cp_async"], CATALOGUE["16_cp_async"].variants[0])):
        known = set(map(kernel.expression, forms(variant)))
        made = {kernel.expression(plan(kernel, variant, variant.problem(64, N, K), (place,) * 3,
                                       exact=True).variant)
                for N, K, place in product((64, 63, 62, 60), (64, 63, 62, 60), (256, 264))}
        assert made == known


def test_what_is_packed_has_a_launch_unless_it_is_empty():
    variant = RULE.variant("21_clusters/ping_pong")
    both = plan(RULE, variant, variant.problem(5, 33, 31), exact=True)
    assert {name: one.block for name, one in both.packing.items()} == {
        "A": (4, 32, 1), "B": (8, 16, 1)}
    empty = plan(RULE, variant, variant.problem(5, 33, 0), exact=True)
    assert not empty.packing and "B is packed" in empty.reason


def test_cut_tiles_have_room_for_two_sums_of_each_block_and_a_count_of_each_tile():
    """09 deals the steps of 12 tiles to so many blocks; with as many as tiles none is cut."""
    large = LIMIT.variant("large")
    problem = large.problem(400, 600, 512)  # 4 × 3 tiles of 128×256

    def planned(sms, variant=large, **more):
        found = plan(LIMIT, variant, problem, sms=sms, exact=True, **more)
        return found.launch.grid[0], found.workspace

    assert planned(5) == (5, (2 * 5 * 128 * 256, 12, ()))
    assert planned(20) == (20, (2 * 20 * 128 * 256, 12, ()))
    assert planned(12) == (12, (1, 1, ()))
    assert planned(5, LIMIT.variant("whole")) == (7 * 5, (1, 1, ()))
    naive = CATALOGUE["01_naive"]
    assert plan(naive, naive.variants[0], Problem(400, 600, 512)).workspace == (0, 0, ())


@pytest.mark.parametrize("name, per_row", [("tuned", 4), ("half", 8), ("bf16_column", 8)])
def test_c_has_a_map_where_its_own_elements_fill_rows_of_16_bytes(name, per_row):
    """Four floats do, and four or twelve elements of 16 bits don't: the lanes store those."""
    tuned = RULE.variant(name)
    variant = RULE.variant(tuned.candidates[0])
    for N in (4, 8, 12, 16, 20):
        found = plan(RULE, variant, variant.problem(64, N, 64), exact=True).variant
        assert ("C" in found.maps.boxes) == (N % per_row == 0) == (found.schedule.staged > 0)
        steps = prepare(RULE, variant, variant.problem(64, N, 64),
                        [variant.problem(64, N, 64).inputs()], exact=True).steps[0]
        assert isinstance(steps[-1].arguments[-1], TensorMap) == (N % per_row == 0)


def rows(variant, **seconds):
    return [Searched(M=size, N=size, K=size, cublas_seconds=1.0,
                     seconds={name: times[place] for name, times in seconds.items()})
            for place, size in enumerate((256, 4096))]


def test_a_search_that_is_handed_in_decides_and_without_one_the_first_candidate_is_taken():
    tuned = TURING.variants[0]
    search = rows(tuned, tile_128x256=(2.0, 1.0), tile_64x128=(1.0, 2.0), gone=(0.1, 0.1))
    for size, name in ((200, "tile_64x128"), (1000, "tile_64x128"), (1104, "tile_128x256"),
                       (8192, "tile_128x256")):
        found = plan(TURING, tuned, tuned.problem(size, size, size), searches=search)
        assert found.variant is TURING.variant(name)
        assert found.reason.startswith(f"{name}: fastest at ")
    found = plan(TURING, tuned, tuned.problem(200, 200, 200))
    assert found.variant is TURING.variant(tuned.candidates[0])
    assert found.reason == "no search of tiles is recorded"
    assert plan(TURING, tuned, tuned.problem(200, 200, 200), searches=search, exact=True
                ).variant is tuned


def test_the_nearest_shape_is_counted_in_powers_of_two():
    tuned = TURING.variants[0]
    search = [Searched(M=64, N=64, K=4096, cublas_seconds=1.0, seconds={"tile_128x256": 1.0}),
              Searched(M=1024, N=1024, K=64, cublas_seconds=1.0, seconds={"tile_64x128": 1.0})]
    # From the first M is doubled and K four times halved; from the other 3 + 4 + 2 steps.
    assert nearest(tuned, tuned.problem(128, 64, 256), search).name == "tile_128x256"
    assert nearest(tuned, tuned.problem(512, 512, 0), search).name == "tile_64x128"


def test_every_search_that_decides_is_recorded():
    for kernel in CATALOGUE.values():
        for variant in kernel.variants:
            decides = bool(variant.candidates) and not variant.by_rule
            assert bool(searches.of(kernel, variant)) == decides
            for row in searches.of(kernel, variant):
                assert set(row.seconds) <= set(variant.candidates)


def test_types_are_refused_by_the_name_that_was_asked_for():
    tuned = RULE.variants[0]
    problem = replace(tuned.problem(64, 64, 64), dtype="float32")
    with pytest.raises(ValueError, match="^hopper/tuned takes A and B in float16, not"):
        plan(RULE, tuned, problem)
    with pytest.raises(ValueError, match="B in layout row, not column"):
        plan(LIMIT, LIMIT.variants[0], Problem(8, 8, 8, b_layout="column"))


@pytest.mark.parametrize("name, clusters", [
    ("cluster_1x1", 132), ("cluster_1x2", 66), ("cluster_2x2", 30), ("cluster_4x1", 30)])
def test_a_persistent_kernel_has_no_more_clusters_than_run_at_once(name, clusters):
    """On an H100, of whose SMs clusters of four can't fill all: one more would be a second wave."""
    kernel = CATALOGUE["21_clusters"]
    variant = kernel.variant(name)
    large, small = variant.problem(8192, 8192, 64), variant.problem(128, 256, 64)
    size = variant.grid.size
    assert plan(kernel, variant, large, exact=True).launch.grid == (clusters * size, 1, 1)
    assert plan(kernel, variant, small, exact=True).launch.grid == (size, 1, 1)
    asked = []
    given = plan(kernel, variant, large, sms=lambda n: asked.append(n) or 18 // n * n, exact=True)
    assert asked == [size] and given.launch.grid == (18 // size * size, 1, 1)
