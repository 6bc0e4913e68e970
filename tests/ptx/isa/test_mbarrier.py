"""mbarriers: the state machine against a model, waits and parking, and misuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx
from tests.tables import cases

from ..conftest import each_landing, each_schedule, entry, function_of, kinds, u32s

HEAD = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .shared .align 8 .b8 bar[16];
    .reg .b32 %t, %b, %v, %n, %x; .reg .b64 %o, %s, %first; .reg .pred %p, %q;
    mov.u32 %t, %tid.x; mov.u32 %b, bar;
    ld.param.u64 %o, [out];
"""


def run(body: str, block: int = 1, size: int = 64, **options):
    """Run statements; returns the launch and the output."""
    out = np.full(size, 99, np.uint32)
    function = function_of(HEAD + body + "\nret;\n}\n")
    return function(1, block, (out,), **options), out


class Model:
    """A barrier as PTX describes it; `apply` returns False where an operation is not allowed."""

    def __init__(self, count):
        self.count, self.pending, self.tx, self.phase = count, count, 0, 0

    def apply(self, name, n):
        if name in ("arrive", "drop", "arrive_expect"):
            arrivals = 1 if name == "arrive_expect" else n
            if arrivals > self.pending or (name == "drop" and n >= self.count):
                return False
            if name == "arrive_expect":
                self.tx += n
            self.pending -= arrivals
            self.count -= n if name == "drop" else 0
        elif name == "expect":
            self.tx += n
        elif name == "complete":
            if self.pending == 0 and self.tx < n:
                return False
            self.tx -= n
        if self.pending == 0 and self.tx < 0:
            self.tx += n if name == "complete" else 0
            return False
        if self.pending == 0 and self.tx == 0:
            self.phase, self.pending = self.phase + 1, self.count
        return True


