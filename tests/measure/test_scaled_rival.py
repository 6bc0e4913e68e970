"""26's rival: what is asked of cublasLt, and how its scales lie."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from lib.measure import cublaslt
from lib.problem import with_scales
from lib.problem.scales import BLOCK, SCALES, Operands
from tests.measure.test_rival import Lt, bound, placed

NAMES = ("SCALAR_32F", "VEC16_UE4M3", "VEC32_UE8M0", "OUTER_VEC_32F", "VEC128_32F",
         "BLK128x128_32F")


class Scaled(Lt):
    """A binding that notes all attributes of an operation."""

    MatmulDescAttribute = SimpleNamespace(
        TRANSA=3, A_SCALE_POINTER=17, B_SCALE_POINTER=18, FAST_ACCUM=25, A_SCALE_MODE=31,
        B_SCALE_MODE=32)
    MatmulMatrixScale = SimpleNamespace(**{name: place for place, name in enumerate(NAMES)})

    def __init__(self):
        super().__init__()
        self.set, self.pointers = {}, []

    def matmul_desc_set_attribute(self, desc, attribute, address, size):
        kind = {1: ctypes.c_int8, 4: ctypes.c_int32, 8: ctypes.c_uint64}[size]
        self.set[attribute] = kind.from_address(address).value

    def matmul(self, *arguments):
        super().matmul(*arguments)
        self.pointers.append((self.set[17], self.set[18], arguments[3], arguments[5]))


@pytest.fixture
def lt(monkeypatch):
    return bound(Scaled(), monkeypatch)


def operands(first):
    names = ("A", "B", "C", "scale_a", "scale_b")
    return Operands(**{name: placed(first + i) for i, name in enumerate(names)})


@pytest.mark.parametrize("scaling, of_b, of_a", [
    ("tensor", 0, 0), ("vector", 3, 3), ("blocks", 5, 4),
])
def test_b_goes_first_with_its_mode_and_scales(lt, scaling, of_b, of_a):
    problem = with_scales(64, 256, 384, scaling=scaling)
    found = cublaslt.candidates(problem, *operands(10))
    assert (lt.set[31], lt.set[32], lt.set[25], lt.set[3]) == (of_b, of_a, 0, 1)
    assert (lt.set[17], lt.set[18]) == (14, 13)  # B's scales are its first operand's
    E4M3, BF16 = 28, 14
    assert lt.layouts == [(E4M3, 384, 256, 384), (E4M3, 384, 64, 384), (BF16, 256, 64, 256)]
    assert [one.place for one in found] == [0, 1]  # of three one can't be used
    found[1].gemm(*operands(20))  # other copies of the matrices have scales of their own
    assert lt.pointers == [(24, 23, 21, 20)]


def test_fast_sums_are_asked_for_where_there_are_any(lt):
    problem = with_scales(64, 256, 384, scaling="tensor", promoted=False)
    assert cublaslt.candidates(problem, *operands(10)) and lt.set[25] == 1
    blocks = with_scales(64, 256, 384, promoted=False)
    assert cublaslt.candidates(blocks, *operands(10)) == []


def test_without_the_binding_nothing_is_offered(monkeypatch):
    problem = with_scales(64, 256, 384)
    for binding in (None, SimpleNamespace()):  # none, or one of before CUDA 12.9
        monkeypatch.setattr(cublaslt, "binding", lambda binding=binding: binding)
        assert cublaslt.candidates(problem, *operands(10)) == []


@pytest.mark.parametrize("K, stride", [(128, 4), (384, 4), (512, 4), (528, 8), (1024, 8)])
def test_block_scales_lie_as_cublaslt_reads_them(K, stride):
    problem = with_scales(12, 300, K)
    given = problem.inputs(3)
    found = cublaslt.laid(problem, given)
    of_a, of_b = found.scale_a.ravel(), found.scale_b.ravel()
    blocks = -(-K // BLOCK)
    assert found.scale_a.flags.c_contiguous and found.scale_b.flags.c_contiguous
    assert of_a.size == blocks * 12 and of_b.size == 3 * stride
    for k in range(blocks):
        for m in range(12):
            assert of_a[k * 12 + m] == given.scale_a[m, k]
        for n in range(3):
            assert of_b[n * stride + k] == given.scale_b[k, n]
    assert found.A is given.A and found.B is given.B


def test_rows_that_cublaslt_can_t_scale_are_refused():
    problem = with_scales(13, 256, 256)
    with pytest.raises(ValueError, match="multiples of 4, not 13"):
        cublaslt.laid(problem, problem.inputs())


@pytest.mark.parametrize("scaling", sorted(set(SCALES) - {"blocks"}))
def test_other_scales_stay_as_they_are(scaling):
    problem = with_scales(13, 256, 256, scaling=scaling)
    given = problem.inputs()
    found = cublaslt.laid(problem, given)
    for name in ("scale_a", "scale_b"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))
