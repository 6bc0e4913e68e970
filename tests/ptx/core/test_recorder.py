"""One warp of a launch, instruction by instruction."""

import numpy as np

from lib import ptx

from ..conftest import function_of, u32s

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
# Even lanes add their number to 100, all lanes store.
TEXT = HEAD + """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  mov.u32 %r3, 100;
  @%p1 add.u32 %r3, %r3, %r1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
"""


def record(text=TEXT, grid=2, threads=64, **options):
    out = u32s(threads)
    recorder = ptx.Recorder(**{"block": 1, "warp": 1, **options})
    launch = function_of(text)(grid, threads, (out,), recorder=recorder)
    return recorder, out, launch


def test_each_instruction_of_the_warp_is_kept_in_order():
    recorder, out, _ = record()
    opcodes = [m.instruction.opcode for m in recorder.moments]
    assert opcodes == ["ld.param.u64", "mov.u32", "and.b32", "setp.eq.u32", "mov.u32", "add.u32",
                       "mul.wide.u32", "add.u64", "st.global.u32", "ret"]
    lanes = np.arange(32, 64)
    expected = 100 + np.where(lanes % 2 == 0, lanes, 0)
    assert (out[32:] == expected).all()
    added = recorder.moments[5]
    assert (added.active == (lanes % 2 == 0)).all()
    assert (added.written["%r3"] == expected).all()


def test_an_access_has_the_address_of_each_lane():
    recorder, out, launch = record()
    store = recorder.moments[8]
    base = launch.allocations[0].base
    assert store.nbytes == 4
    assert (store.address - base == 4 * np.arange(32, 64)).all()


def test_a_recording_has_what_it_is_asked_for_and_changes_nothing():
    whole, out, _ = record()
    plain = u32s(64)
    function_of(TEXT)(2, 64, (plain,))
    assert (out == plain).all()
    part, _, _ = record(first=3, max_steps=2)
    assert [m.instruction.line for m in part.moments] == [
        m.instruction.line for m in whole.moments[3:5]]
    few, _, _ = record(threads=40)
    assert few.moments[0].active.tolist() == [True] * 8 + [False] * 24
    assert record(warp=2)[0].moments == []


UNWRITTEN = HEAD + """
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .b32 room[64];
  mov.u32 %r1, room;
  ld.shared.u32 %r2, [%r1];
  mov.u32 %r3, 7;
  ret;
}
"""


def test_each_step_is_kept_once_where_an_unwritten_value_is_followed():
    recorder, _, _ = record(UNWRITTEN)
    assert [m.instruction.opcode for m in recorder.moments] == [
        "mov.u32", "ld.shared.u32", "mov.u32", "ret"]


COPIES = HEAD + """
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 room[2048];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, room;
  cp.async.ca.shared.global [%r1], [%rd1], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ret;
}
"""


def test_copies_in_flight_are_told_until_they_are_waited_for():
    out = u32s(64)
    recorder = ptx.Recorder(0, 0)
    function_of(COPIES)(1, 32, (out,), landing="late", recorder=recorder)
    waiting = {m.instruction.opcode: m.waiting for m in recorder.moments}
    assert waiting["cp.async.ca.shared.global"] == (
        "cp.async: 32 copies (512 bytes) of 1 group not waited for",)
    assert waiting["cp.async.wait_group"] == ()


BARRIER = HEAD.replace("sm_80", "sm_90") + """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 8 .b64 bar;
  mov.u32 %r1, bar;
  mbarrier.init.shared::cta.b64 [%r1], 2;
  mbarrier.arrive.shared::cta.b64 %rd1, [%r1];
  mbarrier.arrive.shared::cta.b64 %rd1, [%r1];
  ret;
}
"""


def test_the_phase_of_an_mbarrier_is_told():
    recorder, _, _ = record(BARRIER, grid=1, threads=1, block=0, warp=0)
    said = [m.waiting[0].split(": ")[1] for m in recorder.moments if m.waiting]
    assert said[:3] == ["phase 0, 0 of 2 arrivals, 0 bytes expected",
                        "phase 0, 1 of 2 arrivals, 0 bytes expected",
                        "phase 1, 0 of 2 arrivals, 0 bytes expected"]
