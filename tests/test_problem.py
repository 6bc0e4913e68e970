"""The problem's inputs, its reference and its verdict."""

import numpy as np
import pytest

from lib import bfloat16
from lib.problem import Problem, numpy_dtype, parse_shape
from tests.tables import cases


def judged(problem, change=lambda C: C):
    """Verdict on the exact answer in FP32, changed."""
    A, B, C = problem.inputs(3)
    reference = problem.reference(A, B, C)
    return problem.judge(change(reference.C.astype(np.float32)), reference)


@cases("""
shape
(7, 5, 3)
(1, 1, 1)
(64, 64, 64)
(3, 4, 0)
""")
@pytest.mark.parametrize("scalars", [(1, 0), (0.5, -2), (0, 1)])
def test_the_exact_answer_passes(shape, scalars):
    assert judged(Problem(*shape, *scalars)).ok


def test_reference_is_alpha_ab_plus_beta_c():
    problem = Problem(2, 2, 2, alpha=2.0, beta=-1.0)
    A, B = np.eye(2, dtype=np.float32), np.array([[1, 2], [3, 4]], np.float32)
    C = np.ones((2, 2), np.float32)
    assert (problem.reference(A, B, C).C == [[1, 3], [5, 7]]).all()


def test_nan_in_c_does_not_reach_the_reference_when_beta_is_zero():
    problem = Problem(4, 4, 4)
    A, B, C = problem.inputs()
    assert np.isnan(C).all()
    assert not np.isnan(problem.reference(A, B, C).C).any()


def test_one_unwritten_element_fails():
    def forget(C):
        C[2, 1] = np.nan
        return C

    verdict = judged(Problem(8, 8, 8), forget)
    assert not verdict.ok and verdict.unwritten == 1
    assert "1 elements are NaN" in str(verdict)


def test_half_precision_sums_do_not_pass():
    problem = Problem(64, 64, 4096)
    A, B, C = problem.inputs()
    rounded = (A.astype(np.float16) @ B.astype(np.float16)).astype(np.float32)
    assert not problem.judge(rounded, problem.reference(A, B, C)).ok


@pytest.mark.parametrize("K", [16, 256, 4096])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("out", ["float32", "the inputs'"])
def test_sums_in_the_type_of_the_inputs_do_not_pass(dtype, K, out):
    problem = Problem(64, 64, K, dtype=dtype, out=dtype if out != "float32" else out)
    A, B, C = problem.inputs()
    total = np.zeros((64, 64), A.dtype)
    for k in range(K):
        total = (total + A[:, k, None] * B[k]).astype(A.dtype)
    reference = problem.reference(A, B, C)
    assert not problem.judge(total, reference).ok
    assert problem.judge((A.astype("f4") @ B.astype("f4")).astype(C.dtype), reference).ok


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_that_are_cut_off_pass(dtype):
    """As a tensor core does: four products a step, the sum cut off towards 0."""
    for K in (64, 1024):
        problem = Problem(64, 64, K, dtype=dtype)
        A, B, C = problem.inputs()
        total = np.zeros((64, 64), np.float32)
        for k in range(0, K, 4):
            step = total + A[:, k:k + 4].astype(float) @ B[k:k + 4].astype(float)
            near = step.astype(np.float32)
            total = np.where(abs(near) > abs(step), np.nextafter(near, np.float32(0)), near)
        verdict = problem.judge(total, problem.reference(A, B, C))
        assert verdict.ok and verdict.error > verdict.tolerance / 20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_output_of_16_bits_may_be_rounded_once(dtype):
    problem = Problem(9, 8, 64, 0.5, -2.0, dtype=dtype, out=dtype)
    A, B, C = problem.inputs()
    assert A.dtype == B.dtype == C.dtype == dtype
    reference = problem.reference(A, B, C)
    exact = reference.C
    assert problem.judge(exact.astype(C.dtype), reference).ok
    assert not Problem(9, 8, 64, 0.5, -2.0, dtype=dtype).judge(exact.astype(C.dtype), reference).ok


