"""The race detector remembers the touched pages of an array, as many as its limit allows."""

import tracemalloc

import pytest

from lib import ptx
from lib.ptx.race import clocks as pages

from ..conftest import entry, function_of, u32s
from . import test_blocks, test_hazards

# Each of the blocks' threads reads and writes its word of a row of 64 KiB.
TILE = """.reg .b32 %t, %v, %c; .reg .b64 %a; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
mad.lo.u32 %t, %c, 16384, %t; ld.param.u64 %a, [out]; mad.wide.u32 %a, %t, 4, %a;
ld.global.u32 %v, [%a]; st.global.u32 [%a], %v;"""


@pytest.mark.parametrize("words", [8, 64])
@pytest.mark.parametrize("kernel", ["global_race", "global_race_in_a_block", "bulk_store_unread"])
def test_pages_find_what_a_flat_array_finds(kernel, words, monkeypatch):
    flat = test_hazards.run(kernel, races=True).hazards
    monkeypatch.setattr(pages, "FLAT", 0)
    monkeypatch.setattr(pages, "WORDS", words)
    paged = test_hazards.run(kernel, races=True).hazards
    assert flat and [str(one) for one in paged] == [str(one) for one in flat]


@pytest.mark.parametrize("pattern", test_blocks.PATTERNS)
def test_what_a_flag_carries_lies_in_pages_too(pattern, monkeypatch):
    monkeypatch.setattr(pages, "FLAT", 0)
    monkeypatch.setattr(pages, "WORDS", 8)
    test_blocks.test_standard_patterns_are_right(pattern, "highest", "compute_75")


def test_an_array_of_2_gib_takes_what_is_touched_of_it():
    function = function_of(entry(TILE))
    array = u32s((2 << 30) // 4)  # pages of zeros, which take no memory either
    tracemalloc.start()
    tracemalloc.reset_peak()
    launch = function(128, 128, (array,), races=True, trace=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not launch.hazards and peak < 64 << 20


def test_the_limit_is_told_in_one_line(monkeypatch):
    function = function_of(entry(TILE))
    array = u32s((64 << 20) // 4)
    monkeypatch.setattr(pages, "MAX_BYTES", 16 * 80 * pages.WORDS)
    assert not function(16, 32, (array,), races=True).hazards
    with pytest.raises(ptx.Error, match=(
        "ld.global.u32.*would take more than 1,310,720 bytes to remember.*Of argument 0, which "
        "has 67,108,864 bytes, it remembers 0: launch fewer blocks or a smaller problem"
    )):
        function(17, 32, (array,), races=True)
