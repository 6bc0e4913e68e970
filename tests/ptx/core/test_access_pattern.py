"""What is found out about addresses is kept by their distances, and only for the same lanes."""

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core.access_pattern import Repeated

from ..conftest import run, u32s

LOOP = """
.reg .b32 %i, %v, %a, %t; .reg .pred %p;
.shared .align 16 .b8 s[1024];
mov.u32 %t, %tid.x; shl.b32 %a, %t, 2; mov.u32 %i, 0;
FILL: st.shared.u32 [%a], %i; add.u32 %a, %a, 128; add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, FILLED; @%p bra FILL;
shl.b32 %a, %t, 2; mov.u32 %i, 0;
READ: ld.shared.u32 %v, [%a]; add.u32 %a, %a, 128; add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 8; @%p bra READ;
"""


def test_a_loop_that_reads_on_is_told_of_what_nobody_wrote():
    out = u32s(1)
    run(LOOP.replace("FILLED", "8"), out)
    with pytest.raises(ptx.UninitialisedRead, match="at 0x300 .*lane 0; .*28 more"):
        run(LOOP.replace("FILLED", "6"), out, strict=True)


def test_a_loop_with_conflicts_is_counted_each_time():
    launch = run(LOOP.replace("FILLED", "8"), u32s(1))
    counters = launch.trace.counters()
    assert counters["shared_load_instructions"] == counters["shared_store_instructions"] == 8
    assert counters["shared_wavefronts"] == 16


def test_a_pattern_is_found_again_by_its_addresses():
    """Each turn computes its shared address anew: the third turn stores where the first did."""
    body = """
    .shared .align 4 .b8 s[1024]; .reg .b64 %o; .reg .b32 %t, %a, %k, %m, %v; .reg .pred %p;
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 4, %o; mov.u32 %k, 0;
    mov.u32 %v, 0;
    again: and.b32 %m, %k, 1; shl.b32 %m, %m, 7; mov.u32 %a, s; add.u32 %a, %a, %m;
    mad.lo.u32 %a, %t, 4, %a; add.u32 %v, %v, %t; st.shared.u32 [%a], %v;
    ld.shared.u32 %m, [%a]; st.global.u32 [%o], %m;
    add.u64 %o, %o, 128; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 4; @%p bra again;
    """
    out = u32s((4, 32))
    launch = run(body, out, races=True)
    np.testing.assert_array_equal(out, np.arange(1, 5)[:, None] * np.arange(32))
    counters = launch.trace.counters()
    assert (counters["shared_wavefronts"], counters["global_store_sectors"]) == (8, 16)
    assert not launch.hazards


ROWS, LANES = np.ogrid[:32, :1024]


@pytest.mark.parametrize(
    ("index", "left"),
    [
        (ROWS // 16 * 320 + LANES // 32 * 10, 64),  # rows of A: a warp reads one word
        (ROWS % 16 * 32 + LANES % 32, 512),  # of B: all warps read the same ones
        (ROWS // 4 % 2 + LANES // 8 % 16 * 2, 32),  # runs that come again, along both
        (0 * ROWS + 0 * LANES, 1),
    ],
)
def test_what_repeated_indices_name_is_gathered_once(index, left):
    found = Repeated.of(index)
    assert found.distinct.size == left
    view = np.random.default_rng(0).random(int(index.max()) + 1)
    np.testing.assert_array_equal(found.take(view), view[index])


def test_indices_that_hardly_repeat_are_left_alone():
    assert Repeated.of(ROWS * 1024 + LANES) is None
    assert Repeated.of(ROWS * 1024 + LANES // 2) is None
    uneven = ROWS * 1024 + LANES // 16
    uneven[7, 100:104] += 1  # no run of more than 4 is left
    assert Repeated.of(uneven).along[1] == (4, 1)
    np.testing.assert_array_equal(Repeated.of(uneven).take(np.arange(1 << 15)), uneven)
    uneven[7, 100] -= 1
    assert Repeated.of(uneven) is None
