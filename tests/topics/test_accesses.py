"""Named accesses and owned elements, from emulated launches of the book's kernels."""

import pytest

from lib.kernels import catalogue as kernels
from lib.problem import Problem
from lib.run import runner
from lib.show import banks, coalescing
from lib.topics.code.mapping import model as mapping
from lib.topics.code.mapping.model import Region
from lib.topics.memory.accesses.model import named
from lib.topics.version import Version


def emulated(stem, variant=None, watch=(1, 3)):
    kernel = kernels.find(stem)
    return runner.run(kernel, Problem(64, 64, 64), variant=kernel.variant(variant),
                      backend="emulator", watch=watch)


def sectors(run):
    found = named(run.launch, "global")
    return {n.label: len(coalescing.describe(n.access, n.allocation).sectors) for n in found}


def test_naive_has_a_load_of_each_operand_and_a_store():
    run = emulated("01_naive", "coalesced")
    assert sectors(run) == {"A[row * K + k]": 1, "B[k * N + col]": 4, "C[row * N + col]": 4}
    kinds = {n.array: (n.kind, n.where.partition(":")[0]) for n in named(run.launch, "global")}
    assert kinds == {"A": ("load", "01_naive.cu"), "B": ("load", "01_naive.cu"),
                     "C": ("store", "01_naive.cu")}


def test_an_access_of_an_inlined_function_has_the_kernel_s_line():
    kernel = kernels.find("06_vectorized")
    lines = kernel.source.read_text().splitlines()
    run = emulated("06_vectorized", watch=(0, 3))
    for space in ("global", "shared"):
        for one in named(run.launch, space):
            file, _, line = one.where.partition(":")
            assert file == "06_vectorized.cu"
            call = "store<" if one.kind == "store" else "load<"
            text = lines[int(line) - 1]
            assert call in text or "update<" in text or f"{one.array}[" in text


def test_the_swapped_mapping_scatters():
    run = emulated("01_naive", "swapped")
    assert sectors(run) == {"A[row * K + k]": 32, "B[k * N + col]": 1, "C[row * N + col]": 32}


def test_shared_variables_go_by_their_names_in_the_source():
    found = named(emulated("02_shared_tile").launch, "shared")
    seen = {(n.label, n.kind, n.access.bytes_per_lane) for n in found}
    assert seen == {("As[ty][tx]", "store", 4), ("Bs[ty][tx]", "store", 4),
                    ("As[ty][k]", "load", 16), ("Bs[k][tx]", "load", 4)}
    assert all(banks.describe(n.access).conflicts == 0 for n in found)


def test_tiles_that_share_their_memory_go_by_their_own_names():
    kernel = kernels.find("13_wmma_vectorized")
    variant = kernel.variant("vectors_128x128")
    run = runner.run(kernel, variant.problem(128, 128, 64), variant=variant, backend="emulator",
                     watch=(0, 3), exact=True)
    found = {(n.kind, n.label) for n in named(run.launch, "shared")}
    assert {("store", "A[buffer][am + i * A_STEP][ak]"), ("ldmatrix", "A[buffer][ty + 16 * i][k]"),
            ("ldmatrix", "B[buffer][k][tx + 16 * j]")} <= found
    assert all(n.where.startswith("13_wmma_vectorized.cu:") for n in named(run.launch, "shared"))


def test_where_a_line_has_a_pointer_alone_its_callers_say_what_it_moves():
    kernel = kernels.find("15_turing_limit")
    variant = kernel.variant("tile_64x128")
    run = runner.run(kernel, variant.problem(64, 128, 96), variant=variant, backend="emulator",
                     watch=(0, 1), exact=True)
    found = {(n.kind, n.label) for n in named(run.launch, "shared")}
    assert {("store", "a[i]"), ("store", "b[i]"), ("ldmatrix", "a_k[set][i]"),
            ("ldmatrix", "b_k[set][j]")} <= found


def test_an_ldmatrix_is_not_called_by_what_a_store_is_passed():
    kernel = kernels.find("14_ldmatrix")
    variant = kernel.variants[0]
    run = runner.run(kernel, variant.problem(128, 128, 32), variant=variant, backend="emulator",
                     watch=(0, 1), exact=True)
    found = {n.label for n in named(run.launch, "shared") if n.kind == "ldmatrix"}
    assert found == {"As[ty + 16 * i + down][k + across]", "Bs"}


def test_a_launch_that_watched_nobody_is_an_error():
    with pytest.raises(ValueError, match="watch"):
        named(emulated("01_naive", watch=None).launch, "global")


@pytest.mark.parametrize(
    "stem, variant, warp, a, b",
    [
        ("01_naive", "coalesced", Region(3, 32, 1, 32), Region(3, 0, 1, 1), Region(0, 32, 1, 32)),
        ("01_naive", "swapped", Region(0, 35, 32, 1), Region(0, 0, 32, 1), Region(0, 35, 1, 1)),
        ("02_shared_tile", None, Region(3, 32, 1, 32), Region(0, 0, 32, 32),
         Region(0, 32, 32, 32)),
    ],
)
def test_who_computes_what_is_read_off_the_stores(stem, variant, warp, a, b):
    work = mapping.work(emulated(stem, variant))
    assert work.block == Region(0, 32, 32, 32)
    assert work.warp == [warp]
    assert work.thread == [Region(warp.row, warp.column, 1, 1)]
    assert (work.a_step, work.b_step) == (a, b)


def test_scattered_elements_become_few_rectangles():
    elements = [(r, c) for r in (0, 1, 4, 5) for c in (0, 1, 2, 8)]
    assert mapping.regions(elements) == [
        Region(0, 0, 2, 3), Region(0, 8, 2, 1), Region(4, 0, 2, 3), Region(4, 8, 2, 1),
    ]


def test_a_call_s_arguments_on_the_next_line_name_the_array():
    kernel = kernels.find("12_wmma_pipeline")
    chosen = kernel.variant("staged")
    run = runner.run(kernel, chosen.problem(128, 128, 64), variant=chosen, backend="emulator",
                     watch=(1, 3))
    found = {(n.kind, n.label) for n in named(run.launch, "shared")}
    assert {("store", "slices[warp]"), ("load", "slices[warp]")} <= found


@pytest.mark.parametrize("stem, rows", [("25_epilogue", [48, 112]), ("26_fp8", [176])])
def test_rows_of_a_warpgroup_s_warp_where_c_has_two_bytes(stem, rows):
    """Of each 64 rows that wgmma multiplies a warp has 16, and a lane two columns of each 8."""
    version = Version(stem)
    work = mapping.work(version.stored_by_lanes())
    assert version.kernel.variants[0].out == "bfloat16"
    assert [(one.row, one.rows) for one in work.warp] == [(row, 16) for row in rows]
    assert {(one.rows, one.columns) for one in work.thread} == {(1, 2)}
