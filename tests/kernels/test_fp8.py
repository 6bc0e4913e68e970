"""26: 8-bit operands with scales: right to the bit of its own order, clean, refused in one line."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.fp8 import FP8
from lib.kernels.source import edited
from lib.problem import Problem, with_scales
from lib.problem.scales import BLOCK, DTYPE, Operands, decoded, encoded
from lib.ptx.isa import wgmma_fp8
from lib.run import runner
from tests.kernels.conftest import (
    LATE,
    ORDERS,
    clean,
    found_out,
    on_changed,
    problem_of,
    two_each,
)
from tests.tables import cases, rows

# Of those that differ in more than sizes and types, one each; the others are slow for the suite.
TEMPLATES = ("ping_pong", "two_parts_float", "vector", "no_promotion", "blocks_late",
             "ping_pong_waiting", "early_pairs", "staggered", "few_64", "few_128_split",
             "vector_few_128", "tensor_few_64")
KINDS = ("e4m3", "e4m3")
run_on = partial(runner.run, FP8, backend="emulator", trace=False)


# Rows of any number; two tiles and more a block, which come round the ring; the last step of K and
# the last tile of N cut short.
CASES = [((1, 8, 16), 0.0), ((67, 136, 400), -2.0), ((130, 136, 784), 0.0), ((3, 24, 0), 0.5)]


@pytest.mark.parametrize("variant, shape, beta", two_each(
    (*FP8.measured, *FP8.laid), TEMPLATES, CASES))
def test_ragged_shapes_are_right_and_clean(variant, shape, beta):
    sms = (1 + (shape[0] == 67)) * variant.grid.size
    clean(FP8, variant, problem_of(variant, *shape, beta=beta), sms=sms)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("options", ORDERS)
def test_any_order_of_warps_and_copies(name, options):
    variant = FP8.variant(name)
    problem = problem_of(variant, 66, 136, 784, beta=1.0)
    clean(FP8, variant, problem, sms=variant.grid.size, **options)


def in_its_order(problem: Problem, given: Operands, promoted: bool) -> np.ndarray:
    """C in FP32, by the emulator's model of a product and FP32's own arithmetic."""
    A, B = (decoded(x).astype("f4") for x in (given.A, given.B))
    sums = np.zeros((problem.M, problem.N), "f4")
    pad = -problem.K % BLOCK
    A, B = (np.pad(x, ((0, 0), (0, pad))) for x in (A, B))
    for k in range(0, problem.K, BLOCK):
        left, right = A[:, k : k + BLOCK], B[:, k : k + BLOCK]
        if not promoted:
            sums = wgmma_fp8.sums(left, right, sums, KINDS)
            continue
        part = wgmma_fp8.sums(left, right, np.zeros_like(sums), KINDS)
        if problem.scaling == "blocks":
            of_b = np.repeat(given.scale_b[k // BLOCK], BLOCK)[: problem.N]
            # One rounding: the compiler multiplies and adds in one instruction.
            factor = given.scale_a[:, k // BLOCK, None] * of_b
            sums = (factor.astype("f8") * part + sums).astype("f4")
        else:
            sums = sums + part
    alpha = np.float32(problem.alpha)
    if problem.scaling == "vector":
        sums = sums * (given.scale_a * given.scale_b)
    if problem.scaling == "tensor":
        alpha = alpha * (given.scale_a * given.scale_b)
    return alpha * sums


@pytest.mark.parametrize("name", [one.name for one in FP8.measured if one.out == "float32"])
def test_every_bit_is_that_of_the_model(name):
    variant = FP8.variant(name)
    problem = problem_of(variant, 70, 136, 656)
    given = problem.inputs(4)
    done = run_on(problem, variant=variant, given=given)
    wanted = in_its_order(problem, given, variant.promotes)
    if problem.scaling == "blocks":  # a product of three in float64 is rounded twice now and then
        np.testing.assert_array_almost_equal_nulp(done.C, wanted, 1)
    else:
        assert done.C.tobytes() == wanted.astype("f4").tobytes()


def test_scales_may_lie_any_way():
    variant = FP8.variants[0]
    problem = problem_of(variant, 37, 200, 400)
    given = problem.inputs(2)
    across = given._replace(scale_a=np.asfortranarray(given.scale_a),
                            scale_b=np.asfortranarray(given.scale_b))
    room = np.full((4, 40), np.nan, "f4")  # as cuBLAS asks for: rows of a multiple of four
    room[:, :37] = given.scale_a.T
    padded = given._replace(scale_a=room[:, :37].T)
    first, *others = (run_on(problem, variant=variant, given=one)
                      for one in (given, across, padded))
    assert first.verdict.ok
    assert all(one.C.tobytes() == first.C.tobytes() for one in others)


def test_gaps_are_refused():
    with pytest.raises(ValueError, match="one product without gaps"):
        replace(with_scales(64, 64, 128), leads=(0, 144, 0))


@pytest.mark.parametrize("changes, words", [
    ({"K": 72}, "26_fp8 loads A in rows .*: K = 72 must be a multiple of 16"),
    ({"M": 2**31 - 100}, "M = 2147483548 passes"),
    ({"scaling": "vector"}, "two_parts takes scales by blocks, not vector"),
])
def test_what_it_can_t_compute_is_refused_in_one_line(changes, words):
    problem = replace(with_scales(64, 64, 128), **changes)
    name = "two_parts_float" if problem.out == "float32" else "two_parts"
    with pytest.raises(ValueError, match=words) as refused:
        plan(FP8, FP8.variant(name), problem)
    assert "\n" not in str(refused.value)


def test_matrices_that_begin_off_a_boundary_are_refused():
    with pytest.raises(ValueError, match="B must begin at a multiple of 16 bytes; copy it first"):
        plan(FP8, FP8.variants[0], with_scales(64, 64, 128), (256, 8, 16))


@pytest.mark.parametrize("name", ["two_parts", "vector_float"])
def test_rows_of_c_of_any_length_are_stored_by_lanes(name):
    variant = FP8.variant(name)
    done = clean(FP8, variant, problem_of(variant, 67, 131, 272, beta=-2.0), sms=1)
    assert done.plan.variant.schedule.staged == 0 and "rows of C, 131 elements" in done.plan.reason


@pytest.mark.parametrize("field", ["A", "scale_a", "scale_b"])
def test_arrays_of_another_shape_are_refused(field):
    problem = with_scales(64, 64, 256)
    given = problem.inputs()
    with pytest.raises(ValueError, match=f"{field} is .* the problem asks for"):
        run_on(problem, given=given._replace(**{field: getattr(given, field)[:-1]}))


def test_a_problem_says_what_it_is():
    problem = with_scales(3, 200, 300)
    assert problem.shapes_of_scales == ((3, 3), (3, 2))
    assert problem.flops == 2 * 3 * 200 * 300
    assert problem.compulsory_bytes == 3 * 300 + 200 * 300 + 4 * (9 + 6) + 2 * 3 * 200
    for wrong in ({"M": 0}, {"out": "float16"}, {"scaling": "rows"}, {"batch": 2},
                  {"b_layout": "row"}):
        with pytest.raises(ValueError):
            replace(problem, **wrong)


def test_bytes_are_the_numbers_of_ml_dtypes():
    import ml_dtypes

    codes = np.arange(256, dtype=np.uint8)
    numbers = codes.view(ml_dtypes.float8_e4m3fn).astype("f8")
    finite = ~np.isnan(numbers)
    np.testing.assert_array_equal(decoded(codes)[finite], numbers[finite])
    values = np.random.default_rng(1).random(20000, np.float32) * 2 - 1
    wanted = values.astype(getattr(ml_dtypes, DTYPE)).view(np.uint8)
    assert (encoded(values) == wanted).mean() > 0.999  # ties may go the other way


def test_products_of_two_steps_are_in_flight():
    """ptxas would wait for each wgmma (C7510) if it couldn't follow the accumulators."""
    code = [one.opcode for one in compile_kernel(FP8, FP8.variants[0], "sm_90a").sass]
    # Four each of the first step, of the two of a turn, and of one more.
    assert sum(name.startswith("QGMMA.64x128x32.F32.E4M3.E4M3") for name in code) == 16
    assert sum(name.startswith("WARPGROUP.DEPBAR") for name in code) == 5


