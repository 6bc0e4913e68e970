"""Threads of a block that wait for each other by flags: right ones are clean, others are found."""

import numpy as np
import pytest

from lib import ptx
from tests.tables import cases

from ..conftest import (
    HERE,
    compile_kernels,
    compile_text,
    each_schedule,
    f32s,
    function_of,
    kinds,
    run,
    u32s,
)

MISSING = ("WEAK", "SKIP_BARRIER", "SKIP_WAIT", "USE_GUESS")  # each for a kernel of its own
ARCHES = ("compute_75", "compute_90a")


def launch(name, arch="compute_75", macros=(), **options):
    text = compile_kernels(arch, str(HERE / "flags.cu"), tuple(f"-D{m}" for m in macros))
    x = np.arange(512, dtype=np.float32)
    y = f32s(128)
    if name == "swap":
        x = f32s(4 + 128)
    args, block = ((x,) if name == "swap" else (x, y)), 64 if name == "fences" else 128
    done = function_of(text, name)(1, block, args, races=True, **options)
    return done, x, y


def is_right(name, x, y) -> bool:
    t = np.arange(128)
    exact = {"counter": (t + 37) % 128, "barrier": (t + 37) % 128 + 2, "copy": (t + 37) % 128,
             "copies": (4 * t + 151) % 512, "fences": np.where(t < 32, t, 0)}
    return (x[:4] == 32).all() if name == "swap" else np.array_equal(y, exact[name])


@each_schedule
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", ["counter", "fences", "barrier", "copy", "copies", "swap"])
def test_what_is_synchronised_is_clean(name, arch, schedule):
    done, x, y = launch(name, arch, schedule=schedule)
    assert is_right(name, x, y)
    assert not done.hazards, done.hazards[:2]


@each_schedule
@cases("""
name    arch
counter compute_75
fences  compute_75
barrier compute_75
copies  compute_75
swap    compute_75
counter compute_90a
fences  compute_90a
barrier compute_90a
copy    compute_90a
copies  compute_90a
""")
def test_what_is_missing_is_found(name, arch, schedule):
    fence = "SKIP_FENCE" if arch == "compute_75" else "SKIP_SECOND_FENCE"
    try:
        done, _, _ = launch(name, arch, [*MISSING, fence], schedule=schedule)
    except ptx.UninitialisedRead:
        return  # this schedule read before it was written: found as well
    assert any(h.kind == "race" for h in done.hazards)


FLAG = """
.reg .b32 %t, %w, %v, %x; .reg .b64 %o; .reg .pred %p, %q;
.shared .align 4 .b32 data; .shared .align 4 .b32 flag;
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; ld.param.u64 %o, [out];
setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [flag], 0; bar.sync 0;
setp.eq.u32 %q, %t, 32; @%q bra READ; @!%p bra DONE;
st.shared.u32 [data], 7;
WRITE
bra DONE;
READ: LOAD
setp.eq.u32 %p, %v, 0; @%p bra READ;
FENCE
ld.shared.u32 %x, [data]; st.global.u32 [%o], %x;
DONE:
"""


@cases("""
writes | loads | fence | clean
st.release.cta.shared.u32 [flag], 1; | ld.acquire.cta.shared.u32 %v, [flag]; | | 1
fence.acq_rel.cta; st.relaxed.cta.shared.u32 [flag], 1; \
 | ld.acquire.cta.shared.u32 %v, [flag]; | | 1
membar.gl; st.volatile.shared.u32 [flag], 1; | ld.volatile.shared.u32 %v, [flag]; | membar.cta; | 1
atom.release.cta.shared.add.u32 %x, [flag], 1; | ld.relaxed.cta.shared.u32 %v, [flag]; \
 | fence.acq_rel.cta; | 1
red.release.cta.shared.add.u32 [flag], 1; | atom.acquire.cta.shared.or.b32 %v, [flag], 0; | | 1
st.relaxed.cta.shared.u32 [flag], 1; | ld.acquire.cta.shared.u32 %v, [flag]; | | 0
st.release.cta.shared.u32 [flag], 1; | ld.relaxed.cta.shared.u32 %v, [flag]; | | 0
st.shared.u32 [flag], 1; | ld.acquire.cta.shared.u32 %v, [flag]; | | 0
st.relaxed.cta.shared.u32 [flag], 1; fence.acq_rel.cta; \
 | ld.acquire.cta.shared.u32 %v, [flag]; | | 0
""")
def test_every_way_to_release_and_acquire(writes, loads, fence, clean):
    body = FLAG.replace("WRITE", writes).replace("LOAD", loads).replace("FENCE", fence)
    out = u32s(1)
    done = run(body, out, block=64, races=True)
    assert out[0] == 7
    assert bool(done.hazards) != clean, done.hazards[:2]


@pytest.mark.parametrize("scope,expected", [("_block", {"race"}), ("", set())])
def test_atomics_of_a_blocks_scope_by_two_blocks_are_a_race(scope, expected):
    text = compile_text('extern "C" __global__ void k(float* o)'
                        "{ atomicAddSCOPE(o + threadIdx.x, 1.f); }".replace("SCOPE", scope))
    kernel = function_of(text)
    launch = kernel(2, 32, (f32s(32),), races=True)
    assert kinds(launch) == expected
    assert kernel(1, 32, (f32s(32),), races=True).clean
