"""Named accesses and owned elements, from emulated launches of the book's kernels."""

import pytest

from lib.kernels import catalogue as kernels
from lib.problem import Problem
from lib.run import runner
from lib.show import banks, coalescing
from lib.show.accesses import named


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


def test_a_call_s_arguments_on_the_next_line_name_the_array():
    kernel = kernels.find("12_wmma_pipeline")
    chosen = kernel.variant("staged")
    run = runner.run(kernel, chosen.problem(128, 128, 64), variant=chosen, backend="emulator",
                     watch=(1, 3))
    found = {(n.kind, n.label) for n in named(run.launch, "shared")}
    assert {("store", "slices[warp]"), ("load", "slices[warp]")} <= found


