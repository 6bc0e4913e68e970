"""Clusters of sm_90: where blocks are in them, and each other's shared memory."""

import numpy as np
import pytest

from lib import ptx

from .conftest import each_landing, each_schedule, function_of, kinds, u32s


def test_cluster_geometry():
    """Each thread of a grid of (2, 4) blocks in clusters of (1, 2) writes where it is."""
    names = ("ctaid.x", "ctaid.y", "cluster_ctaid.y", "clusterid.y", "nclusterid.y",
             "cluster_nctaid.y", "cluster_ctarank", "cluster_nctarank")
    reads = "\n".join(
        f"mov.u32 %v, %{name}; st.global.u32 [%o+{4 * i}], %v;" for i, name in enumerate(names)
    )
    text = f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %v, %x, %y; .reg .b64 %o;
    mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y;
    mad.lo.u32 %x, %y, 2, %x;
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %x, 32, %o;
    {reads}
    ret;
}}
"""
    out = u32s((4, 2, 8))
    function = function_of(text)
    function((2, 4), 1, (out,), cluster=(1, 2))
    for y in range(4):
        for x in range(2):
            assert out[y, x].tolist() == [x, y, y % 2, y // 2, 2, 2, y % 2, 2]
    for cluster, message in (((1, 3), "no multiple"), ((2, 16), "most is"), ((0,), "most is")):
        with pytest.raises(ptx.LaunchError, match=message):
            function((2, 4), 1, (out,), cluster=cluster)


EXCHANGE = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqnctapercluster 2, 1, 1
{
    .shared .align 4 .b8 s[128];
    .reg .b32 %t, %a, %b, %r, %v; .reg .b64 %o, %g;
    mov.u32 %t, %tid.x; mov.u32 %r, %cluster_ctarank;
    shl.b32 %a, %t, 2; mov.u32 %v, s; add.u32 %a, %a, %v;
    mad.lo.u32 %v, %r, 100, %t;
    st.shared.u32 [%a], %v;
    FIRST
    xor.b32 %b, %r, 1;
    LOAD
    SECOND
    mov.u32 %r, %ctaid.x; mad.lo.u32 %r, %r, 32, %t;
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %r, 4, %o;
    st.global.u32 [%o], %v;
    ret;
}
"""
BARRIER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
NARROW = "mapa.shared::cluster.u32 %a, %a, %b; ld.shared::cluster.u32 %v, [%a];"
GENERIC = """cvt.u64.u32 %g, %a; cvta.shared.u64 %g, %g; mapa.u64 %g, %g, %b; ld.u32 %v, [%g];
    getctarank.u64 %a, %g; sub.u32 %a, %a, %b; add.u32 %v, %v, %a;"""


def exchange(load, first=BARRIER, second=BARRIER, **options):
    text = EXCHANGE.replace("FIRST", first).replace("SECOND", second).replace("LOAD", load)
    out = u32s((4, 32))
    result = function_of(text)(4, 32, (out,), **options)
    return result, out


@each_schedule
@pytest.mark.parametrize("load", [NARROW, GENERIC])
def test_distributed_shared_memory(load, schedule):
    result, out = exchange(load, schedule=schedule, races=True)
    for block in range(4):
        assert out[block].tolist() == [100 * (block % 2 ^ 1) + t for t in range(32)]
    assert not result.hazards


@pytest.mark.parametrize("peers", [2, 3, 4, 5, 6, 7, 8])
def test_a_batch_holds_whole_clusters(peers, monkeypatch):
    """Each block reads its right neighbour's shared memory; a batch has room for eight blocks."""
    monkeypatch.setattr("lib.ptx.launch.LANES_PER_BATCH", 8 * 32)
    text = EXCHANGE.replace("reqnctapercluster 2", f"reqnctapercluster {peers}")
    text = text.replace("xor.b32 %b, %r, 1;", f"add.u32 %b, %r, 1; rem.u32 %b, %b, {peers};")
    for label, code in (("FIRST", BARRIER), ("SECOND", BARRIER), ("LOAD", NARROW)):
        text = text.replace(label, code)
    out = u32s((4 * peers, 32))
    result = function_of(text)(4 * peers, 32, (out,), races=True)
    for block in range(4 * peers):
        assert out[block].tolist() == [100 * ((block + 1) % peers) + t for t in range(32)]
    assert not result.hazards


