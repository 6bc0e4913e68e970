"""Every kernel in the emulator: right on every shape and scalar, free of races, and its faults
are found when they are put in on purpose."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lib.compiler.compiled import Compiled
from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.kernels.spec import Vectors
from lib.problem import Problem
from lib.run import runner
from lib.run.prepared import arguments
from lib.run.runner import run
from tests.kernels.conftest import (
    ALIKE,
    ALPHAS,
    BETAS,
    ON_ARCHITECTURES,
    REPRESENTATIVES,
    SCALARS,
    SHAPES,
    VARIANTS,
    architectures,
    by_kernel,
    clean,
    dealt,
    legal,
    one_in,
    slow_but,
    smallest_of_each,
)

TILE = CATALOGUE["02_shared_tile"]


def check(kernel, variant, shape, scalars):
    """Run a variant on a shape with some pairs of scalars."""
    for alpha, beta in scalars:
        problem = variant.problem(*legal(variant, *shape), alpha, beta)
        verdict = run(kernel, problem, variant=variant, backend="emulator", trace=False,
                      exact=True).verdict
        assert verdict.ok, f"α = {alpha}, β = {beta}: {verdict}"


RAGGED, SHORT = (100, 99, 101), (31, 33, 1)


def scalars(place, shape):
    """The pairs of scalars that a kernel is run with on one of the shapes.

    They enter behind the loop over K. So one without any K has each β, and the others 0, for which
    there may be code of its own, and, where there is little to multiply, another; the pairs change
    from shape to shape. Where the order of warps is tried, all have a β that isn't 0.
    """
    betas = (0.0, BETAS[1 + place % 3])
    if shape[2] == 0:
        betas = BETAS
    elif shape in SHAPES[:2]:
        betas = (0.0,)
    return [(ALPHAS[(place + i) % len(ALPHAS)], beta) for i, beta in enumerate(betas)]


@pytest.mark.parametrize("kernel, variant, shape", [
    # Dealt, so that each kernel is run on each, by as many variants as there are shapes; each
    # variant is ragged in the orders of warps, too.
    pytest.param(*param.values, shape, id=f"{param.id}-{shape}") for param, shape in dealt(
        [param for place, _, param in by_kernel(REPRESENTATIVES) if place < len(SHAPES)],
        list(SHAPES), 1)
])
def test_right_on_every_shape(kernel, variant, shape):
    check(kernel, variant, shape, scalars(SHAPES.index(shape), shape))


# Each α with two β, and each β with two α, both 0 among them: they meet in one sum.
EACH_TWICE = [(alpha, BETAS[(i + more) % len(BETAS)])
              for i, alpha in enumerate(ALPHAS) for more in (0, 1)]


@pytest.mark.parametrize("kernel, variant", [
    param for place, _, param in by_kernel(REPRESENTATIVES) if place == 0
])
def test_right_with_every_scalar(kernel, variant):
    check(kernel, variant, SHORT, EACH_TWICE)


@pytest.mark.slow
@pytest.mark.parametrize("kernel, variant", ALIKE)
def test_variants_of_other_sizes_are_right(kernel, variant):
    """On a shape whose tiles are all ragged, and on one that is smaller than any tile."""
    check(kernel, variant, RAGGED, [(0.5, -2.0)])
    check(kernel, variant, SHORT, [(-2.0, 0.0), (1.0, 0.5)])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kernel, variant", VARIANTS)
def test_right_on_every_shape_with_every_scalar(kernel, variant, shape):
    check(kernel, variant, shape, SCALARS)


def different_codes(kernel, variant, among):
    """Architectures for which the PTX is another, but for the line that names the architecture."""
    codes = {}
    for arch in among:
        code = compile_kernel(kernel, variant, arch, ptx_only=True).ptx
        codes.setdefault(re.sub(r"^\.target .*$", "", code, flags=re.MULTILINE), arch)
    return list(codes.values())


def raced(kernel, variant, K, arch, schedule):
    """Run a variant in some order of warps; return its result, which is right and without races."""
    problem = variant.problem(*legal(variant, 40, 50, K), 0.5, -2.0)
    return clean(kernel, variant, problem, arch=arch, schedule=schedule).C


def chosen(kernel, variant):
    """The instantiation that `raced` launches."""
    problem = variant.problem(*legal(variant, 40, 50, 70), 0.5, -2.0)
    return plan(kernel, variant, problem, exact=True).variant


def once_round(variant):
    """K, the last step cut short, so that each buffer of the ring is filled again; at most 70."""
    buffers = max(int(variant.constants.get(name, 2)) for name in ("STAGES", "BUFFERS"))
    return min(70, (buffers + 2) * variant.step - variant.step // 2 if variant.step > 1 else 35)


@pytest.mark.parametrize("place, kernel, variant", [
    pytest.param(place, *param.values, id=param.id)
    for place, _, param in by_kernel(REPRESENTATIVES)
])
def test_right_and_race_free_in_several_orders_of_warps(place, kernel, variant):
    """In a random one, every sixth variant in one more, whose result is the same to the bit.

    The first of a kernel as compiled for the newest architecture, too, where that is other code.
    """
    K = once_round(variant)
    oldest = kernel.oldest(variant)
    C = raced(kernel, variant, K, oldest, "random")
    if place % 6 == 0:
        order = ("lowest", "highest")[(list(KERNELS).index(kernel.stem) + place // 6) % 2]
        assert (raced(kernel, variant, K, oldest, order) == C).all()
    if place == 0:
        own = architectures(kernel, variant)
        for arch in different_codes(kernel, chosen(kernel, variant), (oldest, own[-1]))[1:]:
            raced(kernel, variant, K, arch, "random")


@pytest.mark.slow
@pytest.mark.parametrize("kernel, variant", VARIANTS)
def test_race_free_in_every_order_of_warps_on_every_architecture(kernel, variant):
    among = architectures(kernel, variant)
    for arch in different_codes(kernel, chosen(kernel, variant), among):
        first, *others = (raced(kernel, variant, 70, arch, schedule)
                          for schedule in ("lowest", "highest", "random"))
        assert all((C == first).all() for C in others)


WIDE = [pytest.param(k, v, id=f"{k.stem}-{v.name}")
        for k in CATALOGUE.values() for v in k.measured if v.vectors.narrow]


# Each kernel meets each, so vectors of C that are read and such that are not.
ROWS_THAT_FIT = {(100, 100, 36): [(0.5, -2.0)], (33, 132, 20): [(1.0, 0.0)],
                 (1, 4, 4): [(1.0, 0.0), (0.5, -2.0)], (130, 260, 12): [(0.5, -2.0)]}


@pytest.mark.parametrize("kernel, variant, shape", [
    pytest.param(*param.values, shape, id=f"{param.id}-{shape}")
    for place, param in enumerate(smallest_of_each(WIDE))
    for shape in [list(ROWS_THAT_FIT)[place % len(ROWS_THAT_FIT)]]
])
def test_vectors_are_right_where_rows_fit_them_and_tiles_do_not(kernel, variant, shape):
    M, N, K = shape
    more = variant.schedule.vec // 4
    for alpha, beta in ROWS_THAT_FIT[shape]:
        done = clean(kernel, variant, M, N * more, K * more, alpha, beta)
        assert done.plan.variant is variant


@pytest.mark.slow
@pytest.mark.parametrize("kernel, variant", [
    param for param in WIDE if param not in smallest_of_each(WIDE)
])
def test_vectors_of_other_sizes_are_right_at_ragged_tiles(kernel, variant):
    more = variant.schedule.vec // 4
    done = clean(kernel, variant, 100, 100 * more, 36 * more, 0.5, -2.0)
    assert done.plan.variant is variant


@pytest.mark.parametrize("kernel, variant", [
    param for place, _, param in by_kernel(smallest_of_each(WIDE)) if place == 0
])
def test_a_run_says_which_instantiation_was_launched(kernel, variant):
    problem = variant.problem(8, 10, 8)
    done = run(kernel, problem, variant=variant, backend="emulator", exact=True, trace=False)
    assert done.verdict.ok and done.variant is variant
    assert done.plan.reason == f"N = 10 is no multiple of {variant.schedule.vec}"
    changed = {"vec": 2} if 2 in variant.vectors.between else variant.vectors.narrow
    assert done.plan.variant == variant.scheduled(**changed)
    done = run(kernel, variant.problem(8, 11, 8), variant=variant, backend="emulator", trace=False)
    assert done.verdict.ok and done.plan.variant.schedule.vec == 1


ALONG_K = [p for p in WIDE if p.values[0].group == "FP32" and "K" in p.values[1].vectors.along]


@pytest.mark.parametrize("kernel, variant", slow_but(ALONG_K, [
    p for p in one_in(3, [p for p in ALONG_K if p in REPRESENTATIVES]) if not p.marks
]))
def test_vectors_save_requests_and_no_sectors(kernel, variant):
    narrower = replace(variant.scheduled(**variant.vectors.narrow), vectors=Vectors())
    wide, narrow = (
        run(kernel, Problem(128, 256, 64), variant=v, backend="emulator").launch.trace.counters()
        for v in (variant, narrower)
    )
    for kind in ("load", "store"):
        assert narrow[f"global_{kind}_requests"] == 4 * wide[f"global_{kind}_requests"]
    assert narrow["global_load_sectors"] == wide["global_load_sectors"]
    assert wide["shared_wavefronts"] == wide["shared_wavefronts_ideal"]


@pytest.mark.parametrize("kernel, variant, arch", [
    param for param in ON_ARCHITECTURES
    if param.values[0].stem == "09_fp32_limit" and param.values[1] in param.values[0].variants
])
def test_fp32_limit_conflicts_with_no_bank_and_spills_nothing(kernel, variant, arch):
    done = run(kernel, Problem(128, 256, 64), variant=variant, backend="emulator", arch=arch,
               exact=True)
    # Not the asynchronous copies: the hardware counts theirs by a rule of its own.
    threads_own = [site for site in done.launch.trace.sites
                   if site.space == "shared" and site.kind in ("load", "store")]
    assert sum(site.requests for site in threads_own) > 1000
    assert all(site.wavefronts == site.ideal for site in threads_own)
    assert done.compiled.resources.spill_store_bytes == 0


def test_large_k_stays_under_the_tolerance():
    assert run(TILE, Problem(32, 32, 4096), backend="emulator").verdict.error < 1e-5


@pytest.mark.parametrize("kernel, variant", one_in(4, REPRESENTATIVES))
def test_beta_zero_never_reads_c(kernel, variant, monkeypatch):
    """Neither its values nor its memory: only A and B are loaded from."""
    # What ptxas made of it only matters for counters; without it there need be no machine code.
    monkeypatch.setattr(Compiled, "merge", {})
    monkeypatch.setattr(Compiled, "ffma", {})
    monkeypatch.setattr(runner, "compile_kernel",
                        lambda *given, **more: compile_kernel(*given, **more | {"ptx_only": True}))
    problem = variant.problem(*legal(variant, 33, 34, 35))
    done = run(kernel, problem, variant=variant, backend="emulator", watch=(0, 0), exact=True)
    assert done.verdict.ok
    C = next(a for a in done.launch.allocations if a.argument == 7)
    for site in done.launch.trace.sites:
        if site.kind == "load" and site.space == "global" and site.requests:
            for access in done.launch.trace.watched[site.line]:
                seen = access.addresses[access.active]
                assert not ((seen >= C.base) & (seen < C.base + C.nbytes)).any()


def test_a_run_that_is_not_counted_gives_the_same_and_disassembles_nothing(monkeypatch):
    problem = Problem(40, 50, 70, 0.5, -2.0)
    counted = run(TILE, problem, backend="emulator")
    monkeypatch.setattr("lib.compiler.compiled.disassemble", None)
    source = TILE.source.read_text() + "\n// not compiled before, so not disassembled before\n"
    quick = run(TILE, problem, backend="emulator", source=source, trace=False)
    assert (quick.C == counted.C).all() and quick.launch.trace is None


def test_operands_of_the_wrong_kind_are_refused():
    problem = Problem(4, 4, 4)
    A, B, C = problem.inputs()
    with pytest.raises(ValueError, match="A holds float64"):
        arguments(problem, A.astype(np.float64), B, C, TILE.fastest, {})
    with pytest.raises(ValueError, match="B is not row-major"):
        arguments(problem, A, np.asfortranarray(B), C, TILE.fastest, {})
    with pytest.raises(ValueError, match="C is"):
        arguments(problem, A, B, C[:3], TILE.fastest, {})
