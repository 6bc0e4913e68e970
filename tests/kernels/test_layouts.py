"""22 to 24, the rule and 09's step on all layouts, types, gaps and batches, with poison around C.

The cases are dealt with a stated seed. What the code was written against is `SEEN`; `HELD_OUT` was
drawn by another seed and first run when it was finished.
"""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from lib.dispatch.fit import laid
from lib.dispatch.plan import plan
from lib.kernels import hopper
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, RULES
from lib.problem import Problem, numpy_dtype
from lib.run import prepared
from lib.run.runner import emulate, run
from tests.tables import cases, settings

RULE, LIMIT, STREAM_K = RULES["hopper"], CATALOGUE["09_fp32_limit"], CATALOGUE["23_stream_k"]
TYPES = [("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"),
         ("bfloat16", "bfloat16")]
LAYOUTS = list(itertools.product(("row", "column"), repeat=2))
# A name of the rule's, and the rows of its tile: what each template has instantiations for.
WAYS = ["22_few_tiles/64x64x8_1x1x4", "22_few_tiles/64x128x9_2x1x1", "22_few_tiles/64x64x14_1x2x1",
        "22_few_tiles/16x128x12_1x1x1_swapped", "22_few_tiles/16x64x16_2x2x2_swapped",
        "24_any_row/64x64x4_1x4", "24_any_row/64x64x4_3x2", "24_any_row/24x64x6_3x1_swapped"]
PERSISTENT = ["23_stream_k/ping_pong", "23_stream_k/wide", "22_few_tiles/swapped_160"]


