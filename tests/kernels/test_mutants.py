"""Every kernel of the catalogue without each of its barriers, waits, fences and commits in turn.

The table of mutants and verdicts is written to _build/mutants.md.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lib import kernels, runner
from lib.compiler import compile_kernel
from tests.kernels.conftest import VARIANTS
from tests.mutation import BUILD, Equivalent, Table

EQUIVALENTS: tuple[Equivalent, ...] = (
    Equivalent(
        "16_cp_async .*", r"cp\.async\.wait_group 0;", "",
        "the copies that are still on their way bring zeros that nobody reads", 2,
    ),
)


@pytest.fixture(scope="module")
def table():
    """The table, written down when all kernels are through."""
    table = Table("Mutants of the book's kernels", EQUIVALENTS)
    yield table
    table.write(BUILD / "mutants.md")


def smaller(variant):
    """Return an instantiation of the same template whose run is short: few slices, a short ring."""
    if "CLUSTER" not in variant.constants:
        return variant
    names = {"staged": "STAGED", "ping_pong": "PING_PONG", "in_flight": "IN_FLIGHT",
             "cluster": "CLUSTER", "blocks": "BLOCKS"}
    given = {name: variant.constants[constant] for name, constant in names.items()}
    given["staged"] = min(2, given["staged"])
    return kernels._hopper(
        variant.name, variant.meaning, tile=(128, 128), stages=2, dtype=variant.dtype,
        out=variant.out, b_layout=variant.b_layout, **given,
    )


def problems_of(variant):
    """Return small problems that go through all of the code that a variant has for such shapes."""
    rows, columns = variant.tile
    stages = max((int(variant.constants.get(n, 1)) for n in ("STAGES", "BUFFERS")), default=1)
    # Two steps where a step is long; a last one that is cut short. Multiples of 8 fit all vectors.
    steps = max(2, 2 * stages)
    if "CLUSTER" in variant.constants:
        # Three tiles for one cluster, which come round the ring together.
        rows, columns, steps = rows * variant.cluster, 3 * columns, stages
    K = steps * variant.step - (variant.step // 2 if variant.step >= 16 else 0)
    size = max(1, rows - 3), max(8, columns - 8), max(8, K)
    # 18 has code of its own for beta = 0.
    betas = (-2.0, 0.0) if "CLUSTER" in variant.constants else (-2.0,)
    return [variant.problem(*size, 0.5, beta) for beta in betas]


# Variants that differ only in what is made smaller are one.
DISTINCT = list({
    param.values[0].expression(smaller(param.values[1])): param for param in VARIANTS
}.values())


@pytest.mark.parametrize("kernel, variant", DISTINCT)
def test_every_mutant_is_found_out_or_equivalent(kernel, variant, table, monkeypatch):
    variant = smaller(variant)
    problems = problems_of(variant)
    if "CLUSTER" in variant.constants:
        monkeypatch.setattr(kernels, "PERSISTENT_SMS", variant.cluster)
    emulate = runner.emulate
    compiled = compile_kernel(
        kernel, kernel.select(problems[0], variant).variant, kernel.min_arch
    )

    def runs(text: str):
        def run(**options):
            def mutated(compiled, *args, **more):
                # What ptxas merged only matters for counters, which are off.
                changed = SimpleNamespace(ptx=text, name=compiled.name, merge={})
                return emulate(changed, *args, **(more | options), turns=1 << 14)

            monkeypatch.setattr(runner, "emulate", mutated)
            for problem in problems:
                done = runner.run(
                    kernel, problem, variant=variant, backend="emulator", arch=kernel.min_arch
                )
                if done.launch.hazards or not done.verdict.ok:
                    break
            return done.launch, done.verdict.ok

        return run

    table.check(f"{kernel.stem} {variant.name}", compiled.ptx, compiled.name, runs)


def test_no_listed_equivalent_is_stale(table, request):
    if len(request.session.items) < len(DISTINCT):
        pytest.skip("only some kernels were run")
    assert not table.stale()