@cases("""
name         | shape             | blocks
two_parts    | (129, 136, 128)   | 4
two_parts    | (4096, 4096, 128) | 132
tall_pairs   | (129, 136, 128)   | 2
tall_pairs   | (129, 264, 128)   | 4
tall_pairs   | (4096, 4096, 128) | 132
few_64       | (64, 4096, 128)   | 64
few_64_split | (64, 4096, 128)   | 128
few_128      | (128, 7168, 128)  | 112
""")
def test_blocks_are_as_many_as_tiles_or_sms(name, shape, blocks):
    variant = FP8.variant(name)
    assert plan(FP8, variant, problem_of(variant, *shape), (), 132).launch.grid == (blocks, 1, 1)


# -- mutants ------------------------------------------------------------------------------------

# By the instantiation that has what is changed: of two fragments for each warpgroup (staggered), in
# pairs, the second warpgroup a step behind; of a tile for a block (few).
MISTAKES = rows("""
name | mistake | file | old | new
two_parts | promotion left out | | promote<SCALES>(sum[0], from, scale);\\n\
                    before | before
two_parts | the last promotion left out | | release(before);\\n\
                    promote<SCALES>(sum[0], from, scale);\\n                };\\n\
                Share | release(before);\\n                };\\n                Share
two_parts | partial sums not begun anew | | ask(to, 0, false); | ask(to, 0, true);
two_parts | the neighbouring row's scale | | N, at.x, at.y, min(step \
 | N, at.x + 1, at.y, min(step
two_parts | the neighbouring columns' scale | | M, N, at.x, at.y, min(step \
 | M, N, at.x, max(0, at.y - 128), min(step
two_parts | a stage's scales late | | scales(at, step - 1 + AHEAD) | scales(at, step - 2 + AHEAD)
two_parts | the stage after's scales | | scales(at, step - 1 + AHEAD) | scales(at, step + AHEAD)
two_parts | scales read anew before they are exchanged |\
 | const Factors scale = exchanged<SCALES>(mine, 0);\\n\
                    mine = scales(at, step - 1 + AHEAD);\
 | mine = scales(at, step - 1 + AHEAD);\\n\
                    const Factors scale = exchanged<SCALES>(mine, 0);
two_parts | the wait for products left out | | wgmma_wait<1>();\\n\
                    release(before) | release(before)
two_parts | a stage let go before it is read | | wgmma_wait<1>();\\n\
                    release(before); | release(ring.stage);\\n\
                    wgmma_wait<1>();
two_parts | the wait for tiles left out | \
 | if (i == 0) mbarrier_wait(filled + 8 * ring.stage, ring.parity); |
two_parts | the wait for room left out | \
 | mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1); |
two_parts | both rows of a lane take the upper one's scale | scales | lower : upper) * part \
 | upper : upper) * part
two_parts | b's scale left out | scales | const float upper = scale.upper * scale.common, \
 | const float upper = scale.upper,
two_parts | a fragment's first products forgotten | | adds);\\n        }; | true);\\n        };
two_parts | the last 128 of K left out | | (K + BK - 1) / BK | K / BK
two_parts | the producer a step behind | | arrival, row, col, k); \
 | arrival, row, col, max(0, k - BK));
staggered | promotion left out | | promote<SCALES>(sum[i], part[0], scale); |
staggered | the first fragment's scales for both | | scale = exchanged<SCALES>(mine, i); \
 | scale = exchanged<SCALES>(mine, 0);
staggered | the fragments' scales from one place | scales | lane / 16 : 0; | 0 : 0;
staggered | a stage's scales late | | scales(at, step + AHEAD); | scales(at, step + AHEAD - 1);
staggered | the tile's scales for the next one's | | begin(t + TURNS * clusters); | begin(t);
staggered | scales read anew before both fragments have them | | i == FRAGMENTS - 1) mine = \
 | i == 0) mine =
staggered | a stage let go when half is read | | if (i == FRAGMENTS - 1) release(ring.stage); \
 | if (i == 0) release(ring.stage);
staggered | a stage let go for each fragment | | if (i == FRAGMENTS - 1) release(ring.stage); \
 | release(ring.stage);
staggered | the producer's parity | | ring.parity ^ 1);\\n                    MARK(LOAD) \
 | ring.parity);\\n                    MARK(LOAD)
staggered | room made by one block of a pair | | neighbours.SHARERS * CONSUMERS / TURNS \
 | CONSUMERS / TURNS
staggered | a pair that doesn't meet | | meet<CLUSTER>(); | __syncthreads();
staggered | a block that leaves its partner | | neighbours.stay(freed, ring); |
staggered | the second warpgroup never told | \
 | if (staggers && warpgroup == 0 && step + i == 0) barrier_arrive(5, 256); |
staggered | the second warpgroup told at each step |\
 | if (staggers && warpgroup == 0 && step + i == 0) | if (staggers && warpgroup == 0)
few_64 | promotion left out | | promote<SCALES>(sum, from, scale); |
few_64 | the last wait for products left out | | wgmma_wait<0>(); |
few_64 | products that still run promoted | | wgmma_wait<1>(); | wgmma_wait<2>();
few_64 | partial sums not begun anew | | Bs + ring.stage * B_BYTES, false); \
 | Bs + ring.stage * B_BYTES, true);
few_64 | a stage let go before its products end | | neighbours.release(freed + 8 * before); \
 | neighbours.release(freed + 8 * ring.stage);
few_64 | the producer's parity | | ring.parity ^ 1); | ring.parity);
few_64_split | the other block's scales | | min(rank_k + step * CLUSTER_K, \
 | min(step * CLUSTER_K,
few_64 | a later step's scales | | read(share_of, step + 4); | read(share_of, step + 5);
few_64 | the last step left out | | if (left == 4) finish(part[1], shares[3]); |
few_128_split | sums left where products still read | | barrier_sync(1, CONSUMERS * 128); |
few_128 | the second warpgroup's scales are the first's | | M, N, row0 + shift, col0, block \
 | M, N, row0, col0, block
ring | scales copied over those not yet read |\
 | mbarrier_wait(read + 8 * ring.stage, ring.parity ^ 1); |
ring | a stage full without its scales | | 1 + 32); | 1);
ring | one warp speaks for all that they have read | | 4 * CONSUMERS); | 1);
ring | the first step's scale of B for all | | of_b += b_k; |
ring | the first rows' scales for all warps | | row + warp % 4 * 16); | row);
ring | products that still run promoted | | wgmma_wait<0>(); | wgmma_wait<1>();
ring | a pair that doesn't meet | | meet<CLUSTER>(); | __syncthreads();
""")[1:]