def drawn(seed, count, ways, fp32=False):
    """Cases, each a variant's name and a problem: layouts, types, gaps and batches in turn."""
    choose = random.Random(seed)
    found = []
    kinds = list(itertools.product(LAYOUTS, [("float32", "float32")] if fp32 else TYPES))
    choose.shuffle(kinds)
    for number in range(count):
        (a, b), (dtype, out) = kinds[number % len(kinds)]
        own = ways if a == "row" else [way for way in ways if "swapped" not in way]
        M, N, K = (choose.choice([1, 7, 33, 64, 70, 96, 129]) for _ in range(3))
        M, K = min(M, 96), choose.choice([K, K, K, 200, 200, K, K, 0])
        if choose.random() < 0.5:
            M, N, K = (8 * -(-n // 8) for n in (M, N, K))
        batch = choose.choice([1, 1, 2, 3])
        problem = Problem(M, N, K, *choose.choice([(1.0, 0.0), (0.5, -2.0)]), dtype=dtype, out=out,
                          a_layout=a, b_layout=b)
        more = choose.choice([0, 1, 8])
        leads = tuple(one.length + more if choose.random() < 0.6 else 0 for one in problem.operands)
        gaps = replace(problem, leads=leads, batch=batch)
        if batch > 1 and choose.random() < 0.5:
            steps = [one.lines * one.lead + choose.choice([0, 3, 8]) for one in gaps.operands]
            steps[choose.randrange(2)] *= choose.choice([0, 1])  # one that all products share
            gaps = replace(gaps, strides=tuple(steps))
        found.append(pytest.param(own[number % len(own)], gaps, id=f"{number}"))
    return found


SEEN, HELD_OUT = drawn(35, 16, WAYS), drawn(1035, 8, WAYS)
SLOW = drawn(2035, 200, WAYS + PERSISTENT)


def right(kernel, variant, problem, **options):
    """Run it with races watched; C must be right, and what lies between its rows untouched."""
    chosen = plan(kernel, variant, problem, exact=not variant.candidates, sms=options.get("sms"))
    matrices = problem.inputs(seed=7)
    (steps,) = prepared.lay_out(chosen, problem, [matrices])
    reference = problem.reference(*matrices)
    C = matrices[2]
    for step in steps:
        code = compile_kernel(kernel, step.variant, kernel.oldest(step.variant), ptx_only=True)
        done = emulate(code, step.launch, step.arguments, trace=False, races=True)
        assert not done.hazards, done.hazards[0]
    verdict = problem.judge(C, reference)
    assert verdict.ok, verdict
    one = problem.operand("C")
    if not problem.plain:
        places = np.zeros(one.span, bool)
        index = sum(np.arange(n).reshape(-1, *(1,) * behind) * step for n, step, behind in zip(
            one.shape, one.steps, range(len(one.shape) - 1, -1, -1), strict=True))
        places[index.ravel()] = True
        poison = np.full(1, np.nan).astype(numpy_dtype(problem.out)).view(np.uint8)
        between = C.base.view(np.uint8).reshape(one.span, -1)[~places]
        assert (between == poison).all(), "written between rows of C"
    return chosen


@pytest.mark.parametrize("name, problem", SEEN + HELD_OUT)
def test_every_layout_type_gap_and_batch(name, problem):
    chosen = right(RULE, RULE.variant(name), problem)
    assert chosen.variant.a_layout == problem.a_layout
    assert chosen.variant.strided == (
        not problem.plain if chosen.variant.warps_read else not problem.operand("C").tight)


@pytest.mark.slow
@pytest.mark.parametrize("name, problem", SLOW)
def test_many_more(name, problem):
    right(RULE, RULE.variant(name), problem, sms=4)


@pytest.mark.parametrize("name, problem", drawn(35, 6, [""], fp32=True))
def test_fp32_in_every_layout(name, problem):
    right(LIMIT, LIMIT.variant("any_layout"), problem)


@cases("""
name     | size
1x128_8  | (2, 133, 300)
8x128_2  | (9, 132, 130)
16x128_1 | (17, 8, 70)
32x64_4  | (33, 60, 200)
64x128_2 | (70, 136, 40)
128x4_4  | (130, 3, 200)
128x8_1  | (120, 12, 77)
128x32_2 | (129, 40, 96)
128x48_1 | (5, 49, 33)
""")
def test_fp32_in_every_tile_beside_09(name, size):
    """A row, column or step past the tile; K that blocks and warps share, some of whom have none.
    """
    right(LIMIT, LIMIT.variant(name), Problem(*size, 0.5, -2.0))
    right(LIMIT, LIMIT.variant(name), Problem(*size[:2], 5, a_layout="column", b_layout="column"))


@pytest.mark.parametrize("rows", [72, 88, 104, 112, 120, 136, 144, 152, 168, 184, 200, 208])
@pytest.mark.parametrize("prefix, types", [("", {}), ("bf16_", hopper.BF16_COLUMN)])
def test_rows_that_the_file_of_22_leaves_out(rows, prefix, types):
    name = next(one for one in (f"22_few_tiles/{each.name}" for each in hopper.rows_of_22(
        prefix)) if one.startswith(f"22_few_tiles/{prefix}{rows}x64"))
    chosen = right(RULE, RULE.variant(name), Problem(rows - 3, 72, 72, 0.5, -2.0, **{
        "dtype": "float16", **types}))
    assert chosen.variant.file == "22_few_tiles_rows" and chosen.variant.tile[0] == rows


@pytest.mark.parametrize("name, a", [*((name, "column") for name in PERSISTENT[:2]),
                                     *((name, "row") for name in PERSISTENT)])
def test_persistent_blocks_go_on_from_one_product_to_the_next(name, a):
    problem = Problem(136, 264, 128, 0.5, -2.0, dtype="float16", a_layout=a, batch=2,
                      leads=(144 if a == "column" else 0, 0, 267))
    right(RULE, RULE.variant(name), problem, sms=2)


def test_tiles_of_a_batch_s_last_wave_are_cut():
    cut = hopper.stream_k("cut", "", hopper.OF_21["ping_pong"], stream_k_share=2)
    problem = Problem(136, 264, 200, 0.5, -2.0, dtype="bfloat16", out="bfloat16",
                      a_layout="column", batch=2, leads=(0, 0, 265))
    chosen = right(STREAM_K, cut, problem, sms=10)
    assert chosen.workspace.scalars[0] > 0


@pytest.mark.parametrize("a, b", LAYOUTS)
def test_the_rule_takes_every_layout_and_says_what_it_packs(a, b):
    variant = RULE.variant("any_layout")
    problem = Problem(200, 304, 1000, dtype="bfloat16", out="float32", a_layout=a, b_layout=b)
    fits = plan(RULE, variant, problem)
    assert not fits.packing and not fits.variant.warps_read
    assert (fits.variant.a_layout, fits.variant.b_layout) == (a, b)
    odd = plan(RULE, variant, replace(problem, leads=(1001 if a == "row" else 201, 0, 0)))
    assert odd.variant.warps_read or (
        "A is packed: its" in odd.reason and "elements apart" in odd.reason)


def test_an_operand_that_all_products_share_is_packed_once():
    variant = RULE.variant("22_few_tiles/64x64x8_1x1x4")
    problem = Problem(64, 64, 61, dtype="float16", batch=5, strides=(0, 61 * 64, 64 * 64))
    chosen = plan(RULE, variant, problem, exact=True)
    (name, copy), = chosen.packing.items()
    assert name == "A" and copy.grid[1] * copy.block[1] == 64


REFUSED = {
    "takes A by columns only in tiles whose rows are multiples of 64":
        (RULE, "22_few_tiles/16x128x12_1x1x1_swapped", {"a_layout": "column"}),
    "takes one product at a time, not 2": (RULE, "21_clusters/wide", {"batch": 2}),
    "takes C with its rows one behind the other, not 72 apart":
        (RULE, "20_persistent/one_wave", {"leads": (0, 0, 72)}),
    "takes B in layout row, not column": (RULE, "tuned", {"b_layout": "column"}),
    "takes A in layout row, not column": (CATALOGUE["15_turing_limit"], None,
                                          {"a_layout": "column"}),
    "takes A with its rows one behind the other, not 72 apart":
        (CATALOGUE["16_cp_async"], None, {"leads": (72, 0, 0)}),
    "takes A and B in float32, not float16": (LIMIT, "any_layout", {}),
    "a 32-bit index holds less": (RULE, "any_layout", {"leads": (0, 0, 1 << 31)}),
    "tiles in 100000000 products and there may be":
        (RULE, "22_few_tiles/64x64x8_1x1x4", {
            "batch": 10 ** 8, "M": 640, "N": 640, "strides": (0, 0, 640 * 640)}),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_a_variant_does_not_take_is_refused_in_one_line(said):
    kernel, name, changes = REFUSED[said]
    problem = replace(Problem(64, 64, 64, dtype="float16"), **changes)
    with pytest.raises(ValueError) as refused:
        plan(kernel, kernel.variant(name), problem, exact=name != "any_layout" or kernel is LIMIT)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@cases("""
changes                          | said
leads=63 0 0                     | A's rows have 64 elements and lie 63 apart: they overlap
batch=2, strides=4096 4096 4095  | C's matrices lie 4095 elements apart: they overlap
batch=2, strides=-1 4096 4096    | A's matrices lie -1 elements apart
batch=0                          | a batch of 0
a_layout=diagonal                | layout 'diagonal' is unknown
""")
def test_a_problem_that_is_none_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        Problem(64, 64, 64, **settings(changes))


def test_a_problem_has_one_name():
    """Leads and strides that say nothing new are not kept: equal problems have equal plans."""
    plain = Problem(8, 16, 24)
    assert replace(plain, leads=(24, 16, 16), strides=(1, 2, 3)) == plain
    batch = replace(plain, batch=2)
    assert replace(batch, strides=(8 * 24, 16 * 24, 8 * 16)) == batch
    assert replace(plain, M=1, leads=(99, 0, 99)) == replace(plain, M=1)


def test_products_of_a_batch_may_lie_line_by_line():
    """As PyTorch's heads of attention do: the next product is the next part of the same row."""
    problem = Problem(40, 32, 48, dtype="float16", batch=3, leads=(3 * 48, 3 * 32, 3 * 32),
                      strides=(48, 32, 32))
    right(RULE, RULE.variant("22_few_tiles/64x64x8_1x1x4"), problem)
    right(RULE, RULE.variant("24_any_row/64x64x4_1x4"), problem)


def test_a_shape_that_is_no_layout_s_keeps_its_instantiation():
    """Gaps in A and B are the tensor maps' alone: nothing is compiled for them."""
    variant = RULE.variant("22_few_tiles/64x64x8_1x1x4")
    problem = Problem(64, 64, 64, dtype="float16", leads=(72, 80, 0))
    assert laid(variant, problem).template == variant.template
    assert RULE.expression(laid(variant, problem)) == RULE.expression(variant)


def test_runs_take_layouts_too():
    problem = Problem(33, 40, 64, dtype="float16", out="float16", a_layout="column", batch=2)
    done = run(RULE, problem, variant=RULE.variant("any_layout"), backend="emulator", trace=False)
    assert done.verdict.ok and done.C.shape == (2, 33, 40)
