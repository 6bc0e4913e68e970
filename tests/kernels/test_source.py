"""What a chapter shows of the CUDA sources."""

import pytest

from lib.kernels import source
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=lambda k: k.stem)
def test_the_listing_is_the_kernel_without_its_marks(kernel: Kernel):
    text = source.listing(kernel)
    assert "MARK" not in text and "TIMELINE" not in text
    variant = kernel.variants[0]
    shown = compile_kernel(kernel, variant, source=text).resources
    assert shown == compile_kernel(kernel, variant).resources


def test_the_first_version_is_shown_whole_and_the_next_as_a_diff():
    first, second = CATALOGUE["01_naive"], CATALOGUE["02_shared_tile"]
    assert source.difference(first) == source.body(first)
    rows = source.difference(second).splitlines()
    assert any(row.startswith("+") and "__shared__" in row for row in rows)
    assert any(row.startswith("-") and "COALESCED" in row for row in rows)
    # Applied, the diff gives the new file: kept and added rows are its body.
    kept = [row[1:] for row in rows if not row.startswith("-")]
    assert kept == source.body(second).splitlines()


def test_what_has_little_of_the_version_before_is_shown_whole():
    """A kernel that changes a few lines is a diff, one that was written anew is not."""
    new = [stem for stem, kernel in CATALOGUE.items() if source.is_new(kernel)]
    # What comes behind the versions of the book is somebody's own, and may be either.
    assert [stem for stem in new if stem < "22"] == [
        "01_naive", "09_fp32_limit", "10_wmma", "15_turing_limit", "16_cp_async", "17_wgmma",
    ]
    anew = CATALOGUE["10_wmma"]
    assert source.difference(anew) == source.body(anew)


def test_an_edit_that_matches_nothing_is_refused():
    text = source.listing(CATALOGUE["02_shared_tile"])
    assert "__syncthreads" not in source.edited(text, "__syncthreads();", "")
    assert source.edited("a a", "a", "b", 1) == "b a"
    with pytest.raises(ValueError, match="nothing to replace: .* '__syncthreads_and"):
        source.edited(text, "__syncthreads_and(1);", "")