@pytest.mark.parametrize("name, where, old, new", [
    pytest.param(name, *edit, id=f"{name}: {mistake}", marks=pytest.mark.slow if place % 2 else [])
    for place, (name, mistake, *edit) in enumerate(MISTAKES)])
def test_a_mistake_is_found_out(name, where, old, new):
    variant = FP8.variant(name)
    edit = (each.replace("\\n", "\n") for each in (old, new))
    assert planted(variant, changed(FP8.file(variant).read_text(), where, *edit))


def changed(text: str, where: str, old: str, new: str) -> str:
    """A kernel's text with a line changed: its own, or one of scales.cuh."""
    if not where:
        return edited(text, old, new)
    header = (FP8.source.parent / "include" / "scales.cuh").read_text()
    return edited(text, '#include "scales.cuh"',
                  edited(header, old, new).replace("#pragma once", ""))


def fewer_stages(variant):
    """The same with a ring that K goes round; where K is shared, with room for a tile's sums."""
    return variant.scheduled(stages=2 if variant.schedule.split == 1 else 4)


def planted(variant, source: str) -> str:
    """What shows that a changed source is wrong."""
    rows, columns = variant.tile
    shape = {"two_parts": (66, 136, 400), "staggered": (258, 136, 400)}.get(
        variant.name, (rows + 2, columns + 8, 912))
    less = fewer_stages(variant)
    small = partial(run_on, problem_of(less, *shape), variant=less, sms=variant.grid.size,
                    source=source)
    # The other schedules find nothing that these don't.
    return found_out(small, {"races": False}, {"races": True} | LATE)