TEXT = {
    "arrive": "mbarrier.arrive.shared::cta.b64 %s, [%b], {n};",
    "drop": "mbarrier.arrive_drop.release.cta.shared.b64 %s, [%b], {n};",
    "arrive_expect": "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %s, [%b], {n};",
    "expect": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], {n};",
    "complete": "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], {n};",
}
PROBE = """
mbarrier.test_wait.parity.shared::cta.b64 %p, [%b], {parity};
selp.b32 %v, 1, 0, %p; st.global.u32 [%o+{at}], %v;
"""


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(sorted(TEXT)), st.integers(1, 3)), max_size=25),
)
def test_model(count, operations):
    model = Model(count)
    body, answers, at = f"mbarrier.init.shared::cta.b64 [%b], {count};\n", {}, 0
    for name, n in operations:
        before = Model(0)
        before.__dict__.update(model.__dict__)
        if not model.apply(name, n):
            model.__dict__.update(before.__dict__)
            continue
        body += TEXT[name].format(n=n) + "\n"
        if name in ("arrive", "drop", "arrive_expect"):
            body += f"mbarrier.pending_count.b64 %v, %s; st.global.u32 [%o+{at}], %v;\n"
            answers[at] = before.pending
            at += 4
        for parity in (0, 1):
            body += PROBE.format(parity=parity, at=at)
            answers[at] = int(model.phase & 1 != parity)
            at += 4
    _, out = run(body, size=100)
    assert {k: int(out[k // 4]) for k in answers} == answers


def test_states():
    """A state stands for its phase: incomplete, complete, and then too old."""
    body = """
    cvt.u64.u32 %s, %b; cvta.shared.u64 %s, %s;
    mbarrier.init.b64 [%s], 1;
    mbarrier.arrive.noComplete.b64 %first, [%s], 1;
    """
    with pytest.raises(ptx.Error, match="noComplete"):
        run(body)
    body = """
    mbarrier.init.shared.b64 [%b], 2;
    mbarrier.arrive.noComplete.shared.b64 %first, [%b], 1;
    mbarrier.test_wait.shared.b64 %p, [%b], %first;
    selp.b32 %v, 1, 0, %p; st.global.u32 [%o], %v;
    mbarrier.arrive.shared.b64 %s, [%b];
    mbarrier.test_wait.acquire.cta.shared.b64 %p, [%b], %first;
    selp.b32 %v, 1, 0, %p; st.global.u32 [%o+4], %v;
    mbarrier.try_wait.shared.b64 %p, [%b], %s, 100;
    selp.b32 %v, 1, 0, %p; st.global.u32 [%o+8], %v;
    """
    _, out = run(body)
    assert out[:3].tolist() == [0, 1, 1]
    again = "mbarrier.arrive.shared.b64 %s, [%b], 2;"
    with pytest.raises(ptx.Error, match="phase 0, neither the current nor the one before"):
        run(body + again + "mbarrier.test_wait.shared.b64 %p, [%b], %first;")


RING = """
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    mbarrier.init.shared.b64 [%b], 32;
    mbarrier.init.shared.b64 [%b+8], 32;
READY:
    bar.sync 0;
    .shared .align 4 .b8 box[128];
    mov.u32 %x, box;
    and.b32 %v, %t, 31;
    mad.lo.u32 %x, %v, 4, %x;
    mov.u32 %n, 0;
    setp.ge.u32 %p, %t, 32;
    @%p bra CONSUMER;
PRODUCER:
    and.b32 %v, %n, 1; xor.b32 %v, %v, 1;
    mbarrier.WAIT.parity.shared.b64 %p, [%b+8], %v;
    @!%p bra PRODUCER;
    mad.lo.u32 %v, %n, 100, %t;
    st.shared.u32 [%x], %v;
    mbarrier.arrive.shared.b64 _, [%b];
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 5;
    @%p bra PRODUCER;
    ret;
CONSUMER:
    and.b32 %v, %n, 1;
    mbarrier.WAIT.parity.shared.b64 %p, [%b], %v;
    @!%p bra CONSUMER;
    xor.b32 %v, %x, 4;
    ld.shared.u32 %v, [%v];
    mbarrier.arrive.shared.b64 _, [%b+8];
    mad.wide.u32 %s, %t, 4, %o;
    st.global.u32 [%s], %v;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 5;
    @%p bra CONSUMER;
"""


@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
@each_schedule
def test_producer_and_consumer(schedule, wait):
    body = RING.replace("WAIT", wait)
    result, out = run(body, 64, schedule=schedule, races=True)
    assert out[32:].tolist() == [400 + (t ^ 1) for t in range(32)]
    assert not result.hazards


def test_broken_rings():
    body = RING.replace("WAIT", "try_wait")
    relaxed = body.replace("mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared")
    result, _ = run(relaxed, 64, races=True)
    assert kinds(result) == {"race", "mbarrier"}
    inverted = body.replace("and.b32 %v, %n, 1; xor.b32 %v, %v, 1;", "and.b32 %v, %n, 1;")
    with pytest.raises(ptx.Deadlock, match=r"mbarrier at 0x0 .* 0 of 32 arrivals.*try_wait"):
        run(inverted, 64)
    unordered = body.replace("bar.sync 0;", "")
    result, _ = run(unordered, 64, races=True)
    assert any("initialisation" in h.message for h in result.hazards)


def test_test_wait_alone_is_a_deadlock_in_the_end():
    body = """
    mbarrier.init.shared.b64 [%b], 1;
LOOP:
    mbarrier.test_wait.parity.shared.b64 %p, [%b], 0;
    @!%p bra LOOP;
    """
    with pytest.raises(ptx.Deadlock, match="test_wait"):
        run(body)


@cases("""
body | message
mbarrier.arrive.shared.b64 _, [%b]; | no mbarrier was initialised
mbarrier.init.shared.b64 [%b], 0; | count of 0
mbarrier.init.shared.b64 [%b+4], 1; | no multiple of 8
mbarrier.init.shared.b64 [%b+16], 1; | outside
ONE mbarrier.arrive.shared.b64 _, [%b], 2; | needs only 1 more
ONE mbarrier.inval.shared.b64 [%b]; mbarrier.arrive.shared.b64 _, [%b]; | no mbarrier was
ONE mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1048576; | tx-count
""")
def test_misuse(body, message):
    with pytest.raises(ptx.Error, match=message) as caught:
        run(body.replace("ONE", "mbarrier.init.shared.b64 [%b], 1;"))
    assert "PTX line" in str(caught.value)


def test_bytes_that_nobody_expected():
    body = """
    mbarrier.init.shared.b64 [%b], 1;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 16;
    """
    result, _ = run(body)
    assert [h.kind for h in result.hazards] == ["mbarrier"]
    assert "16 bytes came that nobody expected" in result.hazards[0].message
    waits = "W: mbarrier.try_wait.parity.shared.b64 %p, [%b], 0; @!%p bra W;"
    with pytest.raises(ptx.Deadlock, match=r"tx-count -16 \(bytes came that nobody expected\)"):
        run(body.replace("[%b], 1;", "[%b], 2;") + waits)


@each_landing
@each_schedule
def test_a_warp_s_operation_waits_for_the_lane_that_waits_for_a_copy(landing, schedule):
    """CUTLASS's producer: one lane waits, and the others stand at the next elect.sync before it."""
    body = """
    .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
    .reg .b32 %t, %e, %v; .reg .b64 %o, %x; .reg .pred %p, %q;
    ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0; mov.u32 %v, 0; @%p bra JOIN;
    mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%x], 128, [bar];
    W: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra W;
    ld.shared.u32 %v, [tile + 4];
    JOIN: elect.sync %e|%q, 0xffffffff;
    shfl.sync.idx.b32 %v, %v, 0, 31, 0xffffffff;
    mad.wide.u32 %o, %t, 4, %o; add.u32 %v, %v, %e; st.global.u32 [%o], %v;
    """
    x, out = np.arange(32, dtype=np.uint32) + 7, u32s(32)
    text = entry(body, ".param .u64 out, .param .u64 x").replace("sm_80", "sm_90")
    function_of(text)(1, 32, (out, x), landing=landing, schedule=schedule)
    np.testing.assert_array_equal(out, 8)
