"""Arrays of ``extern __shared__`` begin at one address, and have what the launch gives."""

import pytest

from lib import ptx

from ..conftest import compile_text, f32s, function_of

SOURCE = """
extern "C" __global__ void k(float* o)
{
    extern __shared__ float first[];
    extern __shared__ int second[];
    int t = threadIdx.x;
    BODY
}
"""
APART = {
    "both written, then read": "first[t] = t; second[t] = 2 * t; __syncthreads();"
                               "o[t] = first[31 - t] + second[31 - t];",
    "one written, the other read": "first[t] = t; __syncthreads(); o[t] = second[31 - t];",
    "added to": "first[t] = t; second[t] = 0; __syncthreads(); atomicAdd(&first[0], 1.f);"
                "o[t] = second[t];",
}
IN_TURN = {
    "one behind the other": "second[t] = t; __syncthreads(); int v = second[31 - t];"
                            "__syncthreads(); first[t] = v; __syncthreads(); o[t] = first[31 - t];",
    "with an offset": "first[t] = t; second[32 + t] = t; __syncthreads();"
                      "o[t] = first[31 - t] + second[63 - t];",
}


def launched(body, shared_mem=256, **options):
    text = compile_text(SOURCE.replace("BODY", body))
    kernel = function_of(text)
    return kernel(1, 32, (f32s(32),), shared_mem, **options)


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_what_is_written_by_one_name_and_read_by_another_is_told(body, races):
    launch = launched(body, races=races)
    found = next(hazard for hazard in launch.hazards if hazard.kind == "one address")
    assert "both are extern __shared__" in found.message and found.first.line < found.second.line
    assert "declare one extern" in ptx.advice.for_hazard(found)


@pytest.mark.parametrize("body", IN_TURN.values(), ids=IN_TURN)
def test_arrays_in_turn_and_arrays_apart_are_clean(body):
    assert launched(body, races=True).clean


def test_a_launch_that_gives_none_is_told_so():
    with pytest.raises(ptx.OutOfBounds) as error:
        launched(APART["both written, then read"], 0)
    said = " ".join(error.value.__notes__)
    assert "gives no bytes of dynamic shared memory" in said and "(first, second)" in said
    assert "guard the access" not in said
    with pytest.raises(ptx.OutOfBounds) as error:
        launched("second[t + 64] = t; o[t] = second[t + 64];")
    assert "guard the access" in " ".join(error.value.__notes__)
