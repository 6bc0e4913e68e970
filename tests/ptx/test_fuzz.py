"""A short, seeded part of what `fuzz` searches for longer; and that it can find something."""

import shutil

import pytest

from . import fuzz


@pytest.mark.parametrize("seed", range(5, 600, 5))
def test_edits_raise_nothing_else(seed):
    fuzz.try_edit(seed)


needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++ to compare with")


@needs_compiler
@pytest.mark.parametrize("seed", range(8))
def test_programs_agree_with_the_compiler_bit_for_bit(seed):
    fuzz.try_program(seed)