def test_b_by_columns_is_the_same_matrix_transposed():
    problem = Problem(3, 5, 7, dtype="float16", b_layout="column")
    A, B, C = problem.inputs()
    assert B.shape == (5, 7)
    product = A.astype("f8") @ B.T.astype("f8")
    assert np.array_equal(problem.reference(A, B, C).C, product)


def test_an_unknown_output_or_layout_is_refused():
    with pytest.raises(ValueError, match="C can't be float16"):
        Problem(1, 1, 1, out="float16")
    with pytest.raises(ValueError, match="layout 'diagonal'"):
        Problem(1, 1, 1, b_layout="diagonal")


def computed(problem, A, B, C):
    """What a kernel leaves: products summed in FP32, one after the other, and rounded once."""
    total = np.zeros((problem.M, problem.N), np.float32)
    for k in range(problem.K):
        total += A[:, k, None].astype("f4") * B[k].astype("f4")
    scaled = np.float32(problem.alpha) * total
    added = np.float32(problem.beta) * C.astype("f4") if problem.beta else np.float32(0)
    return (scaled + added).astype(C.dtype)


@pytest.mark.parametrize("dtype, out", [("float32", "float32"), ("float16", "float32"),
                                        ("float16", "float16"), ("bfloat16", "bfloat16")])
@pytest.mark.parametrize("K", [1, 2, 51])
def test_one_element_is_right_however_its_terms_cancel(dtype, out, K):
    """Of some thousand such, one is a thousandth of what was added up to reach it."""
    problem, least = Problem(1, 1, K, 0.5, -2.0, dtype=dtype, out=out), 1.0
    for seed in range(1500):
        A, B, C = problem.inputs(seed)
        reference = problem.reference(A, B, C)
        found = computed(problem, A, B, C)
        verdict = problem.judge(found, reference)
        assert verdict.ok, (seed, str(verdict))
        # One that is off by as much as a hundredth of its terms is wrong all the same.
        assert not problem.judge(found + C.dtype.type(reference.terms / 50), reference).ok
        least = min(least, abs(float(reference.C[0, 0])) / reference.terms)
    assert least < 1e-2


def test_a_product_that_is_taken_away_again_is_judged_by_what_was_added():
    """Sums of numbers of one sign, whose rounding grows with them, and C as large."""
    problem = Problem(3, 3, 4096, beta=-1.0)
    A, B, C = (abs(one) for one in problem.inputs())
    C[...] = A.astype("f8") @ B.astype("f8")
    reference = problem.reference(A, B, C)
    assert problem.judge(computed(problem, A, B, C), reference).ok
    assert not problem.judge(np.full((3, 3), 1.0, np.float32), reference).ok


@pytest.mark.parametrize("alpha", [1e-4, 1e-6, 1e-8])
def test_a_result_below_the_smallest_normal_number_may_be_rounded_there(alpha):
    problem = Problem(8, 8, 16, alpha, dtype="float16", out="float16")
    A, B, C = problem.inputs()
    reference = problem.reference(A, B, C)
    right = computed(problem, A, B, C)
    assert problem.judge(right, reference).ok
    right[0, 0] += np.float16(16 * 2.0**-24)
    assert not problem.judge(right, reference).ok


def test_one_smallest_number_more_in_each_element_is_wrong():
    problem = Problem(8, 8, 0, dtype="float16", out="float16")
    reference = problem.reference(*problem.inputs())
    assert problem.judge(np.zeros((8, 8), np.float16), reference).ok
    assert not problem.judge(np.full((8, 8), 2.0**-24, np.float16), reference).ok


def test_the_terms_are_the_product_and_what_is_added():
    problem = Problem(1, 1, 1, 2.0, -3.0)
    made = problem.reference(*(np.array([[value]], np.float32) for value in (1.0, 5.0, 4.0)))
    assert made.C == -2.0 and made.terms == made.magnitude == 22.0


def test_sums_of_16_bits_do_not_pass_where_they_cancel():
    """What is rounded before C is added is wrong, though the two terms are as large as it."""
    problem = Problem(1, 1, 64, 1.0, -1.0, dtype="float16", out="float16")
    A, B, C = problem.inputs()
    total = (A.astype("f8") @ B.astype("f8"))
    C[...] = total.astype("f2")
    reference = problem.reference(A, B, C)
    assert abs(float(reference.C[0, 0])) > 1e-5
    assert problem.judge(reference.C.astype("f2"), reference).ok
    assert not problem.judge(total.astype("f2") - C, reference).ok


