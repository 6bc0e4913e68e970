"""What the asynchronous proxy reads and writes: fences before it, waits behind it, arrays."""

import pytest

from lib import ptx

from ..conftest import each_landing, f32s, function_of, kinds, u32s

# 128 threads write 2048 bytes of shared memory, 16 each, and something asynchronous reads them.
# .loc makes the writer CUDA line 10 and the reader CUDA line 20.
TEXT = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out)
{
    .shared .align 1024 .b8 s[2048];
    .reg .b32 %t, %a, %v<4>; .reg .b64 %i, %o, %m, %d; .reg .f32 %f<4>; .reg .pred %p;
    .file 1 "proxies.cu"
    mov.u32 %t, %tid.x; mov.u32 %a, s; shl.b32 %v0, %t, 4; add.u32 %a, %a, %v0;
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.b64 %m, map; cvta.param.u64 %m, %m;
    mad.wide.u32 %i, %t, 16, %i;
    mov.u32 %v0, 0; mov.u32 %v1, 1; mov.u32 %v2, 2; mov.u32 %v3, 3;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    .loc 1 10 0
    WRITE
    FENCE
    BARRIER
    mov.u32 %a, s; shr.u32 %v0, %a, 4; cvt.u64.u32 %d, %v0;
    or.b64 %d, %d, 0x800400000; // leading 64 bytes, stride 128, no swizzle
    setp.ne.u32 %p, %t, 0;
    .loc 1 20 0
    READ
    ret;
}
"""
WRITES = {
    "st.shared": "st.shared.v4.b32 [%a], {%v0, %v1, %v2, %v3};",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%v0, %v1, %v2, %v3};",
    "cp.async": """cp.async.cg.shared.global [%a], [%i], 16;
        cp.async.commit_group; cp.async.wait_group 0;""",
}
READS = {
    "wgmma": """wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 1, 1, 1, 0,
        0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;""",
    "cp.async.bulk.tensor": """@%p bra DONE;
        cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%m, {0}], [%a];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        DONE:""",
    "cp.async.bulk": """@%p bra DONE;
        cp.async.bulk.global.shared::cta.bulk_group [%o], [%a], 2048;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        DONE:""",
}
FENCE = "fence.proxy.async.shared::cta;"


def hazards(write: str, read: str, fence: str = FENCE, barrier: str = "bar.sync 0;", **options):
    text = TEXT.replace("WRITE", write).replace("READ", read)
    text = text.replace("FENCE", fence).replace("BARRIER", barrier)
    box, given, out = (f32s(n) for n in (512, 512, 512))
    args = (ptx.tensor_map(box, (256,)), given, out)
    if "tensor" in read:  # two boxes of 256 floats
        half = "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%m, {256}], [%a+1024];"
        text = text.replace("cp.async.bulk.commit_group;", half + "cp.async.bulk.commit_group;")
    return function_of(text)(1, 128, args, races=True, **options).hazards


@each_landing
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_what_ordinary_instructions_wrote_needs_a_proxy_fence(write, read, landing):
    assert not hazards(WRITES[write], READS[read], landing=landing)
    found = hazards(WRITES[write], READS[read], fence="", landing=landing)
    assert found and {h.kind for h in found} == {"missing proxy fence"}
    for hazard in found:
        assert hazard.first.opcode.startswith(write) and hazard.second.opcode.startswith(read)
        assert hazard.first.cuda == ("proxies.cu", 10) and hazard.second.cuda == ("proxies.cu", 20)
        assert f"PTX line {hazard.first.line} " in hazard.message
        assert f"PTX line {hazard.second.line} " in hazard.message
        assert "CUDA proxies.cu:10" in hazard.message and "CUDA proxies.cu:20" in hazard.message


@pytest.mark.parametrize("read", READS)
def test_a_fence_of_another_proxy_or_before_the_write_is_no_help(read):
    assert hazards(WRITES["st.shared"], READS[read], fence="fence.acq_rel.gpu;")
    assert hazards(FENCE + WRITES["st.shared"], READS[read], fence="")


@pytest.mark.parametrize("read", READS)
def test_a_fence_is_one_for_all_that_its_warp_knows_of(read):
    """Behind the barrier, the reader's own fence is enough for what the other warps wrote."""
    assert not hazards(WRITES["st.shared"], READS[read], fence="", barrier=f"bar.sync 0; {FENCE}")


@pytest.mark.parametrize("read", READS)
def test_the_fence_alone_does_not_order_warps(read):
    found = hazards(WRITES["st.shared"], READS[read], barrier="")
    assert any(h.kind == "race" and h.second.opcode.startswith(read) for h in found)


@pytest.mark.parametrize("wait", ["", "cp.async.commit_group;", "cp.async.wait_group 0;",
                                  "cp.async.commit_group; cp.async.wait_group 1;"])
