"""28 with block scales: what is rounded, where scales lie, right and silent products."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import find
from lib.kernels.grid import Line
from lib.kernels.source import edited
from lib.problem import with_scales
from lib.problem.scales import FORMATS, atoms, quantised, values
from lib.ptx.mutants import SETTINGS
from lib.run import runner
from tests.kernels.conftest import clean, found_out, on_changed
from tools.mutation import Equivalent

PAIRS = find("28_cta_pairs")
run = partial(runner.run, PAIRS, backend="emulator", races=True, trace=False)


def problem_of(M, N, K, alpha=1.0, beta=0.0, *, out="float32", scaling="mxfp8"):
    return with_scales(M, N, K, alpha, beta, out=out, scaling=scaling)


def small(name, **own):
    """A variant with a ring of two stages."""
    variant = PAIRS.variant(name)
    return variant.scheduled(stages=2, own={**variant.schedule.own, **own})


# -- what is rounded


def test_mxfp8_s_scale_is_the_power_of_two_that_the_ocp_s_specification_says():
    """2^(floor(log2 of the largest) − 8); what is then over 448 is cut off."""
    form = FORMATS["mxfp8"]
    row = np.zeros((1, 96))
    row[0, :3], row[0, 32], row[0, 40] = (1.0, -0.5, 0.3), 1.9, 0.25
    found = quantised(row, form)
    assert found.scales.tolist() == [[127 - 8, 127 - 8, 127]]
    back = values(found, form)[0]
    assert back[:2].tolist() == [1.0, -0.5] and abs(back[2] - 0.3) <= 0.3 / 16
    assert back[32] == 448 / 256 and back[40] == 0.25 and not back[64:].any()


def test_nvfp4_s_scale_makes_the_largest_six():
    form = FORMATS["nvfp4"]
    row = np.zeros((1, 32))
    row[0, :4], row[0, 16] = (6.0, -3.0, 1.4, 0.2), 0.75
    found = quantised(row, form)
    assert found.codes.shape == (1, 16) and found.codes[0, 0] == 0x7 | 0xD << 4  # 6, −3
    assert values(found, form)[0, [0, 1, 2, 3, 16]].tolist() == [6.0, -3.0, 1.5, 0.0, 0.75]
    assert found.scales[0, 0] == 0x38  # 1 in E4M3


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_rounding_loses_no_more_than_the_format_has_bits(form):
    drawn = np.random.default_rng(1).normal(size=(5, 4 * form.unit))
    lost = np.abs(values(quantised(drawn, form), form) - drawn)
    largest = np.abs(drawn).reshape(5, -1, form.block).max(axis=2).repeat(form.block, axis=1)
    assert (lost <= largest * (0.125 if form.name == "mxfp8" else 0.25)).all()


def test_an_atom_has_row_r_at_byte_16_r_mod_32_plus_4_r_by_32():
    rng = np.random.default_rng(2)
    scales = rng.integers(0, 256, (300, 9)).astype(np.uint8)
    laid = atoms(scales).view(np.uint8)
    assert laid.shape == (3 * 3, 512)
    for row, block in zip(rng.integers(0, 300, 50), rng.integers(0, 9, 50), strict=True):
        r = row % 128
        byte = r % 32 * 16 + r // 32 * 4 + block % 4
        assert laid[row // 128 * 3 + block // 4, byte] == scales[row, block]
    assert laid.sum(dtype=int) == scales.sum(dtype=int)


# -- products


# One format in two orders, the other, which differs in the scales alone, in one.
@pytest.mark.parametrize("name, options", [
    pytest.param(name, options, id=f"{name}-{options}",
                 marks=pytest.mark.slow if place > (name == "mxfp8") else ())
    for name in ("mxfp8", "nvfp4") for place, options in enumerate(reversed(SETTINGS))
])
def test_pairs_walk_through_ragged_tiles(name, options):
    """The ring and both accumulators come round; K ends within a step, and within an atom."""
    unit = FORMATS[name].unit
    problem = problem_of(330, 264, 18 * unit, 0.75, -0.5, scaling=name)
    clean(PAIRS, small(name), problem, **options)


# Each variant with two of them in turn.
@pytest.mark.parametrize("variant, steps", [
    pytest.param(variant, steps, id=f"{variant.name}-{steps}",
                 marks=[pytest.mark.slow] if (place + steps) % 3 == 0 else [])
    for place, variant in enumerate(PAIRS.laid) for steps in (0, 1, 5)
])
def test_each_variant_takes_every_k_and_beta(variant, steps):
    unit = FORMATS[variant.scaling].unit
    for beta in {0: (0.0, -2.0), 1: (0.0,), 5: (-2.0,)}[steps]:  # with 0, C holds NaN
        problem = variant.problem(3, 264, steps * unit, -1.5, beta)
        clean(PAIRS, variant, problem, landing="late")


@pytest.mark.parametrize("control", [False, True])
def test_pairs_are_as_many_as_fit_or_as_there_are_tiles(control):
    variant = PAIRS.variant("mxfp8")
    if not control:
        variant = replace(variant, grid=Line(2, blocks_per_sm=1),
                          schedule=variant.schedule.with_own(CONTROL=False))
    problem = problem_of(700, 400, 64)
    assert plan(PAIRS, variant, problem, sms=6).launch.grid == ((2 * 3 * 4 if control else 6), 1, 1)
    clean(PAIRS, variant, problem, sms=2)


def test_scales_of_other_rows_reach_no_one():
    """Behind an atom that K leaves unfilled lie those of the next rows: NaN there stays there."""
    problem, variant = problem_of(256, 8, 96, scaling="nvfp4"), PAIRS.variant("nvfp4")
    given = problem.inputs()
    scales = given.scale_a.copy()
    scales[128:] = 0x7F  # NaN
    done = run(problem, variant=variant, given=given._replace(scale_a=scales))
    clean = run(problem, variant=variant, given=given)
    assert np.isnan(done.C[128:]).all()
    assert (done.C[:128] == clean.C[:128]).all()


@pytest.mark.parametrize("name, shape, rule", [
    ("mxfp8", (8, 8, 24), "K = 24 must be a multiple of 16"),
    ("nvfp4", (8, 8, 48), "K = 48 must be a multiple of 32"),
    ("mxfp8", (8, 6, 32), "C's columns = 6 must be a multiple of 4"),
    ("mxfp8_bfloat16", (8, 12, 32), "C's columns = 12 must be a multiple of 8"),
], ids=str)
def test_rows_that_tma_can_not_step_over_are_refused(name, shape, rule):
    variant = PAIRS.variant(name)
    with pytest.raises(ValueError, match=rule):
        plan(PAIRS, variant, variant.problem(*shape))


def test_what_no_variant_takes_is_refused():
    with pytest.raises(ValueError, match="scaling 'mxfp6' is unknown"):
        problem_of(8, 8, 8, scaling="mxfp6")


def test_tensor_memory_has_room_for_the_scales_of_each_stage():
    for variant in PAIRS.laid:
        given = variant.constants
        each = (1 + variant.tile[1] // 128) * (1 if given["Format"] == "Mxfp8" else 4) * 4
        used = given["ACCUMULATORS"] * variant.tile[1] + given["STAGES"] * each
        assert used <= 512
        assert compile_kernel(PAIRS, variant).resources.spill_store_bytes == 0


# -- mistakes


@pytest.mark.parametrize("name", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("old, new", [
    ("ACCUMULATORS * BN + ring.stage * SCALE_COLUMNS;", "ACCUMULATORS * BN;"),
    ("2 * (A_BYTES + B_BYTES + SCALE_BYTES)", "2 * (A_BYTES + B_BYTES)"),
    ("row / 128 * atoms + atom", "atom"),
    ("from + ((1 + n) * ATOMS + i) * SCALE_ATOM", "from + i * SCALE_ATOM"),
], ids=["one place for scales", "scales not expected", "scales of other rows", "A's scales for B"])
def test_a_planted_mistake_is_found(name, old, new):
    problem = problem_of(300, 136, 20 * FORMATS[name].unit, scaling=name)
    source = edited(PAIRS.file(small(name)).read_text(), old, new)
    assert found_out(partial(run, problem, variant=small(name), source=source), {"landing": "late"})


EQUIVALENTS = (
    Equivalent(
        ".*", r"bar\.warp\.sync", "__syncwarp",
        "as in 27: in the emulator the lanes of a warp go together",
    ),
    Equivalent(
        ".*", r"barrier\.cluster\.arrive\.release; → barrier\.cluster\.arrive\.rel", "",
        "the first meeting of the cluster only says that both blocks run; what came before it the "
        "second one releases too",
    ),
)


@pytest.mark.parametrize("name, every", [
    ("mxfp8", False), *(pytest.param(name, True, marks=pytest.mark.slow) for name in FORMATS)])
def test_mutants_are_found_out_or_equivalent(name, every, table, monkeypatch):
    variant = small(name)
    compiled = compile_kernel(PAIRS, variant, "sm_100a", ptx_only=True)
    problem = variant.problem(253, 9 * 128 - 8, 12 * FORMATS[name].unit, 0.5, -2.0)
    runs = on_changed(runner, monkeypatch, [
        partial(runner.run, PAIRS, problem, variant=variant, backend="emulator", trace=False)])
    table.check(f"28_cta_pairs {name}", [(compiled.ptx, compiled.name, runs)],
                one_of_a_kind=not every)
