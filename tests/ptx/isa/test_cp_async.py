"""cp.async: sizes, zero-fill, groups, landings, hazards, counters."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import each_landing, run

HEAD = """.shared .align 128 .b8 s[1024]; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<3>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r1, s;
mul.wide.u32 %d2, %r0, WIDTH; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;
mul.lo.u32 %r2, %r0, WIDTH; add.u32 %r2, %r2, %r1; setp.lt.u32 %p0, %r0, 8;
"""
BACK = {
    4: "ld.shared.u32 %r4, [%r2]; st.global.u32 [%d4], %r4;",
    8: "ld.shared.v2.u32 {%r4, %r5}, [%r2]; st.global.v2.u32 [%d4], {%r4, %r5};",
    16: "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];"
        "st.global.v4.u32 [%d4], {%r4, %r5, %r6, %r7};",
}
WAIT = "cp.async.commit_group; cp.async.wait_group 0;\n"
PARAMETERS = ".param .u64 in, .param .u64 out"


def copied(
    width: int, copies: str, wait: str = WAIT, lanes: int = 32, nbytes=None, parting="", **options
):
    """Copy `width` bytes a lane to shared memory and back; returns source, result, launch."""
    source = np.arange(1, nbytes or lanes * width + 1, dtype=np.int64).astype(np.uint8)
    out = np.zeros(lanes * width, np.uint8)
    body = HEAD.replace("WIDTH", str(width)) + copies + wait + BACK[width] + parting
    launch = run(body, source, out, parameters=PARAMETERS, **options)
    return source, out, launch


@each_landing
@pytest.mark.parametrize("kind, width", [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_widths(kind, width, landing):
    source, out, launch = copied(
        width, f"cp.async.{kind}.shared.global [%r2], [%d3], {width};", landing=landing, races=True
    )
    assert np.array_equal(source, out) and not launch.hazards
    counters = launch.trace.matrix_counters()
    assert counters["copy_instructions"] == counters["copy_requests"] == 1
    assert counters["copy_sectors"] == width
    # An H100 counts them among the loads, too.
    assert launch.trace.counters()["global_load_requests"] == 1
    assert launch.trace.counters()["global_load_sectors"] == width
    assert launch.trace.counters()["shared_store_instructions"] == 0


def test_copies_of_one_shape_through_the_l1_and_past_it_have_costs_of_their_own():
    """Both halves of a sector by two lanes: what is found for the one is not the other's."""
    apart = "shl.b32 %r2, %r0, 5; add.u32 %r2, %r2, %r1; "  # destinations 32 bytes apart
    copy = "cp.async.{}.shared.global [%r2], [%d3], 16;"

    def wavefronts(*kinds):
        body = HEAD.replace("WIDTH", "16") + apart + "\n".join(map(copy.format, kinds)) + WAIT
        source, out = np.zeros(512, np.uint8), np.zeros(512, np.uint8)
        launch = run(body, source, out, parameters=PARAMETERS)
        return {site.opcode.split(".")[2]: site.wavefronts for site in launch.trace.sites
                if site.kind == "copy" and site.space == "shared"}

    alone = wavefronts("ca") | wavefronts("cg")
    assert alone["ca"] != alone["cg"]
    assert wavefronts("ca", "cg") == wavefronts("cg", "ca") == alone


@each_landing
def test_hints_and_wait_all(landing):
    copies = """cp.async.cg.shared::cta.global.L2::128B [%r2], [%d3], 16;
    cp.async.ca.shared.global.L2::cache_hint [%r2], [%d3], 16, %d8;"""
    source, out, _ = copied(16, copies, "cp.async.wait_all;", landing=landing)
    assert np.array_equal(source, out)


@each_landing
@pytest.mark.parametrize("size", [0, 3, 4, 12, 16])
def test_zero_fill(size, landing):
    source, out, _ = copied(
        16, f"mov.u32 %r9, {size}; selp.b32 %r9, %r9, 16, %p0;"
        "cp.async.cg.shared.global [%r2], [%d3], 16, %r9;", landing=landing,
    )
    expected = source.reshape(32, 16).copy()
    expected[:8, size:] = 0
    assert np.array_equal(out.reshape(32, 16), expected)


