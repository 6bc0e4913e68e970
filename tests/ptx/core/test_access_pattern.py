"""What is found out about addresses is kept by their distances, and only for the same lanes."""

from __future__ import annotations

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core.access_pattern import SHAPES, Shapes

from ..conftest import run

NEAR, FAR = np.arange(32)[None, :] * 4, np.arange(32)[None, ::-1] * 4


def test_equal_distances_in_the_same_lanes_are_one_shape():
    shapes, lanes = Shapes(), object()
    first = shapes.of(NEAR, 124, None)
    assert shapes.of(NEAR.copy(), 124, None) is first
    assert shapes.of(FAR, 124, None) is not first  # the same sum, the same bits
    assert shapes.of(NEAR, 124, lanes) is not first
    assert shapes.of(NEAR[:, :16], 60, None).relative.shape == (1, 16)


def test_few_shapes_are_kept():
    shapes = Shapes()
    for i in range(4 * SHAPES):
        shapes.of(NEAR * i, 124 * i, None)
    assert len(shapes.known) == SHAPES


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
    out = np.zeros(1, np.uint32)
    run(LOOP.replace("FILLED", "8"), out)
    with pytest.raises(ptx.UninitialisedRead, match="at 0x300 .*lane 0; .*28 more"):
        run(LOOP.replace("FILLED", "6"), out, strict=True)


def test_a_loop_with_conflicts_is_counted_each_time():
    launch = run(LOOP.replace("FILLED", "8"), np.zeros(1, np.uint32))
    counters = launch.trace.counters()
    assert counters["shared_load_instructions"] == counters["shared_store_instructions"] == 8
    assert counters["shared_wavefronts"] == 16
