"""The ladder in words: tables that pages print."""

from lib.kernels.catalogue import CATALOGUE, in_book
from lib.topics.ladder import contents


def test_the_ladder_has_every_number_once_and_in_order():
    numbers = [stem[:2] for stem in CATALOGUE]
    assert numbers == [f"{i:02d}" for i in range(1, len(numbers) + 1)]


def test_the_ladder_as_a_table():
    assert len(contents.markdown().splitlines()) == 2 + len(CATALOGUE)
    assert "sm_90a only" in contents.markdown() and "sm_80 and later" in contents.markdown()
    lines = contents.contents().splitlines()
    assert len(lines) == 2 + len(CATALOGUE)
    assert all(kernel.change in line for kernel, line in
               zip(CATALOGUE.values(), lines[2:], strict=True))
    assert sum("**here**" in line for line in lines) == len(in_book())
    assert contents.summary() == f"**{len(in_book())}** of {len(CATALOGUE)} versions are here."
