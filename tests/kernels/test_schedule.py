"""A schedule, and the arguments of a template that follow from it."""

import re
from itertools import product

import pytest

from lib.dispatch import fit
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.grid import LastWave, Line
from lib.kernels.schedule import Schedule
from lib.problem import Problem
from lib.records import store as records
from lib.records.launched import launch_hash
from lib.records.schema import KernelRecord
from tests.tables import cases

VARIANTS = [(kernel, variant) for kernel in CATALOGUE.values()
            for variant in (*kernel.measured, *kernel.exhibits, *kernel.laid, *kernel.menu)]
# Those whose templates have further arguments, in layouts that ask for them all.
VARIANTS += [
    (kernel, fit.laid(variant, Problem(64, 64, 64, dtype=variant.dtype, out=variant.out, batch=2)))
    for kernel, variant in VARIANTS if variant.any_layout
]


def test_a_template_s_arguments_follow_from_the_schedule_in_its_order():
    schedule = Schedule((128, 256), 32, (64, 32), vec=8, stages=3, cluster=(2, 1), split=4,
                        swapped=True, own={"LAYOUT": "ROWS", "STAGED": True})
    template = ("TC", "T", "BN", "BM", "WM", "STAGED", "CLUSTER_M", "CLUSTER_K", "SWAPPED",
                "LAYOUT", "B_BY_ROWS")
    made = schedule.arguments(template, "bfloat16", "float32", "column")
    assert list(made) == list(template) and list(made.values()) == [
        "float", "__nv_bfloat16", 256, 128, 64, True, 2, 4, True, "ROWS", False]
    with pytest.raises(KeyError, match="UNROLL"):
        schedule.arguments(("BM", "UNROLL"), "float16", "float32", "row")


def test_each_template_takes_as_many_arguments_as_the_catalogue_gives_by_their_names():
    texts = {}
    for kernel, variant in VARIANTS:
        for one in (variant, *([variant.packing] if variant.packing else [])):
            file = kernel.file(one)
            text = texts.setdefault(file, file.read_text(encoding="utf-8"))
            name = one.function or kernel.function
            head = re.search(rf"template <([^>]*)>\s*__global__[^;{{]*?\b{name}\(", text)
            assert head, f"{file.name} has no template {name}"
            parts = [part.split("=") for part in head[1].split(",")]
            names = tuple(declared.split()[-1] for declared, *_ in parts)
            given = len(one.template)
            assert names[:given] == one.template == tuple(one.constants), (file.name, name)
            # The others have defaults, or are packs, which may be empty.
            assert all(len(part) > 1 or "..." in part[0] for part in parts[given:]), (
                file.name, name)


def test_every_argument_of_a_kernel_s_own_stands_in_its_template():
    """An argument of the kernel's own that its template lacks would be lost without a word."""
    for _, variant in VARIANTS:
        assert set(variant.schedule.own) <= set(variant.template), variant.name


def test_recorded_launches_are_known_by_the_hashes_that_they_were_recorded_by():
    """Whatever the classes are called that a launch is described by."""
    known = 0
    for kernel, gpu in product(CATALOGUE.values(), ("H100", "H200")):
        record = records.load(KernelRecord, gpu, kernel.stem)
        for name, stored in record.variants.items() if record else ():
            variant = kernel.variant(name)
            # Of these there were more clusters than run at once until November 2026.
            fewer = (variant.grid.blocks_per_sm and variant.grid.size > 2
                     and record.date <= "2026-11-24")
            if stored.hash == kernel.hash(variant) and not fewer:
                assert stored.launch == launch_hash(kernel, variant)
                known += 1
    assert known


@cases("""
tiles | steps | waves | cut
1     | 7     | 1     | (0, 1)
1     | 8     | 1     | (0, 1)
1     | 15    | 1     | (0, 1)
1     | 16    | 1     | (1, 2)
2     | 64    | 1     | (0, 1)
3     | 1     | 1     | (0, 1)
3     | 4     | 1     | (0, 1)
3     | 16    | 1     | (3, 2)
3     | 16    | 0     | (1, 2)
5     | 16    | 1     | (3, 2)
5     | 16    | 0     | (1, 2)
4     | 16    | 1     | (0, 1)
""")
def test_as_many_sharers_as_tiles_cut_none(tiles, steps, waves, cut):
    grid = LastWave(blocks_per_sm=1, stream_k_share=8, stream_k_waves=waves)
    assert grid.cut(Problem(64 * tiles, 64, 64 * steps), (64, 64), 64, 2) == cut


@pytest.mark.parametrize(("steps", "blocks"), [(7, 3), (8, 3), (12, 2)])
def test_shares_as_short_as_a_tile_leave_a_block_to_each(steps, blocks):
    grid = Line(blocks_per_sm=1, least_share=8)
    assert grid.blocks(Problem(64, 64 * 3, 64 * steps), (64, 64), 64, 2) == (blocks, 1, 1)
