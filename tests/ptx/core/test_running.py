"""Divergence, loops, barriers, memory: whole kernels, compiled and written by hand."""

import re

import numpy as np
import pytest

from lib import ptx
from lib.ptx import launch as launching
from tests.tables import cases

from ..conftest import each_schedule, entry, f32s, kinds, problem, run, s32s, u32s


def product(kernels, name, M, N, K, alpha=1.0, beta=0.0, **options):
    a, b, c = problem(M, N, K)
    if beta:
        c[:] = 1.5
    size, block = (128, (256,)) if name == "register_tile" else (32, (32, 32))
    before = c.copy()
    grid = (-(-N // size), -(-M // size))
    args = (M, N, K, alpha, a, b, beta, c)
    result = kernels.get_function(name)(grid, block, args, **options)
    exact = alpha * (a.astype(float) @ b.astype(float)) + (beta * before if beta else 0)
    return result, c, exact


@each_schedule
@pytest.mark.parametrize("name", ["naive", "shared_tile"])
def test_schedules_agree(kernels, name, schedule):
    first, c, exact = product(kernels, name, 40, 33, 20, 0.5, -2.0)
    second, other, _ = product(
        kernels, name, 40, 33, 20, 0.5, -2.0, schedule=schedule, seed=3, races=True)
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5)
    assert np.array_equal(c, other) and not second.hazards
    assert first.trace.counters() == second.trace.counters()
    assert first.trace.instructions == second.trace.instructions


@each_schedule
def test_loops_of_different_length(kernels, schedule):
    n = 150
    trips = np.random.default_rng(1).integers(0, 40, n).astype(np.int32)
    out = s32s(n)
    result = kernels.get_function("wander")((2,), (96,), (n, trips, out), schedule=schedule)
    for i, t in enumerate(trips.tolist()):
        total = 0
        for k in range(t):
            if k % 3 == 0:
                total += k if i % 2 else -1
            elif k > 5:
                total += 7
            if total > 100:
                break
        assert out[i] == total
    loads = [s for s in result.trace.sites if s.kind == "load" and s.space == "global"]
    assert loads and loads[0].lanes == n


def test_module_variables(kernels):
    kernels.get_global("counter")[:] = 0
    order, out = s32s(96), f32s(96)
    kernels.get_function("globals")((3,), (32,), (order, out))
    assert sorted(order.tolist()) == list(range(96))
    assert kernels.get_global("counter").view(np.int32)[0] == 96
    expected = np.tile(np.float32([1, 2, 4, 8]), 24) * np.sqrt(np.arange(96, dtype=np.float32))
    np.testing.assert_allclose(out, expected / 3, rtol=1e-6)
    with pytest.raises(ptx.Error, match="no global variable"):
        kernels.get_global("nothing")


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("name", ["naive", "shared_tile"])
def test_batches_agree_with_one_batch(kernels, name, races, monkeypatch):
    whole, c, _ = product(kernels, name, 70, 70, 33, watch=(7, 1))
    monkeypatch.setattr(launching, "LANES_PER_BATCH", 2048)
    parts, other, _ = product(kernels, name, 70, 70, 33, watch=(7, 1), races=races)
    assert np.array_equal(c, other) and not parts.hazards
    assert whole.trace.counters() == parts.trace.counters()
    assert whole.trace.sites == parts.trace.sites
    assert whole.trace.watched.keys() == parts.trace.watched.keys()


START = """.reg .b32 %t, %v, %s, %c, %w<4>; .reg .b64 %o, %q, %l, %g; .reg .pred %p, %u;
.shared .align 16 .b8 s[512]; .local .align 16 .b8 l[16];
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; ld.param.u64 %o, [out];
mad.wide.u32 %q, %t, 4, %o; mov.u32 %s, s; mad.lo.u32 %s, %t, 4, %s;
"""
EXCHANGE = """st.global.u32 [%q], %t;
BARRIER
xor.b32 %v, %t, 32; mad.wide.u32 %q, %v, 4, %o; ld.global.u32 %v, [%q];"""
NEIGHBOUR = "st.shared.u32 [%s], %t; BARRIER xor.b32 %s, %s, 4; ld.shared.u32 %v, [%s];"
# Statements; threads; the hazard's kind; what is in the array behind them.
KERNELS = {
    "a barrier of half the block": ("""setp.ge.u32 %p, %t, 64; @%p bra END; st.shared.u32 [%s], %t;
    bar.sync 1, 64; xor.b32 %v, %t, 63; shl.b32 %s, %v, 2; ld.shared.u32 %v, [%s];
    st.global.u32 [%q], %v; END:""", 128, "", [63 - i for i in range(64)] + [0] * 64),
    "one warp produces and goes on": ("""setp.lt.u32 %p, %t, 32; @!%p bra CONSUME;
    st.shared.u32 [%s], %t; bar.arrive 2, 64; bra END;
    CONSUME: bar.sync 2, 64; ld.shared.u32 %v, [%s+-128]; st.global.u32 [%q], %v; END:""",
                                      64, "", [0] * 32 + [*range(32)]),
    "exited threads count as arrived": (
        "setp.ge.u32 %p, %t, 32; @%p exit; bar.sync 0; st.global.u32 [%q], %t;",
        64, "exited before barrier", [*range(32)] + [0] * 32),
    "two barriers of one warp": ("""setp.ge.u32 %p, %t, 16; @%p bra B; bar.sync 0; bra END;
    B: bar.sync 0; END:""", 32, "barrier divergence", []),
    "a warp spins until another has set the flag": ("""setp.lt.u32 %p, %t, 32; @%p bra SET;
    SPIN: ld.volatile.global.u32 %v, [%o]; setp.eq.u32 %p, %v, 0; @%p bra SPIN; bra END;
    SET: mov.u32 %v, 1; st.volatile.global.u32 [%o], %v; END:""", 64, "", [1]),
    "a barrier orders global memory": (EXCHANGE.replace("BARRIER", "bar.sync 0;"), 64, "", []),
    "nothing does": (EXCHANGE.replace("BARRIER", ""), 64, "race", []),
    "lanes in turn": (NEIGHBOUR.replace("BARRIER", "bar.warp.sync 0xffffffff;"), 32, "", []),
    "lanes not in turn": (NEIGHBOUR.replace("BARRIER", ""), 32, "warning", []),
    "atomics": ("red.global.add.u32 [%o], 1;", 96, "", [96]),
    "neighbouring bytes": ("cvt.u64.u32 %q, %t; add.u64 %q, %o, %q; st.global.u8 [%q], %t;",
                           64, "", np.arange(64, dtype=np.uint8).view(np.uint32).tolist()),
    # As compilers make for shared memory: a register below 0 whose offset brings it back.
    "an address that starts below zero": ("""sub.u32 %s, %s, 64; st.shared.u32 [%s+64], %t;
    ld.shared.u32 %v, [%s+64]; st.global.u32 [%q], %v;""", 32, "", [*range(32)]),
    "votes": ("""setp.lt.u32 %p, %t, 3; vote.sync.ballot.b32 %v, %p, 0xffffffff;
    vote.sync.any.pred %u, %p, 0xffffffff; @%u add.u32 %v, %v, 1000;
    vote.sync.all.pred %u, %p, 0xffffffff; @%u add.u32 %v, %v, 5000; st.global.u32 [%q], %v;""",
              40, "", [1007] * 32 + [0] * 8),
    "generic, local and vectors": ("""mov.u64 %l, l; cvta.local.u64 %l, %l;
    st.u32 [%l], %t; st.u32 [%l+4], 5; st.u32 [%l+8], %c; st.u32 [%l+12], 7;
    ld.local.v4.u32 {%w0, %w1, %w2, %w3}, [l];
    mov.u64 %g, s; cvta.shared.u64 %g, %g; mad.wide.u32 %g, %t, 16, %g;
    st.v4.u32 [%g], {%w3, %w2, %w1, %w0}; ld.v2.u32 {%w0, %w1}, [%g+8];
    mad.wide.u32 %o, %t, 8, %o; st.global.v2.u32 [%o], {%w0, %w1};""",
                                   32, "", [n for t in range(32) for n in (5, t)]),
    "clocks count instructions": ("""mov.u64 %l, %clock64; mov.u32 %v, %clock; cvt.u32.u64 %w0, %l;
    sub.u32 %v, %v, %w0; mov.u32 %c, %clock_hi; st.global.v2.u32 [%o], {%v, %c};""", 1, "", [1, 0]),
}


@each_schedule
@pytest.mark.parametrize("name", KERNELS)
def test_small_kernels(name, schedule):
    body, block, kind, values = KERNELS[name]
    out = u32s(max(block, len(values)))
    launch = run(START + body, out, block=block, schedule=schedule, races=True)
    assert kinds(launch) == {kind} - {""}
    assert all("PTX line" in hazard.message for hazard in launch.hazards)
    assert out[: len(values)].tolist() == values


LOAD = "ld.global.u32 %v, [%o];"


@pytest.mark.parametrize("body, error, said", [
    ("add.u32 %t, %t, 1; mad.wide.u32 %o, %t, 4, %o;" + LOAD, ptx.OutOfBounds,
     r"(?s)(?=.*byte 128 of argument 0, which has 128).*'k', PTX line \d+ \(ld.global.*lane 31"),
    ("sub.u64 %o, %o, 4;" + LOAD, ptx.OutOfBounds, "4 bytes before argument 0"),
    ("mov.u64 %o, 0;" + LOAD, ptx.OutOfBounds, "outside"),
    ("mov.u64 %o, 0xfffffffffffffff0;" + LOAD, ptx.OutOfBounds, "0xf{8}"),
    ("mad.wide.u32 %o, %t, 2, %o;" + LOAD, ptx.Misaligned, "no multiple of 4 bytes.*lane 1"),
    ("st.shared.u32 [s+512], %t;", ptx.OutOfBounds, "shared"),
    ("setp.ge.u32 %p, %t, 16; @%p bra B; bar.sync 1, 64; bra END;\nB: bar.sync 2, 64; END:",
     ptx.Deadlock, r"Barrier 1 has .* of 64.*PTX line \d+.*Barrier 2 has "),
])
def test_what_stops_a_kernel(body, error, said):
    with pytest.raises(error, match=said):
        run(START + body, u32s(32), block=64 if "bar" in body else 32)


def test_a_read_only_array_is_not_written():
    frozen = u32s(4)
    frozen.flags.writeable = False
    with pytest.raises(ptx.OutOfBounds, match="argument 0 may not be written"):
        run(START + "st.global.u32 [%o], %t;", frozen)


# -- barriers -----------------------------------------------------------------------------------


# Warp 0 comes twice and warp 1 waits twice; between them warp 0 may wait for warp 1's answer.
TWICE = START + """
    setp.lt.u32 %p, %t, 32;
    @!%p bra WAIT;
    bar.arrive 2, 64;
    ANSWERED
    AGAIN 2, 64;
    bra END;
    WAIT:
    bar.sync 2, 64;
    ANSWER
    bar.sync 2, 64;
    END:
    """


@each_schedule
@pytest.mark.parametrize("again", ["bar.arrive", "bar.sync"])
def test_who_comes_again_after_the_phase_is_right(again, schedule):
    body = (TWICE.replace("AGAIN", again).replace("ANSWERED", "bar.sync 3, 64;")
            .replace("ANSWER", "bar.arrive 3, 64;"))
    assert not run(body, u32s(1), block=64, schedule=schedule).hazards


@pytest.mark.parametrize("again", ["bar.arrive", "bar.sync"])
def test_who_comes_twice_in_one_phase_is_told(again):
    """Hardware counts arrivals, so the barrier would open for warp 0's second one."""
    body = TWICE.replace("AGAIN", again).replace("ANSWERED", "").replace("ANSWER", "")
    with pytest.raises(ptx.Deadlock) as ended:  # of those that are counted once
        run(body, u32s(1), block=64, schedule="lowest")
    (found,) = ended.value.hazards
    assert found.kind == "barrier reached twice" and found.first.warp == found.second.warp == 0
    assert re.search(r"barrier 2 again .* come to it at kernel 'k', PTX line \d+", found.message)


# -- races --------------------------------------------------------------------------------------


def test_missing_barrier_is_found(kernels):
    result, _, _ = product(kernels, "racing_tile", 64, 64, 96, races=True)
    races = [h for h in result.hazards if h.kind == "race"]
    assert races
    hazard = races[0]
    assert hazard.first.opcode.startswith("ld.shared") and hazard.second.opcode == "st.shared.f32"
    assert hazard.first.warp != hazard.second.warp
    assert "kernels.cu" in hazard.first.cuda[0] and hazard.first.cuda[1] > 0
    assert "write after read" in hazard.message and "lane" in hazard.message


def test_missing_barrier_gives_another_result_under_another_schedule(kernels):
    _, c, exact = product(kernels, "racing_tile", 64, 64, 96)
    _, other, _ = product(kernels, "racing_tile", 64, 64, 96, schedule="random", seed=1)
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(c, other)


@pytest.mark.parametrize("lanes", [1 << 16, 32])
@pytest.mark.parametrize("body", ["st.global.u32 [%q], %c;", """
    setp.eq.u32 %p, %c, 0; @%p bra READ; st.global.u32 [%q], %t; bra END;
    READ: ld.global.u32 %v, [%q]; END:"""], ids=["two write", "one reads"])
def test_blocks_that_access_one_word_race(body, lanes, monkeypatch):
    monkeypatch.setattr(launching, "LANES_PER_BATCH", lanes)
    result = run(START + body, u32s(32), grid=2, races=True)
    assert kinds(result) == {"race"}
    assert result.hazards[0].first.block != result.hazards[0].second.block


def test_two_lanes_of_one_instruction():
    body = START + "shr.u32 %v, %t, 1; mad.wide.u32 %o, %v, 4, %o; st.global.u32 [%o], %t;"
    assert kinds(run(body, u32s(32), races=True)) == {"race"}
    same = body.replace("[%o], %t", "[%o], 7")
    launch = run(same, u32s(32), races=True)
    assert launch.clean and [each.kind for each in launch.remarks] == ["same value"]
    assert "where all lanes are meant to" in str(launch) and "order" not in str(launch)


def test_predicated_accesses_and_two_arrays_in_one_instruction():
    """Even lanes load from one array, odd ones from another; lanes past 20 do not load."""
    body = """
    .reg .b32 %t, %v, %w; .reg .b64 %a, %b, %o; .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %o, [o];
    and.b32 %w, %t, 1; setp.eq.u32 %p, %w, 1;
    selp.b64 %a, %b, %a, %p;
    mad.wide.u32 %a, %t, 4, %a; mad.wide.u32 %o, %t, 4, %o;
    mov.u32 %v, 99;
    setp.lt.u32 %q, %t, 20;
    @%q ld.global.u32 %v, [%a];
    st.global.u32 [%o], %v;
    """
    a, b = np.arange(32, dtype=np.uint32), np.arange(32, dtype=np.uint32) + 1000
    out = u32s(32)
    run(body, a, b, out, parameters=".param .u64 a, .param .u64 b, .param .u64 o")
    assert out.tolist() == [(i + 1000 if i % 2 else i) if i < 20 else 99 for i in range(32)]


# -- what a launch refuses ------------------------------------------------------------------------


@cases("""
grid         | block       | message
1            | 1025        | block .*1024
(1, 70000)   | 1           | grid .*y must be
0            | 1           | grid
1            | (32, 32, 2) | 2048 threads
1            | (1, 1, 65)  | z must be
(1, 1, 1, 1) | 1           | one to three
1.5          | 1           | whole
""")
def test_geometry(grid, block, message):
    with pytest.raises(ptx.Error, match=message):
        run("", np.zeros(1), grid=grid, block=block)


def test_names_and_unknown_instructions(kernels):
    with pytest.raises(ptx.Error, match="nearest is 'naive'"):
        kernels.get_function("naiv")
    module = ptx.Module(entry("foo.width.b32 %r, [out];"))
    with pytest.raises(ptx.UnsupportedInstruction, match=r"PTX line 6.*knows no 'foo'"):
        module.get_function("k")
    with pytest.raises(ptx.LaunchError, match="schedule"):
        run("", np.zeros(1), schedule="sideways")


@pytest.mark.parametrize("use,vain", [
    ("", True), ("add.u32 %w, %w, 1;", True),
    ("add.u32 %w, %w, 1; mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %w;", False),
    (".reg .pred %z; setp.eq.u32 %z, %w, 1; @%z bra OUT; OUT:", False),
])
def test_a_race_whose_value_nobody_uses_says_so(use, vain):
    body = START + f""".reg .b32 %w, %a, %b;
    mov.u32 %a, s; mad.lo.u32 %b, %t, 4, %a; st.shared.u32 [%b], %t;
    xor.b32 %b, %t, 32; mad.lo.u32 %b, %b, 4, %a; ld.shared.u32 %w, [%b]; {use}"""
    (hazard,) = run(body, u32s(64), block=64, races=True).hazards
    assert hazard.kind == "race" and ("whose value nobody uses" in hazard.message) == vain
