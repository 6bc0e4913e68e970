"""Named accesses and owned elements, from emulated launches of the book's kernels."""

import pytest

from lib.chapter import Chapter
from lib.kernels import catalogue as kernels
from lib.problem import Problem
from lib.run import runner
from lib.show import banks, coalescing, display
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


def test_shared_variables_go_by_their_names_in_the_source():
    found = named(emulated("02_shared_tile").launch, "shared")
    seen = {(n.label, n.kind, n.access.bytes_per_lane) for n in found}
    assert seen == {("As[ty][tx]", "store", 4), ("Bs[ty][tx]", "store", 4),
                    ("As[ty][k]", "load", 16), ("Bs[k][tx]", "load", 4)}
    assert all(banks.describe(n.access).conflicts == 0 for n in found)


def test_a_launch_that_watched_nobody_is_an_error():
    with pytest.raises(ValueError, match="watch"):
        named(emulated("01_naive", watch=None).launch, "global")


@pytest.mark.parametrize("stem, name, shape, expected", [
    # Tiles that share their memory go by their own names.
    ("13_wmma_vectorized", "vectors_128x128", (128, 128, 64), {
        ("store", "A[buffer][am + i * A_STEP][ak]"), ("ldmatrix", "A[buffer][ty + 16 * i][k]"),
        ("ldmatrix", "B[buffer][k][tx + 16 * j]")}),
    # Where a line has a pointer alone, its callers say what it moves.
    ("15_turing_limit", "tile_64x128", (64, 128, 96), {
        ("store", "a[i]"), ("store", "b[i]"), ("ldmatrix", "a_k[set][i]"),
        ("ldmatrix", "b_k[set][j]")}),
    # A call's arguments on the next line name the array.
    ("12_wmma_pipeline", "staged", (128, 128, 64), {
        ("store", "slices[warp]"), ("load", "slices[warp]")}),
    # An ldmatrix isn't called by what a store is passed.
    ("14_ldmatrix", "k8", (128, 128, 32), {
        ("ldmatrix", "As[ty + 16 * i + down][k + across]"), ("ldmatrix", "Bs")}),
])
def test_shared_accesses_are_called_as_their_lines_call_them(stem, name, shape, expected):
    kernel = kernels.find(stem)
    variant = kernel.variant(name)
    run = runner.run(kernel, variant.problem(*shape), variant=variant, backend="emulator",
                     watch=(0, 1), exact=True)
    found = {(n.kind, n.label) for n in named(run.launch, "shared")}
    assert expected <= found
    assert stem != "14_ldmatrix" or expected == {one for one in found if one[0] == "ldmatrix"}


def test_pages_draw_copies_and_say_what_has_none():
    with display.collected() as figures:
        Chapter("16_cp_async").coalescing("tile_128x256")
        Chapter("16_cp_async").banks("tile_128x256")
    copied = figures[0].text.split("A[(row0 + ar) * K + ac * 8] ")[1]
    assert "16 sectors 100% useful" in copied.split("copy ")[0]
    assert "storage" in figures[1].text and "4 wavefronts, ideal 4" in figures[1].text
    with pytest.raises(ValueError, match="draw its boxes"):
        Chapter("20_persistent").coalescing("staged")


def test_a_line_that_names_one_array_is_not_said_to_load_another():
    """NVRTC joins the end of 09's copies of A with those of B, whose line it names for both."""
    kernel = kernels.find("09_fp32_limit")
    run = runner.run(kernel, Problem(256, 256, 256), variant=kernel.variant("large"),
                     backend="emulator", watch=(0, 0))
    loads = [(n.array, n.label) for n in named(run.launch, "global") if n.kind == "load"]
    assert loads[:2] == [("A", "copies_a[i]"), ("B", "copies_b[i - A_COPIES]")]
    assert [array for array, _ in loads].count("A") == 1
