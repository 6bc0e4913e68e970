"""Blocks that wait for each other: standard patterns are right, what they lack is found."""

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core import scheduler

from ..conftest import HERE, compile_kernels, each_schedule, f32s, function_of, run, s32s, u32s


def launch(name, grid, block, args, macros=(), arch="compute_75", **options):
    text = compile_kernels(arch, str(HERE / "blocks.cu"), tuple(f"-D{m}" for m in macros))
    return function_of(text, name)(grid, block, args, **options)


def last_block(macros=(), blocks=6, threads=64, **options):
    x = np.arange(1000, dtype=np.float32)
    parts, total = f32s(blocks * threads), f32s(1)
    count = u32s(1)
    done = launch("last_block", blocks, threads, (x, parts, count, total, 1000), macros, **options)
    return done, total[0] == x.sum()


def semaphore(macros=(), blocks=5, threads=64, **options):
    c, turn = f32s(threads), s32s(1)
    done = launch("semaphore", blocks, threads, (c, turn), macros, **options)
    return done, (c == 2**blocks - 1).all()


def grid_barrier(macros=(), blocks=4, threads=64, **options):
    x = np.arange(blocks * threads, dtype=np.float32)
    y, count, exact = np.zeros_like(x), u32s(1), np.roll(x, -2 * threads) + 2
    done = launch("grid_barrier", blocks, threads, (x, y, count), macros, **options)
    return done, np.array_equal(x, exact)


def fix_up(macros=(), blocks=8, threads=64, **options):
    x = np.arange(blocks * threads, dtype=np.float32)
    parts, c = f32s((2, x.size // 2))
    ready = s32s(blocks // 2)
    done = launch("fix_up", blocks, threads, (x, parts, ready, c), macros, **options)
    return done, np.array_equal(c.reshape(-1, threads), x.reshape(-1, 2, threads).sum(axis=1))


PATTERNS = (last_block, semaphore, grid_barrier, fix_up)


@pytest.mark.parametrize("arch", ["compute_75", "compute_90a"])
@each_schedule
@pytest.mark.parametrize("pattern", PATTERNS)
def test_standard_patterns_are_right(pattern, schedule, arch):
    done, right = pattern(schedule=schedule, races=True, arch=arch)
    assert right and not done.hazards, done.hazards[:2]


# What is left out, and not too weak, `test_mutants` finds.
@pytest.mark.parametrize("pattern, macro", [
    (last_block, "WEAK_FENCE"), (last_block, "SKIP_SECOND_FENCE"), (semaphore, "WEAK_ACQUIRE"),
    (semaphore, "WEAK_RELEASE"), (grid_barrier, "WEAK_FENCE"), (fix_up, "SKIP_BARRIER"),
])
@each_schedule
def test_what_they_lack_is_found(pattern, macro, schedule):
    done, _ = pattern([macro], schedule=schedule, races=True)
    races = [h for h in done.hazards if h.kind == "race"]
    assert races, done.hazards
    for hazard in races:
        assert hazard.first.line != hazard.second.line or hazard.first.block != hazard.second.block
        assert hazard.first.cuda[0].endswith("blocks.cu") and hazard.second.cuda[1] > 0


def test_batches_carry_flags_on(monkeypatch):
    """The last block learns of blocks that ran in batches before its own."""
    from lib.ptx import launch as launching

    monkeypatch.setattr(launching, "LANES_PER_BATCH", 128)
    done, right = last_block(races=True)
    assert right and not done.hazards
    done, _ = last_block(["SKIP_FENCE"], races=True)
    assert any(h.kind == "race" for h in done.hazards)


def test_sums_by_atomics_are_no_race():
    x, c = np.ones((7, 64), np.float32), f32s(64)
    done = launch("atomics", 7, 64, (x, c), races=True)
    assert (c == 7).all() and not done.hazards


@pytest.fixture
def impatient(monkeypatch):
    """Fewer polls than usual are enough to see that nobody sets a flag."""
    monkeypatch.setattr(scheduler, "POLLS_END", 4 * scheduler.POLLS_STIR)


@each_schedule
def test_a_flag_that_nobody_sets(impatient, schedule):
    flag, out = s32s(2)[:, None]
    with pytest.raises(ptx.Deadlock) as error:
        launch("waits_for_nobody", 3, 64, (flag, out), schedule=schedule)
    said = str(error.value)
    assert "kernel 'waits_for_nobody'" in said and "(ld.volatile.global.u32)" in said
    assert "CUDA blocks.cu:" in said and "block (" in said
    flag[0] = 1
    launch("waits_for_nobody", 3, 64, (flag, out), schedule=schedule)
    assert out[0] == 1


@each_schedule
def test_a_flag_that_nobody_sets_while_others_wait_at_a_barrier(impatient, schedule):
    with pytest.raises(ptx.Deadlock, match="flag that nobody sets.*Barrier 0 has 32 of 64"):
        launch("spins_while_others_wait", 1, 64, (s32s(1),), schedule=schedule)


@each_schedule
def test_an_endless_loop_is_stopped(schedule):
    out = s32s(1)
    with pytest.raises(ptx.Endless) as error:
        launch("never_ends", 1, 32, (out, 2), schedule=schedule, turns=1000)
    said = str(error.value)
    assert "kernel 'never_ends'" in said and "turns=8000" in said and "PTX line" in said
    launch("never_ends", 1, 32, (out, -99), schedule=schedule, turns=1000)
    assert out[0] == -1
    launch("never_ends", 1, 32, (out, -99), schedule=schedule, turns=None)


@each_schedule
@pytest.mark.parametrize("barrier", ["bar.red", "barrier.cta.red"])
@pytest.mark.parametrize("yes", [0, 5, 96])
def test_votes_at_a_barrier(yes, barrier, schedule):
    body = f"""
    .reg .b32 %t, %n, %v; .reg .pred %p, %a, %o; .reg .b64 %d;
    mov.u32 %t, %tid.x; ld.param.u64 %d, [out]; mad.wide.u32 %d, %t, 4, %d;
    setp.lt.u32 %p, %t, {yes};
    {barrier}.popc.u32 %n, 0, %p; {barrier}.and.pred %a, 0, 96, %p; {barrier}.or.pred %o, 1, !%p;
    @%a add.u32 %n, %n, 1000; @%o add.u32 %n, %n, 2000;
    st.global.u32 [%d], %n;"""
    out = u32s(96)
    run(body, out, block=96, schedule=schedule)
    assert (out == yes + 1000 * (yes == 96) + 2000 * (yes < 96)).all()