@pytest.mark.parametrize("name", ["two_parts", "staggered", "ring", "few_64", "few_64_split",
                                  "few_128", "few_128_split"])
def test_what_is_not_changed_is_not_found_out(name):
    variant = FP8.variant(name)
    assert not planted(variant, FP8.file(variant).read_text())


@pytest.mark.parametrize("name, every", [
    (TEMPLATES[0], False), *(pytest.param(name, True, marks=pytest.mark.slow)
                             for name in TEMPLATES)])
def test_mutants_are_found_out(name, every, table, monkeypatch):
    small = fewer_stages(FP8.variant(name))
    compiled = compile_kernel(FP8, small, "sm_90a", ptx_only=True)
    rows, columns = small.tile
    runs = on_changed(runner, monkeypatch, [
        partial(run_on, problem_of(small, rows - 3, 3 * columns - 8, 3 * 128 - 64, beta=beta),
                variant=small, sms=small.grid.size) for beta in (-2.0, 0.0)])
    table.check(f"26_fp8 {name}", [(compiled.ptx, compiled.name, runs)], one_of_a_kind=not every)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [one.name for one in FP8.measured if one.out == "float32"])
def test_the_gpu_s_bits_are_the_emulator_s(name):
    variant = FP8.variant(name)
    problem = problem_of(variant, 130, 136, 1040)
    given = problem.inputs(7)  # NumPy's: CuPy's generator draws other numbers
    theirs, mine = (run_on(problem, variant=variant, backend=where, given=given)
                    for where in ("gpu", "emulator"))
    assert theirs.verdict.ok and mine.verdict.ok
    assert theirs.C.tobytes() == mine.C.tobytes()
