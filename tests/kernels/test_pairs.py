"""The declared pairs: both sides are there, and differ where the pair says."""

import pytest

from lib.kernels import pairs
from lib.kernels.catalogue import CATALOGUE, named
from lib.kernels.spec import Pair

DECLARED = [(stem, pair) for stem, kernel in CATALOGUE.items() for pair in kernel.pairs]
NAMES = [f"{pair.first}-{pair.second}" for _, pair in DECLARED]
COALESCED = Pair("the other mapping", "01_naive/swapped", "01_naive/coalesced", "COALESCED")


@pytest.mark.parametrize(("stem", "pair"), DECLARED, ids=NAMES)
def test_a_pair_names_two_that_are_measured_one_of_them_its_version_s(stem, pair):
    sides = [named(name) for name in (pair.first, pair.second)]
    assert all(variant in kernel.measured for kernel, variant in sides)
    assert stem in {kernel.stem for kernel, _ in sides} and pair.first != pair.second
    assert all("/" in name for name in (pair.first, pair.second))


def changed_arguments(pair):
    """Names of the template's arguments in which a pair's sides, of one template, differ."""
    (one, first), (other, second) = named(pair.first), named(pair.second)
    assert (first.function or one.function, one.file(first)) == (
        second.function or other.function, other.file(second))
    return tuple(name for name, value in first.constants.items()
                 if second.constants[name] != value)


@pytest.mark.parametrize(("stem", "pair"), DECLARED, ids=NAMES)
def test_a_pair_s_code_differs_and_where_it_says(stem, pair):
    if pair.launched:
        (one, first), (other, second) = (named(n) for n in (pair.first, pair.second))
        assert one.hash(first) == other.hash(second) and not pairs.ptx_difference(pair)
        assert (first.shared_bytes, first.grid, first.programmatic_launch) != (
            second.shared_bytes, second.grid, second.programmatic_launch)
        return
    assert pairs.ptx_difference(pair)
    if pair.constant:
        assert changed_arguments(pair) == (pair.constant,)


def test_nothing_is_declared_twice():
    both = [frozenset((pair.first, pair.second)) for _, pair in DECLARED]
    assert len(both) == len(set(both))


def test_a_difference_is_counted_past_the_numbers_of_registers():
    found = pairs.ptx_difference(COALESCED)
    assert changed_arguments(COALESCED) == ("COALESCED",)
    # Only which index is the row: the arithmetic in front of the loop.
    assert 0 < len(found) < 20 and not any("fma" in line for line in found)
    nothing = Pair("nothing", "01_naive/swapped", "01_naive/swapped")
    assert pairs.ptx_difference(nothing) == []
