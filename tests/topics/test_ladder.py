"""The ladder in words: tables that pages print."""

from lib.kernels.catalogue import CATALOGUE, in_book
from lib.topics.ladder import contents


def test_the_ladder_has_every_number_once_and_in_order():
    numbers = [stem[:2] for stem in CATALOGUE]
    assert numbers == [f"{i:02d}" for i in range(1, len(numbers) + 1)]


def test_the_ladder_as_a_table():
    lines = contents.markdown().splitlines()
    assert "sm_90a only" in contents.markdown() and "sm_80 and later" in contents.markdown()
    assert len(lines) == 2 + len(in_book())
    for (stem, kernel), line in zip(in_book().items(), lines[2:], strict=True):
        assert f"[{stem[:2]}]({stem}.ipynb)" in line and kernel.change in line
