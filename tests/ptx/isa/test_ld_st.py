"""Loads and stores of 256 bits a lane, which global memory takes from sm_100 on."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import function_of, u32s

WIDE = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .b32 %r<10>; .reg .b64 %x, %y, %d<5>;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %r9, %tid.x;
mad.wide.u32 %x, %r9, 32, %x; mad.wide.u32 %y, %r9, 64, %y;
ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%x];
ld.global.v4.b64 {%d0, %d1, %d2, %d3}, [%x];
st.global.v8.b32 [%y], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};
st.global.v4.b64 [%y+32], {%d3, %d2, %d1, %d0};
ret; }"""


def launch(text, **options):
    x = np.arange(64 * 8, dtype=np.uint32).reshape(64, 8)
    y = u32s((64, 16))
    return x, y, function_of(text)(1, 64, (x, y), **options)


def test_eight_registers_of_32_bits_or_four_of_64():
    x, y, seen = launch(WIDE, races=True)
    assert (y[:, :8] == x[:, ::-1]).all()
    assert (y[:, 8:].view(np.uint64) == x.view(np.uint64)[:, ::-1]).all()
    assert not seen.hazards
    for site in seen.trace.sites:  # a lane has a sector of its own
        assert (site.requests, site.bytes_per_lane, site.sectors) == (2, 32, 64)


@pytest.mark.parametrize("change,error,why", [
    (("[%x]", "[%x+16]"), ptx.Error, "no multiple of 32 bytes"),
    (("ld.global.v8", "ld.shared.v8"), ptx.UnsupportedInstruction, "or 32 of global memory"),
    (("v8.b32 {%r0", "v8.b16 {%r0"), ptx.Error, "types of 32 bits"),
    ((", %r7}, [%x]", "}, [%x]"), ptx.Error, "7 destinations for 8"),
])
def test_what_is_refused(change, error, why):
    assert change[0] in WIDE
    with pytest.raises(error, match=why):
        launch(WIDE.replace(*change, 1))
