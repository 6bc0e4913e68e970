"""Every kernel of the catalogue without its barriers, waits, fences and commits in turn.

Of each kind of mistake one mutant a template; all of them, hundreds, are slow. The table of those
that were run, with their verdicts, is written to _build/mutants.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from lib.dispatch.plan import plan
from lib.kernels import blackwell, hopper
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE, OWN, find
from lib.kernels.grid import PERSISTENT_SMS, LastWave
from lib.problem import ITEM_BYTES
from lib.run import runner
from tests.kernels.conftest import on_changed
from tools.mutation import Equivalent

EQUIVALENTS = (
    Equivalent(
        "14_ldmatrix", r"bar\.warp\.sync", "__syncwarp",
        "it holds ptxas to an order of loads and stores; what threads see of each other the "
        "block's barriers order",
    ),
    Equivalent(
        "16_cp_async", r"cp\.async\.wait_group 0;", "",
        "the copies that are still on their way bring zeros that nobody reads",
    ),
    Equivalent(
        "18_tma", r"bar\.warp\.sync", "__syncwarp",
        "it brings the warp together again for wgmma, as the emulator does at the branch's end",
    ),
    Equivalent(
        "26_fp8", r"bar\.warp\.sync", "__syncwarp",
        "on a GPU lane 0 may say that the warp has read its scales before the others have; in the "
        "emulator the lanes of a warp go together",
    ),
    Equivalent(
        "27_tcgen05|28_cta_pairs", r"bar\.warp\.sync", "__syncwarp",
        "on a GPU lanes may drift apart, and then a slice leaves before it is whole, or is written "
        "before it has left; in the emulator the lanes of a warp go together",
    ),
    Equivalent(
        "28_cta_pairs", r"barrier\.cluster\.arrive\.release; → barrier\.cluster\.arrive\.rel", "",
        "the first meeting of the cluster only says that both blocks run; what came before it the "
        "second one releases too",
    ),
)


# Of 17 to 23: who makes an instantiation of a template, and the smallest tile that has all of its
# statements. With 64 rows, or columns, of a split tile there is one warpgroup, and nobody for its
# barrier to wait for.
MAKERS = {
    "wgmma_tiles": (hopper.wgmma, (64, 64)), "tma_ring": (hopper.tma, (128, 64)),
    "warp_specialization": (hopper.specialized, (64, 64)),
    "persistent": (hopper.persists, (64, 64)), "clustered": (hopper.clustered, (64, 64)),
    "few_tiles": (hopper.few_tiles, (128, 64)), "stream_k": (hopper.stream_k, (64, 64)),
    "few_tiles_persistent": (hopper.swapped_persists, (64, 64)),
    "tensor_tiles": (blackwell.tensor_tiles, (128, 64)),
    "cta_pairs": (blackwell.cta_pair, (128, 128)),
}


def smaller(kernel, variant):
    """Return an instantiation of the same template whose run is short: small tiles and ring."""
    function, schedule = variant.function or kernel.function, variant.schedule
    if function not in MAKERS:
        return variant
    make, (rows, columns) = MAKERS[function]
    given = {"dtype": variant.dtype, "out": variant.out, "b_layout": variant.b_layout}
    if "PING_PONG" in variant.template and not schedule.ping_pong:  # 64 for each consumer
        rows, columns = (rows, 128) if schedule.swapped else (128, columns)
    staged = min(columns * ITEM_BYTES[variant.out] // 128, schedule.staged)
    small = replace(schedule, tile=(rows, columns), stages=3, staged=staged)
    if function == "few_tiles":
        down, across = schedule.cluster
        small = replace(small, stages=2, split=min(2, schedule.split),
                        cluster=(min(2, down), across))
        if schedule.swapped:
            small = replace(small, tile=(columns, rows))
    if isinstance(variant.grid, LastWave):  # all of them have the code of the cut wave
        given["stream_k_share"] = 1
    return make(variant.name, variant.meaning, small, **given)


def representatives(kernel):
    """Return the smallest of the variants that differ in sizes only: they share all statements."""
    smallest = {}
    written = [variant for variant in (*kernel.measured, *kernel.menu)
               if not variant.version and (variant in kernel.variants or variant.file)]
    for variant in sorted(written, key=lambda v: v.tile[0] * v.tile[1] * v.step):
        switches = (
            (name, min(value, 2) if isinstance(value, int) else value)
            for name, value in variant.constants.items()
            if name != "BLOCKS"
        )
        smallest.setdefault((variant.file, variant.grid.blocks_per_sm > 0, *switches), variant)
    return [smaller(kernel, variant) for variant in smallest.values()]


def problems_of(variant):
    """Return small problems that go through all of the code that a variant has for such shapes.

    With each comes the number of SMs for which the kernel is launched.
    """
    rows, columns = variant.tile
    stages = max(int(variant.constants.get(name, 2)) for name in ("STAGES", "BUFFERS"))
    # Steps enough to come round every ring.
    steps, sms, betas = stages + 2, (PERSISTENT_SMS,), (-2.0,)
    if variant.grid.least_share:
        # Two tiles for three shares, of which the second ends one tile and begins the other; and
        # both tiles for one block, whose ring is not at its beginning when the second comes.
        columns, sms = 2 * columns, (*sms, 1)
        steps = next(n for n in count(-(-3 * variant.grid.least_share // 2)) if n % stages == 1)
    elif getattr(variant.grid, "stream_k_share", 0):
        # Three tiles for two clusters, of which they share the last.
        rows, steps = 3 * rows * variant.grid.cluster, 2 * stages + 1
        sms = (2 * variant.grid.size,)
    elif variant.constants.get("CONTROL"):
        # Four tiles or more for each of two clusters, which come round all rings together.
        rows, columns = rows * variant.grid.cluster, 9 * columns
        steps, betas = 2, (-2.0, 0.0)
    elif variant.grid.blocks_per_sm:
        # Three tiles for one cluster, which come round the ring together; and there is code of its
        # own for beta = 0.
        rows, columns = rows * variant.grid.cluster, 3 * columns * variant.grid.cluster_n
        steps, sms, betas = stages, (variant.grid.size,), (-2.0, 0.0)
    elif variant.packing or variant.maps or variant.row_bytes or variant.grid.size > 1:
        rows, columns = rows * variant.grid.cluster, columns * variant.grid.each
        steps = (stages + 2) * variant.grid.split
    # The last step is cut short where it is long. Multiples of 8 fit all vectors.
    K = steps * variant.step - (variant.step // 2 if variant.step >= 16 else 0)
    size = max(1, rows - 3), max(8, columns - 8), max(8, K)
    return [(variant.problem(*size, 0.5, beta), number) for number in sms for beta in betas]


def check(stem, table, monkeypatch, one_of_a_kind):
    """Run the mutants of a kernel; each is found out or listed as equivalent."""
    kernel = find(stem)

    def prepared(variant):
        problems = problems_of(variant)
        selected = plan(kernel, variant, problems[0][0], exact=True).variant
        compiled = compile_kernel(kernel, selected, kernel.oldest(selected), ptx_only=True)

        runs = [partial(runner.run, kernel, problem, variant=variant, backend="emulator",
                        arch=kernel.oldest(variant), exact=True, sms=sms)
                for problem, sms in problems]
        return compiled.ptx, compiled.name, on_changed(runner, monkeypatch, runs)

    tried = representatives(kernel)
    # What the smallest doesn't show, a larger one may: it has several fragments a warp, say.
    larger = [variant for variant in kernel.variants
              if variant not in tried and not variant.version]
    table.check(stem, map(prepared, tried), larger=map(prepared, larger),
                one_of_a_kind=one_of_a_kind)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stem", [*CATALOGUE, *OWN])
def test_mutants_are_found_out_or_equivalent(stem, every, table, monkeypatch):
    """One of each kind, or each statement of the source that orders something."""
    check(stem, table, monkeypatch, one_of_a_kind=not every)
