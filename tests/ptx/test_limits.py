"""How much memory a launch may take, and keep."""

import gc
import weakref

import pytest

from lib import ptx
from lib.ptx import launch as launching

from .conftest import entry, function_of, u32s

LOCAL = """.local .align 4 .b8 l[BYTES]; .reg .b32 %v; .reg .b64 %o; ld.param.u64 %o, [out];
mov.u32 %v, 5; st.local.u32 [l], %v; ld.local.u32 %v, [l]; st.global.u32 [%o], %v;"""


def test_a_thread_has_512_kib_of_local_memory_as_in_cuda():
    out = u32s(1)
    function_of(entry(LOCAL.replace("BYTES", str(512 << 10))))(1, 1, (out,))
    assert out[0] == 5
    function = function_of(entry(LOCAL.replace("BYTES", str((512 << 10) + 4))))
    with pytest.raises(ptx.LaunchError, match="524304 bytes of local memory a thread; there are"):
        function(1, 1, (out,))


# The first block sets a flag that the others wait for.
WAITS = """.shared .align 4 .b8 s[40960]; .reg .b32 %b, %v; .reg .b64 %o; .reg .pred %p;
ld.param.u64 %o, [out]; mov.u32 %b, %ctaid.x; setp.ne.u32 %p, %b, 0; @%p bra WAIT;
st.shared.u32 [s], %b; st.global.release.gpu.u32 [%o], 1;
WAIT: ld.global.acquire.gpu.u32 %v, [%o]; setp.eq.u32 %p, %v, 0; @%p bra WAIT;"""


def test_blocks_that_wait_for_each_other_have_a_limit_together(monkeypatch):
    function = function_of(entry(WAITS))
    assert function.code.cooperative
    function(4, 1, (u32s(1),))
    monkeypatch.setattr(launching, "BYTES_TOGETHER", 4 * 40960 - 1)
    with pytest.raises(ptx.LaunchError, match="its 4 blocks wait for each other.*fewer blocks"):
        function(4, 1, (u32s(1),))


def test_errors_that_are_kept_hold_no_memory(monkeypatch):
    made = []
    plain = launching.Memory

    def memory(*args):
        made.append(plain(*args))
        return made[-1]

    monkeypatch.setattr(launching, "Memory", memory)
    body = ".reg .b64 %o; ld.param.u64 %o, [out]; st.global.u32 [%o+4096], 1;"
    launch = function_of(entry(body))(
        3, 32, (u32s(1),), go_on=True)
    assert len(launch.errors) == 3 and "outside of every" in str(launch.errors[0])
    assert all(error.__traceback__ is None for error in launch.errors)
    references = [weakref.ref(each) for each in made]
    made.clear()
    gc.collect()
    assert not any(each() is not None for each in references)