@pytest.mark.parametrize("read", READS)
def test_a_copy_that_nobody_waited_for(read, wait):
    """Not even the warp that issued a cp.async may let wgmma or a bulk copy read it too early."""
    copy = f"cp.async.cg.shared.global [%a], [%i], 16; {wait}"
    found = hazards(copy, READS[read])
    own = [h for h in found if h.kind == "race" and h.first.warp == h.second.warp == 0]
    assert own and own[0].first.opcode == "cp.async.cg.shared.global"
    assert own[0].second.opcode.startswith(read)
    with pytest.raises(ptx.UninitialisedRead):
        hazards(copy, READS[read], landing="late")


# -- global memory ------------------------------------------------------------------------------

STORE = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 data, .param .u64 out)
{
    .shared .align 128 .b8 s[1024];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %t, %a, %b, %v, %c; .reg .b64 %m, %o, %d; .reg .pred %p, %q;
    mov.u32 %t, %tid.x; mov.u32 %a, s; mov.u32 %b, bar; mov.u32 %c, %ctaid.x;
    ld.param.u64 %d, [data]; ld.param.u64 %o, [out]; mov.b64 %m, map; cvta.param.u64 %m, %m;
    setp.ne.u32 %p, %t, 0;
    mad.lo.u32 %v, %t, 16, %a;
    st.shared.v4.b32 [%v], {%t, %t, %t, %t};
    fence.proxy.async;
    bar.sync 0;
    mad.wide.u32 %d, %t, 4, %d; mad.wide.u32 %o, %t, 4, %o;
    BODY
    ret;
}
"""
COPY = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {AT, 0}], [%a];"
AFTER = "bar.sync 0; ld.global.u32 %v, [%d]; st.global.u32 [%o], %v;"


def stored(body: str, grid=1, **options):
    """Run statements behind 1024 bytes of shared memory that are ready for a copy."""
    array, out = u32s((16, 24)), u32s(64)
    tensor_map = ptx.tensor_map(array, (16, 16))
    function = function_of(STORE.replace("BODY", body))
    return function(grid, 64, (tensor_map, array, out), races=True, **options), array


def test_a_store_is_known_behind_its_wait_only():
    copy = "@%p bra NEXT; " + COPY.replace("AT", "0") + "cp.async.bulk.commit_group; WAIT NEXT: "
    for wait, expected in (
        ("cp.async.bulk.wait_group 0;", set()),
        ("cp.async.bulk.wait_group.read 0;", {"race"}),
    ):
        launch, _ = stored(copy.replace("WAIT", wait) + AFTER)
        assert kinds(launch) == expected
        for hazard in launch.hazards:
            assert hazard.first.opcode.startswith("cp.async.bulk.tensor.2d.global")
            assert hazard.second.opcode == "ld.global.u32"
    text = copy.replace("WAIT", "cp.async.bulk.wait_group 0;") + AFTER.replace("bar.sync 0;", "")
    launch, _ = stored(text)
    assert any(h.second.warp == 1 for h in launch.hazards if h.kind == "race")


def test_boxes_of_blocks_that_overlap():
    both = """shl.b32 %v, %c, SHIFT; @%p bra NEXT;
        cp.REDUCEasync.bulk.tensor.2d.global.shared::cta.ADDbulk_group [%m, {%v, 0}], [%a];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; NEXT:"""

    def kinds(shift, reduce="", add=""):
        text = both.replace("SHIFT", str(shift)).replace("REDUCE", reduce).replace("ADD", add)
        launch, _ = stored(text, grid=2)
        return [(h.kind, h.first.block, h.second.block) for h in launch.hazards]

    assert kinds(4) == []  # 16 columns each, the second box is cut at the edge
    assert kinds(3) == [("race", (0, 0, 0), (1, 0, 0))]
    assert kinds(3, "reduce.", "add.") == []


def test_a_load_of_what_another_block_writes():
    load = """@%p bra NEXT; setp.eq.u32 %q, %c, 0; @%q bra WRITE;
        mbarrier.init.shared::cta.b64 [%b], 1; fence.proxy.async;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 1024;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%a], [%m, {COLUMN, 0}], [%b];
        TRY: mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0; @!%q bra TRY; bra NEXT;
        WRITE: st.global.u32 [%d], 1; NEXT:"""
    launch, _ = stored(load.replace("COLUMN", "0"), grid=2)
    (hazard,) = launch.hazards
    assert hazard.kind == "race" and "global memory" in hazard.message
    opcodes = {hazard.first.opcode, hazard.second.opcode}
    assert "st.global.u32" in opcodes
    assert any(o.startswith("cp.async.bulk.tensor.2d.shared") for o in opcodes)
    launch, _ = stored(load.replace("COLUMN", "4"), grid=2)
    assert not launch.hazards


def test_tensor_copies_enter_the_trace():
    copy = "@%p bra NEXT; " + COPY + "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; NEXT:"
    for at, sectors in (("0", 16 * 2), ("4", 16 * 3), ("12", 16 * 2), ("24", 0)):
        launch, _ = stored(copy.replace("AT", at))
        (site,) = [s for s in launch.trace.sites if s.kind == "bulk store"]
        # Rows of 96 bytes, three sectors; a box takes 64 bytes of each, less what lies outside.
        assert (site.space, site.requests, site.bytes_per_lane) == ("global", 1, 1024)
        assert site.sectors == sectors
        assert launch.trace.counters()["global_store_requests"] == 0
