"""Who runs next: lanes of a warp come together before what needs the whole warp."""


import numpy as np
import pytest

from lib.compiler.raw_module import RawModule
from lib.paths import ROOT

from ..conftest import each_schedule, run, u32s

# The first 16 lanes of warp 0 take the long way to JOIN, where warp 1 stands whole from the start.
TORN = """
.reg .b64 %o, %q; .reg .b32 %t, %v, %s, %d<4>; .reg .pred %p;
.shared .align 16 .b8 tile[2048];
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 16;
@%p bra LONG;
JOIN:
WHOLE
mad.wide.u32 %q, %t, 4, %o; st.global.u32 [%q], %v;
bra END;
LONG:
add.u32 %v, %t, 1;
bra JOIN;
END:
"""
SHUFFLE = "shfl.sync.bfly.b32 %v, %t, 16, 31, 0xffffffff;"
MATRIX = """
mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s;
st.shared.v4.b32 [%s], {%t, %t, %t, %t};
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%s];
mov.u32 %v, %d3;
"""


@each_schedule
@pytest.mark.parametrize("block", [32, 64, 96])
@pytest.mark.parametrize("whole, expected", [
    (SHUFFLE, lambda lanes: lanes ^ 16),
    # The fourth matrix: rows of lanes 24 to 31, four lanes a row.
    (MATRIX, lambda lanes: lanes // 32 * 32 + 24 + lanes % 32 // 4),
], ids=["shuffle", "aligned"])
def test_a_torn_warp_comes_together_beside_whole_ones(whole, expected, block, schedule):
    out = u32s(block)
    done = run(TORN.replace("WHOLE", whole), out, block=block, schedule=schedule)
    assert not done.hazards and (out == expected(np.arange(block))).all()


# Half of a warp waits for a copy that lands as late as it may, the other half for the whole warp.
HALF = r"""
#include "asm.cuh"
extern "C" __global__ void half(const int* x, unsigned* y)
{
    __shared__ Barrier bar;
    __shared__ alignas(128) int s[128];
    const int t = threadIdx.x;
    if (t == 0) { init(&bar, 1); fence_init(); arrive_expecting(&bar, 512); }
    __syncwarp();
    if (t == 0) bulk_load(s, x, 512, &bar);
    if (t < 16) wait_for(&bar, 0);
    unsigned d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(d) : "r"(shared_address(&s[t % 8 * 4])) : "memory");
    y[t] = d;
}
"""


@each_schedule
def test_half_a_warp_before_an_aligned_instruction_waits_for_the_half_that_is_parked(schedule):
    module = RawModule(code=HALF, options=[f"-I{ROOT / 'cuda' / 'zoo'}"], arch="sm_90a")
    x, y = np.arange(128, dtype=np.int32), u32s(32)
    module.get_function("half")(1, 32, (x, y), landing="late", schedule=schedule)
    assert (y == np.arange(32)).all()
