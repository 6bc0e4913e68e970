"""What a ring's barriers and groups count, read from runs of the book's kernels."""

import pytest

from lib.ptx.core.machine import WARP, WARPGROUP
from lib.show import phases as model
from lib.show.version import Version
from tests.tables import cases


@pytest.fixture(scope="module")
def events():
    def of(stem, variant=None):
        kernel = Version(stem).kernel
        return model.trace_of(kernel, kernel.variant(variant))

    return of


@cases("""
stem                   variant stages consumers nbytes
18_tma                 wide    4      2         49152
18_tma                 stages2 2      2         49152
19_warp_specialization wide    4      2         49152
20_persistent          wide    4      2         49152
22_few_tiles           unsplit 8      1         16384
""")
def test_a_tile_goes_through_both_barriers(events, stem, variant, stages, consumers, nbytes):
    found = events(stem, variant)
    steps = 2 * stages + 1
    for step in range(steps - 1):  # 22 keeps the last stage: nobody waits for it
        mine = [event for event in found if event.step == step and event.kind != "held"]
        assert [(e.kind, e.barrier) for e in mine[:6]] == [
            ("wait", "freed"), ("expect", "filled"), ("copy", "filled"), ("land", "filled"),
            ("wait", "filled"), ("arrive", "freed")]
        asked, expect, copy, land, there, given = mine[:6]
        turn = step // stages
        assert {event.stage for event in mine} == {step % stages}
        assert (asked.parity, there.parity) == (1 - turn % 2, turn % 2)
        assert expect.nbytes == copy.nbytes == land.nbytes == expect.pending == nbytes
        assert (expect.arrivals, land.pending, land.completes) == (0, 0, True)
        assert (land.phase, there.phase) == (turn, turn + 1)
        assert len(given.threads) == consumers and given.completes and not given.peers
    assert max(event.step for event in found if event.kind == "expect") == steps - 1


def test_a_consumer_waits_for_bytes_and_the_producer_for_a_stage(events):
    held = [event for event in events("19_warp_specialization") if event.kind == "held"]
    producer, consumers = held[0], held[1]
    assert (producer.barrier, producer.step, producer.parity) == ("freed", 4, 0)
    assert (consumers.barrier, consumers.step, consumers.pending) == ("filled", 0, 49152)
    assert len(producer.threads) == 1 and len(consumers.threads) == 256


def test_consumers_of_a_cluster_give_a_stage_back_to_all_its_blocks(events):
    given = next(e for e in events("21_clusters") if e.kind == "arrive")
    assert (given.threads, given.peers, given.completes) == ((0, 128), 2, True)


@pytest.mark.parametrize("stem, variant, stages", [
    ("16_cp_async", None, 4), ("17_wgmma", "wide", 4), ("17_wgmma", "stages2", 2),
])
def test_after_each_wait_the_next_tile_is_there(stem, variant, stages):
    kernel = Version(stem).kernel
    chosen = kernel.variant(variant)
    waits = [one for one in model.groups_of(kernel, chosen) if one.committed >= one.keep > 0
             or stages == 2]
    assert len(waits) >= 2 * stages + 1
    for number, one in enumerate(waits[: 2 * stages + 1]):
        assert one.keep == stages - 2
        assert one.committed == number + stages - 1  # one group a step, even of zeros
        assert one.complete == one.committed - one.keep == number + 1


def test_what_has_no_such_ring_is_refused():
    ring, groups = Version("18_tma").kernel, Version("16_cp_async").kernel
    with pytest.raises(ValueError, match="no cp.async.wait_group"):
        model.groups_of(ring, ring.variants[0])
    with pytest.raises(ValueError, match="expects bytes"):
        model.trace_of(groups, groups.variants[0])


def test_bytes_that_come_before_they_are_expected_are_below_zero():
    """A peer's multicast may land before this block's expect_tx: the phase goes on."""
    state = model._State
    raw = [
        model._Raw("land", 8, (), None, 512, state(0, 1, 0, 512), state(0, 1, -512, 0)),
        model._Raw("expect", 8, (0,), None, 512, state(0, 1, -512, 0), state(1, 1, 0, 0)),
    ]
    land, expect = model.named(raw)
    assert (land.pending, land.completes) == (-512, False)
    assert (expect.arrivals, expect.pending, expect.completes) == (0, 0, True)


def test_pages(shown):
    model.trace(Version("19_warp_specialization"), steps=(0,))
    model.groups(Version("16_cp_async"))
    trace, groups = shown
    assert "| 0, 0 | TMA | 49,152 B land | filled | 0, 0 | 0 → 1 |" in trace
    assert "producer: warp 8, 1 thread | `arrive.expect_tx` 49,152 B" in trace
    assert "| 2 | 5 | 2 | 0 to 2 | 2, in stage 2 | 12 |" in groups
    # Once round the ring and the end; what lies between follows the same pattern.
    assert "| … |" in groups and "0 to 5" not in groups
    # Nine tiles, 0 to 8: of what is waited for behind them nothing may be read.
    assert "| 8, in stage 0 |" in groups and "0 to 9 | none: behind the last" in groups


@pytest.mark.parametrize("schedule, limit", [("lowest", (1, 0)), ("highest", (0, 4))])
def test_18_lets_a_warpgroup_run_three_steps_ahead_and_the_other_one(schedule, limit, monkeypatch):
    """Steps given back more than the other's: in the fourth a warpgroup is three ahead."""
    kernel, emulate = Version("18_tma").kernel, model.emulate
    monkeypatch.setattr(model, "emulate", lambda *args, **options: emulate(
        *args, **options | {"schedule": schedule, "landing": "early"}))
    freed, ahead = [0, 0], [0, 0]
    for event in model.trace_of(kernel, kernel.variants[0]):
        for thread in event.threads if (event.kind, event.barrier) == ("arrive", "freed") else ():
            group = thread // (WARP * WARPGROUP)
            freed[group] += 1
            ahead[group] = max(ahead[group], freed[group] - freed[1 - group])
    assert freed == [9, 9] and tuple(ahead) == limit
