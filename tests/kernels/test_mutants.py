"""Every kernel of the catalogue without each of its barriers, waits, fences and commits in turn.

The table of mutants and verdicts is written to _build/mutants.md.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lib import runner
from lib.compiler import compile_kernel
from lib.kernels import CATALOGUE
from tests.mutation import BUILD, Equivalent, Table

EQUIVALENTS = (
    Equivalent(
        "16_cp_async", r"cp\.async\.wait_group 0;", "",
        "the copies that the last wait is for belong to steps beyond K: they are empty, and nobody "
        "uses their tiles again",
    ),
    Equivalent(
        "18_hopper_limit", r"bar\.sync %\w+, %\w+;", "",
        "two warpgroups take turns from tile to tile, and here a block has one tile",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def table():
    """The table, written down when all kernels are through."""
    table = Table("Mutants of the book's kernels", EQUIVALENTS)
    yield table
    table.write(BUILD / "mutants.md")


def problem_of(variant):
    """Return one block's problem: a ragged tile, and steps enough to come round every ring."""
    rows, columns = variant.tile
    stages = max(int(variant.constants.get(name, 2)) for name in ("STAGES", "BUFFERS"))
    steps = stages + 2
    # The last step is cut short where it is long. Multiples of 8 fit all vectors.
    K = steps * variant.step - (variant.step // 2 if variant.step >= 16 else 0)
    return variant.problem(max(1, rows - 3), max(8, columns - 8), max(8, K), 0.5, -2.0)


def representatives(variants):
    """Return the smallest of the variants that differ in sizes only: they share all statements."""
    smallest = {}
    for variant in sorted(variants, key=lambda v: v.tile[0] * v.tile[1] * v.step):
        switches = (
            (name, min(value, 2) if isinstance(value, int) else value)
            for name, value in variant.constants.items()
            if name != "BLOCKS"
        )
        smallest.setdefault(tuple(switches), variant)
    return list(smallest.values())


@pytest.mark.parametrize("stem", CATALOGUE)
def test_every_mutant_is_found_out_or_equivalent(stem, table, monkeypatch):
    """Each statement of the source that orders something, in the variants that have it."""
    kernel, emulate = CATALOGUE[stem], runner.emulate

    def prepared(variant):
        problem = problem_of(variant)
        selected = kernel.select(problem, variant).variant
        compiled = compile_kernel(kernel, selected, kernel.min_arch)

        def runs(text: str):
            def run(**options):
                def mutated(compiled, *args, **more):
                    # What ptxas merged only matters for counters, which are off.
                    changed = SimpleNamespace(ptx=text, name=compiled.name, merge={})
                    return emulate(changed, *args, **(more | options), turns=1 << 14)

                monkeypatch.setattr(runner, "emulate", mutated)
                done = runner.run(
                    kernel, problem, variant=variant, backend="emulator", arch=kernel.min_arch
                )
                return done.launch, done.verdict.ok

            return run

        return compiled.ptx, compiled.name, runs

    table.check(stem, map(prepared, representatives(kernel.variants)))


def test_no_listed_equivalent_is_stale(table):
    if len({kernel for kernel, *_ in table.rows}) < len(CATALOGUE) // 2:
        pytest.skip("only some kernels were run")
    assert not table.stale()