@each_landing
def test_ignored_source(landing):
    source, out, launch = copied(
        8, "cp.async.ca.shared.global [%r2], [%d3], 8, %p0;", landing=landing
    )
    expected = source.reshape(32, 8).copy()
    expected[:8] = 0
    assert np.array_equal(out.reshape(32, 8), expected)
    assert launch.trace.matrix_counters()["copy_sectors"] == 6  # lanes 8 to 31 only


def test_a_source_that_is_not_read_may_be_anywhere():
    far = "add.u64 %d3, %d3, 65536;"
    _, out, _ = copied(16, far + "cp.async.cg.shared.global [%r2], [%d3], 16, 0;")
    assert not out.any()
    with pytest.raises(ptx.OutOfBounds):
        copied(16, far + "cp.async.cg.shared.global [%r2], [%d3], 16, 4;")
    with pytest.raises(ptx.OutOfBounds):
        copied(16, far + "cp.async.cg.shared.global [%r2], [%d3], 16;")
    end = "setp.eq.u32 %p1, %r0, 31; selp.b32 %r9, 12, 16, %p1;"
    _, out, _ = copied(
        16, end + "cp.async.cg.shared.global [%r2], [%d3], 16, %r9;", nbytes=32 * 16 - 3
    )
    assert not out[-4:].any() and out[-5] != 0


@pytest.mark.parametrize("width, copy, error, said", [
    (16, "cg.shared.global [%r2+4], [%d3], 16;", ptx.Misaligned, None),
    (16, "ca.shared.global [%r2], [%d3+4], 8;", ptx.Misaligned, None),
    (16, "cg.shared.global [%r2], [%d3], 16, 20;", ptx.Error, "src-size 20"),
    (8, "cg.shared.global [%r2], [%d3], 8;", ptx.ParseError, "16 bytes"),
    (8, "ca.shared.global [%r2], [%d3], 12;", ptx.ParseError, "4, 8 or 16"),
])
def test_mistakes(width, copy, error, said):
    with pytest.raises(error, match=said):
        copied(width, f"cp.async.{copy}")


COPY = "cp.async.ca.shared.global [%r2], [%d3], 4;"


@pytest.mark.parametrize("wait", ["", "cp.async.commit_group;", "cp.async.wait_group 0;",
                                  "cp.async.commit_group; cp.async.wait_group 1;"])
def test_reading_too_early(wait):
    """No group, no wait, or a wait that leaves the group out: only a commit and a wait will do."""
    with pytest.raises(ptx.UninitialisedRead):
        copied(4, COPY, wait, landing="late")
    source, out, launch = copied(4, COPY, wait, races=True)
    assert np.array_equal(source, out)  # early, the mistake does not show in the result
    (hazard,) = launch.hazards
    assert hazard.kind == "race" and hazard.first.opcode.startswith("cp.async")
    assert hazard.second.opcode == "ld.shared.u32"


@each_landing
def test_groups_are_waited_for_in_order(landing):
    twice = """cp.async.ca.shared.global [%r2], [%d3], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%r2+512], [%d3], 4; cp.async.commit_group;
    cp.async.wait_group 1;"""
    source, out, launch = copied(4, twice, "", landing=landing, races=True)
    assert np.array_equal(source, out) and not launch.hazards
    late = BACK[4].replace("[%r2]", "[%r2+512]")
    body = HEAD.replace("WIDTH", "4") + twice + late
    if landing == "late":
        with pytest.raises(ptx.UninitialisedRead):
            run(body, source, out, parameters=PARAMETERS, landing=landing)
    else:
        assert run(body, source, out, parameters=PARAMETERS, races=True).hazards