@pytest.mark.parametrize("load, own", [(NARROW, 0), (NARROW.replace("%b", "%r"), 4)])
def test_a_load_from_a_peer_is_no_shared_load(load, own):
    """Seen on an H100: of 21's loads of partial sums only those of a block's own are counted."""
    result, _ = exchange(load)
    sites = {site.space: site.requests for site in result.trace.sites if site.kind == "load"}
    assert sites == ({"shared": 4} if own else {"shared::cluster": 4})
    assert result.trace.counters()["shared_load_instructions"] == own


def test_distributed_shared_memory_needs_its_barriers():
    result, _ = exchange(NARROW, second="", races=True)
    assert kinds(result) == {"block exited"}
    result, _ = exchange(NARROW, first="bar.sync 0;", races=True)
    assert "race" in kinds(result)
    with pytest.raises(ptx.Error, match="without barrier.cluster.arrive"):
        exchange(NARROW, first="barrier.cluster.wait;")
    with pytest.raises(ptx.Error, match="arrives again"):
        exchange(NARROW, first="barrier.cluster.arrive; barrier.cluster.arrive;")


STORES = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqnctapercluster 2, 1, 1
{
    .shared .align 16 .b8 s[512]; .shared .align 8 .b8 bar[8]; .shared .b32 sum;
    .reg .b32 %t, %a, %b, %c, %r, %v, %w; .reg .b64 %o; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %r, %cluster_ctarank; xor.b32 %r, %r, 1;
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    mov.u32 %b, bar; mbarrier.init.shared::cta.b64 [%b], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], BYTES;
    st.shared.u32 [sum], 5;
    fence.mbarrier_init.release.cluster;
READY:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mad.lo.u32 %v, %r, 100, %t;
    mov.u32 %a, s; mad.lo.u32 %a, %t, 8, %a; mapa.shared::cluster.u32 %a, %a, %r;
    mov.u32 %b, bar; mapa.shared::cluster.u32 %b, %b, %r;
    mov.u32 %c, sum; mapa.shared::cluster.u32 %c, %c, %r;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%a], {%v, %t}, [%b];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%c], %t, [%b];
TRY:
    mov.u32 %b, bar; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%b], 0;
    @!%p bra TRY;
    mov.u32 %a, s; mad.lo.u32 %a, %t, 8, %a; ld.shared.v2.u32 {%v, %w}, [%a];
    ld.shared.u32 %c, [sum];
    add.u32 %w, %w, %c;
    mov.u32 %r, %ctaid.x; mad.lo.u32 %r, %r, 64, %t;
    ld.param.u64 %o, [out]; mad.wide.u32 %o, %r, 8, %o; st.global.v2.u32 [%o], {%v, %w};
    ret;
}
"""


@each_landing
@each_schedule
def test_asynchronous_stores_to_a_peer(schedule, landing):
    out = u32s((4, 64, 2))
    options = {"schedule": schedule, "landing": landing, "races": True}
    function = function_of(STORES.replace("BYTES", "768"))
    assert not function(4, 64, (out,), **options).hazards
    for block in range(4):
        lanes = np.arange(64)
        assert np.array_equal(out[block, :, 0], 100 * (block % 2) + lanes)
        assert np.array_equal(out[block, :, 1], lanes + 5 + lanes.sum())
    short = function_of(STORES.replace("BYTES", "764"))
    assert "mbarrier" in {hazard.kind for hazard in short(4, 64, (out,), **options).hazards}
    with pytest.raises(ptx.Deadlock, match="tx-count 4"):
        function_of(STORES.replace("BYTES", "772"))(4, 64, (out,), **options)
    # The bytes count in the cluster's scope, which a wait of the block's own doesn't see.
    narrow = STORES.replace("BYTES", "768").replace(".acquire.cluster", "")
    found = function_of(narrow)(4, 64, (out,), **options).hazards
    assert {hazard.kind for hazard in found} == {"race"}
    own = narrow.replace("xor.b32 %r, %r, 1;", "")
    assert function_of(own)(4, 64, (out,), **options).clean
    # Who does not wait reads what is on its way.
    start, end = STORES.index("TRY:"), STORES.index("bra TRY;") + len("bra TRY;")
    hasty = (STORES[:start] + STORES[end:]).replace("BYTES", "768")
    try:
        found = function_of(hasty)(4, 64, (out,), **options).hazards
    except ptx.UninitialisedRead:
        return
    assert {"race"} <= {hazard.kind for hazard in found}
