"""The account of issue slots: nothing is lost, and it agrees with the clock."""

import pytest

from lib.gpus import GPUS
from lib.kernels.catalogue import CATALOGUE
from lib.records import store as records
from lib.records.schema import KernelRecord
from lib.show.issue_slots import SLOTS_PER_SM, account_of

PROFILED = {
    "instructions": 600, "ffma_thread_instructions": 32 * 300, "cycles": 100,
    "issue_active_percent": 80.0, "pipe_lsu": 120, "pipe_alu": 90, "pipe_uniform": 10,
    "pipe_fma": 340, "pipe_tensor": 0, "stall_selected": 1.0, "stall_not_selected": 2.0,
    "stall_barrier": 1.0, "stall_long_scoreboard": 3.0, "stall_gmma": 0.0,
}


def test_the_account_splits_what_was_issued_by_kind_and_what_was_empty_by_stall():
    found = account_of(PROFILED, sms=2)
    # Of 800 slots 300 hold an FMA, 120 a load or store, 90 + 10 + (340 - 300) integers.
    assert found.issued == pytest.approx(
        {"fma": 300 / 800, "tensor": 0, "memory": 120 / 800, "integer": 140 / 800,
         "control": 40 / 800})
    # 750 slots belong to SMs that had a warp: 150 empty, three quarters by the longer stall.
    assert list(found.empty) == ["long_scoreboard", "barrier"]
    assert found.empty == pytest.approx({"long_scoreboard": 0.75 * 150 / 800,
                                         "barrier": 0.25 * 150 / 800})
    assert found.idle == pytest.approx(50 / 800)
    assert found.share("issued") + found.share("empty") + found.share("idle") == pytest.approx(1)
    assert found.share("other") == pytest.approx(300 / 800)
    with pytest.raises(ValueError, match="no part 'tex' of the issue slots; there are: fma"):
        found.share("tex")


@pytest.mark.parametrize("stem", CATALOGUE)
def test_recorded_accounts_leave_no_slot_out(stem):
    record = records.load(KernelRecord, "H100", stem)
    if record is None:
        pytest.skip("not recorded yet")
    for name, stored in record.variants.items():
        for row in stored.counters:
            if row.M == row.N == row.K == 4096:
                found = account_of(row.metrics, GPUS["H100"].sms)
                parts = (*found.issued.values(), *found.empty.values(), found.idle)
                assert min(parts) >= 0 and sum(parts) == pytest.approx(1, abs=0.02), name


def test_a_rounded_percentage_makes_no_negative_share():
    found = account_of({**PROFILED, "instructions": 800, "issue_active_percent": 99.99}, sms=2)
    assert found.idle == 0 and set(found.empty.values()) == {0}


def test_counters_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no instruction was issued"):
        account_of({**PROFILED, "instructions": 0, "issue_active_percent": 0.0}, sms=1)


@pytest.mark.parametrize("name", [v.name for v in CATALOGUE["09_fp32_limit"].variants])
def test_multiply_adds_slots_are_the_share_of_the_peak_that_was_timed(name):
    """Two measurements that know nothing of each other: ncu's counters, and the clock."""
    stored = records.load(KernelRecord, "H100", "09_fp32_limit").variants[name]
    row = next(r for r in stored.bench if r.M == r.N == r.K == 4096)
    metrics = next(r.metrics for r in stored.counters if r.M == 4096)
    share = row.tflops * 1e12 / GPUS["H100"].fp32_flops
    found = account_of(metrics, GPUS["H100"].sms)
    assert found.issued["fma"] == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize("stem", ["10_wmma", "11_wmma_shared", "12_wmma_pipeline"])
def test_recorded_stalls_are_cycles_per_instruction_issued(stem):
    """All states of a warp add up to its residence: cycles of all warps over instructions."""
    for stored in records.load(KernelRecord, "H100", stem).variants.values():
        metrics = next(r.metrics for r in stored.counters if r.M == 2048)
        warps = metrics["warps_active_percent"] / 100 * GPUS["H100"].warps_per_sm / SLOTS_PER_SM
        per_instruction = warps / (metrics["issue_active_percent"] / 100)
        states = sum(value for name, value in metrics.items() if name.startswith("stall_"))
        # Of several passes of one launch, which may differ by some per cent.
        assert 0.8 < states / per_instruction < 1.04