def test_a_source_that_changes_before_the_wait():
    change = COPY + "st.global.u32 [%d3], 7;" + WAIT
    _, early, _ = copied(4, change, "")
    _, late, _ = copied(4, change, "", landing="late")
    assert not np.array_equal(early, late)


@pytest.mark.parametrize("barrier, kind", [("", "race"), ("bar.sync 0;", None)])
@each_landing
def test_others_need_a_barrier_behind_the_wait(landing, barrier, kind):
    other = "xor.b32 %r2, %r2, 128;"  # the word of the other warp
    source, out, launch = copied(
        4, COPY, WAIT + barrier + other, lanes=64, block=64, races=True, landing=landing
    )
    assert [h.kind for h in launch.hazards] == ([kind] if kind else [])
    if barrier:
        assert np.array_equal(out.reshape(2, -1), source.reshape(2, -1)[::-1])


@each_landing
def test_a_barrier_before_the_wait_is_no_help(landing):
    other = "xor.b32 %r2, %r2, 128;"
    wait = "cp.async.commit_group; bar.sync 0; cp.async.wait_group 0;" + other
    try:
        _, _, launch = copied(4, COPY, wait, lanes=64, block=64, races=True, landing=landing)
    except ptx.UninitialisedRead:
        return
    assert [h.kind for h in launch.hazards] == ["race"]


@each_landing
def test_lanes_wait_for_their_own_copies(landing):
    apart = COPY + "cp.async.commit_group; @%p0 cp.async.wait_group 0;\n"
    if landing == "late":
        with pytest.raises(ptx.UninitialisedRead, match="lane 8"):
            copied(4, apart, "", landing=landing)
    else:
        assert copied(4, apart, "", races=True)[2].hazards


RING = """.shared .align 8 .b64 bar; .reg .b32 %b; .reg .pred %w, %first, %producer;
mov.u32 %b, bar; setp.eq.u32 %first, %r0, 0; setp.lt.u32 %producer, %r0, 32;
@%first mbarrier.init.shared.b64 [%b], COUNT; bar.sync 0;
@!%producer bra consume;
cp.async.ca.shared.global [%r2], [%d3], 4;
ARRIVE
bra done;
consume: mbarrier.try_wait.parity.shared.b64 %w, [%b], 0; @!%w bra consume;
xor.b32 %r2, %r2, 128;
"""


def ring(count, arrive, wait="try_wait", **options):
    """One warp copies, and an mbarrier tells another when it may read."""
    text = RING.replace("COUNT", str(count)).replace("ARRIVE", arrive).replace("try_wait", wait)
    source, out, launch = copied(4, text, "", lanes=64, block=64, parting="done:", **options)
    return np.array_equal(source[:128], out[128:]), launch


@pytest.mark.parametrize("options", [
    {}, {"landing": "late"}, {"races": True}, {"races": True, "landing": "late"},
    {"schedule": "highest"}, {"schedule": "random", "landing": "late"},
])
def test_an_mbarrier_tells_when_copies_are_done(options):
    right, launch = ring(32, "cp.async.mbarrier.arrive.noinc.shared.b64 [%b];", **options)
    assert right and not launch.hazards
    both = "cp.async.mbarrier.arrive.shared.b64 [%b]; mbarrier.arrive.shared.b64 _, [%b];"
    right, launch = ring(32, both, **options)
    assert right and not launch.hazards


def test_a_poll_for_copies_that_land_late_is_short():
    arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [%b];"
    right, launch = ring(32, arrive, wait="test_wait", landing="late", turns=100)
    assert right and not launch.hazards


def test_an_ordinary_arrival_does_not_wait_for_copies():
    with pytest.raises(ptx.UninitialisedRead):
        ring(32, "mbarrier.arrive.shared.b64 _, [%b];", landing="late")
    right, launch = ring(32, "mbarrier.arrive.shared.b64 _, [%b];", races=True)
    assert right and [h.kind for h in launch.hazards] == ["race"]
    with pytest.raises(ptx.Deadlock):
        ring(33, "cp.async.mbarrier.arrive.noinc.shared.b64 [%b];")
