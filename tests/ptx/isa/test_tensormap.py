"""tensormap.replace, cp_fenceproxy and the fences of their proxy; st.bulk."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import each_landing, f32s, function_of, u32s

# A thread of the first warp makes a map in shared memory, publishes it, and a copy uses it.
TEXT = """
.version 8.6
.target TARGET
.address_size 64
.visible .entry k(.param .u64 map, .param .u64 in, .param .u64 out)
{
    .shared .align 128 .b8 s[1024];
    .shared .align 128 .b8 made[128];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %t, %a, %b, %m, %v, %w; .reg .b64 %g, %i, %o, %q; .reg .pred %p, %q1;
    .file 1 "maps.cu"
    mov.u32 %t, %tid.x; mov.u32 %a, s; mov.u32 %b, bar; mov.u32 %m, made;
    ld.param.u64 %g, [map]; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    setp.ne.u32 %p, %t, 0;
    shl.b32 %v, %t, 2; cvt.u64.u32 %q, %v; add.u64 %q, %g, %q; add.u32 %v, %m, %v;
    .loc 1 5 0
    FIRST
    @!%p mbarrier.init.shared::cta.b64 [%b], 1;
    fence.proxy.async;
    bar.sync 0;
    .loc 1 10 0
    @%p bra MADE;
    REPLACE
MADE:
    bar.sync 0;
    .loc 1 20 0
    PUBLISH
    bar.sync 0;
    .loc 1 30 0
    ACQUIRE
    @%p bra TRY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
    .loc 1 40 0
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%a], [%g, {4, 1}], [%b];
TRY:
    mbarrier.try_wait.parity.shared::cta.b64 %q1, [%b], 0;
    @!%q1 bra TRY;
    shl.b32 %v, %t, 2; cvt.u64.u32 %q, %v; add.u64 %o, %o, %q; add.u32 %a, %a, %v;
    ld.shared.b32 %v, [%a]; ld.shared.b32 %w, [%a+128]; st.global.b32 [%o], %v;
    st.global.b32 [%o+128], %w;
    ld.shared.b32 %v, [%a+256]; ld.shared.b32 %w, [%a+384]; st.global.b32 [%o+256], %v;
    st.global.b32 [%o+384], %w;
    ret;
}
"""
OF_HOST = "ld.global.b32 %w, [%q]; st.shared.b32 [%v], %w;"
ZEROS = "st.shared.b32 [%v], 0;"
FIELD = "tensormap.replace.tile.{}.shared::cta.b1024.{} [%m], {};"
ADDRESS = FIELD.format("global_address", "b64", "%i")
ALL = "".join(FIELD.format(*field) for field in (
    ("global_address", "b64", "%i"), ("rank", "b32", "1"), ("box_dim", "b32", "0, 16"),
    ("box_dim", "b32", "1, 8"), ("global_dim", "b32", "0, 24"), ("global_dim", "b32", "1, 9"),
    ("global_stride", "b64", "0, 128"), ("element_stride", "b32", "0, 1"),
    ("element_stride", "b32", "1, 1"), ("elemtype", "b32", "7"), ("fill_mode", "b32", "1"),
    ("interleave_layout", "b32", "0"), ("swizzle_mode", "b32", "0")))
PUBLISH = ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release"
           ".gpu.sync.aligned [%g], [%m], 128;")
PLAIN = "ld.shared.b32 %w, [%v]; st.global.b32 [%q], %w;"
RELEASE = PLAIN + "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%g], 128;"


def run(first, replace, publish, acquire, arch="sm_90a", **options):
    """Returns what arrived, the source, and the launch."""
    old, new = (np.arange(32 * 32, dtype=np.float32).reshape(32, 32) + n for n in (0, 5000))
    tensor_map = ptx.tensor_map(old, (8, 16))
    given = np.frombuffer(bytes(tensor_map), np.uint8).copy()
    text = TEXT.replace("TARGET", arch)
    for name, code in (("FIRST", first), ("REPLACE", replace), ("PUBLISH", publish),
                       ("ACQUIRE", acquire)):
        text = text.replace(f"    {name}\n", f"    {code}\n")
    out = f32s((8, 16))
    launch = function_of(text)(1, 32, (given, new, out), **options)
    return out, new, launch


@pytest.mark.parametrize("publish", [PUBLISH, RELEASE])
@each_landing
def test_a_changed_address(publish, landing):
    out, new, launch = run(OF_HOST, ADDRESS, publish, ACQUIRE, races=True, landing=landing)
    assert (out == new[1:9, 4:20]).all()
    assert not launch.hazards


def test_a_map_made_of_zeros():
    out, new, launch = run(ZEROS, ALL, PUBLISH, ACQUIRE, races=True)
    expected = new[1:9, 4:20].copy()
    assert (out[:, :16] == expected).all()  # 20 of 24 columns, 8 of 9 rows: all inside
    assert not launch.hazards


def test_what_lies_outside_is_filled_as_the_map_says():
    smaller = ALL.replace("[%m], 0, 24", "[%m], 0, 12").replace("[%m], 1, 9", "[%m], 1, 6")
    out, new, _ = run(ZEROS, smaller, PUBLISH, ACQUIRE)
    assert (out[:5, :8] == new[1:6, 4:12]).all()
    assert np.isnan(out[5:]).all() and np.isnan(out[:, 8:]).all()


@pytest.mark.parametrize("publish,acquire,lacking,line", [
    (PUBLISH, "", "acquire", 20), (PLAIN, ACQUIRE, "release", 20), (PLAIN, "", "acquire", 20),
])
def test_a_missing_fence(publish, acquire, lacking, line):
    _, _, launch = run(OF_HOST, ADDRESS, publish, acquire, races=True)
    (hazard,) = launch.hazards
    assert hazard.kind == "missing proxy fence"
    assert f"tensormap::generic.{lacking}" in hazard.message
    assert hazard.first.cuda[1] == line and hazard.second.cuda[1] == 40
    assert "cp_fenceproxy" in str(launch)


def test_an_acquire_before_the_change_is_none():
    first = OF_HOST + ACQUIRE
    _, _, launch = run(first, ADDRESS, PUBLISH, "", races=True)
    assert [hazard.kind for hazard in launch.hazards] == ["missing proxy fence"]


def test_a_map_that_nobody_changed_needs_no_fence():
    out, _, launch = run(OF_HOST, "", "", "", races=True)
    assert out[0, 0] == 1 * 32 + 4
    assert not launch.hazards


@pytest.mark.parametrize("replace,error,message", [
    (ALL.replace("[%m], 1, 9", "[%m], 1, 900"), None, None),
    (ALL.replace("[%m], %i", "[%m], 4096"), ptx.Error, "lies in no array"),
    (ALL.replace("[%m], 0, 128", "[%m], 0, 72"), ptx.Error, "multiple of 16"),
    (ALL.replace("box_dim.shared::cta.b1024.b32 [%m], 0, 16", "box_dim.shared::cta.b1024.b32 "
                 "[%m], 0, 3"), ptx.Error, "12 bytes; it must be a multiple of 16"),
    (ALL.replace("elemtype.shared::cta.b1024.b32 [%m], 7", "elemtype.shared::cta.b1024.b32 "
                 "[%m], 14"), ptx.Error, "4 and 6 bits"),
    (FIELD.format("box_dim", "b32", "5, 1"), ptx.ParseError, "ordinal 5"),
    (FIELD.format("fill_mode", "b32", "2"), ptx.ParseError, "no .fill_mode"),
    (FIELD.format("colour", "b32", "2"), ptx.UnsupportedInstruction, "no modifier .colour"),
])
def test_refused(replace, error, message):
    if error is None:  # a map may say more than the array has, as long as no box goes there
        assert not run(ZEROS, replace, PUBLISH, ACQUIRE)[2].hazards
        return
    with pytest.raises(error, match=message):
        run(ZEROS, replace, PUBLISH, ACQUIRE)


def test_a_box_beyond_the_array():
    far = ALL.replace("[%m], 1, 9", "[%m], 1, 900").replace("[%m], 0, 128", "[%m], 0, 1024")
    with pytest.raises(ptx.OutOfBounds, match="of which 4096 lie in argument 1"):
        run(ZEROS, far, PUBLISH, ACQUIRE)


def test_a_map_of_which_nobody_wrote_a_byte():
    with pytest.raises(ptx.UninitialisedRead, match="128 bytes of a tensor map"):
        run("", ADDRESS, PUBLISH, ACQUIRE)


BULK = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 bytes)
{
    .shared .align 16 .b8 s[256];
    .reg .b32 %t, %a, %n, %v, %w; .reg .b64 %o; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %a, s; ld.param.u64 %o, [out]; ld.param.u32 %n, [bytes];
    mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.sync 0;
    ld.shared.u32 %w, [%a];
    BARRIER
    setp.ne.u32 %p, %t, 0; mov.u32 %v, s;
    @!%p st.bulk.weak.shared::cta [%v], %n, 0;
    bar.sync 0; ld.shared.u32 %v, [%a]; add.u32 %v, %v, %w;
    mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %v; ret;
}
"""


def bulk(barrier, nbytes):
    out = u32s(64)
    text = BULK.replace("BARRIER", barrier)
    return out, function_of(text)(1, 64, (out, np.uint32(nbytes)), races=True)


def test_st_bulk():
    out, launch = bulk("bar.sync 0;", 128)
    n = np.arange(64)
    assert (out == np.where(n < 32, n, 2 * n)).all()
    assert not launch.hazards
    _, launch = bulk("", 256)
    (race,) = (hazard for hazard in launch.hazards if hazard.kind == "race")  # of another warp
    assert "write after read" in race.message and race.second.opcode.startswith("st.bulk")


@pytest.mark.parametrize("nbytes,message", [
    (12, "multiple of 8"), (264, "outside of every shared allocation")])
def test_st_bulk_is_refused(nbytes, message):
    with pytest.raises(ptx.Error, match=message):
        bulk("", nbytes)
