"""What fits tensor maps: rows, and what lies between the matrices of a batch."""

from dataclasses import replace

import pytest

from lib.dispatch import fit
from lib.kernels.catalogue import find
from lib.problem import Problem


@pytest.mark.parametrize(("batch", "gap", "misfit"), [(1, 4, False), (2, 8, False), (2, 4, True)])
def test_the_matrices_of_a_batch_lie_whole_steps_apart(batch, gap, misfit):
    problem = Problem(64, 64, 64, dtype="float16", batch=batch)
    strides = tuple(replace(one, stride=64 * 64 + gap) for one in problem.operands)
    found = fit.misfits(type("Strided", (), {"operands": strides, "dtype": "float16"})(), 16)
    assert ("A" in found) is ("B" in found) is misfit
    assert not misfit or "its matrices lie 4100 elements apart" in found["A"]


@pytest.mark.parametrize(("N", "by_maps"), [(64, True), (62, False), (66, False), (60, True)])
def test_rows_of_c_that_a_tensor_map_can_not_describe_are_stored_by_lanes(N, by_maps):
    kernel = next(find(stem) for stem in ("24_any_row", "21_clusters") if any(
        one.maps and "C" in one.maps.boxes for one in find(stem).measured))
    variant = next(one for one in kernel.measured if one.maps and "C" in one.maps.boxes)
    problem = replace(variant.problem(64, N, 64), out="float32")
    chosen = fit._by_maps(problem, variant, ())
    assert ("C" in chosen.variant.maps.boxes) is by_maps
    assert by_maps is not ("rows of C" in chosen.reason)
