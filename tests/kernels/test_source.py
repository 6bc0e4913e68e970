"""What a chapter shows of the CUDA sources."""

import pytest

from lib.kernels import source
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel
from lib.paths import CUDA


@pytest.mark.parametrize("kernel", [
    pytest.param(kernel, id=stem, marks=() if place % 3 == 0 else pytest.mark.slow)
    for place, (stem, kernel) in enumerate(CATALOGUE.items())
])
def test_the_listing_is_the_kernel_without_its_marks(kernel: Kernel):
    text = source.listing(kernel)
    assert "MARK" not in text and "TIMELINE" not in text
    variant = kernel.variants[0]
    shown = compile_kernel(kernel, variant, source=text).resources
    assert shown == compile_kernel(kernel, variant).resources


def test_a_difference_has_every_line_of_the_new_kernel():
    second = CATALOGUE["02_shared_tile"]
    lines = source.difference(second, context=1000)
    assert any(line.mark == "+" and "__shared__" in line.text for line in lines)
    assert any(line.mark == "-" and "COALESCED" in line.text for line in lines)
    # Applied, it gives the new file: what is kept, added or moved is its body.
    stayed = [line.text for line in lines if line.mark != "-"]
    assert stayed == source.body(second).splitlines()
    with pytest.raises(ValueError, match="01_naive is the first version"):
        source.difference(CATALOGUE["01_naive"])


def test_a_line_that_moved_is_neither_removed_nor_added():
    old = "int first = load(a);\nint other = 1;\n}\n"
    new = "int other = 1;\n  int first = load(a);\n}\n"
    marks = [(line.mark, line.text) for line in source.changes(old, new)]
    assert marks == [(" ", "int other = 1;"), ("~", "  int first = load(a);"), (" ", "}")]
    # A line that was there once and is there twice has been added once.
    marks = [line.mark for line in source.changes("call(argument);\n", "x\ncall(argument);\n" * 2)]
    assert marks == ["+", " ", "+", "+"]


def test_what_is_as_before_is_left_out_and_counted():
    rows = [f"line {i};" for i in range(20)]
    lines = source.changes("\n".join(rows), "\n".join([*rows[:10], "new", *rows[10:]]), context=2)
    assert [(line.mark, line.text) for line in lines] == [
        ("…", "8 lines as before"), (" ", "line 8;"), (" ", "line 9;"), ("+", "new"),
        (" ", "line 10;"), (" ", "line 11;"), ("…", "8 lines as before")]


def test_an_excerpt_ends_where_it_is_told_or_is_refused():
    text = "a;\n    begin {\n        work;\n    } // end\nb;\n"
    assert source.excerpt(text, "begin", "end") == "begin {\n    work;\n} // end\n"
    # Directives of the preprocessor stand at the edge wherever they are.
    text = "    begin {\n#pragma unroll\n\n        a;\n    } // end\n"
    assert source.excerpt(text, "begin", "end") == "begin {\n#pragma unroll\n\n    a;\n} // end\n"
    text = "a;\n    begin {\n    } // end\n"
    with pytest.raises(ValueError, match="no line holds 'start'"):
        source.excerpt(text, "start", "end")
    with pytest.raises(ValueError, match="no line from 'begin' on holds 'a;'"):
        source.excerpt(text, "begin", "a;")


def test_an_excerpt_can_go_on_to_its_closing_braces():
    text = "for {\n    if {\n        a;\n    }\n    b;\n}\nc;\n"
    assert source.excerpt(text, "for", "a;") == "for {\n    if {\n        a;\n"
    assert source.excerpt(text, "for", "a;", closed=True) == text.removesuffix("c;\n")
    assert source.excerpt(text, "if", "a;", closed=True) == "if {\n    a;\n}\n"
    with pytest.raises(ValueError, match="opened from 'for' on is never closed"):
        source.excerpt("for {\n", "for", "for", closed=True)


def test_what_has_little_of_the_version_before_is_shown_whole():
    """A kernel that changes a few lines is a diff, one that was written anew is not."""
    new = [stem for stem, kernel in CATALOGUE.items() if source.is_new(kernel)]
    # What comes behind the versions of the book is somebody's own, and may be either.
    assert [stem for stem in new if stem < "25"] == [
        "01_naive", "09_fp32_limit", "10_wmma", "15_turing_limit", "16_cp_async", "17_wgmma",
    ]


def test_an_edit_that_matches_nothing_is_refused():
    text = source.listing(CATALOGUE["02_shared_tile"])
    assert "__syncthreads" not in source.edited(text, "__syncthreads();", "")
    assert source.edited("a a", "a", "b", 1) == "b a"
    with pytest.raises(ValueError, match="nothing to replace: .* '__syncthreads_and"):
        source.edited(text, "__syncthreads_and(1);", "")


# Of a kernel's file and of a header: what is read in one sitting.
MAX_LINES = {"*.cu": 250, "steps/*.cu": 250, "include/*.cuh": 140}
# Patterns to calibrate by; and all of Hopper's ideas in one file, which 20 to 24 have apart.
LONGER = {"calibration.cu"}


@pytest.mark.parametrize("pattern", MAX_LINES)
def test_a_file_is_read_in_one_sitting(pattern):
    files = {file.name: len(file.read_text(encoding="utf-8").splitlines())
             for file in CUDA.glob(pattern)}
    assert files
    assert {name: lines for name, lines in files.items()
            if lines >= MAX_LINES[pattern] and name not in LONGER} == {}