def test_inputs_repeat_with_their_seed_and_differ_without():
    problem = Problem(5, 6, 7, beta=1.0)
    first, again, other = problem.inputs(1), problem.inputs(1), problem.inputs(2)
    assert all((x == y).all() for x, y in zip(first, again, strict=True))
    assert not (first[0] == other[0]).all()


@cases("""
text             | shape
"256"            | (256, 256, 256)
100x99x101       | (100, 99, 101)
5×6×0            | (5, 6, 0)
4096,4096,4096   | (4096, 4096, 4096)
" 100, 99, 101 " | (100, 99, 101)
""")
def test_shapes_are_read(text, shape):
    assert parse_shape(text) == shape


@pytest.mark.parametrize(
    "text", ["", "12x13", "12,13", "1 2", "1,2,3,4", "axbxc", "1x2x3x4", "-1x2x3", "1.5"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(ValueError, match="is no shape"):
        parse_shape(text)


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_empty_results_are_refused(shape):
    with pytest.raises(ValueError, match="M and N must be at least 1"):
        Problem(*shape)


def test_compulsory_bytes_count_c_twice_when_it_is_read():
    assert Problem(2, 3, 4).compulsory_bytes == 4 * (8 + 12 + 6)
    for beta in (1.0, -2.0, float("nan")):
        assert Problem(2, 3, 4, beta=beta).compulsory_bytes == 4 * (8 + 12 + 6 + 6)
    half = Problem(2, 3, 4, dtype="float16")
    assert half.compulsory_bytes == 2 * (8 + 12) + 4 * 6
    assert Problem(2, 3, 4, dtype="float16", out="float16").compulsory_bytes == 2 * (8 + 12 + 6)


@pytest.mark.parametrize("scalars", [
    (np.inf, 0), (-np.inf, 0), (np.nan, 0), (1e300, 0), (1, np.inf), (1, np.nan), (1e38, 0)])
def test_an_answer_that_is_no_number_is_judged_as_such(scalars):
    problem = Problem(9, 8, 7, *scalars)

    def as_float32(C):
        return C.astype(np.float32)

    with np.errstate(over="ignore"):
        assert judged(problem, as_float32).ok
        assert not judged(problem, lambda C: np.ones_like(C)).ok
        if not np.isnan(scalars).any():
            assert judged(problem, lambda C: np.full_like(C, np.nan)).unwritten == C_SIZE
            assert not judged(problem, lambda C: -C).ok


C_SIZE = 9 * 8


def test_elements_beside_an_infinite_one_are_held_to_the_tolerance():
    problem = Problem(4, 4, 4, beta=1.0)
    A, B, C = problem.inputs(3)
    C[0, 0] = np.inf
    reference = problem.reference(A, B, C)
    right = reference.C.astype(np.float32)
    assert problem.judge(right, reference).ok
    right[1, 1] += 1e-3
    assert not problem.judge(right, reference).ok


def test_bfloat16_as_bits_holds_the_numbers_of_ml_dtypes(monkeypatch):
    problem = Problem(37, 29, 16, beta=1.0, dtype="bfloat16", out="bfloat16", b_layout="column")
    real = problem.inputs()
    monkeypatch.setattr(bfloat16, "as_bits", lambda: True)
    bits = problem.inputs()
    for one, other in zip(real, bits, strict=True):
        assert other.dtype == numpy_dtype("bfloat16") == np.uint16
        assert one.view(np.uint16).tobytes() == other.tobytes()
        assert (one.astype("float64") == other.astype("float64")).all()
    reference = problem.reference(*bits)
    assert problem.judge(bfloat16.rounded(reference.C), reference).ok
    unwritten = Problem(2, 3, 4, dtype="bfloat16", out="bfloat16").inputs()[2]
    assert np.isnan(unwritten.astype("float32")).all()
