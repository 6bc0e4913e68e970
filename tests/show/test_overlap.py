"""Orders of fetch, store and multiply: what they hide, and what other blocks hide for them."""

import pytest

from lib.show import display
from lib.show import overlap as page
from lib.show.overlap import (
    AT_ONCE,
    FORMS,
    MULTIPLY,
    ROLES,
    STAGED,
    Step,
    overlap,
    recorded_step,
    times_of,
)
from lib.show.version import Version


def period(form, latency=600, store=100, multiply=200, blocks=1, steps=12):
    """Cycles from one product of a block to its next, in the steady state."""
    run = overlap(form, latency, store, multiply, blocks, steps)
    row = [s.start for s in run.spans if s.phase == MULTIPLY and s.row == 0]
    return (row[-2] - row[4]) / (len(row) - 6)


def test_staged_hides_the_product_behind_the_fetch_and_roles_the_store_too():
    assert period(AT_ONCE) == 600 + 100 + 200
    assert period(STAGED) == 600 + 100
    assert period(ROLES) == 600 + 100  # its loading warps still wait for each tile
    assert period(STAGED, latency=150) == 200 + 100
    # Other warps store: the longer of what one kind does and what the other does.
    assert period(ROLES, latency=150) == 150 + 100
    assert period(ROLES, latency=50) == 200


@pytest.mark.parametrize(("latency", "store", "multiply"), [(400, 150, 500), (700, 90, 300)])
def test_a_step_takes_what_the_formulas_of_the_pages_say(latency, store, multiply):
    takes = {
        "L + P + T": latency + store + multiply, "max(L, T) + P": max(latency, multiply) + store,
        "max(L + P, T)": max(latency + store, multiply),
    }
    for form, formula in page.FORMULAS.items():
        assert overlap(form, latency, store, multiply, steps=12).step == takes[formula], form


def test_orders_stand_above_each_other_with_the_cycles_of_a_step():
    runs = [(form, page.FORMULAS[form], overlap(form, 400, 150, 500)) for form in (STAGED, ROLES)]
    scene = page.orders(runs, cycles=3000)
    assert scene.title == "Cycles per step: 650 staged, 550 roles"
    assert "roles a step: max(L + P, T) = 550 warps that multiply" in scene.text


def test_enough_blocks_make_all_orders_alike():
    busy = {form: overlap(form, 600, 100, 200, blocks=5, steps=24).busy for form in FORMS}
    assert max(busy.values()) - min(busy.values()) < 0.03
    assert overlap(AT_ONCE, 600, 100, 200).busy < 0.4 < min(busy.values())


@pytest.mark.parametrize("form", FORMS)
def test_each_block_multiplies_each_tile_and_the_sm_does_one_of_each_at_a_time(form):
    run = overlap(form, 500, 90, 210, blocks=3, steps=5)
    assert sum(s.phase == MULTIPLY for s in run.spans) == 15
    assert all(s.start < s.end for s in run.spans)
    for phase in ("store", MULTIPLY):
        spans = sorted((s.start, s.end) for s in run.spans if s.phase == phase)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert run.rows == (6 if form == ROLES else 3) and 0 < run.busy <= 1


def test_roles_never_store_into_a_buffer_that_is_still_read():
    run = overlap(ROLES, 10, 10, 500, steps=6)
    stores = [s.start for s in run.spans if s.phase == "store"]
    products = [s.end for s in run.spans if s.phase == MULTIPLY]
    assert all(stores[i] >= products[i - 2] for i in range(2, 6))


def test_what_can_t_run_is_refused():
    with pytest.raises(ValueError, match="no form"):
        overlap("later", 1, 1, 1)
    with pytest.raises(ValueError, match="positive"):
        overlap(STAGED, 0, 1, 1)


def test_a_step_is_a_round_s_share_of_the_cycles_and_a_warp_s_share_of_the_stalls():
    # Ten blocks on four SMs are three rounds; a warp issues 50 instructions in each of 8 steps.
    counters = {"cycles": 24_000, "instructions": 10 * 2 * 8 * 50, "stall_long_scoreboard": 4.0}
    assert recorded_step(counters, blocks=10, sms=4, warps=2, steps=8) == Step(1000, 200)


def test_the_times_of_a_pair_give_back_its_steps():
    times = times_of(Step(1200, 700), Step(1050, 600))
    assert (times.latency, times.store, times.multiply) == (700, 350, 150)
    for form, cycles in ((AT_ONCE, 1200), (STAGED, 1050), (ROLES, 1050)):
        assert overlap(form, times.latency, times.store, times.multiply).step == cycles


@pytest.mark.parametrize("staged", [1200, 400])
def test_a_pair_that_hides_nothing_or_more_than_the_wait_gives_no_times(staged):
    with pytest.raises(ValueError, match="don't say how long"):
        times_of(Step(1200, 700), Step(staged, 0))


def test_recorded_orders_say_what_is_recorded_of_them_and_what_is_modelled():
    version = Version("12_wmma_pipeline", fresh=True)
    pair = ("stores_first_alone", "products_first_alone")
    with display.collected() as drawn:
        page.recorded_orders(version, pair, {AT_ONCE: "stores", STAGED: "products"})
    [fig] = drawn
    first, second = (page.step_of(version, name, 4096).cycles for name in pair)
    assert f"a step: L + P + T = {first:,.0f}" in fig.text
    assert f"a step: max(L, T) + P = {second:,.0f}" in fig.text
    recorded, modelled = fig.evidence.split("modelled: ")
    assert recorded.startswith("recorded: ") and "L = " in recorded
    assert "P = " in modelled and "T = " in modelled
