"""An index too large in one shared array is seen, though another array lies behind it."""

import pytest

from ..conftest import compile_text, f32s, function_of, run, u32s

SOURCE = """
extern __shared__ float dynamic[];
extern "C" __global__ void k(float* out, int at, int which) {
    __shared__ float first[64];
    __shared__ float second[32];
    int t = threadIdx.x;
    float* p = USE_PHI ? (which ? first : second) : first;
    first[t] = t; first[t + 32] = t; second[t] = -t; dynamic[t] = 2 * t;
    __syncthreads();
    out[t] = p[t + at];
    __syncthreads();
    if (which == 2) first[t + at] = 1;
    if (which == 4) second[t + at - 33] = 1;
    if (which == 3) dynamic[t + at] = 1;
    out[t] += first[t ^ 1] + second[t] + dynamic[t];
}
"""


def hazards(at: int, which: int = 0, phi: bool = False, shared: int = 256):
    text = compile_text(SOURCE.replace("USE_PHI", str(int(phi))))
    function = function_of(text)
    return function(1, 32, (f32s(32), at, which), shared).hazards


def test_what_stays_inside_is_silent():
    assert not hazards(0) and not hazards(32) and not hazards(0, 2)
    assert not hazards(32, 3)  # dynamic memory is one array, however large


@pytest.mark.parametrize("at, lane", [(33, 31), (34, 30), (42, 22)])
def test_a_read_behind_the_end(at, lane):
    (found,) = hazards(at)
    assert found.kind == "overflow" and "first, which has 256" in found.message
    assert "byte 256 of" in found.message
    assert found.first.opcode.startswith("ld.shared") and found.first.lane == lane
    assert "second" in found.message.split("lie in")[1]


def test_a_write_before_the_beginning():
    (found,) = hazards(32, 4)
    assert "byte -4 of" in found.message and found.first.lane == 0
    assert "first" in found.message.split("lie in")[1]


def test_a_write_behind_the_end():
    assert [h.first.opcode for h in hazards(33, 2)] == ["ld.shared.f32", "st.shared.u32"]


def test_an_address_of_one_of_two_arrays_is_not_judged():
    assert not hazards(33, 1, phi=True)


@pytest.mark.parametrize("offset, silent", [(60, True), (64, False)])
def test_an_offset_in_the_instruction(offset, silent):
    done = run(
        f"""
    .shared .b32 a[16]; .shared .b32 b[16]; .reg .b32 %r, %x;
    mov.u32 %r, a; mov.u32 %x, b; st.shared.u32 [%r+{offset}], 7; st.shared.u32 [%x], 1;""",
        u32s(1), block=1,
    )
    assert bool(done.hazards) != silent
    for hazard in done.hazards:
        assert "of a, which has 64, lie in b" in hazard.message
